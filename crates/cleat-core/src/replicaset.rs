//! The story of one ManifestWorkReplicaSet: a work in the namespace of every cluster that its
//! placements choose, changed in the order its rollout strategies ask for, and taken away again.
//!
//! What users may rely on:
//! - *A cluster that leaves a decision loses its work.* So it does when a decision is validly empty:
//!   the placement exists and decided for no cluster. A placement that is taken out of the set
//!   counts the same.
//! - *Nothing is deleted for lack of knowledge.* While any placement of the set is missing, is being
//!   deleted, cannot be read, has not decided, or lists fewer clusters than it says it chose, no
//!   work of the set is deleted, and `PlacementVerified` says why.
//! - *A cluster that cannot be reached loses nothing for that.* Its work is held, `PlacementVerified`
//!   says so, and what the placement decides counts again once the cluster is back. Whoever wants it
//!   gone before deletes the work.
//! - *A set whose definition goes lets go of its works*: they stay, and a set of the same name finds
//!   them by their label.
//! - *No gap.* A work that is replaced (because its placement was exchanged for another, or because
//!   there are two) goes only after the one that stays is applied on the same cluster.
//! - *One work per cluster and placement.* Its name follows from set and placement, so crashes, old
//!   views and a second hub meet the first work instead of making another. Works that OCM made under
//!   generated names are found by their labels and kept.
//! - *Changes by hand are undone at once*, whoever's turn it is: they are no part of a rollout.
//! - A work without the set's label is not ours. It is never changed or deleted, also when it is in
//!   the way; the status says so.
//!
//! Not decided here: what agents do with a work, and which clusters a placement chooses.

mod assign;
mod child;
mod condition;
mod decided;
pub mod outlook;
mod report;
mod set;
mod template;

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use alloc::{format, vec};

use cleat_api::manifestworkreplicaset::FINALIZER;
use jiff::Timestamp;
use serde_json::json;

use self::assign::{Assigned, Slot};
use self::child::Content;
pub use self::child::{Child, TEMPLATE, TEMPLATE_SINCE, Told, Truth};
pub use self::decided::Decided;
pub use self::report::{Verdict, report};
pub use self::set::{Cascade, Reference, Set};
use crate::placement::{Cluster, Sightings};
use crate::rollout::{self, Progress, Rollout, Standing};
use crate::write::{Action, Plan, Side, Write};

/// Everything `plan` may look at.
#[derive(Clone, Debug)]
pub struct Observed {
    pub now: Timestamp,
    pub set: Set,
    /// Of the placements the set refers to. One that is missing here was not looked at.
    ///
    /// A plan that deletes is carried out only if it was made from decisions that a server just
    /// gave, after them the placement, and the clusters: watches of several kinds tell in any order.
    pub placements: BTreeMap<String, Decided>,
    /// The works with the set's label; none if they could not be listed.
    ///
    /// For a set that is being deleted this must be what the server said after the last write of
    /// ours ended, not what a watch told some time ago: it decides that nothing is left.
    pub children: Option<Vec<Arc<Child>>>,
    /// The clusters that have a work, as far as there are such. The same holds for them.
    pub clusters: BTreeMap<String, Arc<Cluster>>,
    /// What was seen of them, and of the placements of the set's namespace: from before a server
    /// was asked for decisions.
    pub sightings: Sightings,
    /// The definition of sets is going or gone. Of a set that is being deleted this must be known.
    pub undefined: bool,
    /// What failed lately, and how often in a row.
    pub setbacks: Setbacks,
}

/// By cluster and name of the work.
pub type Setbacks = BTreeMap<(String, String), Setback>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setback {
    pub attempts: u32,
    /// Empty where there is nothing to tell anybody.
    pub message: String,
    /// When it first failed.
    pub since: Timestamp,
}

/// How many works are written in one pass. Each write holds a whole template, so this bounds memory;
/// the next pass goes on where this one ended.
const BATCH: usize = 64;

/// What should happen next. An empty plan: nothing to do now.
pub fn plan(seen: &Observed) -> Plan {
    match (seen.set.deleting, seen.set.has_finalizer()) {
        (true, false) => vec![],
        (true, true) => retire(seen),
        // The finalizer comes back to us as an event, and that event starts the work.
        (false, false) => vec![vec![add_finalizer(&seen.set)]],
        (false, true) => deploy(seen),
    }
}

fn deploy(seen: &Observed) -> Plan {
    let mut intents = intents(seen);
    let attempts = |intent: &Intent<'_>| {
        seen.setbacks.get(&intent.key(&seen.set)).map_or(0, |setback| setback.attempts)
    };
    // What failed before goes last, so that it cannot keep others waiting.
    intents.sort_by_key(attempts);
    let step: Vec<Action> =
        intents.iter().take(BATCH).filter_map(|intent| intent.action(seen)).collect();
    if step.is_empty() { vec![] } else { vec![step] }
}

