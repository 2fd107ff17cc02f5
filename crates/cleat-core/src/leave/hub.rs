//! What the hub does next about a cluster that is leaving, read top to bottom.
//!
//! Nothing on the cluster is touched from here: the agent does that, for what the hub deletes. The
//! hub goes on without the agent only if there never was one, if a person declared the cluster
//! destroyed, or if nothing was to be removed and the cluster is silent; and then what is believed to
//! be there is written down first.

use alloc::collections::BTreeMap;
use alloc::string::ToString as _;
use alloc::vec;
use alloc::vec::Vec;

use cleat_api::leftoverrecord::{LeftObject, LeftoverRecord, Reason};
use cleat_api::managedcluster::{
    CLUSTER_DESTROYED, FINALIZER, ManagedCluster, ManagedClusterStatus, RemoveStrategy,
    condition as kind,
};
use cleat_api::manifestwork::LEAVE_FINALIZER;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::carried::{Carried, Kind};
use super::{order, record};
use crate::condition;
use crate::lease::{self, Heartbeat, Pulse};
use crate::registration::access::{Part, WORK_FINALIZER};
use crate::registration::hub::{Seen, target};
use crate::write::{Action, Plan, Propagation, Side, Write};

/// Everything the decision depends on.
#[derive(Clone, Debug)]
pub struct Observed {
    pub cluster: ManagedCluster,
    /// What it has on the hub. A part that is missing here was not looked at.
    pub parts: BTreeMap<Part, Seen>,
    /// What was carried to it, or why that is not known. Read from the server, not from a watch.
    pub carried: Result<Vec<Carried>, alloc::string::String>,
    /// The records of this leave, or why they are not known.
    pub records: Result<Vec<LeftoverRecord>, alloc::string::String>,
    pub heartbeat: Heartbeat,
    pub now: Timestamp,
}

/// How the hub goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The cluster is told, and has not said yet that it heard.
    Telling,
    /// The agent does its part.
    WithAgent,
    WithoutAgent(Reason),
}

impl Observed {
    pub(crate) fn name(&self) -> &str {
        self.cluster.metadata.name.as_deref().unwrap_or_default()
    }

    pub(crate) fn status(&self) -> ManagedClusterStatus {
        self.cluster.status.clone().unwrap_or_default()
    }

    pub(crate) fn part(&self, part: Part) -> &Seen {
        self.parts.get(&part).unwrap_or(&Seen::Unknown)
    }

    pub(crate) fn has_finalizer(&self) -> bool {
        self.cluster.metadata.finalizers.iter().flatten().any(|one| one == FINALIZER)
    }

    pub(crate) fn strategy(&self) -> RemoveStrategy {
        self.cluster.spec.remove_strategy
    }

    pub(crate) fn is_declared_destroyed(&self) -> bool {
        let annotations = self.cluster.metadata.annotations.as_ref();
        annotations.and_then(|all| all.get(CLUSTER_DESTROYED)).is_some_and(|v| v == self.name())
    }

    pub(crate) fn pulse(&self) -> Pulse {
        let duration = lease::duration(self.cluster.spec.lease_duration_seconds);
        let mut heartbeat = self.heartbeat;
        // The lease goes with the namespace, and a silent agent may never have renewed one.
        if heartbeat.renewed.is_none() {
            let conditions = self.status().conditions;
            let heard = condition::find(&conditions, kind::RELEASED)
                .or_else(|| condition::find(&conditions, kind::AVAILABLE));
            heartbeat.renewed = heard.map(|one| one.last_transition_time.0);
        }
        lease::pulse(heartbeat, duration, self.now)
    }

    /// Whether an agent was ever there.
    fn was_joined(&self) -> bool {
        condition::find(&self.status().conditions, kind::JOINED).is_some()
    }

    /// Whether the agent knows that its cluster leaves, and by which strategy.
    pub(crate) fn is_told(&self) -> bool {
        let conditions = self.status().conditions;
        let said = condition::find(&conditions, kind::RELEASED);
        said.is_some_and(|said| said.reason == self.strategy().as_str())
    }

    /// Whether the agent says that it holds nothing any more, by the strategy that counts now.
    pub(crate) fn is_released(&self) -> bool {
        self.is_told() && condition::holds(&self.status().conditions, kind::RELEASED)
    }

    pub(crate) fn is_announced(&self) -> bool {
        condition::holds(&self.status().conditions, kind::UNJOINING)
    }
}

