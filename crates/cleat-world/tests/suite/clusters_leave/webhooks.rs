//! Webhooks in the way of a leave: one on the cluster that is down, and one on the hub that refuses what
//! has to be written down first.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use cleat_api::leftoverrecord::LeftoverRecord;
use cleat_api::managedcluster::RemoveStrategy::Required;
use cleat_api::managedcluster::{CLUSTER_NAME_LABEL, ManagedCluster};
use cleat_api::manifestwork::ManifestWork;
use cleat_world::{Webhook, eventually};
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, PostParams};
use serde_json::json;

use super::party::Party;
use crate::clusters::condition;
use crate::{create, delete, parse, seen};

#[tokio::test]
async fn what_a_webhook_that_is_down_keeps_is_named_and_goes_when_it_is_not_asked() -> Result<()> {
    let mut party = Party::new("down", Required).await?;
    party.work("w", vec![party.map("m")], json!({})).await?;
    create(&party.maps(), party.map("probe")).await?;
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(party.cluster.clone());
    create(
        &configurations,
        json!({
            "metadata": { "name": party.name },
            "webhooks": [{
                "name": "down.cleat.example",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "failurePolicy": "Fail",
                "timeoutSeconds": 1,
                // Nobody listens there.
                "clientConfig": { "url": "https://127.0.0.1:1/" },
                "namespaceSelector": {
                    "matchLabels": { "kubernetes.io/metadata.name": party.name },
                },
                "rules": [{
                    "operations": ["DELETE"], "apiGroups": [""], "apiVersions": ["v1"],
                    "resources": ["configmaps"],
                }],
            }],
        }),
    )
    .await?;
    let probe = DeleteParams { dry_run: true, ..DeleteParams::default() };
    eventually("the webhook to be asked", || async {
        Ok(party.maps().delete("probe", &probe).await.is_err().then_some(()))
    })
    .await?;
    party.leave().await?;
    seen(&party.works(), "w", |work: &ManifestWork| {
        let removal = work.status.as_ref().and_then(|status| status.removal.as_ref());
        let blocked = removal.map(|removal| removal.blocked.as_slice()).unwrap_or_default();
        let named = |why: &str| why.contains("down.cleat.example");
        blocked.iter().any(|one| named(&one.why) && one.since.is_some())
    })
    .await
    .context("nobody is told what stands in the way")?;
    party.maps().get("m").await.context("its deletion was not allowed")?;
    party.fleet.clusters().get(&party.name).await.context("it has not left")?;
    delete(&configurations, &party.name).await?;
    party.left().await?;
    party.no_ledgers().await?;
    assert!(party.maps().get_opt("m").await?.is_none());
    party.stop_agent().await;
    Ok(())
}

#[tokio::test]
async fn a_declared_end_lets_go_of_nothing_while_its_record_is_refused() -> Result<()> {
    let mut party = Party::new("unwritten", Required).await?;
    party.work("w", vec![party.map("m")], json!({})).await?;
    party.stop_agent().await;
    let refuses = Arc::new(AtomicBool::new(true));
    let wish = Arc::clone(&refuses);
    let webhook = Webhook::start(move |_| match wish.load(Ordering::SeqCst) {
        true => Err("the archive is closed".to_owned()),
        false => Ok(()),
    })
    .await?;
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(party.fleet.hub.clone());
    create(
        &configurations,
        json!({
            "metadata": { "name": party.name },
            "webhooks": [{
                "name": "archive.cleat.example",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "clientConfig": {
                    "url": webhook.url, "caBundle": BASE64.encode(&webhook.authority),
                },
                "objectSelector": { "matchLabels": { CLUSTER_NAME_LABEL: party.name } },
                "rules": [{
                    "operations": ["CREATE"], "apiGroups": ["cleat.dev"],
                    "apiVersions": ["v1alpha1"], "resources": ["leftoverrecords"],
                }],
            }],
        }),
    )
    .await?;
    let records: Api<LeftoverRecord> = Api::all(party.fleet.hub.clone());
    let probe: LeftoverRecord = parse(json!({
        "apiVersion": "cleat.dev/v1alpha1", "kind": "LeftoverRecord",
        "metadata": { "name": party.name, "labels": { CLUSTER_NAME_LABEL: party.name } },
        "spec": { "cluster": party.name, "clusterUID": "none", "reason": "Kept" },
    }));
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    eventually("the webhook to be asked", || async {
        Ok(records.create(&dry, &probe).await.is_err().then_some(()))
    })
    .await?;
    let declare = json!({ "metadata": { "annotations": {
        "cleat.dev/cluster-destroyed": party.name,
    } } });
    party.fleet.patch(&party.name, declare).await?;
    party.leave().await?;
    seen(&party.fleet.clusters(), &party.name, |one: &ManagedCluster| {
        let said = condition(one, "UnjoinFailed");
        said.is_some_and(|said| {
            said.status != "False" && said.message.contains("the archive is closed")
        })
    })
    .await
    .context("nobody is told what stands in the way")?;
    let work = party.works().get("w").await.context("it is on no record")?;
    assert_eq!(work.metadata.deletion_timestamp, None);
    assert!(!work.finalizers().is_empty());
    refuses.store(false, Ordering::SeqCst);
    party.left().await?;
    assert_eq!(party.on_record().await?.len(), 1);
    delete(&configurations, &party.name).await
}
