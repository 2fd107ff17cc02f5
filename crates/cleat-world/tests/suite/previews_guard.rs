//! A hub that refuses large deletions unless somebody looked first: asked by real and embedded servers.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use cleat_api::admission::Rules;
use cleat_api::managedcluster::{CLUSTER_NAME_LABEL, ManagedCluster};
use cleat_api::manifestwork::ManifestWork;
use cleat_api::manifestworkreplicaset::{ManifestWorkReplicaSet, SET_LABEL, key};
use cleat_api::placement::Placement;
use cleat_api::placementbinding::PlacementBinding;
use cleat_api::policy::Policy;
use cleat_api::removalpreview::{APPROVED_PLAN, PLAN_LABEL, RemovalPreview, UNANSWERED};
use cleat_cli::delete::agreed;
use cleat_cli::preview::foresee;
use cleat_core::preview::guard::Threshold;
use cleat_hub::outlook;
use cleat_hub::prepare::{install_webhooks, prepare_hub};
use cleat_webhook::{GUARD_PATH, Guard, Judge, Reach, guard_configuration};
use cleat_world::eventually;
use cleat_world::webhook::serve;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use kube::core::Status;
use kube::{Client, ResourceExt as _};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::previews_policies::{PATIENCE, Site};
use crate::{Place, create, delete, gone, parse, refusal, seen};

const PLAN: &str = "0123456789abcdef";

/// What lets no more than two objects, and no namespace, go without an approved plan.
fn judge(client: &Client) -> Judge {
    let above = Threshold { objects: 2, clusters: 10, namespaces: 0 };
    let hub_client = client.clone();
    let losing = move |namespace: String, name: String, change| {
        let client = hub_client.clone();
        let told = async move {
            let losing = outlook::losing(&client, &namespace, &name, &change).await;
            losing.map_err(|error| error.to_string())
        };
        Box::pin(told) as _
    };
    let guard = Guard { above, losing: Arc::new(losing) };
    Judge::new(client.clone(), Rules::default()).guarded(guard)
}

/// Has it asked about what is in a namespace, and about a cluster and its namespace of the same name; those
/// of other tests are not judged here.
async fn install(client: &Client, namespace: &str) -> Result<()> {
    let served = serve(judge(client).router()).await?;
    let mut here = guard_configuration(Some(&served.authority), &Reach::Url(served.url));
    here.metadata.name = Some(namespace.to_owned());
    let only_here = json!({ "matchLabels": { "kubernetes.io/metadata.name": namespace } });
    for webhook in here.webhooks.iter_mut().flatten() {
        if webhook.name.contains(".managedclusters.") {
            let only_here = json!({ "matchLabels": { CLUSTER_NAME_LABEL: namespace } });
            webhook.object_selector = Some(parse(only_here));
        } else {
            webhook.namespace_selector = Some(parse(only_here.clone()));
        }
    }
    install_webhooks(client, &here).await?;
    Ok(())
}

async fn uninstall(client: &Client, namespace: &str) -> Result<()> {
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    delete(&configurations, namespace).await
}

async fn guarded() -> Result<Place> {
    let place = Place::new("preview-guard").await?;
    prepare_hub(&place.client).await?;
    install(&place.client, &place.namespace).await?;
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
    uninstall(&place.client, &place.namespace).await
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
    uninstall(&place.client, &place.namespace).await
}

/// It was told that its plan was not one of it.
#[tokio::test]
async fn a_work_of_a_silent_cluster_could_not_be_deleted_by_any_plan() -> Result<()> {
    let place = guarded().await?;
    let works: Api<ManifestWork> = place.api();
    work(&place, "large", 3, json!({})).await?;
    refused(&works, "large").await?;
    let (client, namespace) = (&place.client, Some(&*place.namespace));
    let short = Duration::from_secs(1);
    let blind = foresee(client, "manifestwork/large", namespace, short).await?;
    let plan = blind["plan"].as_str().context("a plan has a hash")?;
    // Somebody agrees, and then the cluster answers after all.
    let approved = json!({ "metadata": { "annotations": { APPROVED_PLAN: plan } } });
    works.patch("large", &PatchParams::default(), &Patch::Merge(approved)).await?;
    let questions: Api<RemovalPreview> = place.api();
    let asked = questions.list(&ListParams::default()).await?;
    let asked = asked.items.first().context("it was asked")?;
    assert!(asked.annotations().contains_key(UNANSWERED), "{asked:?}");
    answer(&questions, &asked.name_any()).await?;
    let status = refused(&works, "large").await?;
    let since = "was made while a cluster was silent that has answered since";
    assert!(status.message.contains(since), "{}", status.message);
    // It is asked again, and is silent again.
    agreed(client, "manifestwork/large", namespace, plan, short).await?;
    assert!(works.get_opt("large").await?.is_none());
    uninstall(client, &place.namespace).await
}

