//! The agent is killed after its n-th request, for every n in the life of a work, before and after
//! the server has done what the last request asked; a new agent takes over. Every life ends alike.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that is wrong about its surroundings must fail"
)]

use std::collections::BTreeMap;

use anyhow::Result;
use cleat_agent::work;
use cleat_world::fleet::holders;
use cleat_world::{Fleet, Fuse};
use futures::StreamExt as _;
use kube::ResourceExt as _;
use kube::api::ListParams;
use serde_json::json;

/// What a life leaves behind.
#[derive(Debug, PartialEq)]
struct End {
    maps: BTreeMap<String, (BTreeMap<String, String>, Vec<String>)>,
    ledgers: usize,
    works: usize,
}

/// A work comes, changes and goes; one object is kept, one was there before and is taken over.
async fn life(fleet: &Fleet) -> Result<End> {
    let spec = json!({ "deleteOption": {
        "propagationPolicy": "SelectivelyOrphan",
        "selectivelyOrphans": { "orphaningRules": [
            { "resource": "configmaps", "namespace": fleet.name, "name": "kept" },
        ] },
    }});
    let first = vec![
        fleet.map("a", "1"),
        fleet.map("b", "1"),
        fleet.map("kept", "1"),
        fleet.map("old", "1"),
    ];
    fleet.work("one", first, spec).await?;
    fleet.told("one", "Applied", "True").await?;
    let second = vec![
        fleet.map("a", "2"),
        fleet.map("c", "1"),
        fleet.map("kept", "2"),
        fleet.map("old", "2"),
    ];
    fleet.rewrite("one", second).await?;
    fleet.told("one", "Applied", "True").await?;
    fleet.absent(&fleet.maps(), "b").await?;
    fleet.end("one").await?;
    end(fleet).await
}

async fn end(fleet: &Fleet) -> Result<End> {
    let maps = fleet.maps().list(&ListParams::default()).await?;
    let maps = maps.items.into_iter().filter(|map| map.name_any() != "kube-root-ca.crt");
    Ok(End {
        maps: maps
            .map(|map| (map.name_any(), (map.data.clone().unwrap_or_default(), holders(&map))))
            .collect(),
        ledgers: fleet.ledgers().list(&ListParams::default()).await?.items.len(),
        works: fleet.works().list(&ListParams::default()).await?.items.len(),
    })
}

/// One life in a world of its own, whose first agent dies at the given request. Says how the life
/// ended and how many requests the first agent made.
async fn lived(after: usize, last_is_done: bool) -> Result<(End, usize)> {
    let mut fleet = Fleet::without_agent("crash").await?;
    let old = serde_json::from_value(fleet.map("old", "0"))?;
    fleet.maps().create(&Default::default(), &old).await?;
    let fuse = Fuse::new(after, last_is_done);
    let config = work::Config {
        hub_client: fuse.client(&fleet.hub),
        cluster_client: fuse.client(&fleet.cluster),
        ..fleet.config()
    };
    let healthy = fleet.config();
    fleet.start_agent(config);
    let mut successor = cleat_world::fleet::Agent::default();
    let end = {
        let mut life = std::pin::pin!(life(&fleet));
        tokio::select! {
            end = &mut life => end?,
            () = fuse.blown() => {
                successor.start(healthy);
                life.await?
            }
        }
    };
    successor.stop().await;
    fleet.stop_agent().await;
    Ok((end, fuse.used()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_crash_ends_as_no_crash() -> Result<()> {
    let (expected, requests) = lived(usize::MAX, false).await?;
    assert_eq!((expected.ledgers, expected.works), (0, 0));
    assert_eq!(expected.maps.keys().collect::<Vec<_>>(), ["kept"]);
    assert_eq!(expected.maps["kept"].1, [] as [String; 0]);
    let points = (1..=requests).flat_map(|after| [(after, false), (after, true)]);
    let lives = points.map(|(after, last_is_done)| async move {
        (after, last_is_done, lived(after, last_is_done).await)
    });
    let mut lives = futures::stream::iter(lives).buffer_unordered(4);
    let mut tried = 0;
    while let Some((after, last_is_done, lived)) = lives.next().await {
        let (end, _) = lived
            .map_err(|e| e.context(format!("killed at request {after}, done: {last_is_done}")))?;
        assert_eq!(end, expected, "killed at request {after}, done: {last_is_done}");
        tried += 1;
    }
    println!("{tried} crash points: {requests} requests, each once undone and once done unheard");
    Ok(())
}
