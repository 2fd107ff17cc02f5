//! Every example of the proposal, with its own YAML.

use alloc::string::{String, ToString as _};
use alloc::vec;
use alloc::vec::Vec;

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::super::*;
use super::world::{Ended, Luck, SOUND, World};

fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap()
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// The automation of the proposal.
const AUTOMATION: &str = r#"
apiVersion: policy.open-cluster-management.io/v1beta1
kind: PolicyAutomation
metadata:
  name: create-ticket
spec:
  mode: everyEvent
  policyRef: enable-etcd-encryption
  eventHook: noncompliant
  automationDef:
    name: Demo Job Template
    secret: ansible-automation-platform-secret-name
    extra_vars:
      sn_severity: 1
      sn_priority: 1
"#;

const FIRST: &str = r#"
status:
  clustersWithEvent:
    cluster1:
      automationStartTime: "2022-06-22T23:59:30Z"
      eventTime: "2022-06-22T23:59:29Z"
"#;

const SECOND: &str = r#"
status:
  clustersWithEvent:
    cluster1:
      automationStartTime: "2022-06-22T23:58:30Z"
      eventTime: "2022-06-22T23:58:29Z"
    cluster2:
      automationStartTime: "2022-06-22T23:59:30Z"
      eventTime: "2022-06-22T23:59:29Z"
"#;

const THIRD: &str = r#"
status:
  clustersWithEvent:
    cluster2:
      automationStartTime: "2022-06-22T23:59:30Z"
      eventTime: "2022-06-22T23:59:29Z"
"#;

fn world(now: &str) -> World {
    let mut world = World::new(at(now), yaml(AUTOMATION));
    for cluster in ["cluster1", "cluster2"] {
        world.stands(cluster, Some("Compliant"), true);
    }
    look(&mut world);
    world
}

fn look(world: &mut World) -> Option<Timestamp> {
    match world.pass(SOUND, || Luck::Good) {
        Ended::Well(wake) => wake,
        Ended::Died => panic!("nobody dies here"),
    }
}

fn entries(world: &World) -> Value {
    json!({ "status": { "clustersWithEvent": world.automation["status"]["clustersWithEvent"] } })
}

fn targets(world: &World) -> Vec<Vec<String>> {
    world.made.iter().map(|job| job.clusters.clone()).collect()
}

/// A violation at that second; the job is made a second later.
fn violated(world: &mut World, cluster: &str, second: &str) {
    world.now = at(second);
    world.stands(cluster, Some("NonCompliant"), true);
    world.tick = SignedDuration::from_millis(600);
    look(world);
    world.tick = SignedDuration::from_millis(1);
}

#[test]
fn the_first_violation_runs_a_job_and_is_noted() {
    let mut world = world("2022-06-22T23:50:00Z");
    assert_eq!(targets(&world), Vec::<Vec<String>>::new());
    violated(&mut world, "cluster1", "2022-06-22T23:59:29Z");
    assert_eq!(entries(&world), yaml(FIRST));
    assert_eq!(targets(&world), [vec!["cluster1"]]);
    let (_, job) = world.jobs.iter().next().unwrap();
    let vars = &job["spec"]["extra_vars"];
    assert_eq!(vars["target_clusters"], json!(["cluster1"]));
    assert_eq!((&vars["sn_severity"], &vars["sn_priority"]), (&json!(1), &json!(1)));
    assert_eq!(job["spec"]["job_template_name"], "Demo Job Template");
    assert_eq!(job["spec"]["tower_auth_secret"], "ansible-automation-platform-secret-name");
    // Periodic looks and changes of the status run nothing again.
    for second in ["2022-06-23T00:00:29Z", "2022-06-23T05:00:29Z"] {
        world.now = at(second);
        world.change_policy(|_| {}, true);
        look(&mut world);
    }
    assert_eq!(targets(&world), [vec!["cluster1"]]);
    assert_eq!(entries(&world), yaml(FIRST));
}

#[test]
fn more_clusters_at_that_time_are_targets_of_the_same_job() {
    let mut world = world("2022-06-22T23:50:00Z");
    world.stands("cluster2", Some("NonCompliant"), true);
    violated(&mut world, "cluster1", "2022-06-22T23:59:29Z");
    assert_eq!(targets(&world), [vec!["cluster1", "cluster2"]]);
}

/// The scenario from its second violation to the end.
#[test]
fn a_second_cluster_a_recovery_and_a_rerun() {
    let mut world = world("2022-06-22T23:50:00Z");
    violated(&mut world, "cluster1", "2022-06-22T23:58:29Z");
    violated(&mut world, "cluster2", "2022-06-22T23:59:29Z");
    assert_eq!(entries(&world), yaml(SECOND));
    assert_eq!(targets(&world), [vec!["cluster1"], vec!["cluster2"]]);

    world.now = at("2022-06-23T00:05:00Z");
    world.stands("cluster1", Some("Compliant"), true);
    look(&mut world);
    assert_eq!(entries(&world), yaml(THIRD));
    assert_eq!(world.made.len(), 2);

    // The user changed the job and wants it to run for all that do not comply now.
    violated(&mut world, "cluster1", "2022-06-23T00:06:00Z");
    assert_eq!(world.made.len(), 3);
    world.now = at("2022-06-23T00:07:00Z");
    world.edit(json!({ "metadata": { "annotations": {
        "policy.open-cluster-management.io/rerun": "true",
    } } }));
    look(&mut world);
    assert_eq!(world.made[3].clusters, ["cluster1", "cluster2"]);
    assert!(!world.parsed().metadata.annotations.unwrap_or_default().contains_key(RERUN));
    look(&mut world);
    assert_eq!(world.made.len(), 4);
}

