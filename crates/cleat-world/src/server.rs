//! Any server that speaks the Kubernetes protocol, reached over a socket or in the same process.
//!
//! This is raw HTTP on purpose: the conformance tests send requests no client library would send.
//! There is no connection reuse: each request has a connection of its own, so that ending a watch
//! is dropping its body.

use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::net::TcpStream;
use tower::{Service, ServiceExt as _};

use crate::kubernetes::kubeconfig::Access;

/// An answer's body, which for a watch does not end.
pub type Body = UnsyncBoxBody<Bytes, anyhow::Error>;

/// Who sends a request, as far as the connection tells. Headers may say more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// With the administrator's client certificate, in group `system:masters`.
    Admin,
    /// Without any certificate.
    Nobody,
}

/// A server to which requests can be sent.
pub trait Server: Send + Sync {
    fn send(
        &self,
        caller: Caller,
        request: Request<Bytes>,
    ) -> BoxFuture<'_, Result<Response<Body>>>;
}

/// A server behind a socket.
pub struct Remote {
    address: String,
    tls: Option<Tls>,
}

struct Tls {
    name: ServerName<'static>,
    admin: Arc<ClientConfig>,
    nobody: Arc<ClientConfig>,
}

impl Remote {
    pub fn new(access: &Access) -> Result<Self> {
        let address = access
            .url
            .strip_prefix("https://")
            .context("a server's address must begin with https://")?
            .trim_end_matches('/')
            .to_owned();
        let (host, _) = address.rsplit_once(':').context("a server's address must have a port")?;
        let name = ServerName::try_from(host.to_owned()).context("read the server's name")?;

        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(access.authority.as_bytes()) {
            roots.add(certificate.context("read the authority")?).context("trust the authority")?;
        }
        let chain = CertificateDer::pem_slice_iter(access.identity.certificate.as_bytes())
            .collect::<Result<Vec<_>, _>>()
            .context("read the client's certificate")?;
        let key = PrivateKeyDer::from_pem_slice(access.identity.key.as_bytes())
            .context("read the client's key")?;
        let builder = || {
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let builder = ClientConfig::builder_with_provider(provider)
                .with_safe_default_protocol_versions()
                .context("choose TLS versions")?;
            Ok::<_, anyhow::Error>(builder.with_root_certificates(roots.clone()))
        };
        let admin =
            builder()?.with_client_auth_cert(chain, key).context("use the client's certificate")?;
        let nobody = builder()?.with_no_client_auth();
        let tls = Tls { name, admin: Arc::new(admin), nobody: Arc::new(nobody) };
        Ok(Self { address, tls: Some(tls) })
    }

    /// A server on loopback without TLS.
    pub(crate) fn plain(port: u16) -> Self {
        Self { address: format!("127.0.0.1:{port}"), tls: None }
    }

    /// The whole answer to a GET as administrator.
    pub async fn get(&self, path: &str) -> Result<(StatusCode, Bytes)> {
        let request = Request::get(path).body(Bytes::new()).context("make the request")?;
        let (head, body) = self.send(Caller::Admin, request).await?.into_parts();
        Ok((head.status, body.collect().await?.to_bytes()))
    }

    async fn exchange(&self, caller: Caller, request: Request<Bytes>) -> Result<Response<Body>> {
        let socket = TcpStream::connect(&self.address)
            .await
            .with_context(|| format!("connect to {}", self.address))?;
        socket.set_nodelay(true).context("set up the connection")?;
        let Some(tls) = &self.tls else {
            return http1(TokioIo::new(socket), request, &self.address).await;
        };
        let config = match caller {
            Caller::Admin => &tls.admin,
            Caller::Nobody => &tls.nobody,
        };
        let socket = tokio_rustls::TlsConnector::from(config.clone())
            .connect(tls.name.clone(), socket)
            .await
            .context("begin TLS")?;
        http1(TokioIo::new(socket), request, &self.address).await
    }
}

impl Server for Remote {
    fn send(
        &self,
        caller: Caller,
        request: Request<Bytes>,
    ) -> BoxFuture<'_, Result<Response<Body>>> {
        Box::pin(self.exchange(caller, request))
    }
}

async fn http1<S>(socket: S, request: Request<Bytes>, host: &str) -> Result<Response<Body>>
where
    S: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
{
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(socket).await.context("begin HTTP")?;
    // Ends by itself when the body is read to its end or dropped.
    tokio::spawn(connection);
    let mut request = request.map(Full::new);
    if !request.headers().contains_key(http::header::HOST) {
        request.headers_mut().insert(
            http::header::HOST,
            http::HeaderValue::from_str(host).context("name the host")?,
        );
    }
    let response = sender.send_request(request).await.context("send the request")?;
    Ok(response.map(|body| body.map_err(anyhow::Error::new).boxed_unsync()))
}

/// A server in this process: one service as the administrator sees it, one as nobody does.
pub struct InProcess<S> {
    admin: S,
    nobody: S,
}

impl<S> InProcess<S> {
    pub fn new(admin: S, nobody: S) -> Self {
        Self { admin, nobody }
    }
}

impl<S> Server for InProcess<S>
where
    S: Service<Request<axum::body::Body>, Response = Response<axum::body::Body>>
        + Clone
        + Send
        + Sync
        + 'static,
    S::Error: std::fmt::Debug,
    S::Future: Send,
{
    fn send(
        &self,
        caller: Caller,
        request: Request<Bytes>,
    ) -> BoxFuture<'_, Result<Response<Body>>> {
        let service = match caller {
            Caller::Admin => self.admin.clone(),
            Caller::Nobody => self.nobody.clone(),
        };
        Box::pin(async move {
            match service.oneshot(request.map(axum::body::Body::from)).await {
                Ok(response) => {
                    Ok(response.map(|body| body.map_err(anyhow::Error::new).boxed_unsync()))
                }
                Err(error) => bail!("the server failed to answer: {error:?}"),
            }
        })
    }
}
