//! Ways to a webhook: a handler in this process, or HTTPS to a URL or service.

use std::{
    collections::BTreeMap,
    fmt,
    net::SocketAddr,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use futures::future::BoxFuture;
use serde_json::Value;
use tokio::time::timeout;

use super::{
    configuration::{ClientConfig, Target},
    https::{Client, Destination},
    tally::Tally,
};
use crate::quote::quoted;

/// Answers AdmissionReviews without a socket: gets the path of the URL and the review.
pub type Handler =
    Arc<dyn Fn(String, Value) -> BoxFuture<'static, Result<Value, String>> + Send + Sync>;

/// Finds where a service listens.
pub trait ServiceResolver: Send + Sync {
    /// The error is the end of upstream's sentence, such as `service "x" not found`.
    fn resolve(&self, namespace: &str, name: &str, port: u16) -> Result<SocketAddr, String>;
}

/// For a server without nodes, where no service has anybody behind it.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoServices;

impl ServiceResolver for NoServices {
    fn resolve(&self, _: &str, name: &str, _: u16) -> Result<SocketAddr, String> {
        Err(format!("service {} not found", quoted(name)))
    }
}

/// Why there is no answer.
#[derive(Debug, PartialEq)]
pub(super) enum Failure {
    /// The configuration cannot be made sense of; nothing was sent.
    Client(String),
    Call(String),
}

pub(super) struct Transport {
    services: Arc<dyn ServiceResolver>,
    https: Client,
    handlers: RwLock<Handlers>,
    /// What came of asking.
    pub(super) tally: Tally,
}

#[derive(Default)]
struct Handlers {
    /// By prefix; the longest that fits counts.
    urls: BTreeMap<Box<str>, Handler>,
    services: BTreeMap<(Box<str>, Box<str>), Handler>,
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport").finish_non_exhaustive()
    }
}

impl Default for Transport {
    fn default() -> Self {
        Self::new(Arc::new(NoServices))
    }
}

impl Transport {
    pub(super) fn new(services: Arc<dyn ServiceResolver>) -> Self {
        let (https, handlers) = (Client::default(), RwLock::default());
        Self { services, https, handlers, tally: Tally::default() }
    }

    pub(super) fn serve_url(&self, prefix: &str, handler: Handler) {
        let mut handlers = self.handlers.write().unwrap_or_else(PoisonError::into_inner);
        handlers.urls.insert(prefix.into(), handler);
    }

    pub(super) fn serve_service(&self, namespace: &str, name: &str, handler: Handler) {
        let mut handlers = self.handlers.write().unwrap_or_else(PoisonError::into_inner);
        handlers.services.insert((namespace.into(), name.into()), handler);
    }

    /// The answer to a review, or why there is none. Takes no longer than `limit`.
    pub(super) async fn post(
        &self,
        client: &ClientConfig,
        review: Value,
        limit: Duration,
    ) -> Result<Value, Failure> {
        let place = Place::of(&client.target).map_err(Failure::Client)?;
        let url = format!("{}?timeout={}s", place.url(), limit.as_secs());
        let work = async {
            if let Some(handler) = self.handler(client) {
                return handler(place.path.clone(), review).await.map_err(Failure::Call);
            }
            let address = match &client.target {
                Target::Url(_) => None,
                Target::Service { namespace, name, port, .. } => Some(
                    self.services
                        .resolve(namespace, name, *port)
                        .map_err(|why| Failure::Call(format!("Post {}: {why}", quoted(&url))))?,
                ),
            };
            let destination = Destination {
                host: &place.host,
                port: place.port,
                address,
                authority: &place.authority,
                ca_bundle: &client.ca_bundle,
            };
            self.https.post(&destination, &url, &review).await
        };
        match timeout(limit, work).await {
            Ok(answer) => answer,
            Err(_) => {
                let why = format!("Post {}: context deadline exceeded", quoted(&url));
                Err(Failure::Call(why))
            }
        }
    }

    fn handler(&self, client: &ClientConfig) -> Option<Handler> {
        let handlers = self.handlers.read().unwrap_or_else(PoisonError::into_inner);
        match &client.target {
            Target::Service { namespace, name, .. } => {
                handlers.services.get(&(namespace.clone(), name.clone())).cloned()
            }
            Target::Url(url) => {
                let fits = handlers.urls.iter().filter(|(prefix, _)| url.starts_with(&***prefix));
                fits.max_by_key(|(prefix, _)| prefix.len()).map(|(_, handler)| handler.clone())
            }
        }
    }
}

/// The parts of a webhook's URL.
struct Place {
    scheme: String,
    host: String,
    port: u16,
    /// Host and port as given.
    authority: String,
    path: String,
}

impl Place {
    fn of(target: &Target) -> Result<Self, String> {
        match target {
            Target::Service { namespace, name, path, port } => {
                let host = format!("{name}.{namespace}.svc");
                Ok(Self {
                    scheme: "https".to_owned(),
                    authority: format!("{host}:{port}"),
                    host,
                    port: *port,
                    path: clean(path),
                })
            }
            Target::Url(url) => {
                let bad = || format!("parse {}: invalid URL", quoted(url));
                let parsed: http::Uri = url.parse().map_err(|_| bad())?;
                let authority = parsed.authority().ok_or_else(bad)?;
                let host = authority.host().trim_start_matches('[').trim_end_matches(']');
                Ok(Self {
                    scheme: parsed.scheme_str().unwrap_or("https").to_owned(),
                    host: host.to_owned(),
                    port: authority.port_u16().unwrap_or(443),
                    authority: authority.to_string(),
                    path: clean(parsed.path()),
                })
            }
        }
    }

    fn url(&self) -> String {
        format!("{}://{}{}", self.scheme, self.authority, self.path)
    }
}

/// Begins with a slash and ends without one.
fn clean(path: &str) -> String {
    format!("/{}", path.trim_matches('/'))
}
