//! What a work of a leaving cluster says about its removal, for the hub to count, show and keep:
//! what has yet to go, what cannot, and what stays.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use cleat_api::leftoverrecord::{LeftObject, Stays};
use cleat_api::manifestwork::{BlockedObject, Removal, ResourceCount};
use serde_json::json;

use super::deleting::{held_up, waits_for};
use crate::condition::whole_seconds;
use crate::id::Id;
use crate::leave::record;
use crate::work::contents::Contents;
use crate::work::observed::{Book, Hub, Ledger, Observed, Seen, Work};
use crate::work::ownership::Ownership;
use crate::work::plan::{is_unwritten, work_target};
use crate::work::retire::{self, Fate, Unmarked};
use crate::work::trouble::TroubleKind;
use crate::write::{Action, Side, Write};

/// How many objects that cannot go are named.
const NAMED: usize = 50;

/// How many objects are told of that left the manifests: the status that tells them has to be stored.
const RETIRING: usize = 2500;

/// All three, as they are now.
pub(super) fn removal(seen: &Observed, work: &Work, book: &Book) -> Removal {
    let fates = retire::fates(seen, book, book.ids().into_iter());
    let mut counts: BTreeMap<String, i64> = BTreeMap::new();
    let mut blocked = Vec::new();
    let before = work.status.removal.as_ref();
    for (id, fate) in &fates {
        if fate.is_settled() {
            continue;
        }
        *counts.entry(resource(id)).or_default() += 1;
        let Some(refused) = block(seen, id, fate) else { continue };
        let object = id.to_string();
        let earlier = before.and_then(|old| old.blocked.iter().find(|one| one.object == object));
        let since = earlier.and_then(|one| one.since.clone());
        let since = Some(since.unwrap_or_else(|| whole_seconds(seen.now)));
        blocked.push(BlockedObject { object, why: waits_for(seen, id, fate), refused, since });
    }
    blocked.truncate(NAMED);
    if fates.values().all(Fate::is_settled) {
        blocked.extend(unwritten(seen, work));
    }
    let remaining =
        counts.into_iter().map(|(resource, count)| ResourceCount { resource, count }).collect();
    let left = before.map(|old| old.left.clone()).unwrap_or_default();
    Removal { remaining, blocked, left, untold: 0 }
}

/// That the hub has yet to write down what stays, if so.
pub(super) fn unwritten(seen: &Observed, work: &Work) -> Option<BlockedObject> {
    let removal = work.status.removal.as_ref();
    is_unwritten(seen, work).then(|| record::awaited(removal, seen.now))
}

/// Whether something stands in the way of an object, and if so whether somebody said no.
fn block(seen: &Observed, id: &Id, fate: &Fate) -> Option<bool> {
    let trouble = seen.troubles.get(id).filter(|trouble| trouble.kind != TroubleKind::Stale);
    match fate {
        Fate::Settled(_) => None,
        Fate::Undecided(_) => Some(true),
        Fate::Terminating(finalizers) => {
            (!finalizers.is_empty() || held_up(seen, id).is_some()).then_some(false)
        }
        // What holds others and whose turn has not come was not looked into, which is nobody's fault.
        Fate::Unknown(_) => {
            (!retire::is_holder(id) || seen.contents.contains_key(id)).then_some(false)
        }
        Fate::Unmark { .. } | Fate::Delete { .. } => {
            trouble.map(|trouble| trouble.kind == TroubleKind::Refused)
        }
    }
}

fn resource(id: &Id) -> String {
    match id.group.as_str() {
        "" => id.resource.clone(),
        group => format!("{}.{group}", id.resource),
    }
}

/// Tells the hub what stays of a work that is as good as gone, if the hub does not know it.
pub(crate) fn tell_left(seen: &Observed, book: &Book) -> Option<Action> {
    seen.leaving?;
    let work = seen.hub.work()?;
    let left = left(seen, book);
    let told = work.status.removal.as_ref();
    if told.map_or(left.is_empty(), |told| told.left == left) {
        return None;
    }
    let removal = Removal { left, ..Removal::default() };
    let patch = json!({
        "metadata": { "uid": work.uid, "resourceVersion": work.resource_version },
        "status": { "removal": removal },
    });
    let write = Write::MergeStatus(patch);
    Some(Action { side: Side::Hub, target: work_target(seen, work), write })
}

/// What stays of a work that the hub does not have any more, while its cluster leaves: there is no
/// status of a work to tell it in, so the cluster's own has to. `None` while it is not settled.
pub fn stranded(seen: &Observed) -> Option<Vec<LeftObject>> {
    seen.leaving?;
    let (Hub::Absent, Ledger::Present(book)) = (&seen.hub, &seen.ledger) else { return None };
    let fates = retire::fates(seen, book, book.ids().into_iter());
    let settled = book.deleting && fates.values().all(Fate::is_settled);
    settled.then(|| stranded_of(seen, book))
}

