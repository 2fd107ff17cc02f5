//! Watches tell everything once and in order, or say that they cannot.

use std::pin::pin;

use anyhow::{Context as _, Result};
use cleat_world::within;
use futures::{Stream, StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use kube::api::{Api, Patch, PatchParams, WatchEvent, WatchParams};
use kube::runtime::watcher::{self, Config, Event, watcher};
use serde_json::json;

use crate::{Place, create, delete, seen};

async fn next(
    events: &mut (impl Stream<Item = watcher::Result<Event<ConfigMap>>> + Unpin),
) -> Result<String> {
    let event = within("an event", events.try_next()).await??.context("watchers do not end")?;
    Ok(match event {
        Event::Init => "init".to_owned(),
        Event::InitApply(map) => format!("had {}", map.name_any()),
        Event::InitDone => "complete".to_owned(),
        Event::Apply(map) => format!("{} is {}", map.name_any(), json!(map.data)),
        Event::Delete(map) => format!("{} left", map.name_any()),
    })
}

async fn tells_everything(config: Config) -> Result<()> {
    let place = Place::new("watches").await?;
    let maps: Api<ConfigMap> = place.api();
    let labels = json!({ "kind": "watched" });
    let object = |name: &str| json!({ "metadata": { "name": name, "labels": labels } });
    create(&maps, object("a")).await?;
    create(&maps, object("b")).await?;
    place.config_map("without-label").await?;
    let mut events = pin!(watcher(maps.clone(), config.labels("kind=watched")));
    for expected in ["init", "had a", "had b", "complete"] {
        assert_eq!(next(&mut events).await?, expected);
    }
    create(&maps, object("c")).await?;
    let params = PatchParams::default();
    maps.patch("a", &params, &Patch::Merge(json!({ "data": { "k": "v" } }))).await?;
    // Whoever loses the label leaves, as far as this watch can tell.
    let unlabelled = Patch::Merge(json!({ "metadata": { "labels": null } }));
    maps.patch("b", &params, &unlabelled).await?;
    delete(&maps, "a").await?;
    for expected in ["c is null", r#"a is {"k":"v"}"#, "b left", "a left"] {
        assert_eq!(next(&mut events).await?, expected);
    }
    Ok(())
}

#[tokio::test]
async fn a_watcher_that_lists_first_is_told_everything() -> Result<()> {
    tells_everything(Config::default()).await
}

#[tokio::test]
async fn a_watcher_that_streams_its_list_is_told_everything() -> Result<()> {
    tells_everything(Config::default().streaming_lists()).await
}

#[tokio::test]
async fn a_watch_resumes_after_any_version() -> Result<()> {
    let place = Place::new("watches").await?;
    let maps: Api<ConfigMap> = place.api();
    let mut versions = Vec::new();
    for name in ["a", "b", "c"] {
        let made = place.config_map(name).await?;
        versions.push(made.resource_version().context("it has a version")?);
    }
    for (index, version) in versions.iter().enumerate() {
        let names = ["a", "b", "c"].iter().skip(index + 1);
        let params = WatchParams::default().timeout(5);
        let mut events = maps.watch(&params, version).await?.boxed();
        for name in names {
            // Every namespace is given more, at a moment of the server's choosing.
            let seen = loop {
                match within("an event", events.try_next()).await?? {
                    Some(WatchEvent::Added(map)) if map.name_any() == "kube-root-ca.crt" => {}
                    Some(WatchEvent::Added(map)) => break map.name_any(),
                    other => panic!("{other:?}"),
                }
            };
            assert_eq!(seen, *name);
        }
    }
    Ok(())
}

#[tokio::test]
async fn an_object_is_awaited_before_it_exists() -> Result<()> {
    let place = Place::new("watches").await?;
    let maps: Api<ConfigMap> = place.api();
    let waiting = seen(&maps, "later", |map: &ConfigMap| map.data.is_some());
    let making = async {
        place.config_map("later").await?;
        let data = Patch::Merge(json!({ "data": { "k": "v" } }));
        maps.patch("later", &PatchParams::default(), &data).await?;
        anyhow::Ok(())
    };
    let (found, made) = tokio::join!(waiting, making);
    made?;
    assert_eq!(json!(found?.data), json!({ "k": "v" }));
    Ok(())
}