#[tokio::test]
async fn an_approval_was_good_for_whatever_was_added_since() -> Result<()> {
    let place = guarded().await?;
    let works: Api<ManifestWork> = place.api();
    work(&place, "large", 3, json!({})).await?;
    answered(&place, "asked", "large").await?;
    let generation = works.get("large").await?.metadata.generation.unwrap_or_default();
    let plan = format!("{PLAN}@{generation}");
    let approved = json!({ "metadata": { "annotations": { APPROVED_PLAN: plan } } });
    works.patch("large", &PatchParams::default(), &Patch::Merge(approved)).await?;
    let grown = Patch::Merge(json!({ "spec": workload(4) }));
    works.patch("large", &PatchParams::default(), &grown).await?;
    let status = refused(&works, "large").await?;
    let before = "was approved before it was changed";
    assert!(status.message.contains(before), "{}", status.message);
    approve(&place, "large").await?;
    delete(&works, "large").await?;
    uninstall(&place.client, &place.namespace).await
}

/// No question can be put into a namespace that ends, so what it held was refused for ever.
#[tokio::test]
async fn a_namespace_with_a_large_work_could_not_end() -> Result<()> {
    let place = guarded().await?;
    let works: Api<ManifestWork> = place.api();
    work(&place, "large", 3, json!({})).await?;
    refused(&works, "large").await?;
    let review = |work: &ManifestWork| {
        json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {
                "uid": "1", "operation": "DELETE",
                "resource": { "resource": "manifestworks" }, "oldObject": work,
            },
        })
    };
    let held = json!({ "name": "held", "finalizers": ["example.com/hold"] });
    let maps: Api<ConfigMap> = place.api();
    create(&maps, json!({ "metadata": held })).await?;
    let large = works.get("large").await?;
    let judge = judge(&place.client);
    let said = judge.answer(GUARD_PATH, &review(&large)).await?;
    assert_eq!(said["response"]["allowed"], false, "{said}");

    let namespaces: Api<Namespace> = Api::all(place.client.clone());
    delete(&namespaces, &place.namespace).await?;
    let ends = |one: &Namespace| one.metadata.deletion_timestamp.is_some();
    let namespace = seen(&namespaces, &place.namespace, ends).await?;
    let said = judge.answer(GUARD_PATH, &review(&large)).await?;
    assert_eq!(said["response"]["allowed"], true, "{said}");
    let warning = said["response"]["warnings"][0].as_str().unwrap_or_default();
    assert!(warning.ends_with("3 objects may go that nobody looked at"), "{said}");
    let release = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    maps.patch("held", &PatchParams::default(), &release).await?;
    gone(&namespaces, &namespace).await?;
    uninstall(&place.client, &place.namespace).await
}

