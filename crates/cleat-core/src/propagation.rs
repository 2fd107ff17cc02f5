//! The story of one root policy: a replica in the namespace of every cluster it is bound to, kept as
//! the root says, taken away again, and what the clusters report gathered in the root's status.
//!
//! What users may rely on:
//! - *A cluster that leaves a decision loses its replica*, and so does every cluster when the root is
//!   disabled or gone, when the binding goes, or when the placement goes.
//! - *A cluster that cannot be reached loses nothing for that.* Its replica is held, the root's
//!   status says so, and what the placement decides counts again once the cluster is back. Whoever
//!   wants it gone before deletes the replica.
//! - *Nothing is deleted for lack of knowledge*: while any placement the policy is bound to has not
//!   decided, is half written or cannot be read, no replica of the policy is deleted. Neither is one
//!   because what placed it went along with the definition of its kind.
//! - *What is wrong on one cluster holds up no other.*
//! - A cluster that leaves the fleet is another story's, and so is what it has.
//! - A replica is known by its label and name. Policies without the label are never touched, and
//!   neither is anything in a namespace that is not that of a cluster.
//! - A replica that is being deleted and does not go is in the root's status, with what its cluster
//!   says about it, until it is gone.
//!
//! Not decided here: which clusters placements choose, and what agents do with replicas. Templates
//! are resolved elsewhere and handed in.

mod bind;
mod content;
mod event;
pub mod outlook;
mod policyset;
mod replica;
mod report;
mod root;
mod rotation;
mod tell;
mod unresolved;

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use alloc::{format, vec};

use jiff::Timestamp;

pub use self::bind::{Binding, Source};
use self::bind::{Links, Placed};
use self::content::Contents;
pub use self::content::{Resolved, definitions, has_hub_templates, sets_depended_on};
pub use self::event::{Event, events};
pub use self::policyset::{PolicySet, Standing, report_set};
pub use self::replica::Replica;
use self::replica::Wanted;
pub use self::report::{Verdict, report};
pub use self::root::Root;
pub use self::rotation::{EncryptionKey, rotate};
pub use self::tell::{Few, Said, Spent, Told, few, written};
pub use self::unresolved::unresolved;

use crate::placement::{Cluster, Early, Sightings};
use crate::replicaset::Decided;
use crate::write::{Action, Plan, Write};

/// Everything `plan` may look at.
#[derive(Clone, Debug)]
pub struct Observed {
    pub now: Timestamp,
    /// Namespace and name of the root.
    pub key: (String, String),
    /// None: a server said that there is none.
    pub root: Option<Arc<Root>>,
    /// All bindings of the root's namespace.
    pub bindings: Vec<Arc<Binding>>,
    /// Sets of policies by namespace and name: those of the root's namespace, and whichever the
    /// root depends on.
    pub sets: BTreeMap<(String, String), Arc<PolicySet>>,
    /// What the bindings refer to. One that is missing here was not looked at.
    ///
    /// A plan that deletes is carried out only if it was made from what a server just said of the
    /// root, the bindings, the sets, the decisions and the clusters that lose their replica: watches
    /// of several kinds tell in any order.
    pub decided: BTreeMap<Source, Decided>,
    /// The clusters of the hub.
    pub clusters: BTreeMap<String, Arc<Cluster>>,
    /// What was seen of them, and of the placements of the root's namespace: from before a server
    /// was asked for decisions.
    pub sightings: Sightings,
    /// The replicas of the root, by cluster.
    pub replicas: BTreeMap<String, Arc<Replica>>,
    /// The root's templates for each cluster, if it has templates to be resolved on the hub.
    pub resolved: BTreeMap<String, Resolved>,
    /// Whether it was.
    pub asked: Asked,
    /// Since when something is not known that keeps a replica from going.
    pub unsure_since: Option<Timestamp>,
    /// What failed lately.
    pub setbacks: Setbacks,
    /// What was said of clusters lately.
    pub told: Told,
}

