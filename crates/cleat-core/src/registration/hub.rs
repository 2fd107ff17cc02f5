//! One cluster, as the hub looks after it: accepted, denied or refused.
//!
//! The finalizer comes first and access last when a cluster is accepted. How it leaves, and what
//! becomes of what was carried to it, is decided in `leave`.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec;
use alloc::vec::Vec;

use cleat_api::managedcluster::{
    CLUSTER_SET_LABEL, FINALIZER, ManagedCluster, ManagedClusterStatus, SKIP_CLOCK_CHECK,
    condition as kind, reason,
};
use cleat_api::managedclusterset::DEFAULT;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::{Map, Value, json};

use super::access::{Part, Standing, WORK_FINALIZER, covers};
use super::{join, place};
use crate::condition::{self, Said, Status};
use crate::id::{Id, Target};
use crate::lease::{self, Availability, Heartbeat, Pulse};
use crate::write::{Action, Outcome, Plan, Propagation, Side, Write};

/// Who `managedFields` say looks after clusters.
pub const MANAGER: &str = "cleat-hub";

/// How long to wait before trying again what did not work.
const AGAIN: SignedDuration = SignedDuration::from_secs(5);

/// What is known of one object.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Seen {
    #[default]
    Unknown,
    Absent,
    Present(Value),
}

/// Everything the decision depends on.
#[derive(Clone, Debug)]
pub struct Observed {
    pub cluster: ManagedCluster,
    /// What it has on the hub. A part that is missing here was not looked at.
    pub parts: BTreeMap<Part, Seen>,
    /// Other clusters that are the same one by its id, and that the hub accepts.
    pub namesakes: Vec<join::Namesake>,
    /// The hub's own id.
    pub hub_id: Option<String>,
    pub heartbeat: Heartbeat,
    pub now: Timestamp,
}

impl Observed {
    fn name(&self) -> &str {
        self.cluster.metadata.name.as_deref().unwrap_or_default()
    }

    fn part(&self, part: Part) -> &Seen {
        self.parts.get(&part).unwrap_or(&Seen::Unknown)
    }

    fn status(&self) -> ManagedClusterStatus {
        self.cluster.status.clone().unwrap_or_default()
    }

    fn is_deleting(&self) -> bool {
        self.cluster.metadata.deletion_timestamp.is_some()
    }

    fn has_finalizer(&self) -> bool {
        self.cluster.metadata.finalizers.iter().flatten().any(|one| one == FINALIZER)
    }

    /// Why the hub does not accept a cluster that its administrator accepted.
    fn refusal(&self) -> Option<String> {
        let refused = join::refused_by_hub(&self.cluster, &self.namesakes, self.hub_id.as_deref());
        refused.or_else(|| self.is_place_taken().then(|| place::taken(self.name())))
    }

    /// Whether the namespace that the cluster should have is somebody else's. One that is going is
    /// waited for, whoever had it.
    fn is_place_taken(&self) -> bool {
        match self.part(Part::Namespace) {
            Seen::Present(live) => {
                !namespace_is_going(self) && !place::is_own(live, &self.parts, self.name())
            }
            Seen::Absent | Seen::Unknown => false,
        }
    }

    fn standing(&self) -> Standing {
        if self.cluster.spec.hub_accepts_client && self.refusal().is_none() {
            Standing::Accepted
        } else {
            Standing::Denied
        }
    }
}

/// What should happen next. An empty plan: nothing.
pub fn plan(seen: &Observed) -> Plan {
    // How a cluster leaves is another story.
    if seen.is_deleting() {
        return Plan::new();
    }
    let mut plan = vec![amend(seen)];
    match seen.standing() {
        Standing::Accepted => plan.extend(admit(seen)),
        Standing::Denied | Standing::Leaving => plan.extend(deny(seen)),
    }
    plan.retain(|step| !step.is_empty());
    plan
}

