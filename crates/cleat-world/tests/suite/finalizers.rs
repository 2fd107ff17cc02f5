//! Finalizers hold an object until whoever added them has cleaned up.

use std::convert::Infallible;
use std::sync::Arc;

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::controller::Action;
use kube::runtime::finalizer::{Event, finalizer};
use serde_json::json;

use crate::{Place, create, delete, gone, refusal, seen};

const NAME: &str = "cleat.example/cleanup";

/// One pass of a controller that has nothing to do but to say what it was called for.
async fn pass(maps: &Api<ConfigMap>) -> Result<Option<&'static str>> {
    let mut called = None;
    let object = Arc::new(maps.get("a").await?);
    finalizer(maps, NAME, object, |event| {
        called = Some(match event {
            Event::Apply(_) => "apply",
            Event::Cleanup(_) => "cleanup",
        });
        std::future::ready(Ok::<_, Infallible>(Action::await_change()))
    })
    .await?;
    Ok(called)
}

#[tokio::test]
async fn kubes_finalizer_runs_from_first_sight_to_the_end() -> Result<()> {
    let place = Place::new("finalizers").await?;
    let maps: Api<ConfigMap> = place.api();
    let made = place.config_map("a").await?;
    assert_eq!(pass(&maps).await?, None);
    assert_eq!(maps.get("a").await?.finalizers(), [NAME]);
    assert_eq!(pass(&maps).await?, Some("apply"));
    delete(&maps, "a").await?;
    let held =
        seen(&maps, "a", |map: &ConfigMap| map.metadata.deletion_timestamp.is_some()).await?;
    assert_eq!(held.uid(), made.uid());
    assert_eq!(pass(&maps).await?, Some("cleanup"));
    gone(&maps, &made).await
}

#[tokio::test]
async fn nobody_adds_a_finalizer_to_what_is_leaving() -> Result<()> {
    let place = Place::new("finalizers").await?;
    let maps: Api<ConfigMap> = place.api();
    let held = json!({ "metadata": { "name": "a", "finalizers": [NAME] } });
    let made = create(&maps, held).await?;
    delete(&maps, "a").await?;
    let params = PatchParams::default();
    let more = json!({ "metadata": { "finalizers": [NAME, "cleat.example/other"] } });
    let status = refusal(maps.patch("a", &params, &Patch::Merge(more)).await);
    assert_eq!((status.code, &*status.reason), (422, "Invalid"));
    // Everything else may still change.
    let label = Patch::Merge(json!({ "metadata": { "labels": { "still": "here" } } }));
    maps.patch("a", &params, &label).await?;
    let none = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    maps.patch("a", &params, &none).await?;
    gone(&maps, &made).await
}