/// Whether a server was asked for all that decides what goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Asked {
    #[default]
    NotYet,
    /// It was, in vain.
    Failed(String),
    /// It was, and these kinds are defined since then. What is not there was taken along by an older
    /// definition, for all anybody knows, where a replica is older than the definition.
    Since {
        bindings: Timestamp,
        sets: Timestamp,
        placements: Timestamp,
        /// A hub may do without the kind. None: its definition is going, or gone.
        rules: Option<Timestamp>,
    },
}

/// By cluster.
pub type Setbacks = BTreeMap<String, Setback>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setback {
    pub attempts: u32,
    /// Empty where there is nothing to tell anybody.
    pub message: String,
}

/// How many replicas are written in one pass; the next pass goes on where this one ended.
const BATCH: usize = 64;

/// What a replica waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Hold {
    /// The cluster cannot be reached.
    Away,
    /// It has just come back.
    Back(Timestamp),
    /// Who decides has not looked since it was away.
    Unnoticed(String),
    /// It leaves the fleet. What becomes of all it has is part of that story.
    Leaving,
    /// Something is not known.
    Unsure(String),
    /// The namespace is not that of a cluster.
    Foreign,
}

/// What one cluster needs.
enum Intent<'a> {
    Create(&'a str, Wanted<'a>),
    Update(&'a Replica, Wanted<'a>),
    Delete(&'a Replica),
}

impl Intent<'_> {
    fn cluster(&self) -> &str {
        match self {
            Self::Create(cluster, _) => cluster,
            Self::Update(replica, _) | Self::Delete(replica) => &replica.cluster,
        }
    }

    /// None if its content is not at hand.
    fn action(&self) -> Option<Action> {
        match self {
            Self::Create(_, wanted) => wanted.create(),
            Self::Update(replica, wanted) => wanted.replace(replica),
            Self::Delete(replica) => Some(replica.delete()),
        }
    }
}

/// What should happen next. An empty plan: nothing to do now.
pub fn plan(seen: &Observed) -> Plan {
    let mut intents = intents(seen, &Spread::of(seen));
    let attempts = |cluster: &str| seen.setbacks.get(cluster).map_or(0, |setback| setback.attempts);
    // What failed before goes last, so that it cannot keep others waiting.
    intents.sort_by_key(|intent| attempts(intent.cluster()));
    let step: Vec<Action> = intents.iter().take(BATCH).filter_map(Intent::action).collect();
    if step.is_empty() { vec![] } else { vec![step] }
}

/// Whether the plan takes anything away.
pub fn removes(plan: &Plan) -> bool {
    plan.iter().flatten().any(|action| matches!(action.write, Write::Delete { .. }))
}

/// The clusters whose templates must be resolved to say what they need.
pub fn placed_clusters(seen: &Observed) -> Vec<String> {
    let spread = Spread::of(seen);
    let known = spread.placed.into_keys().filter(|cluster| seen.clusters.contains_key(*cluster));
    known.map(Into::into).collect()
}

/// Where the root goes, as far as that is known.
struct Spread<'a> {
    /// None if it goes nowhere, because somebody said so.
    root: Option<&'a Root>,
    links: Links<'a>,
    placed: BTreeMap<&'a str, Placed<'a>>,
}

impl<'a> Spread<'a> {
    fn of(seen: &'a Observed) -> Self {
        let root = seen.root.as_deref();
        let links = Links::of(seen);
        match root.filter(|root| root.is_spread()) {
            Some(root) => Self { root: Some(root), placed: links.placed(), links },
            None => Self { root: None, placed: BTreeMap::new(), links },
        }
    }

    /// Why a replica of a cluster that was not chosen stays.
    fn hold(&self, seen: &Observed, replica: &Replica) -> Option<Hold> {
        let Some(cluster) = seen.clusters.get(&replica.cluster) else { return Some(Hold::Foreign) };
        if cluster.deleting {
            return Some(Hold::Leaving);
        }
        if let Asked::Failed(why) = &seen.asked {
            return Some(Hold::Unsure(why.clone()));
        }
        self.root?;
        if let Some(why) = self.links.doubt().or_else(|| self.lost(seen, replica)) {
            return Some(Hold::Unsure(why));
        }
        // Nothing binds it any more: somebody took it away from everywhere.
        if self.links.is_empty() {
            return None;
        }
        if cluster.is_away() {
            return Some(Hold::Away);
        }
        match seen.sightings.early(seen.now, cluster, self.links.placements())? {
            Early::Back(until) => Some(Hold::Back(until)),
            Early::Unnoticed(name) => Some(Hold::Unnoticed(format!(
                "Placement {name} was not decided since the cluster was out of reach, or since the \
                 hub began to look"
            ))),
        }
    }

