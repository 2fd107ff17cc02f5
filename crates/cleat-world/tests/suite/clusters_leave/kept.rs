//! What stays on a cluster that is to be emptied, and what was to stay and is not there.

use anyhow::{Context as _, Result};
use cleat_api::managedcluster::RemoveStrategy::Required;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::ResourceExt as _;
use kube::api::{Api, Patch};
use serde_json::json;

use super::party::Party;
use crate::{delete, gone};

#[tokio::test]
async fn what_is_kept_keeps_the_namespace_that_its_work_brought() -> Result<()> {
    let mut party = Party::new("keeps", Required).await?;
    let inner = format!("{}-in", party.name);
    let namespace =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": inner } });
    let map = |name: &str| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": name, "namespace": inner },
        })
    };
    let keeps = json!({ "deleteOption": {
        "propagationPolicy": "SelectivelyOrphan",
        "selectivelyOrphans": { "orphaningRules": [
            { "group": "", "resource": "configmaps", "namespace": inner, "name": "kept" },
        ] },
    } });
    party.work("w", vec![namespace, map("kept"), map("goes")], keeps).await?;
    party.leave().await?;
    party.left().await?;
    party.no_ledgers().await?;
    let maps: Api<ConfigMap> = Api::namespaced(party.cluster.clone(), &inner);
    let kept = maps.get("kept").await.context("its work said to keep it")?;
    assert_eq!(kept.owner_references(), []);
    assert!(maps.get_opt("goes").await?.is_none());
    let namespaces: Api<Namespace> = Api::all(party.cluster.clone());
    let namespace = namespaces.get(&inner).await?;
    assert_eq!(namespace.owner_references(), []);
    assert_eq!(namespace.metadata.deletion_timestamp, None);
    let left = party.on_record().await?;
    let listed: Vec<_> = left.iter().map(|one| (&*one.name, &*one.why)).collect();
    assert_eq!(listed, [("kept", "kept by deleteOption"), (&*inner, "it holds what is kept")]);
    party.stop_agent().await;
    Ok(())
}

#[tokio::test]
async fn what_two_works_held_was_on_record_as_left_though_it_went() -> Result<()> {
    let mut party = Party::new("shared", Required).await?;
    party.work("one", vec![party.map("both"), party.map("a")], json!({})).await?;
    party.work("two", vec![party.map("both"), party.map("b")], json!({})).await?;
    party.leave().await?;
    party.left().await?;
    party.no_ledgers().await?;
    for map in ["both", "a", "b"] {
        assert!(party.maps().get_opt(map).await?.is_none(), "{map} is left");
    }
    assert_eq!(party.on_record().await?, []);
    party.stop_agent().await;
    Ok(())
}

/// The one that keeps it goes first: it needs what the other brings.
#[tokio::test]
async fn what_one_work_kept_went_with_another_that_did_not() -> Result<()> {
    let mut party = Party::new("unshared", Required).await?;
    let inner = format!("{}-in", party.name);
    let namespace =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": inner } });
    party.work("base", vec![namespace, party.map("both")], json!({})).await?;
    let within = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "in", "namespace": inner },
    });
    let keeps = json!({ "deleteOption": {
        "propagationPolicy": "SelectivelyOrphan",
        "selectivelyOrphans": { "orphaningRules": [
            { "group": "", "resource": "configmaps", "namespace": party.name, "name": "both" },
        ] },
    } });
    party.work("keeps", vec![within, party.map("both")], keeps).await?;
    party.leave().await?;
    party.left().await?;
    party.no_ledgers().await?;
    let kept = party.maps().get("both").await.context("one of its works said to keep it")?;
    assert_eq!(kept.owner_references(), []);
    let namespaces: Api<Namespace> = Api::all(party.cluster.clone());
    assert!(namespaces.get_opt(&inner).await?.is_none(), "the rest goes");
    let left = party.on_record().await?;
    assert!(left.iter().all(|one| one.name == "both"), "{left:?}");
    let why: Vec<_> = left.iter().map(|one| (&*one.source, &*one.why)).collect();
    assert!(why.contains(&("keeps", "kept by deleteOption")), "{why:?}");
    party.stop_agent().await;
    Ok(())
}

#[tokio::test]
async fn what_was_to_be_kept_and_is_not_there_holds_nothing_up() -> Result<()> {
    let mut party = Party::new("missing", Required).await?;
    let orphan = json!({ "deleteOption": { "propagationPolicy": "Orphan" } });
    party.work("w", vec![party.map("m")], orphan).await?;
    party.stop_agent().await;
    let map = party.maps().get("m").await?;
    delete(&party.maps(), "m").await?;
    gone(&party.maps(), &map).await?;
    party.leave().await?;
    party.start_agent();
    party.left().await?;
    party.no_ledgers().await?;
    assert!(party.maps().get_opt("m").await?.is_none(), "it was made again");
    assert_eq!(party.on_record().await?, []);
    party.stop_agent().await;
    Ok(())
}

#[tokio::test]
async fn what_somebody_took_our_mark_off_stays_and_is_listed() -> Result<()> {
    let mut party = Party::new("stripped", Required).await?;
    party.work("w", vec![party.map("theirs"), party.map("ours")], json!({})).await?;
    // While an agent runs it puts the mark on again.
    party.stop_agent().await;
    party.leave().await?;
    let strip = json!({ "metadata": { "ownerReferences": null } });
    party.maps().patch("theirs", &Default::default(), &Patch::Merge(strip)).await?;
    party.start_agent();
    party.left().await?;
    party.maps().get("theirs").await.context("somebody took it over")?;
    assert!(party.maps().get_opt("ours").await?.is_none());
    let left = party.on_record().await?;
    let listed: Vec<_> = left.iter().map(|one| (&*one.name, &*one.why)).collect();
    assert_eq!(listed, [("theirs", "it is without our mark")]);
    party.stop_agent().await;
    Ok(())
}
