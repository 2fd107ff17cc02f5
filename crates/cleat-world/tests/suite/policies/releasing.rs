//! Leaving: a controller or a kind that goes lets go of policies and touches nothing of theirs.

use std::time::Duration;

use anyhow::Result;
use cleat_agent::policy;
use cleat_api::configurationpolicy::{ConfigurationPolicy, FINALIZER, UNINSTALLING};
use cleat_api::policy::Policy;
use cleat_cli::uninstall;
use cleat_world::eventually;
use k8s_openapi::api::apps::v1::Deployment;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, Patch};
use serde_json::json;

use super::{Site, enforce, musthave, pruning};
use crate::undefine::undefine;
use crate::{create, seen};

#[tokio::test]
async fn uninstalling_releases_policies_without_pruning() -> Result<()> {
    let site = deployed("release").await?;
    let leaving =
        json!({ "metadata": { "annotations": { UNINSTALLING: "2026-01-01T00:00:00Z" } } });
    let deployments: Api<Deployment> = Api::namespaced(site.cluster.clone(), &site.name);
    deployments.patch("controller", &Default::default(), &Patch::Merge(leaving)).await?;
    seen(&site.policies(), "p", |policy: &ConfigurationPolicy| policy.finalizers().is_empty())
        .await?;
    site.end("p").await?;
    assert!(site.maps().get_opt("a").await?.is_some());
    Ok(())
}

#[tokio::test]
async fn a_controller_is_told_to_let_go_and_one_that_is_away_is_named() -> Result<()> {
    let mut site = deployed("uninstall").await?;
    let wish = |timeout: Duration| uninstall::Wish {
        deployment: (site.name.clone(), "controller".to_owned()),
        namespaces: vec![site.name.clone()],
        timeout,
    };
    // What cannot be resolved is let go of all the same.
    let map = musthave(site.map("b", "{{hub fromConfigMap \"\" \"x\" \"y\" hub}}"));
    site.policy("unresolved", pruning(enforce(vec![map]), "DeleteAll")).await?;
    site.stands("unresolved", "NonCompliant").await?;
    let (patient, hasty) = (wish(Duration::from_secs(60)), wish(Duration::ZERO));
    site.stop().await;
    let error = uninstall::prepare(site.cluster.clone(), &hasty).await.unwrap_err();
    let named = format!("2 policies are still held, {}/p among them", site.name);
    assert!(error.to_string().contains(&named), "{error:#}");
    site.run(site.deployed());
    uninstall::prepare(site.cluster.clone(), &patient).await?;
    let policy = site.policies().get("p").await?;
    assert!(policy.finalizers().is_empty() && policy.metadata.deletion_timestamp.is_none());
    site.end("p").await?;
    assert!(site.maps().get_opt("a").await?.is_some());
    let missing =
        uninstall::Wish { deployment: (site.name.clone(), "none".to_owned()), ..patient.clone() };
    assert!(uninstall::prepare(site.cluster.clone(), &missing).await.is_err());
    Ok(())
}

impl Site {
    fn deployed(&self) -> policy::Config {
        let own = Some((self.name.clone(), "controller".to_owned()));
        policy::Config { deployment: own, ..self.config() }
    }
}

/// A controller that knows its Deployment, and a policy that would prune.
async fn deployed(topic: &str) -> Result<Site> {
    let mut site = Site::without_controller(topic).await?;
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
    site.run(site.deployed());
    let spec = pruning(enforce(vec![musthave(site.map("a", "1"))]), "DeleteAll");
    site.policy("p", spec).await?;
    site.stands("p", "Compliant").await?;
    assert_eq!(site.policies().get("p").await?.finalizers(), [FINALIZER]);
    Ok(site)
}

#[tokio::test]
async fn policies_end_with_their_kind_and_begin_again_with_it() -> Result<()> {
    let site = Site::alone("kind-goes").await?;
    let spec = pruning(enforce(vec![musthave(site.map("a", "1"))]), "DeleteAll");
    site.policy("p", spec.clone()).await?;
    site.stands("p", "Compliant").await?;
    let name = "configurationpolicies.policy.open-cluster-management.io";
    undefine(&site.cluster, name, &[&site.name]).await?;
    assert!(site.maps().get_opt("a").await?.is_some(), "pruned because the kind went");
    cleat_hub::prepare::prepare_cluster(&site.cluster).await?;
    site.policy("p", spec).await?;
    site.stands("p", "Compliant").await?;
    site.end("p").await?;
    assert!(site.maps().get_opt("a").await?.is_none());
    Ok(())
}

/// What collects templates without an owner may come after the kind of the owner is back.
#[tokio::test]
async fn a_template_whose_owner_went_with_its_kind_prunes_nothing_when_the_kind_is_back()
-> Result<()> {
    let site = Site::alone("kind-returns").await?;
    let owners: Api<Policy> = Api::namespaced(site.cluster.clone(), &site.name);
    let owner = json!({
        "metadata": { "name": "root.p" }, "spec": { "disabled": false, "policy-templates": [] },
    });
    let owner = create(&owners, owner).await?;
    let reference = json!({
        "apiVersion": "policy.open-cluster-management.io/v1", "kind": "Policy",
        "name": "root.p", "uid": owner.uid(),
    });
    let spec = pruning(enforce(vec![musthave(site.map("a", "1"))]), "DeleteAll");
    let metadata = json!({ "name": "p", "ownerReferences": [reference] });
    let made = create(&site.policies(), json!({ "metadata": metadata, "spec": spec })).await?;
    site.stands("p", "Compliant").await?;
    let name = "policies.policy.open-cluster-management.io";
    undefine(&site.cluster, name, &[&site.name]).await?;
    // Times are whole seconds: what is made anew must be younger.
    let made_at = made.creation_timestamp().unwrap().0.as_second();
    eventually("another second", || async {
        Ok((jiff::Timestamp::now().as_second() > made_at).then_some(()))
    })
    .await?;
    cleat_hub::prepare::prepare_cluster(&site.cluster).await?;
    // As the garbage collector does, if it has not yet.
    drop(site.policies().delete("p", &DeleteParams::default()).await);
    site.absent(&site.policies(), "p").await?;
    assert!(site.maps().get_opt("a").await?.is_some(), "pruned because the kind went");
    Ok(())
}
