//! Manifests come to the cluster and stay as they are asked for.

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use cleat_world::fleet::{Fleet, condition_of, holders};

#[tokio::test]
async fn a_work_is_applied_recorded_and_reported() -> Result<()> {
    let fleet = Fleet::start("applied").await?;
    fleet.work("one", vec![fleet.map("a", "1"), fleet.map("b", "2")], json!({})).await?;
    let work = fleet.told("one", "Applied", "True").await?;
    let work = match condition_of(&work, "Available").filter(|c| c.status == "True") {
        Some(_) => work,
        None => fleet.told("one", "Available", "True").await?,
    };
    let finalizers = work.metadata.finalizers.clone().unwrap_or_default();
    assert_eq!(finalizers, ["cluster.open-cluster-management.io/manifest-work-cleanup"]);
    let manifests = work.status.unwrap().resource_status.manifests;
    assert_eq!(manifests.len(), 2);
    assert_eq!(
        (&*manifests[1].resource_meta.resource, manifests[1].resource_meta.ordinal),
        ("configmaps", 1)
    );

    let map = fleet.maps().get("a").await?;
    assert_eq!(holders(&map), [fleet.ledger_name("one")]);
    let managers = map.metadata.managed_fields.unwrap_or_default();
    assert!(managers.iter().all(|entry| entry.manager.as_deref() == Some("work-agent")));
    let ledger = fleet.ledger("one").await?;
    let applied = ledger.status.unwrap().applied_resources;
    assert_eq!(applied.iter().map(|a| &*a.name).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(Some(&*applied[0].uid), map.metadata.uid.as_deref());
    Ok(())
}

#[tokio::test]
async fn drift_is_repaired_and_what_is_deleted_comes_back() -> Result<()> {
    let fleet = Fleet::start("drift").await?;
    fleet.work("one", vec![fleet.map("a", "1")], json!({})).await?;
    fleet.told("one", "Applied", "True").await?;
    let patch = Patch::Merge(json!({ "data": { "key": "changed" } }));
    fleet.maps().patch("a", &PatchParams::default(), &patch).await?;
    let value = |map: &ConfigMap| map.data.as_ref().and_then(|data| data.get("key")).cloned();
    fleet.seen(&fleet.maps(), "a", |map| value(map).as_deref() == Some("1")).await?;
    let before = fleet.maps().get("a").await?;
    crate::delete(&fleet.maps(), "a").await?;
    fleet
        .seen(&fleet.maps(), "a", |map: &ConfigMap| map.metadata.uid != before.metadata.uid)
        .await?;
    Ok(())
}
