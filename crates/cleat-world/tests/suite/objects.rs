//! Objects are what was written, under names of their own, on one server.

use anyhow::Result;
use cleat_world::World;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions};
use serde_json::json;

use crate::{Place, create, delete, gone, make_namespace, parse, refusal, refused};

#[tokio::test]
async fn what_was_created_is_read_back() -> Result<()> {
    let place = Place::new("objects").await?;
    let maps: Api<ConfigMap> = place.api();
    let made = create(
        &maps,
        json!({ "metadata": { "name": "a", "labels": { "tier": "one" } }, "data": { "k": "v" } }),
    )
    .await?;
    assert!(made.uid().is_some() && made.creation_timestamp().is_some());
    assert_eq!(maps.get("a").await?, made);
    assert_eq!(maps.get_metadata("a").await?.metadata, made.metadata);
    let listed = maps.list(&ListParams::default().labels("tier=one")).await?;
    assert_eq!(listed.items, [made]);
    assert!(maps.list(&ListParams::default().labels("tier=two")).await?.items.is_empty());
    Ok(())
}

#[tokio::test]
async fn a_name_is_given_once() -> Result<()> {
    let place = Place::new("objects").await?;
    let first = place.config_map("a").await?;
    let maps: Api<ConfigMap> = place.api();
    let status = refused(&maps, json!({ "metadata": { "name": "a" } })).await;
    assert_eq!((status.code, &*status.reason), (409, "AlreadyExists"));
    delete(&maps, "a").await?;
    gone(&maps, &first).await?;
    assert_ne!(place.config_map("a").await?.uid(), first.uid());
    assert_eq!(refusal(maps.get("b").await).reason, "NotFound");
    Ok(())
}

#[tokio::test]
async fn generated_names_differ() -> Result<()> {
    let place = Place::new("objects").await?;
    let maps: Api<ConfigMap> = place.api();
    let one = create(&maps, json!({ "metadata": { "generateName": "made-" } })).await?;
    let two = create(&maps, json!({ "metadata": { "generateName": "made-" } })).await?;
    assert!(one.name_any().starts_with("made-") && two.name_any().starts_with("made-"));
    assert_ne!(one.name_any(), two.name_any());
    Ok(())
}

#[tokio::test]
async fn a_write_based_on_an_old_version_is_refused() -> Result<()> {
    let place = Place::new("objects").await?;
    let maps: Api<ConfigMap> = place.api();
    let old = place.config_map("a").await?;
    let mut new = old.clone();
    new.data = Some([("k".to_owned(), "new".to_owned())].into());
    let new = maps.replace("a", &PostParams::default(), &new).await?;
    let mut late = old;
    late.data = Some([("k".to_owned(), "late".to_owned())].into());
    let status = refusal(maps.replace("a", &PostParams::default(), &late).await);
    assert_eq!((status.code, &*status.reason), (409, "Conflict"));
    assert_eq!(maps.get("a").await?, new);
    Ok(())
}

#[tokio::test]
async fn a_deletion_with_another_uid_is_refused() -> Result<()> {
    let place = Place::new("objects").await?;
    let maps: Api<ConfigMap> = place.api();
    let made = place.config_map("a").await?;
    let only = |uid: &str| DeleteParams {
        preconditions: Some(Preconditions { uid: Some(uid.to_owned()), resource_version: None }),
        ..DeleteParams::default()
    };
    let status = refusal(maps.delete("a", &only("another")).await);
    assert_eq!((status.code, &*status.reason), (409, "Conflict"));
    maps.delete("a", &only(&made.uid().unwrap())).await?;
    gone(&maps, &made).await
}

#[tokio::test]
async fn patches_change_what_they_name() -> Result<()> {
    let place = Place::new("objects").await?;
    let maps: Api<ConfigMap> = place.api();
    create(&maps, json!({ "metadata": { "name": "a" }, "data": { "x": "1", "y": "2" } })).await?;
    let params = PatchParams::default();
    let merge = Patch::Merge(json!({ "data": { "x": null, "z": "3" } }));
    let merged = maps.patch("a", &params, &merge).await?;
    let steps = json!([{ "op": "test", "path": "/data/y", "value": "2" },
                       { "op": "replace", "path": "/data/y", "value": "4" }]);
    let steps = Patch::Json::<()>(parse(steps));
    let patched = maps.patch("a", &params, &steps).await?;
    let data = |map: &ConfigMap| json!(map.data);
    assert_eq!(data(&merged), json!({ "y": "2", "z": "3" }));
    assert_eq!(data(&patched), json!({ "y": "4", "z": "3" }));
    assert_eq!(refusal(maps.patch("a", &params, &steps).await).code, 422);
    Ok(())
}

#[tokio::test]
async fn a_dry_run_changes_nothing() -> Result<()> {
    let place = Place::new("objects").await?;
    let maps: Api<ConfigMap> = place.api();
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let answer = maps.create(&dry, &parse(json!({ "metadata": { "name": "a" } }))).await?;
    assert!(answer.uid().is_some());
    assert_eq!(maps.get_opt("a").await?, None);
    let made = place.config_map("a").await?;
    maps.delete("a", &DeleteParams { dry_run: true, ..DeleteParams::default() }).await?;
    assert_eq!(maps.get("a").await?, made);
    Ok(())
}

#[tokio::test]
async fn unknown_fields_are_refused_when_asked() -> Result<()> {
    let place = Place::new("objects").await?;
    let uri = format!("/api/v1/namespaces/{}/secrets?fieldValidation=Strict", place.namespace);
    let body = json!({ "metadata": { "name": "a" }, "stringdata": {} }).to_string();
    let request = http::Request::post(uri)
        .header("content-type", "application/json")
        .body(body.into_bytes())?;
    let status = refusal(place.client.request::<Secret>(request).await);
    assert_eq!((status.code, &*status.reason), (400, "BadRequest"));
    assert!(status.message.contains(r#"unknown field "stringdata""#), "{}", status.message);
    Ok(())
}

#[tokio::test]
async fn the_servers_of_a_world_share_nothing() -> Result<()> {
    let world = World::start().await?;
    let namespace = world.unique("objects");
    for cluster in std::iter::once(&world.hub).chain(&world.clusters) {
        make_namespace(cluster, &namespace).await?;
    }
    let here: Api<ConfigMap> = Api::namespaced(world.clusters[0].client(), &namespace);
    let there: Api<ConfigMap> = Api::namespaced(world.clusters[1].client(), &namespace);
    create(&here, json!({ "metadata": { "name": "a" } })).await?;
    assert!(here.get_opt("a").await?.is_some());
    assert!(there.get_opt("a").await?.is_none());
    Ok(())
}
