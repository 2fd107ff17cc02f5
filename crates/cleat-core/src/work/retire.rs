//! Letting go of objects: what becomes of each that a work held and holds no longer.
//!
//! The same decision serves an object that left the manifests, a deleted work and an evicted
//! ledger. Objects go in reverse order of kinds, and a kind waits until the ones that may need it
//! were seen gone: a custom resource is gone before the workload that serves its finalizer, and
//! that before its rights, definitions and namespaces.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use cleat_api::managedcluster::RemoveStrategy;
use serde_json::json;

use super::contents::Contents;
use super::kind_order::removal_rank;
use super::observed::{Book, Observed, Origin, Present, Seen};
use super::ownership::{Ownership, kept_by_name, origin, ownership};
use crate::id::{Id, Target};
use crate::protection::denial::Protected;
use crate::write::{Action, Propagation, Side, Write};

/// What becomes of an object that is let go of.
#[derive(Clone, Debug, PartialEq)]
pub enum Fate {
    /// Nothing of ours is left there: it can be forgotten.
    Settled(Settled),
    /// It stays; our mark has to come off.
    Unmark {
        why: Unmarked,
        uid: String,
        resource_version: String,
    },
    Delete {
        uid: String,
        resource_version: String,
    },
    /// Accepted for deletion, held back by these finalizers (or about to go, if there are none).
    Terminating(Vec<String>),
    /// It cannot be seen, so nothing is done and nothing forgotten.
    Unknown(String),
    /// The work contradicts itself.
    Undecided(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    Gone,
    /// It is there without our mark: kept on purpose, or somebody else's.
    NotOurs,
}

/// Why an object stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmarked {
    /// The field that says so.
    Kept(&'static str),
    /// Another work holds it as well.
    Shared,
    /// Somebody made it anew, with our mark copied along.
    Recreated,
    /// It is the namespace or the definition of something that is kept.
    HoldsKept,
    /// It is a namespace or a definition that holds what is not ours.
    HoldsForeign,
}

/// What becomes of everything in `leaving`.
pub(crate) fn fates<'a>(
    seen: &Observed,
    book: &Book,
    leaving: impl Iterator<Item = &'a Id>,
) -> BTreeMap<&'a Id, Fate> {
    let mut fates: BTreeMap<&Id, Fate> = leaving.map(|id| (id, fate(seen, book, id))).collect();
    for (id, fate) in &mut fates {
        if let Fate::Delete { .. } = fate
            && let Some(unseen) = unseen_inside(seen, book, id)
        {
            *fate =
                Fate::Unknown(format!("{unseen} is to stay, and could not be looked for in it"));
        }
    }
    let holders: Vec<&Id> = fates.keys().copied().filter(|id| holds_kept(seen, book, id)).collect();
    for id in holders {
        let Some(fate) = fates.get_mut(id) else { continue };
        let going = match fate {
            Fate::Delete { uid, resource_version } => Some((uid, resource_version)),
            // The last of several works that all go would delete it.
            Fate::Unmark { why: Unmarked::Shared, uid, resource_version }
                if is_emptied(seen) && holds_own_kept(seen, book, id) =>
            {
                Some((uid, resource_version))
            }
            _ => None,
        };
        if let Some((uid, resource_version)) = going {
            let (uid, resource_version) = (uid.clone(), resource_version.clone());
            let marked = match seen.live.get(id) {
                Some(Seen::Present(present)) => present.is_held_by(book),
                _ => false,
            };
            *fate = match marked {
                true => Fate::Unmark { why: Unmarked::HoldsKept, uid, resource_version },
                false => Fate::Settled(Settled::NotOurs),
            };
        }
    }
    if is_emptied(seen) {
        for (id, fate) in &mut fates {
            spare_foreign(seen, book, id, fate);
        }
    }
    fates
}