    /// What is missing that may have placed the replica, and was perhaps not taken away by anybody:
    /// its kind was.
    fn lost(&self, seen: &Observed, replica: &Replica) -> Option<String> {
        let Asked::Since { bindings, sets, placements, rules } = &seen.asked else { return None };
        let younger = |since: &Timestamp| replica.created.is_none_or(|created| *since > created);
        let lost = |what: String| {
            Some(format!(
                "{what}, and the definition of that kind is younger than the copy: make it anew, or \
                 delete Policy {}/{}",
                replica.cluster, replica.name
            ))
        };
        let mut named = seen.bindings.iter().flat_map(|binding| &binding.sets);
        let gone =
            named.find(|name| !seen.sets.contains_key(&(seen.key.0.clone(), (*name).clone())));
        if let Some(set) = gone.filter(|_| younger(sets)) {
            return lost(format!("there is no PolicySet {set}"));
        }
        if self.links.is_empty() && younger(bindings) {
            return lost("there is no PlacementBinding of it".into());
        }
        let gone = self.links.missing().find(|source| match source {
            Source::Placement(_) => younger(placements),
            Source::Rule(_) => rules.as_ref().is_none_or(younger),
        })?;
        match (gone, rules) {
            (Source::Rule(_), None) => Some(format!(
                "there is no {gone}, and the definition of that kind is going or gone, and its \
                 objects with it"
            )),
            _ => lost(format!("there is no {gone}")),
        }
    }
}

/// Everything that is not yet as it should be and may be changed now, in the order of clusters.
fn intents<'a>(seen: &'a Observed, spread: &Spread<'a>) -> Vec<Intent<'a>> {
    let mut intents = vec![];
    if let Some(root) = spread.root {
        let mut contents = Contents::new(seen, root);
        for (cluster, how) in &spread.placed {
            let replica = seen.replicas.get(*cluster).map(|replica| &**replica);
            if replica.is_some_and(|replica| replica.deleting) {
                continue;
            }
            let Some(wanted) = wanted(seen, root, cluster, how, &mut contents) else { continue };
            match replica {
                None => intents.push(Intent::Create(cluster, wanted)),
                Some(replica) if wanted.differs(replica) => {
                    intents.push(Intent::Update(replica, wanted));
                }
                Some(_) => {}
            }
        }
    }
    for replica in seen.replicas.values().filter(|replica| !replica.deleting) {
        let placed = spread.placed.contains_key(&*replica.cluster);
        if !placed && spread.hold(seen, replica).is_none() {
            intents.push(Intent::Delete(replica));
        }
    }
    intents
}

/// What a cluster's replica is to be; none while that cannot be said.
fn wanted<'a>(
    seen: &'a Observed,
    root: &'a Root,
    cluster: &'a str,
    how: &Placed<'a>,
    contents: &mut Contents<'a>,
) -> Option<Wanted<'a>> {
    let replica = seen.replicas.get(cluster);
    // Enforcing is not taken back because a decision cannot be read.
    if how.maybe_enforced && how.enforce.is_none() && replica.is_some() {
        return None;
    }
    // Where there is no such cluster, or it leaves, there is nobody to carry it out.
    if replica.is_none() && seen.clusters.get(cluster).is_none_or(|cluster| cluster.deleting) {
        return None;
    }
    let (content, iv) = contents.of(cluster, how.enforce)?;
    let kept = replica.and_then(|replica| replica.iv.as_deref());
    Some(Wanted::new(root, cluster, content, iv.or(kept)))
}

/// The name of a root's replicas.
pub fn replica_name(key: &(String, String)) -> String {
    format!("{}.{}", key.0, key.1)
}

#[cfg(test)]
mod tests;
