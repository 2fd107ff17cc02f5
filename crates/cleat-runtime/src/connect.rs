//! Connections to API servers, as agents need them.
//!
//! kube's own way would do for reading. It is not used because it repeats requests by itself after
//! 429, 503 and 504, of which the executor must be told instead; because it logs every failure as an
//! error; and because it keeps quiet connections without ever asking whether the peer still lives,
//! so that a watch could wait for a server that is long gone.

use std::time::Duration;

use http::{HeaderName, HeaderValue, header};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::Client;
use kube::client::ConfigExt as _;
use tower::{BoxError, ServiceBuilder};

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("{0:?} cannot be a user agent")]
    UserAgent(String),
    #[error("proxies are not supported: {0}")]
    Proxy(http::Uri),
    #[error("cannot set up connections to {server}")]
    Setup {
        server: http::Uri,
        #[source]
        source: Box<kube::Error>,
    },
}

/// How long the network has to set up a connection.
const CONNECT: Duration = Duration::from_secs(10);
/// A peer that is silent for this long is asked for a sign of life, so often and so many times.
const QUIET: Duration = Duration::from_secs(10);
const PROBE: Duration = Duration::from_secs(5);
const PROBES: u32 = 3;

/// A client that repeats nothing, and that notices within half a minute that its peer is gone.
///
/// Kubernetes derives the default field manager from `user_agent`.
pub fn connect(mut config: kube::Config, user_agent: &str) -> Result<Client, Error> {
    if let Some(proxy) = config.proxy_url.take() {
        return Err(Error::Proxy(proxy));
    }
    let agent =
        HeaderValue::from_str(user_agent).map_err(|_| Error::UserAgent(user_agent.to_owned()))?;
    let name: HeaderName = header::USER_AGENT;
    config.headers.retain(|(other, _)| *other != name);
    config.headers.push((name, agent));

    let server = config.cluster_url.clone();
    let setup = |source| Error::Setup { server: server.clone(), source: Box::new(source) };
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(CONNECT));
    tcp.set_keepalive(Some(QUIET));
    tcp.set_keepalive_interval(Some(PROBE));
    tcp.set_keepalive_retries(Some(PROBES));
    let https = config.rustls_https_connector_with_connector(tcp).map_err(setup)?;
    let http = hyper_util::client::legacy::Client::builder(TokioExecutor::new()).build(https);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer().map_err(setup)?)
        .layer(config.extra_headers_layer().map_err(setup)?)
        .map_request(|request: http::Request<_>| {
            // The one place that every request passes, so this is also how they are counted.
            tracing::trace!(method = %request.method(), uri = %request.uri(), "request");
            request
        })
        .map_err(BoxError::from)
        .service(http);
    Ok(Client::new(service, config.default_namespace))
}
