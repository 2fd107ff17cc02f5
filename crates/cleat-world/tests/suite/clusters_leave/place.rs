//! The cluster's namespace on the hub: whose it is, and when it stays.

use anyhow::{Context as _, Result};
use cleat_api::managedcluster::CLUSTER_NAME_LABEL;
use cleat_api::managedcluster::RemoveStrategy::Required;
use cleat_core::registration::access::Part;
use cleat_core::registration::agent::apply;
use cleat_core::registration::place::KEPT;
use cleat_core::write::Write;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::api::rbac::v1::{ClusterRole, RoleBinding};
use kube::ResourceExt as _;
use kube::api::{Api, ListParams};
use serde_json::json;

use super::party::Party;
use crate::clusters::{Fleet, condition};
use crate::{create, delete, gone, make_namespace};

#[tokio::test]
async fn a_namespace_that_was_there_before_is_neither_taken_over_nor_deleted() -> Result<()> {
    let fleet = Fleet::new("prod").await?;
    let name = fleet.world.unique("prod");
    let theirs = make_namespace(&fleet.world.hub, &name).await?;
    let maps: Api<ConfigMap> = Api::namespaced(fleet.hub.clone(), &name);
    create(&maps, json!({ "metadata": { "name": "theirs" } })).await?;
    let Write::Create(mut object) = apply(&fleet.application(&name)).write else { panic!() };
    object["spec"]["hubAcceptsClient"] = json!(true);
    create(&fleet.clusters(), object).await?;
    let cluster = fleet.until(&name, "HubAcceptedManagedCluster", "False").await?;
    let said = condition(&cluster, "HubAcceptedManagedCluster").context("it is told")?;
    assert_eq!(said.reason, "Refused");
    assert!(said.message.contains(&format!("kubectl label namespace {name}")), "{}", said.message);
    let namespaces: Api<Namespace> = Api::all(fleet.hub.clone());
    let live = namespaces.get(&name).await?;
    assert!(!live.labels().contains_key(CLUSTER_NAME_LABEL), "it is not the cluster's");
    let bindings: Api<RoleBinding> = Api::namespaced(fleet.hub.clone(), &name);
    assert_eq!(bindings.list(&ListParams::default()).await?.items.len(), 0, "nobody is let in");
    delete(&fleet.clusters(), &name).await?;
    gone(&fleet.clusters(), &cluster).await?;
    let live = namespaces.get(&name).await?;
    assert_eq!((live.uid(), live.metadata.deletion_timestamp), (theirs.uid(), None));
    maps.get("theirs").await.context("it is none of the fleet's business")?;
    Ok(())
}

#[tokio::test]
async fn a_namespace_with_somebodys_things_stays_when_its_cluster_leaves() -> Result<()> {
    let mut party = Party::new("stays", Required).await?;
    party.work("w", vec![party.map("m")], json!({})).await?;
    let hub = party.fleet.hub.clone();
    let maps: Api<ConfigMap> = Api::namespaced(hub.clone(), &party.name);
    create(&maps, json!({ "metadata": { "name": "theirs" } })).await?;
    party.leave().await?;
    gone(&party.fleet.clusters(), &party.joined).await?;
    maps.get("theirs").await.context("it is not ours")?;
    let namespaces: Api<Namespace> = Api::all(hub.clone());
    let live = namespaces.get(&party.name).await?;
    assert_eq!(live.metadata.deletion_timestamp, None);
    assert!(!live.labels().contains_key(CLUSTER_NAME_LABEL), "it is nobody's any more");
    let why = live.annotations().get(KEPT).context("it says why it is there")?;
    assert!(why.ends_with(&format!("configmaps {}/theirs", party.name)), "{why}");
    let bindings: Api<RoleBinding> = Api::namespaced(hub.clone(), &party.name);
    assert_eq!(bindings.list(&ListParams::default()).await?.items.len(), 0, "nobody is let in");
    let roles: Api<ClusterRole> = Api::all(hub);
    assert!(roles.get_opt(&Part::Role.target(&party.name).id.name).await?.is_none());
    assert!(party.maps().get_opt("m").await?.is_none());
    party.stop_agent().await;
    Ok(())
}

#[tokio::test]
async fn a_cluster_waited_for_what_waited_for_it() -> Result<()> {
    let mut party = Party::new("belongs", Required).await?;
    let maps: Api<ConfigMap> = Api::namespaced(party.fleet.hub.clone(), &party.name);
    let notes = json!({ "metadata": { "name": "notes", "ownerReferences": [{
        "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "name": party.name, "uid": party.joined.metadata.uid,
    }] } });
    create(&maps, notes).await?;
    party.leave().await?;
    party.left().await?;
    party.stop_agent().await;
    Ok(())
}
