//! Letting go of objects: what becomes of each that a policy held and holds no longer.
//!
//! The same decision serves an object that left the policy and a policy that is deleted. It is made
//! from the status, never from labels; a delete always names the incarnation it means.

use alloc::borrow::ToOwned;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use cleat_api::configurationpolicy::{
    ObjectResource, Properties, PruneObjectBehavior, RelatedObject, Remediation, reason,
};
use jiff::{SignedDuration, Timestamp};

use super::memory::Memory;
use super::observed::{Kind, Policy, Present, Seen};
use super::reader::Reader;
use crate::id::{Id, Target};
use crate::protection::denial::{PROTECTED_BY, Protected};
use crate::work::kind_order::removal_rank;
use crate::work::retire::is_awaited;
use crate::work::trouble::{Trouble, TroubleKind};
use crate::write::{Action, Propagation, Side, Write};

/// How long an object may take to go before it counts as stuck.
const PATIENCE: SignedDuration = SignedDuration::from_secs(30);

/// What a policy says about what it leaves behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pruning {
    /// Nothing is deleted: not asked for, only informing, or not understood.
    Nothing,
    Created,
    All,
}

pub(crate) fn pruning(policy: &Policy) -> Pruning {
    match (policy.spec.remediation(), policy.spec.prune_object_behavior) {
        (Some(Remediation::Enforce), PruneObjectBehavior::DeleteAll) => Pruning::All,
        (Some(Remediation::Enforce), PruneObjectBehavior::DeleteIfCreated) => Pruning::Created,
        _ => Pruning::Nothing,
    }
}

/// Why nothing has to be done about an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// The entry stands for objects without saying which.
    Nameless,
    /// It was listed because it must not be there.
    MustNotHave,
    /// The policy deletes nothing; the field that says so.
    NotPruned(&'static str),
    /// The policy did not make it.
    Found,
    /// The one that the policy made is gone, and this is somebody else's.
    Replaced,
    Gone,
}

/// What becomes of an object that is let go of.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Fate {
    /// Nothing of ours is left there: it can be forgotten.
    Settled(Left),
    Delete {
        target: Target,
        uid: String,
    },
    /// Accepted for deletion then, held back by these finalizers (or about to go, if none).
    Terminating {
        target: Target,
        since: Timestamp,
        finalizers: Vec<String>,
    },
    /// It stays though it was to go, because of what it holds.
    Kept {
        target: Target,
        uid: String,
        why: String,
    },
    /// It waits for what it holds, or nobody can tell what that is.
    Held {
        target: Target,
        why: String,
    },
    /// It cannot be seen, so nothing is done and nothing forgotten.
    Unknown(String),
    /// Nobody looked yet.
    Unread,
}

impl Fate {
    pub(crate) fn is_settled(&self) -> bool {
        matches!(self, Self::Settled(_))
    }

    fn id(&self) -> Option<&Id> {
        match self {
            Self::Delete { target, .. }
            | Self::Terminating { target, .. }
            | Self::Held { target, .. } => Some(&target.id),
            Self::Settled(_) | Self::Kept { .. } | Self::Unknown(_) | Self::Unread => None,
        }
    }
}

pub(crate) type Fates = BTreeMap<ObjectResource, Fate>;

/// What becomes of everything in `leaving`.
pub(crate) fn fates<'a>(
    leaving: impl Iterator<Item = &'a RelatedObject>,
    policy: &Policy,
    pruning: Pruning,
    reader: &mut Reader<'_>,
) -> Fates {
    let fates = leaving.map(|entry| (entry.object.clone(), fate(entry, policy, pruning, reader)));
    fates.collect()
}

fn fate(entry: &RelatedObject, policy: &Policy, pruning: Pruning, reader: &mut Reader<'_>) -> Fate {
    let object = &entry.object;
    // The name stands for all objects that might have matched, and for none.
    if object.metadata.name.is_empty() || object.metadata.name == "-" {
        return Fate::Settled(Left::Nameless);
    }
    let created =
        entry.properties.as_ref().is_some_and(|known| known.created_by_policy == Some(true));
    // It was listed because it was not there; whatever is there now is somebody else's.
    if entry.reason == reason::MISSING_AS_EXPECTED && !created {
        return Fate::Settled(Left::MustNotHave);
    }
    match pruning {
        Pruning::Nothing => return Fate::Settled(Left::NotPruned(spared_by(policy))),
        Pruning::Created if !created => return Fate::Settled(Left::Found),
        Pruning::Created | Pruning::All => {}
    }
    let kind = match reader.kind(&object.api_version, &object.kind) {
        None => return Fate::Unread,
        Some(Kind::Absent) => return Fate::Settled(Left::Gone),
        Some(Kind::Unknown(why)) => return Fate::Unknown(why.clone()),
        Some(Kind::Served(kind)) => kind,
    };
    let target = kind.target(&object.metadata.namespace, &object.metadata.name);
    let present = match reader.leaver(&target) {
        None => return Fate::Unread,
        Some(Seen::Absent) => return Fate::Settled(Left::Gone),
        Some(Seen::Unknown(why)) => return Fate::Unknown(why.clone()),
        Some(Seen::Unwatchable) => return Fate::Unknown("it cannot be watched".to_owned()),
        Some(Seen::Present(present)) => present,
    };
    if pruning == Pruning::Created && !is_ours(entry.properties.as_ref(), present, &policy.uid) {
        return Fate::Settled(Left::Replaced);
    }
    match present.terminating() {
        Some(since) => {
            let finalizers = present.finalizers().into_iter().map(ToOwned::to_owned).collect();
            Fate::Terminating { target, since, finalizers }
        }
        None if present.uid().is_empty() => Fate::Unknown("it has no uid".to_owned()),
        None => Fate::Delete { target, uid: present.uid().to_owned() },
    }
}

