//! What went wrong elsewhere, or here once, on servers. Those that need none are with the planner.

use anyhow::Result;
use cleat_agent::work::hub_hash;
use cleat_api::appliedmanifestwork::Claim;
use cleat_world::fleet::{Fleet, holders, manifest_condition};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::ResourceExt as _;
use kube::api::{Api, ListParams};
use serde_json::json;

use super::widgets::Widgets;
use crate::{create, delete};

#[tokio::test]
async fn a_definition_that_somebody_removed_left_the_work_stuck() -> Result<()> {
    let fleet = Fleet::start("undefined").await?;
    let widgets = Widgets::new(&fleet);
    create(&widgets.definitions, widgets.definition()).await?;
    fleet.work("one", vec![widgets.manifest("w"), fleet.map("a", "1")], json!({})).await?;
    fleet.told("one", "Applied", "True").await?;
    delete(&widgets.definitions, &widgets.name()).await?;
    fleet.absent(&widgets.definitions, &widgets.name()).await?;
    fleet.told("one", "Applied", "False").await?;
    fleet.end("one").await?;
    assert!(fleet.maps().get_opt("a").await?.is_none());
    Ok(())
}

#[tokio::test]
async fn h6_labels_given_right_after_the_work_never_came_to_the_ledger() -> Result<()> {
    let fleet = Fleet::start("labels").await?;
    fleet.work("one", vec![fleet.map("a", "1")], json!({})).await?;
    fleet.told("one", "Applied", "True").await?;
    fleet.patch("one", json!({ "metadata": { "labels": { "team": "blue" } } })).await?;
    let ledger = fleet.ledger_name("one");
    let blue = |ledger: &cleat_api::appliedmanifestwork::AppliedManifestWork| {
        ledger.labels().get("team").map(String::as_str) == Some("blue")
    };
    fleet.seen(&fleet.ledgers(), &ledger, blue).await?;
    Ok(())
}

#[tokio::test]
async fn ocm_632_quick_spec_changes_left_objects_behind() -> Result<()> {
    let fleet = Fleet::start("quick").await?;
    fleet.work("one", vec![fleet.map("m0", "1")], json!({})).await?;
    for round in 1..20 {
        let pair = [format!("m{round}"), format!("m{}", round + 1)];
        let manifests = pair.iter().map(|name| fleet.map(name, "1")).collect();
        fleet.rewrite("one", manifests).await?;
    }
    fleet.rewrite("one", vec![fleet.map("last", "1")]).await?;
    fleet.told("one", "Applied", "True").await?;
    let only_last = |ledger: &cleat_api::appliedmanifestwork::AppliedManifestWork| {
        ledger.spec.claims.iter().flat_map(Claim::all_names).all(|name| name == "last")
    };
    fleet.seen(&fleet.ledgers(), &fleet.ledger_name("one"), only_last).await?;
    let maps = fleet.maps().list(&ListParams::default()).await?.items;
    let ours: Vec<String> =
        maps.iter().filter(|map| !holders(*map).is_empty()).map(ConfigMap::name_any).collect();
    assert_eq!(ours, ["last"]);
    assert!(maps.iter().all(|map| !map.name_any().starts_with('m')));
    Ok(())
}

#[tokio::test]
async fn ocm_1404_a_work_made_again_under_its_name_was_taken_for_the_old_one() -> Result<()> {
    let fleet = Fleet::start("again").await?;
    for value in ["1", "2", "3"] {
        fleet.work("one", vec![fleet.map("a", value)], json!({})).await?;
        fleet.told("one", "Applied", "True").await?;
        assert_eq!(fleet.maps().get("a").await?.data.unwrap()["key"], value);
        fleet.end("one").await?;
        assert!(fleet.maps().get_opt("a").await?.is_none());
    }
    Ok(())
}

#[tokio::test]
async fn fact_8_the_address_of_the_hub_was_made_uniform_before_it_was_hashed() -> Result<()> {
    let fleet = Fleet::start("address").await?;
    assert_ne!(hub_hash("https://hub:6443"), hub_hash("https://hub:6443/"));
    assert_eq!(
        hub_hash("https://hub:6443"),
        sha256("https://hub:6443"),
        "lower-case hex of SHA-256"
    );
    fleet.work("one", vec![fleet.map("a", "1")], json!({})).await?;
    fleet.told("one", "Applied", "True").await?;
    let ledger = fleet.ledger("one").await?;
    let hash = sha256(&fleet.config().hub_address);
    assert_eq!(ledger.name_any(), format!("{hash}-one"));
    assert_eq!((ledger.spec.hub_hash, &*ledger.spec.manifest_work_name), (hash, "one"));
    Ok(())
}

