//! What is on record though it was in no manifest any more, or its work was going before the cluster.

use anyhow::{Context as _, Result};
use cleat_api::managedcluster::RemoveStrategy::{Needless, Required};
use cleat_api::manifestwork::ManifestWork;
use jiff::Timestamp;
use kube::ResourceExt as _;
use kube::api::Patch;
use serde_json::json;

use super::guard::Guard;
use super::party::Party;
use crate::{gone, seen};

#[tokio::test]
async fn what_had_left_the_manifests_was_on_no_record_of_a_lost_cluster() -> Result<()> {
    let mut party = Party::new("retired", Required).await?;
    party.work("w", vec![party.map("a"), party.map("held")], json!({})).await?;
    let hold = json!({ "metadata": { "finalizers": ["nobody.example/hold"] } });
    let held = party.maps().patch("held", &Default::default(), &Patch::Merge(hold)).await?;
    let less = json!({ "spec": { "workload": { "manifests": [party.map("a")] } } });
    party.works().patch("w", &Default::default(), &Patch::Merge(less)).await?;
    seen(&party.works(), "w", |work: &ManifestWork| {
        let told = work.status.iter().flat_map(|status| &status.retiring);
        let manifests = work.status.iter().flat_map(|status| &status.resource_status.manifests);
        told.map(|one| &*one.name).eq(["held"]) && manifests.count() == 1
    })
    .await
    .context("the hub was not told what is left")?;
    party.lose().await?;
    let left = party.on_record().await?;
    let names: Vec<_> = left.iter().map(|one| (&*one.name, &*one.source, one.stays)).collect();
    assert_eq!(names, [("a", "w", None), ("held", "w", None)]);
    assert_eq!(Some(left[1].uid.clone()), held.uid());
    let free = json!({ "metadata": { "finalizers": null } });
    party.maps().patch("held", &Default::default(), &Patch::Merge(free)).await?;
    let report = party.clean(false).await?;
    assert_eq!((report.stays, report.stuck), (vec![], vec![]));
    party.absent("a").await?;
    party.absent("held").await?;
    party.no_ledgers().await
}

/// The hub's status may be older than the cluster, which nobody can ask any more.
#[tokio::test]
async fn what_an_agent_never_told_of_was_on_no_record_of_a_lost_cluster() -> Result<()> {
    let mut party = Party::new("nevertold", Required).await?;
    let begun = Timestamp::now();
    party.work("w", vec![party.map("a"), party.map("b")], json!({})).await?;
    party.stop_agent().await;
    let older = json!({ "status": { "resourceStatus": { "manifests": [] } } });
    party.works().patch_status("w", &Default::default(), &Patch::Merge(older)).await?;
    party.lose().await?;
    let left = party.on_record().await?;
    let listed: Vec<_> = left.iter().map(|one| (&*one.name, &*one.kind, one.believed)).collect();
    assert_eq!(listed, [("a", "ConfigMap", true), ("b", "ConfigMap", true)]);
    assert!(left.iter().all(|one| one.why.ends_with("its agent never told of it")), "{left:?}");
    let heard = party.records().await?[0].spec.agent_last_heard.clone().context("from when?")?.0;
    assert!(heard.duration_since(begun).abs().as_secs() < 600, "{heard}");
    // The cluster knows better, and what is there bears our mark.
    let report = party.clean(false).await?;
    assert_eq!((report.stays, report.stuck), (vec![], vec![]));
    party.absent("a").await?;
    party.absent("b").await?;
    party.no_ledgers().await
}

