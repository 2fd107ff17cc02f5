//! Works that wait for a cluster nobody hears of.
//!
//! An agent says how the deletion of a work goes, and an agent that is cut off says nothing. The hub
//! says it then, in the same condition; the agent's own words replace these when it is back.

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec;
use alloc::vec::Vec;

use cleat_api::managedcluster::condition::AVAILABLE;
use cleat_api::manifestwork::{condition as kinds, reason};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use serde_json::{Value, json};

use crate::condition::{self, Said, Status};
use crate::id::{Id, Target};
use crate::work::WORK_FINALIZER;
use crate::write::{Action, Plan, Side, Write};

/// A work that is leaving and held for its agent.
#[derive(Clone, Debug, PartialEq)]
pub struct Leaving {
    pub namespace: String,
    pub name: String,
    uid: String,
    resource_version: String,
    generation: Option<i64>,
    conditions: Vec<Condition>,
}

impl Leaving {
    /// None of a work that stays, or that no agent holds.
    pub fn read(metadata: &ObjectMeta, data: &Value) -> Option<Self> {
        metadata.deletion_timestamp.as_ref()?;
        metadata.finalizers.as_ref()?.iter().find(|finalizer| *finalizer == WORK_FINALIZER)?;
        let conditions = data.get("status").and_then(|status| status.get("conditions"));
        let conditions = conditions.map(|all| serde_json::from_value(all.clone()));
        Some(Self {
            namespace: metadata.namespace.clone()?,
            name: metadata.name.clone()?,
            uid: metadata.uid.clone()?,
            resource_version: metadata.resource_version.clone()?,
            generation: metadata.generation,
            // Conditions that cannot be read must not be written over.
            conditions: conditions.transpose().ok()?.unwrap_or_default(),
        })
    }
}

/// A cluster that was heard of once and is not any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Silent {
    pub since: Timestamp,
}

impl Silent {
    /// None of a cluster that is heard of, or never was: nothing was carried to such a one.
    pub fn read(data: &Value) -> Option<Self> {
        let conditions = data.get("status")?.get("conditions")?.as_array()?;
        let unheard = |told: &&Value| {
            told.get("type").is_some_and(|kind| kind == AVAILABLE)
                && told.get("status").is_some_and(|status| status == "Unknown")
        };
        let since = conditions.iter().find(unheard)?.get("lastTransitionTime")?.as_str()?;
        Some(Self { since: since.parse().ok()? })
    }
}

/// Says of a work for what it waits, if that is not said yet.
pub fn plan(work: &Leaving, silent: &Silent, now: Timestamp) -> Plan {
    let cluster = &work.namespace;
    let message = format!(
        "ManifestWork is being deleted; cluster {cluster} is unreachable since {}: what it holds of \
         this work stays until it is back. If it never will be: `cleat unjoin {cluster} \
         --cluster-destroyed`",
        silent.since
    );
    let mut conditions = work.conditions.clone();
    let (kind, status, reason) = (kinds::DELETING, Status::True, reason::WORK_DELETING);
    condition::say(&mut conditions, Said { kind, status, reason, message }, work.generation, now);
    if conditions == work.conditions {
        return vec![];
    }
    conditions.sort_by(|a, b| a.type_.cmp(&b.type_));
    let id = Id {
        group: "work.open-cluster-management.io".into(),
        resource: "manifestworks".into(),
        namespace: work.namespace.to_string(),
        name: work.name.to_string(),
    };
    let write = Write::MergeStatus(json!({
        "metadata": { "uid": work.uid, "resourceVersion": work.resource_version },
        "status": { "conditions": conditions },
    }));
    vec![vec![Action { side: Side::Hub, target: Target { version: "v1".into(), id }, write }]]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(more: Value, conditions: Value) -> Option<Leaving> {
        let mut metadata = json!({
            "namespace": "c1", "name": "shop", "uid": "u", "resourceVersion": "7", "generation": 2,
            "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": [WORK_FINALIZER],
        });
        for (key, value) in more.as_object().into_iter().flatten() {
            metadata[key] = value.clone();
        }
        let metadata = serde_json::from_value(metadata).unwrap();
        Leaving::read(&metadata, &json!({ "status": { "conditions": conditions } }))
    }

    fn silent(status: &str) -> Option<Silent> {
        Silent::read(&json!({ "status": { "conditions": [
            { "type": "HubAcceptedManagedCluster", "status": "True" },
            { "type": AVAILABLE, "status": status, "lastTransitionTime": "2026-01-01T08:00:00Z" },
        ] } }))
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_leaving_work_says_that_its_cluster_is_unreachable_and_since_when() {
        let applied = json!({ "type": "Applied", "status": "True", "reason": "R", "message": "m",
                              "lastTransitionTime": "2026-01-01T00:00:00Z" });
        let first = work(json!({}), json!([applied])).unwrap();
        let silent = silent("Unknown").unwrap();
        let [step] = &*plan(&first, &silent, at(1_800_000_000)) else { panic!("one step") };
        let Write::MergeStatus(patch) = &step[0].write else { panic!("a status") };
        let told = &patch["status"]["conditions"];
        assert_eq!(told[0]["type"], "Applied");
        assert_eq!(
            told[1]["message"],
            "ManifestWork is being deleted; cluster c1 is unreachable since 2026-01-01T08:00:00Z: \
             what it holds of this work stays until it is back. If it never will be: `cleat unjoin \
             c1 --cluster-destroyed`"
        );
        let again = work(json!({}), told.clone()).unwrap();
        assert_eq!(plan(&again, &silent, at(1_800_000_999)), Plan::new(), "said once");
    }

    #[test]
    fn of_other_works_and_clusters_nothing_is_said() {
        assert_eq!(work(json!({ "deletionTimestamp": null }), json!([])), None);
        assert_eq!(work(json!({ "finalizers": ["another/one"] }), json!([])), None);
        assert_eq!(work(json!({}), json!("not conditions")), None);
        assert_eq!(silent("True"), None);
        assert_eq!(silent("False"), None);
        assert_eq!(Silent::read(&Value::Null), None);
    }
}
