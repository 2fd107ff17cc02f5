//! A cluster's life on the hub: renewal, silence, denial.

use std::sync::atomic::Ordering;

use anyhow::{Context as _, Result};
use cleat_api::managedcluster::{CLUSTER_SET_LABEL, LEASE, ManagedCluster, taint};
use cleat_api::manifestwork::ManifestWork;
use cleat_runtime::tasks::Tasks;
use cleat_world::eventually;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{ListParams, Patch};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use crate::clusters::{Fleet, condition, executor};
use crate::{create, refusal, seen};

#[tokio::test]
async fn a_certificate_is_renewed_without_dropping_the_agent() -> Result<()> {
    let fleet = Fleet::new("life").await?;
    let joined = fleet.joined("c").await?;
    let before = joined.credentials.validity().context("it is a certificate")?;
    // Nine of its ten minutes have passed, as far as the agent can tell.
    fleet.ahead.store(540, Ordering::SeqCst);
    fleet.patch(&joined.name, json!({ "metadata": { "annotations": { "look": "now" } } })).await?;
    let cluster = fleet.until(&joined.name, "ClusterCertificateRotated", "True").await?;
    fleet.ahead.store(0, Ordering::SeqCst);
    let said = condition(&cluster, "ClusterCertificateRotated").context("it is told")?;
    assert_eq!(said.reason, "ClientCertificateUpdated");
    let cluster_side = executor(None, Some(fleet.cluster_client()));
    let kept = fleet.keep(&joined.name).load(&cluster_side).await?.context("it is kept")?;
    assert_ne!(kept.certificate, joined.credentials.certificate);
    assert_ne!(kept.key, joined.credentials.key, "a new certificate has a new key");
    assert!(kept.validity().context("it is a certificate")?.1 >= before.1);
    // The same client goes on with it.
    let clusters: Api<ManagedCluster> = Api::all(joined.agent.clone());
    clusters.get(&joined.name).await?;
    joined.tasks.shutdown().await;
    // And a restart finds it.
    let (tasks, agent) = fleet.run(kept).await?;
    Api::<ManagedCluster>::all(agent).get(&joined.name).await?;
    tasks.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn a_silent_cluster_is_unknown_and_tainted_until_it_is_heard_again() -> Result<()> {
    let fleet = Fleet::new("life").await?;
    let joined = fleet.joined("c").await?;
    let name = &joined.name;
    seen(&fleet.clusters(), name, |one: &ManagedCluster| one.spec.taints.is_empty()).await?;
    joined.tasks.shutdown().await;
    let cluster = fleet.until(name, "ManagedClusterConditionAvailable", "Unknown").await?;
    let said = condition(&cluster, "ManagedClusterConditionAvailable").context("it is told")?;
    assert_eq!(said.reason, "ManagedClusterLeaseUpdateStopped");
    let tainted =
        |one: &ManagedCluster| one.spec.taints.iter().any(|taint| taint.key == taint::UNREACHABLE);
    let cluster = seen(&fleet.clusters(), name, tainted).await?;
    assert!(cluster.spec.taints.iter().all(|taint| taint.time_added.is_some()));
    let (tasks, _) = fleet.run(joined.credentials).await?;
    fleet.until(name, "ManagedClusterConditionAvailable", "True").await?;
    seen(&fleet.clusters(), name, |one: &ManagedCluster| one.spec.taints.is_empty()).await?;
    tasks.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn a_hub_that_starts_again_does_not_take_a_wrong_clock_for_death() -> Result<()> {
    let fleet = Fleet::new("life").await?;
    fleet.ahead.store(-3600, Ordering::SeqCst);
    let joined = fleet.joined("c").await?;
    let name = &joined.name;
    let before = seen(&fleet.clusters(), name, |one: &ManagedCluster| {
        let beats = condition(one, "ManagedClusterConditionClockSynced");
        one.spec.taints.is_empty() && beats.is_some_and(|one| one.status == "False")
    })
    .await?;
    fleet.tasks.shutdown().await;
    // What the new hub writes first shows what it makes of the lease.
    fleet.patch(name, json!({ "metadata": { "labels": { CLUSTER_SET_LABEL: null } } })).await?;
    let hub = Tasks::new();
    cleat_hub::clusters::start(fleet.config(), &hub);
    let looked_after = |one: &ManagedCluster| one.labels().contains_key(CLUSTER_SET_LABEL);
    let after = seen(&fleet.clusters(), name, looked_after).await?;
    assert_eq!(after.spec.taints, [], "it lives, whatever its clock says");
    let since = |one: &ManagedCluster| {
        let said = condition(one, "ManagedClusterConditionAvailable");
        said.map(|one| (one.status.clone(), one.last_transition_time.clone()))
    };
    assert_eq!(since(&after), since(&before));
    joined.tasks.shutdown().await;
    hub.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn a_dead_cluster_whose_clock_was_ahead_does_not_live_for_ever() -> Result<()> {
    let fleet = Fleet::new("life").await?;
    let joined = fleet.joined("c").await?;
    joined.tasks.shutdown().await;
    fleet.tasks.shutdown().await;
    let leases: Api<Lease> = Api::namespaced(fleet.hub.clone(), &joined.name);
    let ahead = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(1);
    let patch = json!({ "spec": { "renewTime": format!("{ahead:.6}") } });
    leases.patch(LEASE, &Default::default(), &Patch::Merge(patch)).await?;
    let hub = Tasks::new();
    cleat_hub::clusters::start(fleet.config(), &hub);
    fleet.until(&joined.name, "ManagedClusterConditionAvailable", "Unknown").await?;
    hub.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn a_leaving_work_says_since_when_its_cluster_is_silent() -> Result<()> {
    let fleet = Fleet::new("life").await?;
    let joined = fleet.joined("c").await?;
    let name = &joined.name;
    let controllers = cleat_runtime::tasks::Tasks::new();
    let namespace = Some(name.clone());
    let config =
        cleat_hub::hub::Config { namespace, ..cleat_hub::hub::Config::new(fleet.hub.clone()) };
    controllers.spawn("hub", cleat_hub::hub::run(config, controllers.stop()));
    let works: Api<ManifestWork> = Api::namespaced(fleet.hub.clone(), name);
    let work = json!({
        "metadata": { "name": "w", "finalizers": [cleat_core::work::WORK_FINALIZER] },
        "spec": { "workload": { "manifests": [] } },
    });
    create(&works, work).await?;
    joined.tasks.shutdown().await;
    crate::delete(&works, "w").await?;
    let cluster = fleet.until(name, "ManagedClusterConditionAvailable", "Unknown").await?;
    let unheard = condition(&cluster, "ManagedClusterConditionAvailable").context("it is told")?;
    let since = format!("cluster {name} is unreachable since {}", unheard.last_transition_time.0);
    let told = |work: &ManifestWork| {
        let deleting = cleat_world::fleet::condition_of(work, "Deleting");
        deleting.is_some_and(|deleting| deleting.message.contains(&since))
    };
    seen(&works, "w", told).await?;
    let patch = kube::api::Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    works.patch("w", &Default::default(), &patch).await?;
    controllers.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn a_denied_cluster_loses_its_rights_at_once_even_with_works() -> Result<()> {
    let fleet = Fleet::new("life").await?;
    let joined = fleet.joined("c").await?;
    let name = &joined.name;
    let works: Api<ManifestWork> = Api::namespaced(fleet.hub.clone(), name);
    let manifest = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "x" } });
    let work = json!({
        "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": { "name": "w" }, "spec": { "workload": { "manifests": [manifest] } },
    });
    create(&works, work).await?;
    fleet.set_accepted(name, false).await?;
    let cluster = fleet.until(name, "HubAcceptedManagedCluster", "False").await?;
    let said = condition(&cluster, "HubAcceptedManagedCluster").context("it is told")?;
    assert_eq!(said.reason, "HubClusterAdminDenied");
    let agents: Api<ManifestWork> = Api::namespaced(joined.agent.clone(), name);
    eventually("the rights to be gone", || async {
        Ok(agents.list(&ListParams::default()).await.is_err().then_some(()))
    })
    .await?;
    // It may still learn why.
    let clusters: Api<ManagedCluster> = Api::all(joined.agent.clone());
    clusters.get(name).await?;
    let requests: Api<k8s_openapi::api::certificates::v1::CertificateSigningRequest> =
        Api::all(joined.agent.clone());
    let object = json!({
        "metadata": { "generateName": "x-" },
        "spec": { "request": "", "signerName": "kubernetes.io/kube-apiserver-client" },
    });
    let answer = requests.create(&Default::default(), &crate::parse(object)).await;
    assert_eq!(refusal(answer).code, 403);
    works.get("w").await.context("works stay")?;

    fleet.set_accepted(name, true).await?;
    fleet.until(name, "HubAcceptedManagedCluster", "True").await?;
    eventually("the rights to be back", || async {
        Ok(agents.list(&ListParams::default()).await.ok())
    })
    .await?;
    Ok(())
}
