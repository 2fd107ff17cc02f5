//! What looks as if it had left a policy, and has not: nothing of it is deleted.

use anyhow::Result;
use cleat_agent::policy::field_manager;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::{Site, enforce, is_created, musthave, mustnothave, pruning, related};
use crate::{create, delete, seen};

/// Two policies wanted one object at the same time, and one of them made it.
#[tokio::test]
async fn an_object_that_another_policy_made_stays_when_a_policy_goes() -> Result<()> {
    let mut site = Site::without_controller("prune-rival").await?;
    let spec = || pruning(enforce(vec![musthave(site.map("shared", "1"))]), "DeleteIfCreated");
    site.policy("late", spec()).await?;
    let first = site.policy("first", spec()).await?;
    let entry = json!({
        "object": {
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": "shared", "namespace": site.name },
        },
        "compliant": "NonCompliant", "reason": "Resource not found but should exist",
        "properties": { "createdByPolicy": true },
    });
    let status = json!({ "status": { "compliant": "NonCompliant", "relatedObjects": [entry] } });
    for name in ["late", "first"] {
        let status = Patch::Merge(status.clone());
        site.policies().patch_status(name, &Default::default(), &status).await?;
    }
    let uid = first.metadata.uid.unwrap_or_default();
    let maker = PostParams { field_manager: Some(field_manager(&uid)), ..PostParams::default() };
    site.maps().create(&maker, &crate::parse(site.map("shared", "1"))).await?;
    site.run(site.config());
    let late = site.stands("late", "Compliant").await?;
    let first = site.stands("first", "Compliant").await?;
    assert_eq!(
        (is_created(&late, "shared"), is_created(&first, "shared")),
        (Some(false), Some(true))
    );
    site.end("late").await?;
    assert!(site.maps().get_opt("shared").await?.is_some(), "it was the other one's");
    site.end("first").await?;
    assert!(site.maps().get_opt("shared").await?.is_none());
    Ok(())
}

/// The managers of an object say which policy wrote it.
#[tokio::test]
async fn two_policies_about_one_object_do_not_both_believe_they_made_it() -> Result<()> {
    let site = Site::start("prune-both").await?;
    let names = ["a", "b", "c", "d"];
    for name in names {
        let spec = pruning(enforce(vec![musthave(site.map("shared", "1"))]), "DeleteIfCreated");
        site.policy(name, spec).await?;
    }
    let mut makers = 0;
    for name in names {
        let policy = site.settles(name).await?;
        makers += usize::from(is_created(&policy, "shared") == Some(true));
    }
    assert_eq!(makers, 1);
    Ok(())
}

#[tokio::test]
async fn what_stops_matching_an_unnamed_template_is_not_deleted() -> Result<()> {
    let site = Site::start("prune-unnamed").await?;
    create(&site.maps(), json!({ "metadata": { "name": "a" }, "data": { "key": "1" } })).await?;
    let mut unnamed = site.map("", "1");
    unnamed["metadata"] = json!({ "namespace": site.name });
    site.policy("p", pruning(enforce(vec![musthave(unnamed)]), "DeleteAll")).await?;
    let found = site.stands("p", "Compliant").await?;
    assert!(related(&found, "a").is_some());
    let change = Patch::Merge(json!({ "data": { "key": "2" } }));
    site.maps().patch("a", &Default::default(), &change).await?;
    site.stands("p", "NonCompliant").await?;
    site.passes("other").await?;
    assert!(site.maps().get_opt("a").await?.is_some());
    Ok(())
}

