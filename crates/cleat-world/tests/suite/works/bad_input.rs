//! Each bad manifest fails alone; the rest proceed, and nothing that is there is lost.

use anyhow::Result;
use cleat_world::fleet::{Fleet, holders, manifest_condition};
use serde_json::{Value, json};

use super::widgets::Widgets;

fn unknown_kind() -> Value {
    json!({ "apiVersion": "nowhere.example/v1", "kind": "Nothing", "metadata": { "name": "x" } })
}

#[tokio::test]
async fn each_bad_manifest_says_what_is_wrong_with_it() -> Result<()> {
    let fleet = Fleet::start("bad").await?;
    let mut elsewhere = fleet.map("elsewhere", "1");
    elsewhere["metadata"]["namespace"] = format!("{}-missing", fleet.name).into();
    let mut invalid = fleet.map("invalid", "1");
    invalid["data"] = json!({ "not/a/key": "1" });
    let mut wrong_type = fleet.map("wrong-type", "1");
    wrong_type["data"] = json!({ "key": { "deep": 1 } });
    let mut homeless = fleet.map("homeless", "1");
    homeless["metadata"].as_object_mut().unwrap().remove("namespace");
    let manifests = vec![
        unknown_kind(),
        elsewhere,
        fleet.map("first", "1"),
        invalid,
        wrong_type,
        homeless,
        fleet.map("last", "1"),
    ];
    fleet.work("one", manifests, json!({})).await?;
    fleet.told("one", "Applied", "False").await?;
    fleet.seen(&fleet.maps(), "first", |_| true).await?;
    fleet.seen(&fleet.maps(), "last", |_| true).await?;
    let all_told = |work: &cleat_api::manifestwork::ManifestWork| {
        (0..7).all(|ordinal| !manifest_condition(work, ordinal, "Applied").0.is_empty())
    };
    let work = fleet.seen(&fleet.works(), "one", all_told).await?;
    for (ordinal, status, text) in [
        (0, "False", "the server doesn't have a resource type \"Nothing\""),
        (1, "False", "not found"),
        (2, "True", "Apply manifest complete"),
        (3, "False", "not/a/key"),
        (4, "False", "Failed to apply manifest: "),
        (5, "False", "namespace"),
        (6, "True", "Apply manifest complete"),
    ] {
        let (is, message) = manifest_condition(&work, ordinal, "Applied");
        assert_eq!(is, status, "{ordinal}: {message}");
        assert!(message.contains(text), "{ordinal}: {message}");
    }
    Ok(())
}

#[tokio::test]
async fn a_kind_that_comes_later_is_applied_then() -> Result<()> {
    let fleet = Fleet::start("later").await?;
    let widgets = Widgets::new(&fleet);
    fleet.work("one", vec![widgets.manifest("w"), fleet.map("a", "1")], json!({})).await?;
    fleet.told("one", "Applied", "False").await?;
    assert_eq!(holders(&fleet.maps().get("a").await?).len(), 1);
    crate::create(&widgets.definitions, widgets.definition()).await?;
    let work = fleet.told("one", "Applied", "True").await?;
    assert_eq!(manifest_condition(&work, 0, "Applied").0, "True");
    assert_eq!(holders(&widgets.api.get("w").await?).len(), 1);
    fleet.end("one").await?;
    assert!(widgets.api.get_opt("w").await?.is_none());
    crate::delete(&widgets.definitions, &widgets.name()).await
}

#[tokio::test]
async fn a_namespace_that_comes_later_is_filled_then() -> Result<()> {
    let fleet = Fleet::start("room").await?;
    let later = format!("{}-later", fleet.name);
    let mut map = fleet.map("a", "1");
    map["metadata"]["namespace"] = later.as_str().into();
    fleet.work("one", vec![map], json!({})).await?;
    fleet.told("one", "Applied", "False").await?;
    crate::make_namespace(&fleet.world.clusters[0], &later).await?;
    fleet.told("one", "Applied", "True").await?;
    Ok(())
}

#[tokio::test]
async fn a_manifest_that_turns_bad_loses_nothing() -> Result<()> {
    let fleet = Fleet::start("turns").await?;
    fleet.work("one", vec![fleet.map("a", "1"), fleet.map("b", "1")], json!({})).await?;
    fleet.told("one", "Applied", "True").await?;
    let before = fleet.maps().get("a").await?;
    let mut invalid = fleet.map("a", "1");
    invalid["data"] = json!({ "not/a/key": "1" });
    fleet.rewrite("one", vec![invalid, fleet.map("b", "2")]).await?;
    fleet.told("one", "Applied", "False").await?;
    let after = fleet.maps().get("a").await?;
    assert_eq!((after.metadata.uid, after.data), (before.metadata.uid, before.data));
    fleet.seen(&fleet.maps(), "b", |map| map.data.as_ref().unwrap()["key"] == "2").await?;
    Ok(())
}

#[tokio::test]
async fn a_manifest_without_a_name_fails_alone_and_takes_nothing_away() -> Result<()> {
    let fleet = Fleet::start("nameless").await?;
    fleet.work("one", vec![fleet.map("a", "1"), fleet.map("b", "1")], json!({})).await?;
    fleet.told("one", "Applied", "True").await?;
    let nameless = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "generateName": "x-", "namespace": fleet.name },
    });
    fleet.rewrite("one", vec![fleet.map("a", "2"), nameless]).await?;
    let work = fleet.told("one", "Applied", "False").await?;
    assert!(manifest_condition(&work, 1, "Applied").1.contains("has no metadata.name"));
    assert_eq!(fleet.maps().get("a").await?.data.unwrap()["key"], "2");
    // What the nameless manifest stands for nobody can tell; it may be this.
    assert_eq!(holders(&fleet.maps().get("b").await?).len(), 1);
    fleet.end("one").await?;
    assert!(fleet.maps().get_opt("b").await?.is_none());
    Ok(())
}
