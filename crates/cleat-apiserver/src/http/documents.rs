//! Documents that clients keep: OpenAPI and aggregated discovery, each under a tag that changes with
//! its content.

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use jiff::SignedDuration;

use super::{Asked, respond};
use crate::discovery;
use crate::negotiate::{self, Endpoint, Format};
use crate::server::Inner;

/// How long a client may keep what it fetched under its hash: a year.
const KEPT_FOR: SignedDuration = SignedDuration::from_hours(365 * 24);

/// `/api` (`core`) or `/apis` in one document for all groups.
pub(super) fn discovered(server: &Inner, asked: &Asked, core: bool) -> Response {
    let types = server.types();
    let document = types.aggregated(core);
    let mut response =
        respond::response(200, discovery::AGGREGATED, Body::from(document.body.clone()));
    set(&mut response, header::CACHE_CONTROL, "public");
    tagged(response, asked, &document.hash)
}

/// Everything below `/openapi/v3`.
pub(super) fn openapi_v3(server: &Inner, asked: &Asked, path: &str) -> Response {
    let types = server.types();
    let documents = types.openapi();
    if path.is_empty() {
        return respond::text(200, &documents.index().to_string());
    }
    let Some(document) = documents.get(path) else { return respond::empty(404) };
    let accepted = negotiate::answer(asked.header(header::ACCEPT), Endpoint::Plain);
    if !accepted.is_ok_and(|answer| answer.format == Format::Json) {
        let mut response = respond::empty(406);
        set(&mut response, header::VARY, "Accept");
        return response;
    }
    let asked_hash = asked.query.text("hash");
    if !asked_hash.is_empty() && asked_hash != document.hash {
        let mut response = respond::response(301, "application/json", Body::empty());
        let place = format!("/openapi/v3/{path}?hash={}", document.hash);
        set(&mut response, header::LOCATION, &place);
        return tagged(response, asked, &document.hash);
    }
    let body = Body::from(Bytes::clone(&document.body));
    let mut response = respond::response(200, "application/json", body);
    if !asked_hash.is_empty() {
        set(&mut response, header::CACHE_CONTROL, "public, immutable");
        let kept_until = server.clock.now().checked_add(KEPT_FOR);
        if let Ok(until) = kept_until {
            let until = until.strftime("%a, %d %b %Y %H:%M:%S UTC").to_string();
            set(&mut response, header::EXPIRES, &until);
        }
    }
    tagged(response, asked, &document.hash)
}

/// Who signs this server's tokens, and with which keys. `None` if nobody does.
pub(super) fn token_issuer(server: &Inner, asked: &Asked) -> Option<Response> {
    let tokens = server.authenticator.service_accounts()?;
    let (media, document) = match asked.info.path.starts_with("/openid") {
        true => ("application/jwk-set+json", tokens.key().jwks()),
        false => {
            let keys = format!("https://{}/openid/v1/jwks", asked.header(header::HOST));
            ("application/json", tokens.openid_configuration(&keys))
        }
    };
    let mut response = respond::response(200, media, Body::from(document.to_string()));
    set(&mut response, header::CACHE_CONTROL, "public, max-age=3600");
    Some(response)
}

/// Names what a document's content is, and leaves the content out for who has it already.
fn tagged(mut response: Response, asked: &Asked, hash: &str) -> Response {
    let tag = format!("\"{hash}\"");
    set(&mut response, header::VARY, "Accept");
    set(&mut response, header::ETAG, &tag);
    let known = asked.header(header::IF_NONE_MATCH);
    if response.status() == StatusCode::OK && known.split(',').any(|known| known.trim() == tag) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        *response.body_mut() = Body::empty();
        response.headers_mut().remove(header::CONTENT_TYPE);
    }
    response
}

fn set(response: &mut Response, name: header::HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}