fn retire(seen: &Observed) -> Plan {
    if seen.undefined {
        return vec![vec![remove_finalizer(&seen.set)]];
    }
    let Some(children) = &seen.children else { return vec![] };
    let alive = children.iter().filter(|child| !child.deleting);
    let delete: Vec<Action> = alive.map(|child| child.delete()).collect();
    let last = match seen.set.cascade {
        Cascade::Background => true,
        Cascade::Foreground => children.is_empty(),
    };
    let last = if last { vec![remove_finalizer(&seen.set)] } else { vec![] };
    [delete, last].into_iter().filter(|step| !step.is_empty()).collect()
}

/// Whether the plan takes anything away from a set that stays.
pub fn removes(seen: &Observed, plan: &Plan) -> bool {
    let deletes = |action: &Action| matches!(action.write, Write::Delete { .. });
    !seen.set.deleting && plan.iter().flatten().any(deletes)
}

/// What one work needs.
enum Intent<'a> {
    Create(Slot<'a>),
    Repair(Slot<'a>, &'a Child, Content),
    Delete(&'a Child),
}

impl Intent<'_> {
    fn key(&self, set: &Set) -> (String, String) {
        match self {
            Self::Create(slot) => (slot.cluster.into(), child::name(set, slot.placement)),
            Self::Repair(_, child, _) | Self::Delete(child) => {
                (child.cluster.clone(), child.name.clone())
            }
        }
    }

    fn action(&self, seen: &Observed) -> Option<Action> {
        match self {
            Self::Create(slot) => {
                Some(child::create(&seen.set, slot.placement, slot.cluster, seen.now))
            }
            Self::Repair(slot, child, content) => {
                child.repair(&seen.set, slot.placement, *content, seen.now)
            }
            Self::Delete(child) => Some(child.delete()),
        }
    }
}

/// Everything that is not yet as it should be and may be changed now, in a fixed order.
fn intents(seen: &Observed) -> Vec<Intent<'_>> {
    if seen.set.is_too_long() {
        return vec![];
    }
    let Some(assigned) = Assigned::of(seen) else { return vec![] };
    let rollouts = rollouts(seen, &assigned);
    let mut intents = vec![];
    for (slot, child) in &assigned.slots {
        let standing = rollouts.get(slot.placement).and_then(|at| at.standing.get(slot.cluster));
        let due = standing == Some(&Standing::Due);
        match child {
            None if due => intents.push(Intent::Create(*slot)),
            None => {}
            Some(child) if child.deleting => {}
            Some(child) => {
                let content = match (child.is_altered(&seen.set), due) {
                    (true, _) => Content::Restore,
                    (false, true) => Content::New,
                    (false, false) => Content::Leave,
                };
                if child.needs(&seen.set, slot.placement, content) {
                    intents.push(Intent::Repair(*slot, child, content));
                }
            }
        }
    }
    intents.extend(assigned.removable(seen).map(Intent::Delete));
    intents
}

/// How far each placement has come. One whose strategy cannot be read does not move.
fn rollouts<'a>(seen: &'a Observed, assigned: &Assigned<'a>) -> BTreeMap<&'a str, Rollout> {
    let mut progress: BTreeMap<&str, BTreeMap<String, Progress>> = BTreeMap::new();
    for (slot, child) in &assigned.slots {
        let fares = child.map_or(Progress::Pending, |child| child.progress(&seen.set));
        progress.entry(slot.placement).or_default().insert(slot.cluster.into(), fares);
    }
    let mut rollouts = BTreeMap::new();
    for reference in &seen.set.placements {
        let (Ok(strategy), Some(decided)) =
            (&reference.strategy, seen.placements.get(&reference.name))
        else {
            continue;
        };
        let progress = progress.remove(&*reference.name).unwrap_or_default();
        let rollout = rollout::advance(strategy, decided.groups(), &progress, seen.now);
        rollouts.insert(&*reference.name, rollout);
    }
    rollouts
}

fn add_finalizer(set: &Set) -> Action {
    let mut finalizers = set.finalizers.clone();
    finalizers.push(FINALIZER.into());
    set_finalizers(set, finalizers)
}

fn remove_finalizer(set: &Set) -> Action {
    let others = set.finalizers.iter().filter(|name| *name != FINALIZER);
    set_finalizers(set, others.cloned().collect())
}

/// The list is written whole, so it must be the one that was read.
fn set_finalizers(set: &Set, finalizers: Vec<String>) -> Action {
    let patch = json!({ "metadata": {
        "uid": set.uid, "resourceVersion": set.resource_version, "finalizers": finalizers,
    } });
    Action { side: Side::Hub, target: set.target(), write: Write::Merge(patch) }
}

/// A few names and how many more there are.
fn some<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    const SHOWN: usize = 3;
    let names: Vec<&str> = names.into_iter().collect();
    let shown = names.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    match names.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        Some(more) => format!("{shown} and {more} more"),
        None => shown,
    }
}

#[cfg(test)]
mod histories;
#[cfg(test)]
mod tests;
