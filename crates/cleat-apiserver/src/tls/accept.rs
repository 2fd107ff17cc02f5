//! The accept loop: bounded in connections, in time before a request is there, and at the end.

use std::{convert::Infallible, future::Future, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use http_body_util::Either;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{conn::auto::Builder, graceful::GracefulShutdown},
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
    time::timeout,
};
use tokio_rustls::TlsAcceptor;
use tower::{Service, ServiceExt as _};
use tracing::{debug, warn};

use super::ServerTls;
use super::crowd::Crowd;
use super::patience::Patient;
use super::stalled::{Streams, Watched};
use crate::authn::PeerIdentity;

/// Who is at the other end; an extension of every request, as `Arc<Peer>`.
#[derive(Clone, Debug)]
pub struct Peer {
    pub address: SocketAddr,
    /// `None` without a client certificate.
    pub identity: Option<PeerIdentity>,
}

/// The bounds of a server.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// Further connections wait to be accepted.
    pub max_connections: usize,
    /// Further connections from one address are closed at once, so that there is room for others.
    pub max_connections_per_address: usize,
    pub handshake_timeout: Duration,
    pub header_read_timeout: Duration,
    /// Requests at a time on one HTTP/2 connection.
    pub max_concurrent_streams: u32,
    /// How often an idle HTTP/2 client is asked whether it is there.
    pub keep_alive_interval: Duration,
    pub keep_alive_timeout: Duration,
    /// Who takes nothing of what is sent for so long is cut off: a connection, or one stream of it.
    pub send_timeout: Duration,
    /// What is still running so long after the shutdown began is cut off.
    pub drain_timeout: Duration,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self {
            max_connections: 10_000,
            max_connections_per_address: share(10_000),
            handshake_timeout: Duration::from_secs(10),
            header_read_timeout: Duration::from_secs(32),
            max_concurrent_streams: 250,
            keep_alive_interval: Duration::from_secs(30),
            keep_alive_timeout: Duration::from_secs(15),
            send_timeout: Duration::from_secs(60),
            drain_timeout: Duration::from_secs(10),
        }
    }
}

impl ServeOptions {
    /// Those of a process that may open so many files, some of which it wants for other things.
    pub fn of_files(files: u64) -> Self {
        let files = usize::try_from(files).unwrap_or(usize::MAX);
        let max_connections = (files - files / 10).clamp(1, MOST_CONNECTIONS);
        let max_connections_per_address = share(max_connections);
        Self { max_connections, max_connections_per_address, ..Self::default() }
    }
}

/// However many files there may be: a connection takes tens of kilobytes.
const MOST_CONNECTIONS: usize = 100_000;

/// What one address may have of so many connections. A whole fleet may stand behind one, so it is
/// nearly all; the rest is for whoever has to look what is wrong.
fn share(connections: usize) -> usize {
    (connections - connections / 10).max(1)
}

/// Serves until `shutdown` is done, then lets running requests end.
///
/// Without `tls` connections are plain, which only tests on loopback should want.
pub async fn serve<S, B>(
    listener: TcpListener,
    tls: Option<ServerTls>,
    service: S,
    options: ServeOptions,
    shutdown: impl Future<Output = ()> + Send,
) where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let http = Arc::new(http(&options));
    let connections = Arc::new(Semaphore::new(options.max_connections));
    let crowd = Crowd::default();
    let ending = GracefulShutdown::new();
    let mut tasks = JoinSet::new();
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let (stream, address, permit) = tokio::select! {
            biased;
            () = &mut shutdown => break,
            accepted = accept(&listener, &connections) => match accepted {
                Some(accepted) => accepted,
                None => break,
            },
            // Finished tasks are only collected.
            Some(_) = tasks.join_next(), if !tasks.is_empty() => continue,
        };
        let Some(place) = crowd.admit(address.ip(), options.max_connections_per_address) else {
            debug!(%address, "closing one of too many connections from one address");
            continue;
        };
        let connection = Connection {
            http: http.clone(),
            tls: tls.clone(),
            service: service.clone(),
            handshake_timeout: options.handshake_timeout,
            send_timeout: options.send_timeout,
            watcher: ending.watcher(),
        };
        tasks.spawn(async move {
            connection.run(stream, address).await;
            drop((place, permit));
        });
    }
    drop(listener);
    let drained = async {
        ending.shutdown().await;
        while tasks.join_next().await.is_some() {}
    };
    if timeout(options.drain_timeout, drained).await.is_err() {
        debug!("cutting off connections that did not end in time");
    }
    tasks.shutdown().await;
}

