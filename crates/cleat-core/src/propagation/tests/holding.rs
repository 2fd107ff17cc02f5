//! What is taken away, and what is not.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;

use alloc::vec;

use cleat_api::managedcluster::taint;
use serde_json::{Value, json};

use super::*;
use crate::write::Outcome;

/// Copies on a and b, and then only a is chosen.
fn left() -> Observed {
    let mut seen = seen();
    settle(&mut seen);
    decide(&mut seen, "all", settled(&["a"]));
    seen
}

fn deleted(seen: &Observed) -> Vec<String> {
    let plan = plan(seen);
    let deletes =
        plan.iter().flatten().filter(|action| matches!(action.write, Write::Delete { .. }));
    deletes.map(|action| action.target.id.namespace.clone()).collect()
}

#[test]
fn a_cluster_that_leaves_the_decision_loses_its_copy() {
    let seen = left();
    assert_eq!(deleted(&seen), ["b"]);
    assert!(removes(&plan(&seen)));
    let plan = plan(&seen);
    let Write::Delete { uid, resource_version, .. } = &plan[0][0].write else { panic!() };
    assert_eq!((&**uid, resource_version.as_deref()), ("uid-b", Some("1")));
}

#[test]
fn what_somebody_takes_away_goes_from_everywhere() {
    let disabled = |seen: &mut Observed| {
        let mut spec = spec();
        spec["disabled"] = json!(true);
        seen.root = Some(root_with(spec, Value::Null));
    };
    let changes: [&dyn Fn(&mut Observed); 5] = [
        &|seen| seen.root = None,
        &disabled,
        &|seen| seen.bindings.clear(),
        &|seen| decide(seen, "all", settled(&[])),
        &|seen| decide(seen, "all", Decided::NoPlacement),
    ];
    for (index, change) in changes.into_iter().enumerate() {
        let mut seen = seen();
        settle(&mut seen);
        change(&mut seen);
        assert_eq!(deleted(&seen), ["a", "b"], "change {index}");
    }
}

#[test]
fn nothing_is_deleted_for_lack_of_knowledge() {
    let listed = vec![Group::default()];
    for unsure in [Decided::Unknown, Decided::Undecided, Decided::Unsettled { listed, chosen: 2 }] {
        let mut seen = seen();
        settle(&mut seen);
        decide(&mut seen, "all", unsure.clone());
        says(&mut seen, "a", "Compliant");
        says(&mut seen, "b", "NonCompliant");
        assert_eq!(plan(&seen), Plan::new(), "{unsure:?}");
        // And what was known of them is still told.
        assert_eq!(told(&seen)["compliant"], "NonCompliant", "{unsure:?}");
    }
    let mut seen = seen();
    settle(&mut seen);
    seen.decided.clear();
    assert_eq!(plan(&seen), Plan::new());
}

#[test]
fn a_cluster_that_became_unreachable_and_left_the_placement_keeps_its_copy() {
    let tainted = |key: &str| {
        let object = json!({
            "metadata": { "name": "b" },
            "spec": { "taints": [{ "key": key, "effect": "NoSelect" }] },
        });
        Arc::new(Cluster::read(&metadata(&object), &object))
    };
    let away = [
        cluster("b", Some(("Unknown", 1))).1,
        cluster("b", Some(("False", 1))).1,
        tainted(taint::UNREACHABLE),
        tainted(taint::UNAVAILABLE),
    ];
    for cluster_b in away {
        let mut seen = left();
        says(&mut seen, "a", "Compliant");
        says(&mut seen, "b", "NonCompliant");
        seen.clusters.insert("b".into(), cluster_b);
        assert_eq!(plan(&seen), Plan::new());
        let status = told(&seen);
        // What it said last does not count, and is not passed on.
        assert_eq!(status["compliant"], "Compliant");
        assert!(status["status"][1].get("compliant").is_none());
        let message = status["status"][1]["message"].as_str().unwrap().to_owned();
        assert!(
            message.contains("unreachable") && message.contains("Policy b/team.p"),
            "{message}"
        );
        // One event, when it begins.
        let events = report(&seen, &vec![], &[]).events;
        assert_eq!(events.len(), 1);
        assert!(events[0].warning && events[0].message.contains("cluster b"));
        seen.root = Some(root_with(spec(), status.clone()));
        let again = report(&seen, &vec![], &[]);
        assert_eq!((again.events, again.status), (vec![], None));

        // Back, but perhaps nobody who decides has noticed.
        let just = now().as_second() - 3;
        seen.clusters.extend([cluster("b", Some(("True", just)))]);
        assert_eq!(plan(&seen), Plan::new());
        let wake = report(&seen, &vec![], &[]).wake.unwrap();
        assert_eq!(wake.as_secs(), 7);
        let mut chosen = seen.clone();
        decide(&mut chosen, "all", settled(&["a", "b"]));
        assert_eq!(plan(&chosen), Plan::new());
        // And when they did: what they say counts.
        seen.clusters.extend([cluster("b", Some(("True", 1)))]);
        assert_eq!(deleted(&seen), ["b"]);
    }
}

