//! Sets of clusters: the two every hub has, and what is said of each.

use alloc::borrow::ToOwned as _;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use cleat_api::managedcluster::CLUSTER_SET_LABEL;
use cleat_api::managedclusterset::{
    AUTO_UPDATE, DEFAULT, GLOBAL, ManagedClusterSet, SelectorType, condition as kind, reason,
};
use cleat_api::managedclustersetbinding::{self as binding, ManagedClusterSetBinding};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::{Value, json};

use crate::condition::{self, Said, Status};
use crate::id::{Id, Target};
use crate::registration::access::covers;
use crate::registration::hub::MANAGER;
use crate::selector::selects;
use crate::write::{Action, Side, Write};

const GROUP: &str = "cluster.open-cluster-management.io";

/// Whether a cluster with these labels is in the set.
pub fn contains(set: &ManagedClusterSet, labels: &BTreeMap<String, String>) -> bool {
    let selector = &set.spec.cluster_selector;
    match selector.selector_type {
        SelectorType::ExclusiveClusterSetLabel => {
            labels.get(CLUSTER_SET_LABEL) == set.metadata.name.as_ref()
        }
        SelectorType::LabelSelector => {
            selector.label_selector.as_ref().is_some_and(|selector| selects(selector, labels))
        }
        SelectorType::Unknown => false,
    }
}

/// Makes the sets every hub has, or puts them right. `live` says what is there of each, in this
/// order: the default one, the global one.
pub fn foundation(live: [Option<&Value>; 2]) -> Vec<Action> {
    let wanted = [
        (DEFAULT, json!({ "selectorType": "ExclusiveClusterSetLabel" })),
        (GLOBAL, json!({ "selectorType": "LabelSelector", "labelSelector": {} })),
    ];
    let mut plan = Vec::new();
    for ((name, selector), live) in wanted.into_iter().zip(live) {
        let object = json!({
            "apiVersion": format!("{GROUP}/v1beta2"), "kind": "ManagedClusterSet",
            "metadata": { "name": name }, "spec": { "clusterSelector": selector },
        });
        let left_alone = |live: &Value| {
            let annotations = live.pointer("/metadata/annotations");
            let value = annotations.and_then(|all| all.get(AUTO_UPDATE)).and_then(Value::as_str);
            value == Some("false") || live.pointer("/metadata/deletionTimestamp").is_some()
        };
        if live.is_some_and(|live| left_alone(live) || covers(live, &object)) {
            continue;
        }
        let write = Write::Apply { object, manager: MANAGER.to_owned(), force: true };
        let target = target("managedclustersets", "", name);
        plan.push(Action { side: Side::Hub, target, write });
    }
    plan
}

/// What is said of a set with this many clusters, if it is news.
pub fn report(set: &ManagedClusterSet, members: usize, now: Timestamp) -> Option<Action> {
    let (status, reason, message) = if members == 0 {
        (Status::True, reason::NO_CLUSTER_MATCHED, "No ManagedCluster selected".to_owned())
    } else {
        let text = format!("{members} ManagedClusters selected");
        (Status::False, reason::CLUSTERS_SELECTED, text)
    };
    let said = Said { kind: kind::EMPTY, status, reason, message };
    let metadata = &set.metadata;
    let before = set.status.as_ref().map(|status| status.conditions.as_slice());
    let patch = news(before, said, metadata.generation, now)?;
    let name = metadata.name.as_deref().unwrap_or_default();
    Some(tell(target("managedclustersets", "", name), metadata.uid.as_deref(), patch))
}

/// What is said of a binding, if it is news.
pub fn report_binding(
    binding: &ManagedClusterSetBinding,
    set_exists: bool,
    now: Timestamp,
) -> Option<Action> {
    let (status, reason, message) = if set_exists {
        (Status::True, binding::reason::CLUSTER_SET_BOUND, String::new())
    } else {
        let text = format!("There is no ManagedClusterSet {}.", binding.spec.cluster_set);
        (Status::False, binding::reason::CLUSTER_SET_NOT_FOUND, text)
    };
    let said = Said { kind: binding::condition::BOUND, status, reason, message };
    let metadata = &binding.metadata;
    let before = binding.status.as_ref().map(|status| status.conditions.as_slice());
    let patch = news(before, said, metadata.generation, now)?;
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    let name = metadata.name.as_deref().unwrap_or_default();
    let target = target("managedclustersetbindings", namespace, name);
    Some(tell(target, metadata.uid.as_deref(), patch))
}

fn news(
    before: Option<&[Condition]>,
    said: Said,
    generation: Option<i64>,
    now: Timestamp,
) -> Option<Vec<Condition>> {
    let before = before.unwrap_or_default();
    let mut conditions = before.to_vec();
    condition::say(&mut conditions, said, generation, now);
    (conditions != before).then_some(conditions)
}

fn tell(target: Target, uid: Option<&str>, conditions: Vec<Condition>) -> Action {
    let patch = json!({ "metadata": { "uid": uid }, "status": { "conditions": conditions } });
    Action { side: Side::Hub, target, write: Write::MergeStatus(patch) }
}

fn target(resource: &str, namespace: &str, name: &str) -> Target {
    let id = Id {
        group: GROUP.to_string(),
        resource: resource.to_string(),
        namespace: namespace.to_string(),
        name: name.to_string(),
    };
    Target { version: "v1beta2".to_string(), id }
}

#[cfg(test)]
mod tests;
