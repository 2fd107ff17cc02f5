//! Jobs exactly as platforms expect them.

use alloc::borrow::ToOwned as _;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;

use serde_json::{Value, json};

use super::super::*;
use super::world::{Ended, Luck, SOUND, World};

fn world(definition: Value) -> World {
    let mut world = World::new(
        "2026-01-01T00:00:00Z".parse().unwrap(),
        json!({
            "apiVersion": "policy.open-cluster-management.io/v1beta1",
            "kind": "PolicyAutomation",
            "metadata": { "name": "ticket" },
            "spec": {
                "mode": "everyEvent", "policyRef": "p",
                "automationDef": { "name": "Demo", "secret": "s" },
            },
        }),
    );
    world.edit(json!({ "spec": { "automationDef": definition } }));
    world
}

fn look(world: &mut World) -> Value {
    assert!(matches!(world.pass(SOUND, || Luck::Good), Ended::Well(_)));
    world.jobs.values().next_back().cloned().unwrap_or_default()
}

#[test]
fn a_job_is_as_platforms_expect_it() {
    let mut world = world(json!({
        "type": "AnsibleJob",
        "extra_vars": { "sn_severity": 1, "target_clusters": ["mine"], "policy_name": "mine" },
    }));
    world.edit(json!({ "metadata": { "name": "Create.Ticket_1" } }));
    world.change_policy(
        |policy| {
            policy["status"]["placement"] =
                json!([{ "policySet": "b" }, { "policySet": "a" }, { "placement": "x" }]);
        },
        true,
    );
    world.stands("c1", Some("NonCompliant"), true);
    world.stands("c2", Some("Compliant"), true);
    let job = look(&mut world);
    let name = job["metadata"]["name"].as_str().unwrap().to_owned();
    let suffix = name.strip_prefix("create-ticket-1-everyevent-").unwrap();
    assert!(suffix.len() == 10 && suffix.chars().all(|char| char.is_ascii_hexdigit()), "{name}");
    let metadata = &job["metadata"];
    assert_eq!(
        metadata["labels"],
        json!({ "policy.open-cluster-management.io/policyautomation-name": "Create.Ticket_1" })
    );
    let annotations = metadata["annotations"].as_object().unwrap();
    assert_eq!(annotations["policy.open-cluster-management.io/policyautomation-generation"], "2");
    let version = "policy.open-cluster-management.io/policyautomation-resource-version";
    assert!(annotations[version].as_str().unwrap().parse::<u64>().is_ok());
    assert_eq!(
        metadata["ownerReferences"],
        json!([{
            "apiVersion": "policy.open-cluster-management.io/v1beta1",
            "kind": "PolicyAutomation", "name": "Create.Ticket_1", "uid": "automation-uid",
            "controller": true, "blockOwnerDeletion": true,
        }])
    );
    assert_eq!(
        job["spec"],
        json!({
            "job_template_name": "Demo",
            "tower_auth_secret": "s",
            "job_ttl": 86_400,
            "extra_vars": {
                "sn_severity": 1,
                "target_clusters": ["c1"],
                "policy_name": "p",
                "policy_namespace": "policies",
                "hub_cluster": "",
                "policy_sets": ["a", "b"],
                "policy_violations": {
                    "c1": { "violation_message": "NonCompliant; violation on c1" },
                },
            },
        })
    );
}

#[test]
fn a_rerun_for_nobody_has_no_targets_and_no_violations() {
    let mut world = world(json!({ "jobTtl": 5 }));
    world.edit(json!({
        "metadata": { "annotations": { RERUN: "true" } }, "spec": { "mode": "disabled" },
    }));
    world.change_policy(|policy| policy["spec"]["disabled"] = json!(true), true);
    let job = look(&mut world);
    assert!(job["metadata"]["name"].as_str().unwrap().starts_with("ticket-manual-"));
    assert_eq!(job["spec"]["extra_vars"]["target_clusters"], json!([]));
    assert_eq!(job["spec"]["extra_vars"]["policy_violations"], Value::Null);
    assert_eq!(job["spec"]["extra_vars"]["policy_sets"], json!([]));
    assert_eq!(job["spec"]["job_ttl"], 5);
    look(&mut world);
    assert_eq!(world.made.len(), 1);
}

#[test]
fn violations_are_capped_but_targets_are_not() {
    for (limit, told) in [(json!(null), 12), (json!(3), 3), (json!(0), 12)] {
        let mut world = world(json!({ "policyViolationsLimit": limit }));
        for number in 0..12 {
            world.stands(&format!("c{number:02}"), Some("NonCompliant"), true);
        }
        let vars = look(&mut world)["spec"]["extra_vars"].clone();
        assert_eq!(vars["target_clusters"].as_array().unwrap().len(), 12);
        let violations = vars["policy_violations"].as_object().unwrap();
        assert_eq!(violations.len(), told);
        assert!(violations.contains_key("c00"));
    }
}

