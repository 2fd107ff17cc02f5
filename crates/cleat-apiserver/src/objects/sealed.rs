//! An object in its stored form, but for its revision, which is known only when it is put in line:
//! so that others need not wait while it is written out.

use bytes::Bytes;
use cleat_store::Revision;
use serde_json::{Map, Value};

/// How every stored object begins. Its revision follows.
const OPENING: &[u8] = br#"{"metadata":{"resourceVersion":""#;

/// What stands behind the revision.
pub(super) struct Sealed(Vec<u8>);

impl Sealed {
    /// All of an object but what its place says, which is `apiVersion` and `kind`.
    pub(super) fn of(object: &Map<String, Value>) -> Self {
        let mut rest = vec![b'"'];
        let metadata = object.get("metadata").and_then(Value::as_object);
        for (key, value) in metadata.into_iter().flatten() {
            if key != "resourceVersion" {
                entry(key, value, &mut rest);
            }
        }
        rest.push(b'}');
        for (key, value) in object {
            if !matches!(key.as_str(), "apiVersion" | "kind" | "metadata") {
                entry(key, value, &mut rest);
            }
        }
        rest.push(b'}');
        Self(rest)
    }

    /// The store keeps what it is given, spare room and all, so there is none.
    pub(super) fn at(&self, revision: Revision) -> Bytes {
        let revision = revision.to_string();
        let parts = [OPENING, revision.as_bytes(), &self.0];
        Bytes::from(parts.concat().into_boxed_slice())
    }
}

/// Writing JSON into memory cannot fail.
fn entry(key: &str, value: &Value, out: &mut Vec<u8>) {
    out.push(b',');
    let _ = serde_json::to_writer(&mut *out, key);
    out.push(b':');
    let _ = serde_json::to_writer(out, value);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn sealed(object: &Value, revision: Revision) -> Value {
        let bytes = Sealed::of(object.as_object().unwrap()).at(revision);
        serde_json::from_slice(&bytes).unwrap()
    }

    #[test]
    fn everything_is_kept_but_what_the_place_says() {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "a", "resourceVersion": "5", "uid": "u"},
            "data": {"kind": "x", "apiVersion": "\"\u{1}"},
        });
        let stored = json!({
            "metadata": {"name": "a", "resourceVersion": "17", "uid": "u"},
            "data": {"kind": "x", "apiVersion": "\"\u{1}"},
        });
        assert_eq!(sealed(&object, 17), stored);
        let bare = json!({"metadata": {"resourceVersion": "1"}});
        assert_eq!(sealed(&json!({}), 1), bare);
        assert_eq!(sealed(&json!({"metadata": null}), 1), bare);
    }

    proptest! {
        #[test]
        fn any_text_survives(
            fields in proptest::collection::btree_map(".*", ".*", 0..5),
            revision: u64,
        ) {
            let object = json!({"metadata": &fields, "spec": &fields});
            let mut want = object.clone();
            want["metadata"]["resourceVersion"] = revision.to_string().into();
            prop_assert_eq!(sealed(&object, revision), want);
        }
    }
}
