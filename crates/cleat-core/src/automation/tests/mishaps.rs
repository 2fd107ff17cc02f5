//! What went wrong once, each by its name.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use cleat_api::policyautomation::condition as kind;
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::super::*;
use super::world::{Ended, Luck, SOUND, World};
use crate::condition::find;
use crate::write::Outcome;

fn world(spec: Value) -> World {
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
    world.edit(json!({ "spec": spec }));
    world
}

fn look(world: &mut World) -> Option<Timestamp> {
    match world.pass(SOUND, || Luck::Good) {
        Ended::Well(wake) => wake,
        Ended::Died => panic!("nobody dies here"),
    }
}

fn targets(world: &World) -> Vec<Vec<String>> {
    world.made.iter().map(|job| job.clusters.clone()).collect()
}

fn newest(world: &World) -> String {
    world.made_as.last().unwrap().0.clone()
}

fn said(world: &World, condition: &str) -> (String, String) {
    let status = world.status();
    let found = find(&status.conditions, condition).unwrap();
    (format!("{} {}", found.status, found.reason), found.message.clone())
}

const BAD: Option<&str> = Some("NonCompliant");
const GOOD: Option<&str> = Some("Compliant");

#[test]
fn a_retry_and_a_new_event_gave_one_cluster_two_jobs() {
    let mut world = world(json!({
        "delayAfterRunSeconds": 60, "retry": { "limit": 1, "delaySeconds": 10 },
    }));
    world.stands("c1", BAD, true);
    look(&mut world);
    let first = newest(&world);
    world.end_job(&first, "failed");
    look(&mut world);
    world.stands("c1", GOOD, true);
    look(&mut world);
    world.stands("c1", BAD, true);
    // The failed job was for a violation that is over, and inside the delay there is none.
    world.now += SignedDuration::from_secs(20);
    look(&mut world);
    assert_eq!(world.made.len(), 1);
    // Nobody looked until both were due.
    world.now += SignedDuration::from_secs(100);
    look(&mut world);
    look(&mut world);
    assert_eq!(targets(&world), [["c1"], ["c1"]]);
}

#[test]
fn a_retry_that_the_pace_held_back_was_forgotten() {
    let mut world = world(json!({
        "maxJobsPerMinute": 1, "retry": { "limit": 1, "delaySeconds": 10 },
    }));
    world.stands("c1", BAD, true);
    look(&mut world);
    world.now += SignedDuration::from_secs(5);
    let first = newest(&world);
    world.end_job(&first, "failed");
    let mut wake = look(&mut world).unwrap();
    world.now = wake;
    wake = look(&mut world).unwrap();
    let (said, message) = said(&world, kind::HELD_BACK);
    assert_eq!(said, "True JobsPerMinute");
    assert_eq!(message, "1 clusters wait for jobs, as maxJobsPerMinute is 1: c1");
    world.now = wake;
    look(&mut world);
    assert_eq!(world.made.len(), 2);
}

/// Another server, or one that is being upgraded, may not serve jobs yet.
#[test]
fn a_job_was_made_again_under_another_name_because_its_kind_was_not_served() {
    let mut world = world(json!({}));
    world.stands("c1", BAD, true);
    world.pass(SOUND, {
        let mut writes = 0;
        move || {
            writes += 1;
            if writes == 3 { Luck::DiesAfter } else { Luck::Good }
        }
    });
    assert_eq!(world.made.len(), 1);
    let mut seen = world.observe();
    let pending = world.status().pending_jobs;
    seen.jobs = BTreeMap::from([(pending[0].name.clone(), Sighting::NotServed)]);
    let plan = plan(&seen);
    let [step] = &plan[..] else { panic!("{plan:?}") };
    assert_eq!(step[0].target.id.name, pending[0].name);
    let setback = judge(&seen, &plan, &[vec![Outcome::NoSuchKind]]);
    assert!(setback.as_ref().unwrap().message.contains("does not serve AnsibleJobs"));
    // Nothing is struck off on that, not even if the cluster recovers or nobody wants it any more.
    world.stands("c1", GOOD, true);
    world.edit(json!({ "spec": { "mode": "disabled" } }));
    let mut seen = Observed { setback, ..world.observe() };
    seen.jobs = BTreeMap::from([(pending[0].name.clone(), Sighting::NotServed)]);
    let Sight::Present(policy) = &seen.policy else { panic!("it is there") };
    assert_eq!(advance(&seen, policy).pending_jobs, pending);
}

