//! Answers reviews: over HTTP as a router, or inside a process by a call.
//!
//! Nothing is written, for a dry run or otherwise. What was refused is remembered in memory, dry
//! runs apart, and told later in the status of the CriticalServices that refused it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::DefaultBodyLimit;
use axum::routing::post;
use cleat_api::criticalservice;
use cleat_core::condition::whole_seconds;
use cleat_core::protection::denial::{Clause, Denial, Hold};
use cleat_core::protection::{
    Criterion, Decision, Knowledge, Request, concerned, decide, namespace_id,
};
use http::{HeaderValue, Response, StatusCode, header};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{Context, Key, PATH, Protection};

/// A review holds an object, and an API server takes objects of three megabytes.
pub const LONGEST_BODY: usize = 16 << 20;

/// Decisions need few proofs, and each is asked for once.
const MOST_ROUNDS: usize = 6;
/// Less than an API server waits for us: a refusal that says why is better than none.
const PATIENCE: Duration = Duration::from_secs(8);
/// How many denials of one service are remembered until they are told.
const REMEMBERED: usize = 16;
/// Denials come in swarms; one telling will do for many.
const BEFORE_TELLING: Duration = Duration::from_secs(1);

/// Stands for a CriticalService where none could be read.
const NOBODY: &str = "-";

/// Not a review that can be answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadReview {
    #[error("the body is not JSON: {0}")]
    NotJson(String),
    #[error("the body is no AdmissionReview of admission.k8s.io/v1 with a request that has a uid")]
    NotAReview,
}

impl Protection {
    /// The answer to an AdmissionReview.
    pub async fn answer(&self, review: &Value) -> Result<Value, BadReview> {
        let word = |field: &str| review.get(field).and_then(Value::as_str);
        if (word("apiVersion"), word("kind"))
            != (Some("admission.k8s.io/v1"), Some("AdmissionReview"))
        {
            return Err(BadReview::NotAReview);
        }
        let asked = review.get("request").ok_or(BadReview::NotAReview)?;
        let uid = asked.get("uid").and_then(Value::as_str).ok_or(BadReview::NotAReview)?;
        let Some(request) = Request::read(asked) else {
            let message = "protection cannot tell what this request is about";
            let status = json!({ "status": "Failure", "code": 400, "reason": "BadRequest",
                                 "message": message });
            return Ok(answer(json!({ "uid": uid, "allowed": false, "status": status })));
        };
        Ok(answer(match self.context.review(&request).await {
            Ok(warnings) => {
                let mut response = json!({ "uid": uid, "allowed": true });
                if !warnings.is_empty()
                    && let Some(response) = response.as_object_mut()
                {
                    response.insert("warnings".to_owned(), warnings.into());
                }
                response
            }
            Err(denial) => {
                let services: Vec<&str> =
                    denial.holds.iter().map(|hold| hold.service.as_str()).collect();
                json!({
                    "uid": uid,
                    "allowed": false,
                    "status": denial.status(),
                    "auditAnnotations": { "protected-by": services.join(",") },
                })
            }
        }))
    }

    /// The same over HTTP, to be merged with others.
    pub fn routes(&self) -> Router {
        let protection = self.clone();
        let respond = move |body: Bytes| {
            let protection = protection.clone();
            async move { protection.respond(&body).await }
        };
        Router::new().route(PATH, post(respond)).layer(DefaultBodyLimit::max(LONGEST_BODY))
    }

    async fn respond(&self, body: &[u8]) -> Response<Body> {
        let review =
            serde_json::from_slice(body).map_err(|error| BadReview::NotJson(error.to_string()));
        let answer = match review {
            Ok(review) => self.answer(&review).await,
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

fn answer(response: Value) -> Value {
    json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response })
}

impl Context {
    async fn review(&self, request: &Request) -> Result<Vec<String>, Box<Denial>> {
        let decided = match tokio::time::timeout(PATIENCE, self.decide(request)).await {
            Ok(decided) => decided,
            Err(_) => Err(self.too_slow(request)),
        };
        if let Err(denial) = &decided {
            self.remember(denial);
        }
        decided
    }