fn stranded_of(seen: &Observed, book: &Book) -> Vec<LeftObject> {
    let left = left(seen, book).into_iter();
    left.map(|object| LeftObject { source: seen.name.clone(), ..object }).collect()
}

/// Whether what is stranded was told, so that it may be forgotten here.
pub(crate) fn is_stranded_told(seen: &Observed, book: &Book) -> bool {
    let stranded = seen.leaving.is_some() && matches!(seen.hub, Hub::Absent);
    !stranded || record::are_told(&seen.told, &stranded_of(seen, book))
}

/// What the ledger has and the manifests have not, unless it goes by itself: should the cluster be
/// lost, nothing else on the hub names it. With how many more there are than can be told.
pub(super) fn retiring(seen: &Observed, book: &Book) -> (Vec<LeftObject>, i64) {
    let wanted: BTreeSet<&Id> = seen.wanted.iter().filter_map(|one| one.place.id()).collect();
    let others = book.ids().into_iter().filter(|id| !wanted.contains(*id));
    let mut found = Vec::new();
    for (id, fate) in retire::fates(seen, book, others) {
        let stays = match &fate {
            Fate::Settled(_) => continue,
            // Accepted, and held by nobody.
            Fate::Terminating(finalizers) if finalizers.is_empty() => continue,
            Fate::Unmark { why: Unmarked::Kept(_) | Unmarked::HoldsKept, .. } => {
                Some(Stays::Declared)
            }
            Fate::Unmark { .. } => Some(Stays::NotOurs),
            Fate::Undecided(_) => Some(Stays::Declared),
            Fate::Delete { .. } | Fate::Terminating(_) | Fate::Unknown(_) => None,
        };
        let uid = match seen.live.get(id) {
            Some(Seen::Present(present)) => present.uid.clone(),
            _ => book.recorded_uid(id).unwrap_or_default().to_string(),
        };
        found.push(LeftObject { uid, stays, ..listed(seen, book, id) });
    }
    let more = i64::try_from(found.len().saturating_sub(RETIRING)).unwrap_or(i64::MAX);
    found.truncate(RETIRING);
    (found, more)
}

/// An object of the ledger, as far as its place goes.
fn listed(seen: &Observed, book: &Book, id: &Id) -> LeftObject {
    let version = seen.versions.get(id).cloned();
    let version = version.or_else(|| Some(book.applied.get(id)?.version.clone()));
    LeftObject {
        group: id.group.clone(),
        version: version.unwrap_or_default(),
        resource: id.resource.clone(),
        namespace: id.namespace.clone(),
        name: id.name.clone(),
        ..LeftObject::default()
    }
}

/// Why a namespace or a definition stays that holds what is not ours. What the work itself says to keep bears our mark
/// no more, and is no less ours for it.
fn holds_foreign(seen: &Observed, book: &Book, id: &Id) -> Option<String> {
    let Contents::Foreign(found) = seen.contents.get(id)? else { return None };
    let ours = book.ids();
    let others = found.iter().filter(|id| !ours.contains(*id) || !retire::is_kept(seen, book, id));
    let others: Vec<Id> = others.cloned().collect();
    if others.is_empty() { None } else { Contents::Foreign(others).why_kept() }
}

/// Everything of the ledger that is still there, in order, but for what other works of this hub take
/// away or tell of.
fn left(seen: &Observed, book: &Book) -> Vec<LeftObject> {
    let present = book.ids().into_iter().filter_map(|id| match seen.live.get(id) {
        Some(Seen::Present(present)) => Some((id, present)),
        _ => None,
    });
    let left = present.filter_map(|(id, present)| {
        let recorded = book.recorded_uid(id);
        let (why, stays) = match retire::wish(seen, book, id, present) {
            _ if recorded.is_some_and(|uid| uid != present.uid) => {
                ("somebody made it anew".to_string(), Stays::NotOurs)
            }
            Ownership::Owned if retire::is_left_to_others(seen, present) => return None,
            Ownership::Owned if retire::is_kept_elsewhere(seen, id, present) => {
                ("another work keeps it".to_string(), Stays::Declared)
            }
            Ownership::Kept(field) => (format!("kept by {field}"), Stays::Declared),
            Ownership::Undecided(problem) => (problem, Stays::Declared),
            Ownership::Owned => match holds_foreign(seen, book, id) {
                // Whether it still does will be looked at again before it goes.
                Some(why) => (why, Stays::Declared),
                None if present.other_holder(&seen.ledger_name()).is_some() => {
                    ("another work holds it".to_string(), Stays::NotOurs)
                }
                None if retire::holds_kept(seen, book, id) => {
                    ("it holds what is kept".to_string(), Stays::Declared)
                }
                None => ("it is without our mark".to_string(), Stays::NotOurs),
            },
        };
        let uid = present.uid.clone();
        Some(LeftObject { uid, why, stays: Some(stays), ..listed(seen, book, id) })
    });
    left.collect()
}