/// A leaving cluster keeps a namespace or a definition that holds what others brought, or what another
/// work has left there on purpose: deleting it would take that along.
fn spare_foreign(seen: &Observed, book: &Book, id: &Id, fate: &mut Fate) {
    let Fate::Delete { uid, resource_version } = fate else { return };
    if !is_holder(id) {
        return;
    }
    *fate = match seen.contents.get(id) {
        Some(Contents::Ours) => return,
        None => Fate::Unknown("what it holds was not looked at".into()),
        Some(Contents::Unknown(why)) => Fate::Unknown(why.clone()),
        Some(Contents::Waiting(what)) => Fate::Unknown(format!("it still holds {what}")),
        Some(Contents::Foreign(_)) => match seen.live.get(id) {
            Some(Seen::Present(present)) if present.is_held_by(book) => Fate::Unmark {
                why: Unmarked::HoldsForeign,
                uid: uid.clone(),
                resource_version: resource_version.clone(),
            },
            _ => Fate::Settled(Settled::NotOurs),
        },
    };
}

/// Whether an object is to go or to stay, as far as anybody said.
///
/// A work that is gone from the hub has said all it had to say when it was last applied, and one whose
/// deletion has begun when it began: both are in the ledger.
pub(crate) fn wish(seen: &Observed, book: &Book, id: &Id, present: &Present) -> Ownership {
    let says = |work| ownership(work, id, origin(book, id, present));
    match seen.hub.work() {
        _ if seen.leaving == Some(RemoveStrategy::Needless) => Ownership::Kept(NEEDLESS),
        // What only a rule of the work names is not in the ledger.
        Some(work) if !book.deleting || book.origin(id).is_none() => says(work),
        work if book.is_kept(id) => match work.map(says) {
            Some(Ownership::Kept(field)) => Ownership::Kept(field),
            _ => Ownership::Kept("deleteOption"),
        },
        _ => Ownership::Owned,
    }
}

/// What keeps everything on a cluster that leaves.
pub(crate) const NEEDLESS: &str = "removeStrategy Needless";

/// Whether deleting a namespace or a definition would take along what the work says to keep.
pub(crate) fn holds_kept(seen: &Observed, book: &Book, holder: &Id) -> bool {
    let stays = |id: &Id| is_kept(seen, book, id) || is_made_to_stay(seen, book, id);
    inside(seen, book, holder).iter().any(stays)
}

/// The same, of what is on record alone: what only a rule names may yet go with another work.
fn holds_own_kept(seen: &Observed, book: &Book, holder: &Id) -> bool {
    let inside = book.ids().into_iter().filter(|id| is_inside(holder, id));
    inside.into_iter().any(|id| is_kept(seen, book, id))
}

/// What a namespace or a definition may hold of what is on record, or of what the work's rules name:
/// those still hold when an object has long left the manifests, and the ledger.
fn inside(seen: &Observed, book: &Book, holder: &Id) -> BTreeSet<Id> {
    // Most hold nothing, and there may be thousands.
    if !is_holder(holder) {
        return BTreeSet::new();
    }
    let named = seen.hub.work().into_iter().flat_map(kept_by_name);
    let all = book.ids().into_iter().cloned().chain(named);
    all.filter(|id| is_inside(holder, id)).collect()
}

/// Something that may be in a namespace or of a definition, is to stay if it is, and cannot be seen.
fn unseen_inside(seen: &Observed, book: &Book, holder: &Id) -> Option<Id> {
    let is_unseen = |id: &Id| match seen.live.get(id) {
        Some(Seen::Present(_) | Seen::Absent) => false,
        Some(Seen::NotYet | Seen::Unknown(_)) => true,
        // What only a rule names is not looked for where its kind does not exist.
        None => book.ids().contains(id),
    };
    // Nobody knows yet who made it, and that may be what keeps it.
    let may_stay = |id: &Id| match seen.hub.work() {
        Some(work) => !matches!(ownership(work, id, Origin::Adopted), Ownership::Owned),
        None => book.is_kept(id),
    };
    inside(seen, book, holder).into_iter().find(|id| is_unseen(id) && may_stay(id))
}

/// Whether a namespace or a definition on record holds this object, if it is there.
pub fn is_held(book: &Book, id: &Id) -> bool {
    book.ids().into_iter().any(|holder| is_inside(holder, id))
}

