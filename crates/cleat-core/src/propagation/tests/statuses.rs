use alloc::string::ToString;
use alloc::vec::Vec;

use alloc::vec;

use serde_json::{Value, json};

use super::*;
use crate::write::{Outcome, Refusal};

#[test]
fn one_bad_cluster_makes_the_policy_bad() {
    let cases = [
        (["Compliant", "Compliant"], json!("Compliant")),
        (["Compliant", "NonCompliant"], json!("NonCompliant")),
        (["Pending", "NonCompliant"], json!("NonCompliant")),
        (["Compliant", "Pending"], json!("Pending")),
        (["", "Pending"], json!("Pending")),
        (["Compliant", ""], Value::Null),
    ];
    for (states, expected) in cases {
        let mut seen = seen();
        settle(&mut seen);
        for (cluster, state) in ["a", "b"].into_iter().zip(states) {
            if !state.is_empty() {
                says(&mut seen, cluster, state);
            }
        }
        assert_eq!(told(&seen)["compliant"], expected, "{states:?}");
    }
}

#[test]
fn a_status_says_what_binds_the_policy_and_how_it_stands() {
    let mut seen = seen();
    settle(&mut seen);
    says(&mut seen, "a", "Compliant");
    says(&mut seen, "b", "NonCompliant");
    let status = told(&seen);
    assert_eq!(
        status,
        json!({
            "placement": [{ "placementBinding": "bind", "placement": "all" }],
            "status": [
                { "clustername": "a", "clusternamespace": "a", "compliant": "Compliant" },
                { "clustername": "b", "clusternamespace": "b", "compliant": "NonCompliant" },
            ],
            "compliant": "NonCompliant",
        })
    );
    // What was told is not told again.
    seen.root = Some(root_with(spec(), status.clone()));
    assert_eq!(report(&seen, &vec![], &[]).status, None);
    // A disabled policy is bound all the same.
    let mut disabled = spec();
    disabled["disabled"] = json!(true);
    seen.root = Some(root_with(disabled, status));
    let plan = plan(&seen);
    let done: Vec<Vec<Outcome>> =
        plan.iter().map(|step| step.iter().map(|_| Outcome::Done(Value::Null)).collect()).collect();
    let events = report(&seen, &plan, &done).events;
    assert_eq!(events[0].message, "Policy team/p was disabled");
    seen.replicas.clear();
    let status = told(&seen);
    assert_eq!(status["placement"][0]["placement"], "all");
    assert_eq!((&status["status"], &status["compliant"]), (&Value::Null, &Value::Null));
}

#[test]
fn sets_bind_their_policies_but_for_those_they_leave_out() {
    let mut seen = seen();
    let by_set = json!({ "subjects": [{ "kind": "PolicySet", "name": "s" }] });
    seen.bindings = vec![binding("sets", "all", by_set), binding("direct", "some", json!({}))];
    let exclusions = json!([{ "policyName": "p", "clusterNames": ["a", "b"] }]);
    seen.sets = [set("s", json!({ "policies": ["p"], "exclusions": exclusions }))].into();
    decide(&mut seen, "some", settled(&["b", "c"]));
    settle(&mut seen);
    assert_eq!(has(&seen), "b c");
    for cluster in ["b", "c"] {
        says(&mut seen, cluster, "Compliant");
    }
    let status = told(&seen);
    assert_eq!(
        status["placement"],
        json!([
            { "placementBinding": "direct", "placement": "some" },
            { "placementBinding": "sets", "placement": "all", "policySet": "s",
              "exclusions": [{ "clusterName": "a" }, { "clusterName": "b" }] },
        ])
    );
    assert_eq!(
        status["status"],
        json!([
            { "clustername": "a", "clusternamespace": "a" },
            { "clustername": "b", "clusternamespace": "b", "compliant": "Compliant",
              "remainingBindings": [{ "placementBinding": "direct" }] },
            { "clustername": "c", "clusternamespace": "c", "compliant": "Compliant" },
        ])
    );
}

#[test]
fn a_restricted_binding_is_told_of_where_it_overrides_something() {
    let restricted = json!({
        "subFilter": "restricted", "bindingOverrides": { "remediationAction": "enforce" },
    });
    for (clusters, listed) in [(vec!["b", "c"], 2), (vec!["c"], 1)] {
        let mut seen = seen();
        seen.bindings.push(binding("over", "some", restricted.clone()));
        decide(&mut seen, "some", settled(&clusters));
        settle(&mut seen);
        assert_eq!(has(&seen), "a b");
        assert_eq!(told(&seen)["placement"].as_array().unwrap().len(), listed);
    }
}

