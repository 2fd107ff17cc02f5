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

#[tokio::test]
async fn shutdown_ends_idle_connections_at_once() {
    let server = server(ServeOptions::default()).await;
    let _idle = connect(&server, None, "h2").await;
    assert_eq!(ask(&server, None, "http/1.1").await, "system:anonymous");
    server.stop.send(()).unwrap();
    tokio::time::timeout(Duration::from_secs(9), server.task).await.unwrap().unwrap();
    assert!(TcpStream::connect(server.address).await.is_err());
}
