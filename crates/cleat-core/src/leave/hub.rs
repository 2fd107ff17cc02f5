//! What the hub does next about a cluster that is leaving, read top to bottom.
//!
//! Nothing on the cluster is touched from here: the agent does that, for what the hub deletes. The
//! hub goes on without the agent only if there never was one, if a person declared the cluster
//! destroyed, or if nothing was to be removed and the cluster is silent; and then what is believed to
//! be there is written down first.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::ToString as _;
use alloc::vec;
use alloc::vec::Vec;

use cleat_api::leftoverrecord::{LeftObject, LeftoverRecord, LeftoverRecordSpec, Reason};
use cleat_api::managedcluster::{
    AGENT_NAMESPACE_CLAIM, CLUSTER_DESTROYED, FINALIZER, ManagedCluster, ManagedClusterStatus,
    RemoveStrategy, condition as kind, reason,
};
use cleat_api::manifestwork::{LEAVE_FINALIZER, ON_RECORD};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::carried::{Carried, Kind};
use super::finish::{self, finish};
use super::{order, parts, record};
use crate::condition::{self, whole_seconds};
use crate::lease::{self, Heartbeat, Pulse, Sight};
use crate::registration::access::{Part, Standing};
use crate::registration::hub::{MANAGER, Seen, is_missing, target};
use crate::registration::place;
use crate::work::contents::Contents;
use crate::write::{Action, Plan, Propagation, Side, Write};

