//! The end of a leave on the hub: the namespace with what is in it, then what lets the agent in, then
//! the cluster itself.
//!
//! A namespace that is not the cluster's stays untouched, and one that holds what others brought
//! stays without our label. What lets the agent look after works goes only when the namespace takes
//! no new ones.

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec;
use alloc::vec::Vec;

use cleat_api::managedcluster::{CLUSTER_NAME_LABEL, FINALIZER};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::hub::Observed;
use crate::registration::access::{Part, WORK_FINALIZER};
use crate::registration::hub::{Seen, target};
use crate::registration::place;
use crate::work::contents::Contents;
use crate::write::{Action, Plan, Propagation, Side, Write};

const INNER: [Part; 3] = [Part::Work, Part::Registration, Part::Lease];
const OUTER: [Part; 2] = [Part::RoleBinding, Part::Role];

/// Whether the namespace is about to go, so that somebody has to look into it first.
pub(super) fn wants_look(seen: &Observed) -> bool {
    own_namespace(seen).is_some_and(|live| !is_going(live) && !is_immortal(seen.name()))
}

pub(super) fn finish(seen: &Observed) -> Plan {
    if *seen.part(Part::Namespace) == Seen::Unknown {
        return Plan::new();
    }
    let mut plan = Plan::new();
    if let Some(live) = own_namespace(seen) {
        if is_going(live) {
            // What was carried was looked for after the namespace was seen to be going, and nothing
            // was found: there is nothing left to hold the rights for.
            return vec![INNER.into_iter().filter_map(|part| release(seen, part)).collect()];
        }
        match why_kept(seen) {
            Some(why) => plan.push(keep(seen, live, &why).into_iter().collect()),
            None if seen.contents == Some(Contents::Ours) => {
                return vec![vec![delete(seen, Part::Namespace, live)]];
            }
            None => return Plan::new(),
        }
    }
    let remaining: Vec<Part> =
        INNER.into_iter().chain(OUTER).filter(|part| *seen.part(*part) != Seen::Absent).collect();
    if remaining.is_empty() {
        plan.push(vec![let_go(seen)]);
        return plan;
    }
    let present = |part: &Part| match seen.part(*part) {
        Seen::Present(live) => Some((*part, live)),
        Seen::Unknown | Seen::Absent => None,
    };
    plan.push(remaining.iter().filter_map(|part| release(seen, *part)).collect());
    plan.push(
        remaining
            .iter()
            .filter_map(present)
            .filter(|(_, live)| !is_going(live))
            .map(|(part, live)| delete(seen, part, live))
            .collect(),
    );
    plan
}

/// What the end waits for, in words, and since when if that is known.
pub(super) fn waits(seen: &Observed) -> Vec<(String, Option<Timestamp>)> {
    let mut waits = Vec::new();
    for part in Part::ALL {
        let name = part.target(seen.name()).id.to_string();
        match seen.part(part) {
            Seen::Unknown => waits.push((format!("{name} cannot be read"), None)),
            // Somebody else's is not waited for.
            Seen::Present(_) if part == Part::Namespace && own_namespace(seen).is_none() => {}
            Seen::Present(live) if is_going(live) => {
                let since = text(live, "/metadata/deletionTimestamp").parse().ok();
                waits.push((format!("{name} is still there: {}", held(live)), since));
            }
            Seen::Present(_) | Seen::Absent => {}
        }
    }
    match &seen.contents {
        Some(Contents::Unknown(why)) => {
            waits.push((format!("namespaces {}: {why}", seen.name()), None));
        }
        Some(Contents::Waiting(id)) => waits.push((format!("{id} is on its way out"), None)),
        Some(Contents::Ours | Contents::Foreign(_)) | None => {}
    }
    waits
}

/// Why the namespace stays when the cluster goes, if it does.
pub(super) fn why_kept(seen: &Observed) -> Option<String> {
    own_namespace(seen)?;
    if is_immortal(seen.name()) {
        return Some("Kubernetes does not let go of it".to_string());
    }
    seen.contents.as_ref()?.why_kept()
}

