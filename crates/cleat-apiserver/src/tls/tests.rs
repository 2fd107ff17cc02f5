use std::{convert::Infallible, net::SocketAddr, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Empty, Full};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use jiff::{SignedDuration, Timestamp};
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinHandle,
};
use tokio_rustls::{TlsConnector, client::TlsStream};
use tower::service_fn;

use super::*;
use crate::{
    authn::{Authenticator, Credentials},
    certificates::Authority,
};

struct Server {
    address: SocketAddr,
    authority: Authority,
    certificate: Arc<ServerCertificate>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

/// Answers with the name of whom it takes the caller for.
async fn whoami(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let peer = request.extensions().get::<Arc<Peer>>().unwrap();
    let credentials = Credentials { peer: peer.identity.as_ref(), authorization: None };
    let nothing = |_: &'static str, _: &str, _: &str| None;
    let name = match Authenticator::new().authenticate(credentials, Timestamp::now(), &nothing) {
        Ok(user) => user.name,
        Err(status) => status.code.to_string(),
    };
    Ok(Response::new(Full::from(name)))
}

fn issue_server(authority: &Authority, name: &str) -> Issued {
    let day = SignedDuration::from_hours(24);
    authority.issue_server(name, &["localhost", "127.0.0.1"], Timestamp::now(), day).unwrap()
}

async fn server(options: ServeOptions) -> Server {
    let authority = Authority::generate("test", Timestamp::now()).unwrap();
    let certificate = ServerCertificate::new(&issue_server(&authority, "first")).unwrap();
    let tls = ServerTls::new(certificate.clone(), &[authority.certificate().clone()]).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel();
    let shutdown = async {
        let _ = stopped.await;
    };
    let task = tokio::spawn(serve(listener, Some(tls), service_fn(whoami), options, shutdown));
    Server { address, authority, certificate, stop, task }
}

async fn connect(server: &Server, client: Option<&Issued>, alpn: &str) -> TlsStream<TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(server.authority.certificate().clone()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match client {
        None => builder.with_no_client_auth(),
        Some(issued) => builder
            .with_client_auth_cert(
                certificates::read_certificates(&issued.certificate).unwrap(),
                certificates::read_private_key(&issued.key).unwrap(),
            )
            .unwrap(),
    };
    config.alpn_protocols = vec![alpn.as_bytes().to_vec()];
    let stream = TcpStream::connect(server.address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap()
}

async fn ask(server: &Server, client: Option<&Issued>, alpn: &str) -> String {
    let stream = connect(server, client, alpn).await;
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(alpn.as_bytes()));
    let io = TokioIo::new(stream);
    let request = Request::get("https://localhost/").header("host", "localhost");
    let request = request.body(Empty::<Bytes>::new()).unwrap();
    let response = if alpn == "h2" {
        let (mut send, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await.unwrap();
        tokio::spawn(connection);
        send.send_request(request).await.unwrap()
    } else {
        let (mut send, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
        tokio::spawn(connection);
        send.send_request(request).await.unwrap()
    };
    let body = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(body.to_vec()).unwrap()
}

#[tokio::test]
async fn clients_are_known_by_certificate() {
    let server = server(ServeOptions::default()).await;
    let day = SignedDuration::from_hours(24);
    let now = Timestamp::now();
    let ann = server.authority.issue_client("ann", &[], now, day).unwrap();
    let yesterday = now - SignedDuration::from_hours(48);
    let expired = server.authority.issue_client("old", &[], yesterday, day).unwrap();
    let stranger = Authority::generate("other", now).unwrap();
    let stranger = stranger.issue_client("ann", &["system:masters"], now, day).unwrap();
    for alpn in ["h2", "http/1.1"] {
        assert_eq!(ask(&server, Some(&ann), alpn).await, "ann");
        assert_eq!(ask(&server, None, alpn).await, "system:anonymous");
        assert_eq!(ask(&server, Some(&expired), alpn).await, "401");
        assert_eq!(ask(&server, Some(&stranger), alpn).await, "401");
    }
}

#[tokio::test]
async fn the_certificate_can_be_replaced_while_serving() {
    let server = server(ServeOptions::default()).await;
    let shown = async || {
        let stream = connect(&server, None, "h2").await;
        stream.get_ref().1.peer_certificates().unwrap()[0].clone()
    };
    let first = shown().await;
    assert_eq!(shown().await, first);
    server.certificate.replace(&issue_server(&server.authority, "second")).unwrap();
    assert_ne!(shown().await, first);
}

#[tokio::test]
async fn silent_clients_are_dropped_and_make_room() {
    let options = ServeOptions {
        max_connections: 1,
        handshake_timeout: Duration::from_millis(50),
        ..ServeOptions::default()
    };
    let server = server(options).await;
    let _silent = TcpStream::connect(server.address).await.unwrap();
    assert_eq!(ask(&server, None, "h2").await, "system:anonymous");
}

/// Tells when it is let go of.
struct Held(Option<oneshot::Sender<()>>);

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.0.take().unwrap().send(());
    }
}

#[tokio::test]
async fn a_stream_whose_client_only_answered_pings_was_kept() {
    let (tell, told) = oneshot::channel();
    let held = Arc::new(std::sync::Mutex::new(Some(Held(Some(tell)))));
    let endless = service_fn(move |_: Request<Incoming>| {
        let held = held.lock().unwrap().take();
        let pieces = futures::stream::repeat_with(move || {
            let _ = &held;
            Ok::<_, Infallible>(http_body::Frame::data(Bytes::from(vec![b' '; 64 << 10])))
        });
        std::future::ready(Ok::<_, Infallible>(Response::new(http_body_util::StreamBody::new(
            pieces,
        ))))
    });
    let options =
        ServeOptions { send_timeout: Duration::from_millis(50), ..ServeOptions::default() };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let serving = tokio::spawn(serve(listener, None, endless, options, std::future::pending()));
    let (mut send, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .unwrap();
    tokio::spawn(connection);
    let request = Request::get("http://localhost/").body(Empty::<Bytes>::new()).unwrap();
    let _unread = send.send_request(request).await.unwrap();
    tokio::time::timeout(Duration::from_secs(9), told).await.unwrap().unwrap();
    serving.abort();
}

#[tokio::test]
async fn one_address_took_all_connections() {
    let options = ServeOptions { max_connections_per_address: 1, ..ServeOptions::default() };
    let server = server(options).await;
    let _first = connect(&server, None, "h2").await;
    // The second is closed instead of answered.
    let mut second = TcpStream::connect(server.address).await.unwrap();
    let closed = tokio::io::AsyncReadExt::read(&mut second, &mut [0]).await;
    assert!(matches!(closed, Ok(0) | Err(_)), "{closed:?}");
}

#[test]
fn a_fleet_of_a_thousand_behind_one_address_was_turned_away() {
    // An agent has about nine connections.
    assert!(ServeOptions::of_files(20_000).max_connections_per_address >= 9 * 1000);
    for files in [0, 1, 9, 1024, 1 << 20, u64::MAX] {
        let options = ServeOptions::of_files(files);
        let [all, one] = [options.max_connections, options.max_connections_per_address];
        assert!((1..=all).contains(&one) && (all < 10 || one < all), "{files} {all} {one}");
    }
}

#[tokio::test]
async fn shutdown_ends_idle_connections_at_once() {
    let server = server(ServeOptions::default()).await;
    let _idle = connect(&server, None, "h2").await;
    assert_eq!(ask(&server, None, "http/1.1").await, "system:anonymous");
    server.stop.send(()).unwrap();
    tokio::time::timeout(Duration::from_secs(9), server.task).await.unwrap().unwrap();
    assert!(TcpStream::connect(server.address).await.is_err());
}
