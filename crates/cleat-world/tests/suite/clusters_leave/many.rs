//! A cluster with ten thousand objects; with a thousand on real control planes, which all the tests
//! share: every other agent there hears of every one of them.

use std::time::Instant;

use anyhow::{Context as _, Result};
use cleat_api::managedcluster::RemoveStrategy::Required;
use kube::ResourceExt as _;
use kube::api::ListParams;
use serde_json::json;

use super::party::Party;

fn works() -> usize {
    // By hand as many as one likes, a hundred objects each.
    if let Some(wanted) = std::env::var("CLEAT_MANY_WORKS").ok().and_then(|n| n.parse().ok()) {
        return wanted;
    }
    if std::env::var_os(cleat_world::world::WORLD).is_some() { 10 } else { 100 }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_objects_go_and_are_seen_gone() -> Result<()> {
    let mut party = Party::new("many", Required).await?;
    let begun = Instant::now();
    for work in 0..works() {
        let maps = (0..100).map(|index| party.map(&format!("m{work}-{index}")));
        party.work(&format!("w{work}"), maps.collect(), json!({})).await?;
    }
    println!("{} objects applied after {:.1?}", works() * 100, begun.elapsed());
    let leaves = Instant::now();
    party.leave().await?;
    // Patience is for one step, and these are ten.
    let mut left = party.left().await;
    for _ in 0..9 {
        if left.is_ok() {
            break;
        }
        left = party.left().await;
    }
    left?;
    println!("left after {:.1?}", leaves.elapsed());
    party.no_ledgers().await?;
    let maps = party.maps().list_metadata(&ListParams::default()).await.context("look")?.items;
    let ours: Vec<_> = maps.iter().filter(|map| map.name_any() != "kube-root-ca.crt").collect();
    assert_eq!(ours.len(), 0);
    assert_eq!(party.on_record().await?, []);
    party.stop_agent().await;
    Ok(())
}
