//! From an HTTP request to an answer: who asks, may they, what for, and in which form.
//!
//! The verbs do the work; this is the only part of the server that knows HTTP.

pub(crate) mod dispatch;
mod documents;
mod health;
mod paths;
mod respond;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};

use crate::authn::{self, Credentials, PeerIdentity};
use crate::authz::{Attributes, ResourceTarget, Target};
use crate::negotiate::{self, BodyFormat};
use crate::path::{self, PathError, RequestInfo};
use crate::query::Query;
use crate::server::Inner;
use crate::status::Status;
use crate::tls::Peer;
use crate::user::User;

/// The most a request may carry.
const LARGEST_BODY: usize = 3 << 20;

/// Everything the server answers, behind one handler that reads the path itself.
pub(crate) fn router(server: Arc<Inner>, owner: Option<User>) -> axum::Router {
    let owner = owner.map(Arc::new);
    axum::Router::new().fallback_service(tower::service_fn(move |request: Request| {
        let (server, owner) = (Arc::clone(&server), owner.clone());
        async move { Ok::<_, Infallible>(handle(server, owner.as_deref(), request).await) }
    }))
}

/// A request that has been understood, but not answered.
pub(crate) struct Asked {
    pub(crate) info: RequestInfo,
    pub(crate) query: Query,
    pub(crate) headers: HeaderMap,
    pub(crate) user: User,
    pub(crate) body: Bytes,
    /// Only the headers of the answer are wanted.
    pub(crate) head: bool,
}

impl Asked {
    /// What the body is written in.
    pub(crate) fn media(&self) -> Result<BodyFormat, Status> {
        negotiate::body_format(self.header(header::CONTENT_TYPE))
    }

    pub(crate) fn header(&self, name: header::HeaderName) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

async fn handle(server: Arc<Inner>, owner: Option<&User>, request: Request) -> Response {
    let begun = tokio::time::Instant::now();
    let (parts, body) = request.into_parts();
    let query = Query::parse(parts.uri.query().unwrap_or_default());
    let info = match path::request_info(parts.method.as_str(), parts.uri.path(), &query) {
        Ok(info) => info,
        Err(error @ PathError::NoKind { .. }) => return respond::text(500, &error.to_string()),
        Err(error) => return respond::text(400, &error.to_string()),
    };
    let head = parts.method == http::Method::HEAD;
    let mut asked = Asked {
        info,
        query,
        headers: parts.headers,
        user: User::anonymous(),
        body: Bytes::new(),
        head,
    };
    let peer = parts.extensions.get::<Arc<Peer>>().and_then(|peer| peer.identity.as_ref());
    let answer = match admit(&server, owner, peer, &mut asked) {
        Err(status) => Err(status),
        Ok(()) => match collect(body).await {
            Err(status) => Err(status),
            Ok(body) => {
                asked.body = body;
                answer(&server, &asked).await
            }
        },
    };
    let mut response = answer.unwrap_or_else(|status| respond::refusal(&asked, &status));
    if asked.head {
        *response.body_mut() = Body::empty();
    }
    server.metrics.count(&asked, response.status().as_u16(), begun.elapsed());
    response
}

/// Who asks, and whether they may.
fn admit(
    server: &Inner,
    owner: Option<&User>,
    peer: Option<&PeerIdentity>,
    asked: &mut Asked,
) -> Result<(), Status> {
    let authorization = asked.headers.get(header::AUTHORIZATION);
    asked.user = match (owner, authorization) {
        (Some(owner), None) => owner.clone(),
        _ => {
            let authorization = authorization.and_then(|value| value.to_str().ok());
            let credentials = Credentials { peer, authorization };
            server.authenticator.authenticate(credentials, server.clock.now(), server)?
        }
    };
    let attributes = attributes(&asked.info);
    let requester = std::mem::take(&mut asked.user);
    asked.user = match authn::impersonate(&asked.headers, &requester, &attributes, server)? {
        Some(user) => user,
        None => requester,
    };
    server.authorize(&asked.user, &attributes)
}

fn attributes(info: &RequestInfo) -> Attributes<'_> {
    let target = match info.is_resource {
        false => Target::Path(&info.path),
        true => Target::Resource(ResourceTarget {
            group: &info.group,
            resource: &info.resource,
            subresource: &info.subresource,
            namespace: &info.namespace,
            name: &info.name,
        }),
    };
    Attributes { verb: &info.verb, target }
}

async fn collect(body: Body) -> Result<Bytes, Status> {
    match Limited::new(body, LARGEST_BODY).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            Err(Status::too_large(format!("Request entity too large: limit is {LARGEST_BODY}")))
        }
        Err(error) => Err(Status::bad_request(format!("cannot read the body: {error}"))),
    }
}

async fn answer(server: &Arc<Inner>, asked: &Asked) -> Result<Response, Status> {
    match asked.info.is_resource {
        true => dispatch::resource(server, asked).await,
        false => paths::answer(server, asked),
    }
}
