//! A namespace leaves after its content, and says what it waits for.

use anyhow::Result;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret, ServiceAccount};
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;

use crate::{Place, create, delete, gone, refused, seen};

#[tokio::test]
async fn content_goes_first() -> Result<()> {
    let place = Place::new("namespaces").await?;
    let namespaces: Api<Namespace> = Api::all(place.client.clone());
    let map = place.config_map("a").await?;
    let secret = create(&place.api::<Secret>(), json!({ "metadata": { "name": "b" } })).await?;
    let namespace = namespaces.get(&place.namespace).await?;
    delete(&namespaces, &place.namespace).await?;
    gone(&namespaces, &namespace).await?;
    gone(&place.api::<ConfigMap>(), &map).await?;
    gone(&place.api::<Secret>(), &secret).await
}

#[tokio::test]
async fn it_waits_for_finalizers_and_names_them() -> Result<()> {
    let place = Place::new("namespaces").await?;
    let namespaces: Api<Namespace> = Api::all(place.client.clone());
    let maps: Api<ConfigMap> = place.api();
    let finalizers = json!(["cleat.example/hold"]);
    create(&maps, json!({ "metadata": { "name": "a", "finalizers": finalizers } })).await?;
    delete(&namespaces, &place.namespace).await?;
    let message = |namespace: &Namespace, kind: &str| {
        let conditions = namespace.status.iter().flat_map(|status| status.conditions.iter());
        let mut told = conditions.flatten().filter(|one| one.type_ == kind && one.status == "True");
        told.find_map(|condition| condition.message.clone())
    };
    let waiting = seen(&namespaces, &place.namespace, |namespace: &Namespace| {
        message(namespace, "NamespaceFinalizersRemaining").is_some()
    })
    .await?;
    let phase = waiting.status.as_ref().and_then(|status| status.phase.as_deref());
    assert_eq!(phase, Some("Terminating"));
    let finalizers = message(&waiting, "NamespaceFinalizersRemaining").unwrap();
    assert!(finalizers.contains("cleat.example/hold in 1 resource instances"), "{finalizers}");
    let content = message(&waiting, "NamespaceContentRemaining").unwrap();
    assert!(content.contains("configmaps. has 1 resource instances"), "{content}");

    let status = refused(&maps, json!({ "metadata": { "name": "b" } })).await;
    assert_eq!((status.code, &*status.reason), (403, "Forbidden"));
    let causes = status.details.map(|details| details.causes).unwrap_or_default();
    assert!(causes.iter().any(|cause| cause.reason == "NamespaceTerminating"), "{causes:?}");

    let none = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    maps.patch("a", &PatchParams::default(), &none).await?;
    gone(&namespaces, &waiting).await
}

#[tokio::test]
async fn it_comes_with_a_service_account_and_a_root_certificate() -> Result<()> {
    let place = Place::new("namespaces").await?;
    seen(&place.api::<ServiceAccount>(), "default", |_| true).await?;
    let root = seen(&place.api::<ConfigMap>(), "kube-root-ca.crt", |_| true).await?;
    let root = json!(root.data);
    assert!(root["ca.crt"].as_str().unwrap().starts_with("-----BEGIN CERTIFICATE-----"));
    Ok(())
}

#[tokio::test]
async fn nothing_is_created_where_there_is_none() -> Result<()> {
    let place = Place::new("namespaces").await?;
    let nowhere: Api<ConfigMap> = Api::namespaced(place.client.clone(), "there-is-no-such");
    let status = refused(&nowhere, json!({ "metadata": { "name": "a" } })).await;
    assert_eq!((status.code, &*status.reason), (404, "NotFound"));
    Ok(())
}