/// Whether an object that is not there is about to be made, and then to stay.
fn is_made_to_stay(seen: &Observed, book: &Book, id: &Id) -> bool {
    let stands = !book.deleting && seen.hub.work().is_some_and(|work| !work.deleting);
    let wanted = || seen.wanted.iter().any(|wanted| wanted.place.id() == Some(id));
    stands && book.is_kept(id) && matches!(seen.live.get(id), Some(Seen::Absent)) && wanted()
}

pub(crate) fn is_holder(id: &Id) -> bool {
    matches!(
        (&*id.group, &*id.resource),
        ("", "namespaces") | ("apiextensions.k8s.io", "customresourcedefinitions")
    )
}

/// Whether an object goes when this namespace or this definition goes.
pub(crate) fn is_inside(holder: &Id, id: &Id) -> bool {
    match (&*holder.group, &*holder.resource) {
        ("", "namespaces") => id.namespace == holder.name,
        ("apiextensions.k8s.io", "customresourcedefinitions") => holder
            .name
            .split_once('.')
            .is_some_and(|(resource, group)| id.resource == resource && id.group == group),
        _ => false,
    }
}

/// What of a work that stays can be struck off its ledger: what is settled. But a kept object is
/// remembered until the namespace or the definition that holds it is settled as well: that one is
/// spared only because the ledger says what is in it.
pub(crate) fn forgettable<'a>(
    seen: &Observed,
    book: &Book,
    fates: &BTreeMap<&'a Id, Fate>,
) -> BTreeSet<&'a Id> {
    let holders = fates.iter().filter(|(id, fate)| is_holder(id) && !fate.is_settled());
    let holders: Vec<&Id> = holders.map(|(id, _)| *id).collect();
    let is_awaited =
        |id: &Id| holders.iter().any(|holder| is_inside(holder, id)) && is_kept(seen, book, id);
    let settled = fates.iter().filter(|(_, fate)| fate.is_settled());
    settled.map(|(id, _)| *id).filter(|id| !is_awaited(id)).collect()
}

/// Whether an object of the ledger is there and is to stay.
pub(crate) fn is_kept(seen: &Observed, book: &Book, id: &Id) -> bool {
    match seen.live.get(id) {
        Some(Seen::Present(present)) => {
            let kept = matches!(wish(seen, book, id, present), Ownership::Kept(_));
            kept || is_kept_elsewhere(seen, id, present)
        }
        _ => false,
    }
}

/// What a ledger says to keep, and in which incarnation.
pub fn keeps(book: &Book) -> BTreeMap<Id, String> {
    let kept = book.claims.iter().filter(|(_, claim)| claim.kept).map(|(id, _)| id);
    kept.filter_map(|id| Some((id.clone(), String::from(book.recorded_uid(id)?)))).collect()
}

/// Whether another work of this hub says to keep it. Of a cluster that leaves both go, and what becomes
/// of the object must not depend on which goes first: who keeps it wins.
pub(crate) fn is_kept_elsewhere(seen: &Observed, id: &Id, present: &Present) -> bool {
    let kept = seen.kept_elsewhere.as_ref().ok().and_then(|kept| kept.get(id));
    kept.is_some_and(|uid| *uid == present.uid)
}

/// Whether other works of this hub hold the object of a cluster that is to be emptied. They go as well;
/// the last of them takes it away, or tells why it stays.
pub(crate) fn is_left_to_others(seen: &Observed, present: &Present) -> bool {
    is_emptied(seen) && present.is_shared_within(&seen.agent.hub_hash, &seen.ledger_name())
}

fn is_emptied(seen: &Observed) -> bool {
    seen.leaving == Some(RemoveStrategy::Required)
}

