//! The key with which values travel to a cluster encrypted, and when it is exchanged for another.
//!
//! The old key is kept as the previous one, with which a cluster can still read what was encrypted
//! before. Whoever encrypts watches the secret and writes anew what was encrypted with the old one.

use alloc::string::{String, ToString as _};
use alloc::{format, vec};

use cleat_api::policy::name::{DISABLE_ROTATION, ENCRYPTION_KEY_SECRET, LAST_ROTATED};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use crate::id::{Id, Target};
use crate::write::{Action, Plan, Side, Write};

/// How long a key is used.
const LIFE: SignedDuration = SignedDuration::from_hours(30 * 24);

/// The secret of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncryptionKey {
    pub cluster: String,
    uid: String,
    resource_version: String,
    /// The base64 of the key.
    key: String,
    /// When it is to be exchanged; never, if somebody said so.
    due: Option<Timestamp>,
}

impl EncryptionKey {
    /// `data`: the object without its metadata. None of what is not such a key, or is going.
    pub fn read(metadata: &ObjectMeta, data: &Value) -> Option<Self> {
        let ours = metadata.name.as_deref() == Some(ENCRYPTION_KEY_SECRET);
        if !ours || metadata.deletion_timestamp.is_some() {
            return None;
        }
        let annotation = |key: &str| metadata.annotations.as_ref().and_then(|all| all.get(key));
        let rotated = annotation(LAST_ROTATED).and_then(|text| text.parse().ok());
        let since = rotated.or_else(|| Some(metadata.creation_timestamp.as_ref()?.0))?;
        let stays = annotation(DISABLE_ROTATION).is_some_and(|value| value == "true");
        Some(Self {
            cluster: metadata.namespace.clone()?,
            uid: metadata.uid.clone()?,
            resource_version: metadata.resource_version.clone()?,
            key: data.pointer("/data/key")?.as_str().filter(|key| !key.is_empty())?.to_string(),
            due: since.checked_add(LIFE).ok().filter(|_| !stays),
        })
    }

    /// How long it is still good for; none if for ever.
    pub fn left(&self, now: Timestamp) -> Option<SignedDuration> {
        Some(self.due?.duration_since(now).max(SignedDuration::ZERO))
    }
}

/// Exchanges the key for `fresh`, a base64, if it is time.
pub fn rotate(key: &EncryptionKey, fresh: &str, now: Timestamp) -> Plan {
    if key.left(now).is_none_or(|left| left.is_positive()) {
        return vec![];
    }
    let at = Timestamp::from_second(now.as_second()).unwrap_or(now);
    let patch = json!({
        "metadata": {
            "uid": key.uid, "resourceVersion": key.resource_version,
            "annotations": { LAST_ROTATED: format!("{at}") },
        },
        "data": { "key": fresh, "previousKey": key.key },
    });
    let id = Id {
        group: String::new(),
        resource: "secrets".into(),
        namespace: key.cluster.clone(),
        name: ENCRYPTION_KEY_SECRET.into(),
    };
    let target = Target { version: "v1".into(), id };
    vec![vec![Action { side: Side::Hub, target, write: Write::Merge(patch) }]]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(annotations: Value) -> Option<EncryptionKey> {
        let metadata = json!({
            "name": "policy-encryption-key", "namespace": "c1", "uid": "u", "resourceVersion": "7",
            "creationTimestamp": "2026-01-01T00:00:00Z", "annotations": annotations,
        });
        let data = json!({ "data": { "key": "b2xk" } });
        EncryptionKey::read(&serde_json::from_value(metadata).unwrap(), &data)
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn a_key_is_exchanged_after_thirty_days_and_the_old_one_stays_readable() {
        let key = read(json!({})).unwrap();
        assert_eq!(rotate(&key, "bmV3", at("2026-01-30T23:59:59Z")), Plan::new());
        assert_eq!(key.left(at("2026-01-30T23:59:59Z")), Some(SignedDuration::from_secs(1)));
        let plan = rotate(&key, "bmV3", at("2026-01-31T00:00:00.5Z"));
        let Write::Merge(patch) = &plan[0][0].write else { panic!("{plan:?}") };
        assert_eq!(patch["data"], json!({ "key": "bmV3", "previousKey": "b2xk" }));
        assert_eq!(patch["metadata"]["resourceVersion"], "7");
        assert_eq!(patch["metadata"]["annotations"][LAST_ROTATED], "2026-01-31T00:00:00Z");
        // And is then good for as long again.
        let key = read(patch["metadata"]["annotations"].clone()).unwrap();
        assert_eq!(rotate(&key, "bmV3", at("2026-03-01T23:59:59Z")), Plan::new());
        assert_eq!(rotate(&key, "bmV3", at("2026-03-02T00:00:00Z")).len(), 1);
    }

    #[test]
    fn a_key_that_is_to_stay_stays() {
        let key = read(json!({ DISABLE_ROTATION: "true" })).unwrap();
        assert_eq!(rotate(&key, "bmV3", at("2030-01-01T00:00:00Z")), Plan::new());
        assert_eq!(key.left(at("2030-01-01T00:00:00Z")), None);
        let key = read(json!({ DISABLE_ROTATION: "false", LAST_ROTATED: "nonsense" })).unwrap();
        assert_eq!(rotate(&key, "bmV3", at("2030-01-01T00:00:00Z")).len(), 1);
    }
}
