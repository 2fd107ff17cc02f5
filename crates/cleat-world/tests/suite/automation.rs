//! Policies that do not hold run jobs: never twice by accident, and never less than once.

mod crash_points;
mod heard;
mod hub;
mod playbooks;
mod proposal;
mod served;

use anyhow::Result;
use cleat_api::policyautomation::{Mode, PolicyAutomation, condition};
use cleat_core::condition::find;
use kube::ResourceExt as _;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use self::hub::{Hub, POLICY};
use crate::{delete, gone, seen};

const BAD: &str = "NonCompliant";
const GOOD: &str = "Compliant";

/// The scenario of the proposal, from its first violation to its rerun.
#[tokio::test]
async fn every_event_runs_a_job_and_is_noted_until_it_is_over() -> Result<()> {
    let hub = Hub::new("events", 2).await?;
    let controllers = hub.run();
    let automation = hub.automate("create-ticket", json!({})).await?;
    hub.stand(&[BAD, GOOD]).await?;
    let jobs = hub.jobs_when("create-ticket", |jobs| jobs.len() == 1).await?;
    let (name, job) = jobs.into_iter().next().unwrap();
    assert!(name.starts_with("create-ticket-everyevent-"), "{name}");
    assert_eq!(job.spec.job_template_name.as_deref(), Some("Demo Job Template"));
    assert_eq!(
        job.spec.tower_auth_secret.as_deref(),
        Some("ansible-automation-platform-secret-name")
    );
    assert_eq!(job.spec.job_ttl, Some(86_400));
    let cluster = &hub.clusters[0];
    let message = format!("NonCompliant; violation on {cluster}");
    let said =
        |message: &str| json!({ "lastTimestamp": "2026-01-01T00:00:00Z", "message": message });
    let before = format!("Compliant; violation on {cluster}");
    assert_eq!(
        Value::Object(job.spec.extra_vars.clone().unwrap()),
        json!({
            "sn_severity": 1, "sn_priority": 1, "target_clusters": [cluster], "hub_cluster": "",
            "policy_name": POLICY, "policy_namespace": hub.place.namespace, "policy_sets": [],
            "policy_violations": { cluster: {
                "compliant": BAD, "violation_message": message,
                "details": [{ "compliant": BAD, "history": [said(&message), said(&before)] }],
            } },
        })
    );
    let owner = &job.metadata.owner_references.clone().unwrap()[0];
    assert_eq!((owner.controller, Some(&owner.uid)), (Some(true), automation.uid().as_ref()));
    let noted = hub.noted("create-ticket", &[1]).await?;
    let entry = &noted.status.unwrap().clusters_with_event[cluster];
    let created = job.creation_timestamp().unwrap().0.to_string();
    assert_eq!(entry.automation_start_time, created);
    assert!(entry.event_time <= entry.automation_start_time);

    hub.stand(&[BAD, BAD]).await?;
    assert_eq!(hub.targets("create-ticket", 2).await?, ["1", "2"]);
    hub.noted("create-ticket", &[1, 2]).await?;
    hub.stand(&[GOOD, BAD]).await?;
    hub.noted("create-ticket", &[2]).await?;
    hub.stand(&[BAD, BAD]).await?;
    assert_eq!(hub.targets("create-ticket", 3).await?, ["1", "1", "2"]);
    hub.noted("create-ticket", &[1, 2]).await?;

    let rerun = json!({ "policy.open-cluster-management.io/rerun": "true" });
    hub.edit("create-ticket", json!({ "metadata": { "annotations": rerun } })).await?;
    assert_eq!(hub.targets("create-ticket", 4).await?, ["1", "1", "1+2", "2"]);
    let done = |one: &PolicyAutomation| {
        !one.annotations().contains_key("policy.open-cluster-management.io/rerun")
            && one.status.as_ref().is_some_and(|status| status.pending_jobs.is_empty())
    };
    seen(&hub.automations(), "create-ticket", done).await?;
    controllers.stop().await;
    // Another life of the controllers finds everything done.
    let controllers = hub.run();
    hub.stand(&[BAD, GOOD]).await?;
    hub.noted("create-ticket", &[1]).await?;
    assert_eq!(hub.jobs().list(&ListParams::default()).await?.items.len(), 4);
    controllers.stop().await;
    Ok(())
}

