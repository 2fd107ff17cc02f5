//! From an HTTP request to an answer: who asks, may they, what for, and in which form.
//!
//! The verbs do the work; this is the only part of the server that knows HTTP.

pub(crate) mod dispatch;
mod documents;
mod health;
pub(crate) mod paths;
mod respond;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use http_body::Body as _;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tower::Service;

use crate::audit::{Notes, Record};
use crate::authn::{self, Credentials, PeerIdentity};
use crate::authz::{self, Attributes, Authorize as _, ResourceTarget, Target};
use crate::metrics::{InFlight, Lasting, Metrics};
use crate::negotiate::{self, BodyFormat};
use crate::path::{self, PathError, RequestInfo};
use crate::priority::Claim;
use crate::query::Query;
use crate::server::Inner;
use crate::status::Status;
use crate::tls::Peer;
use crate::user::User;

/// The most a request may carry.
const LARGEST_BODY: usize = 3 << 20;

/// Everything the server answers, behind one handler that reads the path itself: there is nothing to
/// route, and no router in front of it.
#[derive(Clone)]
pub struct Api {
    server: Arc<Inner>,
    /// Whose requests those are that come without credentials.
    owner: Option<Arc<User>>,
}

impl Api {
    pub(crate) fn new(server: Arc<Inner>, owner: Option<User>) -> Self {
        Self { server, owner: owner.map(Arc::new) }
    }
}

impl<B> Service<http::Request<B>> for Api
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<axum::BoxError>,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let Self { server, owner } = self.clone();
        let request = request.map(Body::new);
        Box::pin(async move { Ok(handle(server, owner.as_deref(), request).await) })
    }
}

/// A request that has been understood, but not answered.
pub(crate) struct Asked {
    /// Path and query, as on the wire.
    pub(crate) uri: String,
    pub(crate) info: RequestInfo,
    pub(crate) query: Query,
    pub(crate) headers: HeaderMap,
    pub(crate) user: User,
    pub(crate) body: Bytes,
    /// Only the headers of the answer are wanted.
    pub(crate) head: bool,
    /// What the audit log is told beside.
    pub(crate) notes: Arc<Notes>,
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
        uri: parts.uri.path_and_query().map_or_else(String::new, ToString::to_string),
        info,
        query,
        headers: parts.headers,
        user: User::anonymous(),
        body: Bytes::new(),
        head,
        notes: Arc::default(),
    };
    let in_flight = Metrics::begin(&server, &asked);
    let peer = parts.extensions.get::<Arc<Peer>>();
    let identity = peer.and_then(|peer| peer.identity.as_ref());
    let requester = authenticate(&server, owner, identity, &asked);
    let mut record = match &server.audit {
        Some(audit) => {
            let address = peer.map(|peer| peer.address.ip().to_string());
            Record::begin(audit, &server.clock, &asked, requester.as_ref().ok(), address).await
        }
        None => None,
    };
    let answer = match requester {
        Err(status) => Err(status),
        Ok(requester) => serve(&server, requester, &mut asked, body, record.as_mut()).await,
    };
    let refused = answer.as_ref().err().cloned();
    let mut response = answer.unwrap_or_else(|status| respond::refusal(&asked, &status));
    if asked.head {
        *response.body_mut() = Body::empty();
    }
    let code = response.status().as_u16();
    let working = Working { in_flight, code, begun };
    if asked.info.verb == "watch" && refused.is_none() {
        return streamed(working.in_flight.lasts(), record, response).await;
    }
    if !is_made(&response) {
        response = holding(working, response);
    }
    match record {
        None => response,
        Some(record) => logged(record, refused.as_ref(), response).await,
    }
}

/// Everything between knowing who asks and having an answer.
async fn serve(
    server: &Arc<Inner>,
    requester: User,
    asked: &mut Asked,
    body: Body,
    mut record: Option<&mut Record>,
) -> Result<Response, Status> {
    let claim = Claim::of(&requester, &asked.info);
    admit(server, requester, asked, record.as_deref_mut())?;
    asked.body = collect(body).await?;
    if let Some(record) = record {
        record.received(asked);
    }
    // Not earlier: whoever is slow to send what they want keeps nobody else from a seat meanwhile.
    let seat = server.priority.seat(claim).await?;
    let response = answer(server, asked).await?;
    // A watch would have its seat for ever.
    let done = is_made(&response) || asked.info.verb == "watch";
    Ok(if done { response } else { holding(seat, response) })
}

