//! Copies and statuses by table; lives of policies by chance.

mod contents;
mod doubts;
mod histories;
mod holding;
mod returning;
mod statuses;
mod telling;

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use super::*;
use crate::placement::Cluster;
use crate::rollout::Group;

pub(super) fn now() -> Timestamp {
    Timestamp::from_second(1_000_000).unwrap()
}

pub(super) fn at(second: i64) -> String {
    Timestamp::from_second(second).unwrap().to_string()
}

pub(super) fn metadata(object: &Value) -> ObjectMeta {
    serde_json::from_value(object["metadata"].clone()).unwrap()
}

pub(super) fn spec() -> Value {
    json!({
        "disabled": false, "remediationAction": "inform",
        "policy-templates": [{ "objectDefinition": {
            "apiVersion": "policy.open-cluster-management.io/v1", "kind": "ConfigurationPolicy",
            "metadata": { "name": "t" }, "spec": { "severity": "low" },
        } }],
    })
}

pub(super) fn root_with(spec: Value, status: Value) -> Arc<Root> {
    let object = json!({
        "metadata": {
            "namespace": "team", "name": "p", "uid": "root", "resourceVersion": "5",
            "generation": 1, "labels": { "own": "x", "policy.open-cluster-management.io/y": "z" },
            "annotations": { "policy.open-cluster-management.io/trigger-update": "now" },
        },
        "spec": spec, "status": status,
    });
    Arc::new(Root::read(&metadata(&object), &object))
}

pub(super) fn binding(name: &str, placement: &str, more: Value) -> Arc<Binding> {
    let mut object = json!({
        "metadata": { "namespace": "team", "name": name },
        "placementRef": {
            "apiGroup": "cluster.open-cluster-management.io", "kind": "Placement", "name": placement,
        },
        "subjects": [{ "kind": "Policy", "name": "p" }],
    });
    for (key, value) in more.as_object().unwrap() {
        object[key] = value.clone();
    }
    Arc::new(Binding::read(&metadata(&object), &object))
}

pub(super) fn set(name: &str, spec: Value) -> ((String, String), Arc<PolicySet>) {
    let object = json!({
        "metadata": { "namespace": "team", "name": name, "uid": "set" }, "spec": spec,
    });
    (("team".into(), name.into()), Arc::new(PolicySet::read(&metadata(&object), &object)))
}

pub(super) fn settled(clusters: &[&str]) -> Decided {
    let clusters = clusters.iter().map(|name| name.to_string()).collect();
    Decided::Settled(vec![Group { clusters, ..Default::default() }])
}

/// A cluster whose availability is this since that second.
pub(super) fn cluster(name: &str, available: Option<(&str, i64)>) -> (String, Arc<Cluster>) {
    let mut object = json!({ "metadata": { "name": name }, "spec": {}, "status": {} });
    if let Some((status, since)) = available {
        object["status"]["conditions"] = json!([{
            "type": "ManagedClusterConditionAvailable", "status": status, "reason": "x",
            "message": "", "lastTransitionTime": at(since),
        }]);
    }
    (name.into(), Arc::new(Cluster::read(&metadata(&object), &object)))
}

/// Three clusters; the policy is bound to `all`, which chose a and b.
pub(super) fn seen() -> Observed {
    Observed {
        now: now(),
        key: ("team".into(), "p".into()),
        root: Some(root_with(spec(), Value::Null)),
        bindings: vec![binding("bind", "all", json!({}))],
        sets: BTreeMap::new(),
        decided: [(Source::Placement("all".into()), settled(&["a", "b"]))].into(),
        clusters: ["a", "b", "c"].map(|name| cluster(name, Some(("True", 1)))).into(),
        sightings: Sightings::default(),
        replicas: BTreeMap::new(),
        resolved: BTreeMap::new(),
        asked: Asked::NotYet,
        unsure_since: None,
        setbacks: BTreeMap::new(),
        told: BTreeMap::new(),
    }
}

pub(super) fn decide(seen: &mut Observed, placement: &str, decided: Decided) {
    seen.decided.insert(Source::Placement(placement.into()), decided);
}

/// Does what the plan says, as a server would.
pub(super) fn perform(seen: &mut Observed, plan: &Plan) {
    for action in plan.iter().flatten() {
        let cluster = action.target.id.namespace.clone();
        match &action.write {
            Write::Create(object) | Write::Replace(object) => {
                let mut object = object.clone();
                object["metadata"]["uid"] = format!("uid-{cluster}").into();
                object["metadata"]["resourceVersion"] = "1".into();
                let replica = Replica::read(&metadata(&object), &object);
                seen.replicas.insert(cluster, Arc::new(replica));
            }
            Write::Delete { .. } => drop(seen.replicas.remove(&cluster)),
            other => panic!("{other:?}"),
        }
    }
}

/// Until there is nothing more to do.
pub(super) fn settle(seen: &mut Observed) {
    for _ in 0..10 {
        let plan = plan(seen);
        if plan.is_empty() {
            return;
        }
        perform(seen, &plan);
    }
    panic!("does not settle");
}

pub(super) fn has(seen: &Observed) -> String {
    seen.replicas.keys().cloned().collect::<Vec<_>>().join(" ")
}

/// What a cluster reports.
pub(super) fn says(seen: &mut Observed, cluster: &str, compliant: &str) {
    let mut replica = Replica::clone(&seen.replicas[cluster]);
    replica.compliant = Some(compliant.into());
    seen.replicas.insert(cluster.into(), Arc::new(replica));
}

/// The status that would be written.
pub(super) fn told(seen: &Observed) -> Value {
    match report(seen, &vec![], &[]).status.map(|action| action.write) {
        Some(Write::MergeStatus(patch)) => patch["status"].clone(),
        None => seen.root.as_ref().unwrap().status.clone(),
        other => panic!("{other:?}"),
    }
}
