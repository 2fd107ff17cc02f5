//! What would become of a policy's objects if it were deleted or its cluster left, before anything is
//! done.
//!
//! It is the planner's own decision ([`prune`], [`spare`]) about a world in which that has begun, so
//! that a preview cannot say anything but what the execution does.

use alloc::borrow::ToOwned;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use cleat_api::configurationpolicy::ObjectResource;
use cleat_api::managedcluster::RemoveStrategy;

use super::observed::{Departure, Kind, Observed, Policy, Present, Read, Seen, Served, Subject};
use super::prune::{self, Fate, Fates, Left};
use super::reader::Reader;
use super::spare;
use crate::id::{Id, Target};
use crate::work::along::take_along;
use crate::work::outlook::{Change, Foreseen, Prospect};

/// The world in which the deletion of the policy has just begun.
pub fn imagined(mut seen: Observed) -> Observed {
    if let Subject::Policy(policy) = &mut seen.policy {
        policy.deleting = true;
    }
    seen
}

/// What has to be known of the cluster first. More than the execution asks for: it need not know
/// whether what it leaves alone is there.
pub fn reads(seen: &Observed) -> BTreeSet<Read> {
    let Subject::Policy(policy) = &seen.policy else { return BTreeSet::new() };
    let mut reader = Reader::new(&seen.cluster);
    for object in fates(seen, policy, &mut reader).keys() {
        sight(object, &mut reader);
    }
    reader.unread
}

/// The outlook for everything that an [`imagined`] policy lists, or why there is none.
///
/// A policy that a leaving cluster keeps everything of is told not to prune before it goes.
pub fn outlook(seen: &Observed, change: Change) -> Result<Vec<Foreseen>, String> {
    let policy = match &seen.policy {
        Subject::Policy(policy) => policy,
        Subject::Absent => return Ok(Vec::new()),
        Subject::Unknown(why) => return Err(format!("the policy cannot be read: {why}")),
    };
    let mut reader = Reader::new(&seen.cluster);
    let mut all: BTreeMap<Id, Foreseen> = BTreeMap::new();
    for (object, fate) in fates(seen, policy, &mut reader) {
        if fate == Fate::Settled(Left::Nameless) {
            continue;
        }
        let one = foreseen(seen, policy, &object, (fate, change), &mut reader);
        // What was never there and is not there is nothing to tell of.
        if one.prospect == Prospect::Gone && !was_there(policy, &object) {
            continue;
        }
        // One object in two versions of its kind: what either would do is done.
        match all.get(&one.id) {
            Some(other) if other.prospect <= one.prospect => {}
            _ => drop(all.insert(one.id.clone(), one)),
        }
    }
    let mut all: Vec<Foreseen> = all.into_values().collect();
    take_along(&mut all.iter_mut().collect::<Vec<_>>(), |_| false);
    Ok(all)
}

/// What becomes of everything in the end, and not only of what would go next.
fn fates(seen: &Observed, policy: &Policy, reader: &mut Reader<'_>) -> Fates {
    let all = policy.status.related_objects.iter();
    let mut fates = prune::fates(all, policy, prune::pruning(policy), reader);
    if seen.controller.departure == Departure::Emptying {
        spare::spare_ahead(&mut fates, policy, reader);
    }
    fates
}

/// Whether the policy has ever seen or made it.
pub(super) fn was_there(policy: &Policy, object: &ObjectResource) -> bool {
    let known = policy.entry(object).and_then(|entry| entry.properties.as_ref());
    known.is_some_and(|known| known.created_by_policy == Some(true) || !known.uid.is_empty())
}

/// Where an object is, and what is there.
fn sight<'a>(object: &ObjectResource, reader: &mut Reader<'a>) -> (Target, Option<&'a Present>) {
    let ObjectResource { api_version, kind, metadata } = object;
    let named = |served: &Served| served.target(&metadata.namespace, &metadata.name);
    match reader.kind(api_version, kind) {
        Some(Kind::Served(served)) => {
            let target = named(served);
            let present = match reader.object(&target) {
                Some(Seen::Present(present)) => Some(present),
                _ => None,
            };
            (target, present)
        }
        _ => (named(&Served::unknown(api_version, kind)), None),
    }
}

