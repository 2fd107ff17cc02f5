//! The reviews: questions about permission and identity, asked as objects that are never stored.
//!
//! Each takes the object of the request and gives the object of the answer.

use serde_json::{Map, Value, json};

use super::{Attributes, Authorize, Rbac, ResourceTarget, Rule, Target, index::joined};
use crate::{
    authn::Authenticated,
    rules::read::text_at as text,
    status::{FieldError, Status},
    user::User,
};

const GROUP: &str = "authorization.k8s.io";

/// May somebody else do that, anywhere?
pub fn subject_access_review(review: Value, authorizer: &dyn Authorize) -> Result<Value, Status> {
    let mut errors = spec_errors(&review);
    errors.extend(subject_errors(&review));
    metadata_error(&review, &["managedFields"], "must be empty", &mut errors);
    answer(review, &errors, None, authorizer)
}

/// May I do that?
pub fn self_subject_access_review(
    review: Value,
    user: &User,
    authorizer: &dyn Authorize,
) -> Result<Value, Status> {
    let mut errors = spec_errors(&review);
    metadata_error(&review, &["managedFields"], "must be empty", &mut errors);
    answer(review, &errors, Some(user), authorizer)
}

/// May somebody else do that in this namespace (the one of the URL)?
pub fn local_subject_access_review(
    review: Value,
    namespace: &str,
    authorizer: &dyn Authorize,
) -> Result<Value, Status> {
    let mut errors = spec_errors(&review);
    errors.extend(subject_errors(&review));
    let ignored = ["managedFields", "namespace"];
    metadata_error(&review, &ignored, "must be empty except for namespace", &mut errors);
    let own = text(&review, "/metadata/namespace");
    if let Some(attributes) = review.pointer("/spec/resourceAttributes") {
        let asked = text(attributes, "/namespace");
        if asked != own {
            let field = "spec.resourceAttributes.namespace";
            errors.push(FieldError::invalid(field, asked, "must match metadata.namespace"));
        }
    }
    if let Some(attributes) = review.pointer("/spec/nonResourceAttributes") {
        errors.push(FieldError::invalid(
            "spec.nonResourceAttributes",
            shown(attributes),
            "disallowed on this kind of request",
        ));
    }
    if errors.is_empty() && own != namespace {
        return Err(Status::bad_request(format!(
            "spec.resourceAttributes.namespace must match namespace: {namespace}"
        )));
    }
    answer(review, &errors, None, authorizer)
}

/// What may I do in this namespace?
pub fn self_subject_rules_review(
    review: &Value,
    user: &User,
    rbac: &Rbac,
) -> Result<Value, Status> {
    let namespace = text(review, "/spec/namespace");
    if namespace.is_empty() {
        return Err(Status::bad_request("no namespace on request"));
    }
    let (grants, unresolved) = rbac.grants(user, namespace);
    let rules = || grants.iter().copied().flatten();
    let part = |rule: &Rule, keys: &[&str]| {
        let mut rule = rule.to_json();
        if let Some(rule) = rule.as_object_mut() {
            rule.retain(|key, _| keys.contains(&key.as_str()));
        }
        rule
    };
    let resource = |rule| part(rule, &["verbs", "apiGroups", "resources", "resourceNames"]);
    let path = |rule| part(rule, &["verbs", "nonResourceURLs"]);
    let mut status = json!({
        "resourceRules": rules().filter(|r| !r.resources.is_empty()).map(resource).collect::<Value>(),
        "nonResourceRules":
            rules().filter(|r| !r.non_resource_urls.is_empty()).map(path).collect::<Value>(),
        "incomplete": false,
    });
    if !unresolved.is_empty() {
        let errors: Vec<String> = unresolved.into_iter().map(|u| u.listed()).collect();
        if let Some(status) = status.as_object_mut() {
            status.insert("evaluationError".into(), joined(&errors).into());
        }
    }
    Ok(json!({
        "kind": "SelfSubjectRulesReview",
        "apiVersion": api_version(review, GROUP),
        "metadata": {},
        "spec": {},
        "status": status,
    }))
}

/// Who am I? `now` is the time of the answer, as in `creationTimestamp`.
pub fn self_subject_review(review: &Value, user: &User, now: &str) -> Value {
    json!({
        "kind": "SelfSubjectReview",
        "apiVersion": api_version(review, "authentication.k8s.io"),
        "metadata": {"creationTimestamp": now},
        "status": {"userInfo": user.to_json()},
    })
}

/// Whose token is this? `authenticate` gets the token and the audiences asked for, none meaning
/// the server's own; its error is what the answer says.
pub fn token_review(
    mut review: Value,
    authenticate: impl FnOnce(&str, &[String]) -> Result<Authenticated, String>,
) -> Result<Value, Status> {
    let token = text(&review, "/spec/token");
    if token.is_empty() {
        return Err(Status::bad_request("token is required for TokenReview in authentication"));
    }
    let status = match authenticate(token, &texts(&review, "/spec/audiences")) {
        Ok(Authenticated { user, audiences }) => {
            let mut status = json!({"authenticated": true, "user": user.to_json()});
            if let (false, Some(status)) = (audiences.is_empty(), status.as_object_mut()) {
                status.insert("audiences".into(), json!(audiences));
            }
            status
        }
        Err(error) => json!({"user": {}, "error": error}),
    };
    set_status(&mut review, status);
    Ok(review)
}

