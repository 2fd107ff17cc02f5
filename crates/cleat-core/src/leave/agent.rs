//! The agent's half of leaving: whether the hub says so, and what it is told in return.
//!
//! A hub that says to leave, a hub that cannot be reached and a hub that answers but does not know
//! the cluster are three things, and only the first of them lets anything go.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use cleat_api::leftoverrecord::LeftObject;
use cleat_api::managedcluster::{
    CLUSTER_ID, CLUSTER_ID_CLAIM, ManagedCluster, ManagedClusterStatus, RemoveStrategy,
    condition as kind,
};
use cleat_api::manifestwork::ON_RECORD;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::ground::is_ground;
use super::record;
use crate::condition::{self, Said, Status};
use crate::number::number;
use crate::registration::hub::target;
use crate::write::{Action, Side, Write};

/// How the cluster stands with its hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It was not looked at yet.
    Unknown,
    /// Part of the fleet; also while the hub cannot be reached, which changes nothing.
    Member,
    /// The hub says to leave, and how.
    Leaving(RemoveStrategy),
    /// The hub answers and does not know the cluster, or does not let it look: another hub, or an
    /// older state of ours. Nothing is done until somebody decides.
    Unrecognized(String),
}

/// What the hub's cluster of our name says, as the hub stores it. `own_id` is by what this cluster is
/// known; a name is free when the cluster that had it is gone, and what another says that has it since
/// is not meant for us.
///
/// That it says how to leave tells a hub of ours from one that leaves it all to the works: ours fills
/// it in. A hub may have other controllers that take works away as soon as a cluster is deleted, so
/// nothing else is waited for.
pub fn standing(cluster: &Value, own_id: &str) -> Standing {
    if let Some(why) = stranger(cluster, own_id) {
        return Standing::Unrecognized(why);
    }
    let deleting = cluster.pointer("/metadata/deletionTimestamp").is_some_and(Value::is_string);
    match declared(cluster) {
        Some(strategy) if deleting => Standing::Leaving(strategy),
        Some(_) | None => Standing::Member,
    }
}

/// That the hub's cluster of our name is another, if it is.
pub fn stranger(cluster: &Value, own_id: &str) -> Option<String> {
    let id = agents_id(cluster).filter(|id| !own_id.is_empty() && *id != own_id)?;
    let name = cluster.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    Some(format!("another cluster has the name {name} there; its id is {id}, and ours is {own_id}"))
}

/// By what the agent of a cluster says that it is known. What the cluster claims itself
/// ([`cleat_api::managedcluster::ID_CLAIM`]) may be anything.
fn agents_id(cluster: &Value) -> Option<&str> {
    let annotations = cluster.pointer("/metadata/annotations");
    let came_with = annotations.and_then(|all| all.get(CLUSTER_ID));
    let claims = cluster.pointer("/status/clusterClaims").and_then(Value::as_array);
    let named = |claim: &&Value| claim.get("name").is_some_and(|name| name == CLUSTER_ID_CLAIM);
    let claimed = claims.into_iter().flatten().find(named).and_then(|claim| claim.get("value"));
    [came_with, claimed].into_iter().flatten().filter_map(Value::as_str).find(|id| !id.is_empty())
}

/// What is to become of everything when the cluster leaves, if its hub knows about that.
pub fn declared(cluster: &Value) -> Option<RemoveStrategy> {
    match cluster.pointer("/spec/removeStrategy").and_then(Value::as_str)? {
        "Required" => Some(RemoveStrategy::Required),
        // What a later version may say must not delete anything.
        _ => Some(RemoveStrategy::Needless),
    }
}

/// What a look at everything that could be held found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// What is still held, in words such as `2 ledgers of works`; nothing if nothing is.
    pub what: Option<String>,
    /// Why that could not be found out.
    pub unknown: Option<String>,
    /// What stays and is told by nothing else: what the agent itself leaves there, and what it had from
    /// the hub that the hub does not have any more.
    pub left: Vec<LeftObject>,
}

/// How many objects the hub is told of at a time: the status that tells them has to be stored.
const MOST: usize = 3000;

/// Whose something was.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    Work(String),
    Policy(String),
}

impl Source {
    /// Works mark what they bring, and policies do not.
    fn of(object: &LeftObject) -> Self {
        let name = object.source.clone();
        if object.unmarked { Self::Policy(name) } else { Self::Work(name) }
    }
}

/// What stays of works and policies that the hub does not have any more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Besides {
    pub left: Vec<LeftObject>,
    /// For how many objects there is no room before the hub has written down what it was told. Whoever
    /// holds those goes on holding them.
    pub untold: usize,
}

/// What the hub is to hear of such works and policies. `told` is what it has heard: whoever let go of
/// something on the strength of it will not say it again, so it stays told until it is `on_record`.
/// `stranded` is what is there now.
pub fn besides(
    told: &[LeftObject],
    on_record: &BTreeSet<LeftObject>,
    stranded: &BTreeMap<Source, Vec<LeftObject>>,
) -> Besides {
    fitting(told, on_record, stranded, MOST)
}