/// The cluster object itself: finalizer, set, taints; in one write, so that they are one's own.
fn amend(seen: &Observed) -> Vec<Action> {
    let metadata = &seen.cluster.metadata;
    let mut patch = Map::new();
    let mut meta = Map::new();
    if !seen.has_finalizer() && seen.standing() == Standing::Accepted {
        let mut finalizers = metadata.finalizers.clone().unwrap_or_default();
        finalizers.push(FINALIZER.to_string());
        meta.insert("finalizers".to_string(), json!(finalizers));
    }
    if !metadata.labels.iter().flatten().any(|(key, _)| key == CLUSTER_SET_LABEL) {
        meta.insert("labels".to_string(), json!({ CLUSTER_SET_LABEL: DEFAULT }));
    }
    let conditions = conditions_of(seen);
    let availability = condition::find(&conditions, kind::AVAILABLE);
    let availability = Availability::of(availability.map(|one| one.status.as_str()));
    if let Some(taints) = lease::taints(&seen.cluster.spec.taints, availability, seen.now) {
        patch.insert("spec".to_string(), json!({ "taints": taints }));
    }
    if patch.is_empty() && meta.is_empty() {
        return Vec::new();
    }
    preconditions(seen, &mut meta);
    patch.insert("metadata".to_string(), Value::Object(meta));
    vec![on_cluster(seen, Write::Merge(Value::Object(patch)))]
}

/// Namespace first, then what is inside it and what lets the agent in.
fn admit(seen: &Observed) -> Plan {
    if namespace_is_going(seen) || *seen.part(Part::Namespace) == Seen::Unknown {
        return Plan::new();
    }
    let missing =
        |part: &Part| is_missing(*part, seen.part(*part), seen.name(), Standing::Accepted);
    let apply = |part: Part| ensure(seen, part, Standing::Accepted);
    let (outer, inner): (Vec<Part>, Vec<Part>) =
        Part::ALL.into_iter().filter(missing).partition(|part| *part == Part::Namespace);
    vec![outer.into_iter().map(apply).collect(), inner.into_iter().map(apply).collect()]
}

/// Whether a part has to be made or put right.
pub(crate) fn is_missing(part: Part, seen: &Seen, cluster: &str, standing: Standing) -> bool {
    match seen {
        Seen::Unknown => false,
        Seen::Absent => true,
        // Whoever renews a lease owns it.
        Seen::Present(_) if part == Part::Lease => false,
        Seen::Present(live) => !covers(live, &part.wanted(cluster, standing)),
    }
}

/// A denied cluster keeps the right to learn that it is denied, if it had any.
fn deny(seen: &Observed) -> Plan {
    let mut shrink = Vec::new();
    if let Seen::Present(live) = seen.part(Part::Role)
        && !covers(live, &Part::Role.wanted(seen.name(), Standing::Denied))
    {
        shrink.push(ensure(seen, Part::Role, Standing::Denied));
    }
    let mut steps = vec![shrink];
    steps.extend(remove(seen, &[Part::Registration, Part::Work]));
    steps
}

/// Takes parts away. Ours is the finalizer on one of them, so it goes first.
fn remove(seen: &Observed, parts: &[Part]) -> Plan {
    let mut release = Vec::new();
    let mut delete = Vec::new();
    for part in parts {
        let Seen::Present(live) = seen.part(*part) else { continue };
        let text = |pointer: &str| {
            live.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_string()
        };
        let target = part.target(seen.name());
        let finalizers = live.pointer("/metadata/finalizers").and_then(Value::as_array);
        let others: Vec<&Value> =
            finalizers.into_iter().flatten().filter(|one| *one != WORK_FINALIZER).collect();
        if finalizers.is_some_and(|all| all.len() != others.len()) {
            let patch =
                json!({ "metadata": { "uid": text("/metadata/uid"), "finalizers": others } });
            let (side, target) = (Side::Hub, target.clone());
            release.push(Action { side, target, write: Write::Merge(patch) });
        }
        // One that is being deleted ends with its finalizer.
        if live.pointer("/metadata/deletionTimestamp").is_none() {
            let write = Write::Delete {
                uid: text("/metadata/uid"),
                resource_version: None,
                propagation: Propagation::Background,
            };
            delete.push(Action { side: Side::Hub, target, write });
        }
    }
    vec![release, delete]
}

