//! Decisions: how a selection is written down, and the writes that get there without a gap.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use alloc::{format, vec};

use cleat_api::placement::{
    GROUP, GROUP_INDEX_LABEL, GROUP_NAME_LABEL, MOST_DECISIONS, PLACEMENT_LABEL,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use super::doubt::doubt;
use super::wish::Wish;
use super::{Observed, Selection};
use crate::id::{Id, Target};
use crate::write::{Action, Plan, Propagation, Side, Write};

/// A decision as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    pub namespace: String,
    pub name: String,
    pub uid: String,
    pub resource_version: String,
    pub deleting: bool,
    pub created: Option<Timestamp>,
    pub labels: BTreeMap<String, String>,
    /// The uids of its owners.
    pub owners: Vec<String>,
    /// What it lists; nothing if it was made and not filled in yet.
    pub listed: Option<Vec<String>>,
}

impl Decision {
    /// `data`: the object without its metadata.
    pub fn read(metadata: &ObjectMeta, data: &Value) -> Self {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let listed = data.pointer("/status/decisions").and_then(Value::as_array);
        let names = |list: &Vec<Value>| {
            let names = list.iter().filter_map(|one| one.get("clusterName")?.as_str());
            names.map(ToString::to_string).collect()
        };
        let owners = metadata.owner_references.iter().flatten();
        Self {
            namespace: text(&metadata.namespace),
            name: text(&metadata.name),
            uid: text(&metadata.uid),
            resource_version: text(&metadata.resource_version),
            deleting: metadata.deletion_timestamp.is_some(),
            created: metadata.creation_timestamp.as_ref().map(|time| time.0),
            labels: metadata.labels.clone().unwrap_or_default(),
            owners: owners.map(|owner| owner.uid.clone()).collect(),
            listed: listed.map(names),
        }
    }

    pub fn clusters(&self) -> impl Iterator<Item = &str> {
        self.listed.iter().flatten().map(String::as_str)
    }

    fn target(&self) -> Target {
        target(&self.namespace, &self.name)
    }

    fn status(&self, clusters: &[String]) -> Action {
        let list: Vec<Value> =
            clusters.iter().map(|name| json!({ "clusterName": name, "reason": "" })).collect();
        let patch = json!({
            "metadata": { "uid": self.uid, "resourceVersion": self.resource_version },
            "status": { "decisions": list },
        });
        Action { side: Side::Hub, target: self.target(), write: Write::MergeStatus(patch) }
    }
}

/// A decision as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Slice {
    pub(super) name: String,
    /// Index and name of the group.
    pub(super) group: (usize, String),
    pub(super) clusters: Vec<String>,
}

/// Decisions are numbered from 1, have at most 100 clusters and never those of two groups.
pub(super) fn slices(wish: &Wish, selection: &Selection) -> Vec<Slice> {
    let mut slices: Vec<Slice> = vec![];
    for (index, group) in selection.groups.iter().enumerate() {
        let mut parts: Vec<&[String]> = group.clusters.chunks(MOST_DECISIONS).collect();
        if parts.is_empty() {
            parts.push(&[]);
        }
        for part in parts {
            let name = format!("{}-decision-{}", wish.name, slices.len() + 1);
            let group = (index, group.name.clone());
            slices.push(Slice { name, group, clusters: part.to_vec() });
        }
    }
    slices
}

