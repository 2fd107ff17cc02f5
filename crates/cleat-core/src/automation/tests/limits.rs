//! Limits against floods, retries, and what users are told of them.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec;
use alloc::vec::Vec;

use cleat_api::policyautomation::condition as kind;
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::super::*;
use super::world::{Dice, Ended, Luck, SOUND, World};
use crate::condition::find;

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

fn says(world: &World, condition: &str) -> (String, String) {
    let status = world.status();
    let found = find(&status.conditions, condition).unwrap();
    (format!("{} {}", found.status, found.reason), found.message.clone())
}

/// Ends a job as a platform would.
fn ends(world: &mut World, name: &str, result: Value) {
    world.jobs.get_mut(name).unwrap()["status"] = json!({ "ansibleJobResult": result });
}

#[test]
fn a_flood_is_cut_into_jobs_and_paced_and_seen() {
    let mut world = world(json!({ "maxClustersPerJob": 2, "maxJobsPerMinute": 2 }));
    for number in 0..7 {
        world.stands(&format!("c{number}"), Some("NonCompliant"), true);
    }
    let wake = look(&mut world).unwrap();
    let clusters = |world: &World| -> Vec<Vec<String>> {
        world.made.iter().map(|job| job.clusters.clone()).collect()
    };
    assert_eq!(clusters(&world), [vec!["c0", "c1"], vec!["c2", "c3"]]);
    let (said, message) = says(&world, kind::HELD_BACK);
    assert_eq!(said, "True JobsPerMinute");
    assert_eq!(message, "3 clusters wait for jobs, as maxJobsPerMinute is 2: c4, c5, c6");
    assert_eq!(world.status().waiting_clusters["c4"].event_time, "2026-01-01T00:00:00Z");
    // Looking again changes nothing, not even a condition.
    let before = world.automation.clone();
    look(&mut world);
    assert_eq!(world.automation, before);
    // Who recovers while it waits needs no job.
    world.stands("c5", Some("Compliant"), true);
    assert_eq!(look(&mut world), Some(wake));
    world.now = wake;
    assert_eq!(look(&mut world), None);
    assert_eq!(clusters(&world)[2..], [vec!["c4", "c6"]]);
    assert_eq!(says(&world, kind::HELD_BACK).0, "False NothingWaits");
    let entry = &world.status().clusters_with_event["c6"];
    assert_eq!(entry.event_time, "2026-01-01T00:00:00Z");
    assert_eq!(entry.automation_start_time, "2026-01-01T00:01:01Z");
}

/// A run that a user asked for is cut and paced too, and ends only when it is through.
#[test]
fn once_is_over_when_the_last_of_its_jobs_is_made() {
    let mut world = world(json!({ "mode": "once", "maxClustersPerJob": 1, "maxJobsPerMinute": 1 }));
    for name in ["c0", "c1", "c2"] {
        world.stands(name, Some("NonCompliant"), true);
    }
    for number in 1..=3 {
        let wake = look(&mut world);
        assert_eq!(world.made.len(), number);
        let mode = if number == 3 { "disabled" } else { "once" };
        assert_eq!(world.automation["spec"]["mode"], mode);
        let Some(wake) = wake else { break };
        world.now = wake;
    }
    assert_eq!(world.made.len(), 3);
    assert_eq!(world.status().pending_jobs, []);
}

/// Under any limits: no job too big, no minute too full, and in the end everybody was served once.
#[test]
fn limits_hold_in_every_history() {
    for seed in 0..300 {
        let mut dice = Dice(seed);
        let (most, pace) = (1 + dice.roll(4), 1 + dice.roll(4));
        let mut world = world(json!({ "maxClustersPerJob": most, "maxJobsPerMinute": pace }));
        let mut bad = BTreeSet::new();
        let mut violations: BTreeMap<String, usize> = BTreeMap::new();
        let mut instants: Vec<Timestamp> = Vec::new();
        let mut deaths = 0;
        for step in 0..60 {
            let calm = step >= 30;
            let name = format!("c{}", dice.roll(10));
            if !calm && !bad.contains(&name) {
                world.stands(&name, Some("NonCompliant"), true);
                *violations.entry(name.clone()).or_default() += 1;
                bad.insert(name);
            }
            let wake = loop {
                let before = world.made.len();
                let ended = world.pass(SOUND, || match dice.roll(12) {
                    0 if deaths < 100 => Luck::DiesBefore,
                    1 if deaths < 100 => Luck::DiesAfter,
                    _ => Luck::Good,
                });
                instants.resize(instants.len() + world.made.len() - before, world.now);
                match ended {
                    Ended::Died => deaths += 1,
                    Ended::Well(wake) => break wake,
                }
            };
            let soon = world.now + SignedDuration::from_secs(9);
            world.now = wake.map_or(soon, |wake| if calm { wake } else { wake.min(soon) });
        }
        let mut served: BTreeMap<String, usize> = BTreeMap::new();
        for job in &world.made {
            assert!(job.clusters.len() <= most, "seed {seed}");
            for name in &job.clusters {
                *served.entry(name.clone()).or_default() += 1;
            }
        }
        assert_eq!(served, violations, "seed {seed}");
        for (at, first) in instants.iter().enumerate() {
            if let Some(last) = instants.get(at + pace) {
                let span = last.duration_since(*first);
                assert!(span >= SignedDuration::from_secs(60), "seed {seed}: {span:?}");
            }
        }
    }
}

