//! Before a deletion: which finalizers nobody would take off, because their controller is absent or
//! does not run.
//!
//! It is what [`explain`](super::explain) finds when something is stuck, said beforehand and without
//! ages, so that asking twice is answered the same.

use alloc::borrow::ToOwned as _;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;

use jiff::Timestamp;
use serde_json::Value;

use super::finalizer;
use super::object::{Thing, Trail};
use super::question::{Look, Place, Question, Seen};
use super::tree::{Act, Node, Reason};
use crate::id::Id;

/// How far a look at the finalizers of objects got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Foretold {
    /// This has to be known first, all of it at [`Place::Here`].
    Asks(BTreeSet<Question>),
    /// What is to be said of finalizers, by object and name. Of the others nothing is.
    Told(BTreeMap<Id, BTreeMap<String, String>>),
}

/// Of the finalizers of these objects, those that would hold them up for longer than a controller
/// takes.
pub fn foretell(held: &BTreeMap<Id, Value>, seen: &Seen) -> Foretold {
    let look = Look::new(seen, None, None, Timestamp::UNIX_EPOCH);
    let mut told: BTreeMap<Id, BTreeMap<String, String>> = BTreeMap::new();
    for (id, object) in held {
        let thing = Thing { place: Place::Here, id: id.clone(), object };
        for name in thing.finalizers() {
            let node = finalizer::served(&look, &thing, name, &Trail::default());
            if let Some(line) = node.and_then(|node| line(&node)) {
                told.entry(id.clone()).or_default().insert(name.to_owned(), line);
            }
        }
    }
    let missing = look.missing();
    if missing.is_empty() { Foretold::Told(told) } else { Foretold::Asks(missing) }
}

/// One line that says who has to do what.
fn line(node: &Node) -> Option<String> {
    let says = format!("waits for {}", node.text);
    match node.reason? {
        Reason::FinalizerNoOwner => {
            let Act { actor, what, .. } = node.action.as_ref()?;
            Some(format!("{says}; {actor}: {what}"))
        }
        Reason::FinalizerOwnerUnhealthy => {
            let (why, Act { actor, what, .. }) = node.children.iter().find_map(to_do)?;
            Some(format!("{says}: {why}; {actor}: {what}"))
        }
        _ => None,
    }
}

/// The first thing in the way that somebody can do something about.
fn to_do(node: &Node) -> Option<(&str, &Act)> {
    if !node.is_blocking() {
        return None;
    }
    match &node.action {
        // How long it has been so is no news.
        Some(act) => Some((node.text.split(", for ").next().unwrap_or_default(), act)),
        None => node.children.iter().find_map(to_do),
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use serde_json::json;

    use super::super::question::{Answer, Listed};
    use super::*;

    const FINALIZER: &str = "audit.example/archive";

    fn map(manager: &str, finalizer: &str) -> BTreeMap<Id, Value> {
        let mut set = json!({});
        set[format!("v:{}", Value::from(finalizer))] = json!({});
        let object = json!({ "metadata": {
            "namespace": "shop", "name": "orders", "finalizers": [finalizer],
            "managedFields": [{
                "manager": manager, "time": "2026-01-01T00:00:00Z",
                "fieldsV1": { "f:metadata": { "f:finalizers": set } },
            }],
        } });
        let id = Id {
            resource: "configmaps".into(),
            namespace: "shop".into(),
            name: "orders".into(),
            ..Id::default()
        };
        [(id, object)].into()
    }

    /// What is told where these are all workloads there are.
    fn told(held: &BTreeMap<Id, Value>, deployments: &[Value]) -> Vec<String> {
        let mut seen = Seen::default();
        loop {
            let asks = match foretell(held, &seen) {
                Foretold::Told(told) => {
                    return told.into_values().flat_map(BTreeMap::into_values).collect();
                }
                Foretold::Asks(asks) => asks,
            };
            for question in asks {
                let Question::List { resource, .. } = &question else { panic!("{question:?}") };
                let items = match resource.as_str() {
                    "deployments" => deployments.to_vec(),
                    _ => vec![],
                };
                seen.answer(question, Answer::Listed(Listed { items, more: false }));
            }
        }
    }

    fn auditor(replicas: u8) -> Value {
        json!({
            "metadata": { "namespace": "audit", "name": "audit-controller" },
            "spec": { "replicas": replicas }, "status": { "readyReplicas": replicas },
        })
    }

    #[test]
    fn a_finalizer_whose_controller_is_absent_was_not_told_from_one_that_goes_by_itself() {
        let held = map("audit-controller", FINALIZER);
        assert_eq!(told(&held, &[auditor(1)]), [] as [String; 0]);
        assert_eq!(
            told(&held, &[auditor(0)]),
            [
                "waits for finalizer audit.example/archive, set by audit-controller: deployments.apps \
              audit/audit-controller has 0 replicas; whoever runs it: scale it up"
            ]
        );
        assert_eq!(
            told(&held, &[]),
            [
                "waits for finalizer audit.example/archive, set by audit-controller; whoever knows what \
              it stands for: no workload here serves it: start its controller, or see to what it \
              stands for, then take it off by hand"
            ]
        );
        let by_hand = told(&map("kubectl-edit", FINALIZER), &[]);
        assert!(
            by_hand[0].contains("set by kubectl-edit, which is a tool of people"),
            "{by_hand:?}"
        );
    }

    #[test]
    fn what_servers_and_we_ourselves_take_off_is_not_predicted_to_stay() {
        for ours in [
            "kubernetes.io/pvc-protection",
            "foregroundDeletion",
            "cleat.dev/hold",
            "batch.kubernetes.io/job-tracking",
            "service.kubernetes.io/load-balancer-cleanup",
        ] {
            assert_eq!(told(&map("somebody", ours), &[]), [] as [String; 0], "{ours}");
        }
        // Not all workloads could be seen, so nobody knows.
        let held = map("audit-controller", FINALIZER);
        let mut seen = Seen::default();
        while let Foretold::Asks(asks) = foretell(&held, &seen) {
            for question in asks {
                let unread = super::super::Unread { why: "no".into(), forbidden: true };
                seen.answer(question, Answer::Unread(unread));
            }
        }
        assert_eq!(foretell(&held, &seen), Foretold::Told(BTreeMap::new()));
    }
}
