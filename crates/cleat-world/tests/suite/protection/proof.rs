//! What is proven of very many objects where the watch that counted them has heard nothing since.

use std::time::Duration;

use anyhow::{Context as _, Result};
use cleat_runtime::census::{Census, Counted, Proof, Turns};
use cleat_runtime::kinds::Mapped;
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

use super::*;

/// More than are read one by one.
const MANY: usize = 2001;

/// A count of config maps that none with the finalizer is in, and that does not go on.
async fn stood_still(client: &Client, finalizer: &str) -> Result<Census> {
    let kind = Mapped {
        group: String::new(),
        version: "v1".to_owned(),
        resource: "configmaps".to_owned(),
        namespaced: true,
    };
    let tasks = Tasks::new();
    let census = Census::start(client.clone(), &tasks, &kind, || {});
    eventually("all to be counted", || async {
        let all = matches!(census.count(None), Counted::Known { count, .. } if count >= MANY);
        let none = Counted::Known { count: 0, samples: Vec::new() };
        Ok((all && census.count(Some(finalizer)) == none).then_some(()))
    })
    .await?;
    tasks.shutdown().await;
    Ok(census)
}

#[tokio::test]
async fn a_finalizer_that_no_watch_told_of_is_found_among_very_many_objects() -> Result<()> {
    let world = World::with_clusters(1).await?;
    let client = world.clusters.first().context("there is a cluster")?.client();
    let name = world.unique("stoodstill");
    let finalizer = format!("cleat.example/{name}");
    create(&Api::<Namespace>::all(client.clone()), json!({ "metadata": { "name": name } })).await?;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &name);
    let made = futures::stream::iter(0..MANY).map(|number| {
        let maps = maps.clone();
        async move {
            create(&maps, json!({ "metadata": { "name": format!("c{number}") } })).await.map(drop)
        }
    });
    made.buffer_unordered(32).try_collect::<()>().await?;
    let census = stood_still(&client, &finalizer).await?;
    let turns = Turns::default();
    let prove = || census.prove_none(Some(&finalizer), &turns, Duration::from_secs(30));
    let change = async |one: &str, change: Value| {
        maps.patch(one, &PatchParams::default(), &Patch::Merge(change)).await.map(drop)
    };
    assert_eq!(prove().await, Proof::None);
    change("c6", json!({ "data": { "key": "changed" } })).await?;
    assert_eq!(prove().await, Proof::None);
    change("c7", json!({ "metadata": { "finalizers": [finalizer] } })).await?;
    assert_eq!(prove().await, Proof::Some(format!("{name}/c7")));
    change("c7", json!({ "metadata": { "finalizers": null } })).await?;
    Ok(())
}