#[test]
fn a_failed_job_is_told_and_a_later_success_too() {
    let mut world = world(json!({}));
    world.stands("c0", Some("NonCompliant"), true);
    look(&mut world);
    let name = world.jobs.keys().next().unwrap().clone();
    ends(&mut world, &name, json!({ "status": "running" }));
    look(&mut world);
    assert!(find(&world.status().conditions, kind::JOBS_SUCCEED).is_none());
    ends(
        &mut world,
        &name,
        json!({
            "status": "failed", "failed": true, "finished": "2026-01-01T00:00:40Z",
            "url": "https://tower/#/jobs/7", "message": "no route to the ticket system",
        }),
    );
    look(&mut world);
    let (said, message) = says(&world, kind::JOBS_SUCCEED);
    assert_eq!(said, "False Failed");
    assert_eq!(
        message,
        format!(
            "AnsibleJob policies/{name} failed: no route to the ticket system; \
             see https://tower/#/jobs/7"
        )
    );
    let recent = &world.status().recent_jobs[0];
    assert_eq!((recent.name.clone(), recent.result.as_deref()), (name, Some("failed")));
    assert_eq!(recent.finished_time.as_deref(), Some("2026-01-01T00:00:40Z"));
    // Without a wish for it, nothing is tried again.
    world.now += SignedDuration::from_hours(1);
    assert_eq!(look(&mut world), None);
    assert_eq!(world.made.len(), 1);
}

#[test]
fn a_failed_job_is_made_again_where_that_is_wanted_and_no_more_often() {
    let mut world = world(json!({ "retry": { "limit": 2, "delaySeconds": 30 } }));
    for name in ["c0", "c1"] {
        world.stands(name, Some("NonCompliant"), true);
    }
    look(&mut world);
    // One of the two recovers: it needs nothing any more.
    world.stands("c1", Some("Compliant"), true);
    for attempt in 1..=3 {
        let name = world.status().recent_jobs[0].name.clone();
        let finished = world.now;
        ends(&mut world, &name, json!({ "status": "failed", "finished": finished.to_string() }));
        let wake = look(&mut world);
        if attempt == 3 {
            assert_eq!(wake, None);
            break;
        }
        let due = Timestamp::from_second(finished.as_second()).unwrap();
        assert_eq!(wake, Some(due + SignedDuration::from_secs(30)));
        assert_eq!(world.made.len(), attempt);
        world.now = wake.unwrap();
        look(&mut world);
        assert_eq!(world.made.len(), attempt + 1);
        assert_eq!(world.made[attempt].clusters, ["c0"]);
        let (_, message) = says(&world, kind::JOBS_SUCCEED);
        assert!(message.contains("was made again as ticket-everyevent-"), "{message}");
    }
    let status = world.status();
    assert_eq!(status.recent_jobs[0].attempt, Some(2));
    assert_eq!(status.recent_jobs[2].retried_as.as_ref(), Some(&status.recent_jobs[1].name));
}

#[test]
fn a_job_that_was_deleted_is_said_to_be() {
    let mut world = world(json!({}));
    world.stands("c0", Some("NonCompliant"), true);
    look(&mut world);
    let name = world.jobs.keys().next().unwrap().clone();
    world.jobs.clear();
    let mut seen = world.observe();
    seen.jobs.insert(name.clone(), Sighting::Absent);
    assert_eq!(plan(&seen), Plan::new());
    seen.now += SignedDuration::from_secs(100);
    let plan = plan(&seen);
    let [step] = &plan[..] else { panic!("{plan:?}") };
    let Write::MergeStatus(patch) = &step[0].write else { panic!("{step:?}") };
    assert_eq!(patch["status"]["recentJobs"][0]["result"], "deleted");
}

#[test]
fn trouble_is_told_until_it_is_over() {
    let mut world = world(json!({}));
    world.stands("c0", Some("NonCompliant"), true);
    let mut writes = 0;
    let ended = world.pass(SOUND, || {
        writes += 1;
        // The owner, the ledger, and then the job.
        if writes == 3 { Luck::Refused } else { Luck::Good }
    });
    let Ended::Well(Some(wake)) = ended else { panic!("it is not over") };
    assert_eq!(says(&world, kind::JOBS_CREATED).0, "False Refused");
    // Whatever the server said, it stays written down under the name it was tried with.
    let pending = world.status().pending_jobs;
    look(&mut world);
    assert_eq!(world.status().pending_jobs, pending);
    assert_eq!(world.made.len(), 0);
    world.now = wake;
    look(&mut world);
    assert_eq!(world.made.len(), 1);
    assert_eq!(says(&world, kind::JOBS_CREATED).0, "True Created");
}

/// A hub whose definition drops what we write down must not get a job each time we look.
#[test]
fn nothing_is_made_that_a_hub_does_not_write_down() {
    let mut world = world(json!({}));
    world.stands("c0", Some("NonCompliant"), true);
    world.edit(json!({ "metadata": { "ownerReferences": [{
        "apiVersion": "policy.open-cluster-management.io/v1", "kind": "Policy", "name": "p",
        "uid": "policy-uid",
    }] } }));
    let seen = world.observe();
    let plan = plan(&seen);
    let pruned = json!({ "metadata": {}, "status": {} });
    let setback = judge(&seen, &plan, &[vec![crate::write::Outcome::Done(pruned)]]).unwrap();
    assert!(setback.message.contains("--define"), "{setback:?}");
    let seen = Observed { setback: Some(setback), ..seen };
    let said = report(&seen).status.unwrap();
    let Write::MergeStatus(patch) = said.write else { panic!("{said:?}") };
    assert_eq!(patch["status"]["conditions"][0]["reason"], "OldDefinition");
}