#[tokio::test]
async fn policies_and_what_places_them_need_a_plan_where_they_prune_much() -> Result<()> {
    let site = Site::start("preview-guard").await?;
    let templates = ["a", "b", "c"].map(|name| site.template(name, "enforce", "DeleteIfCreated"));
    site.policy("p", templates.into()).await?;
    site.bind("p", "all", &[&site.name]).await?;
    let copy = site.holds("p").await?;
    let root = |policy: &Policy| policy.status.as_ref().is_some_and(|one| one.status.len() == 1);
    seen(&site.here::<Policy>(), "p", root).await?;
    install(&site.hub, &site.team).await?;
    let much = "deleting it concerns 3 objects on 1 cluster, and no plan was approved";
    for status in [
        refused(&site.here::<Policy>(), "p").await?,
        refused(&site.here::<PlacementBinding>(), "all").await?,
        refused(&site.here::<Placement>(), "all").await?,
    ] {
        assert!(status.message.contains(much), "{}", status.message);
    }
    // A plan of the one is none of the other.
    let plan = async |what: &str| -> Result<String> {
        let foreseen = foresee(&site.hub, what, Some(&site.team), PATIENCE).await?;
        Ok(foreseen["plan"].as_str().context("a plan has a hash")?.to_owned())
    };
    let (binding, placement) = ("placementbinding/all", "placement/all");
    let of_binding = plan(binding).await?;
    let other = agreed(&site.hub, placement, Some(&site.team), &of_binding, PATIENCE).await;
    assert!(other.is_err_and(|error| error.to_string().contains("is not plan")));
    let of_placement = plan(placement).await?;
    agreed(&site.hub, placement, Some(&site.team), &of_placement, PATIENCE).await?;
    gone(&site.copies(), &copy).await?;
    // Nobody has copies any more, so nothing is lost.
    delete(&site.here::<PlacementBinding>(), "all").await?;
    let none = |policy: &Policy| policy.status.as_ref().is_none_or(|one| one.status.is_empty());
    seen(&site.here::<Policy>(), "p", none).await?;
    delete(&site.here::<Policy>(), "p").await?;
    uninstall(&site.hub, &site.team).await?;
    site.tasks.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn a_cluster_is_emptied_by_a_plan_only_whichever_way_somebody_goes_about_it() -> Result<()> {
    let place = guarded().await?;
    let name = &*place.namespace;
    let clusters: Api<ManagedCluster> = Api::all(place.client.clone());
    let namespaces: Api<Namespace> = Api::all(place.client.clone());
    let ours = json!({ "metadata": { "labels": { CLUSTER_NAME_LABEL: name } } });
    namespaces.patch(name, &PatchParams::default(), &Patch::Merge(&ours)).await?;
    let metadata = json!({
        "name": name, "labels": { CLUSTER_NAME_LABEL: name }, "finalizers": ["example.com/hold"],
    });
    let spec = json!({ "removeStrategy": "Required" });
    create(&clusters, json!({ "metadata": metadata, "spec": spec })).await?;
    work(&place, "shop", 3, json!({})).await?;
    let applied = |number: usize| {
        json!({
            "resourceMeta": {
                "ordinal": number, "group": "", "version": "v1", "kind": "ConfigMap",
                "resource": "configmaps", "namespace": "default", "name": format!("m{number}"),
            },
            "conditions": [{
                "type": "Applied", "status": "True", "reason": "Applied", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }],
            "statusFeedback": {},
        })
    };
    let applied: Vec<Value> = (0..3).map(applied).collect();
    let status = json!({ "status": { "resourceStatus": { "manifests": applied } } });
    let works: Api<ManifestWork> = place.api();
    works.patch_status("shop", &PatchParams::default(), &Patch::Merge(status)).await?;

    let status = refused(&clusters, name).await?;
    let look = format!("no plan was approved. Look with `cleat preview unjoin {name}`");
    assert!(status.message.contains(&look), "{}", status.message);
    let status = refused(&namespaces, name).await?;
    let look = format!(
        "deleting it concerns 3 objects on 1 cluster, and it is the namespace of a cluster that does \
         not leave. Look with `cleat preview unjoin {name}`"
    );
    assert!(status.message.contains(&look), "{}", status.message);

    // One that leaves with everything goes, and then is not told to leave nothing.
    let change = async |patch: Value| {
        clusters.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await
    };
    change(json!({ "spec": { "removeStrategy": "Needless" } })).await?;
    delete(&clusters, name).await?;
    let required = || json!({ "spec": { "removeStrategy": "Required" } });
    let status = refusal(change(required()).await);
    assert!(status.message.contains("no plan was approved"), "{}", status.message);
    let questions: Api<RemovalPreview> = place.api();
    let asked = json!({ "name": "leave", "labels": { PLAN_LABEL: PLAN } });
    create(&questions, json!({ "metadata": asked, "spec": { "leave": "Required" } })).await?;
    answer(&questions, "leave").await?;
    change(json!({ "metadata": { "annotations": { APPROVED_PLAN: PLAN } } })).await?;
    change(required()).await?;

    // Its own leave takes the namespace away.
    delete(&namespaces, name).await?;
    change(json!({ "metadata": { "finalizers": null } })).await?;
    uninstall(&place.client, name).await
}