pub fn way(seen: &Observed) -> Way {
    if seen.is_declared_destroyed() {
        return Way::WithoutAgent(Reason::ClusterDestroyed);
    }
    if !seen.was_joined() {
        return Way::WithoutAgent(Reason::Unreachable);
    }
    if seen.is_released() {
        return Way::WithAgent;
    }
    // What is only to be released can be released by nobody but the agent, and does no harm if it
    // is not: what would collect it is the ledger, and that stays.
    if seen.strategy() == RemoveStrategy::Needless && seen.pulse() == Pulse::Stopped {
        return Way::WithoutAgent(Reason::Unreachable);
    }
    if seen.is_told() { Way::WithAgent } else { Way::Telling }
}

/// What should happen next. An empty plan: nothing.
pub fn plan(seen: &Observed) -> Plan {
    // The agent acts on what is said to be leaving; so that comes first.
    if !seen.has_finalizer() || !seen.is_announced() {
        return Plan::new();
    }
    let (Ok(carried), Ok(records)) = (&seen.carried, &seen.records) else { return Plan::new() };
    let plan = match way(seen) {
        Way::Telling => return Plan::new(),
        Way::WithAgent if carried.is_empty() && seen.is_released() => finish(seen),
        Way::WithAgent => vec![with_agent(seen, carried, records)],
        Way::WithoutAgent(_) if carried.is_empty() => finish(seen),
        Way::WithoutAgent(reason) => vec![without_agent(seen, carried, records, reason)],
    };
    plan.into_iter().filter(|step| !step.is_empty()).collect()
}

/// Everything here is independent of everything else, so one that fails stops nothing.
fn with_agent(seen: &Observed, carried: &[Carried], records: &[LeftoverRecord]) -> Vec<Action> {
    let mut actions = Vec::new();
    // Nothing can be held that is being deleted already.
    let holds = |one: &&Carried| !one.deleting && !one.is_held();
    for one in carried.iter().filter(holds) {
        let mut finalizers = one.finalizers.clone();
        finalizers.push(LEAVE_FINALIZER.to_string());
        // The agent holds only policies that prune; of a leaving cluster every one is to be let go
        // of by it.
        if one.kind == Kind::Policy && !one.is_with_agent() {
            finalizers.push(one.kind.held_by().to_string());
        }
        actions.push(set_finalizers(one, &finalizers));
    }
    let ready = order::ready(carried).into_iter().filter_map(|index| carried.get(index));
    actions.extend(ready.filter(|one| one.is_held()).map(delete));

    let ended: Vec<&Carried> = carried
        .iter()
        .filter(|one| one.deleting && one.is_held() && !one.is_with_agent())
        .collect();
    // What was being deleted before cannot be held, so what will stay of it is written down now.
    let fleeting: Vec<LeftObject> = carried
        .iter()
        .filter(|one| one.deleting && !one.is_held() && one.is_with_agent())
        .filter(|_| seen.strategy() == RemoveStrategy::Needless)
        .flat_map(|one| believed(one, Reason::Needless))
        .collect();
    let ends = ended.iter().flat_map(|one| &one.left);
    let more = record::missing(records, ends.chain(&fleeting));
    let reason = match seen.strategy() {
        RemoveStrategy::Needless => Reason::Needless,
        RemoveStrategy::Required => Reason::Kept,
    };
    actions.extend(record::write_down(&seen.cluster, records, reason, &more));
    for one in ended {
        if record::missing(records, one.left.iter()).is_empty() {
            actions.push(release(one, &[LEAVE_FINALIZER]));
        }
    }
    actions
}

/// Without an agent nobody will ever say what became of things: they are written down as they were
/// last known, and only what is written down is let go of.
fn without_agent(
    seen: &Observed,
    carried: &[Carried],
    records: &[LeftoverRecord],
    reason: Reason,
) -> Vec<Action> {
    let believed: Vec<LeftObject> = carried.iter().flat_map(|one| believed(one, reason)).collect();
    let more = record::missing(records, believed.iter());
    if !more.is_empty() {
        return record::write_down(&seen.cluster, records, reason, &more);
    }
    let mut actions = Vec::new();
    for one in carried {
        if !one.deleting {
            actions.push(delete(one));
        } else if one.is_held() || one.is_with_agent() {
            actions.push(release(one, &[LEAVE_FINALIZER, one.kind.held_by()]));
        }
    }
    actions
}

fn believed(one: &Carried, reason: Reason) -> impl Iterator<Item = LeftObject> {
    let told = |object: &LeftObject| {
        let same = |left: &&LeftObject| {
            (&left.group, &left.resource, &left.namespace, &left.name)
                == (&object.group, &object.resource, &object.namespace, &object.name)
        };
        one.left.iter().any(|left| same(&left))
    };
    let why = match reason {
        Reason::ClusterDestroyed => "the cluster was declared destroyed",
        Reason::Needless | Reason::Kept => "kept by removeStrategy Needless",
        Reason::Unreachable => "the cluster could not be reached; our marks are still on it",
    };
    let unsure = one.objects.iter().filter(move |object| !told(object));
    let unsure = unsure.map(move |object| LeftObject { why: why.to_string(), ..object.clone() });
    one.left.iter().cloned().chain(unsure)
}

