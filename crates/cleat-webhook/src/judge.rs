//! Answers reviews: over HTTP as a router, or inside a process by a call.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post};
use cleat_api::admission::{Rules, Verdict};
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::Value;

use crate::access;
use crate::review::{BadReview, No, Question};
use crate::{MANIFEST_WORK_PATH, MANIFEST_WORK_REPLICA_SET_PATH, POLICY_PATH, POLICY_SET_PATH};

/// A review holds an object twice, and an API server takes objects of three megabytes.
const LONGEST_BODY: usize = 16 << 20;

/// Judges what a hub is about to store.
#[derive(Clone)]
pub struct Judge {
    hub_client: kube::Client,
    rules: Arc<Rules>,
}

impl Judge {
    /// `hub_client` is asked who may do what, and nothing else.
    pub fn new(hub_client: kube::Client, rules: Rules) -> Self {
        Self { hub_client, rules: Arc::new(rules) }
    }

    /// The answer to an AdmissionReview that was sent to `path`.
    pub async fn answer(&self, path: &str, review: &Value) -> Result<Value, BadReview> {
        let question = Question::read(path, review)?;
        let (review, warnings) = match question.judge(&self.rules) {
            Verdict::Allowed { warnings } => return Ok(question.allow(&warnings)),
            Verdict::Refused(refusal) => return Ok(question.refuse(&No::Bad(refusal.message))),
            Verdict::NeedsReview { review, warnings } => (review, warnings),
        };
        let no = match access::allowed(&self.hub_client, question.user, &review).await {
            Ok(true) => return Ok(question.allow(&warnings)),
            Ok(false) => No::Forbidden(access::denial(question.user, &review)),
            Err(error) => {
                tracing::warn!(%error, executor = review.name, "failed to ask for a right");
                No::Unanswered(
                    "the hub did not say whether you may name this executor; try again".to_owned(),
                )
            }
        };
        Ok(question.refuse(&no))
    }

    /// The same over HTTP.
    pub fn router(self) -> Router {
        let judged = |path: &'static str| {
            let judge = self.clone();
            post(move |body: Bytes| async move { judge.respond(path, &body).await })
        };
        Router::new()
            .route(MANIFEST_WORK_PATH, judged(MANIFEST_WORK_PATH))
            .route(MANIFEST_WORK_REPLICA_SET_PATH, judged(MANIFEST_WORK_REPLICA_SET_PATH))
            .route(POLICY_PATH, judged(POLICY_PATH))
            .route(POLICY_SET_PATH, judged(POLICY_SET_PATH))
            .route("/healthz", get(|| async { "ok" }))
            .layer(DefaultBodyLimit::max(LONGEST_BODY))
    }

    async fn respond(&self, path: &str, body: &[u8]) -> Response<Body> {
        let review =
            serde_json::from_slice(body).map_err(|error| BadReview::NotJson(error.to_string()));
        let answer = match review {
            Ok(review) => self.answer(path, &review).await,
            Err(bad) => Err(bad),
        };
        let (status, kind, text) = match answer {
            Ok(answer) => (StatusCode::OK, "application/json", answer.to_string()),
            Err(bad) => (StatusCode::BAD_REQUEST, "text/plain", bad.to_string()),
        };
        let mut response = Response::new(Body::from(text));
        *response.status_mut() = status;
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        response
    }
}