#[test]
fn a_human_can_take_it_away_from_an_unreachable_cluster() {
    let mut seen = left();
    seen.clusters.extend([cluster("b", Some(("Unknown", 1)))]);
    assert_eq!(plan(&seen), Plan::new());
    // The copy itself.
    let mut gone = seen.clone();
    gone.replicas.remove("b");
    assert_eq!(plan(&gone), Plan::new());
    // Or the policy.
    seen.root = None;
    assert_eq!(deleted(&seen), ["a", "b"]);
}

#[test]
fn a_namespace_that_is_not_that_of_a_cluster_is_left_alone() {
    let mut seen = left();
    seen.clusters.remove("b");
    assert_eq!(plan(&seen), Plan::new());
    seen.root = None;
    assert_eq!(deleted(&seen), ["a"]);
}

#[test]
fn a_cluster_that_leaves_the_fleet_is_another_story() {
    let object = json!({
        "metadata": { "name": "b", "deletionTimestamp": at(1), "finalizers": ["x"] },
    });
    let leaving = Arc::new(Cluster::read(&metadata(&object), &object));
    let mut seen = left();
    seen.clusters.insert("b".into(), leaving);
    assert_eq!(plan(&seen), Plan::new());
    assert!(told(&seen)["status"][1]["message"].as_str().unwrap().contains("leaves the fleet"));
    // What that story took away is not made anew.
    seen.replicas.remove("b");
    decide(&mut seen, "all", settled(&["a", "b"]));
    assert_eq!(plan(&seen), Plan::new());
    seen.root = None;
    assert_eq!(deleted(&seen), ["a"]);
}

#[test]
fn a_copy_that_does_not_go_is_told_of_with_what_its_cluster_says() {
    let mut seen = left();
    let mut replica = Replica::clone(&seen.replicas["b"]);
    let object = json!({
        "metadata": {
            "namespace": "b", "name": "team.p", "uid": "uid-b",
            "deletionTimestamp": at(now().as_second() - 5), "finalizers": ["agent/hold"],
        },
        "status": { "compliant": "NonCompliant", "details": [
            { "templateMeta": { "name": "t" }, "history": [
                { "message": "Terminating; violation - Failed to delete objects: x" }] },
        ] },
    });
    let read = Replica::read(&metadata(&object), &object);
    (replica.deleting, replica.deleting_since) = (read.deleting, read.deleting_since);
    (replica.said, replica.compliant) = (read.said, read.compliant);
    seen.replicas.insert("b".into(), Arc::new(replica.clone()));
    assert_eq!(plan(&seen), Plan::new());
    let status = told(&seen);
    assert_eq!(status["compliant"], "NonCompliant");
    assert_eq!(
        status["status"][1]["message"],
        "being removed, and held by the cluster: Terminating; violation - Failed to delete objects: x"
    );
    assert_eq!(report(&seen, &vec![], &[]).events.len(), 1);
    // Also of a policy that is disabled, and one event for one whose root is gone.
    let mut spec = spec();
    spec["disabled"] = json!(true);
    seen.root = Some(root_with(spec, Value::Null));
    seen.replicas.remove("a");
    let status = told(&seen);
    assert_eq!(status["status"].as_array().unwrap().len(), 1);
    seen.root = None;
    let mut verdict = report(&seen, &vec![], &[]);
    assert_eq!((verdict.events.len(), verdict.status), (1, None));
    // The copy is all that is left to be looked at.
    let Write::Create(event) = &events(&seen, &verdict.events)[0].write else { panic!() };
    assert_eq!(event["metadata"]["namespace"], "b");
    let about = &event["involvedObject"];
    assert_eq!((&about["namespace"], &about["name"]), (&json!("b"), &json!("team.p")));
    assert_eq!(about["uid"], "uid-b");
    let done = [Outcome::Done(Value::Null)];
    assert_eq!(written(&mut verdict.told, &verdict.events, &done), None);
    seen.told = verdict.told;
    assert_eq!(report(&seen, &vec![], &[]).events, []);

    // Where the cluster says nothing, time does.
    let mut quiet = left();
    replica.said = None;
    quiet.replicas.insert("b".into(), Arc::new(replica.clone()));
    assert_eq!(told(&quiet)["status"][1]["message"], "being removed");
    assert_eq!(report(&quiet, &vec![], &[]).events, []);
    assert_eq!(report(&quiet, &vec![], &[]).wake.unwrap().as_secs(), 55);
    quiet.now = Timestamp::from_second(now().as_second() + 60).unwrap();
    assert!(told(&quiet)["status"][1]["message"].as_str().unwrap().contains("more than 60 s"));
    assert_eq!(report(&quiet, &vec![], &[]).events.len(), 1);
}

#[test]
fn a_copy_that_is_going_is_made_anew_only_when_it_is_gone() {
    let mut seen = seen();
    settle(&mut seen);
    let mut replica = Replica::clone(&seen.replicas["b"]);
    replica.deleting = true;
    seen.replicas.insert("b".into(), Arc::new(replica));
    assert_eq!(plan(&seen), Plan::new());
    seen.replicas.remove("b");
    assert!(matches!(plan(&seen)[0][0].write, Write::Create(_)));
}