fn ensure(seen: &Observed, part: Part, standing: Standing) -> Action {
    let object = part.wanted(seen.name(), standing);
    let write = match (part, seen.part(part)) {
        // One that somebody made meanwhile is not the cluster's.
        (Part::Namespace, Seen::Absent) => Write::Create(object),
        _ => Write::Apply { object, manager: MANAGER.to_string(), force: true },
    };
    Action { side: Side::Hub, target: part.target(seen.name()), write }
}

fn namespace_is_going(seen: &Observed) -> bool {
    match seen.part(Part::Namespace) {
        Seen::Present(live) => live.pointer("/metadata/deletionTimestamp").is_some(),
        Seen::Absent | Seen::Unknown => false,
    }
}

fn on_cluster(seen: &Observed, write: Write) -> Action {
    Action { side: Side::Hub, target: target(seen.name()), write }
}

/// Where clusters are on the hub.
pub struct Place {
    pub group: String,
    pub version: String,
    pub resource: String,
}

pub fn place() -> Place {
    let Target { version, id } = target("");
    Place { group: id.group, version, resource: id.resource }
}

/// Where the cluster is on the hub.
pub fn target(cluster: &str) -> Target {
    let id = Id {
        group: "cluster.open-cluster-management.io".to_string(),
        resource: "managedclusters".to_string(),
        namespace: String::new(),
        name: cluster.to_string(),
    };
    Target { version: "v1".to_string(), id }
}

fn preconditions(seen: &Observed, meta: &mut Map<String, Value>) {
    let metadata = &seen.cluster.metadata;
    meta.insert("uid".to_string(), json!(metadata.uid));
    meta.insert("resourceVersion".to_string(), json!(metadata.resource_version));
}

/// What the cluster is told, and when to look again by itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// A patch of its status, if something changed.
    pub status: Option<Action>,
    pub wake: Option<SignedDuration>,
}

/// `done` is what came of the plan for the same observation.
pub fn report(seen: &Observed, done: &[Vec<Outcome>]) -> Verdict {
    if seen.is_deleting() {
        return Verdict { status: None, wake: None };
    }
    let before = seen.status().conditions;
    let mut conditions = conditions_of(seen);
    let generation = seen.cluster.metadata.generation;
    let failures: Vec<String> = done.iter().flatten().filter_map(failure).collect();
    let settled = done.iter().flatten().all(|one| matches!(one, Outcome::Done(_)));
    if let Some(said) = accepted(seen, &before, &failures, settled) {
        condition::say(&mut conditions, said, generation, seen.now);
    }
    let status = (conditions != before).then(|| {
        let mut meta = Map::new();
        preconditions(seen, &mut meta);
        let patch = json!({ "metadata": meta, "status": { "conditions": conditions } });
        on_cluster(seen, Write::MergeStatus(patch))
    });
    let until = match pulse(seen) {
        Pulse::Beating { until } => Some(until.duration_since(seen.now)),
        Pulse::None | Pulse::Stopped => None,
    };
    // Nothing tells of a namespace that is not the cluster's.
    let unseen = *seen.part(Part::Namespace) == Seen::Unknown || seen.is_place_taken();
    let retry = (!settled || unseen).then_some(AGAIN);
    Verdict { status, wake: [until, retry].into_iter().flatten().min() }
}

