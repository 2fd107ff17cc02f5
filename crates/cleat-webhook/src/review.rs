//! The AdmissionReview of `admission.k8s.io/v1`: what is asked, and how answers look. Pure.

use cleat_api::admission::{self, Rules, Verdict};
use serde_json::{Value, json};

use crate::clusters::{self, Demand};
use crate::{
    GUARD_PATH, MANAGED_CLUSTER_PATH, MANAGED_CLUSTER_SET_BINDING_PATH, MANIFEST_WORK_PATH,
    MANIFEST_WORK_REPLICA_SET_PATH, POLICY_PATH, POLICY_SET_PATH,
};

/// Not a review that can be answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadReview {
    #[error("nothing is judged at this path")]
    UnknownPath,
    #[error("the body is not JSON: {0}")]
    NotJson(String),
    #[error("the body is no AdmissionReview of admission.k8s.io/v1 with a request that has a uid")]
    NotAReview,
}

/// A question, as far as it concerns us.
pub(crate) struct Question<'a> {
    pub(crate) uid: &'a str,
    pub(crate) user: &'a Value,
    matter: Matter,
    change: Option<Change<'a>>,
}

/// What a question is about, and who judges it.
#[derive(Clone, Copy)]
enum Matter {
    Spec(fn(&Value, Option<&Value>, &Rules) -> Verdict),
    Cluster(fn(&Value, Option<&Value>) -> Demand),
    /// Only deletions are, and only where somebody chose so.
    Deletion,
}

/// What was decided, as far as it can be without asking the hub.
pub(crate) enum Judgement {
    Spec(Verdict),
    Cluster(Demand),
}

/// What is to be written, over what.
struct Change<'a> {
    object: &'a Value,
    old: Option<&'a Value>,
}

impl<'a> Question<'a> {
    pub(crate) fn read(path: &str, review: &'a Value) -> Result<Self, BadReview> {
        let matter = match path {
            MANIFEST_WORK_PATH => Matter::Spec(admission::manifest_work),
            MANIFEST_WORK_REPLICA_SET_PATH => Matter::Spec(admission::manifest_work_replica_set),
            MANAGED_CLUSTER_PATH => Matter::Cluster(clusters::cluster),
            MANAGED_CLUSTER_SET_BINDING_PATH => Matter::Cluster(clusters::binding),
            POLICY_PATH => Matter::Spec(admission::policy),
            POLICY_SET_PATH => Matter::Spec(admission::policy_set),
            GUARD_PATH => Matter::Deletion,
            _ => return Err(BadReview::UnknownPath),
        };
        let word = |field: &str| review.get(field).and_then(Value::as_str);
        if (word("apiVersion"), word("kind"))
            != (Some("admission.k8s.io/v1"), Some("AdmissionReview"))
        {
            return Err(BadReview::NotAReview);
        }
        let request = review.get("request").ok_or(BadReview::NotAReview)?;
        let uid = request.get("uid").and_then(Value::as_str).ok_or(BadReview::NotAReview)?;
        let given = |field: &str| request.get(field).filter(|value| !value.is_null());
        let whole = given("subResource").and_then(Value::as_str).unwrap_or_default().is_empty();
        let operation = request.get("operation").and_then(Value::as_str).unwrap_or_default();
        // Deletions are judged elsewhere, if at all, and a subresource cannot change a spec.
        let judged = whole && matches!(operation, "CREATE" | "UPDATE");
        let change = given("object")
            .filter(|_| judged)
            .map(|object| Change { object, old: given("oldObject") });
        Ok(Self { uid, user: request.get("userInfo").unwrap_or(&Value::Null), matter, change })
    }

    /// The request, if it is one to delete something, or a change that may begin to.
    pub(crate) fn deletion(review: &Value) -> Option<&Value> {
        let request = review.get("request")?;
        matches!(request.get("operation")?.as_str()?, "DELETE" | "UPDATE").then_some(request)
    }

    pub(crate) fn judge(&self, rules: &Rules) -> Judgement {
        match (&self.change, self.matter) {
            (Some(Change { object, old }), Matter::Spec(verdict)) => {
                Judgement::Spec(verdict(object, *old, rules))
            }
            (Some(Change { object, old }), Matter::Cluster(demand)) => {
                Judgement::Cluster(demand(object, *old))
            }
            (None, _) | (_, Matter::Deletion) => {
                Judgement::Spec(Verdict::Allowed { warnings: Vec::new() })
            }
        }
    }

    pub(crate) fn allow(&self, warnings: &[String]) -> Value {
        let mut response = json!({ "uid": self.uid, "allowed": true });
        if !warnings.is_empty()
            && let Some(response) = response.as_object_mut()
        {
            response.insert("warnings".to_owned(), warnings.into());
        }
        answer(response)
    }

    pub(crate) fn refuse(&self, why: &No) -> Value {
        let (code, reason, message) = match why {
            No::Bad(message) => (400, "BadRequest", message),
            No::Forbidden(message) => (403, "Forbidden", message),
            No::Unanswered(message) => (500, "InternalError", message),
        };
        let status =
            json!({ "status": "Failure", "code": code, "reason": reason, "message": message });
        answer(json!({ "uid": self.uid, "allowed": false, "status": status }))
    }
}

/// Kinds of refusal.
pub(crate) enum No {
    /// The object is wrong.
    Bad(String),
    /// The user may not.
    Forbidden(String),
    /// Nobody could tell whether the user may.
    Unanswered(String),
}

fn answer(response: Value) -> Value {
    json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response })
}

#[cfg(test)]
mod tests;
