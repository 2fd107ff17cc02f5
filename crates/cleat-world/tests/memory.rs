//! What an empty cluster costs. Runs on embedded servers only, and alone in its process: it
//! measures the process.

use anyhow::{Context as _, Result};
use cleat_world::World;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, ListParams, PostParams};
use serde_json::json;

const CLUSTERS: usize = 200;
/// In KiB; the promise is "well under 1 MiB".
const MOST: usize = 640;

/// The process' resident memory in KiB.
fn resident() -> Result<usize> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.context("Linux tells the resident memory")?.parse()?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn embedded_clusters_cost_well_under_a_mebibyte_each() -> Result<()> {
    // What all share (kinds, schemas, the allocator's first arenas) is there with the first.
    let first = World::with_clusters(1).await?;
    used(&first).await?;
    let before = resident()?;
    let world = World::with_clusters(CLUSTERS - 1).await?;
    used(&world).await?;
    let each = (resident()? - before) / CLUSTERS;
    println!("{CLUSTERS} clusters in one process cost {each} KiB each");
    assert!(each < MOST, "{each} KiB each");
    Ok(())
}

/// Writes to every cluster and reads from it, as whoever joins a fleet does at least once.
async fn used(world: &World) -> Result<()> {
    for cluster in std::iter::once(&world.hub).chain(&world.clusters) {
        let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client());
        let map: ConfigMap = serde_json::from_value(json!({ "metadata": { "name": "a" } }))?;
        maps.create(&PostParams::default(), &map).await?;
        let namespaces: Api<Namespace> = Api::all(cluster.client());
        assert_eq!(namespaces.list(&ListParams::default()).await?.items.len(), 4);
    }
    Ok(())
}
