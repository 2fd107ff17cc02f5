//! Accepting connections: TLS, who stands at the other end, and HTTP up to the router.
//!
//! A client certificate that does not verify does not end the connection, since Kubernetes answers
//! it with 401; it is only marked as not trusted. What the requests mean is not known here.

mod accept;
mod crowd;
mod patience;
mod stalled;
mod verifier;

pub use accept::{Peer, ServeOptions, serve};

use std::{
    fmt,
    sync::{Arc, PoisonError, RwLock},
};

use rustls::{
    RootCertStore, ServerConfig,
    crypto::ring::{default_provider, sign::any_supported_type},
    server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier, danger::ClientCertVerifier},
    sign::CertifiedKey,
};
use rustls_pki_types::{CertificateDer, UnixTime};

use crate::{
    authn::PeerIdentity,
    certificates::{self, CertificateError, Issued},
};

#[cfg(test)]
mod tests;

/// The certificate a server shows, which can be replaced while it runs.
pub struct ServerCertificate {
    current: RwLock<Arc<CertifiedKey>>,
}

/// How connections are secured.
#[derive(Clone)]
pub struct ServerTls {
    config: Arc<ServerConfig>,
    clients: Arc<dyn ClientCertVerifier>,
}

/// TLS could not be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    #[error("failed to read the server's certificate")]
    Certificate(#[source] CertificateError),
    #[error("failed to use the server's key")]
    Key(#[source] rustls::Error),
    #[error("failed to use an authority for clients")]
    Authority(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("failed to configure TLS")]
    Config(#[source] rustls::Error),
}

impl ServerCertificate {
    pub fn new(issued: &Issued) -> Result<Arc<Self>, TlsError> {
        Ok(Arc::new(Self { current: RwLock::new(certified(issued)?) }))
    }

    /// New connections get the new certificate; open ones are not touched.
    pub fn replace(&self, issued: &Issued) -> Result<(), TlsError> {
        let new = certified(issued)?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = new;
        Ok(())
    }
}

impl fmt::Debug for ServerCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerCertificate").finish_non_exhaustive()
    }
}

impl ResolvesServerCert for ServerCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current.read().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTls").finish_non_exhaustive()
    }
}

impl ServerTls {
    /// Trusts clients whose chain ends in one of `authorities`.
    pub fn new(
        certificate: Arc<ServerCertificate>,
        authorities: &[CertificateDer<'static>],
    ) -> Result<Self, TlsError> {
        let provider = Arc::new(default_provider());
        let mut roots = RootCertStore::empty();
        for authority in authorities {
            roots.add(authority.clone()).map_err(|error| TlsError::Authority(error.into()))?;
        }
        let clients =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
                .allow_unauthenticated()
                .build()
                .map_err(|error| TlsError::Authority(error.into()))?;
        let asking = Arc::new(verifier::Asking::new(clients.clone()));
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Config)?
            .with_client_cert_verifier(asking)
            .with_cert_resolver(certificate);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self { config: Arc::new(config), clients })
    }

    /// Who showed this chain, its owner first. `None` without one.
    fn identify(&self, chain: Option<&[CertificateDer<'_>]>) -> Option<PeerIdentity> {
        let (owner, issuers) = chain?.split_first()?;
        let trusted = self.clients.verify_client_cert(owner, issuers, UnixTime::now()).is_ok();
        PeerIdentity::from_der(owner, trusted)
    }
}

fn certified(issued: &Issued) -> Result<Arc<CertifiedKey>, TlsError> {
    let chain =
        certificates::read_certificates(&issued.certificate).map_err(TlsError::Certificate)?;
    let key = certificates::read_private_key(&issued.key).map_err(TlsError::Certificate)?;
    let key = any_supported_type(&key).map_err(TlsError::Key)?;
    Ok(Arc::new(CertifiedKey::new(chain, key)))
}
