//! What the agent itself put on its cluster so that policies have a place there: a namespace, and in it
//! the key with which the hub encrypts for them. Whether it goes when the cluster leaves.
//!
//! Only what bears our label is ours: a namespace that was there before is nobody's leftover.

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use cleat_api::leftoverrecord::{LeftObject, Stays};
use cleat_api::managedcluster::RemoveStrategy;
use cleat_api::policy::name::ENCRYPTION_KEY_SECRET;
use serde_json::{Value, json};

use crate::id::{Id, Target};
use crate::registration::hub::Seen;
use crate::work::contents::Contents;
use crate::work::retire::NEEDLESS;
use crate::write::{Action, Propagation, Side, Write};

/// On what an agent made for something of the hub's, and for what.
pub const MADE_FOR: &str = "cleat.dev/made-for";
pub const MADE_FOR_POLICIES: &str = "policies";

/// Everything the decision depends on.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The cluster's name, which is also the namespace's.
    pub name: String,
    pub strategy: RemoveStrategy,
    pub namespace: Seen,
    pub key: Seen,
    /// What the namespace holds besides the key, if somebody looked ([`wants_look`]).
    pub contents: Option<Contents>,
    /// What of it the hub was told to stay ([`is_ground`]).
    pub told: Vec<LeftObject>,
}

/// What is to be done, one thing after the other.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// Nothing of ours is left there.
    Done,
    Do(Action),
    /// It stays, and the hub has to know before our label comes off.
    Tell(LeftObject),
    Wait(String),
    Unknown(String),
}

pub fn namespace(name: &str) -> Target {
    let id = Id { resource: "namespaces".to_string(), name: name.to_string(), ..Id::default() };
    Target { version: "v1".to_string(), id }
}

pub fn key(namespace: &str) -> Target {
    let id = Id {
        group: String::new(),
        resource: "secrets".to_string(),
        namespace: namespace.to_string(),
        name: ENCRYPTION_KEY_SECRET.to_string(),
    };
    Target { version: "v1".to_string(), id }
}

/// Whether something is ours.
pub fn is_marked(object: &Value) -> bool {
    let labels = object.pointer("/metadata/labels").and_then(Value::as_object);
    labels.and_then(|all| all.get(MADE_FOR)?.as_str()) == Some(MADE_FOR_POLICIES)
}

/// Whether what was told to stay is the ground. What works and policies leave is told in the same
/// place, and theirs to take back.
pub fn is_ground(told: &LeftObject) -> bool {
    told.unmarked && told.source == MADE_FOR_POLICIES && told.resource == "namespaces"
}

/// Whether somebody has to look what is in the namespace, before it goes.
pub fn wants_look(seen: &Observed) -> bool {
    let goes = seen.strategy == RemoveStrategy::Required;
    goes && matches!(&seen.namespace, Seen::Present(live) if is_marked(live) && !is_going(live))
}

pub fn next(seen: &Observed) -> Next {
    let goes = seen.strategy == RemoveStrategy::Required;
    match &seen.key {
        Seen::Unknown => return Next::Unknown("the key of policies cannot be read".to_string()),
        // Where nothing has to be seen gone, what was accepted for deletion is not waited for.
        Seen::Present(live) if is_marked(live) && is_going(live) && !goes => {}
        Seen::Present(live) if is_marked(live) => {
            return match is_going(live) {
                true => Next::Wait(format!("the key of policies{}", held_by(live))),
                false => Next::Do(delete(key(&seen.name), live)),
            };
        }
        Seen::Present(_) | Seen::Absent => {}
    }
    let live = match &seen.namespace {
        Seen::Unknown => return Next::Unknown(format!("namespaces {} cannot be read", seen.name)),
        Seen::Present(live) if is_marked(live) => live,
        Seen::Present(_) | Seen::Absent => return Next::Done,
    };
    if is_going(live) {
        return match goes {
            true => Next::Wait(format!("the namespace of policies{}", held_by(live))),
            // Whoever deletes it, it is not this leave's to see to its end.
            false => Next::Done,
        };
    }
    let (why, stays) = match (&seen.contents, seen.strategy) {
        (_, RemoveStrategy::Needless) => (format!("kept by {NEEDLESS}"), Stays::Declared),
        _ if is_owned(live) => ("another work holds it".to_string(), Stays::NotOurs),
        (Some(Contents::Ours), _) => return Next::Do(delete(namespace(&seen.name), live)),
        (Some(Contents::Waiting(what)), _) => {
            return Next::Wait(format!("the namespace of policies, which holds {what}"));
        }
        (Some(Contents::Unknown(why)), _) => return Next::Unknown(why.clone()),
        (Some(foreign @ Contents::Foreign(_)), _) => {
            (foreign.why_kept().unwrap_or_default(), Stays::Declared)
        }
        (None, _) => {
            return Next::Unknown(format!("namespaces {} was not looked into", seen.name));
        }
    };
    let uid = text(live, "/metadata/uid");
    if seen.told.iter().any(|told| told.resource == "namespaces" && told.uid == uid) {
        return Next::Do(unmark(seen, live));
    }
    Next::Tell(LeftObject {
        version: "v1".to_string(),
        resource: "namespaces".to_string(),
        name: seen.name.clone(),
        uid,
        source: MADE_FOR_POLICIES.to_string(),
        why,
        stays: Some(stays),
        unmarked: true,
        ..LeftObject::default()
    })
}

