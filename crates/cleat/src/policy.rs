//! `cleat policy`: the controller of ConfigurationPolicies by itself, its end, and trying them without
//! any cluster.

pub(crate) mod options;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Subcommand;
use cleat_agent::policy::{self, FIELD_MANAGER};
use cleat_hub::prepare;
use cleat_runtime::connect::connect;
use cleat_runtime::tasks::Tasks;

use self::options::PolicyOptions;
use crate::interrupt::interrupted;
use crate::metrics;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Look after the ConfigurationPolicies of one cluster. Needs no hub.
    Controller(Controller),
    /// Try ConfigurationPolicies on given objects, or on those of a cluster. Nothing is changed.
    ///
    /// Ends with 0 if they hold, with 2 if they do not, and with 1 if something went wrong.
    #[command(alias = "dry-run")]
    Dryrun(cleat_cli::dryrun::Args),
    /// Have a controller or an agent let go of its policies, so that it can be uninstalled.
    ///
    /// Annotates its Deployment, and ends when no ConfigurationPolicy is held any more; nothing that they
    /// made is deleted. Ends with 4 if some are still held when the time is over.
    TriggerUninstall(cleat_cli::uninstall::Args),
}

#[derive(clap::Args)]
struct Controller {
    /// The kubeconfig of the cluster [default: $KUBECONFIG, ~/.kube/config, or the pod's own account]
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// The context in it
    #[arg(long)]
    context: Option<String>,
    /// A namespace to look for policies in; may be given several times [default: all]
    #[arg(long = "namespace", env = "WATCH_NAMESPACE", value_delimiter = ',')]
    namespaces: Vec<String>,
    /// The Deployment this runs in, as NAMESPACE/NAME: annotated with
    /// policy.open-cluster-management.io/uninstalling, policies are let go of without pruning
    #[arg(long, value_parser = crate::agent::deployment)]
    deployment: Option<(String, String)>,
    #[command(flatten)]
    options: PolicyOptions,
    #[command(flatten)]
    metrics: metrics::Args,
    /// Policies under way at the same time
    #[arg(long, alias = "evaluation-concurrency", default_value_t = 32)]
    workers: usize,
    /// Give the cluster Cleat's definitions first, in place of others of the same names
    #[arg(long)]
    define: bool,
}

pub(crate) fn run(args: Args) -> Result<ExitCode> {
    match args.verb {
        Verb::Dryrun(args) => Ok(ExitCode::from(cleat_cli::dryrun::run(&args)?)),
        Verb::TriggerUninstall(args) => {
            cleat_cli::uninstall::run(args)?;
            Ok(ExitCode::SUCCESS)
        }
        Verb::Controller(args) => {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
            runtime.block_on(serve(args))?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

async fn serve(args: Controller) -> Result<()> {
    let cluster_config = crate::agent::cluster(args.kubeconfig, args.context).await?;
    let server = cluster_config.cluster_url.to_string();
    let cluster_client = connect(cluster_config, FIELD_MANAGER)?;
    if args.define {
        prepare::prepare_cluster(&cluster_client).await.context("give the cluster its kinds")?;
    }
    let tasks = Tasks::new();
    let namespaces = args.namespaces.into_iter().filter(|name| !name.is_empty()).collect();
    let config = policy::Config {
        namespaces,
        deployment: args.deployment,
        instance: std::env::var("POD_NAME").unwrap_or_else(|_| "cleat".to_owned()),
        workers: args.workers.max(1),
        ..policy::Config::new(cluster_client)
    };
    let told = config.metrics.clone();
    args.metrics.serve(move || told.text(), &tasks).await?;
    policy::start(args.options.apply(config), &tasks);
    let interrupted = interrupted()?;
    eprintln!("looking after the policies of {server}; Ctrl-C stops");
    interrupted.await;
    eprintln!("stopping");
    tasks.shutdown().await;
    Ok(())
}