/// A try whose answer was lost may take effect after a later one was refused.
#[test]
fn a_refusal_after_a_lost_answer_made_a_second_job() {
    let mut world = world(json!({}));
    world.stands("c1", BAD, true);
    for trouble in [Luck::LostBefore, Luck::Refused] {
        let mut writes = 0;
        let before = world.status().pending_jobs.len();
        let ended = world.pass(SOUND, || {
            writes += 1;
            // The owner and the ledger come before the first try.
            if before > 0 || writes == 3 { trouble } else { Luck::Good }
        });
        let Ended::Well(Some(wake)) = ended else { panic!("it is not over") };
        world.now = wake;
    }
    let pending = world.status().pending_jobs;
    look(&mut world);
    assert_eq!(newest(&world), pending[0].name);
    assert_eq!(world.made.len(), 1);
}

#[test]
fn failures_beyond_the_last_twenty_jobs_were_neither_told_nor_made_again() {
    let mut world = world(json!({
        "maxClustersPerJob": 1, "retry": { "limit": 1, "delaySeconds": 100 },
    }));
    for number in 0..50 {
        world.stands(&format!("c{number:02}"), BAD, true);
    }
    look(&mut world);
    look(&mut world);
    assert_eq!((world.made.len(), world.status().recent_jobs.len()), (50, 50));
    let first = world.made_as[0].0.clone();
    let names: Vec<String> = world.jobs.keys().cloned().collect();
    for name in names {
        world.end_job(&name, if name == first { "failed" } else { "successful" });
    }
    look(&mut world);
    let status = world.status();
    assert_eq!(status.recent_jobs.len(), 21);
    assert!(said(&world, kind::JOBS_SUCCEED).1.contains(&first));
    // The failed one is gone before it is time to make it again.
    world.reap();
    assert!(world.jobs.is_empty());
    world.now += SignedDuration::from_secs(101);
    look(&mut world);
    assert_eq!(targets(&world)[50..], [["c00"]]);
}

#[test]
fn a_failure_was_covered_by_the_success_of_another_cluster() {
    let mut world = world(json!({}));
    world.stands("c1", BAD, true);
    look(&mut world);
    let failed = newest(&world);
    world.end_job(&failed, "failed");
    look(&mut world);
    world.now += SignedDuration::from_secs(100);
    world.stands("c2", BAD, true);
    look(&mut world);
    let second = newest(&world);
    world.end_job(&second, "successful");
    look(&mut world);
    let (what, message) = said(&world, kind::JOBS_SUCCEED);
    assert!(what == "False Failed" && message.contains(&failed), "{message}");
    world.stands("c1", GOOD, true);
    look(&mut world);
    assert_eq!(said(&world, kind::JOBS_SUCCEED).0, "True Successful");
}

#[test]
fn jobs_for_one_policy_were_made_and_noted_for_another() {
    let mut world = world(json!({ "maxClustersPerJob": 1, "maxJobsPerMinute": 1 }));
    for name in ["c1", "c2"] {
        world.stands(name, BAD, true);
    }
    world.edit(json!({ "metadata": { "annotations": { RERUN: "true" } } }));
    look(&mut world);
    assert_eq!(world.status().pending_jobs.len(), 1);
    // Another policy under another name, and the wish for a rerun is taken back.
    world.edit(json!({ "metadata": { "annotations": { RERUN: null } } }));
    world.change_policy(
        |policy| {
            policy["metadata"]["uid"] = json!("other-uid");
            policy["metadata"]["name"] = json!("other");
        },
        false,
    );
    world.edit(json!({ "spec": { "policyRef": "other", "mode": "disabled" } }));
    look(&mut world);
    assert_eq!(world.status().pending_jobs, []);
    assert_eq!(world.made.len(), 1);
    // It goes with that policy, and no more with the first.
    let owners = world.parsed().metadata.owner_references.unwrap();
    let owners: Vec<_> = owners.iter().map(|owner| (&*owner.uid, owner.controller)).collect();
    assert_eq!(owners, [("other-uid", Some(true))]);
}

#[test]
fn a_paced_run_went_on_for_clusters_that_had_recovered() {
    let mut world = world(json!({ "mode": "once", "maxClustersPerJob": 1, "maxJobsPerMinute": 1 }));
    for name in ["c1", "c2", "c3"] {
        world.stands(name, BAD, true);
    }
    let wake = look(&mut world).unwrap();
    world.stands("c2", GOOD, true);
    look(&mut world);
    world.now = wake;
    look(&mut world);
    assert_eq!(targets(&world), [["c1"], ["c3"]]);
    assert_eq!(world.automation["spec"]["mode"], "disabled");
}

