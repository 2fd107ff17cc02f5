//! JSON as a [`Follow`](super::Follow) keeps it: packed, and unpacked whenever somebody looks.
//!
//! An agent holds the text of every work and every ledger. Most of such a text is said again and again
//! (conditions, kinds, names), so it packs to a fraction.

use serde::de::{DeserializeOwned, Error as _};
use serde_json::Value;

/// One object's text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Text(Box<[u8]>);

impl Text {
    pub(super) fn of(object: &Value) -> Option<Self> {
        let json = serde_json::to_vec(object).ok()?;
        Some(Self(lz4_flex::block::compress_prepend_size(&json).into()))
    }

    pub(super) fn parse<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        // It was packed here, so this fails only if memory does.
        let json = lz4_flex::block::decompress_size_prepended(&self.0);
        serde_json::from_slice(&json.map_err(serde_json::Error::custom)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    proptest! {
        #[test]
        fn what_was_packed_is_what_is_parsed(keys in prop::collection::btree_map(".*", ".*", 0..40)) {
            let object = json!({ "metadata": keys });
            prop_assert_eq!(Text::of(&object).unwrap().parse::<Value>().unwrap(), object);
        }
    }

    #[test]
    fn what_repeats_itself_is_kept_once() {
        let condition = json!({ "type": "Applied", "status": "True", "reason": "AppliedManifestComplete",
            "message": "Apply manifest complete", "lastTransitionTime": "2026-01-02T03:04:05Z" });
        let object = json!({ "status": { "conditions": vec![condition; 10] } });
        let text = Text::of(&object).unwrap();
        assert!(text.0.len() * 4 < object.to_string().len(), "{} bytes", text.0.len());
    }
}
