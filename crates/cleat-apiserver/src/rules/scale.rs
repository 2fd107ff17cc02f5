//! The `scale` subresource: how many replicas there are and shall be, for whatever kind.

use serde_json::{Map, Value, json};

use super::read::{Read, child, object as object_of};
use crate::resource::ScalePaths;
use crate::selector::LabelSelector;
use crate::status::FieldError;

/// Where a kind keeps its numbers. Built-in ones all keep them in the same place.
pub(crate) enum Place<'a> {
    Builtin,
    Custom(&'a ScalePaths),
}

impl Place<'_> {
    /// The way to the number of replicas that is wanted.
    pub(crate) fn path(&self) -> Vec<&str> {
        match self {
            Self::Builtin => vec!["spec", "replicas"],
            Self::Custom(paths) => keys(&paths.spec_replicas).collect(),
        }
    }
}

/// The object as an `autoscaling/v1` Scale. A custom resource that does not say how many replicas it
/// wants wants none; see [`wanted`].
pub(crate) fn view(object: &Value, place: &Place<'_>) -> Value {
    let (replicas, current, selector) = match place {
        Place::Builtin => (
            object.at("spec").number("replicas").unwrap_or(0),
            object.at("status").number("replicas").unwrap_or(0),
            selector_text(object.at("spec").at("selector")),
        ),
        Place::Custom(paths) => (
            wanted(object, place).unwrap_or(0),
            follow(object, &paths.status_replicas).and_then(Value::as_i64).unwrap_or(0),
            paths
                .label_selector
                .as_deref()
                .and_then(|path| follow(object, path))
                .and_then(Value::as_str)
                .unwrap_or("")
                .to_owned(),
        ),
    };
    let metadata = object.at("metadata");
    let mut kept = Map::new();
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if metadata.has(field) {
            kept.insert(field.to_owned(), metadata.at(field).clone());
        }
    }
    let mut spec = Map::new();
    if replicas != 0 {
        spec.insert("replicas".into(), replicas.into());
    }
    let mut status = Map::new();
    status.insert("replicas".into(), current.into());
    if !selector.is_empty() {
        status.insert("selector".into(), selector.into());
    }
    json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": kept, "spec": spec,
        "status": status
    })
}

/// A Scale that wants no replicas does not say so, and nobody manages what is not said.
pub(crate) fn forget_none(scale: &mut Value) {
    if scale.at("spec").number("replicas") == Some(0) {
        child(object_of(scale), "spec").remove("replicas");
    }
}

/// How many replicas the object says it wants.
pub(crate) fn wanted(object: &Value, place: &Place<'_>) -> Option<i64> {
    match place {
        Place::Builtin => Some(object.at("spec").number("replicas").unwrap_or(0)),
        Place::Custom(paths) => follow(object, &paths.spec_replicas)?.as_i64(),
    }
}

/// Writes the wish of a Scale into the object; only the number of replicas changes.
pub(crate) fn apply(
    object: &mut Value,
    place: &Place<'_>,
    scale: &Value,
) -> Result<(), Vec<FieldError>> {
    let wanted = scale.at("spec").number("replicas").unwrap_or(0);
    // What a custom kind wants is checked with the rest of it.
    if wanted < 0 && matches!(place, Place::Builtin) {
        let why = "must be greater than or equal to 0";
        return Err(vec![FieldError::invalid("spec.replicas", wanted, why)]);
    }
    match place {
        Place::Builtin => {
            child(object_of(object), "spec").insert("replicas".into(), wanted.into());
        }
        Place::Custom(paths) => {
            let mut keys: Vec<&str> = keys(&paths.spec_replicas).collect();
            let Some(last) = keys.pop() else { return Ok(()) };
            let parent = keys.into_iter().fold(object_of(object), child);
            parent.insert(last.to_owned(), wanted.into());
        }
    }
    Ok(())
}

/// Both a selector and the plain map of a ReplicationController, as one line.
fn selector_text(selector: &Value) -> String {
    let plain = !selector.has("matchLabels") && !selector.has("matchExpressions");
    let labels = if plain { selector } else { selector.at("matchLabels") };
    if plain && selector.as_object().is_none_or(Map::is_empty) {
        return String::new();
    }
    let mut terms: Vec<(String, String)> = Vec::new();
    for (key, value) in labels.as_object().into_iter().flatten() {
        terms.push((key.clone(), format!("{key}={}", value.as_str().unwrap_or(""))));
    }
    for expression in selector.list("matchExpressions") {
        let key = expression.text("key");
        let mut values: Vec<&str> =
            expression.list("values").iter().filter_map(Value::as_str).collect();
        values.sort_unstable();
        let values = values.join(",");
        let term = match expression.text("operator") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        };
        terms.push((key.to_owned(), term));
    }
    terms.sort();
    let text = terms.into_iter().map(|(_, term)| term).collect::<Vec<_>>().join(",");
    match LabelSelector::parse(&text) {
        Ok(_) => text,
        Err(_) => String::new(),
    }
}

/// `.spec.replicas` as keys.
fn keys(path: &str) -> impl Iterator<Item = &str> {
    path.split('.').filter(|key| !key.is_empty())
}

fn follow<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    keys(path).try_fold(object, |value, key| value.get(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deployment_scales() {
        let mut object = json!({
            "metadata": { "name": "a", "namespace": "n", "uid": "u", "labels": { "x": "y" } },
            "spec": { "replicas": 2, "selector": {
                "matchLabels": { "b": "c", "a": "b" },
                "matchExpressions": [{ "key": "tier", "operator": "In", "values": ["z", "w"] }]
            } },
            "status": { "replicas": 1 }
        });
        assert_eq!(
            view(&object, &Place::Builtin),
            json!({
                "kind": "Scale", "apiVersion": "autoscaling/v1",
                "metadata": { "name": "a", "namespace": "n", "uid": "u" },
                "spec": { "replicas": 2 },
                "status": { "replicas": 1, "selector": "a=b,b=c,tier in (w,z)" }
            })
        );
        apply(&mut object, &Place::Builtin, &json!({ "spec": { "replicas": 5 } })).unwrap();
        assert_eq!(object["spec"]["replicas"], json!(5));
        let errors = apply(&mut object, &Place::Builtin, &json!({ "spec": { "replicas": -1 } }))
            .unwrap_err();
        assert_eq!(
            errors[0].to_string(),
            "spec.replicas: Invalid value: -1: must be greater than or equal to 0"
        );
    }

    #[test]
    fn a_replication_controller_selects_with_a_plain_map() {
        let object = json!({ "spec": { "selector": { "a": "b" } } });
        let scale = view(&object, &Place::Builtin);
        assert_eq!(scale["status"]["selector"], json!("a=b"));
        assert_eq!(scale["spec"], json!({}));
    }

    #[test]
    fn a_custom_resource_scales_where_it_says() {
        let paths = ScalePaths {
            spec_replicas: ".spec.size.want".into(),
            status_replicas: ".status.size".into(),
            label_selector: Some(".status.selector".into()),
        };
        let place = Place::Custom(&paths);
        let mut object = json!({ "spec": {}, "status": { "size": 3, "selector": "a=b" } });
        assert_eq!(wanted(&object, &place), None);
        assert_eq!(view(&object, &place)["spec"], json!({}));
        apply(&mut object, &place, &json!({ "spec": { "replicas": 4 } })).unwrap();
        let scale = view(&object, &place);
        assert_eq!(scale["spec"], json!({ "replicas": 4 }));
        assert_eq!(scale["status"], json!({ "replicas": 3, "selector": "a=b" }));
    }
}