#[tokio::test]
async fn what_has_left_the_manifests_and_is_gone_is_not_told() -> Result<()> {
    let mut party = Party::new("pruned", Required).await?;
    party.work("w", vec![party.map("a"), party.map("b")], json!({})).await?;
    let less = json!({ "spec": { "workload": { "manifests": [party.map("a")] } } });
    party.works().patch("w", &Default::default(), &Patch::Merge(less)).await?;
    party.absent("b").await?;
    seen(&party.works(), "w", |work: &ManifestWork| {
        let status = work.status.clone().unwrap_or_default();
        status.retiring.is_empty() && status.resource_status.manifests.len() == 1
    })
    .await?;
    party.stop_agent().await;
    Ok(())
}

#[tokio::test]
async fn what_a_work_kept_that_was_deleted_before_the_leave_was_on_no_record() -> Result<()> {
    let mut party = Party::new("earlier", Required).await?;
    let keeps = json!({ "deleteOption": {
        "propagationPolicy": "SelectivelyOrphan",
        "selectivelyOrphans": { "orphaningRules": [
            { "group": "", "resource": "configmaps", "namespace": party.name, "name": "kept" },
        ] },
    } });
    party.work("w", vec![party.map("kept"), party.map("stuck")], keeps).await?;
    let guard = Guard::refusing(&party, "stuck").await?;
    crate::delete(&party.works(), "w").await?;
    seen(&party.works(), "w", |work: &ManifestWork| {
        let conditions = work.status.iter().flat_map(|status| &status.conditions);
        conditions.into_iter().any(|one| one.type_ == "Deleting" && one.message.contains("stuck"))
    })
    .await?;
    party.leave().await?;
    party.says("UnjoinFailed", "True", "orders are open").await?;
    guard.allow();
    party.left().await?;
    party.no_ledgers().await?;
    let kept = party.maps().get("kept").await.context("its work said to keep it")?;
    assert_eq!(kept.owner_references(), []);
    assert!(party.maps().get_opt("stuck").await?.is_none());
    let left = party.on_record().await?;
    let listed: Vec<_> = left.iter().map(|one| (&*one.name, &*one.source, &*one.why)).collect();
    assert_eq!(listed, [("kept", "w", "kept by deleteOption")]);
    assert_eq!(Some(left[0].uid.clone()), kept.uid());
    party.stop_agent().await;
    guard.remove().await
}

/// A work whose finalizers somebody stripped on the hub left its ledger and its objects behind; the
/// leave closed the ledger without a word.
#[tokio::test]
async fn what_a_work_left_that_the_hub_had_lost_was_on_no_record() -> Result<()> {
    for (topic, strategy, why) in [
        ("lostwork", Needless, "kept by removeStrategy Needless"),
        ("lostkept", Required, "kept by deleteOption"),
    ] {
        let mut party = Party::new(topic, strategy).await?;
        let keeps = json!({ "deleteOption": {
            "propagationPolicy": "SelectivelyOrphan",
            "selectivelyOrphans": { "orphaningRules": [
                { "group": "", "resource": "configmaps", "namespace": party.name, "name": "kept" },
            ] },
        } });
        party.work("w", vec![party.map("kept"), party.map("other")], keeps).await?;
        party.stop_agent().await;
        let work = party.works().get("w").await?;
        crate::delete(&party.works(), "w").await?;
        let free = json!({ "metadata": { "finalizers": null } });
        party.works().patch("w", &Default::default(), &Patch::Merge(free)).await?;
        gone(&party.works(), &work).await?;
        party.start_agent();
        party.leave().await?;
        party.left().await?;
        party.no_ledgers().await?;
        let kept = party.maps().get("kept").await.context("it was to stay")?;
        assert_eq!(kept.owner_references(), []);
        let other = party.maps().get_opt("other").await?;
        assert_eq!(other.is_some(), strategy == Needless);
        let left = party.on_record().await?;
        assert_eq!(left.len(), if strategy == Needless { 2 } else { 1 }, "{left:?}");
        assert!(left.iter().all(|one| one.source == "w" && one.why == why), "{left:?}");
        assert_eq!(Some(left[0].uid.clone()), kept.uid());
        party.stop_agent().await;
    }
    Ok(())
}
