//! Namespaces and definitions of policies on a cluster that leaves its hub: one that holds what others
//! brought stays, because deleting it would take that along.
//!
//! That it stays is written into the policy's status, from where the hub is told; the policy goes once
//! the hub has heard. What was said to stay stays, whatever becomes of what is in it.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use cleat_api::configurationpolicy::{ObjectResource, RelatedObject, reason};
use cleat_api::leftoverrecord::LeftObject;

use super::memory::Memory;
use super::observed::{Observed, Owner, Policy, Subject};
use super::prune::{self, Fate, Fates, Pruning};
use super::reader::Reader;
use crate::id::Id;
use crate::work::contents::{self, Contents, Found, HOLDS_FOREIGN};
use crate::work::retire::is_holder;

/// What a namespace or a definition holds that a policy would delete.
///
/// What the policy takes along itself does not count. What another policy is about to take along is
/// waited for: one that is going already, or that is part of the same policy of the hub. What works
/// hold is gone before the hub lets go of the policy that made its namespace or definition; if it is
/// not, that one stays, since a work may be waiting for the policy.
pub fn judge(found: Vec<Found>, policy: &Policy, others: &[Policy]) -> Contents {
    let own: BTreeSet<&str> = takes(policy).collect();
    let others = others.iter().filter(|other| goes_as_well(policy, other));
    let going: BTreeSet<&str> = others.flat_map(takes).collect();
    let found: Vec<Found> =
        found.into_iter().map(|one| one.once_going(|uid| going.contains(uid))).collect();
    contents::judge_beside(&found, &own, "")
}

/// What a namespace or a definition would hold by the time that a policy would delete it, if its cluster
/// left now. By then everything is gone that the policy takes along, that the other policies of the hub do, and that
/// works do (`going`, by uid); what they leave behind is there. What would have to be waited for is no
/// obstacle in the end.
pub fn judge_ahead(
    found: Vec<Found>,
    seen: &Observed,
    others: &[Policy],
    going: &BTreeSet<String>,
) -> Contents {
    let Subject::Policy(policy) = &seen.policy else { return contents::judge(&found, "") };
    let listed = policy.status.related_objects.iter();
    let mut reader = Reader::new(&seen.cluster);
    let fates = prune::fates(listed, policy, prune::pruning(policy), &mut reader);
    let own: BTreeSet<&str> = fates.values().filter_map(deleted).collect();
    let is_going = |uid: &str| own.contains(uid) || going.contains(uid);
    let found = found.into_iter().map(|one| one.once_going(is_going)).collect();
    let others: Vec<Policy> =
        others.iter().cloned().map(|other| Policy { deleting: true, ..other }).collect();
    match judge(found, policy, &others) {
        Contents::Waiting(_) => Contents::Ours,
        other => other,
    }
}

fn deleted(fate: &Fate) -> Option<&str> {
    match fate {
        Fate::Delete { uid, .. } => Some(uid),
        _ => None,
    }
}

/// The incarnations that policies take along if they all go because their cluster leaves.
pub fn taken_along(policies: &[Policy]) -> BTreeSet<String> {
    let sent = |one: &&Policy| one.owner.as_ref().is_some_and(Owner::is_policy);
    let held = policies.iter().filter(sent).filter(|one| one.has_finalizer());
    held.flat_map(takes).map(String::from).collect()
}

fn goes_as_well(policy: &Policy, other: &Policy) -> bool {
    let parent = |one: &Policy| one.owner.clone().filter(Owner::is_policy).map(|owner| owner.uid);
    let parents = (parent(policy), parent(other));
    let sent = other.namespace == policy.namespace && parents.1.is_some();
    sent && other.has_finalizer() && (other.deleting || parents.0 == parents.1)
}

