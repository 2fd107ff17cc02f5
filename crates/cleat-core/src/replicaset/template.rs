//! The content of works: telling whether two are the same, and making one the other.
//!
//! Nulls do not count. A merge patch cannot carry them and a server may drop them, so a template
//! with a null in it would otherwise differ from its works for ever.

use alloc::string::String;

use serde_json::{Map, Value};

pub(super) use crate::digest::digest;

/// The keys of an object and of the objects in it, without their content.
pub(super) fn outline(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let inner = members.iter().filter(|(_, value)| !value.is_null());
            Value::Object(inner.map(|(key, value)| (key.clone(), outline(value))).collect())
        }
        _ => Value::Bool(true),
    }
}

/// A merge patch that makes what has this outline exactly `content`.
pub(super) fn rewrite(outline: &Value, content: &Value) -> Value {
    let (Value::Object(old), Value::Object(new)) = (outline, content) else {
        return content.clone();
    };
    let mut patch: Map<String, Value> = old.keys().map(|key| (key.clone(), Value::Null)).collect();
    for (key, value) in new.iter().filter(|(_, value)| !value.is_null()) {
        let value = old.get(key).map_or_else(|| value.clone(), |old| rewrite(old, value));
        patch.insert(key.clone(), value);
    }
    Value::Object(patch)
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;

    /// RFC 7386.
    pub(in super::super) fn merge(target: &mut Value, patch: &Value) {
        let Value::Object(patch) = patch else {
            *target = patch.clone();
            return;
        };
        if !target.is_object() {
            *target = json!({});
        }
        let target = target.as_object_mut().unwrap();
        for (key, value) in patch {
            if value.is_null() {
                target.remove(key);
            } else {
                merge(target.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
    }

    #[test]
    fn a_rewrite_leaves_nothing_of_what_was_there() {
        let contents = [
            json!({ "workload": { "manifests": [1] } }),
            json!({ "workload": { "manifests": [1, 2] }, "deleteOption": { "policy": "Orphan" } }),
            json!({ "deleteOption": { "rules": { "list": [] }, "ttl": 5 }, "executor": {} }),
            json!({ "deleteOption": true, "executor": { "subject": { "type": "x" } } }),
        ];
        for from in &contents {
            for to in &contents {
                let mut target = from.clone();
                merge(&mut target, &rewrite(&outline(from), to));
                assert_eq!(&target, to, "from {from}");
            }
        }
    }
}
