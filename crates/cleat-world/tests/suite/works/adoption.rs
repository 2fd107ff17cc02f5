//! What was there before a work is told apart from what the work made.

use std::collections::BTreeMap;

use anyhow::Result;
use cleat_api::appliedmanifestwork::Origin;
use cleat_api::manifestwork::KEEP_ADOPTED;
use cleat_world::fleet::{Fleet, holders};
use kube::ResourceExt as _;
use serde_json::json;

use crate::create;

/// A work over a map that was there before and one that was not.
async fn adopted(topic: &str) -> Result<Fleet> {
    let fleet = Fleet::start(topic).await?;
    create(&fleet.maps(), fleet.map("old", "0")).await?;
    fleet.work("one", vec![fleet.map("old", "1"), fleet.map("new", "1")], json!({})).await?;
    fleet.told("one", "Applied", "True").await?;
    Ok(fleet)
}

#[tokio::test]
async fn the_ledger_says_what_was_there_before() -> Result<()> {
    let fleet = adopted("origin").await?;
    let claims = fleet.ledger("one").await?.spec.claims;
    let origins: BTreeMap<&str, Origin> = claims
        .iter()
        .flat_map(|claim| claim.all_names().map(|name| (name, claim.origin)))
        .collect();
    assert_eq!(origins, [("new", Origin::Created), ("old", Origin::Adopted)].into());
    assert_eq!(fleet.maps().get("old").await?.data.unwrap()["key"], "1");
    Ok(())
}

#[tokio::test]
async fn by_default_it_goes_with_the_work() -> Result<()> {
    let fleet = adopted("taken").await?;
    fleet.end("one").await?;
    assert!(fleet.maps().get_opt("old").await?.is_none());
    assert!(fleet.maps().get_opt("new").await?.is_none());
    Ok(())
}

#[tokio::test]
async fn an_annotation_keeps_it() -> Result<()> {
    let fleet = adopted("annotated").await?;
    let before = fleet.maps().get("old").await?;
    fleet.patch("one", json!({ "metadata": { "annotations": { KEEP_ADOPTED: "true" } } })).await?;
    fleet.seen(&fleet.maps(), "old", |map| holders(map).is_empty()).await?;
    assert_eq!(holders(&fleet.maps().get("new").await?).len(), 1);
    fleet.end("one").await?;
    assert_eq!(fleet.maps().get("old").await?.uid(), before.uid());
    assert!(fleet.maps().get_opt("new").await?.is_none());
    Ok(())
}

#[tokio::test]
async fn an_annotation_given_at_the_last_moment_keeps_it() -> Result<()> {
    let mut fleet = adopted("late").await?;
    fleet.stop_agent().await;
    fleet.patch("one", json!({ "metadata": { "annotations": { KEEP_ADOPTED: "true" } } })).await?;
    fleet.delete("one").await?;
    fleet.start_agent(fleet.config());
    fleet.absent(&fleet.works(), "one").await?;
    assert!(holders(&fleet.maps().get("old").await?).is_empty());
    assert!(fleet.maps().get_opt("new").await?.is_none());
    Ok(())
}

#[tokio::test]
async fn what_left_the_manifests_and_was_there_before_stays_too() -> Result<()> {
    let fleet = adopted("left").await?;
    fleet.patch("one", json!({ "metadata": { "annotations": { KEEP_ADOPTED: "true" } } })).await?;
    fleet.rewrite("one", vec![fleet.map("other", "1")]).await?;
    fleet.absent(&fleet.maps(), "new").await?;
    assert!(holders(&fleet.maps().get("old").await?).is_empty());
    Ok(())
}
