//! Ledgers whose work is nowhere on the hub.

use anyhow::Result;
use cleat_agent::work::{Config, hub_hash};
use cleat_api::appliedmanifestwork::{AppliedManifestWork, FINALIZER};
use cleat_world::fleet::{Fleet, holders};
use jiff::SignedDuration;
use kube::ResourceExt as _;
use serde_json::json;

use crate::create;

/// A fleet whose work was taken from the hub by force while no agent looked.
async fn bereft(topic: &str) -> Result<Fleet> {
    let mut fleet = Fleet::start(topic).await?;
    fleet.work("lost", vec![fleet.map("a", "1")], json!({})).await?;
    fleet.told("lost", "Applied", "True").await?;
    fleet.stop_agent().await;
    fleet.delete("lost").await?;
    fleet.patch("lost", json!({ "metadata": { "finalizers": null } })).await?;
    fleet.absent(&fleet.works(), "lost").await?;
    Ok(fleet)
}

/// Returns when the agent has carried another work, having had every occasion to look at the rest.
async fn another_work(fleet: &Fleet) -> Result<()> {
    fleet.work("marker", vec![fleet.map("marker", "1")], json!({})).await?;
    fleet.told("marker", "Applied", "True").await?;
    fleet.end("marker").await
}

#[tokio::test]
async fn by_default_objects_outlive_a_lost_work() -> Result<()> {
    let mut fleet = bereft("lost").await?;
    fleet.start_agent(fleet.config());
    another_work(&fleet).await?;
    let ledger = fleet.ledger("lost").await?;
    assert!(ledger.metadata.deletion_timestamp.is_none());
    assert!(ledger.status.unwrap().eviction_start_time.is_none());
    assert_eq!(holders(&fleet.maps().get("a").await?).len(), 1);
    Ok(())
}

#[tokio::test]
async fn after_the_grace_they_go() -> Result<()> {
    let mut fleet = bereft("grace").await?;
    let grace = Some(SignedDuration::from_secs(1));
    fleet.start_agent(Config { eviction_grace: grace, ..fleet.config() });
    fleet.absent(&fleet.ledgers(), &fleet.ledger_name("lost")).await?;
    assert!(fleet.maps().get_opt("a").await?.is_none());
    Ok(())
}

#[tokio::test]
async fn a_work_that_comes_back_stops_the_clock() -> Result<()> {
    let mut fleet = bereft("back").await?;
    let before = fleet.maps().get("a").await?;
    let grace = Some(SignedDuration::from_hours(1));
    fleet.start_agent(Config { eviction_grace: grace, ..fleet.config() });
    let counts = |ledger: &AppliedManifestWork| {
        ledger.status.as_ref().is_some_and(|status| status.eviction_start_time.is_some())
    };
    fleet.seen(&fleet.ledgers(), &fleet.ledger_name("lost"), counts).await?;
    fleet.work("lost", vec![fleet.map("a", "2")], json!({})).await?;
    let stopped = |ledger: &AppliedManifestWork| !counts(ledger);
    fleet.seen(&fleet.ledgers(), &fleet.ledger_name("lost"), stopped).await?;
    fleet.told("lost", "Applied", "True").await?;
    let after = fleet.maps().get("a").await?;
    assert_eq!((after.uid(), &*after.data.unwrap()["key"]), (before.uid(), "2"));
    Ok(())
}

/// A ledger that another hub left, or another agent keeps, over one map.
async fn stray(fleet: &Fleet, agent_id: &str, map: &str) -> Result<String> {
    let hash = hub_hash(&format!("https://old.hub.of.{}.{map}", fleet.name));
    let name = format!("{hash}-{map}");
    let spec = json!({ "hubHash": hash, "manifestWorkName": map, "agentID": agent_id });
    let ledger = json!({ "metadata": { "name": name, "finalizers": [FINALIZER] }, "spec": spec });
    let ledger: AppliedManifestWork = create(&fleet.ledgers(), ledger).await?;
    let mut manifest = fleet.map(map, "1");
    manifest["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "work.open-cluster-management.io/v1",
        "kind": "AppliedManifestWork",
        "name": name,
        "uid": ledger.uid(),
    }]);
    let made = create(&fleet.maps(), manifest).await?;
    let entry = json!({
        "group": "", "version": "v1", "resource": "configmaps", "namespace": fleet.name,
        "name": map, "uid": made.uid(),
    });
    let patch = kube::api::Patch::Merge(json!({ "status": { "appliedResources": [entry] } }));
    fleet.ledgers().patch_status(&name, &Default::default(), &patch).await?;
    Ok(name)
}

#[tokio::test]
async fn what_another_hub_left_goes_and_what_another_agent_keeps_stays() -> Result<()> {
    let mut fleet = Fleet::without_agent("strays").await?;
    let (own, other) = (fleet.name.clone(), format!("{}-other", fleet.name));
    let ours = stray(&fleet, &own, "ours").await?;
    let theirs = stray(&fleet, &other, "theirs").await?;
    fleet.start_agent(Config { eviction_grace: Some(SignedDuration::ZERO), ..fleet.config() });
    fleet.absent(&fleet.ledgers(), &ours).await?;
    assert!(fleet.maps().get_opt("ours").await?.is_none());
    another_work(&fleet).await?;
    let ledger = fleet.ledgers().get(&theirs).await?;
    assert!(ledger.metadata.deletion_timestamp.is_none());
    assert!(ledger.status.unwrap().eviction_start_time.is_none());
    assert_eq!(holders(&fleet.maps().get("theirs").await?), std::slice::from_ref(&theirs));
    fleet
        .ledgers()
        .patch(
            &theirs,
            &Default::default(),
            &kube::api::Patch::Merge(json!({ "metadata": { "finalizers": null } })),
        )
        .await?;
    crate::delete(&fleet.ledgers(), &theirs).await
}
