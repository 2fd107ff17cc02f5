//! What the end of a set of works would do on its clusters; and then it does just that.

use anyhow::Result;
use cleat_api::manifestwork::ManifestWork;
use cleat_api::manifestworkreplicaset::ManifestWorkReplicaSet;
use cleat_api::removalpreview::PreviewVerdict;
use cleat_cli::preview::foresee;
use cleat_core::condition::find;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams};
use serde_json::{Value, json};

use crate::previews_policies::{PATIENCE, Site, objects, part, told};
use crate::{create, delete, gone, seen};

/// A set that brings one map by all these placements, each of which chooses the cluster.
async fn set(site: &Site, placements: &[&str]) -> Result<ConfigMap> {
    for placement in placements {
        site.decide(placement, &[&site.name]).await?;
    }
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "prices", "namespace": site.name }, "data": { "key": "1" },
    });
    let named = |name: &&str| json!({ "name": name });
    let placements: Vec<Value> = placements.iter().map(named).collect();
    let template = json!({ "workload": { "manifests": [map] } });
    let spec = json!({ "manifestWorkTemplate": template, "placementRefs": placements });
    let sets: Api<ManifestWorkReplicaSet> = site.here();
    create(&sets, json!({ "metadata": { "name": "shop" }, "spec": spec })).await?;
    let held = |map: &ConfigMap| {
        let owners = map.metadata.owner_references.as_deref().unwrap_or_default();
        owners.len() == placements.len()
    };
    let map = seen(&site.maps(), "prices", held).await?;
    let works: Api<ManifestWork> = Api::namespaced(site.hub.clone(), &site.name);
    for work in works.list(&ListParams::default()).await?.items {
        let name = work.metadata.name.unwrap_or_default();
        let applied = |work: &ManifestWork| {
            let status = work.status.as_ref();
            let found = status.and_then(|status| find(&status.conditions, "Applied"));
            found.is_some_and(|one| one.status == "True")
        };
        seen(&works, &name, applied).await?;
    }
    Ok(map)
}

async fn foreseen(site: &Site) -> Result<Value> {
    foresee(&site.hub, "manifestworkreplicaset/shop", Some(&site.team), PATIENCE).await
}

async fn end(site: Site, map: &ConfigMap) -> Result<()> {
    delete(&site.here::<ManifestWorkReplicaSet>(), "shop").await?;
    gone(&site.maps(), map).await?;
    site.tasks.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn a_preview_of_a_set_of_works_says_what_then_happens() -> Result<()> {
    let site = Site::start("preview-set").await?;
    let map = set(&site, &["all"]).await?;
    let seen = foreseen(&site).await?;
    let objects = objects(part(&seen, &site.name));
    let expected = [("prices", PreviewVerdict::Delete, "spec.deleteOption")];
    assert_eq!(told(&objects), expected, "{seen}");
    assert_eq!(Some(&objects[0].uid), map.metadata.uid.as_ref());
    // Nothing happened by asking.
    assert_eq!(site.maps().get("prices").await?.metadata.uid, map.metadata.uid);
    end(site, &map).await
}

/// Each was asked as if the other stayed, and everything was shown as staying.
#[tokio::test]
async fn two_works_of_one_set_on_one_cluster_kept_everything_for_each_other() -> Result<()> {
    let site = Site::start("preview-set-twice").await?;
    let map = set(&site, &["one", "two"]).await?;
    let seen = foreseen(&site).await?;
    let objects = objects(part(&seen, &site.name));
    assert_eq!(objects.len(), 2, "{seen}");
    for one in &objects {
        assert_eq!(one.verdict, PreviewVerdict::Unknown, "{seen}");
        assert!(one.why.ends_with("so it goes if nobody else holds it"), "{seen}");
    }
    end(site, &map).await
}
