//! Labels and annotations: the only part of an object's metadata a template speaks of.

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::String;

use cleat_dialect::quote;
use serde_json::{Map, Value};

use super::equal::{self, Absence, Equality};
use super::merge::{self, Merge};

/// What `kubectl apply` keeps for itself.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// What OpenShift assigns to a namespace once and relies on.
const ASSIGNED: &str = "openshift.io/sa.scc.";

/// How the labels and annotations of the live object come out, and whether they already are so.
pub(super) fn compared(
    template: &Value,
    live: &Value,
    how: Merge,
) -> Result<(Map<String, Value>, Equality), String> {
    let mut merged = object(live).cloned().unwrap_or_default();
    let mut all = Equality::Equal;
    for (field, singular) in [("annotations", "annotation"), ("labels", "label")] {
        let Some(wanted) = object(template).and_then(|template| template.get(field)) else {
            continue;
        };
        let Some(wanted) = wanted.as_object() else {
            if wanted.is_null() {
                continue;
            }
            return Err(format!(
                "Error merging changes into key \"metadata\": object type of template and existing do not match ({field} is no map)"
            ));
        };
        if let Some((key, value)) = wanted.iter().find(|(_, value)| !value.is_string()) {
            return Err(format!(
                "invalid {singular}, error: contains non-string value in the map under key {}: {} is of the type {}, expected string",
                quote::quoted(key),
                quote::plain(value),
                quote::type_name(value),
            ));
        }
        let none = Map::new();
        let existing = object(live)
            .and_then(|live| live.get(field))
            .and_then(Value::as_object)
            .unwrap_or(&none);
        let speaks_of = |key: &str| key != LAST_APPLIED;
        let before: Map<String, Value> = pick(existing, speaks_of);
        let mut after = pick(wanted, speaks_of);
        if how == Merge::Replace && is_namespace(live) && field == "annotations" {
            let assigned = pick(existing, |key| key.starts_with(ASSIGNED));
            for (key, value) in assigned {
                after.entry(key).or_insert(value);
            }
        }
        let after = merge::merged(&Value::Object(after), &Value::Object(before.clone()), how);
        all = all.and(equal::equivalent(&after, Some(&Value::Object(before)), Absence::EmptyMaps));
        let mut after = match after {
            Value::Object(after) => after,
            _ => Map::new(),
        };
        if let Some(theirs) = existing.get(LAST_APPLIED) {
            after.insert(LAST_APPLIED.to_owned(), theirs.clone());
        }
        if after.is_empty() {
            merged.remove(field);
        } else {
            merged.insert(field.to_owned(), Value::Object(after));
        }
    }
    Ok((merged, all))
}

fn object(object: &Value) -> Option<&Map<String, Value>> {
    object.get("metadata").and_then(Value::as_object)
}

fn is_namespace(object: &Value) -> bool {
    let field = |name: &str| object.get(name).and_then(Value::as_str);
    field("kind") == Some("Namespace") && field("apiVersion") == Some("v1")
}

fn pick(all: &Map<String, Value>, take: impl Fn(&str) -> bool) -> Map<String, Value> {
    all.iter()
        .filter(|(key, _)| take(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}
