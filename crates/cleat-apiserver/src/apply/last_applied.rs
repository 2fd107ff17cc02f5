//! The annotation in which client-side `kubectl apply` keeps its last configuration: how it eases
//! the way to server-side apply, and how it is kept true afterwards.
//!
//! Both only for the manager `kubectl`; others never had the annotation.

use serde_json::Value;

use super::Manager;
use super::fields::FieldSet;
use super::shape::Shape;
use super::typed;
use crate::gojson::escape_html;

/// What `kubectl apply --server-side` calls itself unless told otherwise.
const KUBECTL: &str = "kubectl";

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// What all annotations of an object may hold, names and values.
const MOST_ANNOTATED: usize = 256 * 1024;

/// The fields of the last client-side configuration that still are as it set them. Their owner may
/// take them over without a conflict.
pub(super) fn still_in_effect(
    live: &Value,
    shape: Shape<'_>,
    manager: &Manager<'_>,
) -> Option<FieldSet> {
    if manager.name != KUBECTL {
        return None;
    }
    let text = live.get("metadata")?.get("annotations")?.get(ANNOTATION)?.as_str()?;
    let applied: Value = serde_json::from_str(text).ok()?;
    if applied.get("apiVersion")?.as_str()? != manager.api_version
        || typed::check(&applied, shape).is_some()
    {
        return None;
    }
    let changed = typed::compare(&applied, live, shape);
    let fields = typed::fields_of(&applied, shape);
    Some(
        fields
            .difference(&changed.modified)
            .difference(&changed.added)
            .difference(&changed.removed),
    )
}

/// Sets the annotation, where there is one, to the configuration just applied.
pub(super) fn renew(object: &mut Value, config: &Value, manager: &Manager<'_>) {
    if manager.name != KUBECTL {
        return;
    }
    let annotations = object.get_mut("metadata").and_then(|meta| meta.get_mut("annotations"));
    let Some(Value::Object(annotations)) = annotations else { return };
    match annotations.get(ANNOTATION) {
        Some(Value::String(text)) if !text.is_empty() => {}
        _ => return,
    }
    let mut applied = config.clone();
    let inner = applied.get_mut("metadata").and_then(|meta| meta.get_mut("annotations"));
    if let Some(Value::Object(inner)) = inner {
        inner.remove(ANNOTATION);
    }
    let text = escape_html(&applied.to_string()) + "\n";
    annotations.insert(ANNOTATION.to_owned(), text.into());
    let size: usize = annotations
        .iter()
        .map(|(name, value)| name.len() + value.as_str().map_or(0, str::len))
        .sum();
    if size > MOST_ANNOTATED {
        annotations.remove(ANNOTATION);
    }
}
