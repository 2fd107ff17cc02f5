//! The server's own certificate authority: making it, keeping it, and issuing from it.
//!
//! Who may have which certificate is not decided here beyond the rules of Kubernetes' signers;
//! approval is the caller's business. Certificates are encoded by hand because a subject may
//! belong to several organizations, which the usual builder cannot say.

mod der;
mod request;

pub use request::{CertificateRequest, Signer, SigningError};

use std::{fmt, net::IpAddr};

use jiff::{SignedDuration, Timestamp};
use ring::{
    rand::{SecureRandom as _, SystemRandom},
    signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair},
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _};
use x509_parser::{certificate::X509Certificate, prelude::FromDer as _};

#[cfg(test)]
mod tests;

const DAY: i64 = 24 * 60 * 60;
/// How far clocks of clients may be behind.
const BACKDATE: SignedDuration = SignedDuration::from_mins(5);

/// A certificate authority with its key.
pub struct Authority {
    key: EcdsaKeyPair,
    certificate_pem: String,
    key_pem: String,
    certificate: CertificateDer<'static>,
    /// The encoded subject.
    name: Vec<u8>,
    key_id: Vec<u8>,
    not_after: Timestamp,
}

/// A certificate with its key, both as PEM.
#[derive(Clone)]
pub struct Issued {
    pub certificate: String,
    pub key: String,
}

/// A certificate or key could not be made or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateError {
    #[error("failed to make a key")]
    Key,
    #[error("failed to sign a certificate")]
    Sign,
    #[error("not a certificate authority's certificate")]
    Certificate,
    #[error("not a P-256 private key in PKCS #8")]
    PrivateKey,
    #[error("certificate and key do not belong together")]
    Mismatch,
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").field("not_after", &self.not_after).finish_non_exhaustive()
    }
}

impl fmt::Debug for Issued {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Issued").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

impl Authority {
    /// A new one, good for ten years.
    pub fn generate(common_name: &str, now: Timestamp) -> Result<Self, CertificateError> {
        let key_pem = new_key_pem()?;
        let (key, spki) = read_key(&key_pem)?;
        let name = der::name(common_name, &[]);
        let key_id = der::key_id(&spki);
        let template = der::Template {
            issuer: &name,
            subject: &name,
            public_key: &spki,
            not_before: now - BACKDATE,
            not_after: after(now, 3650 * DAY),
            extensions: vec![
                der::basic_constraints(true),
                der::key_usage(der::DIGITAL_SIGNATURE | der::KEY_ENCIPHERMENT | der::CERT_SIGN),
                der::subject_key_id(&key_id),
            ],
        };
        let certificate = sign(&key, template)?;
        Self::from_pem(&der::pem("CERTIFICATE", &certificate), &key_pem)
    }

    /// From what [`Self::certificate_pem`] and [`Self::key_pem`] gave.
    pub fn from_pem(certificate_pem: &str, key_pem: &str) -> Result<Self, CertificateError> {
        let bad = |_| CertificateError::Certificate;
        let certificate =
            CertificateDer::from_pem_slice(certificate_pem.as_bytes()).map_err(bad)?;
        let (key, spki) = read_key(key_pem)?;
        let (name, key_id, not_after) = {
            let (_, parsed) = X509Certificate::from_der(&certificate)
                .map_err(|_| CertificateError::Certificate)?;
            if !parsed.is_ca() {
                return Err(CertificateError::Certificate);
            }
            if parsed.public_key().raw != spki.as_slice() {
                return Err(CertificateError::Mismatch);
            }
            let not_after = Timestamp::from_second(parsed.validity().not_after.timestamp());
            let not_after = not_after.map_err(|_| CertificateError::Certificate)?;
            (parsed.subject().as_raw().to_vec(), der::key_id(&spki), not_after)
        };
        Ok(Self {
            key,
            certificate_pem: certificate_pem.to_owned(),
            key_pem: key_pem.to_owned(),
            certificate,
            name,
            key_id,
            not_after,
        })
    }

    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    pub fn key_pem(&self) -> &str {
        &self.key_pem
    }

