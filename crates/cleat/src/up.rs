//! `cleat up`: a hub and clusters in one process, durable in one directory.

mod agents;
mod auditing;
mod demo;
mod identity;
mod kubeconfig;
mod ports;
mod role;
mod sharing;

use std::io::{IsTerminal as _, Write as _};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use cleat_apiserver::authn::{Authenticator, ServiceAccountTokens};
use cleat_apiserver::tls::{self, ServeOptions, ServerCertificate, ServerTls};
use cleat_apiserver::{Config, Server};
use cleat_core::number::number;
use cleat_hub::{clusters, hub};
use cleat_runtime::tasks::Tasks;
use cleat_store::{Disk, Limits, Store};
use futures::future::try_join_all;
use kube::Client;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use self::auditing::Auditing;
use self::identity::Identity;
use self::role::Role;
use self::sharing::Sharing;
use crate::files;
use crate::interrupt::interrupted;
use crate::policy::options::PolicyOptions;

/// The most clusters one process is asked to run.
const MOST_CLUSTERS: u16 = 2000;

/// Runs until it is interrupted; a second start finds everything again.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// How many clusters to run beside the hub
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(0..=i64::from(MOST_CLUSTERS)))]
    clusters: u16,
    /// Where everything is kept
    #[arg(long, default_value = ".cleat", env = "CLEAT_DIR")]
    dir: PathBuf,
    /// The address to listen on
    #[arg(long, default_value = "127.0.0.1")]
    listen: IpAddr,
    /// The hub's port; clusters follow it. Ports that are taken are passed over
    #[arg(long, default_value_t = 7443)]
    port: u16,
    /// Leave workloads alone instead of letting them look as if nodes ran them
    #[arg(long)]
    no_pretend: bool,
    /// Run plain Kubernetes API servers: none of Cleat's kinds, controllers and agents
    #[arg(long)]
    bare: bool,
    /// Put a story on the fleet to try Cleat with: docs/tour.md walks through it
    #[arg(long, conflicts_with = "bare")]
    demo: bool,
    /// Keep audit logs in Kubernetes' format: FILE.log becomes FILE-hub.log, FILE-cluster1.log, …
    #[arg(long, value_name = "FILE", requires = "audit_policy_file")]
    audit_log_path: Option<PathBuf>,
    /// What goes into the audit logs: a Policy of audit.k8s.io/v1
    #[arg(long, value_name = "FILE", requires = "audit_log_path")]
    audit_policy_file: Option<PathBuf>,
    #[command(flatten)]
    policies: PolicyOptions,
    #[command(flatten)]
    sharing: Sharing,
}

/// The name of the server that is the hub.
pub(crate) const HUB: &str = "hub";

/// Who signs service account tokens; whose they are is up to the key.
const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

/// One server of this process.
struct Member {
    name: String,
    identity: Identity,
    server: Server,
    listener: TcpListener,
    address: String,
}

pub(crate) fn run(args: Args) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(up(args))
}

async fn up(args: Args) -> Result<()> {
    let begun = std::time::Instant::now();
    if args.demo && (args.clusters < demo::CLUSTERS || args.no_pretend) {
        bail!(
            "the demo is about {} clusters or more, whose workloads look as if they ran",
            demo::CLUSTERS
        );
    }
    let auditing =
        Auditing::read(args.audit_log_path.as_deref(), args.audit_policy_file.as_deref())?;
    std::fs::create_dir_all(&args.dir)
        .with_context(|| format!("create the directory {}", args.dir.display()))?;
    let disk = Disk::open(args.dir.join("cleat.redb")).with_context(|| {
        format!("open the store in {} (is another cleat running there?)", args.dir.display())
    })?;
    let names = std::iter::once(HUB.to_owned())
        .chain((1..=args.clusters).map(|number| format!("cluster{number}")));
    let names: Vec<String> = names.collect();
    let listeners = ports::listen(&args.dir, args.listen, args.port, &names).await?;
    let tasks = Tasks::new();
    waits_for(&format!(
        "the hub and {} to start",
        number(usize::from(args.clusters), "cluster", "clusters")
    ));
    let starting = names
        .into_iter()
        .zip(listeners)
        .map(|(name, listener)| start(&disk, &args, auditing.as_ref(), name, listener, &tasks));
    let members = try_join_all(starting).await?;
    let kubeconfig = args.dir.join("kubeconfig");
    kubeconfig::write(&kubeconfig, members.iter().map(Member::access))?;
    let (hub_member, others) = members.split_first().context("a fleet has a hub")?;
    let hub_client = Client::new(hub_member.server.router(), "default");
    let others: Vec<(String, Client)> = others
        .iter()
        .map(|member| (member.name.clone(), Client::new(member.server.router(), "default")))
        .collect();
    if !args.bare {
        waits_for("the agents to be let in");
        agents::start(&hub_member.server, others.clone(), &args.policies, &tasks).await?;
        clusters::start(clusters::Config::new(hub_client.clone()), &tasks);
        let config = hub::Config {
            denied_functions: args.policies.denied_functions(),
            ..hub::Config::new(hub_client.clone())
        };
        tasks.spawn("hub", hub::run(config, tasks.stop()));
    }
    if args.demo {
        waits_for("the story of the demo to be on the hub");
        demo::start(&hub_client, &others, &args.dir, &tasks).await.context("prepare the demo")?;
    }
    let (stop, stopped) = watch::channel(false);
    let mut serving = JoinSet::new();
    let mut servers = Vec::new();
    let mut rows = Vec::new();
    let options = ServeOptions::of_files(files::allow());
    for member in members {
        rows.push((member.name.clone(), member.address.clone()));
        let tls = member.tls(args.listen)?;
        let mut stopped = stopped.clone();
        serving.spawn(tls::serve(
            member.listener,
            Some(tls),
            member.server.public_api(),
            options.clone(),
            async move { drop(stopped.wait_for(|stop| *stop).await) },
        ));
        servers.push(member.server);
    }
    let interrupted = interrupted()?;
    print_table(&rows, &kubeconfig, begun.elapsed())?;
    interrupted.await;
    eprintln!("stopping");
    // Whoever writes ends while there is somebody to write to.
    tasks.shutdown().await;
    // Watches end first, so that connections have nothing left to wait for.
    for server in servers {
        server.stop().await;
    }
    stop.send_replace(true);
    while serving.join_next().await.is_some() {}
    Ok(())
}

