//! Paths that are no resources: versions, health, discovery, OpenAPI, metrics.

use axum::response::Response;
use http::header;
use serde_json::json;
use std::sync::Arc;

use super::{Asked, respond};
use crate::discovery;
use crate::negotiate::Format;
use crate::resource::Origin;
use crate::server::Inner;
use crate::status::Status;
use crate::types::Types;

/// What `kubectl version` shows; the API is that of this Kubernetes release.
pub(crate) const GIT_VERSION: &str = concat!("v1.36.4+cleat.", env!("CARGO_PKG_VERSION"));

pub(super) fn answer(server: &Arc<Inner>, asked: &Asked) -> Result<Response, Status> {
    let path = asked.info.path.trim_end_matches('/');
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    let types = server.types();
    let aggregated = discovery::wants_aggregated(asked.header(header::ACCEPT));
    let format = respond::format(asked);
    let document = match parts.as_slice() {
        ["version"] => Some(version()),
        ["healthz" | "livez" | "readyz", ..] => return Ok(respond::text(200, "ok")),
        ["metrics"] => return Ok(respond::text(200, &server.metrics.render(server))),
        ["api"] if aggregated => return Ok(discovered(discovery::aggregated_core(types.all()))),
        ["apis"] if aggregated => return Ok(discovered(discovery::aggregated_groups(types.all()))),
        ["api"] => Some(discovery::api_versions("")),
        ["apis"] => Some(discovery::group_list(types.all())),
        ["apis", group] => discovery::group(types.all(), group),
        ["api", version] => discovery::resource_list(types.all(), "", version),
        ["apis", group, version] => discovery::resource_list(types.all(), group, version),
        ["openapi", "v3", ..] => return openapi_v3(server, path),
        [""] | [] => Some(json!({ "paths": ["/api", "/apis", "/healthz", "/livez", "/metrics",
            "/openapi/v3", "/readyz", "/version"] })),
        _ => None,
    };
    if document.is_some() && !matches!(&*asked.info.verb, "get" | "head") {
        return Err(Status::no_such_method());
    }
    match (document, parts.as_slice()) {
        (Some(document), _) => Ok(respond::value(200, format, &document)),
        (None, ["api", ..]) => Err(Status::no_such_path()),
        (None, ["apis", group, ..]) => absent(&types, group),
        (None, _) => Ok(respond::text(404, "404 page not found\n")),
    }
}

/// Nothing is there. Groups of built-in kinds say it as Kubernetes does, all others as any web
/// server.
pub(super) fn absent(types: &Types, group: &str) -> Result<Response, Status> {
    let known = types.all().iter().any(|ty| &*ty.group == group && ty.origin == Origin::Builtin);
    match known {
        true => Err(Status::no_such_path()),
        false => Ok(respond::text(404, "404 page not found\n")),
    }
}

fn discovered(document: serde_json::Value) -> Response {
    let mut response = respond::value(200, Format::Json, &document);
    let kind = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    response.headers_mut().insert(header::CONTENT_TYPE, http::HeaderValue::from_static(kind));
    response
}

fn version() -> serde_json::Value {
    json!({
        "major": "1", "minor": "36", "emulationMajor": "1", "emulationMinor": "36",
        "minCompatibilityMajor": "1", "minCompatibilityMinor": "35",
        "gitVersion": GIT_VERSION, "gitCommit": "", "gitTreeState": "clean", "buildDate": "",
        "goVersion": "", "compiler": "rustc", "platform": "linux/amd64",
    })
}

fn openapi_v3(server: &Inner, path: &str) -> Result<Response, Status> {
    let types = server.types();
    let documents = types.openapi();
    let path = path.trim_start_matches("/openapi/v3").trim_matches('/');
    if path.is_empty() {
        return Ok(respond::value(200, Format::Json, &documents.index()));
    }
    let document = documents.get(path).ok_or_else(Status::no_such_path)?;
    Ok(respond::document(&document.body, &document.hash))
}
