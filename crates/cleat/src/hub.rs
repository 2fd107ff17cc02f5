//! `cleat hub`: the hub's controllers, against any Kubernetes.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use cleat_api::manifestworkreplicaset::ManifestWorkReplicaSet;
use cleat_hub::{clusters, hub, prepare};
use cleat_runtime::connect::connect;
use cleat_runtime::tasks::Tasks;
use kube::api::{Api, ListParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use crate::interrupt::interrupted;
use crate::metrics;

/// Runs until it is interrupted. Several may run side by side.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// How to reach the hub [default: $KUBECONFIG, ~/.kube/config or, in a pod, its own account]
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// Which context of the kubeconfig is the hub [default: the current one]
    #[arg(long)]
    context: Option<String>,
    /// Look only after the sets of this namespace
    #[arg(long)]
    namespace: Option<String>,
    /// Functions that the templates of policies may not use on the hub
    #[arg(long, value_delimiter = ',')]
    template_function_denylist: Vec<String>,
    #[command(flatten)]
    metrics: metrics::Args,
    /// Give the hub Cleat's definitions first, in place of others of the same names
    #[arg(long)]
    define: bool,
}

pub(crate) fn run(args: Args) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(args))
}

async fn serve(args: Args) -> Result<()> {
    let Args { kubeconfig, context, namespace, template_function_denylist, metrics, define } = args;
    let config = find(kubeconfig, context).await?;
    let server = config.cluster_url.to_string();
    let hub_client = connect(config, "cleat-hub")?;
    if define {
        prepare::prepare_hub(&hub_client).await.context("give the hub its kinds")?;
    } else {
        check(&hub_client).await?;
    }
    eprintln!("looking after {server}; Ctrl-C stops");
    let tasks = Tasks::new();
    clusters::start(clusters::Config::new(hub_client.clone()), &tasks);
    let config = hub::Config {
        namespace,
        denied_functions: template_function_denylist,
        ..hub::Config::new(hub_client)
    };
    let told = config.metrics.clone();
    metrics.serve(move || told.text(), &tasks).await?;
    tasks.spawn("hub", hub::run(config, tasks.stop()));
    interrupted()?.await;
    eprintln!("stopping");
    tasks.shutdown().await;
    Ok(())
}

async fn find(kubeconfig: Option<PathBuf>, context: Option<String>) -> Result<Config> {
    let options = KubeConfigOptions { context, ..KubeConfigOptions::default() };
    let config = match kubeconfig {
        Some(path) => {
            let read = Kubeconfig::read_from(&path);
            let read = read.with_context(|| format!("read the kubeconfig {}", path.display()))?;
            Config::from_custom_kubeconfig(read, &options).await?
        }
        None if options.context.is_some() => Config::from_kubeconfig(&options).await?,
        None => Config::infer().await.context("find out where the hub is")?,
    };
    Ok(config)
}

/// A watch of a kind that is not there would wait for it for ever, in silence.
async fn check(hub_client: &Client) -> Result<()> {
    let sets: Api<ManifestWorkReplicaSet> = Api::all(hub_client.clone());
    match sets.list_metadata(&ListParams::default().limit(1)).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 => {
            bail!(
                "the hub does not know ManifestWorkReplicaSets; --define gives it the definitions"
            )
        }
        Err(error) => Err(error).context("ask the hub for ManifestWorkReplicaSets"),
    }
}
