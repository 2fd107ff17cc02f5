//! Hub and agents together: an enforced object moves with its placement.

use anyhow::Result;
use cleat_world::within;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::Api;
use kube::runtime::wait::await_condition;
use serde_json::json;

use super::fleet::{Fleet, compliance, enforced};
use crate::{make_namespace, seen};

/// Three clusters, of which the hub is one: the object leaves the first, comes to the second, and
/// stays the same on the third.
#[tokio::test]
async fn an_enforced_object_moves_with_its_placement_and_is_pruned_where_it_was() -> Result<()> {
    let fleet = Fleet::new("moves", 3).await?;
    let world = &fleet.place.world;
    let namespace = fleet.place.namespace.clone();
    let clients: Vec<Client> =
        world.clusters.iter().chain([&world.hub]).map(|cluster| cluster.client()).collect();
    for cluster in &world.clusters {
        make_namespace(cluster, &namespace).await?;
    }
    for (index, client) in clients.iter().enumerate() {
        fleet.agent(index, client, &fleet.tasks).await?;
    }
    let template = enforced("moving", &namespace, "DeleteIfCreated", "b");
    let spec = json!({ "disabled": false, "policy-templates": [template] });
    fleet.policy("p", spec).await?;
    fleet.bind("p", "some").await?;
    fleet.decide("some", &[0, 2]).await?;
    fleet.root_when("p", |root| compliance(root) == "Compliant").await?;
    let maps: Vec<Api<ConfigMap>> =
        clients.iter().map(|client| Api::namespaced(client.clone(), &namespace)).collect();
    assert!(maps[0].get_opt("moving").await?.is_some());
    assert!(maps[1].get_opt("moving").await?.is_none());
    let third = maps[2].get("moving").await?;

    fleet.decide("some", &[1, 2]).await?;
    seen(&maps[1], "moving", |_: &ConfigMap| true).await?;
    let absent = |map: Option<&ConfigMap>| map.is_none();
    within("the old one to go", await_condition(maps[0].clone(), "moving", absent)).await??;
    assert_eq!(maps[2].get("moving").await?.metadata.uid, third.metadata.uid);
    let settled = |root: &cleat_api::policy::Policy| {
        let status = root.status.as_ref();
        let names = status.map(|status| status.status.iter().map(|one| &one.cluster_name));
        names.is_some_and(|names| {
            names.collect::<Vec<_>>() == [&fleet.clusters[1], &fleet.clusters[2]]
        }) && compliance(root) == "Compliant"
    };
    fleet.root_when("p", settled).await?;
    fleet.tasks.shutdown().await;
    Ok(())
}