#[tokio::test]
async fn once_runs_once_and_disables_itself() -> Result<()> {
    let hub = Hub::new("once", 3).await?;
    let controllers = hub.run();
    hub.stand(&[BAD, GOOD, BAD]).await?;
    hub.automate("once", json!({ "mode": "once" })).await?;
    assert_eq!(hub.targets("once", 1).await?, ["1+3"]);
    let disabled = |one: &PolicyAutomation| {
        one.spec.mode == Mode::Disabled
            && one.status.as_ref().is_some_and(|status| status.pending_jobs.is_empty())
    };
    seen(&hub.automations(), "once", disabled).await?;
    hub.stand(&[BAD, BAD, BAD]).await?;
    hub.edit("once", json!({ "spec": { "mode": "once" } })).await?;
    assert_eq!(hub.targets("once", 2).await?, ["1+2+3", "1+3"]);
    seen(&hub.automations(), "once", disabled).await?;
    controllers.stop().await;
    Ok(())
}

/// Both of them, not only the first; and a second hub's controllers make nothing twice.
#[tokio::test]
async fn every_automation_of_a_policy_reacts_and_two_hubs_do_no_harm() -> Result<()> {
    let hub = Hub::new("both", 2).await?;
    let both = [hub.run(), hub.run()];
    for name in ["one", "two"] {
        hub.automate(name, json!({})).await?;
    }
    for round in 1..=4 {
        hub.stand(&[BAD, BAD]).await?;
        for name in ["one", "two"] {
            hub.noted(name, &[1, 2]).await?;
            assert_eq!(hub.targets(name, round).await?, vec!["1+2"; round]);
        }
        hub.stand(&[GOOD, GOOD]).await?;
        for name in ["one", "two"] {
            hub.noted(name, &[]).await?;
        }
    }
    for controllers in both {
        controllers.stop().await;
    }
    Ok(())
}

#[tokio::test]
async fn a_cluster_that_is_bad_again_too_soon_waits_for_its_delay() -> Result<()> {
    let hub = Hub::new("delay", 1).await?;
    let controllers = hub.run();
    hub.automate("slow", json!({ "delayAfterRunSeconds": 4 })).await?;
    hub.stand(&[BAD]).await?;
    hub.noted("slow", &[1]).await?;
    let cluster = hub.clusters[0].clone();
    let since = |word: &'static str| {
        let cluster = cluster.clone();
        move |status: &cleat_api::policyautomation::PolicyAutomationStatus| {
            let entry = status.clusters_with_event.get(&cluster);
            let since = entry.and_then(|entry| serde_json::to_value(entry.since_run).ok());
            since.is_some_and(|since| since == word)
        }
    };
    hub.stand(&[GOOD]).await?;
    hub.told("slow", since("Recovered")).await?;
    hub.stand(&[BAD]).await?;
    hub.told("slow", since("Violated")).await?;
    let jobs = hub.jobs_when("slow", |jobs| jobs.len() == 2).await?;
    let mut times: Vec<_> =
        jobs.values().map(|job| job.creation_timestamp().unwrap().0.as_second()).collect();
    times.sort();
    assert!(times[1] - times[0] >= 4, "{times:?}");
    // The entry goes by itself when the cluster complies and the delay has passed.
    hub.stand(&[GOOD]).await?;
    hub.noted("slow", &[]).await?;
    controllers.stop().await;
    Ok(())
}

#[tokio::test]
async fn a_flood_is_held_back_and_a_failed_job_is_told_and_made_again() -> Result<()> {
    let hub = Hub::new("flood", 5).await?;
    let controllers = hub.run();
    let limits = json!({
        "maxClustersPerJob": 2, "maxJobsPerMinute": 2, "retry": { "limit": 1, "delaySeconds": 0 },
    });
    hub.automate("flood", limits).await?;
    hub.stand(&[BAD; 5]).await?;
    let held = hub
        .told("flood", |status| {
            find(&status.conditions, condition::HELD_BACK).is_some_and(|one| one.status == "True")
        })
        .await?;
    let status = held.status.unwrap();
    assert_eq!(status.waiting_clusters.keys().collect::<Vec<_>>(), [&hub.clusters[4]]);
    assert_eq!(hub.targets("flood", 2).await?, ["1+2", "3+4"]);

    hub.edit("flood", json!({ "spec": { "maxJobsPerMinute": null } })).await?;
    assert_eq!(hub.targets("flood", 3).await?, ["1+2", "3+4", "5"]);
    hub.noted("flood", &[1, 2, 3, 4, 5]).await?;
    let jobs = hub.jobs_when("flood", |_| true).await?;
    let failed = jobs.values().find(|job| hub.targets_of(job) == "3+4").unwrap().name_any();
    let result = json!({
        "status": "failed", "finished": jiff::Timestamp::now().to_string(),
        "url": "https://tower.example/#/jobs/7",
    });
    let patch = Patch::Merge(json!({ "status": { "ansibleJobResult": result } }));
    hub.jobs().patch_status(&failed, &PatchParams::default(), &patch).await?;
    assert_eq!(hub.targets("flood", 4).await?, ["1+2", "3+4", "3+4", "5"]);
    let told = hub
        .told("flood", |status| {
            let found = find(&status.conditions, condition::JOBS_SUCCEED);
            found.is_some_and(|one| one.status == "False" && one.message.contains("made again"))
        })
        .await?;
    let status = told.status.unwrap();
    let recent = status.recent_jobs.iter().find(|job| job.name == failed).unwrap();
    assert_eq!(recent.url.as_deref(), Some("https://tower.example/#/jobs/7"));
    assert!(recent.retried_as.is_some());
    controllers.stop().await;
    Ok(())
}