    pub fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    /// For a server reached under these names and addresses.
    pub fn issue_server(
        &self,
        common_name: &str,
        names: &[&str],
        now: Timestamp,
        lifetime: SignedDuration,
    ) -> Result<Issued, CertificateError> {
        let (addresses, names): (Vec<&str>, Vec<&str>) =
            names.iter().copied().partition(|name| name.parse::<IpAddr>().is_ok());
        let addresses: Vec<IpAddr> =
            addresses.into_iter().filter_map(|address| address.parse().ok()).collect();
        let extensions = vec![
            der::key_usage(der::DIGITAL_SIGNATURE | der::KEY_ENCIPHERMENT),
            der::extended_key_usage(&[der::SERVER_AUTH]),
            der::alternative_names(&names, &addresses),
        ];
        self.issue(&der::name(common_name, &[]), extensions, now, lifetime)
    }

    /// For a user; their groups are the certificate's organizations.
    pub fn issue_client(
        &self,
        user: &str,
        groups: &[&str],
        now: Timestamp,
        lifetime: SignedDuration,
    ) -> Result<Issued, CertificateError> {
        let extensions = vec![
            der::key_usage(der::DIGITAL_SIGNATURE | der::KEY_ENCIPHERMENT),
            der::extended_key_usage(&[der::CLIENT_AUTH]),
        ];
        self.issue(&der::name(user, groups), extensions, now, lifetime)
    }

    fn issue(
        &self,
        subject: &[u8],
        extensions: Vec<Vec<u8>>,
        now: Timestamp,
        lifetime: SignedDuration,
    ) -> Result<Issued, CertificateError> {
        let key = new_key_pem()?;
        let (_, spki) = read_key(&key)?;
        let not_after = after(now, lifetime.as_secs());
        let certificate = self.sign(subject, &spki, now - BACKDATE, not_after, extensions)?;
        Ok(Issued { certificate, key })
    }

    /// The certificate as PEM. It ends no later than the authority's own.
    fn sign(
        &self,
        subject: &[u8],
        public_key: &[u8],
        not_before: Timestamp,
        not_after: Timestamp,
        mut extensions: Vec<Vec<u8>>,
    ) -> Result<String, CertificateError> {
        extensions.push(der::basic_constraints(false));
        extensions.push(der::authority_key_id(&self.key_id));
        let template = der::Template {
            issuer: &self.name,
            subject,
            public_key,
            not_before,
            not_after: not_after.min(self.not_after),
            extensions,
        };
        Ok(der::pem("CERTIFICATE", &sign(&self.key, template)?))
    }
}

/// The chain of a PEM file, for rustls.
pub fn read_certificates(pem: &str) -> Result<Vec<CertificateDer<'static>>, CertificateError> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    all.map_err(|_| CertificateError::Certificate)
}

/// The key of a PEM file, for rustls.
pub fn read_private_key(pem: &str) -> Result<PrivateKeyDer<'static>, CertificateError> {
    PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|_| CertificateError::PrivateKey)
}

fn sign(key: &EcdsaKeyPair, template: der::Template<'_>) -> Result<Vec<u8>, CertificateError> {
    let random = SystemRandom::new();
    let mut serial = [0_u8; 16];
    random.fill(&mut serial).map_err(|_| CertificateError::Sign)?;
    let body = template.to_be_signed(&serial);
    let signature = key.sign(&random, &body).map_err(|_| CertificateError::Sign)?;
    Ok(der::certificate(&body, signature.as_ref()))
}

fn new_key_pem() -> Result<String, CertificateError> {
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256);
    Ok(key.map_err(|_| CertificateError::Key)?.serialize_pem())
}

/// The key, and its public half as it stands in certificates.
fn read_key(pem: &str) -> Result<(EcdsaKeyPair, Vec<u8>), CertificateError> {
    use rcgen::PublicKeyData as _;
    let pair = rcgen::KeyPair::from_pem(pem).map_err(|_| CertificateError::PrivateKey)?;
    let random = SystemRandom::new();
    let der = pair.serialize_der();
    let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &der, &random)
        .map_err(|_| CertificateError::PrivateKey)?;
    Ok((key, pair.subject_public_key_info()))
}

fn after(now: Timestamp, seconds: i64) -> Timestamp {
    now.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX)
}