fn fate(seen: &Observed, book: &Book, id: &Id) -> Fate {
    let present = match seen.live.get(id) {
        Some(Seen::Present(present)) => present,
        Some(Seen::Absent) => return Fate::Settled(Settled::Gone),
        Some(Seen::NotYet) => return Fate::Unknown("it was not looked at".into()),
        Some(Seen::Unknown(reason)) => return Fate::Unknown(reason.clone()),
        None => return Fate::Unknown("it was not looked at".into()),
    };
    let recorded = book.recorded_uid(id).is_some_and(|uid| uid == present.uid);
    let wish = wish(seen, book, id, present);
    // Without our mark it was given up: by us, because the work said so, or by somebody who took the
    // mark off. In the first case the work may have changed its mind since.
    let given_up = !(book.is_kept(id) && recorded && wish == Ownership::Owned);
    // What is kept bears no mark of ours, but maybe that of a work which would take it away once our
    // ledger is gone, and with it the word of who keeps it.
    let exposed = recorded
        && matches!(wish, Ownership::Kept(_))
        && is_emptied(seen)
        && present.references_without(&seen.agent.hub_hash).is_some();
    if !present.is_held_by(book) && given_up && !exposed {
        return Fate::Settled(Settled::NotOurs);
    }
    let (uid, resource_version) = (present.uid.clone(), present.resource_version.clone());
    let unmark =
        |why| Fate::Unmark { why, uid: uid.clone(), resource_version: resource_version.clone() };
    if book.recorded_uid(id).is_some() && !recorded {
        return unmark(Unmarked::Recreated);
    }
    match wish {
        Ownership::Kept(why) => unmark(Unmarked::Kept(why)),
        Ownership::Undecided(problem) => Fate::Undecided(problem),
        Ownership::Owned
            if present.other_holder(&seen.ledger_name()).is_some()
                || is_kept_elsewhere(seen, id, present) =>
        {
            match present.is_held_by(book) {
                true => unmark(Unmarked::Shared),
                false => Fate::Settled(Settled::NotOurs),
            }
        }
        Ownership::Owned => match &present.terminating {
            Some(finalizers) => Fate::Terminating(finalizers.clone()),
            None => match &seen.kept_elsewhere {
                Ok(_) => Fate::Delete { uid, resource_version },
                Err(why) => Fate::Unknown(format!("another work may keep it: {why}")),
            },
        },
    }
}

/// Takes our marks off what stays, and deletes what has its turn. Neither waits for the other.
pub(crate) fn let_go(seen: &Observed, book: &Book, fates: &BTreeMap<&Id, Fate>) -> Vec<Action> {
    let mut step = unmark(seen, book, fates);
    step.extend(delete(seen, book, fates));
    step
}

/// Takes our marks off what stays. Where a cluster is to be emptied, what this work keeps or spares loses
/// those of all works of this hub: another of them would take it away, with what is in it.
pub(crate) fn unmark(seen: &Observed, book: &Book, fates: &BTreeMap<&Id, Fate>) -> Vec<Action> {
    let ledger = seen.ledger_name();
    let turn = turn(fates);
    let mut actions = Vec::new();
    for (id, fate) in fates {
        let Fate::Unmark { why, uid, resource_version } = fate else { continue };
        let Some(Seen::Present(present)) = seen.live.get(*id) else { continue };
        let references = match why {
            Unmarked::Kept(_) | Unmarked::HoldsKept | Unmarked::HoldsForeign
                if is_emptied(seen) =>
            {
                present.references_without(&seen.agent.hub_hash)
            }
            _ => present.references(&ledger, book, false),
        };
        let Some(references) = references else { continue };
        let early = turn.is_some_and(|turn| turn < rank(id)) && goes_with_others(seen, id, fate);
        if !early && !seen.must_wait(id) {
            let write = Write::Merge(json!({ "metadata": {
                "uid": uid,
                "resourceVersion": resource_version,
                "ownerReferences": references,
            }}));
            actions.push(Action { side: Side::Cluster, target: target(book, seen, id), write });
        }
    }
    actions
}

/// Whether an object goes when the last of several works has let go of it, all of which go. It is let
/// go of in its turn, as if it were to be deleted: what is left of this work may need it.
pub(crate) fn goes_with_others(seen: &Observed, id: &Id, fate: &Fate) -> bool {
    let shared = matches!(fate, Fate::Unmark { why: Unmarked::Shared, .. });
    match seen.live.get(id) {
        Some(Seen::Present(present)) => shared && is_left_to_others(seen, present),
        _ => false,
    }
}

