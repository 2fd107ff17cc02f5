//! Which API server is meant, and how it is reached.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use cleat_agent::registration::HubAddress;
use cleat_core::write::{Action, Outcome};
use cleat_runtime::connect::connect;
use cleat_runtime::execute::{self, Executor};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::Value;

use crate::Refused;

/// As whom people's commands write.
pub(crate) const FIELD_MANAGER: &str = "cleat";

/// The hub a command is about.
#[derive(clap::Args, Clone, Debug)]
pub struct HubArgs {
    /// The kubeconfig of the hub [default: $KUBECONFIG or ~/.kube/config]
    #[arg(long, env = "CLEAT_HUB_KUBECONFIG", global = true)]
    pub kubeconfig: Option<PathBuf>,
    /// Which context of it is the hub [default: the current one]
    #[arg(long, global = true)]
    pub context: Option<String>,
}

/// The cluster a command is about.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct ClusterArgs {
    /// The kubeconfig of the cluster [default: $KUBECONFIG, ~/.kube/config or the pod's own account]
    #[arg(long)]
    pub cluster_kubeconfig: Option<PathBuf>,
    /// Which context of it is the cluster [default: the current one]
    #[arg(long)]
    pub cluster_context: Option<String>,
}

/// A file and a context in it.
#[derive(Clone, Debug, Default)]
pub struct Which {
    pub kubeconfig: Option<PathBuf>,
    pub context: Option<String>,
}

impl From<&HubArgs> for Which {
    fn from(args: &HubArgs) -> Self {
        Self { kubeconfig: args.kubeconfig.clone(), context: args.context.clone() }
    }
}

impl From<&ClusterArgs> for Which {
    fn from(args: &ClusterArgs) -> Self {
        let ClusterArgs { cluster_kubeconfig, cluster_context } = args.clone();
        Self { kubeconfig: cluster_kubeconfig, context: cluster_context }
    }
}

impl Which {
    pub(crate) async fn config(&self) -> Result<Config> {
        let options = KubeConfigOptions { context: self.context.clone(), ..Default::default() };
        match &self.kubeconfig {
            Some(path) => {
                let read = Kubeconfig::read_from(path)
                    .with_context(|| format!("read the kubeconfig {}", path.display()))?;
                Ok(Config::from_custom_kubeconfig(read, &options).await?)
            }
            None if options.context.is_some() => {
                Config::from_kubeconfig(&options).await.context("read the kubeconfig")
            }
            None => Config::infer().await.context(
                "find a cluster: name a kubeconfig, or set KUBECONFIG, or make ~/.kube/config",
            ),
        }
    }

    pub async fn client(&self) -> Result<Client> {
        Ok(connect(self.config().await?, FIELD_MANAGER)?)
    }

    /// Where the server is, and the PEM of who vouches for it.
    pub(crate) async fn address(&self) -> Result<HubAddress> {
        let read = match &self.kubeconfig {
            Some(path) => Kubeconfig::read_from(path)
                .with_context(|| format!("read the kubeconfig {}", path.display()))?,
            None => Kubeconfig::read().context("read the kubeconfig")?,
        };
        address(&read, self.context.as_deref())
    }
}

/// Where the server of a context is.
pub(crate) fn address(read: &Kubeconfig, context: Option<&str>) -> Result<HubAddress> {
    let context = context.or(read.current_context.as_deref());
    let named = read.contexts.iter().find(|named| Some(named.name.as_str()) == context);
    let cluster = named.and_then(|named| named.context.as_ref()).map(|context| &context.cluster);
    let cluster = read.clusters.iter().find(|named| Some(&named.name) == cluster);
    let Some(cluster) = cluster.and_then(|named| named.cluster.as_ref()) else {
        bail!("the kubeconfig has no such context; choose one with --context");
    };
    let Some(server) = cluster.server.clone() else {
        bail!("the kubeconfig names no server");
    };
    let authority = match (&cluster.certificate_authority_data, &cluster.certificate_authority) {
        (Some(data), _) => {
            let pem = BASE64.decode(data).context("read the certificate authority")?;
            Some(String::from_utf8(pem).context("read the certificate authority")?)
        }
        (None, Some(file)) => {
            Some(std::fs::read_to_string(file).with_context(|| format!("read {file}"))?)
        }
        (None, None) => None,
    };
    Ok(HubAddress { server, authority })
}

pub(crate) fn executor(hub: Option<Client>, cluster: Option<Client>) -> Executor {
    let field_manager = Some(FIELD_MANAGER.to_owned());
    Executor::new(execute::Config { hub, cluster, field_manager, ..Default::default() })
}

/// Performs one write of a command.
pub(crate) async fn perform(executor: &Executor, what: &str, action: Action) -> Result<Value> {
    match executor.execute(vec![vec![action]]).await.into_iter().flatten().next() {
        Some(Outcome::Done(object)) => Ok(object),
        Some(Outcome::Refused(refusal)) => {
            Err(Refused(format!("the server refuses to {what}: {}", refusal.message)).into())
        }
        Some(Outcome::Lost(message)) => bail!("cannot {what}: {message}"),
        Some(Outcome::NoSuchKind) => bail!(
            "cannot {what}: the server does not serve that kind. Run `cleat init` on the hub first"
        ),
        Some(Outcome::Conflict(_)) => bail!("cannot {what}: it changed just now; try again"),
        other => bail!("cannot {what}: {other:?}"),
    }
}

pub(crate) fn block_on<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(future)
}