/// What of what was told is still there.
pub fn left(seen: &Observed) -> Vec<LeftObject> {
    let stands = |told: &&LeftObject| match &seen.namespace {
        Seen::Present(live) => told.uid == text(live, "/metadata/uid"),
        Seen::Absent => false,
        Seen::Unknown => true,
    };
    seen.told.iter().filter(stands).cloned().collect()
}

fn is_owned(live: &Value) -> bool {
    let owners = live.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    owners.is_some_and(|owners| !owners.is_empty())
}

fn is_going(live: &Value) -> bool {
    live.pointer("/metadata/deletionTimestamp").is_some()
}

/// What something that is going waits for, as far as it says so.
fn held_by(live: &Value) -> String {
    let finalizers = live.pointer("/metadata/finalizers").and_then(Value::as_array);
    let finalizers = finalizers.into_iter().flatten().filter_map(Value::as_str);
    let mut held: Vec<String> = finalizers.map(|one| format!("held by {one}")).collect();
    let conditions = live.pointer("/status/conditions").and_then(Value::as_array);
    let conditions = conditions.into_iter().flatten();
    let wrong = conditions.filter(|one| one.get("status").and_then(Value::as_str) == Some("True"));
    let said = wrong.filter_map(|one| one.get("message").and_then(Value::as_str));
    held.extend(said.filter(|said| !said.is_empty()).map(|said| said.to_string()));
    if held.is_empty() { String::new() } else { format!(", which is going: {}", held.join("; ")) }
}

fn text(live: &Value, pointer: &str) -> String {
    live.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_string()
}

fn delete(target: Target, live: &Value) -> Action {
    let write = Write::Delete {
        uid: text(live, "/metadata/uid"),
        // Somebody may be taking hold of it at this moment; then it must not go.
        resource_version: Some(text(live, "/metadata/resourceVersion")),
        propagation: Propagation::Background,
    };
    Action { side: Side::Cluster, target, write }
}

