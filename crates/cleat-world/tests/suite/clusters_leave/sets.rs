//! Works of sets, whose own controller wants to take them away when their cluster leaves.

use anyhow::{Context as _, Result};
use cleat_api::managedcluster::RemoveStrategy::Needless;
use cleat_api::manifestworkreplicaset::ManifestWorkReplicaSet;
use cleat_api::placement::{self, Placement, PlacementDecision};
use cleat_hub::hub;
use cleat_runtime::tasks::Tasks;
use cleat_world::eventually;
use kube::ResourceExt as _;
use kube::api::{Api, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use super::party::Party;
use crate::{create, make_namespace};

#[tokio::test]
async fn a_set_does_not_take_away_what_a_leaving_cluster_keeps() -> Result<()> {
    let mut party = Party::new("sets", Needless).await?;
    let apps = format!("{}-apps", party.name);
    make_namespace(&party.fleet.world.hub, &apps).await?;
    let (hub_client, tasks) = (party.fleet.hub.clone(), Tasks::new());
    let config =
        hub::Config { namespace: Some(apps.clone()), ..hub::Config::new(hub_client.clone()) };
    tasks.spawn("hub", hub::run(config, tasks.stop()));
    let placements: Api<Placement> = Api::namespaced(hub_client.clone(), &apps);
    // The test is the scheduler.
    let elsewhere = json!({ placement::SCHEDULING_DISABLED: "true" });
    let metadata = json!({ "name": "all", "annotations": elsewhere });
    create(&placements, json!({ "metadata": metadata, "spec": {} })).await?;
    let decisions: Api<PlacementDecision> = Api::namespaced(hub_client.clone(), &apps);
    let labels = json!({
        placement::PLACEMENT_LABEL: "all", placement::GROUP_INDEX_LABEL: "0",
    });
    create(&decisions, json!({ "metadata": { "name": "all-0", "labels": labels } })).await?;
    let decide = async |clusters: Vec<Value>| {
        let patch = Patch::Merge(json!({ "status": { "decisions": clusters } }));
        decisions.patch_status("all-0", &PatchParams::default(), &patch).await
    };
    decide(vec![json!({ "clusterName": party.name, "reason": "" })]).await?;
    let sets: Api<ManifestWorkReplicaSet> = Api::namespaced(hub_client.clone(), &apps);
    create(
        &sets,
        json!({
            "metadata": { "name": "set" },
            "spec": {
                "manifestWorkTemplate": { "workload": { "manifests": [party.map("m")] } },
                "placementRefs": [{ "name": "all" }],
            },
        }),
    )
    .await?;
    eventually("the work of the set to be applied", || async {
        let works = party.works().list(&ListParams::default()).await?.items;
        let told = works.iter().filter_map(|work| work.status.as_ref());
        let uids = told.flat_map(|status| &status.resource_status.manifests);
        Ok(uids.map(|one| one.resource_meta.uid.clone()).find(|uid| !uid.is_empty()))
    })
    .await?;
    // A scheduler drops a cluster that leaves, perhaps before anybody else has heard of it.
    party.leave().await?;
    decide(vec![]).await?;
    party.left().await?;
    let map = party.maps().get("m").await.context("nothing was to be deleted")?;
    assert_eq!(map.owner_references(), []);
    let left = party.on_record().await?;
    assert_eq!(left.iter().map(|one| Some(one.uid.clone())).collect::<Vec<_>>(), [map.uid()]);
    tasks.shutdown().await;
    party.stop_agent().await;
    Ok(())
}
