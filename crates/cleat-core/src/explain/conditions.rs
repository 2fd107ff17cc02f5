//! Conditions of any kind of object, read as their names are usually meant.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde_json::Value;

use super::object::{Thing, text};
use super::question::Look;
use super::tree::{Node, Reason, Weight};
use super::{ago, denial, workload};

/// Conditions that should be `True`. Of others nobody knows which way is good.
const GOOD: &[&str] = &[
    "Ready",
    "Available",
    "Established",
    "NamesAccepted",
    "Synced",
    "Healthy",
    "Applied",
    "Accepted",
    "Programmed",
    "ResolvedRefs",
    "Reconciled",
    "Succeeded",
    "PlacementSatisfied",
    "AbleToScale",
    "ScalingActive",
];

/// Conditions that should not be `True`.
const BAD: &[&str] = &[
    "Failed",
    "Failure",
    "Degraded",
    "Stalled",
    "Error",
    "ReplicaFailure",
    "NonStructuralSchema",
    "PlacementMisconfigured",
    "HeldBack",
];

pub(super) fn find<'a>(thing: &Thing<'a>, kind: &str) -> Option<&'a Value> {
    thing.list("/status/conditions").iter().find(|one| text(one, "/type") == kind)
}

pub(super) fn status<'a>(thing: &Thing<'a>, kind: &str) -> &'a str {
    find(thing, kind).map(|one| text(one, "/status")).unwrap_or_default()
}

/// `Ready is False for 5m (Reason): message`.
pub(super) fn sentence(look: &Look<'_>, condition: &Value) -> String {
    let (kind, status) = (text(condition, "/type"), text(condition, "/status"));
    let mut says = format!("{kind} is {status}");
    if let Ok(since) = text(condition, "/lastTransitionTime").parse() {
        says.push_str(&format!(" for {}", ago(since, look.now)));
    }
    let (reason, message) = (text(condition, "/reason"), text(condition, "/message"));
    if !reason.is_empty() {
        says.push_str(&format!(" ({reason})"));
    }
    if !message.is_empty() {
        says.push_str(&format!(": {message}"));
    }
    says
}

/// Those that are not as they should be.
pub(super) fn unmet(look: &Look<'_>, thing: &Thing<'_>) -> Vec<Node> {
    let all = thing.list("/status/conditions").iter();
    let amiss = all.filter(|one| {
        let (kind, status) = (text(one, "/type"), text(one, "/status"));
        (GOOD.contains(&kind) && status != "True") || (BAD.contains(&kind) && status == "True")
    });
    amiss.map(|one| said(look, thing, one)).collect()
}

/// One condition that is not as it should be; a webhook it complains of is followed.
pub(super) fn said(look: &Look<'_>, thing: &Thing<'_>, condition: &Value) -> Node {
    let node = Node::blocks(Reason::NotReady, sentence(look, condition));
    match denial::by_message(look, thing, text(condition, "/message")) {
        Some(cause) => node.with([cause].into()),
        None => node.act("whoever sets it", "do what it says", None),
    }
}

/// Whoever looks after it has not seen its latest change: who that is, and whether they run.
pub(super) fn unobserved(look: &Look<'_>, thing: &Thing<'_>) -> Option<Node> {
    let generation = thing.number("/metadata/generation")?;
    let observed = thing.number("/status/observedGeneration")?;
    if observed >= generation {
        return None;
    }
    let entries = thing.list("/metadata/managedFields").iter();
    let writers: Vec<&str> = entries
        .filter(|entry| text(entry, "/subresource") == "status")
        .map(|entry| text(entry, "/manager"))
        .collect();
    let who = writers.first().copied().unwrap_or("its controller");
    let text = format!("{who} has not looked at generation {generation} yet, only at {observed}");
    let all = workload::all(look, thing.place);
    let mut children: Vec<Node> = all
        .items
        .iter()
        .filter(|one| one.runs(&writers).is_some())
        .take(2)
        .map(|one| workload::health(look, &one.thing))
        .collect();
    if children.is_empty() {
        children = all.unread;
    }
    let node = Node::blocks(Reason::NotObserved, text);
    let silent = children.iter().all(|one| one.weight == Weight::Note);
    let node = if silent { node.act(who, "see that it runs, and its log", None) } else { node };
    Some(node.with(children))
}