#[tokio::test]
async fn automations_and_their_jobs_go_with_the_policy() -> Result<()> {
    let hub = Hub::new("owned", 1).await?;
    let controllers = hub.run();
    let automation = hub.automate("owned", json!({})).await?;
    hub.stand(&[BAD]).await?;
    let jobs = hub.jobs_when("owned", |jobs| jobs.len() == 1).await?;
    hub.noted("owned", &[1]).await?;
    delete(&hub.policies(), POLICY).await?;
    gone(&hub.automations(), &automation).await?;
    let job = jobs.into_values().next().unwrap();
    gone(&hub.place.api(), &job).await?;
    controllers.stop().await;
    Ok(())
}

/// Nobody saw that it complied in between; but it said so.
#[tokio::test]
async fn a_recovery_while_no_hub_was_there_is_not_lost() -> Result<()> {
    let hub = Hub::new("unheard", 2).await?;
    let controllers = hub.run();
    hub.automate("unheard", json!({})).await?;
    hub.stand(&[BAD, BAD]).await?;
    hub.noted("unheard", &[1, 2]).await?;
    controllers.stop().await;
    hub.stand(&[GOOD, BAD]).await?;
    hub.stand(&[BAD, BAD]).await?;
    let controllers = hub.run();
    assert_eq!(hub.targets("unheard", 2).await?, ["1", "1+2"]);
    hub.noted("unheard", &[1, 2]).await?;
    controllers.stop().await;
    // And told once, it is not run for again.
    let controllers = hub.run();
    hub.stand(&[BAD, GOOD]).await?;
    hub.noted("unheard", &[1]).await?;
    assert_eq!(hub.jobs().list(&ListParams::default()).await?.items.len(), 2);
    controllers.stop().await;
    Ok(())
}

#[tokio::test]
async fn a_job_of_the_same_name_that_is_anothers_is_told_and_left_alone() -> Result<()> {
    let hub = Hub::new("taken", 1).await?;
    hub.automate("taken", json!({})).await?;
    let foreign = json!({ "metadata": { "name": "taken-job" }, "spec": {} });
    let jobs: kube::api::Api<cleat_api::ansiblejob::AnsibleJob> = hub.place.api();
    let foreign = crate::create(&jobs, foreign).await?;
    let pending = json!([{
        "name": "taken-job", "mode": "everyEvent",
        "clusters": { hub.clusters[0].clone(): "2026-01-01T00:00:00Z" },
    }]);
    let patch = Patch::Merge(json!({ "status": { "pendingJobs": pending, "jobsDecided": 1 } }));
    hub.automations().patch_status("taken", &PatchParams::default(), &patch).await?;
    hub.stand(&[BAD]).await?;
    let controllers = hub.run();
    let told = hub
        .told("taken", |status| {
            find(&status.conditions, condition::JOBS_CREATED)
                .is_some_and(|one| one.reason == "NameTaken")
        })
        .await?;
    let status = told.status.unwrap();
    let said = find(&status.conditions, condition::JOBS_CREATED).unwrap();
    assert!(said.status == "False" && said.message.contains("taken-job"), "{said:?}");
    assert_eq!(status.pending_jobs.len(), 1);
    delete(&jobs, "taken-job").await?;
    gone(&jobs, &foreign).await?;
    controllers.stop().await;
    // Out of the way, the job is made under the name that was written down.
    let controllers = hub.run();
    let made = hub.jobs_when("taken", |jobs| jobs.len() == 1).await?;
    assert!(made.contains_key("taken-job"));
    hub.noted("taken", &[1]).await?;
    controllers.stop().await;
    Ok(())
}
