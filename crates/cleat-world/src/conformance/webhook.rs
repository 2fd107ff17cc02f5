//! A real HTTPS admission webhook on loopback that does what its path says and remembers everything.
//!
//! The path is `/CASE/BEHAVIOUR…`: `allow`, `deny`, `by-label` (the object's label `verdict` decides),
//! `error` (500), `garbage` (not JSON), `wrong-uid`, `slow` (never answers). Those that change objects:
//! `adds/NAME` (puts NAME into `data`), `misses` (a patch that does not apply), `untyped` (one that does
//! not say what it is), `merge` (one of a kind nobody knows).

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::kubernetes::certificates::Authority;

/// A running webhook server. Dropping it stops it.
pub(crate) struct Webhooks {
    address: String,
    authority: String,
    asked: Arc<Asked>,
    serving: JoinHandle<()>,
}

/// Reviews in order of arrival, by path.
type Asked = Mutex<BTreeMap<String, Vec<Value>>>;

impl Webhooks {
    pub(crate) async fn start() -> Result<Self> {
        let authority = Authority::new("conformance-webhook")?;
        let identity = authority.server("webhook", &["127.0.0.1"])?;
        let chain = CertificateDer::pem_slice_iter(identity.certificate.as_bytes())
            .collect::<Result<Vec<_>, _>>()
            .context("read the webhook's certificate")?;
        let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes())
            .context("read the webhook's key")?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .context("choose TLS versions")?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .context("use the webhook's certificate")?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("listen")?;
        let address = listener.local_addr().context("listen")?.to_string();
        let asked = Arc::new(Asked::default());
        let serving = tokio::spawn(serve(listener, Arc::new(config), asked.clone()));
        Ok(Self { address, authority: BASE64.encode(authority.certificate), asked, serving })
    }

    /// Where a case's webhooks are: `https://127.0.0.1:1234/CASE`.
    pub(crate) fn url(&self, case: &str) -> String {
        format!("https://{}/{case}", self.address)
    }

    /// The `caBundle`.
    pub(crate) fn authority(&self) -> &str {
        &self.authority
    }

    /// What was asked at a path, in order.
    pub(crate) fn asked(&self, case: &str, path: &str) -> Vec<Value> {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.get(&format!("/{case}/{path}")).cloned().unwrap_or_default()
    }
}

impl Drop for Webhooks {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(listener: TcpListener, config: Arc<ServerConfig>, asked: Arc<Asked>) {
    let acceptor = tokio_rustls::TlsAcceptor::from(config);
    while let Ok((socket, _)) = listener.accept().await {
        let (acceptor, asked) = (acceptor.clone(), asked.clone());
        tokio::spawn(async move {
            // A caller that breaks off is the caller's affair, here and below.
            let Ok(socket) = acceptor.accept(socket).await else { return };
            let service = service_fn(move |request| answer(request, asked.clone()));
            let connection = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(socket), service);
            connection.await.ok();
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    asked: Arc<Asked>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let review: Value = serde_json::from_slice(&body).unwrap_or_default();
    let label = |name: &str| {
        ["object", "oldObject"].iter().find_map(|object| {
            review.pointer(&format!("/request/{object}/metadata/labels/{name}"))?.as_str()
        })
    };
    // A case probes until the server knows the webhook; how often is nobody's business.
    if label("probe").is_none() {
        let mut asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.entry(path.clone()).or_default().push(review.clone());
    }
    let uid = review.pointer("/request/uid").cloned().unwrap_or_default();
    let behaviour = path.split('/').nth(2).unwrap_or_default();
    let verdict = match (behaviour, label("verdict")) {
        ("error", _) => return Ok(text(StatusCode::INTERNAL_SERVER_ERROR, "it is broken")),
        ("garbage", _) => return Ok(text(StatusCode::OK, "this is not a review")),
        ("slow", _) => return std::future::pending().await,
        ("wrong-uid", _) => json!({"uid": "somebody-else", "allowed": true}),
        ("deny", _) | ("by-label", Some("deny")) => {
            json!({"uid": uid, "allowed": false, "status": {"message": "the object says no"}})
        }
        ("by-label", Some("deny-bare")) => json!({"uid": uid, "allowed": false}),
        ("by-label", Some("deny-code")) => json!({"uid": uid, "allowed": false, "status": {
            "message": "not now", "reason": "Conflict", "code": 409}}),
        ("by-label", Some("warn")) => {
            json!({"uid": uid, "allowed": true, "warnings": ["be careful", "and slow"]})
        }
        ("adds", _) => {
            let name = path.split('/').nth(3).unwrap_or_default();
            let path = format!("/data/{name}");
            patched(&uid, "JSONPatch", &json!([{"op": "add", "path": path, "value": "added"}]))
        }
        ("misses", _) => {
            patched(&uid, "JSONPatch", &json!([{"op": "remove", "path": "/data/none"}]))
        }
        ("merge", _) => patched(&uid, "MergePatch", &json!([{"op": "remove", "path": "/data/k"}])),
        ("untyped", _) => {
            let mut answer = patched(&uid, "", &json!([]));
            if let Some(answer) = answer.as_object_mut() {
                answer.remove("patchType");
            }
            answer
        }
        _ => json!({"uid": uid, "allowed": true}),
    };
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "response": verdict});
    Ok(text(StatusCode::OK, &review.to_string()))
}

fn patched(uid: &Value, kind: &str, patch: &Value) -> Value {
    let patch = BASE64.encode(patch.to_string());
    json!({"uid": uid, "allowed": true, "patchType": kind, "patch": patch})
}

fn text(status: StatusCode, text: &str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::copy_from_slice(text.as_bytes())));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    response
}
