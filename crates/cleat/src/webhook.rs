//! `cleat webhook`: judges works for a hub that is somebody else's Kubernetes, and protects from
//! deletion what a cluster's CriticalServices name, whether it is part of a fleet or not.

mod credentials;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use cleat_api::admission::{AbsentExecutor, Rules};
use cleat_apiserver::tls::{self, ServeOptions};
use cleat_core::preview::guard::Threshold;
use cleat_core::protection::rules::Place;
use cleat_hub::outlook;
use cleat_hub::prepare::{install_webhooks, prepare_protection};
use cleat_runtime::connect::connect as connect_quietly;
use cleat_runtime::tasks::Tasks;
use cleat_webhook::{Guard, Judge, Reach, client_config, configuration, guard_configuration};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio::net::TcpListener;
use tokio::sync::watch;

use self::credentials::Credentials;

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
    /// Protect what the CriticalServices of this cluster name: defines their kind, and keeps a
    /// ValidatingWebhookConfiguration for exactly what they name
    #[arg(long)]
    protect: bool,
    /// End protection: removes that configuration first, sees it gone, and ends
    /// Webhooks that go on to run do not bring it back
    #[arg(long, conflicts_with_all = ["protect", "install"])]
    unprotect: bool,
    /// Take back that protection was ended, and end: webhooks that run with --protect protect again
    #[arg(long, conflicts_with_all = ["protect", "install", "unprotect"])]
    reprotect: bool,
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
    /// Refuse to delete works, sets of works, policies, what places them, and clusters with more objects
    /// than this unless they carry an approved plan (`cleat delete --plan`); with --install, has the hub ask
    #[arg(long)]
    guard_above_objects: Option<usize>,
    /// The same for more clusters than this [default with another of these: any number]
    #[arg(long)]
    guard_above_clusters: Option<usize>,
    /// The same for more namespaces among the objects than this [default with another of these: any
    /// number]
    #[arg(long)]
    guard_above_namespaces: Option<usize>,
}

impl Args {
    /// Which deletions are refused, if any are.
    fn guard(&self) -> Option<Threshold> {
        let above =
            [self.guard_above_objects, self.guard_above_clusters, self.guard_above_namespaces];
        let chosen = above.iter().any(Option::is_some);
        let [objects, clusters, namespaces] = above.map(|one| one.unwrap_or(usize::MAX));
        chosen.then_some(Threshold { objects, clusters, namespaces })
    }
}

/// Which clusters would lose policies, the hub's own stories say.
fn guard(above: Threshold, hub_client: &Client) -> Guard {
    let hub_client = hub_client.clone();
    let losing = move |namespace: String, name: String, change| {
        let hub_client = hub_client.clone();
        let told = async move {
            let losing = outlook::losing(&hub_client, &namespace, &name, &change).await;
            losing.map_err(|error| format!("{:#}", anyhow::Error::new(error)))
        };
        Box::pin(told) as _
    };
    Guard { above, losing: Arc::new(losing) }
}

pub(crate) fn run(args: Args) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(webhook(args))
}

async fn webhook(args: Args) -> Result<()> {
    let client_config = kubeconfig(&args).await.context("find out where the server is")?;
    let hub_client = Client::try_from(client_config.clone()).context("connect to the server")?;
    if args.unprotect {
        cleat_protection::uninstall(&hub_client, cleat_protection::CONFIGURATION).await?;
        println!("nothing is protected any more; CriticalServices may be deleted now");
        return Ok(());
    }
    if args.reprotect {
        cleat_protection::begin_again(&hub_client, cleat_protection::CONFIGURATION).await?;
        println!("whatever runs with --protect protects again");
        return Ok(());
    }
    let listener = TcpListener::bind((args.listen, args.port))
        .await
        .with_context(|| format!("listen on {} port {}", args.listen, args.port))?;
    let address = listener.local_addr()?;
    let reach = reach(&args, address);
    let credentials = Credentials::of(&args, reach.as_ref())?;
    let tasks = Tasks::new();
    let absent_executor = match args.review_absent_executor {
        true => AbsentExecutor::Reviewed,
        false => AbsentExecutor::Allowed,
    };
    let rules = Rules { manifest_bytes: args.manifest_limit, absent_executor };
    let mut protection = None;
    let mut judge = Judge::new(hub_client.clone(), rules);
    if let Some(above) = args.guard() {
        judge = judge.guarded(guard(above, &hub_client));
    }
    let mut router = judge.router();
    if args.install || args.protect {
        let reach = reach.context("say with --url or --service how the server reaches this")?;
        if args.install {
            let authority = credentials.authority.borrow().clone();
            let configuration = configuration(authority.as_deref(), &reach);
            install_webhooks(&hub_client, &configuration).await.context("let the hub ask")?;
            if args.guard().is_some() {
                let guard = guard_configuration(authority.as_deref(), &reach);
                install_webhooks(&hub_client, &guard).await.context("let the hub ask")?;
            }
        }
        if args.protect {
            prepare_protection(&hub_client).await.context("define CriticalServices")?;
            let place = places(reach, credentials.authority.subscribe(), &tasks);
            let client = connect_quietly(client_config, "cleat-protection")?;
            let config = cleat_protection::Config { client, place, labels: None };
            let started = cleat_protection::start(config, &tasks);
            router = router.merge(started.routes());
            protection = Some(started);
            println!("protecting what CriticalServices name");
        }
    }
    let tls = credentials.tls.clone();
    let mut stop = tasks.stop();
    tasks.spawn("certificates", async move {
        stop.or(credentials.keep_fresh(protection)).await;
    });
    let stop = interrupted()?;
    println!("judging works on https://{address}; Ctrl-C stops");
    tls::serve(listener, Some(tls), router, ServeOptions::default(), stop).await;
    tasks.shutdown().await;
    Ok(())
}

/// How the server finds the protection, again and again as authorities change.
fn places(
    reach: Reach,
    mut authority: watch::Receiver<Option<String>>,
    tasks: &Tasks,
) -> watch::Receiver<Place> {
    let own_namespace = match &reach {
        Reach::Service { namespace, .. } => Some(namespace.clone()),
        Reach::Url(_) => None,
    };
    let place = move |authority: Option<&str>| Place {
        name: cleat_protection::CONFIGURATION.to_owned(),
        client: client_config(authority, &reach, cleat_protection::PATH),
        own_namespace: own_namespace.clone(),
    };
    let sender = watch::Sender::new(place(authority.borrow_and_update().as_deref()));
    let receiver = sender.subscribe();
    let mut stop = tasks.stop();
    tasks.spawn("authority", async move {
        while let Some(Ok(())) = stop.or(authority.changed()).await {
            let changed = place(authority.borrow_and_update().as_deref());
            sender.send_replace(changed);
        }
    });
    receiver
}

async fn kubeconfig(args: &Args) -> Result<Config> {
    Ok(match (&args.kubeconfig, &args.context) {
        (None, None) => Config::infer().await?,
        (path, context) => {
            let found = match path {
                Some(path) => Kubeconfig::read_from(path)?,
                None => Kubeconfig::read()?,
            };
            let options = KubeConfigOptions { context: context.clone(), ..Default::default() };
            Config::from_custom_kubeconfig(found, &options).await?
        }
    })
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
