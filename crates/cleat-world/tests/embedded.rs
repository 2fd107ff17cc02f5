//! Where we part from Kubernetes on purpose, so that these run on embedded servers only.

use anyhow::Result;
use cleat_world::{World, within};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
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

/// A real kube-apiserver sends bookmarks at times of its own. From us, whoever must know that nothing
/// more happened up to now hears it as soon as all of it was told.
#[tokio::test]
async fn on_embedded_servers_a_watch_that_has_caught_up_says_so() -> Result<()> {
    let world = World::start().await?;
    let maps: Api<ConfigMap> = Api::default_namespaced(world.hub.client());
    let from = maps.list(&ListParams::default()).await?.metadata.resource_version.unwrap();
    let make = PostParams::default();
    let map = serde_json::from_value(json!({ "metadata": { "name": "late" } }))?;
    maps.create(&make, &map).await?;
    // Something else happens after it.
    let namespaces: Api<Namespace> = Api::all(world.hub.client());
    let namespace = serde_json::from_value(json!({ "metadata": { "name": "elsewhere" } }))?;
    let last = namespaces.create(&make, &namespace).await?.metadata.resource_version.unwrap();
    let mut events = maps.watch(&WatchParams::default(), &from).await?.boxed();
    let first = within("an event", events.next()).await?.unwrap()?;
    assert!(
        matches!(&first, WatchEvent::Added(map) if map.metadata.name.as_deref() == Some("late"))
    );
    let second = within("a bookmark", events.next()).await?.unwrap()?;
    let WatchEvent::Bookmark(mark) = second else { panic!("{second:?}") };
    let reached: u64 = mark.metadata.resource_version.parse()?;
    assert!(reached >= last.parse()?, "{reached} is before {last}");
    Ok(())
}