/// What the lease says, beside what is said already.
fn conditions_of(seen: &Observed) -> Vec<Condition> {
    let mut conditions = seen.status().conditions;
    let generation = seen.cluster.metadata.generation;
    if !seen.cluster.spec.hub_accepts_client {
        return conditions;
    }
    if pulse(seen) == Pulse::Stopped {
        let said = Said {
            kind: kind::AVAILABLE,
            status: Status::Unknown,
            reason: reason::LEASE_UPDATE_STOPPED,
            message: format!(
                "The agent has stopped to renew its lease {}/{}: look whether it runs and reaches \
                 the hub.",
                seen.name(),
                cleat_api::managedcluster::LEASE,
            ),
        };
        condition::say(&mut conditions, said, generation, seen.now);
    }
    let annotations = seen.cluster.metadata.annotations.as_ref();
    let skipped =
        annotations.and_then(|all| all.get(SKIP_CLOCK_CHECK)).is_some_and(|v| v == "true");
    let duration = lease::duration(seen.cluster.spec.lease_duration_seconds);
    let agree = lease::clocks_agree(seen.heartbeat, duration).filter(|_| !skipped);
    if let Some(agree) = agree {
        let (status, reason, message) = if agree {
            let text = "The clocks of the cluster and of the hub agree.".to_string();
            (Status::True, reason::CLOCK_SYNCED, text)
        } else {
            let text = format!(
                "The clocks of the cluster and of the hub are {} s or more apart: set them right, \
                 or certificates will not be valid when they should.",
                duration.as_secs()
            );
            (Status::False, reason::CLOCK_OUT_OF_SYNC, text)
        };
        let said = Said { kind: kind::CLOCK_SYNCED, status, reason, message };
        condition::say(&mut conditions, said, generation, seen.now);
    }
    conditions
}

fn pulse(seen: &Observed) -> Pulse {
    let duration = lease::duration(seen.cluster.spec.lease_duration_seconds);
    let mut heartbeat = seen.heartbeat;
    // An agent that said it is available and was never heard again is as silent as any other.
    if heartbeat.renewed.is_none() {
        let conditions = seen.status().conditions;
        let available = condition::find(&conditions, kind::AVAILABLE);
        let available = available.filter(|one| one.status == "True");
        heartbeat.renewed = available.map(|one| one.last_transition_time.0);
    }
    lease::pulse(heartbeat, duration, seen.now)
}

fn accepted(
    seen: &Observed,
    before: &[Condition],
    failures: &[String],
    settled: bool,
) -> Option<Said> {
    let kind = kind::ACCEPTED;
    let spec = &seen.cluster.spec;
    let (status, reason, message) = if !spec.hub_accepts_client {
        // Nobody has decided yet about a cluster that was never accepted.
        condition::find(before, kind)?;
        (Status::False, reason::DENIED, "Denied by hub cluster admin".to_string())
    } else if let Some(refusal) = seen.refusal() {
        (Status::False, reason::REFUSED, refusal)
    } else if namespace_is_going(seen) {
        let text = format!(
            "The namespace {} of an earlier cluster is still being deleted; the cluster is taken \
             in when it is gone.",
            seen.name()
        );
        (Status::False, reason::ERROR, text)
    } else if !failures.is_empty() {
        (Status::False, reason::ERROR, failures.join("; "))
    } else if !settled || *seen.part(Part::Namespace) == Seen::Unknown {
        return None;
    } else {
        (Status::True, reason::ACCEPTED, "Accepted by hub cluster admin".to_string())
    };
    // Denial is said once access is gone: before, it would not be true.
    if status == Status::False && !settled && failures.is_empty() {
        return None;
    }
    Some(Said { kind, status, reason, message })
}

/// What is worth telling. That somebody else was faster is not: the next pass sees what they did.
pub(crate) fn failure(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Refused(refusal) => Some(refusal.message.clone()),
        Outcome::Lost(message) => Some(message.clone()),
        Outcome::NoSuchKind => {
            Some("the hub does not serve a kind it needs: run `cleat init`".to_string())
        }
        Outcome::Done(_)
        | Outcome::NotFound
        | Outcome::AlreadyExists
        | Outcome::Conflict(_)
        | Outcome::NotTried => None,
    }
}

#[cfg(test)]
mod tests;