#[test]
fn placement_rules_place_as_well() {
    let mut seen = seen();
    let rule = json!({ "placementRef": { "kind": "PlacementRule", "name": "old" } });
    seen.bindings = vec![binding("bind", "-", rule)];
    let object = json!({
        "metadata": { "name": "old" },
        "status": { "decisions": [{ "clusterName": "c", "clusterNamespace": "c" }] },
    });
    let metadata = metadata(&object);
    seen.decided =
        [(Source::Rule("old".into()), Source::of_rule(Some((&metadata, &object))))].into();
    settle(&mut seen);
    assert_eq!(has(&seen), "c");
    assert_eq!(told(&seen)["placement"][0]["placementRule"], "old");
    assert_eq!(Source::of_rule(None), Decided::NoPlacement);
    assert_eq!(Source::of_rule(Some((&metadata, &json!({})))), Decided::Undecided);
}

#[test]
fn what_cannot_be_written_is_told_and_tried_again() {
    let mut seen = seen();
    seen.clusters.remove("b");
    let plan = plan(&seen);
    assert_eq!(plan[0].len(), 1);
    let refused = Outcome::Refused(Refusal {
        code: 404,
        reason: "NotFound".into(),
        message: "namespaces \"a\" not found".into(),
    });
    let verdict = report(&seen, &plan, &[vec![refused]]);
    assert_eq!(verdict.wake.unwrap().as_secs(), 1);
    assert!(verdict.events[0].message.contains("namespaces \"a\" not found"));
    let Some(Write::MergeStatus(patch)) = verdict.status.map(|action| action.write) else {
        panic!()
    };
    let message = |index: usize| patch["status"]["status"][index]["message"].clone();
    assert_eq!(message(0), "cannot be written: namespaces \"a\" not found");
    assert_eq!(message(1), "there is no ManagedCluster b");
    seen.setbacks = verdict.setbacks;
    let done = report(&seen, &plan, &[vec![Outcome::Done(Value::Null)]]);
    assert!(done.setbacks.is_empty());
    assert_eq!(done.events[0].message, "Policy team/p was propagated to cluster a");
}

#[test]
fn events_are_about_the_root() {
    let seen = seen();
    let event = Event { warning: true, message: "x".repeat(3000), cluster: None };
    let actions = events(&seen, &[event.clone(), event]);
    assert_ne!(actions[0].target.id.name, actions[1].target.id.name);
    let Write::Create(object) = &actions[0].write else { panic!() };
    assert_eq!(object["involvedObject"]["uid"], "root");
    assert_eq!(
        (&object["reason"], &object["type"]),
        (&json!("PolicyPropagation"), &json!("Warning"))
    );
    assert_eq!(object["message"].as_str().unwrap().len(), 1024);
}

#[test]
fn a_set_says_how_its_policies_stand() {
    let spread = |says: &[(&str, &str)]| {
        Standing::Spread(says.iter().map(|(c, s)| (c.to_string(), s.to_string())).collect())
    };
    let by_set = json!({ "subjects": [{ "kind": "PolicySet", "name": "s" }] });
    let bindings = [binding("sets", "all", by_set)];
    let decided: BTreeMap<_, _> = [(Source::Placement("all".into()), settled(&["a", "b"]))].into();
    let says = |standings: Vec<(&str, Standing)>, exclusions: Value| {
        let names: Vec<&str> = standings.iter().map(|(name, _)| *name).collect();
        let (_, set) = set("s", json!({ "policies": names, "exclusions": exclusions }));
        let standings = standings.into_iter().map(|(name, one)| (name.to_string(), one)).collect();
        let Some(Write::MergeStatus(patch)) =
            report_set(&set, &bindings, &decided, &standings).map(|action| action.write)
        else {
            panic!()
        };
        let mut set = PolicySet::clone(&set);
        set.status = patch["status"].clone();
        assert_eq!(report_set(&set, &bindings, &decided, &standings), None);
        (patch["status"]["compliant"].clone(), patch["status"]["statusMessage"].clone())
    };
    let good = || spread(&[("a", "Compliant"), ("b", "Compliant"), ("c", "NonCompliant")]);
    let none = json!([]);
    assert_eq!(
        says(vec![("p", good())], none.clone()),
        (json!("Compliant"), json!("All policies are reporting status"))
    );
    let pending = spread(&[("a", "Pending"), ("b", "Compliant")]);
    assert_eq!(
        says(vec![("p", good()), ("q", pending)], none.clone()),
        (json!("Pending"), json!("Policies awaiting pending dependencies: q"))
    );
    let part = spread(&[("a", "Compliant")]);
    assert_eq!(
        says(vec![("p", part), ("q", Standing::Disabled), ("r", Standing::Gone)], none,),
        (
            Value::Null,
            json!(
                "Disabled policies: q; No status provided while awaiting policy status: p; Deleted policies: r"
            )
        )
    );
    let part = spread(&[("a", "Compliant")]);
    let exclusions = json!([{ "policyName": "p", "clusterNames": ["b"] }]);
    assert_eq!(
        says(vec![("p", part)], exclusions),
        (
            json!("Compliant"),
            json!("One or more policies were excluded. For details, see status.exclusions.")
        )
    );
}
