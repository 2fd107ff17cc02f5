//! Signing approved certificate requests.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{ObjectRef, Outcome, rewrite};
use crate::certificates::{CertificateRequest, Signer};
use crate::object;
use crate::server::Inner;
use crate::status::Status;

pub(super) async fn sign(server: &Arc<Inner>, name: &str) -> Result<Outcome, Status> {
    let types = server.types();
    let Some(ty) = types.get("certificates.k8s.io", "certificatesigningrequests") else {
        return Ok(Outcome::Done);
    };
    let Some(found) = server.objects.get(ty, "v1", "", name)? else { return Ok(Outcome::Done) };
    let request = found.value;
    let has = |kind: &str| {
        let conditions = request.pointer("/status/conditions").and_then(Value::as_array);
        conditions.into_iter().flatten().any(|condition| {
            condition.get("type").and_then(Value::as_str) == Some(kind)
                && condition.get("status").and_then(Value::as_str) == Some("True")
        })
    };
    let signed = object::at(&request, "/status/certificate").is_some_and(|pem| !pem.is_empty());
    let signer = object::at(&request, "/spec/signerName").and_then(Signer::from_name);
    let (Some(authority), Some(signer)) = (&server.authority, signer) else {
        return Ok(Outcome::Done);
    };
    if signed || !has("Approved") || has("Denied") || has("Failed") {
        return Ok(Outcome::Done);
    }
    let now = server.clock.now();
    let usages = request.pointer("/spec/usages").and_then(Value::as_array);
    let usages: Vec<&str> = usages.into_iter().flatten().filter_map(Value::as_str).collect();
    let seconds = request.pointer("/spec/expirationSeconds").and_then(Value::as_i64);
    let pem = object::at(&request, "/spec/request").unwrap_or_default();
    let outcome = CertificateRequest::from_pem(&STANDARD.decode(pem).unwrap_or_default())
        .and_then(|parsed| authority.sign_request(&parsed, signer, &usages, seconds, now));
    let text = server.clock.now_text();
    let at = ObjectRef::of(ty, &request);
    rewrite(server, ty, &at, ("kube-controller-manager", "status"), |current| {
        let Some(map) = current.as_object_mut() else { return false };
        let status = object::as_map(map.entry("status").or_insert_with(|| json!({})));
        match &outcome {
            Ok(certificate) => {
                status.insert("certificate".into(), STANDARD.encode(certificate).into());
            }
            Err(error) => {
                let conditions = status.entry("conditions").or_insert_with(|| json!([]));
                if let Some(all) = conditions.as_array_mut() {
                    all.push(json!({
                        "type": "Failed", "status": "True", "reason": "SignerValidationFailure",
                        "message": error.to_string(), "lastUpdateTime": text,
                        "lastTransitionTime": text,
                    }));
                }
            }
        }
        true
    })
    .await?;
    Ok(Outcome::Done)
}
