//! Connections that are really cut, hubs that forgot, and the declared end.

use anyhow::{Context as _, Result};
use cleat_api::leftoverrecord::{LeftoverRecord, Reason};
use cleat_api::managedcluster::RemoveStrategy::{Needless, Required};
use cleat_core::leave::agent::Standing;
use cleat_core::registration::agent::Application;
use k8s_openapi::api::core::v1::Event;
use kube::ResourceExt as _;
use kube::api::{Api, Patch};
use serde_json::json;

use super::guard::Guard;
use super::party::{Party, take_in};
use crate::clusters::condition;
use crate::{gone, seen};

#[tokio::test]
async fn unreachable_from_the_start_blocks_and_goes_on_when_it_is_back() -> Result<()> {
    let mut party = Party::new("cut", Required).await?;
    party.work("w", vec![party.map("m")], json!({})).await?;
    party.link.cut();
    party.leave().await?;
    let said = party.says("UnjoinFailed", "True", "unreachable since").await?;
    assert!(said.contains(&format!("cleat unjoin {} --cluster-destroyed", party.name)), "{said}");
    let cluster = party.fleet.clusters().get(&party.name).await?;
    let failed = condition(&cluster, "UnjoinFailed").context("it is told")?;
    assert_eq!(failed.reason, "ClusterUnreachable");
    assert!(party.works().get("w").await?.metadata.deletion_timestamp.is_none());
    party.maps().get("m").await?;
    party.link.restore();
    party.left().await?;
    assert!(party.maps().get_opt("m").await?.is_none());
    party.stop_agent().await;
    Ok(())
}

#[tokio::test]
async fn a_cluster_that_was_silent_before_it_was_told_to_leave_blocks_as_well() -> Result<()> {
    let mut party = Party::new("quiet", Required).await?;
    party.work("w", vec![party.map("m")], json!({})).await?;
    party.link.cut();
    party.fleet.until(&party.name, "ManagedClusterConditionAvailable", "Unknown").await?;
    party.leave().await?;
    party.says("UnjoinFailed", "True", "unreachable since").await?;
    let work = party.works().get("w").await?;
    assert_eq!(work.metadata.deletion_timestamp, None, "nobody there heard of it");
    party.maps().get("m").await?;
    party.link.restore();
    party.left().await?;
    assert!(party.maps().get_opt("m").await?.is_none());
    party.stop_agent().await;
    Ok(())
}

#[tokio::test]
async fn a_cluster_that_flaps_midway_is_not_gone() -> Result<()> {
    let mut party = Party::new("flap", Required).await?;
    party.work("w", vec![party.map("a"), party.map("stuck")], json!({})).await?;
    let guard = Guard::refusing(&party, "stuck").await?;
    party.leave().await?;
    party.absent("a").await?;
    for _ in 0..2 {
        party.link.cut();
        party.says("UnjoinFailed", "True", "unreachable since").await?;
        party.maps().get("stuck").await?;
        party.link.restore();
        party.says("UnjoinFailed", "True", "orders are open").await?;
    }
    party.link.cut();
    guard.allow();
    // It may be gone on the cluster by now; nobody has said so to the hub.
    party.says("UnjoinFailed", "True", "unreachable since").await?;
    party.fleet.clusters().get(&party.name).await?;
    party.link.restore();
    party.left().await?;
    assert!(party.maps().get_opt("stuck").await?.is_none());
    assert_eq!(party.on_record().await?, []);
    party.stop_agent().await;
    guard.remove().await
}

#[tokio::test]
async fn a_declared_end_leaves_a_record_of_everything_with_uids() -> Result<()> {
    let mut party = Party::new("destroyed", Required).await?;
    party.work("w", vec![party.map("a"), party.map("b")], json!({})).await?;
    party.link.cut();
    party.leave().await?;
    party.says("UnjoinFailed", "True", "unreachable since").await?;
    let declare = json!({ "metadata": { "annotations": {
        "cleat.dev/cluster-destroyed": party.name,
    } } });
    party.fleet.patch(&party.name, declare).await?;
    party.left().await?;
    let left = party.on_record().await?;
    for (object, name) in left.iter().zip(["a", "b"]) {
        let live = party.maps().get(name).await.context("nobody asked the cluster")?;
        assert_eq!((&*object.name, Some(object.uid.clone())), (name, live.uid()));
        assert_eq!(object.why, "the cluster was declared destroyed");
    }
    assert_eq!(left.len(), 2);
    let records: Api<LeftoverRecord> = Api::all(party.fleet.hub.clone());
    let record = records.list(&Default::default()).await?.items;
    let record = record.iter().find(|one| one.spec.cluster == party.name).context("a record")?;
    assert_eq!(record.spec.reason, Reason::ClusterDestroyed);
    assert_eq!(record.spec.cluster_id, format!("id-of-{}", party.name));
    // The cluster comes back: its hub does not know it, and that deletes nothing.
    party.link.restore();
    unrecognized(&party).await?;
    for name in ["a", "b"] {
        party.maps().get(name).await.context("only a hub that says so deletes")?;
    }
    party.stop_agent().await;
    Ok(())
}

