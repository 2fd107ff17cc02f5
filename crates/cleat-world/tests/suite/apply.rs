//! Server-side apply: managers own fields, and conflicts are said, not won by who is last.

use std::collections::BTreeSet;

use anyhow::Result;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams};
use kube::core::response::StatusCause;
use serde_json::{Value, json};

use crate::{Place, create, refusal};

fn map(data: Value) -> Patch<Value> {
    let metadata = json!({ "name": "a" });
    Patch::Apply(
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data }),
    )
}

fn owners(map: &ConfigMap) -> BTreeSet<&str> {
    let fields = map.metadata.managed_fields.iter().flatten();
    fields.filter_map(|entry| entry.manager.as_deref()).collect()
}

#[tokio::test]
async fn two_managers_conflict_until_one_forces() -> Result<()> {
    let place = Place::new("apply").await?;
    let maps: Api<ConfigMap> = place.api();
    let (one, two) = (PatchParams::apply("one"), PatchParams::apply("two"));
    maps.patch("a", &one, &map(json!({ "shared": "1", "mine": "1" }))).await?;
    let status = refusal(maps.patch("a", &two, &map(json!({ "shared": "2" }))).await);
    assert_eq!((status.code, &*status.reason), (409, "Conflict"));
    let causes = status.details.map(|details| details.causes).unwrap_or_default();
    let fields: Vec<&str> = causes.iter().map(|cause: &StatusCause| &*cause.field).collect();
    assert_eq!(fields, [".data.shared"]);
    assert!(causes[0].message.contains(r#"conflict with "one""#), "{}", causes[0].message);

    let forced = maps.patch("a", &two.force(), &map(json!({ "shared": "2" }))).await?;
    assert_eq!(json!(forced.data), json!({ "shared": "2", "mine": "1" }));
    // The first no longer owns it, so it may leave it out without removing it.
    let kept = maps.patch("a", &one, &map(json!({ "mine": "1" }))).await?;
    assert_eq!(json!(kept.data), json!({ "shared": "2", "mine": "1" }));
    Ok(())
}

#[tokio::test]
async fn what_nobody_applies_any_more_goes() -> Result<()> {
    let place = Place::new("apply").await?;
    let maps: Api<ConfigMap> = place.api();
    let (one, two) = (PatchParams::apply("one"), PatchParams::apply("two"));
    maps.patch("a", &one, &map(json!({ "x": "1", "both": "1" }))).await?;
    let both = maps.patch("a", &two, &map(json!({ "both": "1" }))).await?;
    assert_eq!(owners(&both), ["one", "two"].into());
    let one_left = maps.patch("a", &one, &map(json!({}))).await?;
    assert_eq!(json!(one_left.data), json!({ "both": "1" }));
    let none_left = maps.patch("a", &two, &map(json!({}))).await?;
    assert_eq!(none_left.data.unwrap_or_default().len(), 0);
    Ok(())
}

#[tokio::test]
async fn applying_the_same_again_writes_nothing() -> Result<()> {
    let place = Place::new("apply").await?;
    let maps: Api<ConfigMap> = place.api();
    let params = PatchParams::apply("one");
    let first = maps.patch("a", &params, &map(json!({ "x": "1" }))).await?;
    let second = maps.patch("a", &params, &map(json!({ "x": "1" }))).await?;
    assert_eq!(first, second);
    Ok(())
}

#[tokio::test]
async fn list_elements_have_owners_of_their_own() -> Result<()> {
    let place = Place::new("apply").await?;
    let deployments: Api<Deployment> = place.api();
    let template = |containers: Value| {
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": { "name": "a" },
            "spec": {
                "selector": { "matchLabels": { "app": "a" } },
                "template": {
                    "metadata": { "labels": { "app": "a" } },
                    "spec": { "containers": containers },
                },
            },
        })
    };
    let mut created = template(json!([{ "name": "base", "image": "base:1" }]));
    created["spec"]["replicas"] = json!(0);
    create(&deployments, created).await?;
    let sidecar = template(json!([{ "name": "sidecar", "image": "sidecar:1" }]));
    let params = PatchParams::apply("injector");
    let both = deployments.patch("a", &params, &Patch::Apply(sidecar)).await?;
    let names = |deployment: &Deployment| -> Vec<String> {
        let pod = deployment.spec.template.spec.as_ref();
        pod.into_iter().flat_map(|pod| &pod.containers).map(|one| one.name.clone()).collect()
    };
    assert_eq!(names(&both), ["base", "sidecar"]);
    let none = template(json!([]));
    let mut none = none;
    none["spec"]["template"]["spec"] = json!({});
    let base = deployments.patch("a", &params, &Patch::Apply(none)).await?;
    assert_eq!(names(&base), ["base"]);
    Ok(())
}
