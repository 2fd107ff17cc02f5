//! How manifests are brought to objects: `updateStrategy` and what it leaves to others.

use anyhow::Result;
use cleat_world::fleet::{Fleet, holders, manifest_condition};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::{create, delete};

/// The spec of a work whose maps have this strategy.
fn strategy(fleet: &Fleet, name: &str, strategy: Value) -> Value {
    let identifier = json!({ "resource": "configmaps", "namespace": fleet.name, "name": name });
    json!({ "manifestConfigs": [{ "resourceIdentifier": identifier, "updateStrategy": strategy }] })
}

fn data(map: &ConfigMap, key: &str) -> String {
    map.data.as_ref().and_then(|data| data.get(key)).cloned().unwrap_or_default()
}

async fn somebody_sets(fleet: &Fleet, name: &str, key: &str, value: &str) -> Result<()> {
    let patch = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name },
        "data": { key: value },
    });
    let params = PatchParams::apply("somebody").force();
    fleet.maps().patch(name, &params, &Patch::Apply(patch)).await?;
    Ok(())
}

#[tokio::test]
async fn update_replaces_data_and_adds_to_labels() -> Result<()> {
    let fleet = Fleet::start("update").await?;
    let mut old = fleet.map("a", "0");
    old["data"]["extra"] = "x".into();
    old["metadata"]["labels"] = json!({ "theirs": "1", "shared": "1" });
    create(&fleet.maps(), old).await?;
    let mut new = fleet.map("a", "1");
    new["metadata"]["labels"] = json!({ "ours": "1", "shared": "2" });
    fleet.work("one", vec![new], json!({})).await?;
    fleet.told("one", "Applied", "True").await?;
    let map = fleet.maps().get("a").await?;
    assert_eq!((data(&map, "key"), data(&map, "extra")), ("1".to_owned(), String::new()));
    let labels: Vec<String> = map.labels().iter().map(|(k, v)| format!("{k}={v}")).collect();
    assert_eq!(labels, ["ours=1", "shared=2", "theirs=1"]);
    Ok(())
}

#[tokio::test]
async fn create_only_makes_holds_and_never_changes() -> Result<()> {
    let fleet = Fleet::start("create-only").await?;
    create(&fleet.maps(), fleet.map("old", "0")).await?;
    let spec = strategy(&fleet, "*", json!({ "type": "CreateOnly" }));
    fleet.work("one", vec![fleet.map("old", "1"), fleet.map("new", "1")], spec).await?;
    fleet.told("one", "Applied", "True").await?;
    assert_eq!(data(&fleet.maps().get("old").await?, "key"), "0");
    fleet.rewrite("one", vec![fleet.map("old", "2"), fleet.map("new", "2")]).await?;
    fleet.told("one", "Applied", "True").await?;
    assert_eq!(data(&fleet.maps().get("new").await?, "key"), "1");
    delete(&fleet.maps(), "new").await?;
    fleet.seen(&fleet.maps(), "new", |map| data(map, "key") == "2").await?;
    assert_eq!(holders(&fleet.maps().get("old").await?).len(), 1);
    fleet.end("one").await?;
    assert!(fleet.maps().get_opt("old").await?.is_none());
    assert!(fleet.maps().get_opt("new").await?.is_none());
    Ok(())
}

#[tokio::test]
async fn read_only_only_looks() -> Result<()> {
    let fleet = Fleet::start("read-only").await?;
    create(&fleet.maps(), fleet.map("old", "0")).await?;
    let before = fleet.maps().get("old").await?;
    let spec = strategy(&fleet, "*", json!({ "type": "ReadOnly" }));
    fleet.work("one", vec![fleet.map("old", "1"), fleet.map("missing", "1")], spec).await?;
    fleet.told("one", "Applied", "True").await?;
    let work = fleet.told("one", "Available", "False").await?;
    assert_eq!(manifest_condition(&work, 0, "Available").0, "True");
    assert_eq!(manifest_condition(&work, 1, "Available").0, "False");
    create(&fleet.maps(), fleet.map("missing", "0")).await?;
    fleet.told("one", "Available", "True").await?;
    fleet.end("one").await?;
    let after = fleet.maps().get("old").await?;
    assert_eq!(after.resource_version(), before.resource_version());
    assert_eq!(data(&fleet.maps().get("missing").await?, "key"), "0");
    Ok(())
}

#[tokio::test]
async fn what_becomes_read_only_is_let_go_of() -> Result<()> {
    let fleet = Fleet::start("becomes").await?;
    fleet.work("one", vec![fleet.map("a", "1")], json!({})).await?;
    fleet.told("one", "Applied", "True").await?;
    let spec = strategy(&fleet, "a", json!({ "type": "ReadOnly" }));
    fleet.patch("one", json!({ "spec": spec })).await?;
    fleet.seen(&fleet.maps(), "a", |map| holders(map).is_empty()).await?;
    fleet.end("one").await?;
    assert!(fleet.maps().get_opt("a").await?.is_some());
    Ok(())
}