fn sha256(text: &str) -> String {
    use sha2::Digest as _;
    sha2::Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test]
async fn a_namespace_took_along_what_was_to_be_kept_in_it() -> Result<()> {
    let fleet = Fleet::start("inside").await?;
    let inner = format!("{}-inner", fleet.name);
    let namespace =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": inner } });
    let map = |name: &str| {
        let mut map = fleet.map(name, "1");
        map["metadata"]["namespace"] = inner.as_str().into();
        map
    };
    let rule = json!({ "resource": "configmaps", "namespace": inner, "name": "kept" });
    let option = json!({
        "propagationPolicy": "SelectivelyOrphan",
        "selectivelyOrphans": { "orphaningRules": [rule] },
    });
    let manifests = vec![namespace, map("kept"), map("gone")];
    fleet.work("one", manifests, json!({ "deleteOption": option })).await?;
    fleet.told("one", "Applied", "True").await?;
    fleet.end("one").await?;
    let maps: Api<ConfigMap> = Api::namespaced(fleet.cluster.clone(), &inner);
    assert!(maps.get("kept").await?.metadata.deletion_timestamp.is_none());
    assert!(maps.get_opt("gone").await?.is_none());
    let namespaces: Api<Namespace> = Api::all(fleet.cluster.clone());
    let left = namespaces.get(&inner).await?;
    assert!(left.metadata.deletion_timestamp.is_none() && holders(&left).is_empty());
    Ok(())
}

#[tokio::test]
async fn a_secret_whose_type_changed_could_never_be_applied_again() -> Result<()> {
    let fleet = Fleet::start("type").await?;
    let secret = |type_: &str| {
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": { "name": "s", "namespace": fleet.name },
            "type": type_,
            "stringData": { "key": "1" },
        })
    };
    fleet.work("one", vec![secret("example.com/a")], json!({})).await?;
    fleet.told("one", "Applied", "True").await?;
    fleet.rewrite("one", vec![secret("example.com/b")]).await?;
    let changed = |secret: &Secret| secret.type_.as_deref() == Some("example.com/b");
    let secret = fleet.seen(&fleet.there::<Secret>(), "s", changed).await?;
    assert_eq!(holders(&secret).len(), 1);
    fleet.told("one", "Applied", "True").await?;
    Ok(())
}

#[tokio::test]
async fn finalizers_of_others_were_taken_off_with_ours() -> Result<()> {
    let fleet = Fleet::start("others").await?;
    fleet.work("one", vec![fleet.map("a", "1")], json!({})).await?;
    let work = fleet.told("one", "Applied", "True").await?;
    let mut finalizers = work.finalizers().to_vec();
    finalizers.insert(0, "example.com/theirs".into());
    fleet.patch("one", json!({ "metadata": { "finalizers": finalizers } })).await?;
    fleet.delete("one").await?;
    let released =
        |work: &cleat_api::manifestwork::ManifestWork| work.finalizers() == ["example.com/theirs"];
    fleet.seen(&fleet.works(), "one", released).await?;
    assert!(fleet.maps().get_opt("a").await?.is_none());
    fleet.patch("one", json!({ "metadata": { "finalizers": null } })).await?;
    fleet.absent(&fleet.works(), "one").await
}

#[tokio::test]
async fn the_second_of_two_manifests_for_one_object_was_applied_in_turns_with_the_first()
-> Result<()> {
    let fleet = Fleet::start("twice").await?;
    fleet.work("one", vec![fleet.map("a", "1"), fleet.map("a", "2")], json!({})).await?;
    let work = fleet.told("one", "Applied", "False").await?;
    assert_eq!(manifest_condition(&work, 0, "Applied").0, "True");
    assert_eq!(manifest_condition(&work, 1, "Applied").0, "False");
    assert_eq!(fleet.maps().get("a").await?.data.unwrap()["key"], "1");
    Ok(())
}
