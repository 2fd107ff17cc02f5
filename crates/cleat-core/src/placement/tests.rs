//! Choices by table; ways from one choice to another by chance.

mod choices;
mod doubts;
mod histories;
mod outlooks;
mod ways;

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use alloc::{format, vec};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use super::*;

/// Second 1000 of the epoch.
pub(super) fn now() -> Timestamp {
    Timestamp::from_second(1000).unwrap()
}

pub(super) fn at(second: i64) -> String {
    Timestamp::from_second(second).unwrap().to_string()
}

fn split(object: &Value) -> (ObjectMeta, Value) {
    (serde_json::from_value(object["metadata"].clone()).unwrap(), object.clone())
}

pub(super) fn cluster(object: Value) -> Arc<Cluster> {
    let (metadata, data) = split(&object);
    Arc::new(Cluster::read(&metadata, &data))
}

/// A cluster of the set `all` and with these labels.
pub(super) fn plain(name: &str, labels: Value) -> Arc<Cluster> {
    let mut object = json!({ "metadata": { "name": name, "labels": { "in": "all" } } });
    for (key, value) in labels.as_object().unwrap() {
        object["metadata"]["labels"][key] = value.clone();
    }
    cluster(object)
}

pub(super) fn set(name: &str, selector: Value) -> Arc<ManagedClusterSet> {
    let object = json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta2", "kind": "ManagedClusterSet",
        "metadata": { "name": name },
        "spec": { "clusterSelector": { "selectorType": "LabelSelector", "labelSelector": selector } },
    });
    Arc::new(serde_json::from_value(object).unwrap())
}

pub(super) fn wish(spec: Value) -> Wish {
    let object = json!({
        "metadata": { "name": "p", "namespace": "n", "uid": "u", "resourceVersion": "1", "generation": 2 },
        "spec": spec,
    });
    let (metadata, data) = split(&object);
    Wish::read(&metadata, &data)
}

pub(super) fn decision(name: &str, group: usize, clusters: Option<&[&str]>) -> Arc<Decision> {
    let mut object = json!({ "metadata": {
        "name": name, "namespace": "n", "uid": format!("{name}-uid"), "resourceVersion": "1",
        "creationTimestamp": at(900),
        "labels": {
            "cluster.open-cluster-management.io/placement": "p",
            "cluster.open-cluster-management.io/decision-group-index": group.to_string(),
            "cluster.open-cluster-management.io/decision-group-name": "",
        },
        "ownerReferences": [{ "apiVersion": "v1", "kind": "Placement", "name": "p", "uid": "u" }],
    } });
    if let Some(clusters) = clusters {
        let list = clusters.iter().map(|name| json!({ "clusterName": name, "reason": "" }));
        object["status"] = json!({ "decisions": list.collect::<Vec<_>>() });
    }
    let (metadata, data) = split(&object);
    Arc::new(Decision::read(&metadata, &data))
}

/// All clusters are in a set that is bound.
pub(super) fn seen(spec: Value, clusters: Vec<Arc<Cluster>>) -> Observed {
    Observed {
        now: now(),
        wish: wish(spec),
        bound: vec![set("all", json!({ "matchLabels": { "in": "all" } }))],
        clusters,
        lost: vec![],
        scores: BTreeMap::new(),
        elsewhere: BTreeMap::new(),
        decisions: vec![],
        defined: since(0, 0, 0),
    }
}

/// That bindings, sets and clusters are defined since these seconds.
pub(super) fn since(bindings: i64, sets: i64, clusters: i64) -> Defined {
    let [bindings, sets, clusters] =
        [bindings, sets, clusters].map(|second| Timestamp::from_second(second).unwrap());
    Defined::Since { bindings, sets, clusters }
}

/// Stands in for CEL: `yes`, `no`, `?` and nonsense.
pub(super) fn words(expression: &str, _: &Cluster) -> Result<bool, Unfit> {
    match expression {
        "yes" => Ok(true),
        "no" => Ok(false),
        "?" => Err(Unfit::Unanswered),
        _ => Err(Unfit::Invalid("nonsense".into())),
    }
}

pub(super) fn chosen(seen: &Observed) -> Vec<String> {
    choose(seen, &words).unwrap().clusters().map(str::to_owned).collect()
}
