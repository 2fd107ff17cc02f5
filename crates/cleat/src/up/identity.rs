//! The keys of one embedded server, kept in a directory only its owner can read.

use std::fs;
use std::io::Write as _;
use std::net::IpAddr;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use cleat_apiserver::authn::SigningKey;
use cleat_apiserver::certificates::{Authority, Issued};
use jiff::{SignedDuration, Timestamp};

const YEAR: SignedDuration = SignedDuration::from_hours(365 * 24);

/// A certificate authority and the key that signs service account tokens.
pub(super) struct Identity {
    pub(super) authority: Arc<Authority>,
    signing_key_pem: String,
}

impl Identity {
    /// What is there is used; what is missing is made and written down before it is used.
    pub(super) fn load_or_create(dir: &Path, name: &str) -> Result<Self> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        let (certificate, key) = (dir.join("ca.crt"), dir.join("ca.key"));
        let authority = match (read(&certificate)?, read(&key)?) {
            (Some(certificate), Some(key)) => Authority::from_pem(&certificate, &key)?,
            _ => {
                let made = Authority::generate(&format!("{name}-ca"), Timestamp::now())?;
                write_secret(&key, made.key_pem())?;
                write_secret(&certificate, made.certificate_pem())?;
                made
            }
        };
        let tokens = dir.join("service-accounts.key");
        let signing_key_pem = match read(&tokens)? {
            Some(pem) => pem,
            None => {
                let pem = SigningKey::generate()?.to_pem().to_owned();
                write_secret(&tokens, &pem)?;
                pem
            }
        };
        Ok(Self { authority: Arc::new(authority), signing_key_pem })
    }

    pub(super) fn signing_key(&self) -> Result<SigningKey> {
        Ok(SigningKey::from_pem(&self.signing_key_pem)?)
    }

    /// A fresh certificate for whoever owns this machine's kubeconfig.
    pub(super) fn admin(&self) -> Result<Issued> {
        let groups = ["system:masters"];
        Ok(self.authority.issue_client("kubernetes-admin", &groups, Timestamp::now(), YEAR)?)
    }

    pub(super) fn server(&self, name: &str, listen: IpAddr) -> Result<Issued> {
        let listen = listen.to_string();
        let names = [
            name,
            "localhost",
            "127.0.0.1",
            "::1",
            &listen,
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "kubernetes.default.svc.cluster.local",
        ];
        Ok(self.authority.issue_server(name, &names, Timestamp::now(), YEAR)?)
    }
}

fn read(path: &PathBuf) -> Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("read {}", path.display())),
    }
}

/// Wholly there or not at all, and readable by its owner alone.
pub(super) fn write_secret(path: &Path, text: &str) -> Result<()> {
    let partial = path.with_extension("partial");
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = options.open(&partial).with_context(|| format!("write {}", path.display()))?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&partial, path).with_context(|| format!("write {}", path.display()))
}