/// The same where there is room for so `many`.
pub(super) fn fitting(
    told: &[LeftObject],
    on_record: &BTreeSet<LeftObject>,
    stranded: &BTreeMap<Source, Vec<LeftObject>>,
    many: usize,
) -> Besides {
    let known: BTreeSet<_> = told.iter().map(record::key).collect();
    let written: BTreeSet<_> = on_record.iter().map(record::key).collect();
    let is_known = |one: &LeftObject| known.contains(&record::key(one));
    let is_written = |one: &LeftObject| written.contains(&record::key(one));
    let is_earlier =
        |one: &&LeftObject| !is_ground(one) && !stranded.contains_key(&Source::of(one));
    let earlier = told.iter().filter(is_earlier);
    let now = stranded.values().flatten().filter(|one| is_known(one) || !is_written(one));
    let mut all: BTreeSet<&LeftObject> = earlier.chain(now).collect();
    let mut untold = 0;
    if all.len() > many {
        // What is written down makes room for the rest.
        all.retain(|one| !is_written(one));
        let (said, new): (Vec<_>, Vec<_>) = all.into_iter().partition(|one| is_known(one));
        let room = many.saturating_sub(said.len());
        untold = new.len().saturating_sub(room);
        all = said.into_iter().chain(new.into_iter().take(room)).collect();
    }
    Besides { left: all.into_iter().cloned().collect(), untold }
}

/// What is said of objects that wait for room.
pub fn waiting(untold: usize) -> Option<String> {
    let objects = number(untold, "object that stays is", "objects that stay are");
    (untold > 0).then(|| {
        format!(
            "; {objects} told when the hub has written down the {MOST} before, which a hub that is \
             older than the agent never does"
        )
    })
}

/// Whether the hub says that everything that it was told stays is written down.
pub fn is_on_record(cluster: &ManagedCluster) -> bool {
    let left = cluster.status.as_ref().map(|status| status.left.as_slice()).unwrap_or_default();
    let said = cluster.metadata.annotations.as_ref().and_then(|all| all.get(ON_RECORD));
    !left.is_empty() && said.is_some_and(|said| *said == record::receipt_of_all(left))
}

/// How many policies are named.
const NAMED: usize = 5;

/// What is said of policies that cannot say what stays of them, or wait for something: of each what it
/// does, and why.
pub fn unsaid(mute: &BTreeMap<String, String>) -> Option<String> {
    let said = mute.iter().take(NAMED);
    let said = said.map(|(name, what)| format!("policy {name} {what}"));
    let mut said: Vec<String> = said.collect();
    if mute.len() > NAMED {
        said.push(format!("and {} more", mute.len() - NAMED));
    }
    (!said.is_empty()).then(|| format!("; {}", said.join("; ")))
}

/// Whether the hub accepted a report and keeps nothing of what was told to stay: its definition of
/// clusters is older.
pub fn is_dropped(held: &Held, answer: &Value) -> bool {
    let kept = answer.pointer("/status/left").and_then(Value::as_array);
    !held.left.is_empty() && answer.is_object() && kept.is_none_or(Vec::is_empty)
}

/// What to tell the hub of a cluster that is leaving, if it does not know it.
pub fn report(cluster: &ManagedCluster, held: &Held, now: Timestamp) -> Option<Action> {
    cluster.metadata.deletion_timestamp.as_ref()?;
    let strategy = cluster.spec.remove_strategy;
    let ManagedClusterStatus { conditions: before, left: known, .. } =
        cluster.status.clone().unwrap_or_default();
    // The right to look goes with the namespace on the hub, which goes once everything was seen
    // released; that nobody can look any more takes nothing back.
    let told = condition::find(&before, kind::RELEASED).is_some_and(|told| {
        told.reason == strategy.as_str() && condition::holds(&before, kind::RELEASED)
    });
    if told && held.unknown.is_some() {
        return None;
    }
    let mut conditions = before.clone();
    let done = match strategy {
        RemoveStrategy::Needless => "released",
        RemoveStrategy::Required => "removed",
    };
    let (status, message) = match held {
        Held { unknown: Some(why), .. } => {
            (Status::False, format!("Whether everything is {done} cannot be seen: {why}"))
        }
        Held { what: Some(what), .. } => {
            (Status::False, format!("Not everything is {done}: {what}."))
        }
        Held { what: None, unknown: None, .. } => {
            (Status::True, format!("Everything is {done}, as a look at the cluster showed."))
        }
    };
    let said = Said { kind: kind::RELEASED, status, reason: strategy.as_str(), message };
    condition::say(&mut conditions, said, cluster.metadata.generation, now);
    let left = if held.unknown.is_some() { &known } else { &held.left };
    if conditions == before && *left == known {
        return None;
    }
    let patch = json!({
        "metadata": {
            "uid": cluster.metadata.uid, "resourceVersion": cluster.metadata.resource_version,
        },
        "status": { "conditions": conditions, "left": left },
    });
    let name = cluster.metadata.name.as_deref().unwrap_or_default().to_string();
    Some(Action { side: Side::Hub, target: target(&name), write: Write::MergeStatus(patch) })
}
