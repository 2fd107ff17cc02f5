//! Telling whether two contents are the same without keeping either.
//!
//! Nulls do not count: a server may drop them.

use alloc::string::String;
use core::fmt::Write as _;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// The same for the same content, whatever the order of keys.
pub fn digest(value: &Value) -> String {
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

#[cfg(test)]
mod tests {
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
}
