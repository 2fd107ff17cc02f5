//! The text of a patched object in a refusal of it.
//!
//! kube-apiserver writes an object as Go writes its struct, the fields in the order of their
//! declaration, and has a library patch that text. The library takes apart only the levels which
//! the patch reaches, and writes those with sorted keys. What a patch brings along is shown sorted
//! here, too; upstream keeps the order in which a JSON patch gave it.

use std::collections::BTreeMap;

use cleat_dialect::gotypes::{Shape, types};
use serde_json::Value;

use super::Patch;
use crate::gojson;

/// How far a patch went into one value.
pub(super) enum Reach {
    /// The patch brought or compared all of it.
    Whole,
    /// It was taken apart; what is named was reached as well.
    Apart(BTreeMap<String, Reach>),
}

impl Reach {
    pub(super) fn apart() -> Self {
        Self::Apart(BTreeMap::new())
    }

    /// Takes apart what lies on a way, and notes how its end was reached.
    pub(super) fn note(&mut self, way: &[String], end: Option<Self>) {
        let Self::Apart(below) = self else { return };
        match (way, end) {
            ([], _) => {}
            ([last], Some(end)) => {
                below.insert(last.clone(), end);
            }
            ([_], None) => {}
            ([next, rest @ ..], end) => {
                below.entry(next.clone()).or_insert_with(Self::apart).note(rest, end);
            }
        }
    }
}

/// The JSON of what a patch made of an object. `shape` is the object's Go type, if it has one.
pub(crate) fn shown(
    current: &Value,
    patch: &Patch,
    patched: &Value,
    shape: Option<&Shape>,
) -> String {
    let reach = match patch {
        Patch::Json(operations) => operations.reach(patched),
        Patch::Merge(document) => merged(current, document),
        Patch::Strategic(_) | Patch::Apply(_) => Reach::Whole,
    };
    let mut out = String::new();
    write(&mut out, patched, shape, Some(&reach));
    gojson::escape_html(&out)
}

/// A merge patch goes on below an object only where it is one itself.
fn merged(current: &Value, patch: &Value) -> Reach {
    match (current, patch) {
        (Value::Object(current), Value::Object(patch)) => Reach::Apart(
            patch
                .iter()
                .map(|(key, change)| {
                    let current = current.get(key).unwrap_or(&Value::Null);
                    (key.clone(), merged(current, change))
                })
                .collect(),
        ),
        _ => Reach::Whole,
    }
}

fn write(out: &mut String, value: &Value, shape: Option<&Shape>, reach: Option<&Reach>) {
    let below = |key: &str| match reach {
        None => None,
        Some(Reach::Whole) => Some(&Reach::Whole),
        Some(Reach::Apart(below)) => below.get(key),
    };
    match value {
        Value::Object(map) => {
            let mut entries: Vec<(&String, &Value)> = map.iter().collect();
            if reach.is_none() {
                entries.sort_by_key(|(key, _)| declared(shape, key));
            }
            out.push('{');
            for (index, (key, value)) in entries.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                write(out, value, field(shape, key), below(key));
            }
            out.push('}');
        }
        Value::Array(items) => {
            let shape = match pointed_at(shape) {
                Some(Shape::List(items)) => Some(&**items),
                _ => None,
            };
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write(out, item, shape, below(&index.to_string()));
            }
            out.push(']');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}

fn pointed_at(shape: Option<&Shape>) -> Option<&Shape> {
    match shape {
        Some(Shape::Pointer(inner)) => pointed_at(Some(inner)),
        shape => shape,
    }
}

/// Where a struct declares a field. All keys of a map are alike, and stay sorted.
fn declared(shape: Option<&Shape>, key: &str) -> usize {
    match pointed_at(shape) {
        Some(Shape::Struct(id)) => {
            let fields = &types().get(*id).fields;
            fields.iter().position(|field| field.name == key).unwrap_or(fields.len())
        }
        _ => 0,
    }
}

fn field<'s>(shape: Option<&'s Shape>, key: &str) -> Option<&'s Shape> {
    match pointed_at(shape)? {
        Shape::Struct(id) => {
            let fields = &types().get(*id).fields;
            fields.iter().find(|field| field.name == key).map(|field| &field.shape)
        }
        Shape::Map(values) => Some(values),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::patch::Operations;

    fn config_map() -> Value {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": { "k": "v", "b": "<" },
            "metadata": {
                "creationTimestamp": "t", "name": "a", "labels": { "z": "1", "a": "2" },
                "managedFields": [{ "apiVersion": "v1", "manager": "m" }],
            },
        })
    }

    fn text(patch: &Patch, patched: &Value) -> String {
        shown(&config_map(), patch, patched, types().shape("v1", "ConfigMap"))
    }

    #[test]
    fn untouched_levels_are_in_the_order_of_declaration() {
        let patch = Patch::Merge(json!({ "data": { "k": 5 } }));
        let mut patched = config_map();
        patched["data"]["k"] = json!(5);
        assert_eq!(
            text(&patch, &patched),
            r#"{"apiVersion":"v1","data":{"b":"\u003c","k":5},"kind":"ConfigMap","metadata":{"name":"a","creationTimestamp":"t","labels":{"a":"2","z":"1"},"managedFields":[{"manager":"m","apiVersion":"v1"}]}}"#
        );
    }

    #[test]
    fn levels_on_the_way_of_a_patch_are_sorted() {
        let body = br#"[{"op": "remove", "path": "/metadata/managedFields/0/manager"}]"#;
        let patch = Patch::Json(Operations::parse(body).unwrap());
        assert_eq!(
            text(&patch, &config_map()),
            r#"{"apiVersion":"v1","data":{"b":"\u003c","k":"v"},"kind":"ConfigMap","metadata":{"creationTimestamp":"t","labels":{"a":"2","z":"1"},"managedFields":[{"apiVersion":"v1","manager":"m"}],"name":"a"}}"#
        );
    }

    #[test]
    fn what_has_no_go_type_is_sorted() {
        let patch = Patch::Merge(json!({}));
        let widget = json!({ "spec": { "b": 1, "a": [{ "d": 1, "c": 2 }] }, "kind": "Widget" });
        assert_eq!(shown(&widget, &patch, &widget, None), widget.to_string());
    }
}
