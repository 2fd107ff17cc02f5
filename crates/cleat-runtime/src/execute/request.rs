//! Actions as HTTP requests. Pure: nothing is sent here.

use cleat_core::id::Target;
use cleat_core::write::{Action, Propagation, Write};
use http::{Method, Request, header};
use serde_json::{Value, json};

use crate::path::{self, BadSegment};

/// How a write is asked for, beyond what is to be written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asking {
    /// The server does everything but the last: nothing is stored.
    pub dry_run: bool,
    pub impersonated: Option<Impersonated>,
}

/// In whose name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Impersonated {
    pub user: String,
    pub groups: Vec<String>,
}

impl Impersonated {
    /// A service account, with the groups that its tokens would give it.
    pub fn service_account(namespace: &str, name: &str) -> Self {
        Self {
            user: format!("system:serviceaccount:{namespace}:{name}"),
            groups: vec![
                "system:serviceaccounts".to_owned(),
                format!("system:serviceaccounts:{namespace}"),
                "system:authenticated".to_owned(),
            ],
        }
    }
}

/// Why a request was not even sent.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unsendable {
    #[error(transparent)]
    Path(#[from] BadSegment),
    #[error("a delete must say which incarnation it means, by its UID")]
    NoUid,
    #[error("cannot be sent as an HTTP request")]
    Http(#[source] http::Error),
    #[error("cannot be written as JSON")]
    Json(#[source] serde_json::Error),
}

pub(super) fn read(
    target: &Target,
    user_agent: Option<&str>,
) -> Result<Request<Vec<u8>>, Unsendable> {
    let mut request = Request::get(path::object(target)?).header(header::ACCEPT, JSON);
    if let Some(user_agent) = user_agent {
        request = request.header(header::USER_AGENT, user_agent);
    }
    request.body(Vec::new()).map_err(Unsendable::Http)
}

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";
/// JSON is YAML.
const APPLY: &str = "application/apply-patch+yaml";

pub(super) fn write(
    action: &Action,
    asking: &Asking,
    field_manager: Option<&str>,
    user_agent: Option<&str>,
    strict: bool,
) -> Result<Request<Vec<u8>>, Unsendable> {
    let target = &action.target;
    let options;
    let (method, mut uri, media, body) = match &action.write {
        Write::Create(object) => (Method::POST, path::collection(target)?, JSON, object),
        Write::Replace(object) => (Method::PUT, path::object(target)?, JSON, object),
        Write::Apply { object, .. } => (Method::PATCH, path::object(target)?, APPLY, object),
        Write::Merge(patch) => (Method::PATCH, path::object(target)?, MERGE, patch),
        Write::MergeStatus(patch) => {
            (Method::PATCH, path::object(target)? + "/status", MERGE, patch)
        }
        Write::ReplaceStatus(object) => {
            (Method::PUT, path::object(target)? + "/status", JSON, object)
        }
        Write::MergeApproval(patch) => {
            (Method::PATCH, path::object(target)? + "/approval", MERGE, patch)
        }
        Write::Delete { uid, resource_version, propagation } => {
            options =
                delete_options(uid, resource_version.as_deref(), *propagation, asking.dry_run)?;
            (Method::DELETE, path::object(target)?, JSON, &options)
        }
    };

    let manager = match &action.write {
        Write::Apply { manager, .. } => Some(manager.as_str()),
        Write::Delete { .. } => None,
        Write::Create(_)
        | Write::Replace(_)
        | Write::Merge(_)
        | Write::MergeStatus(_)
        | Write::ReplaceStatus(_)
        | Write::MergeApproval(_) => field_manager,
    };
    let mut query = '?';
    let mut ask = |name: &str, value: &str| {
        uri.push_str(&format!("{query}{name}={}", path::query_value(value)));
        query = '&';
    };
    if let Some(manager) = manager {
        ask("fieldManager", manager);
    }
    if let Write::Apply { force: true, .. } = &action.write {
        ask("force", "true");
    }
    if asking.dry_run {
        ask("dryRun", "All");
    }
    match &action.write {
        Write::Create(_) | Write::Replace(_) if strict => ask("fieldValidation", "Strict"),
        // Otherwise a server looks for fields that it does not know, to warn of them, which nobody reads.
        Write::Create(_)
        | Write::Replace(_)
        | Write::Merge(_)
        | Write::MergeStatus(_)
        | Write::ReplaceStatus(_)
        | Write::MergeApproval(_) => ask("fieldValidation", "Ignore"),
        Write::Apply { .. } | Write::Delete { .. } => {}
    }

    let mut request = Request::builder()
        .method(method)
        .uri(uri)
        .header(header::ACCEPT, JSON)
        .header(header::CONTENT_TYPE, media);
    if let Some(user_agent) = user_agent {
        request = request.header(header::USER_AGENT, user_agent);
    }
    if let Some(Impersonated { user, groups }) = &asking.impersonated {
        request = request.header("impersonate-user", user);
        for group in groups {
            request = request.header("impersonate-group", group);
        }
    }
    let body = serde_json::to_vec(body).map_err(Unsendable::Json)?;
    request.body(body).map_err(Unsendable::Http)
}

fn delete_options(
    uid: &str,
    resource_version: Option<&str>,
    propagation: Propagation,
    dry_run: bool,
) -> Result<Value, Unsendable> {
    if uid.is_empty() {
        return Err(Unsendable::NoUid);
    }
    let mut preconditions = json!({ "uid": uid });
    if let (Some(version), Some(map)) = (resource_version, preconditions.as_object_mut()) {
        map.insert("resourceVersion".to_owned(), version.into());
    }
    let policy = match propagation {
        Propagation::Background => "Background",
        Propagation::Orphan => "Orphan",
    };
    let mut options = json!({
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": preconditions,
        "propagationPolicy": policy,
    });
    // A server that is given options looks at no parameters: said there alone, it would be meant.
    if let (true, Some(map)) = (dry_run, options.as_object_mut()) {
        map.insert("dryRun".to_owned(), json!(["All"]));
    }
    Ok(options)
}
