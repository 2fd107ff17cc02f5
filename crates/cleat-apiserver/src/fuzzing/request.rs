//! Whole requests to a whole server.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use cleat_store::{Limits, Store};
use futures::FutureExt as _;
use http::{Request, header};
use http_body_util::BodyExt as _;
use serde::de::IgnoredAny;
use tower::ServiceExt as _;

use super::parts;
use crate::admission::Admission;
use crate::authn::Authenticator;
use crate::{Config, Server};

/// A server is asked so often, then another one takes its place: what earlier requests left behind
/// makes later ones more interesting, but not for ever.
const ASKED: usize = 500;
/// Some requests wait on purpose, for a revision that is yet to come.
const PATIENCE: Duration = Duration::from_millis(100);
/// How much of an answer is read. A watch never ends.
const PIECES: usize = 50;

/// A request as HTTP/1 has it, with bare line ends: a line, headers, an empty line, a body. It is
/// answered, and what is called JSON is JSON.
pub fn request(bytes: &[u8]) {
    static WORLD: Mutex<Option<World>> = Mutex::new(None);
    let Some(request) = read(bytes) else { return };
    let mut world = WORLD.lock().unwrap_or_else(PoisonError::into_inner);
    // Taken, so that a server that broke is not asked again.
    let mut asked = world.take().filter(|world| world.asked < ASKED).unwrap_or_else(World::new);
    asked.ask(request);
    *world = Some(asked);
}

fn read(bytes: &[u8]) -> Option<Request<Body>> {
    let (head, body) = parts(bytes).unwrap_or((bytes, &[][..]));
    let mut lines = str::from_utf8(head).ok()?.lines();
    let (method, uri) = lines.next()?.split_once(' ')?;
    let mut request = Request::builder().method(method).uri(uri);
    for line in lines {
        let (name, value) = line.split_once(": ")?;
        request = request.header(name, value);
    }
    request.body(Body::from(body.to_vec())).ok()
}

/// The server goes before the threads it works on.
struct World {
    server: Server,
    runtime: tokio::runtime::Runtime,
    asked: usize,
}

impl World {
    #[expect(clippy::expect_used, reason = "there is nobody to ask without it")]
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime starts");
        let config = Config {
            store: Store::in_memory(Limits::default()),
            authenticator: Authenticator::new(),
            authority: None,
            pretend_workloads: true,
            admission: Admission::default(),
            audit: None,
        };
        let server = runtime.block_on(Server::start(config)).expect("a server starts");
        Self { server, runtime, asked: 0 }
    }

    fn ask(&mut self, request: Request<Body>) {
        self.asked += 1;
        let asked = answer(self.server.router(), request);
        let answer = self.runtime.block_on(async { tokio::time::timeout(PATIENCE, asked).await });
        let Ok(Answer { json, body }) = answer else { return };
        let text = String::from_utf8_lossy(&body);
        if json {
            let documents = serde_json::Deserializer::from_slice(&body);
            let mut documents = documents.into_iter::<IgnoredAny>();
            assert!(documents.all(|document| document.is_ok()), "this is no JSON: {text}");
        }
    }
}

struct Answer {
    /// It is wholly here, and says that it is JSON.
    json: bool,
    body: Vec<u8>,
}

async fn answer(router: Router, request: Request<Body>) -> Answer {
    let response = router.oneshot(request).await.unwrap_or_else(|never| match never {});
    let kind = response.headers().get(header::CONTENT_TYPE);
    let json = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
    let mut stream = response.into_body();
    let mut body = Vec::new();
    let mut whole = false;
    for _ in 0..PIECES {
        match stream.frame().now_or_never() {
            Some(Some(Ok(frame))) => {
                if let Some(data) = frame.data_ref() {
                    body.extend_from_slice(data);
                }
            }
            Some(None) => {
                whole = true;
                break;
            }
            Some(Some(Err(_))) | None => break,
        }
    }
    // Housekeeping hears of what was written.
    tokio::task::yield_now().await;
    Answer { json: json && whole, body }
}
