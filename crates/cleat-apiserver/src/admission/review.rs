//! AdmissionReviews: the question, and what an answer means.

use std::{borrow::Cow, collections::BTreeMap};

use base64::{DecodeError, Engine as _, engine::general_purpose::STANDARD as BASE64};
use serde_json::{Map, Value, json};

use super::{GroupVersionKind, Phase, Request, configuration::ReviewVersion, matching::Invocation};
use crate::{
    gojson::json_type,
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
    /// A JSON patch, of mutating webhooks only.
    pub(super) patch: Option<Vec<u8>>,
    pub(super) warnings: Vec<String>,
    pub(super) annotations: BTreeMap<String, String>,
}

/// Why an answer is none, in the two ways upstream tells apart.
#[derive(Debug, PartialEq)]
pub(super) enum Bad {
    /// It cannot be read as a review.
    Unreadable(String),
    /// It can, but says what it must not.
    Invalid(String),
    /// It brings a patch of a kind nobody knows.
    Patch(String),
}

/// Reads an answer.
pub(super) fn answer(
    phase: Phase,
    version: ReviewVersion,
    uid: &str,
    review: &Value,
) -> Result<Answer, Bad> {
    check_shape(version, review).map_err(Bad::Unreadable)?;
    let response = review.at("response");
    if response.is_null() {
        return Err(Bad::Invalid("webhook response was absent".to_owned()));
    }
    let patch = patch(response).map_err(Bad::Unreadable)?;
    // The older form was never checked, and knows one type of patch only.
    if version == ReviewVersion::V1 {
        check_response(uid, review).map_err(Bad::Invalid)?;
        check_patch(phase, response).map_err(Bad::Invalid)?;
    }
    let kind = response.text("patchType");
    let unknown = version == ReviewVersion::V1 && kind != "JSONPatch";
    if phase == Phase::Mutating && patch.is_some() && unknown && response.flag("allowed") {
        return Err(Bad::Patch(format!("unsupported patch type {}", quoted(kind))));
    }
    let texts = |values: &[Value]| {
        values.iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
    };
    let annotations = response.map("auditAnnotations").into_iter().flatten();
    Ok(Answer {
        allowed: response.flag("allowed"),
        status: Some(response.at("status")).filter(|status| !status.is_null()).cloned(),
        patch: patch.filter(|_| phase == Phase::Mutating),
        warnings: texts(response.list("warnings")),
        annotations: annotations
            .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
            .collect(),
    })
}

/// Refuses what Go could not decode, in Go's words.
fn check_shape(version: ReviewVersion, review: &Value) -> Result<(), String> {
    if !review.is_object() {
        let given = json_type(review);
        return Err(format!(
            "couldn't get version/kind; json parse error: json: cannot unmarshal {given} into Go \
             value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; \
             Kind string \"json:\\\"kind,omitempty\\\"\" }}"
        ));
    }
    let (given, kind) = (review.text("apiVersion"), review.text("kind"));
    let wanted = version.api_version();
    if !given.is_empty() && !kind.is_empty() && (given != wanted || kind != "AdmissionReview") {
        let short = |version: &str| version.rsplit('/').next().unwrap_or_default().to_owned();
        let known = ["admission.k8s.io/v1", "admission.k8s.io/v1beta1"].contains(&given);
        if known && kind == "AdmissionReview" {
            let (from, to) = (short(given), short(wanted));
            return Err(format!(
                "converting ({from}.AdmissionReview) to ({to}.AdmissionReview): unknown conversion"
            ));
        }
        let (kind, given) = (quoted(kind), quoted(given));
        return Err(format!(
            "no kind {kind} is registered for version {given} in scheme \
             \"pkg/runtime/scheme.go:111\""
        ));
    }
    let response = review.at("response");
    let wrong = |value: &Value, field: &str, kind: &str| {
        let given = json_type(value);
        Err(format!("json: cannot unmarshal {given} into Go struct field {field} of type {kind}"))
    };
    if !response.is_object() && !response.is_null() {
        return wrong(response, "AdmissionReview.response", "v1.AdmissionResponse");
    }
    for (key, expected, kind) in [
        ("uid", "string", "types.UID"),
        ("allowed", "bool", "bool"),
        ("status", "object", "v1.Status"),
        ("patch", "string", "[]uint8"),
        ("patchType", "string", "v1.PatchType"),
        ("auditAnnotations", "object", "map[string]string"),
        ("warnings", "array", "[]string"),
    ] {
        let value = response.at(key);
        if !value.is_null() && json_type(value) != expected {
            return wrong(value, &format!("AdmissionResponse.response.{key}"), kind);
        }
    }
    Ok(())
}

fn check_response(uid: &str, review: &Value) -> Result<(), String> {
    let response = review.at("response");
    let given = response.text("uid");
    if given != uid {
        return Err(format!("expected response.uid={}, got {}", quoted(uid), quoted(given)));
    }
    let (group, version) =
        review.text("apiVersion").split_once('/').unwrap_or(("", review.text("apiVersion")));
    let got = GroupVersionKind {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: review.text("kind").to_owned(),
    };
    let want = "admission.k8s.io/v1, Kind=AdmissionReview";
    if got.to_string() != want {
        return Err(format!("expected webhook response of {want}, got {got}"));
    }
    Ok(())
}

/// The patch of an answer, if it has one that is not empty.
fn patch(response: &Value) -> Result<Option<Vec<u8>>, String> {
    let given = response.text("patch");
    let patch = BASE64.decode(given).map_err(|error| {
        let at = match error {
            DecodeError::InvalidByte(at, _) | DecodeError::InvalidLastSymbol(at, _) => at,
            _ => given.len(),
        };
        format!("illegal base64 data at input byte {at}")
    })?;
    Ok(Some(patch).filter(|patch| !patch.is_empty()))
}

fn check_patch(phase: Phase, response: &Value) -> Result<(), String> {
    let patched = !response.text("patch").is_empty();
    let kind = response.at("patchType").as_str();
    match (phase, patched, kind) {
        (Phase::Validating, true, _) => {
            Err("validating webhook may not return response.patch".to_owned())
        }
        (Phase::Validating, false, Some(_)) => {
            Err("validating webhook may not return response.patchType".to_owned())
        }
        (Phase::Mutating, true, None) => {
            Err("webhook returned response.patch but not response.patchType".to_owned())
        }
        (Phase::Mutating, false, Some(_)) => {
            Err("webhook returned response.patchType but not response.patch".to_owned())
        }
        (Phase::Mutating, true, Some("")) => {
            Err("webhook returned invalid response.patchType of \"\"".to_owned())
        }
        _ => Ok(()),
    }
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
        continue_token: String::new(),
        warnings: Vec::new(),
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
