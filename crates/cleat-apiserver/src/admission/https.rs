//! A small HTTPS client for webhooks: JSON in, JSON out, connections kept for the next call.
//!
//! It has no time limit of its own; whoever calls bounds it.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, RootCertStore, crypto::ring::default_provider};
use rustls_pki_types::{CertificateDer, ServerName, pem::PemObject as _};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tracing::debug;

use super::transport::Failure;
use crate::quote::quoted;

/// Answers longer than this are no answers.
const MAX_ANSWER: usize = 3 << 20;
/// Idle connections kept to one place.
const MAX_IDLE: usize = 16;
/// Places remembered; beyond, all are forgotten and connected to anew.
const MAX_PLACES: usize = 128;

type Sender = SendRequest<Full<Bytes>>;

/// Where to, and how to know that it is the right one.
pub(super) struct Destination<'a> {
    /// The name the certificate must bear.
    pub(super) host: &'a str,
    pub(super) port: u16,
    /// Where a service was found; otherwise `host` is looked up.
    pub(super) address: Option<SocketAddr>,
    /// For the `Host` header.
    pub(super) authority: &'a str,
    /// PEM.
    pub(super) ca_bundle: &'a [u8],
}

#[derive(Default)]
pub(super) struct Client {
    places: Mutex<BTreeMap<Key, PlaceState>>,
}

/// Authority, resolved address, digest of the authorities.
type Key = (String, Option<SocketAddr>, [u8; 32]);

struct PlaceState {
    tls: Arc<ClientConfig>,
    idle: Vec<Sender>,
}

impl Client {
    /// Posts to `url`. The error is worded as Go's client would, as far as that can be known.
    pub(super) async fn post(
        &self,
        to: &Destination<'_>,
        url: &str,
        body: &Value,
    ) -> Result<Value, Failure> {
        let key = (to.authority.to_owned(), to.address, Sha256::digest(to.ca_bundle).into());
        let body = Bytes::from(body.to_string());
        let tls = self.tls(&key, to).map_err(Failure::Client)?;
        self.exchange(key, to, url, body, tls).await.map_err(Failure::Call)
    }

    async fn exchange(
        &self,
        key: Key,
        to: &Destination<'_>,
        url: &str,
        body: Bytes,
        tls: Arc<ClientConfig>,
    ) -> Result<Value, String> {
        let posted = |why: String| format!("Post {}: {why}", quoted(url));
        // A kept connection may have been closed by the other side just now; a new one tells.
        if let Some(mut sender) = self.take(&key)
            && let Ok(response) = sender.send_request(request(to, url, &body)?).await
        {
            return self.finish(key, sender, response).await;
        }
        let mut sender = connect(to, tls).await.map_err(posted)?;
        let response = sender.send_request(request(to, url, &body)?).await;
        let response = response.map_err(|error| posted(error.to_string()))?;
        self.finish(key, sender, response).await
    }

    fn take(&self, key: &Key) -> Option<Sender> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let place = places.get_mut(key)?;
        place.idle.retain(|sender| !sender.is_closed());
        place.idle.pop()
    }

    fn keep(&self, key: &Key, sender: Sender) {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = places.get_mut(key)
            && place.idle.len() < MAX_IDLE
            && !sender.is_closed()
        {
            place.idle.push(sender);
        }
    }

    fn tls(&self, key: &Key, to: &Destination<'_>) -> Result<Arc<ClientConfig>, String> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = places.get(key) {
            return Ok(place.tls.clone());
        }
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(to.ca_bundle) {
            let certificate = certificate.map_err(|_| bad_bundle())?;
            roots.add(certificate).map_err(|_| bad_bundle())?;
        }
        if roots.is_empty() && !to.ca_bundle.is_empty() {
            return Err(bad_bundle());
        }
        let tls = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let tls = Arc::new(tls);
        if places.len() >= MAX_PLACES {
            places.clear();
        }
        places.insert(key.clone(), PlaceState { tls: tls.clone(), idle: Vec::new() });
        Ok(tls)
    }

    /// Reads the answer and keeps the connection.
    async fn finish(
        &self,
        key: Key,
        sender: Sender,
        response: http::Response<hyper::body::Incoming>,
    ) -> Result<Value, String> {
        let status = response.status();
        let media = response.headers().get("content-type");
        let media = media.and_then(|media| media.to_str().ok()).map(str::to_owned);
        let body = Limited::new(response.into_body(), MAX_ANSWER).collect().await;
        let body = body.map_err(|error| error.to_string())?.to_bytes();
        self.keep(&key, sender);
        if !(200..=206).contains(&status.as_u16()) {
            return Err(unexpected(status, media.as_deref(), &body));
        }
        if body.is_empty() {
            let code = status.as_u16();
            let media = media.as_deref().unwrap_or("application/json");
            return Err(format!(
                "0-length response with status code: {code} and content type: {media}"
            ));
        }
        // What is not JSON would be read as YAML upstream, mostly as one long text.
        Ok(serde_json::from_slice(&body).unwrap_or_else(|_| String::from_utf8_lossy(&body).into()))
    }
}

fn request(to: &Destination<'_>, url: &str, body: &Bytes) -> Result<Request<Full<Bytes>>, String> {
    let target: http::Uri =
        url.parse().map_err(|_| format!("parse {}: invalid URL", quoted(url)))?;
    let target = target.path_and_query().map_or("/", |target| target.as_str());
    Request::post(target)
        .header("host", to.authority)
        .header("content-type", "application/json")
        .header("accept", "application/json, */*")
        .header("user-agent", "kube-apiserver-admission")
        .body(Full::new(body.clone()))
        .map_err(|error| error.to_string())
}