/// Deletes the objects of the rank whose turn it is, and those that a protected one waits for.
pub(crate) fn delete(seen: &Observed, book: &Book, fates: &BTreeMap<&Id, Fate>) -> Vec<Action> {
    let (turn, protected) = (turn(fates), protected(seen, fates));
    let mut actions = Vec::new();
    for (id, fate) in fates {
        let Fate::Delete { uid, resource_version } = fate else { continue };
        let awaited = Some(rank(id)) == turn || is_awaited(&protected, id);
        if !awaited || seen.must_wait(id) {
            continue;
        }
        let write = Write::Delete {
            uid: uid.clone(),
            // Another work may be taking hold of the object at this moment; then it must not go.
            resource_version: Some(resource_version.clone()),
            propagation: Propagation::Background,
        };
        actions.push(Action { side: Side::Cluster, target: target(book, seen, id), write });
    }
    actions
}

/// What was refused because others must go first.
///
/// Such an object keeps its place in the order, so that what it needs stays for as long as it does;
/// but what it waits for must not wait for it.
pub(crate) fn protected<'a>(
    seen: &Observed,
    fates: &BTreeMap<&'a Id, Fate>,
) -> BTreeMap<&'a Id, Protected> {
    let deleted = fates.iter().filter(|(_, fate)| matches!(fate, Fate::Delete { .. }));
    deleted.filter_map(|(id, _)| Some((*id, seen.troubles.get(*id)?.protected()?))).collect()
}

pub(crate) fn is_awaited(protected: &BTreeMap<&Id, Protected>, id: &Id) -> bool {
    protected.values().flat_map(|one| &one.awaited).any(|awaited| awaited.is(id))
}

/// The rank whose objects go now: the first in the order of removal that has anything left.
pub(crate) fn turn(fates: &BTreeMap<&Id, Fate>) -> Option<u16> {
    let remaining = fates.iter().filter(|(_, fate)| fate.remains());
    remaining.map(|(id, _)| rank(id)).min()
}

/// The namespaces and definitions on record of which somebody has to know what they hold, because they go
/// next or a protected object waits for them. `is_let_go`: nothing of ours is to be seen there.
pub fn holders_due<'a>(
    seen: &Observed,
    book: &'a Book,
    is_let_go: impl Fn(&Id) -> bool,
) -> Vec<&'a Id> {
    if !is_emptied(seen) || !book.deleting {
        return Vec::new();
    }
    let ids = book.ids();
    let turn = ids.iter().filter(|id| !is_let_go(id)).map(|id| rank(id)).min();
    let refused = seen.troubles.iter().filter_map(|(id, one)| Some((id, one.protected()?)));
    let protected: BTreeMap<&Id, Protected> = refused.collect();
    let is_due = |id: &Id| turn.is_none_or(|turn| rank(id) <= turn) || is_awaited(&protected, id);
    ids.into_iter().filter(|id| is_holder(id) && is_due(id)).collect()
}

pub(crate) fn rank(id: &Id) -> u16 {
    removal_rank(&id.group, &id.resource)
}

impl Fate {
    /// Whether an object that has to go is still there, as far as anyone knows.
    pub fn remains(&self) -> bool {
        match self {
            Self::Settled(_) | Self::Unmark { .. } => false,
            Self::Delete { .. } | Self::Terminating(_) | Self::Unknown(_) | Self::Undecided(_) => {
                true
            }
        }
    }

    pub fn is_settled(&self) -> bool {
        matches!(self, Self::Settled(_))
    }
}

/// The version an object was last applied in, or the one the cluster was asked for last.
fn target(book: &Book, seen: &Observed, id: &Id) -> Target {
    let recorded = book.applied.get(id).map(|applied| applied.version.clone());
    let version = seen.versions.get(id).cloned().or(recorded).unwrap_or_default();
    Target { version, id: id.clone() }
}