/// The field because of which a policy deletes nothing.
fn spared_by(policy: &Policy) -> &'static str {
    match policy.spec.prune_object_behavior {
        PruneObjectBehavior::DeleteAll | PruneObjectBehavior::DeleteIfCreated => {
            "spec.remediationAction"
        }
        PruneObjectBehavior::None | PruneObjectBehavior::Unknown => "spec.pruneObjectBehavior",
    }
}

/// Whether this incarnation is the one the policy made.
fn is_ours(known: Option<&Properties>, present: &Present, policy: &str) -> bool {
    known.is_some_and(|known| match known.uid.as_str() {
        // Written down before it was made, and the answer was never seen.
        "" => present.is_written_by(policy),
        uid => uid == present.uid(),
    })
}

/// Deletes the objects of the kinds whose turn it is. Kinds go in the order in which they may need
/// each other, and the next ones wait until these were seen gone; but what a protected object waits
/// for must not wait for it.
pub(crate) fn deletions(fates: &Fates, memory: &Memory, now: Timestamp) -> Vec<Action> {
    let next = next(fates, memory);
    let mut actions = Vec::new();
    for fate in fates.values() {
        let Fate::Delete { target, uid } = fate else { continue };
        if !next.contains(&target.id) || memory.must_wait(&target.id, now) {
            continue;
        }
        let write = Write::Delete {
            uid: uid.clone(),
            resource_version: None,
            propagation: Propagation::Background,
        };
        actions.push(Action { side: Side::Cluster, target: target.clone(), write });
    }
    actions
}

/// The objects that go now, or are going.
pub(crate) fn next(fates: &Fates, memory: &Memory) -> BTreeSet<Id> {
    let (turn, protected) = (turn(fates), protected(fates, memory));
    let goes = |id: &&Id| Some(rank(id)) == turn || is_awaited(&protected, id);
    fates.values().filter_map(Fate::id).filter(goes).cloned().collect()
}

fn turn(fates: &Fates) -> Option<u16> {
    fates.values().filter_map(Fate::id).map(rank).min()
}

fn rank(id: &Id) -> u16 {
    removal_rank(&id.group, &id.resource)
}

/// What was refused because others must go first.
fn protected<'a>(fates: &'a Fates, memory: &Memory) -> BTreeMap<&'a Id, Protected> {
    let refused = fates.values().filter_map(|fate| match fate {
        Fate::Delete { target, .. } => {
            Some((&target.id, memory.troubles.get(&target.id)?.protected()?))
        }
        _ => None,
    });
    refused.collect()
}

/// What is left of the objects that have to go, each with what it waits for.
pub(crate) fn remaining(fates: &Fates, memory: &Memory) -> Vec<String> {
    let next = next(fates, memory);
    let mut all = Vec::new();
    for (object, fate) in fates {
        let waits_for = match fate {
            Fate::Settled(_) => continue,
            Fate::Unread => "it was not looked at".to_owned(),
            Fate::Unknown(why) => format!("it cannot be seen: {why}"),
            Fate::Held { why, .. } => why.clone(),
            Fate::Kept { why, .. } => format!("stays: {why}"),
            Fate::Terminating { finalizers, .. } if finalizers.is_empty() => {
                "terminating".to_owned()
            }
            Fate::Terminating { finalizers, .. } => match finalizers.as_slice() {
                [one] => format!("waiting for finalizer {one}"),
                many => format!("waiting for finalizers {}", many.join(", ")),
            },
            Fate::Delete { target, .. } if !next.contains(&target.id) => {
                "goes after the others".to_owned()
            }
            Fate::Delete { target, .. } => match memory.troubles.get(&target.id) {
                Some(trouble) if trouble.kind != TroubleKind::Stale => told(trouble),
                _ => "to be deleted".to_owned(),
            },
        };
        all.push(format!("{} ({waits_for})", named(object)));
    }
    all
}

/// What a server said; of a CriticalService's refusal only that one's words.
fn told(trouble: &Trouble) -> String {
    let message = &trouble.message;
    let begin = trouble.protected().and_then(|_| message.find(PROTECTED_BY)).unwrap_or_default();
    message.get(begin..).unwrap_or_default().to_owned()
}