/// The namespace with what is in it, then what lets the agent in, then the cluster itself.
fn finish(seen: &Observed) -> Plan {
    const INNER: [Part; 3] = [Part::Work, Part::Registration, Part::Lease];
    const OUTER: [Part; 2] = [Part::RoleBinding, Part::Role];
    let namespace = match seen.part(Part::Namespace) {
        Seen::Unknown => return Plan::new(),
        Seen::Present(live) if !is_immortal(seen.name()) => Some(live),
        Seen::Present(_) | Seen::Absent => None,
    };
    if let Some(live) = namespace {
        let mut plan = Plan::new();
        if live.pointer("/metadata/deletionTimestamp").is_none() {
            plan.push(vec![delete_part(seen, Part::Namespace, live)]);
        }
        // Our finalizer on one of them would hold the namespace.
        plan.push(INNER.into_iter().filter_map(|part| release_part(seen, part)).collect());
        return plan;
    }
    let remaining: Vec<Part> =
        INNER.into_iter().chain(OUTER).filter(|part| *seen.part(*part) != Seen::Absent).collect();
    if remaining.is_empty() {
        let left = seen.cluster.metadata.finalizers.iter().flatten();
        let left: Vec<_> = left.filter(|one| *one != FINALIZER).collect();
        let mut meta = Map::new();
        meta.insert("finalizers".to_string(), json!(left));
        meta.insert("uid".to_string(), json!(seen.cluster.metadata.uid));
        let version = &seen.cluster.metadata.resource_version;
        meta.insert("resourceVersion".to_string(), json!(version));
        let write = Write::Merge(json!({ "metadata": meta }));
        return vec![vec![Action { side: Side::Hub, target: target(seen.name()), write }]];
    }
    let present = |part: &Part| match seen.part(*part) {
        Seen::Present(live) => Some((*part, live)),
        Seen::Unknown | Seen::Absent => None,
    };
    let releases = remaining.iter().filter_map(|part| release_part(seen, *part)).collect();
    let going = |live: &Value| live.pointer("/metadata/deletionTimestamp").is_some();
    let deletes = remaining
        .iter()
        .filter_map(present)
        .filter(|(_, live)| !going(live))
        .map(|(part, live)| delete_part(seen, part, live))
        .collect();
    vec![releases, deletes]
}

/// Kubernetes does not let go of these, whatever a cluster of that name was meant to be.
fn is_immortal(namespace: &str) -> bool {
    matches!(namespace, "default" | "kube-system" | "kube-public" | "kube-node-lease")
}

fn delete(one: &Carried) -> Action {
    let write = Write::Delete {
        uid: one.uid.clone(),
        resource_version: None,
        propagation: Propagation::Background,
    };
    Action { side: Side::Hub, target: one.target(), write }
}

fn set_finalizers(one: &Carried, finalizers: &[alloc::string::String]) -> Action {
    let patch = json!({ "metadata": {
        "uid": one.uid, "resourceVersion": one.resource_version, "finalizers": finalizers,
    }});
    Action { side: Side::Hub, target: one.target(), write: Write::Merge(patch) }
}

fn release(one: &Carried, ours: &[&str]) -> Action {
    let others = one.finalizers.iter().filter(|finalizer| !ours.contains(&finalizer.as_str()));
    set_finalizers(one, &others.cloned().collect::<Vec<_>>())
}

fn text(live: &Value, pointer: &str) -> alloc::string::String {
    live.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_string()
}

fn delete_part(seen: &Observed, part: Part, live: &Value) -> Action {
    let write = Write::Delete {
        uid: text(live, "/metadata/uid"),
        resource_version: None,
        propagation: Propagation::Background,
    };
    Action { side: Side::Hub, target: part.target(seen.name()), write }
}

/// Takes our finalizer off a part, if it has one.
fn release_part(seen: &Observed, part: Part) -> Option<Action> {
    let Seen::Present(live) = seen.part(part) else { return None };
    let finalizers = live.pointer("/metadata/finalizers").and_then(Value::as_array)?;
    let others: Vec<&Value> = finalizers.iter().filter(|one| *one != WORK_FINALIZER).collect();
    if others.len() == finalizers.len() {
        return None;
    }
    let patch = json!({ "metadata": { "uid": text(live, "/metadata/uid"), "finalizers": others } });
    Some(Action { side: Side::Hub, target: part.target(seen.name()), write: Write::Merge(patch) })
}
