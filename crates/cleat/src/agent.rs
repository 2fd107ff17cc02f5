//! `cleat agent`: what runs for one managed cluster.

mod joined;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::Parser as _;
use cleat_agent::leave::{Ended, Presence};
use cleat_agent::registration::Keep;
use cleat_agent::{policy, preview, work};
use cleat_cli::Halted;
use cleat_hub::prepare;
use cleat_runtime::connect::connect;
use cleat_runtime::tasks::Tasks;
use jiff::{SignedDuration, Span};
use kube::config::{KubeConfigOptions, Kubeconfig};

use crate::interrupt::interrupted;
use crate::metrics;
use crate::policy::options::PolicyOptions;

pub(crate) use self::joined::dice;

/// Runs until it is interrupted. It needs no way in: it dials out to the hub and to its cluster.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The cluster's name, which is its namespace on the hub [default: as which it joined]
    #[arg(long, alias = "spoke-cluster-name", env = "CLEAT_CLUSTER_NAME")]
    cluster_name: Option<String>,
    /// The kubeconfig of the hub; without it, the credentials with which the cluster joined are used
    /// and kept fresh
    #[arg(
        long,
        alias = "workload-source-config",
        env = "CLEAT_HUB_KUBECONFIG",
        requires = "cluster_name"
    )]
    hub_kubeconfig: Option<PathBuf>,
    /// The context in it
    #[arg(long, requires = "hub_kubeconfig")]
    hub_context: Option<String>,
    #[command(flatten)]
    joined: joined::Args,
    /// The kubeconfig of the cluster [default: $KUBECONFIG, ~/.kube/config, or the pod's own account]
    #[arg(long, alias = "spoke-kubeconfig")]
    kubeconfig: Option<PathBuf>,
    /// The context in it
    #[arg(long)]
    context: Option<String>,
    /// Sets agents that share a cluster apart [default: a hash of the hub's address]
    #[arg(long, default_value = "")]
    agent_id: String,
    /// Remove the objects of works that the hub does not have any more, after this long ("60m");
    /// without it they are left alone, in case the hub is the one that forgot
    #[arg(long, alias = "appliedmanifestwork-eviction-grace-period", value_parser = duration)]
    eviction_grace: Option<SignedDuration>,
    /// The least time between two reports of an object's state, for works that ask for polling
    #[arg(long, alias = "status-sync-interval", default_value = "10s", value_parser = duration)]
    status_interval: SignedDuration,
    /// Report lists and objects, as JSON text, where a work asks for such feedback
    #[arg(long)]
    report_structures: bool,
    /// Works under way at the same time
    #[arg(long, alias = "workload-agent-workers", default_value_t = 32)]
    workers: usize,
    /// Requests under way at the same time, on each side
    #[arg(long, default_value_t = 32)]
    in_flight: usize,
    /// The Deployment this runs in, as NAMESPACE/NAME: annotated with
    /// policy.open-cluster-management.io/uninstalling, policies are let go of without pruning
    #[arg(long, env = "CLEAT_DEPLOYMENT", value_parser = deployment)]
    deployment: Option<(String, String)>,
    #[command(flatten)]
    policies: PolicyOptions,
    #[command(flatten)]
    metrics: metrics::Args,
    /// Give the cluster Cleat's definitions first, in place of others of the same names
    #[arg(long)]
    define: bool,
}

/// Namespace and name of a Deployment.
pub(crate) fn deployment(text: &str) -> Result<(String, String), String> {
    let (namespace, name) = text.split_once('/').ok_or("write NAMESPACE/NAME")?;
    Ok((namespace.to_owned(), name.to_owned()))
}

fn duration(text: &str) -> Result<SignedDuration, String> {
    let span: Span = text.parse().map_err(|error| format!("{error}; write 90s or 60m"))?;
    let duration = SignedDuration::try_from(span).map_err(|error| error.to_string())?;
    if duration.is_negative() {
        return Err("must not be negative".to_owned());
    }
    Ok(duration)
}

pub(crate) fn run(args: Args) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(args))
}

/// With the credentials that are kept there, and everything else as usual.
pub(crate) fn run_joined(cluster: cleat_cli::Which, keep: Keep) -> Result<()> {
    let mut args = Defaults::parse_from(["cleat agent"]).args;
    (args.kubeconfig, args.context) = (cluster.kubeconfig, cluster.context);
    args.joined.set_keep(keep);
    run(args)
}

/// What people get who type nothing more.
#[derive(clap::Parser)]
struct Defaults {
    #[command(flatten)]
    args: Args,
}