/// Everything the decision depends on.
#[derive(Clone, Debug)]
pub struct Observed {
    pub cluster: ManagedCluster,
    /// What it has on the hub. A part that is missing here was not looked at. At the end
    /// ([`is_finishing`]) read from the server, not from a watch.
    pub parts: BTreeMap<Part, Seen>,
    /// What its namespace holds, if somebody looked ([`wants_look`]).
    pub contents: Option<Contents>,
    /// What was carried to it, or why that is not known. Read from the server, not from a watch, and
    /// after `parts`: where the namespace is going, nothing comes after what is listed here.
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
        // Who was silent already when the hub began to look is no less so for it.
        if self.was_silent() && self.heartbeat.sight == Sight::Found {
            return Pulse::Stopped;
        }
        let mut heartbeat = self.heartbeat;
        // Who was denied could not renew anything, and may again since it leaves.
        if !self.cluster.spec.hub_accepts_client
            && let Some(announced) = self.since(kind::UNJOINING)
        {
            let last = heartbeat.seen.or(heartbeat.renewed).unwrap_or(announced);
            heartbeat.seen = Some(last.max(announced));
        }
        // The lease goes with the namespace, and a silent agent may never have renewed one.
        if heartbeat.renewed.is_none() {
            let conditions = self.status().conditions;
            let heard = condition::find(&conditions, kind::RELEASED)
                .or_else(|| condition::find(&conditions, kind::AVAILABLE));
            heartbeat.renewed = heard.map(|one| one.last_transition_time.0);
        }
        lease::pulse(heartbeat, duration, self.now)
    }

    /// Since when a condition is what it is.
    pub(crate) fn since(&self, kind: &str) -> Option<Timestamp> {
        let conditions = self.status().conditions;
        condition::find(&conditions, kind).map(|one| one.last_transition_time.0)
    }

    fn was_silent(&self) -> bool {
        let conditions = self.status().conditions;
        let said = condition::find(&conditions, kind::AVAILABLE);
        said.is_some_and(|one| one.reason == reason::LEASE_UPDATE_STOPPED)
    }

    /// Since when nothing was heard of the cluster, as far as anybody knows.
    pub(crate) fn silent_since(&self) -> Option<Timestamp> {
        let Heartbeat { renewed, seen, sight } = self.heartbeat;
        let said = self.since(kind::AVAILABLE);
        match sight {
            Sight::Found if self.was_silent() => said,
            Sight::Found | Sight::Missed | Sight::Watched => seen.or(renewed).or(said),
        }
    }

    /// Whether an agent was ever there: it said so, it renewed its lease, or it took up something
    /// that was carried to it. Who cannot look does not know that there was none.
    fn was_joined(&self) -> bool {
        let took_up = match &self.carried {
            Ok(carried) => carried.iter().any(Carried::is_with_agent),
            Err(_) => true,
        };
        let said = condition::find(&self.status().conditions, kind::JOINED).is_some();
        said || self.heartbeat.renewed.is_some() || took_up
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

/// Whether nothing but the cluster's place on the hub is left. On what is seen from here on depends
/// what is forgotten.
pub fn is_finishing(seen: &Observed) -> bool {
    let written = |records: &Vec<LeftoverRecord>| {
        record::missing(records, seen.status().left.iter()).is_empty()
    };
    let empty = seen.carried.as_ref().is_ok_and(Vec::is_empty);
    let empty = empty && seen.records.as_ref().is_ok_and(written);
    let agreed = match way(seen) {
        Way::Telling => false,
        Way::WithAgent => seen.is_released(),
        Way::WithoutAgent(reason) => match (&seen.carried, &seen.records) {
            (Ok(carried), Ok(records)) => unwritten(seen, carried, records, reason).is_empty(),
            _ => false,
        },
    };
    seen.has_finalizer() && seen.is_announced() && empty && agreed
}

/// Whether the namespace goes next, so that somebody has to look what is in it.
pub fn wants_look(seen: &Observed) -> bool {
    is_finishing(seen) && finish::wants_look(seen)
}

/// What should happen next. An empty plan: nothing.
pub fn plan(seen: &Observed) -> Plan {
    // The agent acts on what is said to be leaving; so that comes first.
    if !seen.has_finalizer() || !seen.is_announced() {
        return Plan::new();
    }
    let (Ok(carried), Ok(records)) = (&seen.carried, &seen.records) else { return Plan::new() };
    let plan = match way(seen) {
        _ if is_finishing(seen) => finish(seen),
        Way::Telling => vec![access(seen)],
        Way::WithAgent => {
            let mut actions = access(seen);
            actions.extend(with_agent(seen, carried, records));
            vec![actions]
        }
        Way::WithoutAgent(reason) => vec![without_agent(seen, carried, records, reason)],
    };
    plan.into_iter().filter(|step| !step.is_empty()).collect()
}

/// What the agent needs to do its part. A cluster that was denied, or whose rights somebody took,
/// could not leave otherwise.
fn access(seen: &Observed) -> Vec<Action> {
    let standing = match seen.cluster.spec.hub_accepts_client {
        true => Standing::Accepted,
        false => Standing::Leaving,
    };
    let going = |live: &Value| live.pointer("/metadata/deletionTimestamp").is_some();
    let is_open = match seen.part(Part::Namespace) {
        Seen::Present(live) => place::is_own(live, &seen.parts, seen.name()) && !going(live),
        Seen::Absent | Seen::Unknown => false,
    };
    let possible = |part: &Part| match (*part, seen.part(*part)) {
        (Part::Namespace, _) => false,
        (_, Seen::Present(live)) if going(live) => false,
        (Part::Role | Part::RoleBinding, _) => true,
        (Part::Registration | Part::Work | Part::Lease, _) => is_open,
    };
    let missing = |part: &Part| is_missing(*part, seen.part(*part), seen.name(), standing);
    let parts = Part::ALL.into_iter().filter(possible).filter(missing);
    parts
        .map(|part| {
            let object = part.wanted(seen.name(), standing);
            let write = Write::Apply { object, manager: MANAGER.to_string(), force: true };
            Action { side: Side::Hub, target: part.target(seen.name()), write }
        })
        .collect()
}

/// Everything here is independent of everything else, so one that fails stops nothing.
fn with_agent(seen: &Observed, carried: &[Carried], records: &[LeftoverRecord]) -> Vec<Action> {
    let mut actions = Vec::new();
    // Nothing can be held that is being deleted already.
    let is_loose = |one: &&Carried| !one.deleting && !one.is_held() && !one.is_others();
    for one in carried.iter().filter(is_loose) {
        let mut finalizers = one.finalizers.clone();
        finalizers.push(LEAVE_FINALIZER.to_string());
        // The agent holds only policies that prune; of a leaving cluster every one is to be let go
        // of by it.
        if one.kind == Kind::Policy && !one.is_with_agent() {
            finalizers.extend(one.kind.held_by().map(|theirs| theirs.to_string()));
        }
        actions.push(set_finalizers(one, &finalizers));
    }
    if carried.iter().any(Carried::is_others) {
        // Add-ons first, while what works brought still serves them; and not before the works are
        // held, which may go with them.
        if !carried.iter().any(|one| is_loose(&one)) {
            let going = carried.iter().filter(|one| one.is_others() && !one.deleting);
            actions.extend(going.map(delete));
        }
    } else {
        let ready = order::ready(carried).into_iter().filter_map(|index| carried.get(index));
        actions.extend(ready.filter(|one| one.is_held()).map(delete));
    }

    let ended: Vec<&Carried> = carried
        .iter()
        .filter(|one| one.deleting && one.is_held() && !one.is_with_agent())
        .collect();
    // What was being deleted before cannot be held; its agent waits to be told that it is on record,
    // also if somebody took its hold away and another's is left.
    let fleeting: Vec<&Carried> = carried
        .iter()
        .filter(|one| one.deleting && !one.is_held())
        .filter(|one| one.is_with_agent() || !one.left.is_empty())
        .collect();
    let own = seen.status().left;
    let left = ended.iter().chain(&fleeting).flat_map(|one| &one.left);
    let more = record::missing(records, left.chain(&own));
    let reason = match seen.strategy() {
        RemoveStrategy::Needless => Reason::Needless,
        RemoveStrategy::Required => Reason::Kept,
    };
    let untold = ended.iter().chain(&fleeting).map(|one| one.untold(one.left_untold));
    let leave =
        LeftoverRecordSpec { untold: untold.collect(), ..record::leave(&seen.cluster, reason) };
    actions.extend(record::append(&leave, &records.iter().collect::<Vec<_>>(), &more));
    actions.extend(receipt(seen, records));
    for one in ended {
        let said = record::says(records, &one.untold(one.left_untold));
        if said && record::missing(records, one.left.iter()).is_empty() {
            actions.push(release(one, &[LEAVE_FINALIZER]));
        }
    }
    for one in fleeting {
        let receipt = record::receipt(&one.left);
        let known = one.on_record.as_ref() == Some(&receipt) || one.left.is_empty();
        let said = record::says(records, &one.untold(one.left_untold));
        if !known && said && record::missing(records, one.left.iter()).is_empty() {
            let patch = json!({ "metadata": {
                "uid": one.uid, "annotations": { ON_RECORD: receipt },
            }});
            let (target, write) = (one.target(), Write::Merge(patch));
            actions.push(Action { side: Side::Hub, target, write });
        }
    }
    actions
}

/// That everything the cluster itself told is written down. Its agent may tell the next of it then: what
/// it tells has to be stored in one object.
fn receipt(seen: &Observed, records: &[LeftoverRecord]) -> Option<Action> {
    let metadata = &seen.cluster.metadata;
    let left = seen.status().left;
    let receipt = record::receipt_of_all(&left);
    let known = metadata.annotations.as_ref().and_then(|all| all.get(ON_RECORD)) == Some(&receipt);
    if known || left.is_empty() || !record::missing(records, left.iter()).is_empty() {
        return None;
    }
    let patch = json!({ "metadata": {
        "uid": metadata.uid, "resourceVersion": metadata.resource_version,
        "annotations": { ON_RECORD: receipt },
    }});
    let target = target(seen.name());
    Some(Action { side: Side::Hub, target, write: Write::Merge(patch) })
}

/// Without an agent nobody will ever say what became of things: they are written down as they were
/// last known, and only what is written down is let go of.
fn without_agent(
    seen: &Observed,
    carried: &[Carried],
    records: &[LeftoverRecord],
    reason: Reason,
) -> Vec<Action> {
    let writes = unwritten(seen, carried, records, reason);
    if !writes.is_empty() {
        return writes;
    }
    let mut actions = Vec::new();
    for one in carried {
        if !one.deleting {
            actions.push(delete(one));
        } else if one.is_held() || one.is_with_agent() {
            let theirs = one.kind.held_by();
            let ours: Vec<&str> = theirs.into_iter().chain([LEAVE_FINALIZER]).collect();
            actions.push(release(one, &ours));
        }
    }
    actions
}

/// Writes down what nobody can be asked about any more, as far as no record has it.
fn unwritten(
    seen: &Observed,
    carried: &[Carried],
    records: &[LeftoverRecord],
    reason: Reason,
) -> Vec<Action> {
    let joined = seen.was_joined();
    let mut believed: Vec<LeftObject> =
        carried.iter().flat_map(|one| believed(one, reason, joined)).collect();
    believed.extend(seen.status().left);
    if let Some(namespace) = record::claim(&seen.cluster, AGENT_NAMESPACE_CLAIM) {
        believed.extend(parts::believed(namespace, why(reason)));
    }
    let more = record::missing(records, believed.iter());
    let untold = carried.iter().map(|one| one.untold(one.untold.max(one.left_untold)));
    let leave = LeftoverRecordSpec {
        untold: untold.collect(),
        agent_last_heard: seen.silent_since().filter(|_| joined).map(whole_seconds),
        ..record::leave(&seen.cluster, reason)
    };
    record::append(&leave, &records.iter().collect::<Vec<_>>(), &more)
}

/// Why what nobody could ask about is on record.
fn why(reason: Reason) -> &'static str {
    match reason {
        Reason::ClusterDestroyed => "the cluster was declared destroyed",
        Reason::Needless | Reason::Kept => "kept by removeStrategy Needless",
        Reason::Unreachable => "the cluster could not be reached; our marks are still on it",
    }
}

/// `joined`: there was an agent, which may have done more than it told.
fn believed(one: &Carried, reason: Reason, joined: bool) -> impl Iterator<Item = LeftObject> {
    let told = |object: &LeftObject| {
        let same = |left: &&LeftObject| {
            (&left.group, &left.resource, &left.namespace, &left.name)
                == (&object.group, &object.resource, &object.namespace, &object.name)
        };
        one.left.iter().any(|left| same(&left))
    };
    let why = why(reason);
    let unsure = one.objects.iter().chain(&one.copies).filter(move |object| !told(object));
    let unsure = unsure.map(move |object| LeftObject { why: why.to_string(), ..object.clone() });
    let supposed = one.supposed.iter().filter(move |object| joined && !told(object));
    let supposed = supposed.map(move |object| {
        let why = format!("{why}; its agent never told of it");
        LeftObject { why, ..object.clone() }
    });
    one.left.iter().cloned().chain(unsure).chain(supposed)
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
