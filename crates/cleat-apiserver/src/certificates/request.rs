//! Certificate signing requests: reading them, and signing those the built-in signers sign.

use jiff::{SignedDuration, Timestamp};
use x509_parser::{
    certification_request::X509CertificationRequest,
    extensions::{GeneralName, ParsedExtension},
    pem::parse_x509_pem,
    prelude::FromDer as _,
};

use super::{Authority, BACKDATE, CertificateError, der};
use crate::quote::quoted_list;

/// A year: no certificate for a client lives longer.
const MAX_LIFETIME: i64 = 365 * super::DAY;
/// Shorter wishes are lengthened to this.
const MIN_LIFETIME: i64 = 10 * 60;
/// From here on, backdating also shortens the end.
const SHORT: i64 = 8 * 60 * 60;

/// The signers of Kubernetes this server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signer {
    /// `kubernetes.io/kube-apiserver-client`
    Client,
    /// `kubernetes.io/kube-apiserver-client-kubelet`
    KubeletClient,
    /// `kubernetes.io/kubelet-serving`
    KubeletServing,
    /// `kubernetes.io/legacy-unknown`
    LegacyUnknown,
}

/// What a request asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertificateRequest {
    pub common_name: String,
    pub organizations: Vec<String>,
    pub dns_names: Vec<String>,
    pub ip_addresses: Vec<Vec<u8>>,
    pub email_addresses: Vec<String>,
    pub uris: Vec<String>,
    pub(super) subject: Vec<u8>,
    public_key: Vec<u8>,
    /// The value of the extension, when there is one.
    alternative_names: Option<Vec<u8>>,
}

/// Why a request was not signed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SigningError {
    /// The request breaks a rule of its signer: the `Failed` condition's message.
    #[error("{0}")]
    Refused(String),
    #[error("unable to parse certificate request: {0}")]
    Malformed(String),
    #[error("{0}")]
    Expired(String),
    #[error(transparent)]
    Certificate(#[from] CertificateError),
}

impl Signer {
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "kubernetes.io/kube-apiserver-client" => Self::Client,
            "kubernetes.io/kube-apiserver-client-kubelet" => Self::KubeletClient,
            "kubernetes.io/kubelet-serving" => Self::KubeletServing,
            "kubernetes.io/legacy-unknown" => Self::LegacyUnknown,
            _ => return None,
        })
    }
}

impl CertificateRequest {
    /// From PEM; the signature by the requester's own key is verified.
    pub fn from_pem(pem: &[u8]) -> Result<Self, SigningError> {
        let no_block =
            || SigningError::Malformed("PEM block type must be CERTIFICATE REQUEST".to_owned());
        let (_, block) = parse_x509_pem(pem).map_err(|_| no_block())?;
        if block.label != "CERTIFICATE REQUEST" {
            return Err(no_block());
        }
        let (_, parsed) = X509CertificationRequest::from_der(&block.contents)
            .map_err(|error| SigningError::Malformed(error.to_string()))?;
        parsed.verify_signature().map_err(|error| {
            SigningError::Malformed(format!(
                "unable to verify certificate request signature: {error}"
            ))
        })?;
        let info = &parsed.certification_request_info;
        let texts = |values: &mut dyn Iterator<
            Item = &x509_parser::x509::AttributeTypeAndValue<'_>,
        >| {
            values.filter_map(|value| value.as_str().ok()).map(str::to_owned).collect::<Vec<_>>()
        };
        let mut request = Self {
            common_name: texts(&mut info.subject.iter_common_name()).pop().unwrap_or_default(),
            organizations: texts(&mut info.subject.iter_organization()),
            subject: info.subject.as_raw().to_vec(),
            public_key: info.subject_pki.raw.to_vec(),
            ..Self::default()
        };
        for extension in parsed.requested_extensions().into_iter().flatten() {
            if let ParsedExtension::SubjectAlternativeName(names) = extension {
                request.take_names(&names.general_names);
            }
        }
        Ok(request)
    }

