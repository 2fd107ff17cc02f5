//! Which works go first: those that need something go before those that bring it, and those of which
//! somebody said so before all others.
//!
//! Inside a work the agent keeps the order of kinds. Between works only two needs can be told: an object
//! needs its namespace, and a custom resource its definition. What serves finalizers, and is
//! protected, refuses to go by itself until it is needed no more; any other order is for their owner to
//! say ([`CLEANUP_PRIORITY`](super::carried::CLEANUP_PRIORITY)).

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use super::carried::{Carried, Kind};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Ground<'a> {
    Namespace(&'a str),
    /// Resource and group.
    Definition(&'a str, &'a str),
}

/// The places in `carried` of what may be deleted now and is not being deleted yet.
pub(crate) fn ready(carried: &[Carried]) -> Vec<usize> {
    let needs = Needs::of(carried);
    let going = |index: &usize| carried.get(*index).is_some_and(|one| one.deleting);
    let all = || (0..carried.len()).filter(|index| !going(index));
    let free: Vec<usize> = all().filter(|index| needs.is_free(*index)).collect();
    if !free.is_empty() {
        return free;
    }
    // Works that need each other go together; waiting would be for ever.
    all().filter(|index| needs.is_circle(*index)).collect()
}

/// Who waits for whom.
struct Needs {
    /// Of each, by its place: those that stand on what it brings.
    waits_for: Vec<BTreeSet<usize>>,
    /// The same the other way round.
    holds_up: Vec<BTreeSet<usize>>,
}

impl Needs {
    fn of(carried: &[Carried]) -> Self {
        let brought: Vec<BTreeSet<Ground<'_>>> =
            carried.iter().map(|one| grounds(one).collect()).collect();
        let mut standing: BTreeMap<Ground<'_>, BTreeSet<usize>> = BTreeMap::new();
        for (index, (one, own)) in carried.iter().zip(&brought).enumerate() {
            // Who brings the same ground as another does not stand on the other's: the last of them
            // takes it away.
            for ground in needed(one).filter(|ground| !own.contains(ground)) {
                standing.entry(ground).or_default().insert(index);
            }
        }
        let on = |ground| standing.get(ground).into_iter().flatten().copied();
        let before = said_to_go_before(carried);
        let waits_for: Vec<BTreeSet<usize>> = brought
            .iter()
            .zip(carried)
            .map(|(grounds, one)| {
                let first = before.get(&(one.kind, one.priority)).into_iter().flatten().copied();
                grounds.iter().flat_map(on).chain(first).collect()
            })
            .collect();
        let mut holds_up: Vec<BTreeSet<usize>> =
            waits_for.iter().map(|_| BTreeSet::new()).collect();
        for (index, all) in waits_for.iter().enumerate() {
            for other in all {
                if let Some(held_up) = holds_up.get_mut(*other) {
                    held_up.insert(index);
                }
            }
        }
        Self { waits_for, holds_up }
    }

    fn is_free(&self, index: usize) -> bool {
        self.waits_for.get(index).is_none_or(BTreeSet::is_empty)
    }

    /// Whether everything that it waits for, however far away, waits for it in turn.
    fn is_circle(&self, index: usize) -> bool {
        let (ahead, behind) = (reached(&self.waits_for, index), reached(&self.holds_up, index));
        ahead.is_subset(&behind)
    }
}

/// For each priority of a kind, those of the priority before it: these wait for the ones before them in
/// turn, so nobody has to wait for all by name.
fn said_to_go_before(carried: &[Carried]) -> BTreeMap<(Kind, u8), Vec<usize>> {
    let mut levels: BTreeMap<(Kind, u8), Vec<usize>> = BTreeMap::new();
    for (index, one) in carried.iter().enumerate() {
        levels.entry((one.kind, one.priority)).or_default().push(index);
    }
    let next = levels.keys().skip(1).copied();
    let pairs = levels.iter().zip(next);
    pairs
        .filter(|(((kind, _), _), (next, _))| kind == next)
        .map(|((_, first), later)| (later, first.clone()))
        .collect()
}

fn reached(steps: &[BTreeSet<usize>], from: usize) -> BTreeSet<usize> {
    let (mut found, mut open) = (BTreeSet::new(), Vec::from([from]));
    while let Some(index) = open.pop() {
        let next = steps.get(index).into_iter().flatten();
        open.extend(next.filter(|other| found.insert(**other)));
    }
    found
}

/// What the objects stand on.
fn needed(one: &Carried) -> impl Iterator<Item = Ground<'_>> {
    one.objects.iter().flat_map(|object| {
        let namespace = Some(&*object.namespace).filter(|namespace| !namespace.is_empty());
        let definition = Ground::Definition(&object.resource, &object.group);
        namespace.map(Ground::Namespace).into_iter().chain([definition])
    })
}

/// What others may stand on.
fn grounds(one: &Carried) -> impl Iterator<Item = Ground<'_>> {
    one.objects.iter().filter_map(|object| match (&*object.group, &*object.resource) {
        ("", "namespaces") => Some(Ground::Namespace(&object.name)),
        ("apiextensions.k8s.io", "customresourcedefinitions") => {
            let (resource, group) = object.name.split_once('.')?;
            Some(Ground::Definition(resource, group))
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests;
