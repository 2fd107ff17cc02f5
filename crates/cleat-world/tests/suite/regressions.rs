//! One test per thing that once went wrong, named after it.

use anyhow::Result;
use cleat_world::eventually;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, PersistentVolumeClaim, Secret};
use kube::api::{Api, DeleteParams};
use kube::{Resource as _, ResourceExt as _};
use serde_json::{Value, json};

use crate::{Place, create, gone, refused};

fn blocking(owner: &ConfigMap) -> Value {
    let mut reference = json!(owner.owner_ref(&()).unwrap());
    reference["blockOwnerDeletion"] = json!(true);
    reference
}

#[tokio::test]
async fn an_owner_waited_for_ever_for_a_dependent_that_another_owner_kept() -> Result<()> {
    let place = Place::new("regression").await?;
    let maps: Api<ConfigMap> = place.api();
    let (one, other) = (place.config_map("one").await?, place.config_map("other").await?);
    let references = json!([blocking(&one), blocking(&other)]);
    let metadata = json!({ "name": "shared", "ownerReferences": references });
    create(&maps, json!({ "metadata": metadata })).await?;
    maps.delete("one", &DeleteParams::foreground()).await?;
    gone(&maps, &one).await?;
    let kept = maps.get("shared").await?;
    assert_eq!(kept.owner_references().len(), 1, "the other owner's reference stays");
    Ok(())
}

#[tokio::test]
async fn a_namespace_with_a_claim_never_ended() -> Result<()> {
    let place = Place::new("regression").await?;
    let claims: Api<PersistentVolumeClaim> = place.api();
    let spec = json!({
        "accessModes": ["ReadWriteOnce"],
        "resources": { "requests": { "storage": "1Gi" } },
    });
    create(&claims, json!({ "metadata": { "name": "data" }, "spec": spec })).await?;
    let namespaces: Api<Namespace> = Api::all(place.client.clone());
    let namespace = namespaces.get(&place.namespace).await?;
    namespaces.delete(&place.namespace, &DeleteParams::default()).await?;
    gone(&namespaces, &namespace).await
}

#[tokio::test]
async fn a_watch_by_the_old_path_showed_more_than_the_object_it_named() -> Result<()> {
    let place = Place::new("regression").await?;
    let secrets: Api<Secret> = place.api();
    for name in ["asked-for", "not-asked-for"] {
        create(&secrets, json!({ "metadata": { "name": name } })).await?;
    }
    let path =
        format!("/api/v1/watch/namespaces/{}/secrets/asked-for?timeoutSeconds=1", place.namespace);
    let shown = place.client.request_text(http::Request::get(path).body(vec![])?).await?;
    assert!(shown.contains("\"asked-for\""), "{shown}");
    assert!(!shown.contains("not-asked-for"), "{shown}");
    Ok(())
}

#[tokio::test]
async fn a_watch_that_was_to_last_for_ever_broke_the_server() -> Result<()> {
    let place = Place::new("regression").await?;
    place.config_map("seen").await?;
    let path = format!(
        "/api/v1/namespaces/{}/configmaps?watch=1&timeoutSeconds={}",
        place.namespace,
        i64::MAX
    );
    let request = http::Request::get(path).body(vec![])?;
    // Some servers refuse such a number and some shorten it; none may fall over.
    drop(place.client.request_stream(request).await);
    let maps: Api<ConfigMap> = place.api();
    assert_eq!(maps.get("seen").await?.name_any(), "seen");
    Ok(())
}

#[tokio::test]
async fn a_definition_took_the_place_of_a_built_in_kind_and_its_objects_with_it() -> Result<()> {
    let place = Place::new("regression").await?;
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {
            "name": "deployments.apps",
            "annotations": { "api-approved.kubernetes.io": "https://example.com/pull/1" },
        },
        "spec": {
            "group": "apps", "scope": "Namespaced",
            "names": { "plural": "deployments", "singular": "deployment", "kind": "Deployment" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object" } },
            }],
        },
    });
    let spec = json!({
        "selector": { "matchLabels": { "a": "b" } },
        "template": {
            "metadata": { "labels": { "a": "b" } },
            "spec": { "containers": [{ "name": "c", "image": "i" }] },
        },
    });
    let deployments: Api<k8s_openapi::api::apps::v1::Deployment> = place.api();
    create(&deployments, json!({ "metadata": { "name": "kept" }, "spec": spec })).await?;
    let body = serde_json::to_vec(&definition)?;
    let post = http::Request::post(path).header("content-type", "application/json").body(body)?;
    let made = place.client.request_text(post).await;
    // Another test run may have left it, and a server may refuse it; what counts comes after.
    drop(made);
    let delete = http::Request::delete(format!("{path}/deployments.apps")).body(vec![])?;
    drop(place.client.request_text(delete).await);
    // What goes with a definition goes before it.
    eventually("the end of the definition", || async {
        let get = http::Request::get(format!("{path}/deployments.apps")).body(vec![])?;
        Ok(place.client.request_text(get).await.is_err().then_some(()))
    })
    .await?;
    let kept = deployments.get("kept").await?;
    assert_eq!(kept.metadata.deletion_timestamp, None);
    Ok(())
}

#[tokio::test]
async fn a_certificate_for_the_masters_could_be_asked_for() -> Result<()> {
    use base64::Engine as _;
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
    let place = Place::new("regression").await?;
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, "system:masters");
    params.distinguished_name.push(DnType::CommonName, "somebody");
    let pem = params.serialize_request(&KeyPair::generate()?)?.pem()?;
    let spec = json!({
        "request": base64::engine::general_purpose::STANDARD.encode(pem),
        "signerName": "kubernetes.io/kube-apiserver-client",
        "usages": ["client auth"],
    });
    let requests: Api<k8s_openapi::api::certificates::v1::CertificateSigningRequest> =
        Api::all(place.client.clone());
    let asked = json!({ "metadata": { "name": place.namespace }, "spec": spec });
    let refused = refused(&requests, asked).await;
    assert_eq!(refused.code, 403, "{}", refused.message);
    Ok(())
}
