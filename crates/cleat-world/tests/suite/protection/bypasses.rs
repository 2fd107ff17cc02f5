//! Ways to lose a provider without a delete of it that anybody is asked about.

use anyhow::Result;
use cleat_api::criticalservice::Phase;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{DeleteParams, EvictParams, Patch, PatchParams};
use serde_json::{Value, json};

use super::*;
use crate::delete;

/// A provider of another kind than a deployment, in the same place.
fn provided_by(guarded: &Guarded, group: &str, resource: &str) -> Value {
    json!({
        "provider": { "group": group, "resource": resource, "namespace": guarded.home(),
                      "name": "server" },
    })
}

fn engines(guarded: &Guarded, version: &str) -> Api<DynamicObject> {
    let of_group = GroupVersionKind::gvk(&group(&guarded.name), version, "Engine");
    let resource = ApiResource::from_gvk_with_plural(&of_group, "engines");
    Api::namespaced_with(guarded.client.clone(), &guarded.home(), &resource)
}

/// Makes a provider that is an instance of a kind of its own, in two versions. The name of its
/// definition.
async fn engine(guarded: &Guarded) -> Result<String> {
    let name = format!("engines.{}", group(&guarded.name));
    let mut kind = definition(&guarded.name);
    kind["metadata"]["name"] = json!(name);
    kind["spec"]["names"] = json!({ "plural": "engines", "singular": "engine", "kind": "Engine" });
    let mut old = kind["spec"]["versions"][0].clone();
    old["name"] = json!("v1alpha1");
    old["storage"] = json!(false);
    kind["spec"]["versions"].as_array_mut().unwrap().push(old);
    create(&guarded.definitions(), kind).await?;
    await_condition(guarded.definitions(), &name, conditions::is_crd_established()).await?;
    let engine = crate::parse::<DynamicObject>(json!({
        "apiVersion": format!("{}/v1", group(&guarded.name)), "kind": "Engine",
        "metadata": { "name": "server" },
    }));
    eventually("the kind to be served", || async {
        Ok(engines(guarded, "v1").create(&Default::default(), &engine).await.ok())
    })
    .await?;
    Ok(name)
}

/// (8) Whoever asks by another version than the preferred one is refused too.
#[tokio::test]
async fn a_provider_is_kept_in_every_version_of_its_kind() -> Result<()> {
    let guarded = Guarded::new("versions").await?;
    guarded.define().await?;
    guarded.consumer("one").await?;
    engine(&guarded).await?;
    guarded.service(provided_by(&guarded, &group(&guarded.name), "engines")).await?;
    for version in ["v1alpha1", "v1"] {
        let answer = engines(&guarded, version).delete("server", &DeleteParams::default()).await;
        let status = refusal(answer);
        assert!(status.message.contains("ProtectedBy CriticalService"), "{}", status.message);
    }
    guarded.end().await
}

/// (1) A definition takes its instances along, and nobody is asked about those.
#[tokio::test]
async fn a_provider_is_not_lost_with_the_definition_of_its_kind() -> Result<()> {
    let guarded = Guarded::new("kind").await?;
    guarded.define().await?;
    guarded.consumer("one").await?;
    let engines = engine(&guarded).await?;
    guarded.service(provided_by(&guarded, &group(&guarded.name), "engines")).await?;
    let dry = DeleteParams { dry_run: true, ..DeleteParams::default() };
    let status = eventually("the definition to be kept", || async {
        let answer = guarded.definitions().delete(&engines, &dry).await;
        Ok(answer.is_err().then(|| refusal(answer)))
    })
    .await?;
    assert!(status.message.contains("ProtectedBy CriticalService"), "{}", status.message);
    // Nobody needs it any more.
    delete(&guarded.definitions(), &definition_name(&guarded.name)).await?;
    guarded.set_finalizers("one", json!(null)).await?;
    eventually("the definition to go", || async {
        let params = DeleteParams::default();
        Ok(guarded.definitions().delete(&engines, &params).await.ok().map(drop))
    })
    .await?;
    guarded.end().await
}

/// (2) Taking the last finalizer off what is going already is an update: a provider is refused before
/// it comes to that, whatever finalizers it has.
#[tokio::test]
async fn a_provider_with_a_finalizer_of_its_own_is_refused_before_it_is_going() -> Result<()> {
    let guarded = Guarded::all("lastone").await?;
    let own = Patch::Merge(json!({ "metadata": { "finalizers": ["cleat.example/own"] } }));
    guarded.deployments().patch("server", &PatchParams::default(), &own).await?;
    guarded.refused().await;
    let server = guarded.deployments().get("server").await?;
    assert!(server.metadata.deletion_timestamp.is_none());
    let off = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    guarded.deployments().patch("server", &PatchParams::default(), &off).await?;
    assert!(guarded.deployments().get_opt("server").await?.is_some());
    guarded.end().await
}

