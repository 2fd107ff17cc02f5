//! Certificates for clients: asked for, approved, signed, used.

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use cleat_world::eventually;
use cleat_world::world::Credentials;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::api::{Api, ListParams, Patch, PatchParams};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use serde_json::{Value, json};

use crate::{Place, create, refusal, seen};

struct Asked {
    requests: Api<CertificateSigningRequest>,
    name: String,
    key: String,
}

/// A request for the user `name` in the group `agents`.
async fn ask(place: &Place) -> Result<Asked> {
    let requests: Api<CertificateSigningRequest> = Api::all(place.client.clone());
    let name = place.namespace.clone();
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, "agents");
    params.distinguished_name.push(DnType::CommonName, &name);
    let pem = params.serialize_request(&key)?.pem()?;
    let spec = json!({
        "request": BASE64.encode(pem),
        "signerName": "kubernetes.io/kube-apiserver-client",
        "usages": ["client auth"],
        "expirationSeconds": 3600,
    });
    create(&requests, json!({ "metadata": { "name": name }, "spec": spec })).await?;
    Ok(Asked { requests, name, key: key.serialize_pem() })
}

fn decision(kind: &str) -> Patch<Value> {
    let condition = json!({
        "type": kind,
        "status": "True",
        "reason": "Tested",
        "message": "the test said so",
    });
    Patch::Merge(json!({ "status": { "conditions": [condition] } }))
}

#[tokio::test]
async fn an_approved_request_becomes_a_certificate_that_lets_in() -> Result<()> {
    let place = Place::new("certificates").await?;
    let Asked { requests, name, key } = ask(&place).await?;
    requests.patch_approval(&name, &PatchParams::default(), &decision("Approved")).await?;
    let certificate = |request: &CertificateSigningRequest| {
        request.status.as_ref().and_then(|status| status.certificate.clone())
    };
    let signed = seen(&requests, &name, |request| certificate(request).is_some()).await?;
    let certificate = String::from_utf8(certificate(&signed).context("it is signed")?.0)?;
    let credentials = Credentials::Certificate { certificate, key };
    let agent = place.world.hub.client_with(credentials).await?;
    let review = create(&Api::<SelfSubjectReview>::all(agent.clone()), json!({})).await?;
    let user = review.status.and_then(|status| status.user_info).context("somebody")?;
    assert_eq!(user.username.as_ref(), Some(&name));
    assert_eq!(json!(user.groups), json!(["agents", "system:authenticated"]));

    let maps: Api<ConfigMap> = Api::namespaced(agent, &place.namespace);
    assert_eq!(refusal(maps.list(&ListParams::default()).await).code, 403);
    let group = "rbac.authorization.k8s.io";
    let binding = json!({
        "metadata": { "name": "agents" },
        "roleRef": { "apiGroup": group, "kind": "ClusterRole", "name": "view" },
        "subjects": [{ "apiGroup": group, "kind": "User", "name": name }],
    });
    create(&place.api::<RoleBinding>(), binding).await?;
    eventually("the binding to count", || async {
        Ok(maps.list(&ListParams::default()).await.ok())
    })
    .await?;
    Ok(())
}

#[tokio::test]
async fn a_denied_request_cannot_be_approved() -> Result<()> {
    let place = Place::new("certificates").await?;
    let Asked { requests, name, .. } = ask(&place).await?;
    let params = PatchParams::default();
    requests.patch_approval(&name, &params, &decision("Denied")).await?;
    let status = refusal(requests.patch_approval(&name, &params, &decision("Approved")).await);
    assert_eq!((status.code, &*status.reason), (422, "Invalid"));
    let denied = requests.get(&name).await?;
    assert_eq!(denied.status.and_then(|status| status.certificate), None);
    Ok(())
}
