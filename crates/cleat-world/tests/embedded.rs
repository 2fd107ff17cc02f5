//! Where we part from Kubernetes on purpose, so that these run on embedded servers only.

use anyhow::Result;
use cleat_world::World;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;

/// A real kube-apiserver keeps the deletion time of an applied manifest, and the next update of such
/// an object removes it. We would rather lose nothing.
#[tokio::test]
async fn on_embedded_servers_an_applied_manifest_is_not_born_deleted() -> Result<()> {
    let world = World::start().await?;
    let maps: Api<ConfigMap> = Api::default_namespaced(world.hub.client());
    let manifest = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "exported", "deletionTimestamp": "2020-01-01T00:00:00Z" },
    });
    maps.patch("exported", &PatchParams::apply("test"), &Patch::Apply(&manifest)).await?;
    assert_eq!(maps.get("exported").await?.metadata.deletion_timestamp, None);
    Ok(())
}
