//! A webhook for tests: real HTTPS on loopback, an answer of the test's choice, and a
//! record of everything it was asked.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result};
use bytes::Bytes;
use cleat_apiserver::certificates::Authority;
use cleat_apiserver::tls::{self, ServeOptions, ServerCertificate, ServerTls};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// A running webhook; it ends with the runtime.
pub struct Webhook {
    pub url: String,
    /// PEM, for `clientConfig.caBundle`.
    pub authority: String,
    asked: Arc<Mutex<Vec<Value>>>,
}

impl Webhook {
    /// `answer` sees a review's request; `Err` refuses it with that message.
    pub async fn start(
        answer: impl Fn(&Value) -> Result<(), String> + Send + Sync + 'static,
    ) -> Result<Self> {
        Self::answering(move |request| match answer(request) {
            Ok(()) => json!({ "allowed": true }),
            Err(why) => json!({ "allowed": false, "status": { "code": 403, "message": why } }),
        })
        .await
    }

    /// `answer` sees a review's request and gives the response; the uid is filled in.
    pub async fn answering(
        answer: impl Fn(&Value) -> Value + Send + Sync + 'static,
    ) -> Result<Self> {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let record = Arc::clone(&asked);
        let answer = Arc::new(answer);
        let router = axum::Router::new().fallback(move |body: Bytes| {
            let (record, answer) = (Arc::clone(&record), Arc::clone(&answer));
            async move { respond(&body, &record, &*answer) }
        });
        let Served { url, authority } = serve(router).await?;
        Ok(Self { url, authority, asked })
    }

    /// The requests of the reviews so far, in order of arrival.
    pub fn asked(&self) -> Vec<Value> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Forgets what it was asked.
    pub fn forget(&self) {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// Where a router is served, and who vouches for it.
pub struct Served {
    /// Ends with a slash.
    pub url: String,
    /// PEM, for `clientConfig.caBundle`.
    pub authority: String,
}

/// Serves `router` over HTTPS on loopback until the runtime ends.
pub async fn serve(router: axum::Router) -> Result<Served> {
    let authority = Authority::generate("webhook-ca", Timestamp::now())?;
    let day = SignedDuration::from_hours(24);
    let issued = authority.issue_server("webhook", &["127.0.0.1"], Timestamp::now(), day)?;
    // A verifier of clients wants an authority, although no client has to show anything.
    let own = [authority.certificate().clone()];
    let tls = ServerTls::new(ServerCertificate::new(&issued)?, &own)?;
    let listener = TcpListener::bind("127.0.0.1:0").await.context("listen on loopback")?;
    let url = format!("https://{}/", listener.local_addr()?);
    let forever = std::future::pending();
    tokio::spawn(tls::serve(listener, Some(tls), router, ServeOptions::default(), forever));
    Ok(Served { url, authority: authority.certificate_pem().to_owned() })
}

fn respond(
    body: &[u8],
    record: &Mutex<Vec<Value>>,
    answer: &dyn Fn(&Value) -> Value,
) -> http::Response<axum::body::Body> {
    let review: Value = serde_json::from_slice(body).unwrap_or_default();
    let request = review.get("request").cloned().unwrap_or_default();
    let mut response = answer(&request);
    if let Some(response) = response.as_object_mut() {
        response.insert("uid".to_owned(), request.get("uid").cloned().unwrap_or_default());
    }
    record.lock().unwrap_or_else(PoisonError::into_inner).push(request);
    let review = json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": response,
    });
    let mut answer = http::Response::new(axum::body::Body::from(review.to_string()));
    let json = http::HeaderValue::from_static("application/json");
    answer.headers_mut().insert(http::header::CONTENT_TYPE, json);
    answer
}
