//! Reaching a server of a world over TLS, with other credentials than its administrator's.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use cleat_apiserver::certificates::{Authority, read_certificates};
use cleat_apiserver::tls::{self, ServeOptions, ServerCertificate, ServerTls};
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use tokio::net::TcpListener;

/// Who a client is.
pub enum Credentials {
    Nobody,
    Token(String),
    /// Both as PEM.
    Certificate {
        certificate: String,
        key: String,
    },
}

/// Where a server is, and who vouches for it.
pub(super) struct Endpoint {
    url: String,
    /// PEM
    authority: String,
}

impl Endpoint {
    pub(super) fn new(url: String, authority: String) -> Self {
        Self { url, authority }
    }

    /// Listens on loopback until the runtime ends.
    pub(super) async fn listen(
        name: &str,
        router: axum::Router,
        authority: &Arc<Authority>,
    ) -> Result<Self> {
        let day = SignedDuration::from_hours(24);
        let issued = authority.issue_server(name, &["127.0.0.1"], Timestamp::now(), day)?;
        let certificate = ServerCertificate::new(&issued)?;
        let tls = ServerTls::new(certificate, &[authority.certificate().clone()])?;
        let listener = TcpListener::bind("127.0.0.1:0").await.context("listen on loopback")?;
        let url = format!("https://{}", listener.local_addr()?);
        let forever = std::future::pending();
        tokio::spawn(tls::serve(listener, Some(tls), router, ServeOptions::default(), forever));
        Ok(Self::new(url, authority.certificate_pem().to_owned()))
    }

    pub(super) fn address(&self) -> (String, String) {
        (self.url.clone(), self.authority.clone())
    }

    pub(super) fn client(&self, credentials: Credentials) -> Result<Client> {
        let mut config = kube::Config::new(self.url.parse().context("read the server's address")?);
        let authority = read_certificates(&self.authority)?;
        config.root_cert = Some(authority.iter().map(|one| one.as_ref().to_vec()).collect());
        match credentials {
            Credentials::Nobody => {}
            Credentials::Token(token) => config.auth_info.token = Some(token.into()),
            Credentials::Certificate { certificate, key } => {
                config.auth_info.client_certificate_data = Some(BASE64.encode(certificate));
                config.auth_info.client_key_data = Some(BASE64.encode(key).into());
            }
        }
        Ok(Client::try_from(config)?)
    }
}