/// How many objects are named in a message.
const NAMED: usize = 20;

/// `Failed to delete objects: /v1, Kind=Pod "a" in namespace b (terminating)`
pub(crate) fn message(remaining: &[String]) -> String {
    let mut shown: Vec<String> = remaining.iter().take(NAMED).cloned().collect();
    if remaining.len() > NAMED {
        shown.push(format!("and {} more", remaining.len() - NAMED));
    }
    format!("Failed to delete objects: {}", shown.join(", "))
}

fn named(object: &ObjectResource) -> String {
    let ObjectResource { api_version, kind, metadata } = object;
    let group_version = match api_version.contains('/') {
        true => api_version.clone(),
        false => format!("/{api_version}"),
    };
    let place = match metadata.namespace.as_str() {
        "" => String::new(),
        namespace => format!(" in namespace {namespace}"),
    };
    format!("{group_version}, Kind={kind} \"{}\"{place}", metadata.name)
}

/// The objects that something stands in the way of: refused, unseen, or too long on their way out.
pub(crate) fn stuck(fates: &Fates, memory: &Memory, now: Timestamp) -> Fates {
    let is_stuck = |fate: &Fate| match fate {
        Fate::Settled(_) | Fate::Kept { .. } | Fate::Unread => false,
        Fate::Unknown(_) | Fate::Held { .. } => true,
        Fate::Delete { target, .. } => {
            let trouble = memory.troubles.get(&target.id);
            trouble.is_some_and(|trouble| trouble.kind != TroubleKind::Stale)
        }
        Fate::Terminating { .. } => patience(fate).is_none_or(|end| end <= now),
    };
    let all = fates.iter().filter(|(_, fate)| is_stuck(fate));
    all.map(|(object, fate)| (object.clone(), fate.clone())).collect()
}

/// When an object on its way out begins to count as stuck.
pub(crate) fn patience(fate: &Fate) -> Option<Timestamp> {
    match fate {
        Fate::Terminating { since, .. } => since.checked_add(PATIENCE).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::{Outcome, Refusal};

    fn target(group: &str, resource: &str, name: &str) -> Target {
        let [group, resource, name] = [group, resource, name].map(ToOwned::to_owned);
        let id = Id { group, resource, name, ..Id::default() };
        Target { version: "v1".to_owned(), id }
    }

    fn object(kind: &str) -> ObjectResource {
        ObjectResource { kind: kind.to_owned(), ..ObjectResource::default() }
    }

    fn to_go(target: &Target) -> Fate {
        Fate::Delete { target: target.clone(), uid: "u".to_owned() }
    }

    /// What is remembered when a delete of this was refused so.
    fn refused(target: &Target, message: &str) -> Memory {
        let write = Write::Delete {
            uid: "u".to_owned(),
            resource_version: None,
            propagation: Propagation::Background,
        };
        let action = Action { side: Side::Cluster, target: target.clone(), write };
        let (reason, message) = ("Forbidden".to_owned(), message.to_owned());
        let outcome = Outcome::Refused(Refusal { code: 403, reason, message });
        Memory::default().after(&action, &outcome, Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn what_a_protected_object_waited_for_waited_for_it() {
        let deployment = target("apps", "deployments", "server");
        let definition = target("apiextensions.k8s.io", "customresourcedefinitions", "cools.x.y");
        let namespace = target("", "namespaces", "web");
        let all = [&deployment, &definition, &namespace];
        let fates: Fates =
            all.map(|target| (object(&target.id.resource), to_go(target))).into_iter().collect();
        let deleted = |memory: &Memory| -> Vec<Target> {
            let actions = deletions(&fates, memory, Timestamp::UNIX_EPOCH);
            actions.into_iter().map(|action| action.target).collect()
        };
        assert_eq!(deleted(&Memory::default()), core::slice::from_ref(&deployment));
        let words = "ProtectedBy CriticalService x: \
                     customresourcedefinitions.apiextensions.k8s.io cools.x.y remains. Delete it.";
        let memory = refused(&deployment, words);
        assert_eq!(deleted(&memory), [definition]);
        let told = remaining(&fates, &memory).join(", ");
        assert!(told.contains("Kind=customresourcedefinitions \"\" (to be deleted)"), "{told}");
        assert!(told.contains("Kind=namespaces \"\" (goes after the others)"), "{told}");
    }

    #[test]
    fn whoever_protects_what_is_to_go_is_named() {
        let pod = target("", "pods", "a");
        let words = "ProtectedBy CriticalService x: services y remains. Delete these first.";
        let fates = Fates::from([(object("Pod"), to_go(&pod))]);
        let ours = refused(&pod, &format!("admission webhook \"w\" denied the request: {words}"));
        assert!(remaining(&fates, &ours)[0].ends_with(&format!("({words})")));
        let anothers = refused(&pod, "admission webhook \"w\" denied the request: no");
        assert!(remaining(&fates, &anothers)[0].contains("(admission webhook"));
    }
}
