//! Who may delete what, and what they are told. Numbers are those of docs/protection.md.

use anyhow::Result;
use cleat_api::criticalservice::{DEFINITION, Phase};
use cleat_core::protection::denial::Protected;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use super::*;
use crate::{delete, gone};

fn dry() -> DeleteParams {
    DeleteParams { dry_run: true, ..DeleteParams::default() }
}

#[tokio::test]
async fn a_needed_provider_stays_and_whoever_asks_is_told_why() -> Result<()> {
    let guarded = Guarded::all("needed").await?;
    let status = guarded.refused().await;
    assert_eq!((status.code, &*status.reason), (403, "Forbidden"));
    let cools = format!("cools.{}", group(&guarded.name));
    let expected = format!(
        "denied the request: ProtectedBy CriticalService {name}: 1 {cools} with finalizer \
         {FINALIZER} remains ({name}/one); customresourcedefinitions.apiextensions.k8s.io {cools} \
         remains. Delete these first; this can be repeated at any time.",
        name = guarded.name
    );
    assert!(status.message.ends_with(&expected), "{}", status.message);
    let details = status.details.clone().unwrap();
    let reasons: Vec<&str> = details.causes.iter().map(|cause| cause.reason.as_str()).collect();
    assert_eq!(reasons, ["FinalizerRemains", "ResourceRemains"]);
    let understood = Protected::parse(&status.message).unwrap();
    assert_eq!(understood.services, [&*guarded.name]);
    // (13) A dry run is told the same, and leaves no trace; the other one is on record.
    guarded.told(|status| status.denials.len() == 1).await?;
    let same = refusal(guarded.deployments().delete("server", &dry()).await);
    assert_eq!(same.message, status.message);
    let told = guarded.told(|status| !status.denials.is_empty()).await?;
    let denials = told.status.unwrap().denials;
    assert_eq!(denials.len(), 1);
    assert_eq!(denials[0].object, format!("deployments.apps {}/server", guarded.home()));
    guarded.end().await
}

#[tokio::test]
async fn a_provider_goes_when_nothing_needs_it_and_the_critical_service_after_it() -> Result<()> {
    let guarded = Guarded::all("goes").await?;
    let (name, params) = (guarded.name.clone(), DeleteParams::default());
    // (4) Not before its provider.
    let status = refusal(guarded.services().delete(&name, &params).await);
    assert!(status.message.contains("its provider deployments.apps"), "{}", status.message);
    // (1) Nor the namespace.
    let status = refusal(guarded.namespaces().delete(&guarded.home(), &params).await);
    assert!(status.message.contains("ProtectedBy CriticalService"), "{}", status.message);
    // (7) The kind is going; its instances still count.
    let kind = guarded.definitions().get(&definition_name(&name)).await?;
    delete(&guarded.definitions(), &definition_name(&name)).await?;
    let status = guarded.refused().await;
    assert!(status.message.contains("with finalizer"), "{}", status.message);
    guarded.set_finalizers("one", json!(null)).await?;
    gone(&guarded.definitions(), &kind).await?;
    // (6) A kind that does not exist any more has no instances.
    guarded.passes().await?;
    eventually("the CriticalService to go", || async {
        Ok(guarded.services().delete(&name, &params).await.ok().map(drop))
    })
    .await?;
    guarded.namespaces().delete(&guarded.home(), &params).await?;
    guarded.end().await
}

#[tokio::test]
async fn a_released_critical_service_goes_before_its_provider() -> Result<()> {
    let guarded = Guarded::all("released").await?;
    let (name, params) = (guarded.name.clone(), DeleteParams::default());
    refusal(guarded.services().delete(&name, &params).await);
    let release = Patch::Merge(json!({ "spec": { "onDelete": "Release" } }));
    guarded.services().patch(&name, &PatchParams::default(), &release).await?;
    eventually("it to be let go", || async {
        Ok(guarded.services().delete(&name, &params).await.ok().map(drop))
    })
    .await?;
    // Nothing protects the provider now.
    guarded.passes().await?;
    guarded.end().await
}

#[tokio::test]
async fn the_definition_of_critical_services_is_guarded() -> Result<()> {
    let guarded = Guarded::all("definition").await?;
    let status = refusal(guarded.definitions().delete(DEFINITION, &dry()).await);
    // Where tests share a server, the CriticalService of another may be the one that is named.
    assert!(status.message.contains("ProtectedBy CriticalService"), "{}", status.message);
    guarded.end().await
}

#[tokio::test]
async fn what_no_critical_service_names_is_not_even_asked_about() -> Result<()> {
    let guarded = Guarded::all("unasked").await?;
    let mut other = deployment(&guarded.home());
    other["metadata"]["name"] = json!("other");
    create(&guarded.deployments(), other).await?;
    let before = guarded.reviews();
    delete(&guarded.deployments(), "other").await?;
    delete(&guarded.namespaces(), &guarded.name).await?;
    assert_eq!(guarded.reviews(), before);
    guarded.end().await
}

#[tokio::test]
async fn one_of_a_collection_is_protected_by_its_own_name() -> Result<()> {
    let guarded = Guarded::all("collection").await?;
    let all = ListParams::default();
    let status =
        refusal(guarded.deployments().delete_collection(&DeleteParams::default(), &all).await);
    assert!(status.message.contains("one of a collection"), "{}", status.message);
    assert!(guarded.deployments().get_opt("server").await?.is_some());
    guarded.end().await
}