fn answer(
    mut review: Value,
    errors: &[FieldError],
    user: Option<&User>,
    authorizer: &dyn Authorize,
) -> Result<Value, Status> {
    if !errors.is_empty() {
        // Upstream has forgotten the kind by then.
        return Err(Status::invalid(GROUP, "", "", errors));
    }
    let user = user.cloned().unwrap_or_else(|| subject(&review));
    let decision = authorizer.authorize(&user, &attributes(&review));
    let mut status = json!({"allowed": decision.allowed});
    if let (false, Some(status)) = (decision.reason.is_empty(), status.as_object_mut()) {
        status.insert("reason".into(), decision.reason.into());
    }
    set_status(&mut review, status);
    Ok(review)
}

fn attributes(review: &Value) -> Attributes<'_> {
    if let Some(asked) = review.pointer("/spec/resourceAttributes") {
        let target = ResourceTarget {
            group: text(asked, "/group"),
            resource: text(asked, "/resource"),
            subresource: text(asked, "/subresource"),
            namespace: text(asked, "/namespace"),
            name: text(asked, "/name"),
        };
        return Attributes { verb: text(asked, "/verb"), target: Target::Resource(target) };
    }
    let verb = text(review, "/spec/nonResourceAttributes/verb");
    Attributes::path(verb, text(review, "/spec/nonResourceAttributes/path"))
}

fn subject(review: &Value) -> User {
    let extra = review.pointer("/spec/extra").and_then(Value::as_object);
    User {
        name: text(review, "/spec/user").to_owned(),
        uid: text(review, "/spec/uid").to_owned(),
        groups: texts(review, "/spec/groups"),
        extra: extra
            .into_iter()
            .flatten()
            .map(|(key, values)| (key.clone(), texts(values, "")))
            .collect(),
    }
}

fn spec_errors(review: &Value) -> Vec<FieldError> {
    let resource = review.pointer("/spec/resourceAttributes").filter(|v| !v.is_null());
    let path = review.pointer("/spec/nonResourceAttributes").filter(|v| !v.is_null());
    let mut errors = Vec::new();
    match (resource, path) {
        (Some(_), Some(path)) => errors.push(FieldError::invalid(
            "spec.nonResourceAttributes",
            shown(path),
            "cannot be specified in combination with resourceAttributes",
        )),
        (None, None) => errors.push(FieldError::invalid(
            "spec.resourceAttributes",
            Value::Null,
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        )),
        _ => {}
    }
    for key in ["fieldSelector", "labelSelector"] {
        let selector = resource.and_then(|r| r.get(key)).filter(|v| !v.is_null());
        let Some(selector) = selector else { continue };
        let at = format!("spec.resourceAttributes.{key}");
        let raw = text(selector, "/rawSelector");
        let requirements = selector.get("requirements").and_then(Value::as_array);
        let none = requirements.is_none_or(Vec::is_empty);
        if !raw.is_empty() && !none {
            errors.push(FieldError::invalid(
                format!("{at}.rawSelector"),
                raw,
                "may not specified at the same time as requirements",
            ));
        }
        if raw.is_empty() && none {
            errors.push(FieldError::required(
                format!("{at}.requirements"),
                format!("when {at} is specified, requirements or rawSelector is required"),
            ));
        }
    }
    errors
}

/// `nonResourceAttributes` as upstream's messages show them: by the names of its own fields.
fn shown(attributes: &Value) -> Value {
    json!({"Path": text(attributes, "/path"), "Verb": text(attributes, "/verb")})
}

fn subject_errors(review: &Value) -> Option<FieldError> {
    let none = text(review, "/spec/user").is_empty() && texts(review, "/spec/groups").is_empty();
    none.then(|| {
        FieldError::invalid("spec.user", "", "at least one of user or group must be specified")
    })
}

fn metadata_error(review: &Value, ignored: &[&str], why: &str, errors: &mut Vec<FieldError>) {
    let Some(metadata) = review.get("metadata").and_then(Value::as_object) else { return };
    let set =
        |(key, value): (&String, &Value)| !ignored.contains(&key.as_str()) && !value.is_null();
    if metadata.iter().any(set) {
        errors.push(FieldError::invalid("metadata", Value::Object(metadata.clone()), why));
    }
}

fn set_status(review: &mut Value, status: Value) {
    if let Some(review) = review.as_object_mut() {
        review.entry("metadata").or_insert_with(|| Map::new().into());
        review.insert("status".into(), status);
    }
}

fn api_version(review: &Value, group: &str) -> String {
    match text(review, "/apiVersion") {
        "" => format!("{group}/v1"),
        version => version.to_owned(),
    }
}

fn texts(value: &Value, pointer: &str) -> Vec<String> {
    let values = value.pointer(pointer).and_then(Value::as_array);
    values.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}