/// The incarnations that a policy deletes when it goes.
fn takes(policy: &Policy) -> impl Iterator<Item = &str> {
    let pruning = prune::pruning(policy);
    policy.status.related_objects.iter().filter_map(move |entry| {
        let known = entry.properties.as_ref().filter(|known| !known.uid.is_empty())?;
        let created = known.created_by_policy == Some(true);
        let goes = match pruning {
            Pruning::Nothing => false,
            Pruning::Created => created,
            Pruning::All => created || entry.reason != reason::MISSING_AS_EXPECTED,
        };
        goes.then_some(known.uid.as_str())
    })
}

/// Whether the status says of anything that it stays, so that the hub has to hear of it.
pub fn keeps(policy: &Policy) -> bool {
    policy.status.related_objects.iter().any(|entry| entry.reason.starts_with(HOLDS_FOREIGN))
}

/// Looks into the namespaces and definitions that would go next.
pub(crate) fn spare(fates: &mut Fates, policy: &Policy, memory: &Memory, reader: &mut Reader<'_>) {
    let next = prune::next(fates, memory);
    look_into(fates, policy, |id| next.contains(id), reader);
}

/// Looks into every one that would go, however much goes before it.
pub(crate) fn spare_ahead(fates: &mut Fates, policy: &Policy, reader: &mut Reader<'_>) {
    look_into(fates, policy, |_| true, reader);
}

fn look_into(
    fates: &mut Fates,
    policy: &Policy,
    is_due: impl Fn(&Id) -> bool,
    reader: &mut Reader<'_>,
) {
    for (object, fate) in fates {
        let Fate::Delete { target, uid } = &*fate else { continue };
        if !is_holder(&target.id) {
            continue;
        }
        let (target, uid) = (target.clone(), uid.clone());
        if let Some(why) = said(policy, object, &uid) {
            *fate = Fate::Kept { target, uid, why: why.into() };
            continue;
        }
        if !is_due(&target.id) {
            continue;
        }
        *fate = match reader.contents(&target) {
            Some(Contents::Ours) => continue,
            None => Fate::Unread,
            Some(Contents::Unknown(why)) => Fate::Held { target, why: why.clone() },
            Some(Contents::Waiting(what)) => {
                Fate::Held { target, why: format!("it still holds {what}") }
            }
            Some(foreign @ Contents::Foreign(_)) => {
                Fate::Kept { target, uid, why: foreign.why_kept().unwrap_or_default() }
            }
        };
    }
}

/// Why this incarnation was said to stay, if it was.
fn said<'a>(policy: &'a Policy, object: &ObjectResource, uid: &str) -> Option<&'a str> {
    let entry = policy.entry(object)?;
    let same = entry.properties.as_ref().is_some_and(|known| known.uid == uid);
    (same && entry.reason.starts_with(HOLDS_FOREIGN)).then_some(entry.reason.as_str())
}

/// Whether a policy may go as far as this object is concerned: nothing of the policy is left there, or
/// it stays and the hub knows.
pub(crate) fn is_over(
    seen: &Observed,
    policy: &Policy,
    (object, fate): (&ObjectResource, &Fate),
) -> bool {
    let Fate::Kept { target, uid, why: _ } = fate else { return fate.is_settled() };
    let id = &target.id;
    let is_it = |one: &LeftObject| {
        let LeftObject { group, resource, namespace, name, uid: known, .. } = one;
        [group, resource, namespace, name, known]
            == [&id.group, &id.resource, &id.namespace, &id.name, uid]
    };
    said(policy, object, uid).is_some() && seen.cluster.heard.iter().any(is_it)
}

/// What the status of a policy that goes is to list: what it did, and of what stays, why.
pub(crate) fn listed(policy: &Policy, fates: &Fates) -> Vec<RelatedObject> {
    let mut all = policy.status.related_objects.clone();
    for entry in &mut all {
        let Some(Fate::Kept { target: _, uid, why }) = fates.get(&entry.object) else { continue };
        entry.reason.clone_from(why);
        entry.properties.get_or_insert_default().uid.clone_from(uid);
    }
    all
}
