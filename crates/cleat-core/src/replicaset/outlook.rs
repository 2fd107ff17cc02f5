//! What would become of a set's works if the set, or what its placements decide, were another.
//!
//! It is the planner's own assignment of works to clusters, about a world in which that has happened.
//! Rollouts are foreseen as finished: whose turn comes later is told, but not when.

use alloc::borrow::ToOwned as _;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use super::assign::{Assigned, Hold, Slot};
use super::child::{self, Child, Content};
use super::{Decided, Observed, rollouts, some};
use crate::rollout::Standing;

/// One work, and what would become of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Foreseen {
    pub cluster: String,
    pub name: String,
    pub prospect: Prospect,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prospect {
    Create(Given),
    Change(Given),
    Unchanged,
    Delete,
    /// It goes when something else has happened.
    DeleteLater(String),
    Stays(String),
}

/// What a work is given besides the template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// All labels it has then.
    pub labels: BTreeMap<String, String>,
    /// Its turn comes later, as the rollout has it.
    pub later: bool,
}

/// The outlook for every work that the set has or would have, or why there is none.
pub fn outlook(seen: &Observed) -> Result<Vec<Foreseen>, String> {
    if seen.set.deleting {
        return Err("it is being deleted, and what it says changes nothing any more".to_owned());
    }
    if seen.set.is_too_long() {
        return Err(
            "its name, or that of a placement, is too long for the labels of works".to_owned()
        );
    }
    let assigned = Assigned::of(seen).ok_or("its works could not be listed")?;
    let rollouts = rollouts(seen, &assigned);
    let mut all = Vec::new();
    for (slot, child) in &assigned.slots {
        let standing = rollouts.get(slot.placement).map(|at| at.standing.get(slot.cluster));
        let strategy = seen.set.placements.iter().find(|one| one.name == slot.placement);
        let invalid = strategy.and_then(|one| one.strategy.as_ref().err());
        let due = standing.flatten() == Some(&Standing::Due);
        let name = child::name(&seen.set, slot.placement);
        // The successor of one that is on its way out has the name that follows from its place.
        let child = match child {
            Some(going) if going.deleting && going.name != name => {
                all.push(foreseen(going, going_already()));
                None
            }
            child => *child,
        };
        let prospect = match invalid {
            Some(invalid) => Prospect::Stays(format!("nothing is rolled out: {invalid}")),
            None => filled(seen, slot, child, due),
        };
        let name = child.map_or(name, |child| child.name.clone());
        all.push(Foreseen { cluster: slot.cluster.to_owned(), name, prospect });
    }
    let going: BTreeSet<(&str, &str)> = assigned.removable(seen).map(key).collect();
    let held = assigned.held(seen);
    for child in assigned.rest.iter().copied() {
        let hold = held.iter().find(|(one, _)| key(one) == key(child)).map(|(_, hold)| *hold);
        all.push(foreseen(child, left(seen, child, going.contains(&key(child)), hold)));
    }
    Ok(all)
}

fn foreseen(child: &Child, prospect: Prospect) -> Foreseen {
    Foreseen { cluster: child.cluster.clone(), name: child.name.clone(), prospect }
}

fn going_already() -> Prospect {
    Prospect::Stays("it is being deleted already".to_owned())
}

fn key(child: &Child) -> (&str, &str) {
    (&child.cluster, &child.name)
}

/// Of the work for a place that a placement asks for.
fn filled(seen: &Observed, slot: &Slot<'_>, child: Option<&Child>, due: bool) -> Prospect {
    let mut labels = child::wanted_labels(&seen.set, slot.placement);
    let Some(child) = child else { return Prospect::Create(Given { labels, later: !due }) };
    if child.deleting {
        return Prospect::Stays("it is being deleted, and is made anew when it is gone".to_owned());
    }
    // What somebody changed by hand is put back whoever's turn it is.
    let altered = child.is_altered(&seen.set);
    let content = if altered { Content::Restore } else { Content::New };
    if !child.needs(&seen.set, slot.placement, content) {
        return Prospect::Unchanged;
    }
    for (key, value) in &child.labels {
        labels.entry(key.clone()).or_insert_with(|| value.clone());
    }
    let later = !due && !altered && child.spec != seen.set.digest;
    Prospect::Change(Given { labels, later })
}

/// Of a work that no placement asks for.
fn left(seen: &Observed, child: &Child, going: bool, hold: Option<Hold>) -> Prospect {
    if child.deleting {
        return going_already();
    }
    if going {
        return Prospect::Delete;
    }
    match hold {
        Some(Hold::Away) => {
            return Prospect::DeleteLater("once the cluster can be reached again".to_owned());
        }
        Some(Hold::Back(_) | Hold::Unnoticed) => return Prospect::Delete,
        None => {}
    }
    let settled = |name: &str| seen.placements.get(name).is_some_and(Decided::is_settled);
    let names = seen.set.placements.iter().map(|reference| &*reference.name);
    let unknown: Vec<&str> = names.filter(|name| !settled(name)).collect();
    match (seen.set.placements.is_empty(), unknown.is_empty()) {
        (true, _) => {
            Prospect::Stays("the set names no placement, which takes nothing away".to_string())
        }
        (false, false) => Prospect::Stays(format!(
            "no work is deleted while it is not known what {} decided",
            some(unknown)
        )),
        (false, true) => {
            Prospect::DeleteLater("when the work that takes its place is applied".to_owned())
        }
    }
}