async fn connect(to: &Destination<'_>, tls: Arc<ClientConfig>) -> Result<Sender, String> {
    let stream = match to.address {
        Some(address) => TcpStream::connect(address).await.map_err(|e| dial(&address, &e))?,
        None => {
            let found = tokio::net::lookup_host((to.host, to.port)).await;
            let found: Vec<SocketAddr> = match found {
                Ok(found) => found.collect(),
                Err(_) => return Err(format!("dial tcp: lookup {}: no such host", to.host)),
            };
            let mut error = format!("dial tcp: lookup {}: no such host", to.host);
            let mut stream = None;
            for address in found {
                match TcpStream::connect(address).await {
                    Ok(connected) => {
                        stream = Some(connected);
                        break;
                    }
                    Err(failed) => error = dial(&address, &failed),
                }
            }
            stream.ok_or(error)?
        }
    };
    if let Err(error) = stream.set_nodelay(true) {
        debug!(%error, "failed to set a socket option");
    }
    let name = ServerName::try_from(to.host.to_owned())
        .map_err(|_| format!("tls: {} is no name for a server", quoted(to.host)))?;
    let stream =
        TlsConnector::from(tls).connect(name, stream).await.map_err(|e| handshake(&e, to.host))?;
    let (sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
    // Ends when the sender is dropped or the other side closes.
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            debug!(%error, "connection to a webhook ended");
        }
    });
    Ok(sender)
}

fn dial(address: &SocketAddr, error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::ConnectionRefused => {
            format!("dial tcp {address}: connect: connection refused")
        }
        _ => format!("dial tcp {address}: connect: {error}"),
    }
}

fn handshake(error: &std::io::Error, host: &str) -> String {
    use rustls::{CertificateError as Bad, Error};
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    let why = match inner {
        Some(Error::InvalidCertificate(bad)) => match bad {
            Bad::UnknownIssuer => "x509: certificate signed by unknown authority".to_owned(),
            Bad::Expired | Bad::ExpiredContext { .. } | Bad::NotValidYet => {
                "x509: certificate has expired or is not yet valid".to_owned()
            }
            Bad::NotValidForNameContext { presented, .. } => mismatch(presented, host),
            Bad::NotValidForName => mismatch(&[], host),
            other => format!("x509: {other:?}"),
        },
        _ => return error.to_string(),
    };
    format!("tls: failed to verify certificate: {why}")
}

/// The certificate is another's. `presented` are its names, as in `DnsName("a")`.
fn mismatch(presented: &[String], host: &str) -> String {
    let inside = |name: &String, kind: &str| {
        let name = name.strip_prefix(kind)?.strip_prefix('(')?.strip_suffix(')')?;
        Some(name.trim_matches('"').to_owned())
    };
    let of_kind = |kind: &str| -> Vec<String> {
        presented.iter().filter_map(|name| inside(name, kind)).collect()
    };
    let is_address = host.parse::<std::net::IpAddr>().is_ok();
    let names = of_kind(if is_address { "IpAddress" } else { "DnsName" });
    match names.as_slice() {
        [] if is_address => format!(
            "x509: cannot validate certificate for {host} because it doesn't contain any IP SANs"
        ),
        [] => format!("x509: certificate is not valid for any names, but wanted to match {host}"),
        names => format!("x509: certificate is valid for {}, not {host}", names.join(", ")),
    }
}

fn bad_bundle() -> String {
    "unable to load root certificates: unable to parse bytes as PEM block".to_owned()
}

/// What Go's client makes of an answer that is no success.
fn unexpected(status: StatusCode, media: Option<&str>, body: &[u8]) -> String {
    // Only text is taken for a message.
    let body = if media.is_none_or(|media| media.starts_with("text/")) { body } else { b"" };
    let text = String::from_utf8_lossy(body.get(..2048).unwrap_or(body)).trim().to_owned();
    let text = if text.is_empty() { "unknown".to_owned() } else { text };
    match status.as_u16() {
        400 => "the server rejected our request for an unknown reason".to_owned(),
        401 => "the server has asked for the client to provide credentials".to_owned(),
        403 => text,
        404 => "the server could not find the requested resource".to_owned(),
        405 => "the server does not allow this method on the requested resource".to_owned(),
        406 => "the server was unable to respond with a content type that the client supports"
            .to_owned(),
        409 => "the server reported a conflict".to_owned(),
        410 => "the server cannot complete the requested operation at this time, try again later"
            .to_owned(),
        415 => "the body of the request was in an unknown format - accepted media types include: "
            .to_owned(),
        422 => "the server rejected our request due to an error in our request".to_owned(),
        429 => "the server has received too many requests and has asked us to try again later"
            .to_owned(),
        503 => "the server is currently unable to handle the request".to_owned(),
        504 => "the server was unable to return a response in the time allotted, but may still \
                be processing the request"
            .to_owned(),
        500.. => {
            let text = quoted(&text);
            format!("an error on the server ({text}) has prevented the request from succeeding")
        }
        code => {
            format!(
                "the server responded with the status code {code} but did not return more \
                 information"
            )
        }
    }
}
