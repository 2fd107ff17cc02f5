//! What a webhook shows, who vouches for it, and how both are replaced while it runs.
//!
//! No request is lost by that: open connections keep what they were set up with, and an authority is
//! made known before anything is shown that it signed.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use cleat_apiserver::certificates::{Authority, Issued};
use cleat_apiserver::tls::{ServerCertificate, ServerTls};
use cleat_protection::Protection;
use cleat_webhook::Reach;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;

use super::Args;

/// How long a certificate that is made here is good for, and when it is replaced.
const LIFE: SignedDuration = SignedDuration::from_hours(365 * 24);
const REPLACED_AFTER: Duration = Duration::from_secs(120 * 24 * 60 * 60);
/// How often files are looked at: whoever replaces a certificate does it days before its end.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// How long a server has to hear of a new authority before it meets what that signed.
const HEARD: Duration = Duration::from_secs(20);

pub(super) struct Credentials {
    pub(super) tls: ServerTls,
    /// PEM; `None` when the server knows by itself.
    pub(super) authority: watch::Sender<Option<String>>,
    certificate: Arc<ServerCertificate>,
    source: Source,
}

enum Source {
    Made { authority: Box<Authority>, names: Vec<String> },
    Files(Files),
}

#[derive(Clone)]
struct Files {
    certificate: PathBuf,
    key: PathBuf,
    authority: Option<PathBuf>,
    /// What was last read.
    issued: Issued,
    signer: Option<String>,
}

impl Credentials {
    pub(super) fn of(args: &Args, reach: Option<&Reach>) -> Result<Self> {
        let own = Authority::generate("cleat-webhook-ca", Timestamp::now())?;
        // A verifier of clients wants an authority, although no client has to show anything.
        let verifier = [own.certificate().clone()];
        let (issued, signer, source) = match (&args.tls_cert, &args.tls_key) {
            (Some(certificate), Some(key)) => {
                let files = Files::read(certificate, key, args.tls_authority.as_deref())?;
                (files.issued.clone(), files.signer.clone(), Source::Files(files))
            }
            _ => {
                let names = names(args.listen, reach)?;
                let issued = issue(&own, &names)?;
                let signer = Some(own.certificate_pem().to_owned());
                (issued, signer, Source::Made { authority: Box::new(own), names })
            }
        };
        let certificate = ServerCertificate::new(&issued)?;
        let tls = ServerTls::new(Arc::clone(&certificate), &verifier)?;
        Ok(Self { tls, authority: watch::Sender::new(signer), certificate, source })
    }

    /// Replaces what is shown whenever it should be, for ever.
    pub(super) async fn keep_fresh(mut self, protection: Option<Protection>) {
        loop {
            let pause = match &self.source {
                Source::Made { .. } => REPLACED_AFTER,
                Source::Files(_) => LOOK_EVERY,
            };
            tokio::time::sleep(pause).await;
            if let Err(error) = self.refresh(protection.as_ref()).await {
                tracing::warn!(error = format!("{error:#}"), "a certificate was not replaced");
            }
        }
    }

    async fn refresh(&mut self, protection: Option<&Protection>) -> Result<()> {
        match &mut self.source {
            Source::Made { authority, names } => {
                self.certificate.replace(&issue(authority, names)?)?;
            }
            Source::Files(files) => {
                let found =
                    Files::read(&files.certificate, &files.key, files.authority.as_deref())?;
                if found.signer != files.signer {
                    let both = [&found.signer, &files.signer].into_iter().flatten();
                    let both: Vec<&str> = both.map(String::as_str).collect();
                    self.authority.send_replace(Some(both.join("\n")));
                    if let (Some(protection), Some(signer)) = (protection, &found.signer) {
                        protection.until_believed(signer).await;
                    }
                    tokio::time::sleep(HEARD).await;
                }
                if found.issued.certificate != files.issued.certificate {
                    self.certificate.replace(&found.issued)?;
                }
                *files = found;
            }
        }
        Ok(())
    }
}

impl Files {
    fn read(certificate: &Path, key: &Path, authority: Option<&Path>) -> Result<Self> {
        Ok(Self {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            authority: authority.map(Path::to_owned),
            issued: Issued { certificate: read(certificate)?, key: read(key)? },
            signer: authority.map(read).transpose()?,
        })
    }
}

fn issue(authority: &Authority, names: &[String]) -> Result<Issued> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    Ok(authority.issue_server("cleat-webhook", &names, Timestamp::now(), LIFE)?)
}

/// Every name under which the hub might ask for this server.
fn names(listen: IpAddr, reach: Option<&Reach>) -> Result<Vec<String>> {
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    if !listen.is_unspecified() {
        names.push(listen.to_string());
    }
    match reach {
        Some(Reach::Url(url)) => {
            let parsed: http::Uri = url.parse().with_context(|| format!("read the URL {url}"))?;
            let Some(host) = parsed.host().filter(|_| parsed.scheme_str() == Some("https")) else {
                bail!("{url} is not https://HOST:PORT");
            };
            names.push(host.trim_start_matches('[').trim_end_matches(']').to_owned());
        }
        Some(Reach::Service { namespace, name, .. }) => {
            names.push(format!("{name}.{namespace}.svc"))
        }
        None => {}
    }
    names.sort();
    names.dedup();
    Ok(names)
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))
}