async fn serve(args: Args) -> Result<()> {
    let cluster_config = cluster(args.kubeconfig.clone(), args.context.clone()).await?;
    let server = cluster_config.cluster_url.to_string();
    let cluster_client = connect(cluster_config, work::FIELD_MANAGER)?;
    if args.define {
        prepare::prepare_cluster(&cluster_client).await.context("give the cluster its kinds")?;
    }
    let tasks = Tasks::new();
    let works = |config: work::Config| work::Config {
        agent_id: args.agent_id.clone(),
        eviction_grace: args.eviction_grace,
        status_interval: args.status_interval,
        report_structures: args.report_structures,
        workers: args.workers.max(1),
        in_flight: args.in_flight.max(1),
        ..config
    };
    let told = policy::Metrics::default();
    let telling = told.clone();
    args.metrics.serve(move || telling.text(), &tasks).await?;
    let (name, hub_address, presence) = match (&args.hub_kubeconfig, &args.cluster_name) {
        (Some(path), Some(name)) => {
            let (hub_config, address) = hub(path, args.hub_context.clone()).await?;
            let hub_client = connect(hub_config, work::FIELD_MANAGER)?;
            let config = work::Config::new(hub_client, cluster_client, name, &address);
            let (hub_client, cluster_client) =
                (config.hub_client.clone(), config.cluster_client.clone());
            let works = work::start(works(config), &tasks);
            let hub_hash = work::hub_hash(&address);
            let cluster = name.clone();
            let config = preview::Config {
                hub_client,
                cluster_client,
                cluster,
                hub_hash,
                works,
                policies: None,
            };
            preview::start(config, &tasks);
            (name.clone(), address, Presence::default())
        }
        (_, name) => {
            let joined = args.joined.join(&cluster_client, name.as_deref()).await?;
            let (name, address) = (joined.name().to_owned(), joined.hub_address().to_owned());
            let deployment = args.deployment.clone();
            let policies = |config: policy::Config| policy::Config {
                metrics: told.clone(),
                ..args.policies.apply(config)
            };
            let presence = joined.start(cluster_client, works, policies, deployment, &tasks);
            (name, address, presence)
        }
    };
    let interrupted = interrupted()?;
    eprintln!("looking after {server} as {name} for {hub_address}; Ctrl-C stops");
    tokio::select! {
        () = interrupted => eprintln!("stopping"),
        ended = presence.until_left() => {
            tasks.shutdown().await;
            return farewell(&name, &hub_address, ended);
        }
    }
    tasks.shutdown().await;
    Ok(())
}

/// The last words of an agent whose cluster has left.
fn farewell(name: &str, hub_address: &str, ended: Ended) -> Result<()> {
    let left = format!("{name} has left {hub_address}");
    match ended {
        Ended::Gone => eprintln!("{left}; nothing of the agent is left here"),
        Ended::OutOfSight => {
            eprintln!("{left}; the agent was asked to go with its rights, and cannot see the end");
        }
        Ended::Remains(what) => {
            let what: Vec<String> = what.iter().map(|one| format!("\n  {one}")).collect();
            let text = format!(
                "{left}, and this of the agent is still here:{}\nRun it again once the cause is gone, \
                 or delete these yourself.",
                what.concat()
            );
            return Err(Halted(text).into());
        }
    }
    Ok(())
}

/// Where the cluster is.
pub(crate) async fn cluster(
    kubeconfig: Option<PathBuf>,
    context: Option<String>,
) -> Result<kube::Config> {
    let options = KubeConfigOptions { context, ..KubeConfigOptions::default() };
    Ok(match kubeconfig {
        Some(path) => {
            let read = Kubeconfig::read_from(&path)
                .with_context(|| format!("read the kubeconfig {}", path.display()))?;
            kube::Config::from_custom_kubeconfig(read, &options).await?
        }
        None if options.context.is_some() => kube::Config::from_kubeconfig(&options).await?,
        None => kube::Config::infer().await.context("find out where the cluster is")?,
    })
}

/// Where the hub is, and its address exactly as written: ledgers are named after that.
async fn hub(path: &Path, context: Option<String>) -> Result<(kube::Config, String)> {
    let read = Kubeconfig::read_from(path)
        .with_context(|| format!("read the kubeconfig of the hub, {}", path.display()))?;
    let context = context.or_else(|| read.current_context.clone());
    let named = read.contexts.iter().find(|named| Some(&named.name) == context.as_ref());
    let cluster = named.and_then(|named| named.context.as_ref()).map(|context| &context.cluster);
    let cluster = read.clusters.iter().find(|named| Some(&named.name) == cluster);
    let server = cluster.and_then(|named| named.cluster.as_ref()?.server.clone());
    let Some(server) = server else {
        bail!("{} names no server for the hub; choose one with --hub-context", path.display());
    };
    let options = KubeConfigOptions { context, ..KubeConfigOptions::default() };
    let config = kube::Config::from_custom_kubeconfig(read, &options).await?;
    Ok((config, server))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_said_that_nothing_was_left_though_it_was_refused() {
        let remains = Ended::Remains(vec!["secrets home/x: denied".to_owned()]);
        let said = farewell("c1", "https://hub", remains).unwrap_err();
        assert!(said.to_string().contains("\n  secrets home/x: denied\n"), "{said}");
        assert_eq!(cleat_cli::exit_code(&said), cleat_cli::HALTED);
        assert!(farewell("c1", "https://hub", Ended::Gone).is_ok());
    }

    #[test]
    fn nobody_has_to_type_anything() {
        assert!(Defaults::try_parse_from(["cleat agent"]).is_ok());
    }

    #[test]
    fn durations_are_read_as_people_write_them() {
        assert_eq!(duration("60m"), Ok(SignedDuration::from_mins(60)));
        assert_eq!(duration("1h30m"), Ok(SignedDuration::from_mins(90)));
        assert_eq!(duration("10s"), Ok(SignedDuration::from_secs(10)));
        assert!(duration("soon").is_err());
        assert!(duration("-1s").is_err());
    }
}
