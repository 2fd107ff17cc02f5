//! The content of works: telling whether two are the same, and making one the other.
//!
//! Nulls do not count. A merge patch cannot carry them and a server may drop them, so a template
//! with a null in it would otherwise differ from its works for ever.

use alloc::string::String;
use core::fmt::Write as _;

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

/// The same for the same content, whatever the order of keys.
pub(super) fn digest(value: &Value) -> String {
    let mut hash = Sha256::new();
    feed(value, &mut hash);
    let mut text = String::new();
    for byte in hash.finalize().iter().take(16) {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Every piece is led by what it is and how long, so that no two contents feed the same bytes.
fn feed(value: &Value, hash: &mut Sha256) {
    let mut piece = |mark: &str, bytes: &[u8]| {
        hash.update(mark);
        hash.update(bytes.len().to_be_bytes());
        hash.update(bytes);
    };
    match value {
        Value::Null => piece("0", &[]),
        Value::Bool(value) => piece("b", &[u8::from(*value)]),
        Value::Number(number) => piece("n", alloc::format!("{number}").as_bytes()),
        Value::String(text) => piece("s", text.as_bytes()),
        Value::Array(items) => {
            piece("[", &[]);
            items.iter().for_each(|item| feed(item, hash));
            hash.update("]");
        }
        Value::Object(members) => {
            piece("{", &[]);
            let mut members: alloc::vec::Vec<_> =
                members.iter().filter(|(_, value)| !value.is_null()).collect();
            members.sort_by_key(|(key, _)| *key);
            for (key, value) in members {
                hash.update(key.len().to_be_bytes());
                hash.update(key);
                feed(value, hash);
            }
            hash.update("}");
        }
    }
}

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

    #[test]
    fn the_same_content_has_the_same_digest_and_no_other() {
        let one = json!({ "a": 1, "b": [{ "c": null, "d": "x" }] });
        assert_eq!(digest(&one), digest(&json!({ "b": [{ "d": "x" }], "e": null, "a": 1 })));
        for other in [
            json!({ "a": 1, "b": [] }),
            json!({ "a": "1", "b": [{ "d": "x" }] }),
            json!({ "a": 1, "b": [{ "d": "x" }], "c": false }),
            json!({ "a": 1, "b": [[{ "d": "x" }]] }),
            json!({ "a": 1, "bd": [{ "": "x" }] }),
        ] {
            assert_ne!(digest(&one), digest(&other), "{other}");
        }
    }

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