    async fn decide(&self, request: &Request) -> Result<Vec<String>, Box<Denial>> {
        let unsure = |why: String| unknown(request, "what is protected", why);
        let mut known = self.cached(request).await.map_err(unsure)?;
        for _ in 0..MOST_ROUNDS {
            match decide(request, &known, Timestamp::now()) {
                Decision::Allow { warnings } => return Ok(warnings),
                Decision::Deny(denial) => return Err(Box::new(denial)),
                Decision::Prove(questions) => {
                    self.prove(request, &questions, &mut known).await.map_err(unsure)?;
                }
            }
        }
        Err(unsure("it keeps changing; repeat this".to_owned()))
    }

    /// In the name of those who had to be asked for.
    fn too_slow(&self, request: &Request) -> Box<Denial> {
        let why = format!("not found out within {} s; repeat this", PATIENCE.as_secs());
        let mut denial = unknown(request, "what is needed", why);
        let services = self.services.all().unwrap_or_default();
        let concerned = concerned(request, &services, Timestamp::now());
        if let Some(hold) = denial.holds.first().filter(|_| !concerned.is_empty()).cloned() {
            let named = concerned.iter().map(|(service, _)| Hold {
                service: service.name.clone(),
                clauses: hold.clauses.clone(),
            });
            denial.holds = named.collect();
        }
        denial
    }

    /// What caches know of everything that the request is about.
    async fn cached(&self, request: &Request) -> Result<Knowledge, String> {
        let mut services = self.services.all()?;
        let mut services_proven = false;
        // A watch that fails may be behind for hours, or for ever if the kind is gone.
        if self.services.trouble().is_some() {
            services = self.prove_services().await?;
            services_proven = true;
        }
        let mut known =
            Knowledge { services: Arc::clone(&services), services_proven, ..Knowledge::default() };
        let mut look = |id: &_| {
            known.objects.insert(Clone::clone(id), self.sight(id, false));
        };
        let mut tallies = BTreeMap::new();
        for (service, _) in concerned(request, &services, Timestamp::now()) {
            look(&service.provider);
            for criterion in &service.criteria {
                match criterion {
                    Criterion::Object(id) => look(id),
                    Criterion::Finalizer { .. } | Criterion::Any { .. } => {
                        tallies.insert(criterion.clone(), self.tally(criterion, false).await);
                    }
                    Criterion::Unreadable(_) => {}
                }
            }
        }
        known.tallies = tallies;
        let namespace = namespace_id(&request.id.namespace);
        let sight = self.sight(&namespace, false);
        known.objects.insert(namespace, sight);
        Ok(known)
    }

    fn remember(&self, denial: &Denial) {
        if denial.request.dry_run {
            return;
        }
        let told = criticalservice::Denial {
            time: whole_seconds(Timestamp::now()),
            user: denial.request.user.clone(),
            operation: denial.request.operation.as_str().to_owned(),
            object: denial.subject(),
        };
        let mut denials = Self::lock(&self.denials);
        for hold in denial.holds.iter().filter(|hold| hold.service != NOBODY) {
            let of_service = denials.entry(hold.service.clone()).or_default();
            of_service.push(told.clone());
            if of_service.len() > REMEMBERED {
                of_service.remove(0);
            }
            self.queue.add_after(Key::Service(hold.service.clone()), BEFORE_TELLING);
        }
    }
}

fn unknown(request: &Request, subject: &str, why: String) -> Box<Denial> {
    let clauses = vec![Clause::Unknown(subject.to_owned(), why)];
    let holds = vec![Hold { service: NOBODY.to_owned(), clauses }];
    Box::new(Denial { request: request.clone(), holds })
}
