//! `cleat webhook`: judges works for a hub that is somebody else's Kubernetes.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use cleat_api::admission::{AbsentExecutor, Rules};
use cleat_apiserver::certificates::{Authority, Issued};
use cleat_apiserver::tls::{self, ServeOptions, ServerCertificate, ServerTls};
use cleat_hub::prepare::install_webhooks;
use cleat_webhook::{Judge, Reach, configuration};
use jiff::{SignedDuration, Timestamp};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio::net::TcpListener;

use crate::interrupt::interrupted;

/// Runs until it is interrupted.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// How to reach the hub [default: $KUBECONFIG, ~/.kube/config or, in a pod, its own account]
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// Which context of the kubeconfig is the hub [default: the current one]
    #[arg(long)]
    context: Option<String>,
    /// The address to listen on
    #[arg(long, default_value = "127.0.0.1")]
    listen: IpAddr,
    /// The port to listen on; 0 for any that is free
    #[arg(long, default_value_t = 9443)]
    port: u16,
    /// The certificate to show, as PEM. Without it one is made at every start
    #[arg(long, requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The key of that certificate, as PEM
    #[arg(long, requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Who signed that certificate, as PEM, where the hub does not know it by itself
    #[arg(long, requires = "tls_cert")]
    tls_authority: Option<PathBuf>,
    /// Let the hub ask this webhook: writes its ValidatingWebhookConfiguration
    #[arg(long)]
    install: bool,
    /// Where the hub reaches this webhook, such as https://10.0.0.7:9443 [default: where it listens]
    #[arg(long)]
    url: Option<String>,
    /// The service by which the hub reaches this webhook: NAMESPACE/NAME or NAMESPACE/NAME:PORT
    #[arg(long, conflicts_with = "url", value_parser = service)]
    service: Option<Reach>,
    /// The most bytes that all manifests of a work may have together
    #[arg(long, default_value_t = Rules::default().manifest_bytes)]
    manifest_limit: usize,
    /// Let works without an executor be made only by those who may act as the agent itself
    #[arg(long)]
    review_absent_executor: bool,
}

pub(crate) fn run(args: Args) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(webhook(args))
}

async fn webhook(args: Args) -> Result<()> {
    let hub_client = connect(&args).await.context("connect to the hub")?;
    let listener = TcpListener::bind((args.listen, args.port))
        .await
        .with_context(|| format!("listen on {} port {}", args.listen, args.port))?;
    let address = listener.local_addr()?;
    let reach = reach(&args, address);
    let credentials = Credentials::of(&args, reach.as_ref())?;
    if args.install {
        let reach = reach.context("say with --url or --service how the hub reaches this")?;
        let configuration = configuration(credentials.authority.as_deref(), &reach);
        install_webhooks(&hub_client, &configuration).await.context("let the hub ask")?;
    }
    let absent_executor = match args.review_absent_executor {
        true => AbsentExecutor::Reviewed,
        false => AbsentExecutor::Allowed,
    };
    let rules = Rules { manifest_bytes: args.manifest_limit, absent_executor };
    let router = Judge::new(hub_client, rules).router();
    println!("judging works on https://{address}; Ctrl-C stops");
    let stop = async { drop(interrupted().await) };
    tls::serve(listener, Some(credentials.tls), router, ServeOptions::default(), stop).await;
    Ok(())
}

async fn connect(args: &Args) -> Result<Client> {
    let config = match (&args.kubeconfig, &args.context) {
        (None, None) => Config::infer().await?,
        (path, context) => {
            let found = match path {
                Some(path) => Kubeconfig::read_from(path)?,
                None => Kubeconfig::read()?,
            };
            let options = KubeConfigOptions { context: context.clone(), ..Default::default() };
            Config::from_custom_kubeconfig(found, &options).await?
        }
    };
    Ok(Client::try_from(config)?)
}

/// `None` when only the user can know.
fn reach(args: &Args, address: SocketAddr) -> Option<Reach> {
    match (&args.service, &args.url) {
        (Some(service), _) => Some(service.clone()),
        (None, Some(url)) => Some(Reach::Url(url.clone())),
        (None, None) if address.ip().is_unspecified() => None,
        (None, None) => Some(Reach::Url(format!("https://{address}"))),
    }
}

fn service(text: &str) -> Result<Reach, String> {
    let wrong = || format!("{text} is not NAMESPACE/NAME or NAMESPACE/NAME:PORT");
    let (namespace, rest) = text.split_once('/').ok_or_else(wrong)?;
    let (name, port) = match rest.split_once(':') {
        Some((name, port)) => (name, port.parse().map_err(|_| wrong())?),
        None => (rest, 443),
    };
    if namespace.is_empty() || name.is_empty() {
        return Err(wrong());
    }
    Ok(Reach::Service { namespace: namespace.to_owned(), name: name.to_owned(), port })
}

/// What this server shows, and who vouches for it.
struct Credentials {
    tls: ServerTls,
    /// PEM; `None` when the hub knows by itself.
    authority: Option<String>,
}

impl Credentials {
    fn of(args: &Args, reach: Option<&Reach>) -> Result<Self> {
        let own = Authority::generate("cleat-webhook-ca", Timestamp::now())?;
        let (issued, authority) = match (&args.tls_cert, &args.tls_key) {
            (Some(certificate), Some(key)) => {
                let issued = Issued { certificate: read(certificate)?, key: read(key)? };
                (issued, args.tls_authority.as_deref().map(read).transpose()?)
            }
            _ => {
                let names = names(args.listen, reach)?;
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                let year = SignedDuration::from_hours(365 * 24);
                let issued = own.issue_server("cleat-webhook", &names, Timestamp::now(), year)?;
                (issued, Some(own.certificate_pem().to_owned()))
            }
        };
        // A verifier of clients wants an authority, although no client has to show anything.
        let tls = ServerTls::new(ServerCertificate::new(&issued)?, &[own.certificate().clone()])?;
        Ok(Self { tls, authority })
    }
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
