//! Workloads have a scale and a generation.

use anyhow::Result;
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;

use crate::{Place, create};

#[tokio::test]
async fn scaling_changes_replicas_and_generation() -> Result<()> {
    let place = Place::new("scale").await?;
    let deployments: Api<Deployment> = place.api();
    let labels = json!({ "app": "a" });
    let made = create(
        &deployments,
        json!({
            "metadata": { "name": "a" },
            "spec": {
                "replicas": 0,
                "selector": { "matchLabels": labels },
                "template": {
                    "metadata": { "labels": labels },
                    "spec": { "containers": [{ "name": "main", "image": "main:1" }] },
                },
            },
        }),
    )
    .await?;
    assert_eq!(made.metadata.generation, Some(1));
    let params = PatchParams::default();
    let two = Patch::Merge(json!({ "spec": { "replicas": 2 } }));
    let scale = deployments.patch_scale("a", &params, &two).await?;
    assert_eq!(scale.spec.and_then(|spec| spec.replicas), Some(2));
    let scale = deployments.get_scale("a").await?;
    assert_eq!(scale.status.and_then(|status| status.selector).as_deref(), Some("app=a"));
    let scaled = deployments.get("a").await?;
    assert_eq!(scaled.metadata.generation, Some(2));
    // Neither metadata nor status is a new generation.
    let label = Patch::Merge(json!({ "metadata": { "labels": { "x": "y" } } }));
    let labelled = deployments.patch("a", &params, &label).await?;
    assert_eq!(labelled.metadata.generation, Some(2));
    Ok(())
}
