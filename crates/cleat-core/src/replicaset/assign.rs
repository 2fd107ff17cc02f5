//! Which work is for which cluster and placement, and which works are for none.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use jiff::Timestamp;

use super::child::{self, Child};
use super::{Decided, Observed};
use crate::placement::Early;

/// A place for one work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Slot<'a> {
    pub(super) placement: &'a str,
    pub(super) cluster: &'a str,
}

pub(super) struct Assigned<'a> {
    /// Every place that settled placements ask for, with the work that fills it.
    pub(super) slots: BTreeMap<Slot<'a>, Option<&'a Child>>,
    /// Works that no settled placement has a place for.
    pub(super) rest: Vec<&'a Child>,
}

impl<'a> Assigned<'a> {
    /// None if the works are not known.
    pub(super) fn of(seen: &'a Observed) -> Option<Self> {
        let mut slots: BTreeMap<Slot<'a>, Option<&'a Child>> = BTreeMap::new();
        let mut names: BTreeMap<String, &'a str> = BTreeMap::new();
        for reference in &seen.set.placements {
            let placement = &*reference.name;
            names.insert(child::name(&seen.set, placement), placement);
            let groups = seen.placements.get(placement).map(Decided::groups).unwrap_or_default();
            for cluster in groups.iter().flat_map(|group| &group.clusters) {
                slots.insert(Slot { placement, cluster }, None);
            }
        }
        let mut children: Vec<&'a Child> =
            seen.children.as_ref()?.iter().map(|one| &**one).collect();
        // Of two works for one place the older stays, as it is the likelier to be applied.
        children.sort_by(|a, b| {
            (a.deleting, a.created, &a.cluster, &a.name)
                .cmp(&(b.deleting, b.created, &b.cluster, &b.name))
        });
        let mut rest = Vec::new();
        for child in children {
            // A name that only we give says more than a label that anybody may change.
            let placement = names.get(&child.name).copied().unwrap_or_else(|| child.placement());
            match slots.get_mut(&Slot { placement, cluster: &child.cluster }) {
                Some(place @ None) => *place = Some(child),
                _ => rest.push(child),
            }
        }
        Some(Self { slots, rest })
    }

    /// The works that may go now.
    pub(super) fn removable(&self, seen: &'a Observed) -> impl Iterator<Item = &'a Child> {
        let left = self.left(seen).filter(|child| hold(seen, child).is_none());
        left.collect::<Vec<_>>().into_iter()
    }

    /// The works that would go if their clusters could be reached, and what each waits for.
    pub(super) fn held(&self, seen: &'a Observed) -> Vec<(&'a Child, Hold)> {
        self.left(seen).filter_map(|child| Some((child, hold(seen, child)?))).collect()
    }

    fn left(&self, seen: &'a Observed) -> impl Iterator<Item = &'a Child> {
        let settled = |name: &String| seen.placements.get(name).is_some_and(Decided::is_settled);
        let known = !seen.set.placements.is_empty()
            && seen.set.placements.iter().all(|reference| settled(&reference.name));
        let mut wanted: BTreeSet<&str> = BTreeSet::new();
        let mut held: BTreeSet<&str> = BTreeSet::new();
        for (slot, child) in &self.slots {
            wanted.insert(slot.cluster);
            if child.is_some_and(|child| !child.deleting && child.is_applied()) {
                held.insert(slot.cluster);
            }
        }
        let rest: Vec<&'a Child> = if known { self.rest.clone() } else { Vec::new() };
        rest.into_iter().filter(move |child| {
            let cluster = &*child.cluster;
            !child.deleting && (!wanted.contains(cluster) || held.contains(cluster))
        })
    }
}

/// What a work waits for that nobody asks for any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    /// Its cluster cannot be reached.
    Away,
    /// It has just come back.
    Back(Timestamp),
    /// Who decides has not looked since it was away.
    Unnoticed,
}

fn hold(seen: &Observed, child: &Child) -> Option<Hold> {
    // Whoever took the placement out of the set, or gave the cluster another work, meant it.
    let left = |name: &str| {
        let decided = seen.placements.get(name).map(Decided::groups).unwrap_or_default();
        !decided.iter().any(|group| group.clusters.contains(&child.cluster))
    };
    let names = seen.set.placements.iter().map(|reference| &*reference.name);
    let of = |name: &str| name == child.placement() || child::name(&seen.set, name) == child.name;
    if !names.clone().any(of) || !names.clone().all(left) {
        return None;
    }
    let cluster = seen.clusters.get(&child.cluster)?;
    if cluster.is_away() {
        return Some(Hold::Away);
    }
    match seen.sightings.early(seen.now, cluster, names.map(Some))? {
        Early::Back(until) => Some(Hold::Back(until)),
        Early::Unnoticed(_) => Some(Hold::Unnoticed),
    }
}