async fn start(
    disk: &Disk,
    args: &Args,
    auditing: Option<&Auditing>,
    name: String,
    listener: TcpListener,
    tasks: &Tasks,
) -> Result<Member> {
    let identity = Identity::load_or_create(&args.dir.join("pki").join(&name), &name)
        .with_context(|| format!("prepare the certificates of {name}"))?;
    let store = Store::open(disk, &name, Limits::default())
        .with_context(|| format!("open the store of {name}"))?;
    let address = format!("https://{}", listener.local_addr()?);
    // Not the address: that may change with the ports of this machine, and tokens must not.
    let tokens = ServiceAccountTokens::new(identity.signing_key()?, ISSUER);
    let role = if name == HUB { Role::hub() } else { Role::cluster() };
    let config = Config {
        store,
        authenticator: Authenticator::new().with_service_accounts(tokens),
        authority: Some(Arc::clone(&identity.authority)),
        pretend_workloads: !args.no_pretend,
        admission: role.admission(),
        audit: auditing.map(|auditing| auditing.log_of(&name)).transpose()?,
    };
    let server = Server::start_within(config, &args.sharing.bounds())
        .await
        .with_context(|| format!("start {name}"))?;
    if !args.bare {
        role.take(&server, tasks).await.with_context(|| format!("prepare {name}"))?;
    }
    Ok(Member { name, identity, server, listener, address })
}

impl Member {
    fn access(&self) -> Result<kubeconfig::Access> {
        let admin = self.identity.admin()?;
        Ok(kubeconfig::Access {
            name: self.name.clone(),
            server: self.address.clone(),
            authority: self.identity.authority.certificate_pem().to_owned(),
            certificate: admin.certificate,
            key: admin.key,
        })
    }

    fn tls(&self, listen: IpAddr) -> Result<ServerTls> {
        let issued = self.identity.server(&self.name, listen)?;
        let certificate = ServerCertificate::new(&issued)?;
        Ok(ServerTls::new(certificate, &[self.identity.authority.certificate().clone()])?)
    }
}

/// Says on a terminal what takes its time.
fn waits_for(what: &str) {
    if std::io::stderr().is_terminal() {
        eprintln!("waiting for {what}");
    }
}

fn print_table(
    rows: &[(String, String)],
    kubeconfig: &Path,
    took: std::time::Duration,
) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or_default().max(4);
    let file = kubeconfig.display();
    writeln!(out, "{:width$}  {:24}  REACH IT WITH", "NAME", "ADDRESS")?;
    const SHOWN: usize = 12;
    for (name, address) in rows.iter().take(SHOWN) {
        writeln!(out, "{name:width$}  {address:24}  kubectl --kubeconfig {file} --context {name}")?;
    }
    if let Some(more) = rows.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        writeln!(out, "… and {more} more, each a context of {file}")?;
    }
    writeln!(out, "\nready in {} ms; Ctrl-C stops", took.as_millis())?;
    out.flush()?;
    Ok(())
}