#[test]
fn a_retry_was_made_although_the_mode_was_disabled_and_too_big() {
    let mut world = world(json!({ "retry": { "limit": 1, "delaySeconds": 0 } }));
    for name in ["c1", "c2", "c3"] {
        world.stands(name, BAD, true);
    }
    look(&mut world);
    let first = newest(&world);
    world.end_job(&first, "failed");
    world.edit(json!({ "spec": { "maxClustersPerJob": 2 } }));
    let mut writes = 0;
    // It is written down, and then the process dies.
    world.pass(SOUND, || {
        writes += 1;
        if writes == 2 { Luck::DiesBefore } else { Luck::Good }
    });
    let sizes = |world: &World| -> Vec<usize> {
        world.status().pending_jobs.iter().map(|job| job.clusters.len()).collect()
    };
    assert_eq!(sizes(&world), [2, 1]);
    world.edit(json!({ "spec": { "mode": "disabled" } }));
    look(&mut world);
    assert_eq!((sizes(&world).len(), world.made.len()), (0, 1));
}

#[test]
fn the_time_of_an_event_was_when_the_hub_looked() {
    let mut world = world(json!({}));
    world.stands("c1", GOOD, true);
    look(&mut world);
    world.die();
    let began = world.now + SignedDuration::from_secs(10);
    world.now = began;
    world.stands("c1", BAD, false);
    world.now += SignedDuration::from_hours(1);
    look(&mut world);
    let entry = &world.status().clusters_with_event["c1"];
    assert_eq!(entry.event_time, "2026-01-01T00:00:10Z");
    assert_eq!(entry.automation_start_time, "2026-01-01T01:00:10Z");
}

/// What the policy shows is summed up by somebody else, in their time.
#[test]
fn a_recovery_that_the_policy_never_showed_was_lost_and_one_that_it_showed_late_counted_twice() {
    let mut world = world(json!({}));
    world.stands("c1", BAD, true);
    look(&mut world);
    for word in ["Compliant", "NonCompliant"] {
        world.now += SignedDuration::from_millis(20);
        world.says("c1", word);
    }
    look(&mut world);
    assert_eq!(world.made.len(), 2);
    for late in [GOOD, BAD] {
        world.shows("c1", late);
        look(&mut world);
        assert_eq!((world.made.len(), world.status().clusters_with_event.len()), (2, 1));
    }
    // A recovery that is one.
    world.now += SignedDuration::from_millis(20);
    world.stands("c1", GOOD, true);
    look(&mut world);
    assert_eq!(world.status().clusters_with_event.len(), 0);
    world.now += SignedDuration::from_millis(20);
    world.stands("c1", BAD, true);
    look(&mut world);
    assert_eq!(world.made.len(), 3);
}

#[test]
fn nobody_looked_when_a_missing_job_had_to_be_called_deleted() {
    let mut world = world(json!({}));
    world.stands("c1", BAD, true);
    look(&mut world);
    let name = newest(&world);
    let mut seen = world.observe();
    seen.jobs = BTreeMap::from([(name, Sighting::Absent)]);
    let wake = report(&seen).wake.unwrap();
    assert!(wake <= SignedDuration::from_secs(61), "{wake:?}");
    seen.now += wake;
    let plan = plan(&seen);
    let Write::MergeStatus(patch) = &plan[0][0].write else { panic!("{plan:?}") };
    assert_eq!(patch["status"]["recentJobs"][0]["result"], "deleted");
}

#[test]
fn a_job_of_the_same_name_that_is_anothers_was_only_logged() {
    let mut world = world(json!({}));
    world.stands("c1", BAD, true);
    world.pass(SOUND, {
        let mut writes = 0;
        move || {
            writes += 1;
            if writes == 3 { Luck::DiesBefore } else { Luck::Good }
        }
    });
    let mut seen = world.observe();
    let name = world.status().pending_jobs[0].name.clone();
    seen.jobs = BTreeMap::from([(name.clone(), Sighting::Foreign)]);
    assert_eq!(plan(&seen), Plan::new());
    let verdict = report(&seen);
    let Write::MergeStatus(patch) = verdict.status.unwrap().write else { panic!("a status") };
    let told = &patch["status"]["conditions"][0];
    assert_eq!((&told["reason"], &told["status"]), (&json!("NameTaken"), &json!("False")));
    assert!(told["message"].to_string().contains(&name));
    assert!(verdict.wake.is_some());
}