#[tokio::test]
async fn scaling_to_zero_is_refused_where_it_is_guarded() -> Result<()> {
    let guarded = Guarded::new("scale").await?;
    guarded.define().await?;
    guarded.provider().await?;
    guarded.consumer("one").await?;
    guarded.service(json!({ "guard": ["ScaleToZero"] })).await?;
    let params = PatchParams { dry_run: true, ..PatchParams::default() };
    let to = |replicas: i32| Patch::Merge(json!({ "spec": { "replicas": replicas } }));
    let status = eventually("the guard to work", || async {
        let answer = guarded.deployments().patch_scale("server", &params, &to(0)).await;
        Ok(answer.is_err().then(|| refusal(answer)))
    })
    .await?;
    assert!(status.message.contains("ProtectedBy"), "{}", status.message);
    let status = refusal(guarded.deployments().patch("server", &params, &to(0)).await);
    assert!(status.message.contains("ProtectedBy"), "{}", status.message);
    guarded.deployments().patch_scale("server", &params, &to(2)).await?;
    guarded.end().await
}

#[tokio::test]
async fn a_provider_that_is_made_anew_is_protected_anew() -> Result<()> {
    let guarded = Guarded::new("anew").await?;
    guarded.define().await?;
    create(&guarded.services(), service(&guarded.name, &guarded.home())).await?;
    // (5) It may come later.
    let phase = |status: &CriticalServiceStatus| status.provider.clone().unwrap_or_default().phase;
    guarded.told(|status| phase(status) == Phase::Waiting && !status.criteria.is_empty()).await?;
    let first = guarded.provider().await?;
    guarded.told(|status| effective(status) == "True").await?;
    delete(&guarded.definitions(), &definition_name(&guarded.name)).await?;
    guarded.passes().await?;
    guarded.told(|status| phase(status) == Phase::Gone && status.latch.is_some()).await?;
    guarded.provider().await?;
    let told = guarded.told(|status| phase(status) == Phase::Present).await?;
    let status = told.status.unwrap();
    assert_eq!(status.provider.unwrap().replaced, first.metadata.uid.unwrap());
    assert!(status.latch.is_none());
    guarded.end().await
}

#[tokio::test]
async fn nonsense_is_refused_when_it_is_written() -> Result<()> {
    let guarded = Guarded::new("nonsense").await?;
    let tried = async |change: fn(&mut Value)| {
        let mut given = service(&guarded.name, &guarded.home());
        change(&mut given["spec"]);
        crate::refused(&guarded.services(), given).await.message
    };
    let kind = |spec: &mut Value| {
        spec["criteria"][1]["specificResource"]["resource"] = json!("CustomResourceDefinition");
    };
    let message = tried(kind).await;
    assert!(message.contains("the plural in lower case"), "{message}");
    let message = tried(|spec| spec["criteria"][0]["type"] = json!("AnyInstance")).await;
    assert!(message.contains("is set for the type"), "{message}");
    let message = tried(|spec| spec["provider"]["group"] = json!("apps/v1")).await;
    assert!(message.contains("without a version"), "{message}");
    let message = tried(|spec| spec["provider"]["name"] = json!("a/b")).await;
    assert!(message.contains("the name of an object"), "{message}");
    let message = tried(|spec| spec["provider"]["namespace"] = json!("A")).await;
    assert!(message.contains("the name of a namespace"), "{message}");
    let odd = |spec: &mut Value| {
        spec["criteria"][0]["finalizer"]["finalizerName"] = json!("my group/clean");
    };
    let message = tried(odd).await;
    assert!(message.contains("the name of a finalizer"), "{message}");
    let message = tried(|spec| spec["criteria"] = json!([])).await;
    assert!(message.contains("spec.criteria"), "{message}");
    create(&guarded.services(), service(&guarded.name, &guarded.home())).await?;
    let other = Patch::Merge(json!({ "spec": { "provider": { "name": "other" } } }));
    let changed = guarded.services().patch(&guarded.name, &PatchParams::default(), &other).await;
    assert!(refusal(changed).message.contains("the provider cannot be changed"));
    guarded.end().await
}

#[tokio::test]
async fn inside_a_terminating_namespace_nothing_is_held_up() -> Result<()> {
    let guarded = Guarded::all("terminating").await?;
    let server = guarded.deployments().get("server").await?;
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u", "operation": "DELETE", "name": "server", "namespace": guarded.home(),
            "resource": { "group": "apps", "version": "v1", "resource": "deployments" },
            "userInfo": { "username": "somebody" }, "dryRun": true, "oldObject": server,
        },
    });
    assert_eq!(guarded.protection.answer(&review).await?["response"]["allowed"], false);
    // Something else keeps the namespace from going at once, and nobody protects it.
    let maps: Api<k8s_openapi::api::core::v1::ConfigMap> =
        Api::namespaced(guarded.client.clone(), &guarded.home());
    create(&maps, json!({ "metadata": { "name": "hold", "finalizers": [FINALIZER] } })).await?;
    let release = Patch::Merge(json!({ "spec": { "onDelete": "Release" } }));
    guarded.tasks.shutdown().await;
    uninstall(&guarded.client, &guarded.name).await?;
    guarded.services().patch(&guarded.name, &PatchParams::default(), &release).await?;
    eventually("the namespace to be let go", || async {
        let params = DeleteParams::default();
        Ok(guarded.namespaces().delete(&guarded.home(), &params).await.ok().map(drop))
    })
    .await?;
    let (protection, _, tasks) = protect(&guarded.client, &guarded.name).await?;
    let warnings = eventually("the namespace to be seen going", || async {
        let answer = protection.answer(&review).await?;
        let allowed = answer["response"]["allowed"] == true;
        Ok(allowed.then(|| answer["response"]["warnings"].to_string()))
    })
    .await?;
    assert!(warnings.contains("already being deleted"), "{warnings}");
    let off = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    maps.patch("hold", &PatchParams::default(), &off).await?;
    tasks.shutdown().await;
    guarded.end().await
}