#[tokio::test]
async fn a_silent_cluster_with_nothing_to_remove_is_let_go_with_a_record() -> Result<()> {
    let mut party = Party::new("silent", Needless).await?;
    party.work("w", vec![party.map("m")], json!({})).await?;
    party.link.cut();
    party.leave().await?;
    party.left().await?;
    let left = party.on_record().await?;
    assert_eq!(left.len(), 1);
    assert!(left[0].why.contains("our marks are still on it"), "{:?}", left[0]);
    party.maps().get("m").await?;
    party.stop_agent().await;
    Ok(())
}

#[tokio::test]
async fn a_hub_that_forgot_the_cluster_stops_everything_and_raises_an_alarm() -> Result<()> {
    let mut party = Party::new("forgot", Required).await?;
    party.work("w", vec![party.map("m")], json!({})).await?;
    party.fleet.tasks.shutdown().await;
    // As if the hub were restored from before the cluster joined.
    let free = json!({ "metadata": { "finalizers": null } });
    party.fleet.patch(&party.name, free.clone()).await?;
    party.leave().await?;
    gone(&party.fleet.clusters(), &party.joined).await?;
    party.works().patch("w", &Default::default(), &Patch::Merge(free)).await?;
    let work = party.works().get("w").await?;
    crate::delete(&party.works(), "w").await?;
    // The agent may hold it again meanwhile; a restored hub would not have it at all.
    let free = json!({ "metadata": { "finalizers": null } });
    let _ = party.works().patch("w", &Default::default(), &Patch::Merge(free)).await;
    gone(&party.works(), &work).await?;
    unrecognized(&party).await?;
    let events: Api<Event> = Api::namespaced(party.cluster.clone(), "default");
    let alarm = format!("cleat-agent.{}.unknown-to-hub", party.name);
    seen(&events, &alarm, |event: &Event| {
        event.message.as_deref().is_some_and(|said| said.contains(&*party.name))
    })
    .await?;
    party.maps().get("m").await.context("only a hub that says so deletes")?;
    party.stop_agent().await;
    Ok(())
}

/// It was to be emptied, and while it is away it is not any more: then the hub lets it go without asking.
#[tokio::test]
async fn a_strategy_that_changed_while_nothing_was_heard_did_not_count() -> Result<()> {
    let mut party = Party::new("changed", Required).await?;
    party.work("w", vec![party.map("a"), party.map("stuck")], json!({})).await?;
    let guard = Guard::refusing(&party, "stuck").await?;
    party.leave().await?;
    party.absent("a").await?;
    party.says("UnjoinFailed", "True", "orders are open").await?;
    party.link.cut();
    party.fleet.patch(&party.name, json!({ "spec": { "removeStrategy": "Needless" } })).await?;
    guard.allow();
    party.left().await?;
    party.link.restore();
    unrecognized(&party).await?;
    let stuck = party.maps().get("stuck").await.context("it was not to go any more")?;
    assert_eq!(stuck.metadata.deletion_timestamp, None);
    let left = party.on_record().await?;
    assert!(left.iter().any(|one| one.name == "stuck"), "{left:?}");
    party.stop_agent().await;
    guard.remove().await
}

/// The cluster was declared destroyed and rebuilt, and then the old machine is switched on again. Its
/// certificate is good, and the hub has a cluster of its name.
#[tokio::test]
async fn a_cluster_obeyed_another_that_had_got_its_name() -> Result<()> {
    let mut party = Party::new("namesake", Required).await?;
    party.work("w", vec![party.map("a")], json!({})).await?;
    party.stop_agent().await;
    party.leave().await?;
    let declare = json!({ "metadata": { "annotations": {
        "cleat.dev/cluster-destroyed": party.name,
    } } });
    party.fleet.patch(&party.name, declare).await?;
    party.left().await?;
    let application = party.fleet.application(&party.name);
    let rebuilt =
        Application { cluster_id: "rebuilt".to_owned(), remove_strategy: Required, ..application };
    let rebuilt = take_in(&party.fleet, rebuilt).await?;
    crate::create(
        &party.works(),
        json!({
            "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
            "metadata": { "name": "w" },
            "spec": { "workload": { "manifests": [party.map("b")] } },
        }),
    )
    .await?;
    party.start_agent();
    let name = &party.name;
    let why = format!(
        "another cluster has the name {name} there; its id is rebuilt, and ours is id-of-{name}"
    );
    let mut standing = party.presence.subscribe();
    let is = |standing: &Standing| *standing == Standing::Unrecognized(why.clone());
    cleat_world::within("the agent to notice", standing.wait_for(is)).await??;
    // The other one leaves, and takes its work along; nothing of that is meant for this one.
    party.leave().await?;
    gone(&party.fleet.clusters(), &rebuilt).await?;
    party.maps().get("a").await.context("it was not told to leave")?;
    assert!(party.maps().get_opt("b").await?.is_none(), "it was not meant for this cluster");
    party.stop_agent().await;
    Ok(())
}

pub(super) async fn unrecognized(party: &Party) -> Result<()> {
    let mut standing = party.presence.subscribe();
    let is = |standing: &Standing| matches!(standing, Standing::Unrecognized(_));
    cleat_world::within("the agent to notice", standing.wait_for(is)).await??;
    Ok(())
}
