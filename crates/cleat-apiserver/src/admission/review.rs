//! AdmissionReviews: the question, and what an answer means.

use std::{borrow::Cow, collections::BTreeMap};

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{GroupVersionKind, Request, configuration::ReviewVersion, matching::Invocation};
use crate::{
    quote::quoted,
    rules::read::Read as _,
    status::{Cause, Details, Status},
};

/// The `request` of a review.
pub(super) fn request(uid: &str, request: &Request<'_>, shown: &Invocation) -> Value {
    let mut out = Map::new();
    let kind = |kind: &GroupVersionKind| json!({"group": kind.group, "version": kind.version, "kind": kind.kind});
    let resource = |resource: &super::GroupVersionResource| json!({"group": resource.group, "version": resource.version, "resource": resource.resource});
    let mut put = |key: &str, value: Value| {
        out.insert(key.to_owned(), value);
    };
    put("uid", uid.into());
    put("kind", kind(&shown.kind));
    put("resource", resource(&shown.resource));
    put("requestKind", kind(&request.kind));
    put("requestResource", resource(&request.resource));
    for (key, text) in [
        ("subResource", request.subresource),
        ("requestSubResource", request.subresource),
        ("name", request.name),
        ("namespace", request.namespace),
    ] {
        if !text.is_empty() {
            put(key, text.into());
        }
    }
    put("operation", request.operation.as_str().into());
    put("userInfo", request.user.to_json());
    let object = |converted: &Option<Value>, given: Option<&Value>| {
        converted.clone().or_else(|| given.cloned()).unwrap_or(Value::Null)
    };
    put("object", object(&shown.object, request.object));
    put("oldObject", object(&shown.old_object, request.old_object));
    put("dryRun", request.dry_run.into());
    put("options", request.options.cloned().unwrap_or(Value::Null));
    Value::Object(out)
}

/// The whole question.
pub(super) fn question(version: ReviewVersion, request: Value) -> Value {
    let version = version.api_version();
    json!({"kind": "AdmissionReview", "apiVersion": version, "request": request})
}

/// A valid answer.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Answer {
    pub(super) allowed: bool,
    pub(super) status: Option<Value>,
    pub(super) warnings: Vec<String>,
    pub(super) annotations: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    response: Option<Response>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Response {
    #[serde(default)]
    uid: String,
    #[serde(default)]
    allowed: bool,
    status: Option<Value>,
    patch: Option<String>,
    patch_type: Option<String>,
    audit_annotations: Option<BTreeMap<String, String>>,
    warnings: Option<Vec<String>>,
}

/// Reads an answer. The error says what is invalid about it.
pub(super) fn answer(version: ReviewVersion, uid: &str, review: Value) -> Result<Answer, String> {
    let review: Review = serde_json::from_value(review).map_err(|error| error.to_string())?;
    let Some(response) = review.response else {
        return Err("webhook response was absent".to_owned());
    };
    // The older form was never checked.
    if version == ReviewVersion::V1 {
        if response.uid != uid {
            let (want, got) = (quoted(uid), quoted(&response.uid));
            return Err(format!("expected response.uid={want}, got {got}"));
        }
        let (group, version) =
            review.api_version.split_once('/').unwrap_or(("", review.api_version.as_str()));
        let got = GroupVersionKind {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: review.kind,
        };
        let want = "admission.k8s.io/v1, Kind=AdmissionReview";
        if got.to_string() != want {
            return Err(format!("expected webhook response of {want}, got {got}"));
        }
        if response.patch.is_some_and(|patch| !patch.is_empty()) {
            return Err("validating webhook may not return response.patch".to_owned());
        }
        if response.patch_type.is_some() {
            return Err("validating webhook may not return response.patchType".to_owned());
        }
    }
    Ok(Answer {
        allowed: response.allowed,
        status: response.status,
        warnings: response.warnings.unwrap_or_default(),
        annotations: response.audit_annotations.unwrap_or_default(),
    })
}

/// The refusal a webhook's `status` becomes.
pub(super) fn refusal(webhook: &str, status: Option<&Value>) -> Status {
    let none = Value::Null;
    let given = status.unwrap_or(&none);
    let denied = format!("admission webhook {} denied the request", quoted(webhook));
    let message = match (given.text("message"), given.text("reason")) {
        ("", "") => format!("{denied} without explanation"),
        ("", reason) => format!("{denied}: {reason}"),
        (message, _) => format!("{denied}: {message}"),
    };
    let code = given.number("code").and_then(|code| u16::try_from(code).ok());
    Status {
        code: code.filter(|code| *code >= 400).unwrap_or(400),
        reason: Cow::Owned(given.text("reason").to_owned()),
        message,
        details: Box::new(details(given.at("details"))),
    }
}

fn details(given: &Value) -> Details {
    let cause = |cause: &Value| Cause {
        reason: Cow::Owned(cause.text("reason").to_owned()),
        message: cause.text("message").to_owned(),
        field: cause.text("field").to_owned(),
    };
    let retry = given.number("retryAfterSeconds").and_then(|seconds| seconds.try_into().ok());
    Details {
        name: given.text("name").to_owned(),
        group: given.text("group").to_owned(),
        kind: given.text("kind").to_owned(),
        uid: given.text("uid").to_owned(),
        causes: given.list("causes").iter().map(cause).collect(),
        retry_after_seconds: retry.unwrap_or_default(),
        always: given.is_object(),
    }
}

impl ReviewVersion {
    fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "admission.k8s.io/v1",
            Self::V1Beta1 => "admission.k8s.io/v1beta1",
        }
    }
}
