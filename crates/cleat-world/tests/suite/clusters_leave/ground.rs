//! The namespace that an agent made for policies on its cluster, and the key in it.

use anyhow::{Context as _, Result};
use cleat_api::leftoverrecord::LeftObject;
use cleat_api::managedcluster::RemoveStrategy::{self, Needless, Required};
use cleat_api::policy::Policy;
use cleat_api::policy::name::ENCRYPTION_KEY_SECRET;
use cleat_core::leave::ground::MADE_FOR;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::ResourceExt as _;
use kube::api::Api;
use serde_json::json;

use super::party::Party;
use crate::{create, delete, gone, make_namespace, seen};

/// A cluster without a namespace of its name, and what a policy made elsewhere on it.
struct Ground {
    party: Party,
    made: Api<ConfigMap>,
    namespaces: Api<Namespace>,
}

impl Ground {
    async fn new(topic: &str, strategy: RemoveStrategy) -> Result<Self> {
        let party = Party::new(topic, strategy).await?;
        let elsewhere = format!("{}-made", party.name);
        make_namespace(&party.fleet.world.clusters[0], &elsewhere).await?;
        let namespaces: Api<Namespace> = Api::all(party.cluster.clone());
        let given = namespaces.get(&party.name).await?;
        delete(&namespaces, &party.name).await?;
        gone(&namespaces, &given).await?;
        let replicas: Api<Policy> = Api::namespaced(party.fleet.hub.clone(), &party.name);
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": "m", "namespace": elsewhere }, "data": { "by": "policy" },
        });
        create(
            &replicas,
            json!({
                "metadata": { "name": "root.p", "labels": {
                    "policy.open-cluster-management.io/root-policy": "root.p",
                    "policy.open-cluster-management.io/cluster-name": party.name,
                    "policy.open-cluster-management.io/cluster-namespace": party.name,
                } },
                "spec": { "disabled": false, "remediationAction": "enforce", "policy-templates": [
                    { "objectDefinition": {
                        "apiVersion": "policy.open-cluster-management.io/v1",
                        "kind": "ConfigurationPolicy", "metadata": { "name": "m" },
                        "spec": {
                            "remediationAction": "enforce",
                            "pruneObjectBehavior": "DeleteIfCreated",
                            "object-templates": [
                                { "complianceType": "musthave", "objectDefinition": map },
                            ],
                        },
                    } },
                ] },
            }),
        )
        .await?;
        seen(&replicas, "root.p", |policy: &Policy| {
            let status = policy.status.as_ref();
            status.is_some_and(|status| status.compliant.as_deref() == Some("Compliant"))
        })
        .await
        .context("the policy was not enforced")?;
        let made = Api::namespaced(party.cluster.clone(), &elsewhere);
        Ok(Self { party, made, namespaces })
    }
}

#[tokio::test]
async fn the_namespace_that_was_made_for_policies_stayed_behind() -> Result<()> {
    let Ground { mut party, made, namespaces } = Ground::new("ground", Required).await?;
    let namespace = namespaces.get(&party.name).await?;
    assert!(namespace.labels().contains_key(MADE_FOR), "it is not known as ours");
    // The key comes from the hub, and goes with the cluster.
    let hubs: Api<Secret> = Api::namespaced(party.fleet.hub.clone(), &party.name);
    let key = json!({ "metadata": { "name": ENCRYPTION_KEY_SECRET }, "data": { "key": "a2V5" } });
    create(&hubs, key).await?;
    let keys: Api<Secret> = Api::namespaced(party.cluster.clone(), &party.name);
    seen(&keys, ENCRYPTION_KEY_SECRET, |_: &Secret| true).await.context("it was not copied")?;
    party.leave().await?;
    party.left().await?;
    assert!(namespaces.get_opt(&party.name).await?.is_none(), "the namespace is left");
    assert!(made.get_opt("m").await?.is_none(), "it was to be pruned");
    assert_eq!(party.on_record().await?, []);
    party.stop_agent().await;
    Ok(())
}

#[tokio::test]
async fn a_namespace_for_policies_with_somebodys_things_in_it_stays_and_is_listed() -> Result<()> {
    let Ground { mut party, namespaces, .. } = Ground::new("shared", Required).await?;
    create(&party.maps(), json!({ "metadata": { "name": "theirs" } })).await?;
    party.leave().await?;
    party.left().await?;
    party.maps().get("theirs").await.context("it is not ours")?;
    let namespace = namespaces.get(&party.name).await?;
    assert_eq!(namespace.metadata.deletion_timestamp, None);
    assert!(!namespace.labels().contains_key(MADE_FOR), "our mark is left");
    let left = party.on_record().await?;
    let listed: Vec<_> = left.iter().map(|one| (&*one.resource, &*one.name, &*one.why)).collect();
    let why = format!("it holds what is not ours: configmaps {}/theirs", party.name);
    assert_eq!(listed, [("namespaces", &*party.name, &*why)]);
    assert_eq!(Some(left[0].uid.clone()), namespace.uid());
    party.stop_agent().await;
    Ok(())
}

#[tokio::test]
async fn a_namespace_for_policies_stays_and_is_listed_if_nothing_is_to_be_removed() -> Result<()> {
    let Ground { mut party, made, namespaces } = Ground::new("unneeded", Needless).await?;
    party.leave().await?;
    party.left().await?;
    made.get("m").await.context("nothing is deleted")?;
    let namespace = namespaces.get(&party.name).await?;
    assert!(!namespace.labels().contains_key(MADE_FOR), "our mark is left");
    let left = party.on_record().await?;
    let kept = "kept by removeStrategy Needless";
    let listed: Vec<_> = left.iter().map(|one| (&*one.resource, &*one.why)).collect();
    assert_eq!(listed, [("configmaps", kept), ("namespaces", kept)]);
    party.stop_agent().await;
    Ok(())
}

#[tokio::test]
async fn the_namespace_made_for_policies_was_on_no_record_of_a_lost_cluster() -> Result<()> {
    let Ground { mut party, made, namespaces } = Ground::new("lostground", Required).await?;
    party.lose().await?;
    let left = party.on_record().await?;
    let listed = |one: &LeftObject| one.resource == "namespaces" && one.name == party.name;
    assert!(left.iter().any(listed), "{left:?}");
    let report = party.clean(false).await?;
    assert_eq!((report.stays, report.stuck), (vec![], vec![]));
    assert!(made.get_opt("m").await?.is_none(), "it was to be pruned");
    assert!(namespaces.get_opt(&party.name).await?.is_none(), "the namespace is left");
    Ok(())
}
