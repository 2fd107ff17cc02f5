//! Add-ons of a cluster that leaves: they go first, while what works brought still serves them.

use anyhow::{Context as _, Result};
use cleat_api::managedcluster::RemoveStrategy::{Needless, Required};
use cleat_api::manifestwork::ManifestWork;
use cleat_core::leave::carried::ADD_ONS;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DynamicObject, Patch};
use kube::core::GroupVersionKind;
use kube::{Client, ResourceExt as _};
use serde_json::json;

use super::party::Party;
use crate::{create, gone, seen};

/// OCM's definition, as far as it matters here; the tests share it.
async fn define(hub: &Client) -> Result<()> {
    let [group, version, resource] = ADD_ONS;
    let definitions: Api<CustomResourceDefinition> = Api::all(hub.clone());
    let name = format!("{resource}.{group}");
    let wanted = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": name },
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {
                "plural": resource, "singular": "managedclusteraddon",
                "kind": "ManagedClusterAddOn", "listKind": "ManagedClusterAddOnList",
            },
            "versions": [{
                "name": version, "served": true, "storage": true,
                "schema": { "openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                } },
            }],
        },
    });
    let apply = kube::api::PatchParams::apply("suite").force();
    definitions.patch(&name, &apply, &Patch::Apply(wanted)).await?;
    seen(&definitions, &name, |one: &CustomResourceDefinition| {
        let conditions = one.status.iter().flat_map(|status| status.conditions.iter().flatten());
        conditions.into_iter().any(|one| one.type_ == "Established" && one.status == "True")
    })
    .await?;
    Ok(())
}

/// An add-on that its manager holds, and where it is.
async fn logs(party: &Party) -> Result<(Api<DynamicObject>, DynamicObject)> {
    define(&party.fleet.hub).await?;
    let [group, version, resource] = ADD_ONS;
    let kind = GroupVersionKind::gvk(group, version, "ManagedClusterAddOn");
    let kind = ApiResource::from_gvk_with_plural(&kind, resource);
    let add_ons: Api<DynamicObject> =
        Api::namespaced_with(party.fleet.hub.clone(), &party.name, &kind);
    let add_on = json!({
        "apiVersion": format!("{group}/{version}"), "kind": "ManagedClusterAddOn",
        "metadata": { "name": "logs", "finalizers": ["logs.example/pre-delete"] },
    });
    let add_on = cleat_world::eventually("add-ons to be served", || async {
        Ok(create(&add_ons, add_on.clone()).await.ok())
    })
    .await?;
    Ok((add_ons, add_on))
}

/// The manager is done.
async fn free(add_ons: &Api<DynamicObject>, add_on: &DynamicObject) -> Result<()> {
    let free = json!({ "metadata": { "finalizers": null } });
    add_ons.patch("logs", &Default::default(), &Patch::Merge(free)).await?;
    gone(add_ons, add_on).await
}

/// The add-on is going, and what it may need is still there.
async fn is_needed(party: &Party, add_ons: &Api<DynamicObject>) -> Result<()> {
    seen(add_ons, "logs", |one: &DynamicObject| one.metadata.deletion_timestamp.is_some()).await?;
    party.says("Unjoining", "True", "1 add-on").await?;
    let work = party.works().get("w").await?;
    assert_eq!(work.metadata.deletion_timestamp, None, "the add-on may need it");
    party.maps().get("m").await.context("the add-on may need it")?;
    Ok(())
}

#[tokio::test]
async fn works_went_while_an_add_on_still_needed_them() -> Result<()> {
    let mut party = Party::new("addons", Required).await?;
    let (add_ons, add_on) = logs(&party).await?;
    party.work("w", vec![party.map("m")], json!({})).await?;
    party.leave().await?;
    is_needed(&party, &add_ons).await?;
    free(&add_ons, &add_on).await?;
    party.left().await?;
    assert!(party.maps().get_opt("m").await?.is_none());
    party.stop_agent().await;
    Ok(())
}

#[tokio::test]
async fn a_cluster_that_keeps_everything_lets_go_of_it_after_its_add_ons() -> Result<()> {
    let mut party = Party::new("keepaddon", Needless).await?;
    let (add_ons, add_on) = logs(&party).await?;
    party.work("w", vec![party.map("m")], json!({})).await?;
    party.leave().await?;
    is_needed(&party, &add_ons).await?;
    let marked = party.maps().get("m").await?.owner_references().len();
    assert_eq!(marked, 1, "its mark went before the add-on");
    free(&add_ons, &add_on).await?;
    party.left().await?;
    let kept = party.maps().get("m").await.context("nothing is deleted")?;
    assert_eq!(kept.owner_references(), []);
    let left = party.on_record().await?;
    assert_eq!(left.iter().map(|one| &*one.name).collect::<Vec<_>>(), ["m"]);
    party.stop_agent().await;
    Ok(())
}

/// Nothing on the cluster serves the add-on any more, but what its manager holds on the hub is still its
/// manager's to let go of.
#[tokio::test]
async fn a_lost_cluster_goes_when_the_manager_of_its_add_on_lets_go() -> Result<()> {
    let mut party = Party::new("lostaddon", Required).await?;
    let (add_ons, add_on) = logs(&party).await?;
    party.work("w", vec![party.map("m")], json!({})).await?;
    let work = party.works().get("w").await?;
    party.stop_agent().await;
    let declare = json!({ "metadata": { "annotations": {
        "cleat.dev/cluster-destroyed": party.name,
    } } });
    party.fleet.patch(&party.name, declare).await?;
    party.leave().await?;
    gone(&party.works(), &work).await.context("nobody is there to remove it")?;
    party.says("Unjoining", "True", "1 add-on").await?;
    let held = add_ons.get("logs").await.context("it is its manager's")?;
    assert_eq!(held.finalizers(), ["logs.example/pre-delete"]);
    free(&add_ons, &add_on).await?;
    party.left().await?;
    let left = party.on_record().await?;
    assert_eq!(left.iter().map(|one| &*one.name).collect::<Vec<_>>(), ["m"]);
    Ok(())
}

#[tokio::test]
async fn an_add_on_that_brings_a_work_to_take_itself_off_hung() -> Result<()> {
    let mut party = Party::new("predelete", Required).await?;
    let (add_ons, add_on) = logs(&party).await?;
    party.leave().await?;
    seen(&add_ons, "logs", |one: &DynamicObject| one.metadata.deletion_timestamp.is_some()).await?;
    // What its manager does then.
    let name = "addon-logs-pre-delete";
    create(
        &party.works(),
        json!({
            "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
            "metadata": {
                "name": name, "labels": { "open-cluster-management.io/addon-name": "logs" },
            },
            "spec": { "workload": { "manifests": [party.map("cleaner")] } },
        }),
    )
    .await?;
    seen(&party.works(), name, |work: &ManifestWork| {
        let conditions = work.status.iter().flat_map(|status| &status.conditions);
        conditions.into_iter().any(|one| one.type_ == "Applied" && one.status == "True")
    })
    .await
    .context("the add-on waits for it")?;
    free(&add_ons, &add_on).await?;
    party.left().await?;
    party.no_ledgers().await?;
    assert!(party.maps().get_opt("cleaner").await?.is_none());
    assert_eq!(party.on_record().await?, []);
    party.stop_agent().await;
    Ok(())
}
