//! `TokenRequest`: a service account's token for the asking, bound to an object or not.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use super::{
    Lookup,
    service_account::{Bound, ServiceAccountTokens, TokenAsk},
};
use crate::{
    quote::quoted,
    rules::read::text_at as text,
    status::{FieldError, GroupResource, Status},
};

/// Answers a `TokenRequest` for a service account (`account`, named in the URL).
pub fn token_request(
    mut request: Value,
    account: &Value,
    tokens: &ServiceAccountTokens,
    now: Timestamp,
    lookup: &dyn Lookup,
) -> Result<Value, Status> {
    let (name, namespace, uid) = (
        text(account, "/metadata/name"),
        text(account, "/metadata/namespace"),
        text(account, "/metadata/uid"),
    );
    let invalid = |subject: &str, error: FieldError| {
        Err(Status::invalid("authentication.k8s.io", "TokenRequest", subject, &[error]))
    };
    for (key, own) in [("name", name), ("namespace", namespace)] {
        let given = text(&request, &format!("/metadata/{key}"));
        if !given.is_empty() && given != own {
            let field = format!("metadata.{key}");
            let why = format!("must match the service account {key} if specified");
            return invalid(name, FieldError::invalid(field, given, why));
        }
    }
    let given = text(&request, "/metadata/uid");
    if !given.is_empty() && given != uid {
        let what = GroupResource { group: "authentication.k8s.io", resource: "TokenRequest" };
        return Err(Status::conflict(
            what,
            name,
            format_args!(
                "the UID in the token request ({given}) does not match the UID of the service account ({uid})"
            ),
        ));
    }
    let seconds = request.pointer("/spec/expirationSeconds").and_then(Value::as_i64);
    let seconds = seconds.unwrap_or(60 * 60);
    if seconds < 600 {
        let why = "may not specify a duration less than 10 minutes";
        return invalid("", FieldError::invalid("spec.expirationSeconds", seconds, why));
    }
    if seconds > 1 << 32 {
        let why = "may not specify a duration larger than 2^32 seconds";
        return invalid("", FieldError::invalid("spec.expirationSeconds", seconds, why));
    }
    let bound = request.pointer("/spec/boundObjectRef").filter(|reference| !reference.is_null());
    let bound = bound.map(|reference| bind(reference, name, namespace, lookup)).transpose()?;
    let mut audiences = request
        .pointer("/spec/audiences")
        .and_then(Value::as_array)
        .map(|all| all.iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>())
        .unwrap_or_default();
    if audiences.is_empty() {
        audiences = tokens.audiences().to_vec();
    }
    let ask = TokenAsk { namespace, name, uid, audiences: &audiences, seconds, bound };
    let token = tokens
        .issue(&ask, now)
        .map_err(|error| Status::internal(format_args!("failed to generate token: {error}")))?;
    let expires = now.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX);
    for (pointer, key, value) in [
        ("", "kind", json!("TokenRequest")),
        ("", "apiVersion", json!("authentication.k8s.io/v1")),
        ("/metadata", "name", json!(name)),
        ("/metadata", "namespace", json!(namespace)),
        ("/metadata", "uid", json!(uid)),
        ("/metadata", "creationTimestamp", json!(seconds_of(now))),
        ("/spec", "audiences", json!(audiences)),
        ("/spec", "expirationSeconds", json!(seconds)),
        ("/spec", "boundObjectRef", request.pointer("/spec/boundObjectRef").cloned().into()),
        ("", "status", json!({"token": token, "expirationTimestamp": seconds_of(expires)})),
    ] {
        set(&mut request, pointer, key, value);
    }
    Ok(request)
}

fn bind(
    reference: &Value,
    account: &str,
    namespace: &str,
    lookup: &dyn Lookup,
) -> Result<Bound, Status> {
    let name = text(reference, "/name");
    let (kind, resource) = match (text(reference, "/apiVersion"), text(reference, "/kind")) {
        ("v1", "Pod") => ("pod", "pods"),
        ("v1", "Node") => ("node", "nodes"),
        ("v1", "Secret") => ("secret", "secrets"),
        (version, kind) => {
            let (group, version) = version.split_once('/').unwrap_or(("", version));
            return Err(Status::bad_request(format!(
                "cannot bind token to object of type {group}/{version}, Kind={kind}"
            )));
        }
    };
    let scope = if kind == "node" { "" } else { namespace };
    let object = lookup
        .get(resource, scope, name)
        .ok_or_else(|| Status::not_found(GroupResource { group: "", resource }, name))?;
    let mut node = None;
    if kind == "pod" {
        if text(&object, "/spec/serviceAccountName") != account {
            return Err(Status::bad_request(format!(
                "cannot bind token for serviceaccount {} to pod running with different serviceaccount name.",
                quoted(account)
            )));
        }
        let on = text(&object, "/spec/nodeName");
        if !on.is_empty() {
            let uid = lookup.get("nodes", "", on);
            let uid = uid.as_deref().map(|node| text(node, "/metadata/uid")).unwrap_or_default();
            node = Some((on.to_owned(), uid.to_owned()));
        }
    }
    let uid = text(&object, "/metadata/uid");
    let wanted = text(reference, "/uid");
    if !wanted.is_empty() && wanted != uid {
        let what = GroupResource { group: "", resource: text(reference, "/kind") };
        return Err(Status::conflict(
            what,
            name,
            format_args!(
                "the UID in the bound object reference ({wanted}) does not match the UID in record. The object might have been deleted and then recreated"
            ),
        ));
    }
    Ok(Bound { kind, name: name.to_owned(), uid: uid.to_owned(), node })
}

fn set(object: &mut Value, pointer: &str, key: &str, value: Value) {
    if let (Some(parent), Some(object)) = (pointer.strip_prefix('/'), object.as_object_mut()) {
        let parent = object.entry(parent).or_insert_with(|| Map::new().into());
        if parent.is_null() {
            *parent = Map::new().into();
        }
    }
    if let Some(parent) = object.pointer_mut(pointer).and_then(Value::as_object_mut) {
        parent.insert(key.to_owned(), value);
    }
}

/// RFC 3339 with whole seconds, as Kubernetes writes times.
fn seconds_of(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()
}