#[test]
fn no_violation_makes_a_job_too_big_for_a_server() {
    let mut world = world(json!({}));
    for name in ["c1", "c2", "c3"] {
        world.stands(name, Some("NonCompliant"), true);
    }
    let mut seen = world.observe();
    let long = json!({ "violation_message": "x".repeat(200 * 1024) });
    let violations: BTreeMap<String, Value> =
        ["c1", "c2", "c3"].map(|name| (name.to_owned(), long.clone())).into();
    seen.context = Context::Read { hub_cluster: "hub.example".into(), violations };
    let pending = PendingJob {
        name: "ticket-everyevent-0".into(),
        mode: EVERY_EVENT.into(),
        clusters: ["c1", "c2", "c3"].map(|name| (name.to_owned(), String::new())).into(),
        ..PendingJob::default()
    };
    let Sight::Present(policy) = &seen.policy else { panic!("it is there") };
    let Write::Create(job) = job::create(&seen, policy, &pending).unwrap().write else {
        panic!("it is created")
    };
    let vars = &job["spec"]["extra_vars"];
    assert_eq!(vars["policy_violations"].as_object().unwrap().len(), 2);
    assert_eq!(vars["target_clusters"].as_array().unwrap().len(), 3);
    assert_eq!(vars["hub_cluster"], "hub.example");
}

#[test]
fn a_violation_is_what_the_replica_says() {
    let replica = |status: Value| {
        let replica = json!({
            "metadata": {}, "spec": { "disabled": false, "policy-templates": [] },
            "status": status,
        });
        violation(&serde_json::from_value(replica).unwrap())
    };
    let said = json!({
        "lastTimestamp": "2026-01-01T00:00:00Z", "message": "NonCompliant; no encryption",
        "eventName": "p.17",
    });
    assert_eq!(
        replica(json!({
            "compliant": "NonCompliant",
            "details": [
                { "templateMeta": { "name": "t" }, "compliant": "NonCompliant", "history": [said] },
                { "compliant": "Compliant" },
            ],
        })),
        json!({
            "compliant": "NonCompliant",
            "violation_message": "NonCompliant; no encryption",
            "details": [
                { "compliant": "NonCompliant", "history": [{
                    "lastTimestamp": "2026-01-01T00:00:00Z",
                    "message": "NonCompliant; no encryption",
                }] },
                { "compliant": "Compliant", "history": [] },
            ],
        })
    );
    assert_eq!(
        replica(json!({ "compliant": "NonCompliant" })),
        json!({ "compliant": "NonCompliant", "violation_message": "", "details": null })
    );
}

#[test]
fn names_fit_however_long_the_automation_is_called() {
    let mut world = world(json!({}));
    world.edit(json!({ "metadata": { "name": "a".repeat(253) } }));
    world.stands("c1", Some("NonCompliant"), true);
    let job = look(&mut world);
    assert_eq!(job["metadata"]["name"].as_str().unwrap().len(), 63);
    let label = job["metadata"]["labels"].as_object().unwrap().values().next().unwrap();
    assert_eq!(label.as_str().unwrap().len(), 63);
    assert_eq!(label_value("short"), "short");
}

#[test]
fn the_policy_owns_the_automation_and_other_owners_stay() {
    let mut world = world(json!({}));
    let other = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "app", "uid": "u" });
    let earlier = json!({
        "apiVersion": "policy.open-cluster-management.io/v1", "kind": "Policy", "name": "p",
        "uid": "earlier", "controller": true,
    });
    world.edit(json!({ "metadata": { "ownerReferences": [other, earlier] } }));
    look(&mut world);
    let owners = world.parsed().metadata.owner_references.unwrap();
    assert_eq!(owners.len(), 2);
    assert_eq!((&*owners[0].uid, &*owners[1].uid), ("u", "policy-uid"));
    assert_eq!((owners[1].controller, owners[1].block_owner_deletion), (Some(true), Some(true)));
}

/// An automation that is pointed at another policy does not mistake that one's clusters for served.
#[test]
fn another_policy_has_events_of_its_own() {
    let mut world = world(json!({}));
    world.stands("c1", Some("NonCompliant"), true);
    look(&mut world);
    world.change_policy(|policy| policy["metadata"]["uid"] = json!("another"), false);
    look(&mut world);
    assert_eq!(world.made.len(), 2);
}

#[test]
fn nothing_happens_without_a_policy_or_during_deletion() {
    let mut world = world(json!({}));
    world.stands("c1", Some("NonCompliant"), true);
    let seen = world.observe();
    for sight in [Sight::Absent, Sight::Unknown] {
        let blind = Observed { policy: sight.clone(), ..seen.clone() };
        assert_eq!(plan(&blind), Plan::new());
        let told = report(&blind);
        assert_eq!(told.status.is_some(), sight == Sight::Absent);
        assert_eq!(told.wake.is_some(), sight == Sight::Unknown);
    }
    let mut leaving = seen;
    leaving.automation.metadata.deletion_timestamp =
        serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
    assert_eq!(plan(&leaving), Plan::new());
}