#[tokio::test]
async fn apply_leaves_other_fields_alone_and_takes_back_what_it_dropped() -> Result<()> {
    let fleet = Fleet::start("apply").await?;
    let spec = strategy(&fleet, "a", json!({ "type": "ServerSideApply" }));
    let mut manifest = fleet.map("a", "1");
    manifest["data"]["second"] = "1".into();
    fleet.work("one", vec![manifest], spec).await?;
    fleet.told("one", "Applied", "True").await?;
    somebody_sets(&fleet, "a", "theirs", "1").await?;
    fleet.rewrite("one", vec![fleet.map("a", "2")]).await?;
    let map = fleet.seen(&fleet.maps(), "a", |map| data(map, "key") == "2").await?;
    assert_eq!((data(&map, "theirs"), data(&map, "second")), ("1".to_owned(), String::new()));
    assert_eq!(holders(&map), [fleet.ledger_name("one")]);
    fleet.end("one").await?;
    assert!(fleet.maps().get_opt("a").await?.is_none());
    Ok(())
}

#[tokio::test]
async fn apply_says_conflicts_and_wins_only_by_force() -> Result<()> {
    let fleet = Fleet::start("conflict").await?;
    create(&fleet.maps(), json!({ "metadata": { "name": "a" } })).await?;
    somebody_sets(&fleet, "a", "key", "theirs").await?;
    let spec = strategy(&fleet, "a", json!({ "type": "ServerSideApply" }));
    fleet.work("one", vec![fleet.map("a", "1"), fleet.map("b", "1")], spec).await?;
    let work = fleet.told("one", "Applied", "False").await?;
    let (_, message) = manifest_condition(&work, 0, "Applied");
    assert!(message.contains("conflict") && message.contains("somebody"), "{message}");
    let map = fleet.maps().get("a").await?;
    assert_eq!((data(&map, "key"), holders(&map)), ("theirs".to_owned(), vec![]));
    fleet.seen(&fleet.maps(), "b", |_| true).await?;
    let force = json!({ "type": "ServerSideApply", "serverSideApply": { "force": true } });
    fleet.patch("one", json!({ "spec": strategy(&fleet, "a", force) })).await?;
    fleet.told("one", "Applied", "True").await?;
    let map = fleet.maps().get("a").await?;
    assert_eq!((data(&map, "key"), holders(&map).len()), ("1".to_owned(), 1));
    Ok(())
}

/// A strategy that ignores the field `key` of a map's data.
fn ignoring(condition: &str, language: &str, path: &str) -> Value {
    json!({ "type": "ServerSideApply", "serverSideApply": {
        "force": true,
        "ignoreFields": [{ "condition": condition, language: [path] }],
    }})
}

#[tokio::test]
async fn fields_are_ignored_in_three_languages() -> Result<()> {
    let fleet = Fleet::start("ignored").await?;
    let languages = [
        ("path", "jsonPaths", ".data.key"),
        ("pointer", "jsonPointers", "/data/key"),
        ("jq", "jqPathExpressions", ".data.key"),
    ];
    for (name, language, path) in languages {
        let spec = strategy(&fleet, name, ignoring("OnSpokePresent", language, path));
        fleet.work(name, vec![fleet.map(name, "1")], spec).await?;
    }
    for (name, ..) in languages {
        fleet.told(name, "Applied", "True").await?;
        assert_eq!(data(&fleet.maps().get(name).await?, "key"), "1", "made whole");
        somebody_sets(&fleet, name, "key", "theirs").await?;
        let mut changed = fleet.map(name, "2");
        changed["data"]["second"] = "2".into();
        fleet.rewrite(name, vec![changed]).await?;
        let map = fleet.seen(&fleet.maps(), name, |map| data(map, "second") == "2").await?;
        assert_eq!(data(&map, "key"), "theirs", "{name}");
    }
    Ok(())
}

#[tokio::test]
async fn a_field_ignored_on_change_is_set_again_when_the_work_changes() -> Result<()> {
    let fleet = Fleet::start("on-change").await?;
    let spec = strategy(&fleet, "a", ignoring("OnSpokeChange", "jsonPaths", ".data.key"));
    fleet.work("one", vec![fleet.map("a", "1")], spec).await?;
    fleet.told("one", "Applied", "True").await?;
    somebody_sets(&fleet, "a", "key", "theirs").await?;
    fleet.patch("one", json!({ "metadata": { "labels": { "touched": "1" } } })).await?;
    let ledger = fleet.ledger_name("one");
    fleet.seen(&fleet.ledgers(), &ledger, |ledger| ledger.labels().contains_key("touched")).await?;
    assert_eq!(data(&fleet.maps().get("a").await?, "key"), "theirs");
    let mut changed = fleet.map("a", "1");
    changed["data"]["second"] = "2".into();
    fleet.rewrite("one", vec![changed]).await?;
    let map = fleet.seen(&fleet.maps(), "a", |map| data(map, "second") == "2").await?;
    assert_eq!(data(&map, "key"), "1");
    Ok(())
}

#[tokio::test]
async fn fields_that_cannot_be_told_are_said_so() -> Result<()> {
    let fleet = Fleet::start("untold").await?;
    let spec = strategy(&fleet, "a", ignoring("OnSpokePresent", "jqPathExpressions", "now"));
    fleet.work("one", vec![fleet.map("a", "1")], spec).await?;
    let work = fleet.told("one", "Applied", "False").await?;
    let (_, message) = manifest_condition(&work, 0, "Applied");
    assert!(message.starts_with("Failed to process ignoreFields: "), "{message}");
    assert!(fleet.maps().get_opt("a").await?.is_none());
    Ok(())
}