fn unmark(seen: &Observed, live: &Value) -> Action {
    let patch = json!({ "metadata": {
        "uid": text(live, "/metadata/uid"),
        "resourceVersion": text(live, "/metadata/resourceVersion"),
        "labels": { MADE_FOR: null },
    }});
    Action { side: Side::Cluster, target: namespace(&seen.name), write: Write::Merge(patch) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;

    fn marked(uid: &str) -> Value {
        json!({ "metadata": {
            "name": "c1", "uid": uid, "resourceVersion": "7",
            "labels": { MADE_FOR: MADE_FOR_POLICIES },
        }})
    }

    fn seen(strategy: RemoveStrategy) -> Observed {
        Observed {
            name: "c1".to_string(),
            strategy,
            namespace: Seen::Present(marked("n")),
            key: Seen::Absent,
            contents: Some(Contents::Ours),
            told: vec![],
        }
    }

    fn deletes(next: &Next, uid: &str) -> bool {
        matches!(next, Next::Do(Action { write: Write::Delete { uid: of, .. }, .. }) if of == uid)
    }

    #[test]
    fn an_empty_namespace_of_ours_goes_after_the_key() {
        let mut seen = seen(RemoveStrategy::Required);
        seen.key = Seen::Present(marked("k"));
        assert!(deletes(&next(&seen), "k"));
        seen.key = Seen::Absent;
        assert!(wants_look(&seen) && deletes(&next(&seen), "n"));
        if let Seen::Present(live) = &mut seen.namespace {
            live["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        assert!(matches!(next(&seen), Next::Wait(_)), "accepted is not gone");
        seen.namespace = Seen::Absent;
        assert_eq!(next(&seen), Next::Done);
    }

    #[test]
    fn what_is_not_ours_or_not_seen_is_not_touched() {
        let mut seen = seen(RemoveStrategy::Required);
        seen.key = Seen::Unknown;
        assert!(matches!(next(&seen), Next::Unknown(_)));
        let theirs = Seen::Present(json!({ "metadata": { "uid": "n" } }));
        (seen.key, seen.namespace) = (theirs.clone(), theirs);
        assert_eq!(next(&seen), Next::Done);
        assert!(!wants_look(&seen));
        seen.namespace = Seen::Unknown;
        assert!(matches!(next(&seen), Next::Unknown(_)));
        seen.namespace = Seen::Present(marked("n"));
        for contents in [None, Some(Contents::Unknown("no".to_string()))] {
            seen.contents = contents;
            assert!(matches!(next(&seen), Next::Unknown(_)));
        }
        seen.contents = Some(Contents::Waiting("a pod".to_string()));
        assert!(matches!(next(&seen), Next::Wait(_)));
    }

    #[test]
    fn what_stays_is_told_before_our_label_comes_off() {
        let map = Id { resource: "configmaps".to_string(), name: "m".to_string(), ..Id::default() };
        let foreign = Observed {
            contents: Some(Contents::Foreign(vec![map])),
            ..seen(RemoveStrategy::Required)
        };
        for mut seen in [foreign, seen(RemoveStrategy::Needless)] {
            let Next::Tell(left) = next(&seen) else { panic!("{:?}", next(&seen)) };
            assert_eq!((&*left.uid, left.stays), ("n", Some(Stays::Declared)));
            seen.told = vec![left.clone()];
            let Next::Do(Action { write: Write::Merge(patch), .. }) = next(&seen) else {
                panic!("{:?}", next(&seen))
            };
            assert_eq!(patch["metadata"]["labels"][MADE_FOR], Value::Null);
            assert_eq!(super::left(&seen), [left]);
            seen.namespace = Seen::Absent;
            assert_eq!(super::left(&seen), []);
        }
    }

    #[test]
    fn a_namespace_that_somebody_deletes_held_a_cluster_that_keeps_everything() {
        let mut live = marked("n");
        live["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        live["status"] = json!({ "conditions": [
            { "type": "NamespaceDeletionFailure", "status": "True", "message": "stale: x/v1" },
            { "type": "NamespaceContentRemaining", "status": "False", "message": "all is gone" },
        ] });
        for held in [RemoveStrategy::Needless, RemoveStrategy::Required] {
            let mut seen = seen(held);
            seen.namespace = Seen::Present(live.clone());
            let expected = match held {
                RemoveStrategy::Needless => Next::Done,
                RemoveStrategy::Required => {
                    let what = "the namespace of policies, which is going: stale: x/v1";
                    Next::Wait(what.to_string())
                }
            };
            assert_eq!(next(&seen), expected);
            let mut key = marked("k");
            key["metadata"]["finalizers"] = json!(["example.com/x"]);
            seen.key = Seen::Present(key.clone());
            assert!(deletes(&next(&seen), "k"), "it is not asked for yet");
            key["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            seen.key = Seen::Present(key);
            let expected = match held {
                RemoveStrategy::Needless => Next::Done,
                RemoveStrategy::Required => {
                    let what = "the key of policies, which is going: held by example.com/x";
                    Next::Wait(what.to_string())
                }
            };
            assert_eq!(next(&seen), expected);
        }
    }
}