/// What makes the decisions those of the selection. First whatever a decision is to have besides
/// what it has, then what it is not to have any more, then decisions that are not needed: at every
/// moment each cluster that was chosen and still is, is listed. Nothing, while it is in doubt whether
/// a cluster that is listed may go.
pub fn plan(seen: &Observed, selection: &Selection) -> Plan {
    let wish = &seen.wish;
    if wish.elsewhere || wish.deleting || doubt(seen, selection).is_some() {
        return vec![];
    }
    let slices = slices(wish, selection);
    let found: BTreeMap<&str, _> =
        seen.decisions.iter().map(|decision| (&*decision.name, decision)).collect();
    let chosen: BTreeSet<&str> = selection.clusters().collect();
    let mut make = vec![];
    let (mut grow, mut shrink) = (vec![], vec![]);
    let mut waiting = false;
    for slice in &slices {
        let Some(decision) = found.get(&*slice.name) else {
            make.push(create(wish, slice));
            continue;
        };
        if decision.deleting {
            // Nobody else may hand over to it, or give up, before it is made anew.
            waiting = true;
            continue;
        }
        if let Some(action) = mark(wish, slice, decision) {
            make.push(action);
            continue;
        }
        if decision.listed.as_ref() == Some(&slice.clusters) {
            continue;
        }
        let staying = decision.clusters().filter(|name| {
            chosen.contains(name) && !slice.clusters.iter().any(|other| other == name)
        });
        let staying: Vec<String> = staying.map(ToString::to_string).collect();
        if staying.is_empty() {
            grow.push(decision.status(&slice.clusters));
            continue;
        }
        let mut both = slice.clusters.clone();
        both.extend(staying);
        both.sort();
        if decision.listed.as_ref() != Some(&both) {
            grow.push(decision.status(&both));
        }
        shrink.push((decision, slice));
    }
    let wanted: BTreeSet<&str> = slices.iter().map(|slice| &*slice.name).collect();
    let spare = seen.decisions.iter().filter(|one| !wanted.contains(&*one.name) && !one.deleting);
    let spare = spare.map(|decision| delete(decision)).collect();
    // What grew has another resource version now, and what was made cannot be filled in yet: both
    // come back as events, and the pass after that goes on.
    if waiting || !make.is_empty() || !grow.is_empty() {
        return [make, grow].into_iter().filter(|step| !step.is_empty()).collect();
    }
    let shrink = shrink.into_iter().map(|(decision, slice)| decision.status(&slice.clusters));
    [shrink.collect::<Vec<_>>(), spare].into_iter().filter(|step| !step.is_empty()).collect()
}

/// Whether the decisions are those of the selection.
pub(super) fn settled(seen: &Observed, selection: &Selection) -> bool {
    let slices = slices(&seen.wish, selection);
    let is = |slice: &Slice| {
        let found = seen.decisions.iter().find(|decision| decision.name == slice.name);
        found.is_some_and(|one| !one.deleting && one.listed.as_ref() == Some(&slice.clusters))
    };
    slices.len() == seen.decisions.len() && slices.iter().all(is)
}

fn labels(wish: &Wish, slice: &Slice) -> BTreeMap<String, String> {
    let (index, name) = &slice.group;
    let pairs = [
        (PLACEMENT_LABEL, wish.name.clone()),
        (GROUP_INDEX_LABEL, index.to_string()),
        (GROUP_NAME_LABEL, name.clone()),
    ];
    pairs.into_iter().map(|(key, value)| (key.to_string(), value)).collect()
}

fn owner(wish: &Wish) -> Value {
    json!([{
        "apiVersion": format!("{GROUP}/v1beta1"), "kind": "Placement",
        "name": wish.name, "uid": wish.uid,
        "controller": true, "blockOwnerDeletion": true,
    }])
}

fn create(wish: &Wish, slice: &Slice) -> Action {
    let object = json!({
        "apiVersion": format!("{GROUP}/v1beta1"), "kind": "PlacementDecision",
        "metadata": {
            "name": slice.name, "namespace": wish.namespace,
            "labels": labels(wish, slice), "ownerReferences": owner(wish),
        },
    });
    let target = target(&wish.namespace, &slice.name);
    Action { side: Side::Hub, target, write: Write::Create(object) }
}

/// Labels and owner, where they are not as they should be.
fn mark(wish: &Wish, slice: &Slice, decision: &Decision) -> Option<Action> {
    let wanted = labels(wish, slice);
    let right = wanted.iter().all(|(key, value)| decision.labels.get(key) == Some(value));
    if right && decision.owners.contains(&wish.uid) {
        return None;
    }
    let patch = json!({ "metadata": {
        "uid": decision.uid, "resourceVersion": decision.resource_version,
        "labels": wanted, "ownerReferences": owner(wish),
    } });
    Some(Action { side: Side::Hub, target: decision.target(), write: Write::Merge(patch) })
}

fn delete(decision: &Decision) -> Action {
    let write = Write::Delete {
        uid: decision.uid.clone(),
        resource_version: Some(decision.resource_version.clone()),
        propagation: Propagation::Background,
    };
    Action { side: Side::Hub, target: decision.target(), write }
}

fn target(namespace: &str, name: &str) -> Target {
    let id = Id {
        group: GROUP.into(),
        resource: "placementdecisions".into(),
        namespace: namespace.into(),
        name: name.into(),
    };
    Target { version: "v1beta1".into(), id }
}