/// What holds something that is going: its finalizers, or what a namespace says of itself.
fn held(live: &Value) -> String {
    let mut said: Vec<&str> = Vec::new();
    let conditions = live.pointer("/status/conditions").and_then(Value::as_array);
    for condition in conditions.into_iter().flatten() {
        let field = |name: &str| condition.get(name).and_then(Value::as_str).unwrap_or_default();
        if field("status") == "True" && field("type").starts_with("Namespace") {
            said.push(field("message"));
        }
    }
    if !said.is_empty() {
        said.sort_unstable();
        return said.join(" ");
    }
    let finalizers = live.pointer("/metadata/finalizers").and_then(Value::as_array);
    let finalizers: Vec<&str> =
        finalizers.into_iter().flatten().filter_map(Value::as_str).collect();
    match finalizers.is_empty() {
        true => "the hub has not ended it yet".to_string(),
        false => format!("held by {}", finalizers.join(", ")),
    }
}

fn own_namespace(seen: &Observed) -> Option<&Value> {
    match seen.part(Part::Namespace) {
        Seen::Present(live) if place::is_own(live, &seen.parts, seen.name()) => Some(live),
        Seen::Present(_) | Seen::Absent | Seen::Unknown => None,
    }
}

fn is_going(live: &Value) -> bool {
    live.pointer("/metadata/deletionTimestamp").is_some()
}

/// Kubernetes does not let go of these, whatever a cluster of that name was meant to be.
fn is_immortal(namespace: &str) -> bool {
    matches!(namespace, "default" | "kube-system" | "kube-public" | "kube-node-lease")
}

/// Lets the namespace stay: without our label, and with a word on why it is there.
fn keep(seen: &Observed, live: &Value, why: &str) -> Option<Action> {
    if !place::is_labelled(live, seen.name()) {
        return None;
    }
    let patch = json!({ "metadata": {
        "uid": text(live, "/metadata/uid"),
        "labels": { CLUSTER_NAME_LABEL: null },
        "annotations": { place::KEPT: format!("the cluster {} has left; {why}", seen.name()) },
    }});
    let target = Part::Namespace.target(seen.name());
    Some(Action { side: Side::Hub, target, write: Write::Merge(patch) })
}

/// Our finalizer goes from the cluster, and with it the cluster.
fn let_go(seen: &Observed) -> Action {
    let metadata = &seen.cluster.metadata;
    let left: Vec<_> =
        metadata.finalizers.iter().flatten().filter(|one| *one != FINALIZER).collect();
    let mut meta = Map::new();
    meta.insert("finalizers".to_string(), json!(left));
    meta.insert("uid".to_string(), json!(metadata.uid));
    meta.insert("resourceVersion".to_string(), json!(metadata.resource_version));
    let write = Write::Merge(json!({ "metadata": meta }));
    Action { side: Side::Hub, target: target(seen.name()), write }
}

fn text(live: &Value, pointer: &str) -> String {
    live.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_string()
}

fn delete(seen: &Observed, part: Part, live: &Value) -> Action {
    let write = Write::Delete {
        uid: text(live, "/metadata/uid"),
        resource_version: None,
        propagation: Propagation::Background,
    };
    Action { side: Side::Hub, target: part.target(seen.name()), write }
}

/// Takes our finalizer off a part, if it has one.
fn release(seen: &Observed, part: Part) -> Option<Action> {
    let Seen::Present(live) = seen.part(part) else { return None };
    let finalizers = live.pointer("/metadata/finalizers").and_then(Value::as_array)?;
    let others: Vec<&Value> = finalizers.iter().filter(|one| *one != WORK_FINALIZER).collect();
    if others.len() == finalizers.len() {
        return None;
    }
    let patch = json!({ "metadata": { "uid": text(live, "/metadata/uid"), "finalizers": others } });
    Some(Action { side: Side::Hub, target: part.target(seen.name()), write: Write::Merge(patch) })
}
