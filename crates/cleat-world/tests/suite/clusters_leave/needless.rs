//! Needless: nothing is deleted, nothing is collected later, everything is on record.

use anyhow::{Context as _, Result};
use cleat_api::managedcluster::RemoveStrategy::{Needless, Required};
use kube::ResourceExt as _;
use serde_json::json;

use super::guard::Guard;
use super::party::Party;

#[tokio::test]
async fn nothing_is_deleted_and_everything_is_listed() -> Result<()> {
    let mut party = Party::new("needless", Needless).await?;
    party.work("w1", vec![party.map("a"), party.map("b")], json!({})).await?;
    party.work("w2", vec![party.map("c")], json!({})).await?;
    party.leave().await?;
    party.left().await?;
    party.no_ledgers().await?;
    let mut uids = Vec::new();
    for name in ["a", "b", "c"] {
        let map = party.maps().get(name).await.with_context(|| format!("{name} is to stay"))?;
        assert_eq!(map.owner_references(), [], "a mark is left on {name}");
        uids.push(map.uid().unwrap_or_default());
    }
    let left = party.on_record().await?;
    let listed: Vec<_> = left.iter().map(|one| one.uid.clone()).collect();
    assert_eq!(listed, uids);
    let why: Vec<_> = left.iter().map(|one| (&*one.source, &*one.why)).collect();
    let kept = "kept by removeStrategy Needless";
    assert_eq!(why, [("w1", kept), ("w1", kept), ("w2", kept)]);
    party.stop_agent().await;
    Ok(())
}

#[tokio::test]
async fn a_work_that_was_deleted_before_keeps_what_is_left_of_it() -> Result<()> {
    let mut party = Party::new("before", Needless).await?;
    party.work("w", vec![party.map("a"), party.map("stuck")], json!({})).await?;
    let guard = Guard::refusing(&party, "stuck").await?;
    crate::delete(&party.works(), "w").await?;
    party.absent("a").await?;
    party.leave().await?;
    party.left().await?;
    let stuck = party.maps().get("stuck").await.context("nothing more is deleted")?;
    assert_eq!(stuck.owner_references(), []);
    // What was gone before is not left.
    let left = party.on_record().await?;
    assert_eq!(left.iter().map(|one| &*one.name).collect::<Vec<_>>(), ["stuck"]);
    party.stop_agent().await;
    guard.remove().await
}

#[tokio::test]
async fn a_strategy_that_changes_counts_for_what_is_not_done() -> Result<()> {
    let mut party = Party::new("changes", Required).await?;
    party.work("w", vec![party.map("gone"), party.map("stuck")], json!({})).await?;
    let guard = Guard::refusing(&party, "stuck").await?;
    party.leave().await?;
    party.absent("gone").await?;
    party.says("UnjoinFailed", "True", "stuck").await?;
    party.fleet.patch(&party.name, json!({ "spec": { "removeStrategy": "Needless" } })).await?;
    party.left().await?;
    let stuck = party.maps().get("stuck").await.context("it is not to go any more")?;
    assert_eq!(stuck.owner_references(), []);
    let left = party.on_record().await?;
    assert_eq!(left.iter().map(|one| &*one.name).collect::<Vec<_>>(), ["stuck"]);
    party.stop_agent().await;
    guard.remove().await
}