fn foreseen(
    seen: &Observed,
    policy: &Policy,
    object: &ObjectResource,
    (fate, change): (Fate, Change),
    reader: &mut Reader<'_>,
) -> Foreseen {
    let (target, present) = sight(object, reader);
    let absent = matches!(reader.kind(&object.api_version, &object.kind), Some(Kind::Absent))
        || matches!(reader.object(&target), Some(Seen::Absent));
    let finalizers = present.filter(|present| present.terminating().is_some());
    let (prospect, why, decided_by) = match fate {
        // Nobody can take back a deletion that was accepted, whatever the policy says by now.
        _ if finalizers.is_some() => {
            (Prospect::Delete, "it is being deleted already".to_owned(), "")
        }
        Fate::Settled(_) if absent => {
            (Prospect::Gone, "there is nothing of that name".to_owned(), "")
        }
        fate => said(seen, policy, fate, change),
    };
    let known = policy.entry(object).and_then(|entry| entry.properties.as_ref());
    Foreseen {
        version: target.version,
        id: target.id,
        uid: present.map(|present| present.uid().to_owned()).unwrap_or_default(),
        prospect,
        why,
        decided_by,
        adopted: known.is_some_and(|known| known.created_by_policy == Some(false)),
        finalizers: finalizers.map_or_else(Vec::new, |present| {
            present.finalizers().into_iter().map(ToOwned::to_owned).collect()
        }),
    }
}

const BEHAVIOR: &str = "spec.pruneObjectBehavior";

/// Why nothing is done about an object that is let go of.
pub(super) fn spared(left: Left) -> (Prospect, String, &'static str) {
    let keep = |why: &str, field| (Prospect::Keep, why.to_string(), field);
    match left {
        Left::NotPruned(BEHAVIOR) => keep("its policy deletes nothing", BEHAVIOR),
        Left::NotPruned(field) => keep("its policy only informs", field),
        Left::Found => keep("its policy did not make it", BEHAVIOR),
        Left::Replaced => keep("somebody made it anew", BEHAVIOR),
        Left::MustNotHave => keep("it was not to be there", "complianceType"),
        Left::Nameless | Left::Gone => {
            (Prospect::Gone, "there is nothing of that name".to_owned(), "")
        }
    }
}

fn said(
    seen: &Observed,
    policy: &Policy,
    fate: Fate,
    change: Change,
) -> (Prospect, String, &'static str) {
    let keep = |why: &str, field| (Prospect::Keep, why.to_string(), field);
    match fate {
        Fate::Settled(left) => spared(left),
        Fate::Unknown(why) | Fate::Held { why, .. } => (Prospect::Unknown, why, ""),
        Fate::Kept { why, .. } => keep(&why, "spec.removeStrategy"),
        Fate::Unread => (Prospect::Unknown, "it was not looked at".to_owned(), ""),
        Fate::Delete { .. } | Fate::Terminating { .. }
            if change == Change::Leaving(RemoveStrategy::Needless) =>
        {
            keep("the cluster leaves with everything", "spec.removeStrategy")
        }
        Fate::Delete { .. } | Fate::Terminating { .. } => match &seen.controller.departure {
            Departure::Leaving => keep("whoever would delete it is being taken away", ""),
            Departure::Unknown(why) => {
                let why = format!("whether it is to go is not certain: {why}");
                (Prospect::Unknown, why, BEHAVIOR)
            }
            Departure::Staying | Departure::Emptying if !policy.has_finalizer() => {
                keep("nothing holds its policy, which goes at once", "metadata.finalizers")
            }
            Departure::Staying | Departure::Emptying => {
                (Prospect::Delete, "it goes with its policy".to_owned(), BEHAVIOR)
            }
        },
    }
}
