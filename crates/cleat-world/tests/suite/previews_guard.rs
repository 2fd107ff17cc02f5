//! A hub that refuses large deletions unless somebody looked first: asked by real and embedded servers.

use std::fmt::Debug;
use std::sync::Arc;

use anyhow::Result;
use cleat_api::admission::Rules;
use cleat_api::manifestwork::ManifestWork;
use cleat_api::manifestworkreplicaset::{ManifestWorkReplicaSet, SET_LABEL, key};
use cleat_api::removalpreview::{APPROVED_PLAN, PLAN_LABEL, RemovalPreview};
use cleat_core::preview::guard::Threshold;
use cleat_hub::outlook;
use cleat_hub::prepare::{install_webhooks, prepare_hub};
use cleat_webhook::{Guard, Judge, Reach, guard_configuration};
use cleat_world::eventually;
use cleat_world::webhook::serve;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use kube::core::Status;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{Place, create, delete, parse, refusal};

const PLAN: &str = "0123456789abcdef";

/// A place where more than two objects, or a namespace, go only with an approved plan.
async fn guarded() -> Result<Place> {
    let place = Place::new("preview-guard").await?;
    prepare_hub(&place.client).await?;
    let above = Threshold { objects: 2, clusters: 10, namespaces: 0 };
    let client = place.client.clone();
    let losing = move |namespace: String, name: String, change| {
        let client = client.clone();
        let told = async move {
            let losing = outlook::losing(&client, &namespace, &name, &change).await;
            losing.map_err(|error| error.to_string())
        };
        Box::pin(told) as _
    };
    let guard = Guard { above, losing: Arc::new(losing) };
    let judge = Judge::new(place.client.clone(), Rules::default()).guarded(guard);
    let served = serve(judge.router()).await?;
    let mut here = guard_configuration(Some(&served.authority), &Reach::Url(served.url));
    here.metadata.name = Some(place.namespace.clone());
    let only_here = json!({ "matchLabels": { "kubernetes.io/metadata.name": place.namespace } });
    // Clusters are in no namespace, so those of other tests would be judged here as well.
    let namespaced = |name: &str| !name.contains("managedclusters");
    here.webhooks.iter_mut().for_each(|all| all.retain(|one| namespaced(&one.name)));
    for webhook in here.webhooks.iter_mut().flatten() {
        webhook.namespace_selector = Some(parse(only_here.clone()));
    }
    install_webhooks(&place.client, &here).await?;
    Ok(place)
}

fn workload(count: usize) -> Value {
    let manifest = |number: usize| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": format!("m{number}"), "namespace": "default" },
        })
    };
    let manifests: Vec<Value> = (0..count).map(manifest).collect();
    json!({ "workload": { "manifests": manifests } })
}

async fn work(place: &Place, name: &str, count: usize, metadata: Value) -> Result<()> {
    let mut metadata = metadata;
    metadata["name"] = name.into();
    let work = json!({ "metadata": metadata, "spec": workload(count) });
    create::<ManifestWork>(&place.api(), work).await?;
    Ok(())
}

/// A question about a work that bears the plan, and was answered.
async fn answered(place: &Place, name: &str, work: &str) -> Result<()> {
    let questions: Api<RemovalPreview> = place.api();
    let metadata = json!({ "name": name, "labels": { PLAN_LABEL: PLAN } });
    create(&questions, json!({ "metadata": metadata, "spec": { "work": work } })).await?;
    answer(&questions, name).await
}

async fn answer(questions: &Api<RemovalPreview>, name: &str) -> Result<()> {
    let answer = json!({ "status": { "answeredAt": "2026-01-01T00:00:00Z" } });
    questions.patch_status(name, &PatchParams::default(), &Patch::Merge(answer)).await?;
    Ok(())
}

