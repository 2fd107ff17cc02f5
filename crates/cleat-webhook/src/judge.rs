//! Answers reviews: over HTTP as a router, or inside a process by a call.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post};
use cleat_api::admission::{Rules, Verdict};
use http::{HeaderValue, Response, StatusCode, header};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::Api;
use serde_json::Value;

use crate::access;
use crate::clusters::Demand;
use crate::guard::{self, Guard, Said};
use crate::review::{BadReview, Judgement, No, Question};
use crate::{
    GUARD_PATH, MANAGED_CLUSTER_PATH, MANAGED_CLUSTER_SET_BINDING_PATH, MANIFEST_WORK_PATH,
    MANIFEST_WORK_REPLICA_SET_PATH, POLICY_PATH, POLICY_SET_PATH,
};

/// A review holds an object twice, and an API server takes objects of three megabytes.
const LONGEST_BODY: usize = 16 << 20;

/// Judges what a hub is about to store.
#[derive(Clone)]
pub struct Judge {
    hub_client: kube::Client,
    rules: Arc<Rules>,
    guard: Option<Guard>,
}

impl Judge {
    /// `hub_client` is asked who may do what, and which namespaces are on their way out.
    pub fn new(hub_client: kube::Client, rules: Rules) -> Self {
        Self { hub_client, rules: Arc::new(rules), guard: None }
    }

    /// The same, refusing large deletions without an approved plan.
    #[must_use]
    pub fn guarded(self, guard: Guard) -> Self {
        Self { guard: Some(guard), ..self }
    }

    /// The answer to an AdmissionReview that was sent to `path`.
    pub async fn answer(&self, path: &str, review: &Value) -> Result<Value, BadReview> {
        let question = Question::read(path, review)?;
        if let (GUARD_PATH, Some(guard), Some(deletion)) =
            (path, &self.guard, Question::deletion(review))
        {
            return Ok(match guard::judged(&self.hub_client, guard, deletion).await {
                Said::No(no) => question.refuse(&no),
                Said::Goes(warnings) => question.allow(&warnings),
            });
        }
        let verdict = match question.judge(&self.rules) {
            Judgement::Spec(verdict) => verdict,
            Judgement::Cluster(demand) => {
                return Ok(match self.objection(question.user, &demand).await {
                    Some(no) => question.refuse(&no),
                    None => question.allow(&[]),
                });
            }
        };
        let (review, warnings) = match verdict {
            Verdict::Allowed { warnings } => return Ok(question.allow(&warnings)),
            Verdict::Refused(refusal) => return Ok(question.refuse(&No::Bad(refusal.message))),
            Verdict::NeedsReview { review, warnings } => (review, warnings),
        };
        let no = match access::allowed(&self.hub_client, question.user, access::execute_as(&review))
            .await
        {
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

    /// Why something about clusters must not be stored.
    async fn objection(&self, user: &Value, demand: &Demand) -> Option<No> {
        let Demand { objections, rights, lasting } = demand;
        if !objections.is_empty() {
            return Some(No::Bad(objections.join("; ")));
        }
        for right in rights {
            match access::allowed(&self.hub_client, user, access::about_clusters(right)).await {
                Ok(true) => {}
                Ok(false) => {
                    return Some(No::Forbidden(access::denial_about_clusters(user, right)));
                }
                Err(error) => {
                    tracing::warn!(%error, %right, "failed to ask for a right");
                    let why = "the hub did not say whether you may do this; try again";
                    return Some(No::Unanswered(why.to_owned()));
                }
            }
        }
        let namespaces: Api<Namespace> = Api::all(self.hub_client.clone());
        let name = lasting.as_ref()?;
        match namespaces.get_opt(name).await {
            Ok(found) => found.filter(|one| one.metadata.deletion_timestamp.is_some()).map(|_| {
                No::Bad(format!(
                    "the namespace {name} of an earlier cluster is on its way out; accept this one \
                     when it is gone"
                ))
            }),
            Err(error) => {
                tracing::warn!(%error, namespace = name, "failed to look at a namespace");
                let why = format!("whether the namespace {name} is free cannot be seen; try again");
                Some(No::Unanswered(why))
            }
        }
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
            .route(MANAGED_CLUSTER_PATH, judged(MANAGED_CLUSTER_PATH))
            .route(MANAGED_CLUSTER_SET_BINDING_PATH, judged(MANAGED_CLUSTER_SET_BINDING_PATH))
            .route(GUARD_PATH, judged(GUARD_PATH))
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