    fn take_names(&mut self, names: &[GeneralName<'_>]) {
        for name in names {
            match name {
                GeneralName::DNSName(name) => self.dns_names.push((*name).to_owned()),
                GeneralName::IPAddress(address) => self.ip_addresses.push(address.to_vec()),
                GeneralName::RFC822Name(name) => self.email_addresses.push((*name).to_owned()),
                GeneralName::URI(uri) => self.uris.push((*uri).to_owned()),
                _ => {}
            }
        }
        self.alternative_names = Some(der::general_names(
            &self.dns_names,
            &self.email_addresses,
            &self.ip_addresses,
            &self.uris,
        ));
    }

    /// The rules of the signer. The error is the sentence Kubernetes puts into the condition.
    fn check(&self, signer: Signer, usages: &[&str]) -> Result<(), String> {
        match signer {
            Signer::LegacyUnknown => Ok(()),
            Signer::Client => check_client_usages(usages),
            Signer::KubeletClient => {
                self.check_organization()?;
                for (given, kind) in [
                    (!self.dns_names.is_empty(), "DNS"),
                    (!self.email_addresses.is_empty(), "Email"),
                    (!self.ip_addresses.is_empty(), "IP"),
                    (!self.uris.is_empty(), "URI"),
                ] {
                    if given {
                        return Err(format!("{kind} subjectAltNames are not allowed"));
                    }
                }
                self.check_node_name()?;
                check_exact_usages(usages, "client auth")
            }
            Signer::KubeletServing => {
                self.check_organization()?;
                if self.dns_names.is_empty() && self.ip_addresses.is_empty() {
                    return Err("DNS or IP subjectAltName is required".to_owned());
                }
                for (given, kind) in
                    [(!self.email_addresses.is_empty(), "Email"), (!self.uris.is_empty(), "URI")]
                {
                    if given {
                        return Err(format!("{kind} subjectAltNames are not allowed"));
                    }
                }
                check_exact_usages(usages, "server auth")?;
                self.check_node_name()
            }
        }
    }

    fn check_organization(&self) -> Result<(), String> {
        match self.organizations.as_slice() {
            [one] if one == "system:nodes" => Ok(()),
            _ => Err("subject organization is not system:nodes".to_owned()),
        }
    }

    fn check_node_name(&self) -> Result<(), String> {
        if self.common_name.starts_with("system:node:") {
            return Ok(());
        }
        Err("subject common name does not begin with system:node:".to_owned())
    }
}

impl Authority {
    /// Signs an approved request, giving PEM. `seconds` is `spec.expirationSeconds`.
    pub fn sign_request(
        &self,
        request: &CertificateRequest,
        signer: Signer,
        usages: &[&str],
        seconds: Option<i64>,
        now: Timestamp,
    ) -> Result<String, SigningError> {
        request.check(signer, usages).map_err(SigningError::Refused)?;
        let mut extensions = usage_extensions(usages)?;
        if let Some(names) = &request.alternative_names {
            extensions.push(der::extension(der::ALTERNATIVE_NAMES, false, names));
        }
        if now >= self.not_after {
            return Err(SigningError::Expired(format!(
                "the signer has expired: NotAfter={}",
                self.not_after
            )));
        }
        let lifetime = seconds.unwrap_or(MAX_LIFETIME).clamp(MIN_LIFETIME, MAX_LIFETIME);
        let mut not_after = super::after(now, lifetime);
        if lifetime >= SHORT {
            not_after -= BACKDATE;
        }
        let not_before = now - BACKDATE;
        Ok(self.sign(&request.subject, &request.public_key, not_before, not_after, extensions)?)
    }