#[tokio::test]
async fn of_selected_objects_only_those_that_must_not_be_there_go() -> Result<()> {
    let site = Site::start("prune-selected").await?;
    let map = |name: &str, value: &str| {
        json!({
            "metadata": { "name": name, "labels": { "team": "a" } }, "data": { "key": value },
        })
    };
    create(&site.maps(), map("good", "1")).await?;
    create(&site.maps(), map("fine", "1")).await?;
    let mut template = mustnothave(json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "namespace": site.name }, "data": { "key": "bad" },
    }));
    template["objectSelector"] = json!({ "matchLabels": { "team": "a" } });
    site.policy("p", pruning(enforce(vec![template]), "DeleteAll")).await?;
    let all = site.stands("p", "Compliant").await?;
    assert!(related(&all, "good").is_some() && related(&all, "fine").is_some(), "as shipped");
    create(&site.maps(), map("worse", "bad")).await?;
    site.absent(&site.maps(), "worse").await?;
    site.passes("other").await?;
    for name in ["good", "fine"] {
        seen(&site.maps(), name, |map: &ConfigMap| map.metadata.deletion_timestamp.is_none())
            .await?;
    }
    // Nor do they go with the policy, which never had them.
    site.end("p").await?;
    assert!(site.maps().get_opt("good").await?.is_some());
    delete(&site.maps(), "good").await
}

#[tokio::test]
async fn an_object_that_lost_the_label_it_was_chosen_by_was_deleted() -> Result<()> {
    let site = Site::start("prune-unlabelled").await?;
    let labelled = |name: &str| json!({ "metadata": { "name": name, "labels": { "team": "a" } } });
    let theirs: ConfigMap = create(&site.maps(), labelled("theirs")).await?;
    create(&site.maps(), labelled("stays")).await?;
    let mut template = musthave(json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "namespace": site.name }, "data": { "key": "value" },
    }));
    template["objectSelector"] = json!({ "matchLabels": { "team": "a" } });
    site.policy("p", pruning(enforce(vec![template]), "DeleteAll")).await?;
    let all = site.stands("p", "Compliant").await?;
    assert!(related(&all, "theirs").is_some());
    for name in ["theirs", "stays"] {
        let unlabel = Patch::Merge(json!({ "metadata": { "labels": { "team": null } } }));
        site.maps().patch(name, &PatchParams::default(), &unlabel).await?;
        // Also when nothing is left that the template chooses.
        seen(&site.policies(), "p", |policy| related(policy, name).is_none()).await?;
        site.passes(&format!("after-{name}")).await?;
        let map = site.maps().get(name).await?;
        assert_eq!(map.metadata.deletion_timestamp, None, "{name}");
    }
    assert_eq!(site.maps().get("theirs").await?.metadata.uid, theirs.metadata.uid);
    site.end("p").await?;
    for name in ["theirs", "stays"] {
        delete(&site.maps(), name).await?;
    }
    Ok(())
}

/// What cannot be changed is made anew, but only if the server would take it.
#[tokio::test]
async fn an_object_is_recreated_only_if_the_new_one_would_be_accepted() -> Result<()> {
    let site = Site::start("recreate").await?;
    let deployments: Api<Deployment> = Api::namespaced(site.cluster.clone(), &site.name);
    let deployment = |selects: &str, label: &str| {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": { "name": "d", "namespace": site.name },
            "spec": {
                "replicas": 0, "selector": { "matchLabels": { "app": selects } },
                "template": {
                    "metadata": { "labels": { "app": label } },
                    "spec": { "containers": [{ "name": "c", "image": "example.com/c" }] },
                },
            },
        })
    };
    let first: Deployment = create(&deployments, deployment("a", "a")).await?;
    let recreate = |definition: Value| {
        let mut template = musthave(definition);
        template["recreateOption"] = json!("IfRequired");
        enforce(vec![template])
    };
    site.policy("p", recreate(deployment("b", "b"))).await?;
    site.stands("p", "Compliant").await?;
    let second = deployments.get("d").await?;
    assert_ne!(second.metadata.uid, first.metadata.uid);
    // Nothing selects what it makes: a server never takes it.
    site.patch("p", json!({ "spec": recreate(deployment("c", "b")) })).await?;
    site.says("p", "cannot be recreated").await?;
    let kept = deployments.get("d").await?;
    assert_eq!((kept.metadata.uid, kept.metadata.deletion_timestamp), (second.metadata.uid, None));
    Ok(())
}