/// (3, 19) Another server's objects are out of reach, and no dry run is tried on them.
#[tokio::test]
async fn a_provider_of_an_aggregated_kind_is_told_to_be_unprotectable() -> Result<()> {
    let guarded = Guarded::new("aggregated").await?;
    if !guarded.world.is_embedded() {
        // A group that nobody answers for would keep every namespace of a shared server from going.
        return guarded.end().await;
    }
    engine(&guarded).await?;
    let of_group = GroupVersionKind::gvk("apiregistration.k8s.io", "v1", "APIService");
    let resource = ApiResource::from_gvk_with_plural(&of_group, "apiservices");
    let registered: Api<DynamicObject> = Api::all_with(guarded.client.clone(), &resource);
    create(
        &registered,
        json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": { "name": format!("v1.{}", group(&guarded.name)) },
            "spec": {
                "group": group(&guarded.name), "version": "v1", "groupPriorityMinimum": 1000,
                "versionPriority": 10, "insecureSkipTLSVerify": true,
                "service": { "namespace": guarded.home(), "name": "another", "port": 443 },
            },
        }),
    )
    .await?;
    let mut given = service(&guarded.name, &guarded.home());
    given["spec"]["provider"] =
        provided_by(&guarded, &group(&guarded.name), "engines")["provider"].clone();
    create(&guarded.services(), given).await?;
    let told = guarded.told(|status| effective(status) == "False").await?;
    let conditions = told.status.unwrap().conditions;
    let condition = conditions.iter().find(|one| one.type_ == "Effective").unwrap();
    assert_eq!(condition.reason, "Unprotectable");
    let provider = format!("{}/server", guarded.home());
    let tried = guarded.asked.lock().unwrap().clone();
    let of_engines = |one: &Value| one["resource"]["resource"] == "engines";
    assert_eq!(tried.iter().filter(|one| of_engines(one)).count(), 0, "a dry run of {provider}");
    guarded.end().await
}

/// (6) An eviction deletes a pod although it is not called so.
#[tokio::test]
async fn a_pod_is_not_lost_by_its_eviction() -> Result<()> {
    let guarded = Guarded::new("evicted").await?;
    guarded.define().await?;
    guarded.consumer("one").await?;
    let pods: Api<Pod> = Api::namespaced(guarded.client.clone(), &guarded.home());
    let containers = json!([{ "name": "server", "image": "example.com/server" }]);
    let pod = json!({
        "metadata": { "name": "server" },
        // A real server wants the account, which nobody makes here.
        "spec": { "containers": containers, "automountServiceAccountToken": false },
    });
    let pod = crate::parse::<Pod>(pod);
    eventually("the pod to be let in", || async {
        Ok(pods.create(&Default::default(), &pod).await.ok())
    })
    .await?;
    guarded.service(provided_by(&guarded, "", "pods")).await?;
    let params = EvictParams::default();
    match pods.evict("server", &params).await {
        Err(kube::Error::Api(status)) if status.code == 404 || status.code == 405 => {
            // This server knows no evictions.
            assert!(guarded.world.is_embedded());
        }
        answer => {
            let status = refusal(answer);
            assert!(status.message.contains("ProtectedBy CriticalService"), "{}", status.message);
        }
    }
    assert!(pods.get_opt("server").await?.is_some());
    guarded.end().await
}

/// With its namespace a provider's pods may be gone long before the provider is.
#[tokio::test]
async fn the_latch_closes_when_the_namespace_of_the_provider_goes() -> Result<()> {
    let guarded = Guarded::new("homeless").await?;
    guarded.define().await?;
    guarded.provider().await?;
    let finalizer = json!({ "criteria": [{ "type": "Finalizer", "finalizer": {
        "group": group(&guarded.name), "resource": "cools", "finalizerName": FINALIZER } }] });
    guarded.service(finalizer).await?;
    // Both stay for a while.
    let held = json!({ "metadata": { "finalizers": [FINALIZER] } });
    guarded.deployments().patch("server", &PatchParams::default(), &Patch::Merge(&held)).await?;
    let maps: Api<ConfigMap> = Api::namespaced(guarded.client.clone(), &guarded.home());
    create(&maps, json!({ "metadata": { "name": "hold", "finalizers": [FINALIZER] } })).await?;
    guarded.namespaces().delete(&guarded.home(), &DeleteParams::default()).await?;
    let told = guarded.told(|status| status.latch.is_some()).await?;
    let phase = told.status.unwrap().provider.unwrap().phase;
    assert!(matches!(phase, Phase::Terminating | Phase::Gone), "{phase:?}");
    let off = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    guarded.deployments().patch("server", &PatchParams::default(), &off).await.ok();
    maps.patch("hold", &PatchParams::default(), &off).await?;
    guarded.end().await
}