/// What whoever deletes is told, once the webhook is asked.
async fn refused<K>(all: &Api<K>, name: &str) -> Result<Status>
where
    K: Clone + DeserializeOwned + Debug,
{
    let rehearsed = DeleteParams { dry_run: true, ..DeleteParams::default() };
    let refused = eventually("the webhook to be asked", || async {
        Ok(all.delete(name, &rehearsed).await.err())
    })
    .await?;
    Ok(refusal::<()>(Err(refused)))
}

async fn approve(place: &Place, work: &str) -> Result<()> {
    let works: Api<ManifestWork> = place.api();
    let patch = Patch::Merge(json!({ "metadata": { "annotations": { APPROVED_PLAN: PLAN } } }));
    works.patch(work, &PatchParams::default(), &patch).await?;
    Ok(())
}

#[tokio::test]
async fn a_large_deletion_needs_a_plan_that_somebody_looked_at() -> Result<()> {
    let place = guarded().await?;
    let works: Api<ManifestWork> = place.api();
    work(&place, "large", 3, json!({})).await?;
    work(&place, "small", 2, json!({})).await?;
    work(&place, "of-a-set", 3, json!({ "labels": { SET_LABEL: "n.s" } })).await?;
    let status = refused(&works, "large").await?;
    assert_eq!((status.code, &*status.reason), (403, "Forbidden"));
    let expected = format!(
        "deleting it concerns 3 objects on 1 cluster, and no plan was approved. Look with `cleat \
         preview delete manifestwork/large -n {}`",
        place.namespace
    );
    assert!(status.message.contains(&expected), "{}", status.message);
    for goes in ["small", "of-a-set"] {
        delete(&works, goes).await?;
    }
    // A namespace is much by itself.
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "n" } });
    let spec = json!({ "workload": { "manifests": [namespace] } });
    create(&works, json!({ "metadata": { "name": "holder" }, "spec": spec })).await?;
    let status = refused(&works, "holder").await?;
    let expected = "deleting it concerns 1 object (1 namespace among them) on 1 cluster";
    assert!(status.message.contains(expected), "{}", status.message);

    // A plan that nobody answered, or that is about something else, is no plan.
    approve(&place, "large").await?;
    let questions: Api<RemovalPreview> = place.api();
    for (name, work) in [("other", "small"), ("this", "large")] {
        let metadata = json!({ "name": name, "labels": { PLAN_LABEL: PLAN } });
        create(&questions, json!({ "metadata": metadata, "spec": { "work": work } })).await?;
        let status = refusal(works.delete("large", &DeleteParams::default()).await);
        assert!(status.message.contains("is not one of it"), "{}", status.message);
        answer(&questions, name).await?;
    }
    delete(&works, "large").await?;
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(place.client.clone());
    delete(&configurations, &place.namespace).await
}

#[tokio::test]
async fn a_plan_about_anybodys_work_was_good_for_any_set() -> Result<()> {
    let place = guarded().await?;
    let sets: Api<ManifestWorkReplicaSet> = place.api();
    let metadata = json!({ "name": "shop", "annotations": { APPROVED_PLAN: PLAN } });
    let spec = json!({ "manifestWorkTemplate": workload(3), "placementRefs": [{ "name": "all" }] });
    create(&sets, json!({ "metadata": metadata, "spec": spec })).await?;
    let counted = Patch::Merge(json!({ "status": { "summary": {
        "total": 1, "desiredTotal": 1, "updated": 1, "applied": 1, "available": 1,
        "progressing": 0, "degraded": 0,
    } } }));
    sets.patch_status("shop", &PatchParams::default(), &counted).await?;
    let of_set = json!({ "labels": { SET_LABEL: key(&place.namespace, "shop") } });
    work(&place, "shop-1", 3, of_set).await?;
    work(&place, "other", 1, json!({})).await?;
    answered(&place, "of-other", "other").await?;
    let status = refused(&sets, "shop").await?;
    assert!(status.message.contains("is not one of it"), "{}", status.message);
    answered(&place, "of-shop", "shop-1").await?;
    delete(&sets, "shop").await?;
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(place.client.clone());
    delete(&configurations, &place.namespace).await
}
