//! Objects go, stay or are handed over exactly as declared.

use anyhow::Result;
use serde_json::json;

use cleat_world::fleet::{Fleet, holders};

#[tokio::test]
async fn a_deleted_work_takes_its_objects_along() -> Result<()> {
    let fleet = Fleet::start("goes").await?;
    fleet.work("one", vec![fleet.map("a", "1"), fleet.map("b", "2")], json!({})).await?;
    fleet.told("one", "Applied", "True").await?;
    fleet.end("one").await?;
    assert!(fleet.maps().get_opt("a").await?.is_none());
    assert!(fleet.maps().get_opt("b").await?.is_none());
    assert!(fleet.ledgers().get_opt(&fleet.ledger_name("one")).await?.is_none());
    Ok(())
}

#[tokio::test]
async fn an_object_that_leaves_the_manifests_goes() -> Result<()> {
    let fleet = Fleet::start("leaves").await?;
    fleet.work("one", vec![fleet.map("a", "1"), fleet.map("b", "2")], json!({})).await?;
    fleet.told("one", "Applied", "True").await?;
    fleet.rewrite("one", vec![fleet.map("a", "1")]).await?;
    fleet.absent(&fleet.maps(), "b").await?;
    assert_eq!(holders(&fleet.maps().get("a").await?).len(), 1);
    Ok(())
}
