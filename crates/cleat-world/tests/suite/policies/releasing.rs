//! Leaving: a controller or a kind that goes lets go of policies and touches nothing of theirs.

use anyhow::Result;
use cleat_agent::policy;
use cleat_api::configurationpolicy::{FINALIZER, UNINSTALLING};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, Patch};
use serde_json::json;

use super::{Site, enforce, musthave, pruning};
use crate::{create, delete, seen};

#[tokio::test]
async fn uninstalling_releases_policies_without_pruning() -> Result<()> {
    let mut site = Site::without_controller("release").await?;
    let deployments: Api<Deployment> = Api::namespaced(site.cluster.clone(), &site.name);
    let labels = json!({ "app": "controller" });
    let deployment = json!({
        "metadata": { "name": "controller" },
        "spec": {
            "replicas": 0, "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "containers": [{ "name": "c", "image": "example.com/c" }] },
            },
        },
    });
    create(&deployments, deployment).await?;
    let own = Some((site.name.clone(), "controller".to_owned()));
    site.run(policy::Config { deployment: own, ..site.config() });
    let spec = pruning(enforce(vec![musthave(site.map("a", "1"))]), "DeleteAll");
    site.policy("p", spec).await?;
    site.stands("p", "Compliant").await?;
    let held = site.policies().get("p").await?.metadata.finalizers.unwrap_or_default();
    assert_eq!(held, [FINALIZER]);
    let leaving =
        json!({ "metadata": { "annotations": { UNINSTALLING: "2026-01-01T00:00:00Z" } } });
    deployments.patch("controller", &Default::default(), &Patch::Merge(leaving)).await?;
    seen(&site.policies(), "p", |policy: &cleat_api::configurationpolicy::ConfigurationPolicy| {
        policy.metadata.finalizers.as_ref().is_none_or(Vec::is_empty)
    })
    .await?;
    site.end("p").await?;
    assert!(site.maps().get_opt("a").await?.is_some());
    Ok(())
}

/// On servers that others use too, their policies would go.
#[tokio::test]
async fn policies_end_with_their_kind_and_begin_again_with_it() -> Result<()> {
    let site = Site::start("kind-goes").await?;
    if !site.world.is_embedded() {
        return Ok(());
    }
    let spec = pruning(enforce(vec![musthave(site.map("a", "1"))]), "DeleteAll");
    site.policy("p", spec.clone()).await?;
    site.stands("p", "Compliant").await?;
    let definitions: Api<CustomResourceDefinition> = Api::all(site.cluster.clone());
    let name = "configurationpolicies.policy.open-cluster-management.io";
    delete(&definitions, name).await?;
    site.absent(&definitions, name).await?;
    assert!(site.maps().get_opt("a").await?.is_some(), "pruned because the kind went");
    cleat_hub::prepare::prepare_cluster(&site.cluster).await?;
    site.policy("p", spec).await?;
    site.stands("p", "Compliant").await?;
    site.end("p").await?;
    assert!(site.maps().get_opt("a").await?.is_none());
    Ok(())
}
