//! Works that are done and asked to be deleted a while after.
//!
//! Works of a ManifestWorkReplicaSet stay: their set would only make them anew. Nothing is deleted
//! for a time that makes no sense.

use alloc::string::String;
use alloc::vec;

use cleat_api::manifestworkreplicaset::SET_LABEL;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use crate::id::{Id, Target};
use crate::write::{Action, Plan, Propagation, Side, Write};

/// A work that is to be deleted some day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    pub namespace: String,
    pub name: String,
    pub uid: String,
    pub resource_version: String,
    pub due: Timestamp,
}

impl Finished {
    /// None of a work that is not done, has no time to live, is leaving already, or is of a set.
    pub fn read(metadata: &ObjectMeta, data: &Value) -> Option<Self> {
        let of_a_set = metadata.labels.as_ref().is_some_and(|all| all.contains_key(SET_LABEL));
        if metadata.deletion_timestamp.is_some() || of_a_set {
            return None;
        }
        let ttl =
            data.get("spec")?.get("deleteOption")?.get("ttlSecondsAfterFinished")?.as_i64()?;
        let conditions = data.get("status")?.get("conditions")?.as_array()?;
        let holds = |told: &&Value| {
            told.get("type").is_some_and(|kind| kind == "Complete")
                && told.get("status").is_some_and(|status| status == "True")
        };
        let since = conditions.iter().find(holds)?.get("lastTransitionTime")?.as_str()?;
        let since: Timestamp = since.parse().ok()?;
        let ttl = u32::try_from(ttl).ok()?;
        Some(Self {
            namespace: metadata.namespace.clone()?,
            name: metadata.name.clone()?,
            uid: metadata.uid.clone()?,
            resource_version: metadata.resource_version.clone()?,
            due: since.checked_add(SignedDuration::from_secs(i64::from(ttl))).ok()?,
        })
    }
}

/// Deletes the work if it is time, in the state in which that was seen: its owner may have changed
/// the mind since.
pub fn plan(work: &Finished, now: Timestamp) -> Plan {
    if now < work.due {
        return vec![];
    }
    let id = Id {
        group: "work.open-cluster-management.io".into(),
        resource: "manifestworks".into(),
        namespace: work.namespace.clone(),
        name: work.name.clone(),
    };
    let write = Write::Delete {
        uid: work.uid.clone(),
        resource_version: Some(work.resource_version.clone()),
        propagation: Propagation::Background,
    };
    vec![vec![Action { side: Side::Hub, target: Target { version: "v1".into(), id }, write }]]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn work(labels: Value, ttl: Value, complete: &str) -> (ObjectMeta, Value) {
        let metadata = json!({
            "namespace": "c1", "name": "job", "uid": "u", "resourceVersion": "7", "labels": labels,
        });
        let data = json!({
            "spec": { "deleteOption": { "ttlSecondsAfterFinished": ttl } },
            "status": { "conditions": [
                { "type": "Applied", "status": "True" },
                { "type": "Complete", "status": complete,
                  "lastTransitionTime": "2026-01-01T00:00:00Z" },
            ] },
        });
        (serde_json::from_value(metadata).unwrap(), data)
    }

    fn due(labels: Value, ttl: Value, complete: &str) -> Option<String> {
        let (metadata, data) = work(labels, ttl, complete);
        Finished::read(&metadata, &data).map(|work| alloc::format!("{}", work.due))
    }

    #[test]
    fn a_work_that_is_done_goes_when_its_time_is_over() {
        assert_eq!(due(json!({}), json!(90), "True").as_deref(), Some("2026-01-01T00:01:30Z"));
        assert_eq!(due(json!({}), json!(0), "True").as_deref(), Some("2026-01-01T00:00:00Z"));
        let (metadata, data) = work(json!({}), json!(90), "True");
        let work = Finished::read(&metadata, &data).unwrap();
        let before = work.due.checked_sub(SignedDuration::from_nanos(1)).unwrap();
        assert_eq!(plan(&work, before), Plan::new());
        let [step] = &*plan(&work, work.due) else { panic!("one step") };
        let expected = Write::Delete {
            uid: "u".into(),
            resource_version: Some("7".into()),
            propagation: Propagation::Background,
        };
        assert_eq!(step[0].write, expected);
    }

    #[test]
    fn other_works_stay() {
        assert_eq!(due(json!({}), json!(90), "False"), None);
        assert_eq!(due(json!({}), json!(null), "True"), None);
        assert_eq!(due(json!({}), json!(-1), "True"), None);
        assert_eq!(due(json!({}), json!(i64::MAX), "True"), None);
        assert_eq!(due(json!({ SET_LABEL: "a.b" }), json!(0), "True"), None);
        let (mut metadata, data) = work(json!({}), json!(0), "True");
        metadata.deletion_timestamp = metadata
            .creation_timestamp
            .take()
            .or_else(|| serde_json::from_value(json!("2026-01-01T00:00:00Z")).ok());
        assert_eq!(Finished::read(&metadata, &data), None);
        assert_eq!(Finished::read(&ObjectMeta::default(), &Value::Null), None);
    }
}
