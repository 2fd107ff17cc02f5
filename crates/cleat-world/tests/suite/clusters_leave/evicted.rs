//! Agents that let go of what their hub does not have any more, after a while; and when they do not.

use anyhow::{Context as _, Result};
use cleat_api::managedcluster::RemoveStrategy::{self, Needless, Required};
use cleat_core::registration::identity::group;
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::{Event, Secret};
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::ResourceExt as _;
use kube::api::{Api, Patch};
use serde_json::json;

use super::party::Party;
use super::unreachable::unrecognized;
use crate::{create, delete, gone, seen};

/// A cluster that was away while its hub forgot it, and whose agent is about to start again. What it may
/// read there it may still read.
async fn forgotten(topic: &str, strategy: RemoveStrategy) -> Result<Party> {
    let mut party = Party::with_own_rights(topic, strategy).await?;
    party.work("w", vec![party.map("m")], json!({})).await?;
    let secrets: Api<Secret> =
        Api::namespaced(party.cluster.clone(), &format!("agent-{}", party.name));
    seen(&secrets, "hub-kubeconfig-secret", |secret: &Secret| {
        let noted = secret.annotations().get("cleat.dev/remove-strategy");
        noted.map(String::as_str) == Some(strategy.as_str())
    })
    .await
    .context("it is not written down what was declared")?;
    party.stop_agent().await;
    party.fleet.tasks.shutdown().await;
    create(
        &Api::<ClusterRoleBinding>::all(party.fleet.hub.clone()),
        json!({
            "metadata": { "name": format!("rest-{}", party.name) },
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                "name": "cluster-admin",
            },
            "subjects": [{
                "apiGroup": "rbac.authorization.k8s.io", "kind": "Group",
                "name": group(&party.name),
            }],
        }),
    )
    .await?;
    let free = json!({ "metadata": { "finalizers": null } });
    party.fleet.patch(&party.name, free.clone()).await?;
    party.leave().await?;
    gone(&party.fleet.clusters(), &party.joined).await?;
    let work = party.works().get("w").await?;
    party.works().patch("w", &Default::default(), &Patch::Merge(free)).await?;
    delete(&party.works(), "w").await?;
    gone(&party.works(), &work).await?;
    party.grace = Some(SignedDuration::ZERO);
    Ok(party)
}

/// Somebody is told, long after it would have gone, and it is still there.
async fn is_spared(party: &Party) -> Result<()> {
    unrecognized(party).await?;
    let events: Api<Event> =
        Api::namespaced(party.cluster.clone(), &format!("agent-{}", party.name));
    let alarm = format!("cleat-agent.{}.unknown-to-hub", party.name);
    seen(&events, &alarm, |event: &Event| {
        event.message.as_deref().is_some_and(|said| said.contains(&*party.name))
    })
    .await?;
    let map = party.maps().get("m").await.context("nobody said to remove it")?;
    assert_eq!(map.metadata.deletion_timestamp, None);
    Ok(())
}

#[tokio::test]
async fn what_was_to_be_removed_goes_when_the_hub_has_forgotten_it_for_long() -> Result<()> {
    let mut party = forgotten("evicts", Required).await?;
    party.start_agent();
    unrecognized(&party).await?;
    party.absent("m").await?;
    party.stop_agent().await;
    Ok(())
}

#[tokio::test]
async fn a_cluster_that_was_to_keep_everything_was_emptied_when_it_came_back() -> Result<()> {
    let mut party = forgotten("spares", Needless).await?;
    party.start_agent();
    is_spared(&party).await?;
    party.stop_agent().await;
    Ok(())
}

/// As under a hub that is not ours, or at the first start of an agent that notes it.
#[tokio::test]
async fn nothing_goes_where_nobody_knows_what_was_to_become_of_it() -> Result<()> {
    let mut party = forgotten("unsure", Required).await?;
    let secrets: Api<Secret> =
        Api::namespaced(party.cluster.clone(), &format!("agent-{}", party.name));
    let unknown = json!({ "metadata": { "annotations": { "cleat.dev/remove-strategy": null } } });
    secrets.patch("hub-kubeconfig-secret", &Default::default(), &Patch::Merge(unknown)).await?;
    party.start_agent();
    is_spared(&party).await?;
    party.stop_agent().await;
    Ok(())
}