    /// How long a certificate of [`Self::sign_request`] lives when nothing is asked for.
    pub fn default_lifetime() -> SignedDuration {
        SignedDuration::from_secs(MAX_LIFETIME)
    }
}

fn check_client_usages(usages: &[&str]) -> Result<(), String> {
    for usage in usages {
        if !["digital signature", "key encipherment", "client auth"].contains(usage) {
            return Err(format!("invalid usage for client certificate: {usage}"));
        }
    }
    if !usages.contains(&"client auth") {
        return Err("missing required usage for client certificate: client auth".to_owned());
    }
    Ok(())
}

/// The purpose with a signature, and for RSA keys encipherment.
fn check_exact_usages(usages: &[&str], purpose: &str) -> Result<(), String> {
    let known = |usage: &str| usage == purpose || usage == "digital signature";
    let complete = usages.contains(&purpose) && usages.contains(&"digital signature");
    if complete && usages.iter().all(|usage| known(usage) || *usage == "key encipherment") {
        return Ok(());
    }
    let mut wanted = ["digital signature", "key encipherment", purpose];
    wanted.sort_unstable();
    // Upstream prints the list without quotes.
    Err(format!("usages did not match [{}]", wanted.join(" ")))
}

fn usage_extensions(usages: &[&str]) -> Result<Vec<Vec<u8>>, SigningError> {
    let mut bits = 0;
    let mut purposes: Vec<&[u8]> = Vec::new();
    let mut unknown = Vec::new();
    for usage in usages {
        match (key_usage(usage), purpose(usage)) {
            (Some(bit), _) => bits |= bit,
            (None, Some(purpose)) if !purposes.contains(&purpose) => purposes.push(purpose),
            (None, Some(_)) => {}
            (None, None) => unknown.push(*usage),
        }
    }
    if !unknown.is_empty() {
        let unknown = quoted_list(&unknown);
        return Err(SigningError::Malformed(format!("unrecognized usage values: {unknown}")));
    }
    let mut extensions = Vec::new();
    if bits != 0 {
        extensions.push(der::key_usage(bits));
    }
    if !purposes.is_empty() {
        extensions.push(der::extended_key_usage(&purposes));
    }
    Ok(extensions)
}

fn key_usage(usage: &str) -> Option<u16> {
    Some(match usage {
        "signing" | "digital signature" => der::DIGITAL_SIGNATURE,
        "content commitment" => der::CONTENT_COMMITMENT,
        "key encipherment" => der::KEY_ENCIPHERMENT,
        "key agreement" => der::KEY_AGREEMENT,
        "data encipherment" => der::DATA_ENCIPHERMENT,
        "cert sign" => der::CERT_SIGN,
        "crl sign" => der::CRL_SIGN,
        "encipher only" => der::ENCIPHER_ONLY,
        "decipher only" => der::DECIPHER_ONLY,
        _ => return None,
    })
}

fn purpose(usage: &str) -> Option<&'static [u8]> {
    Some(match usage {
        "any" => &[0x55, 0x1d, 37, 0],
        "server auth" => der::SERVER_AUTH,
        "client auth" => der::CLIENT_AUTH,
        "code signing" => &[0x2b, 6, 1, 5, 5, 7, 3, 3],
        "email protection" | "s/mime" => &[0x2b, 6, 1, 5, 5, 7, 3, 4],
        "ipsec end system" => &[0x2b, 6, 1, 5, 5, 7, 3, 5],
        "ipsec tunnel" => &[0x2b, 6, 1, 5, 5, 7, 3, 6],
        "ipsec user" => &[0x2b, 6, 1, 5, 5, 7, 3, 7],
        "timestamping" => &[0x2b, 6, 1, 5, 5, 7, 3, 8],
        "ocsp signing" => &[0x2b, 6, 1, 5, 5, 7, 3, 9],
        "microsoft sgc" => &[0x2b, 6, 1, 4, 1, 0x82, 0x37, 10, 3, 3],
        "netscape sgc" => &[0x60, 0x86, 0x48, 1, 0x86, 0xf8, 0x42, 4, 1],
        _ => return None,
    })
}