/// Whether the answer is there. What is made only as it is sent is work until then.
fn is_made(response: &Response) -> bool {
    response.body().size_hint().exact().is_some()
}

/// A request, until its answer is made: only then is it known how long that took.
struct Working {
    in_flight: InFlight,
    code: u16,
    begun: tokio::time::Instant,
}

impl Drop for Working {
    fn drop(&mut self) {
        self.in_flight.answered(self.code, self.begun.elapsed());
    }
}

/// A response that keeps hold of something until its body has been sent, or nobody wants it any more.
fn holding(held: impl Send + 'static, response: Response) -> Response {
    let held = Held(held);
    response.map(|body| Body::new(body.map_frame(move |frame| held.pass(frame))))
}

struct Held<T>(T);

impl<T> Held<T> {
    /// Changes nothing; whoever passes frames through this keeps it.
    fn pass<F>(&self, frame: F) -> F {
        frame
    }
}

/// A response whose end is noted when its stream ends, whoever ends that.
async fn streamed(
    lasting: Lasting,
    mut record: Option<Record>,
    mut response: Response,
) -> Response {
    if let Some(record) = &mut record {
        name_in_log(record, &mut response);
        record.started(response.status().as_u16()).await;
    }
    holding(Streaming { record, _lasting: lasting }, response)
}

/// Tells the client under which name the log has its request.
fn name_in_log(record: &Record, response: &mut Response) {
    if let Ok(id) = HeaderValue::from_str(record.id()) {
        response.headers_mut().insert("audit-id", id);
    }
}

/// Notes in the log how a request was answered.
async fn logged(record: Record, refused: Option<&Status>, mut response: Response) -> Response {
    name_in_log(&record, &mut response);
    let code = response.status().as_u16();
    if !record.wants_answer() {
        record.end(code, refused, None).await;
        return response;
    }
    let (parts, body) = response.into_parts();
    // It lies in memory already, or is made from what does.
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    record.end(code, refused, Some(&body)).await;
    Response::from_parts(parts, Body::from(body))
}

/// What a stream holds on to while it lasts.
struct Streaming {
    record: Option<Record>,
    _lasting: Lasting,
}

impl Drop for Streaming {
    fn drop(&mut self) {
        if let Some(record) = self.record.take() {
            record.streamed();
        }
    }
}

/// Who asks.
fn authenticate(
    server: &Inner,
    owner: Option<&User>,
    peer: Option<&PeerIdentity>,
    asked: &Asked,
) -> Result<User, Status> {
    let authorization = asked.headers.get(header::AUTHORIZATION);
    match (owner, authorization) {
        (Some(owner), None) => Ok(owner.clone()),
        _ => {
            let authorization = authorization.and_then(|value| value.to_str().ok());
            let credentials = Credentials { peer, authorization };
            server.authenticator.authenticate(credentials, server.clock.now(), server)
        }
    }
}

/// As whom they ask, and whether they may.
fn admit(
    server: &Inner,
    requester: User,
    asked: &mut Asked,
    record: Option<&mut Record>,
) -> Result<(), Status> {
    let attributes = attributes(&asked.info);
    let kept = record.is_some();
    let habits = server.authenticator.habits();
    asked.user = match authn::impersonate(&asked.headers, &requester, &attributes, server, habits)?
    {
        Some(user) => {
            if let Some(record) = record {
                record.impersonated(&user);
            }
            user
        }
        None => requester,
    };
    let decision = server.with_rbac(|rbac| rbac.authorize(&asked.user, &attributes));
    if kept {
        let word = if decision.allowed { "allow" } else { "forbid" };
        asked.notes.add([
            ("authorization.k8s.io/decision".to_owned(), word.to_owned()),
            ("authorization.k8s.io/reason".to_owned(), decision.reason.clone()),
        ]);
    }
    match decision.allowed {
        true => Ok(()),
        false => Err(authz::forbidden(&asked.user, &attributes, &decision.reason)),
    }
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
