//! Paths that are no resources: versions, health, discovery, OpenAPI, metrics, backups.

use axum::response::Response;
use http::header;
use serde_json::json;
use std::sync::Arc;

use super::{Asked, documents, health, respond};
use crate::discovery;
use crate::negotiate::{self, Endpoint, View};
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
    let reads = matches!(&*asked.info.verb, "get" | "head");
    let document = match parts.as_slice() {
        ["version"] => Some(version()),
        [probe @ ("healthz" | "livez" | "readyz"), check @ ..] => {
            return Ok(health::answer(asked, probe, check).unwrap_or_else(no_such_page));
        }
        // All there is, secrets too: a role must name this path, the right to all paths is not enough.
        ["backup"] if reads => return Ok(respond::binary(server.objects.store().backup())),
        ["metrics"] => return Ok(respond::text(200, &server.metrics.render(server))),
        ["api"] if aggregated(asked) => return Ok(documents::discovered(server, asked, true)),
        ["apis"] if aggregated(asked) => return Ok(documents::discovered(server, asked, false)),
        ["api"] => Some(discovery::api_versions("")),
        ["apis"] => Some(discovery::group_list(types.all())),
        ["apis", group] => discovery::group(types.all(), group),
        ["api", version] => discovery::resource_list(types.all(), "", version),
        ["apis", group, version] => discovery::resource_list(types.all(), group, version),
        [".well-known", "openid-configuration"] | ["openid", "v1", "jwks"] if reads => {
            return Ok(documents::token_issuer(server, asked).unwrap_or_else(no_such_page));
        }
        ["openapi", "v3", rest @ ..] => {
            return Ok(documents::openapi_v3(server, asked, &rest.join("/")));
        }
        [""] | [] => Some(json!({ "paths": ["/api", "/apis", "/healthz", "/livez", "/metrics",
            "/openapi/v3", "/readyz", "/version"] })),
        _ => None,
    };
    let reads_only =
        document.is_some() || matches!(parts.as_slice(), [".well-known" | "openid", ..]);
    // Only the root answers to those who want the headers of a document alone.
    let gets = asked.info.verb == "get" || (reads && matches!(parts.as_slice(), [""] | []));
    if reads_only && !gets {
        return Err(Status::no_such_method());
    }
    match (document, parts.as_slice()) {
        (Some(document), _) => {
            let accepted = negotiate::answer(asked.header(header::ACCEPT), Endpoint::Plain)?;
            Ok(respond::value(200, accepted.format, &document))
        }
        (None, ["api" | "version", ..]) => Err(Status::no_such_path()),
        (None, ["apis", group, ..]) => absent(&types, group),
        (None, _) => Ok(no_such_page()),
    }
}

/// Nothing is there. Groups of built-in kinds say it as Kubernetes does, all others as any web
/// server.
pub(super) fn absent(types: &Types, group: &str) -> Result<Response, Status> {
    let known = types.all().iter().any(|ty| &*ty.group == group && ty.origin == Origin::Builtin);
    match known {
        true => Err(Status::no_such_path()),
        false => Ok(no_such_page()),
    }
}

fn no_such_page() -> Response {
    respond::text(404, "404 page not found\n")
}

/// Whether the client would rather have all groups in one document.
fn aggregated(asked: &Asked) -> bool {
    negotiate::answer(asked.header(header::ACCEPT), Endpoint::Discovery)
        .is_ok_and(|answer| answer.view == View::AggregatedDiscovery)
}

pub(crate) fn version() -> serde_json::Value {
    json!({
        "major": "1", "minor": "36", "emulationMajor": "1", "emulationMinor": "36",
        "minCompatibilityMajor": "1", "minCompatibilityMinor": "35",
        "gitVersion": GIT_VERSION, "gitCommit": "", "gitTreeState": "clean", "buildDate": "",
        "goVersion": "", "compiler": "rustc", "platform": "linux/amd64",
    })
}