fn http(options: &ServeOptions) -> Builder<TokioExecutor> {
    let mut http = Builder::new(TokioExecutor::new());
    http.http1()
        .timer(TokioTimer::new())
        .header_read_timeout(options.header_read_timeout)
        .keep_alive(true);
    http.http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(options.max_concurrent_streams)
        .max_header_list_size(256 << 10)
        .initial_stream_window_size(256 << 10)
        .initial_connection_window_size(16 << 20)
        .keep_alive_interval(options.keep_alive_interval)
        .keep_alive_timeout(options.keep_alive_timeout);
    http
}

/// The next connection, once there is room for it.
async fn accept(
    listener: &TcpListener,
    connections: &Arc<Semaphore>,
) -> Option<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let permit = connections.clone().acquire_owned().await.ok()?;
    loop {
        match listener.accept().await {
            Ok((stream, address)) => return Some((stream, address, permit)),
            Err(error) => {
                // Out of file descriptors, most likely: wait for some to be given back.
                warn!(%error, "failed to accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// What is there as a whole takes no more than it does. What is made as it is sent is looked after.
fn sent<B>(streams: &Streams, body: B) -> Either<B, Watched<B>>
where
    B: Body<Data = Bytes> + Send + 'static,
{
    match body.size_hint().exact() {
        Some(_) => Either::Left(body),
        None => Either::Right(streams.enter(body)),
    }
}

struct Connection<S> {
    http: Arc<Builder<TokioExecutor>>,
    tls: Option<ServerTls>,
    service: S,
    handshake_timeout: Duration,
    send_timeout: Duration,
    watcher: hyper_util::server::graceful::Watcher,
}

impl<S, B> Connection<S>
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    async fn run(self, stream: TcpStream, address: SocketAddr) {
        // A reply is written in one piece, so waiting for more only costs time.
        if let Err(error) = stream.set_nodelay(true) {
            debug!(%error, "failed to set a socket option");
        }
        let stream = Patient::new(stream, self.send_timeout);
        let Some(tls) = &self.tls else {
            return self.speak(stream, Peer { address, identity: None }).await;
        };
        let handshake = TlsAcceptor::from(tls.config.clone()).accept(stream);
        let stream = match timeout(self.handshake_timeout, handshake).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return debug!(%address, %error, "TLS handshake failed"),
            Err(_) => return debug!(%address, "TLS handshake took too long"),
        };
        let identity = tls.identify(stream.get_ref().1.peer_certificates());
        self.speak(stream, Peer { address, identity }).await;
    }

    async fn speak<IO>(self, stream: IO, peer: Peer)
    where
        IO: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    {
        let address = peer.address;
        let peer = Arc::new(peer);
        let service = self.service;
        let streams = Streams::default();
        let entered = streams.clone();
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(peer.clone());
            let (answer, streams) = (service.clone().oneshot(request), entered.clone());
            async move { answer.await.map(|response| response.map(|body| sent(&streams, body))) }
        });
        let connection = self.http.serve_connection(TokioIo::new(stream), service);
        let ended = tokio::select! {
            ended = self.watcher.watch(connection.into_owned()) => ended,
            never = streams.look_after(self.send_timeout) => match never {},
        };
        if let Err(error) = ended {
            debug!(%address, %error, "connection ended");
        }
    }
}