#[test]
fn a_delay_of_600_seconds_runs_the_job_once_more_if_the_violation_stays() {
    let mut world = world("2022-06-22T23:50:00Z");
    world.edit(json!({ "spec": { "delayAfterRunSeconds": 600 } }));
    violated(&mut world, "cluster1", "2022-06-23T00:00:00Z");
    let first = world.status().clusters_with_event["cluster1"].clone();
    world.now = at("2022-06-23T00:01:00Z");
    world.stands("cluster1", Some("Compliant"), true);
    // It is not removed, although the cluster complies: the seconds have not passed.
    let end = at(&first.automation_start_time) + SignedDuration::from_secs(600);
    assert_eq!(look(&mut world), Some(end));
    assert_eq!(world.status().clusters_with_event["cluster1"].event_time, first.event_time);

    world.now = at("2022-06-23T00:02:00Z");
    world.stands("cluster1", Some("NonCompliant"), true);
    assert_eq!(look(&mut world), Some(end));
    let again = world.status().clusters_with_event["cluster1"].clone();
    assert_eq!(again.event_time, "2022-06-23T00:02:00Z");
    assert!(again.event_time > again.automation_start_time);
    assert_eq!(world.made.len(), 1);
    world.now = end - SignedDuration::from_millis(1);
    look(&mut world);
    assert_eq!(world.made.len(), 1);

    world.now = end;
    look(&mut world);
    assert_eq!(world.made.len(), 2);
    let entry = world.status().clusters_with_event["cluster1"].clone();
    assert_eq!(entry.automation_start_time, end.to_string());
    assert_eq!(entry.event_time, "2022-06-23T00:02:00Z");
    // A maximum of one time, however long it stays.
    world.now = end + SignedDuration::from_hours(5);
    assert_eq!(look(&mut world), None);
    assert_eq!(world.made.len(), 2);
}

#[test]
fn an_entry_goes_when_the_delay_has_passed_and_the_cluster_complies() {
    let mut world = world("2022-06-22T23:50:00Z");
    world.edit(json!({ "spec": { "delayAfterRunSeconds": 600 } }));
    violated(&mut world, "cluster1", "2022-06-23T00:00:00Z");
    world.now = at("2022-06-23T00:01:00Z");
    world.stands("cluster1", Some("Compliant"), true);
    let wake = look(&mut world).unwrap();
    world.now = wake;
    assert_eq!(look(&mut world), None);
    assert_eq!(world.status().clusters_with_event.len(), 0);
    // And it may run at once from then on.
    violated(&mut world, "cluster1", "2022-06-23T01:00:00Z");
    assert_eq!(world.made.len(), 2);
}

/// Entries that another implementation wrote: it kept the last look in `eventTime`.
#[test]
fn entries_of_before_are_understood() {
    let mut world = world("2022-06-22T23:50:00Z");
    world.edit(json!({ "spec": { "delayAfterRunSeconds": 600 } }));
    let entry =
        |start: &str, event: &str| json!({ "automationStartTime": start, "eventTime": event });
    world.edit(json!({ "status": { "clustersWithEvent": {
        "cluster1": entry("2022-06-22T23:40:00Z", "2022-06-22T23:41:00Z"),
        "cluster2": entry("2022-06-22T23:40:00Z", "2022-06-22T23:39:00Z"),
    } } }));
    for cluster in ["cluster1", "cluster2"] {
        world.stands(cluster, Some("NonCompliant"), false);
    }
    look(&mut world);
    assert_eq!(targets(&world), [vec!["cluster1"]]);
    // What cannot be read is no reason to run again.
    world.edit(json!({ "status": { "clustersWithEvent": { "cluster2": {
        "automationStartTime": "yesterday", "eventTime": "soon",
    } } } }));
    look(&mut world);
    assert_eq!(world.made.len(), 1);
    assert_eq!(world.status().clusters_with_event.len(), 2);
    world.stands("cluster2", Some("Compliant"), true);
    look(&mut world);
    assert_eq!(world.status().clusters_with_event.keys().collect::<Vec<_>>(), ["cluster1"]);
}

#[test]
fn once_runs_for_all_and_disables_itself() {
    let mut world = world("2022-06-22T23:50:00Z");
    world.edit(json!({ "spec": { "mode": "once" } }));
    look(&mut world);
    assert_eq!(world.made.len(), 0);
    world.stands("cluster2", Some("NonCompliant"), true);
    violated(&mut world, "cluster1", "2022-06-23T00:00:00Z");
    assert_eq!(targets(&world), [vec!["cluster1", "cluster2"]]);
    assert_eq!(world.automation["spec"]["mode"], "disabled");
    assert_eq!(world.status().clusters_with_event.len(), 0);
    let mode = world.jobs.keys().next().unwrap().to_string();
    assert!(mode.starts_with("create-ticket-once-"), "{mode}");
    world.edit(json!({ "spec": { "mode": "once" } }));
    look(&mut world);
    assert_eq!(world.made.len(), 2);
}
