//! The certificates and keys of one control plane, made afresh each time it starts.
//!
//! One authority per plane signs its server, its clients and, through the controller manager, what
//! CertificateSigningRequests ask for. Not for anything but tests: the authority's key lies beside it.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};

/// A certificate authority.
pub struct Authority {
    pub certificate: String,
    key: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate with its key, both PEM.
#[derive(Clone, Debug)]
pub struct Identity {
    pub certificate: String,
    pub key: String,
}

impl Authority {
    pub fn new(common_name: &str) -> Result<Self> {
        let mut params = params(common_name, None);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::DigitalSignature,
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::CrlSign,
        ];
        let key = KeyPair::generate().context("generate a key")?;
        let certificate = params.self_signed(&key).context("sign the authority")?.pem();
        Ok(Self { certificate, key: key.serialize_pem(), issuer: Issuer::new(params, key) })
    }

    /// A certificate for a server that is reached as any of `names` (host names or addresses).
    pub fn server(&self, common_name: &str, names: &[&str]) -> Result<Identity> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = params(common_name, None);
        params.subject_alt_names =
            CertificateParams::new(names).context("read the server's names")?.subject_alt_names;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(params)
    }

    /// A certificate for a user, perhaps in a group.
    pub fn client(&self, user: &str, group: Option<&str>) -> Result<Identity> {
        let mut params = params(user, group);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(params)
    }

    fn sign(&self, mut params: CertificateParams) -> Result<Identity> {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate().context("generate a key")?;
        let certificate = params.signed_by(&key, &self.issuer).context("sign a certificate")?;
        Ok(Identity { certificate: certificate.pem(), key: key.serialize_pem() })
    }
}

/// Fixed dates: these certificates live as long as a test, and clocks of test machines are off.
fn params(common_name: &str, organization: Option<&str>) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(2120, 1, 1);
    params.distinguished_name.push(DnType::CommonName, common_name);
    if let Some(organization) = organization {
        params.distinguished_name.push(DnType::OrganizationName, organization);
    }
    params
}

/// The files the programs of one plane read.
pub(crate) struct Files {
    pub(crate) authority: PathBuf,
    pub(crate) authority_key: PathBuf,
    pub(crate) server: PathBuf,
    pub(crate) server_key: PathBuf,
    pub(crate) service_account_public: PathBuf,
    pub(crate) service_account_private: PathBuf,
}

/// One plane's authority and the certificates it starts with.
pub(crate) struct Certificates {
    pub(crate) files: Files,
    pub(crate) authority: String,
    pub(crate) admin: Identity,
    pub(crate) controller_manager: Identity,
}

impl Certificates {
    /// Makes everything and writes what the programs need below `folder`.
    pub(crate) fn create(plane: &str, folder: &Path) -> Result<Self> {
        let authority = Authority::new(&format!("cleat-test-{plane}"))?;
        let server = authority.server(
            "kube-apiserver",
            &[
                "127.0.0.1",
                "localhost",
                "kubernetes",
                "kubernetes.default",
                "kubernetes.default.svc",
                "10.0.0.1",
            ],
        )?;
        let service_account = KeyPair::generate().context("generate a key")?;
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            std::fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
            Ok::<_, anyhow::Error>(path)
        };
        let files = Files {
            authority: write("ca.crt", &authority.certificate)?,
            authority_key: write("ca.key", &authority.key)?,
            server: write("apiserver.crt", &server.certificate)?,
            server_key: write("apiserver.key", &server.key)?,
            service_account_public: write("sa.pub", &service_account.public_key_pem())?,
            service_account_private: write("sa.key", &service_account.serialize_pem())?,
        };
        Ok(Self {
            files,
            admin: authority.client("kubernetes-admin", Some("system:masters"))?,
            controller_manager: authority.client("system:kube-controller-manager", None)?,
            authority: authority.certificate,
        })
    }
}
