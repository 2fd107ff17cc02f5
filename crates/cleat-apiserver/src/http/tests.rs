mod trouble;

use std::sync::Arc;

use axum::body::Body;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cleat_store::{Limits, Store};
use http::{HeaderMap, Request};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::admission::Admission;
use crate::authn::{Authenticator, ServiceAccountTokens, SigningKey};
use crate::certificates::Authority;
use crate::{Config, Server};

async fn server() -> Server {
    let tokens = ServiceAccountTokens::new(SigningKey::generate().unwrap(), "https://here");
    let authority = Authority::generate("ca", jiff::Timestamp::now()).unwrap();
    let config = Config {
        store: Store::in_memory(Limits::default()),
        authenticator: Authenticator::new().with_service_accounts(tokens),
        authority: Some(Arc::new(authority)),
        pretend_workloads: false,
        admission: Admission::default(),
        audit: None,
    };
    Server::start(config).await.unwrap()
}

struct Got {
    code: u16,
    headers: HeaderMap,
    body: String,
}

impl Got {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

async fn send(
    server: &Server,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: Value,
) -> Got {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
    let response = server.router().oneshot(request.body(body).unwrap()).await.unwrap();
    let (parts, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let body = String::from_utf8(body.to_vec()).unwrap();
    Got { code: parts.status.as_u16(), headers: parts.headers, body }
}

async fn get(server: &Server, path: &str, headers: &[(&str, &str)]) -> Got {
    send(server, "GET", path, headers, Value::Null).await
}

#[tokio::test]
async fn strangers_are_told_the_same_with_and_without_a_router() {
    let server = server().await;
    for (path, code) in [("/readyz", 200), ("/api/v1/secrets", 403), ("/nothing", 403)] {
        let request = || Request::get(path).body(Body::empty()).unwrap();
        let routed = server.public_router().oneshot(request()).await.unwrap();
        let plain = server.public_api().oneshot(request()).await.unwrap();
        assert_eq!((routed.status().as_u16(), plain.status().as_u16()), (code, code), "{path}");
    }
}

#[tokio::test]
async fn what_clients_keep_is_sent_once() {
    let server = server().await;
    let aggregated = ("accept", crate::discovery::AGGREGATED);
    let first = get(&server, "/apis", &[aggregated]).await;
    let tag = first.header("etag").to_owned();
    assert_eq!((first.code, first.header("cache-control")), (200, "public"));
    let again = get(&server, "/apis", &[aggregated, ("if-none-match", &tag)]).await;
    assert_eq!((again.code, &*again.body, again.header("etag")), (304, "", &*tag));

    let index = get(&server, "/openapi/v3", &[]).await.json();
    let place = index["paths"]["api/v1"]["serverRelativeURL"].as_str().unwrap().to_owned();
    let whole = get(&server, &place, &[]).await;
    assert_eq!((whole.code, whole.header("cache-control")), (200, "public, immutable"));
    assert!(whole.header("expires").ends_with(" UTC"), "{:?}", whole.headers);
    let moved = get(&server, "/openapi/v3/api/v1?hash=OLD", &[]).await;
    assert_eq!((moved.code, moved.header("location")), (301, &*place));
    let known = [("if-none-match", whole.header("etag"))];
    assert_eq!(get(&server, "/openapi/v3/api/v1", &known).await.code, 304);
    assert_eq!(get(&server, "/openapi/v3/api/v1", &[("accept", "text/html")]).await.code, 406);
    server.stop().await;
}

#[tokio::test]
async fn health_is_told_at_length_to_who_asks() {
    let server = server().await;
    let told = get(&server, "/readyz?verbose&exclude=etcd", &[]).await.body;
    assert!(told.starts_with("[+]ping ok\n"), "{told}");
    assert!(told.contains("[+]etcd excluded: ok\n"), "{told}");
    assert!(told.ends_with("readyz check passed\n"), "{told}");
    assert_eq!(get(&server, "/livez/etcd", &[]).await.body, "ok");
    assert_eq!(get(&server, "/livez/shutdown", &[]).await.code, 404);
    server.stop().await;
}

#[tokio::test]
async fn a_token_in_a_secret_is_good_as_long_as_the_secret() {
    let server = server().await;
    let secret = json!({ "type": "kubernetes.io/service-account-token", "metadata": {
        "name": "old", "annotations": { "kubernetes.io/service-account.name": "default" } } });
    let secrets = "/api/v1/namespaces/kube-system/secrets";
    loop {
        let account = "/api/v1/namespaces/kube-system/serviceaccounts/default";
        if get(&server, account, &[]).await.code == 200 {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert_eq!(send(&server, "POST", secrets, &[], secret).await.code, 201);
    let path = format!("{secrets}/old");
    let token = loop {
        let found = get(&server, &path, &[]).await.json();
        if let Some(token) = found["data"]["token"].as_str() {
            break String::from_utf8(STANDARD.decode(token).unwrap()).unwrap();
        }
        tokio::task::yield_now().await;
    };
    let bearer = format!("Bearer {token}");
    let review = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let who = send(&server, "POST", review, &[("authorization", &bearer)], json!({})).await;
    let name = who.json()["status"]["userInfo"]["username"].clone();
    assert_eq!(name, "system:serviceaccount:kube-system:default");
    assert_eq!(send(&server, "DELETE", &path, &[], Value::Null).await.code, 200);
    let who = send(&server, "POST", review, &[("authorization", &bearer)], json!({})).await;
    assert_eq!(who.code, 401);
    let forged = token.replace('.', "..");
    let bearer = format!("Bearer {forged}");
    let who = send(&server, "POST", review, &[("authorization", &bearer)], json!({})).await;
    assert_eq!(who.code, 401);
    server.stop().await;
}

#[tokio::test]
async fn others_can_verify_our_tokens() {
    let server = server().await;
    let host = [("host", "here:1")];
    let issuer = get(&server, "/.well-known/openid-configuration", &host).await.json();
    assert_eq!(issuer["jwks_uri"], "https://here:1/openid/v1/jwks");
    let keys = get(&server, "/openid/v1/jwks", &[]).await;
    assert_eq!(keys.header("content-type"), "application/jwk-set+json");
    assert_eq!(keys.json()["keys"][0]["alg"], "ES256");
    assert_eq!(send(&server, "POST", "/openid/v1/jwks", &[], json!({})).await.code, 405);
    server.stop().await;
}
