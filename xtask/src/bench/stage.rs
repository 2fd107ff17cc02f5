//! Where a benchmark takes place: a real kube-apiserver as the cluster, and a hub beside it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use cleat_runtime::connect::connect;
use cleat_world::kubernetes::{Binaries, ControlPlanes, Durability};
use k8s_openapi::api::core::v1::Namespace;
use kube::Client;
use kube::api::{Api, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::json;

use super::procs::{self, Agent, Process};

/// The cluster's name, and the namespace of its works on the hub.
pub(crate) const CLUSTER: &str = "bench";
/// Works in it are nobody's.
pub(crate) const NOBODY: &str = "nobody";

/// Dropping it ends everything that was started.
pub(crate) struct Stage {
    pub(crate) hub: Client,
    pub(crate) cluster: Client,
    pub(crate) version: String,
    pub(crate) dir: PathBuf,
    hub_kubeconfig: PathBuf,
    planes: ControlPlanes,
    _hub: Process,
}

/// So often does garbage collection look for new kinds; before that, it asks about every owner of a
/// kind that it does not know.
const COLLECTOR_LOOKS: Duration = Duration::from_secs(35);

impl Stage {
    pub(crate) async fn set() -> Result<Self> {
        let dir = crate::root().join("target").join("bench");
        std::fs::create_dir_all(&dir).with_context(|| format!("create {}", dir.display()))?;
        let binaries = Binaries::built(&crate::root().join("kubernetes"))?;
        let planes =
            ControlPlanes::start(&binaries, &dir.join("kubernetes"), 1, Durability::Durable)
                .await?;
        let (process, hub_kubeconfig) = procs::hub(&dir).await?;
        let (hub, cluster) = (client(&hub_kubeconfig).await?, client(&planes.kubeconfig()).await?);
        cleat_hub::prepare::prepare_cluster(&cluster).await?;
        for (client, name) in
            [(&hub, CLUSTER), (&hub, NOBODY), (&cluster, CLUSTER), (&cluster, NOBODY)]
        {
            namespace(client, name).await?;
        }
        tokio::time::sleep(COLLECTOR_LOOKS).await;
        let version = binaries.version().to_owned();
        Ok(Self { hub, cluster, version, dir, hub_kubeconfig, planes, _hub: process })
    }

    pub(crate) fn agent(&self, workers: Option<usize>, tells: bool) -> Result<Process> {
        Agent {
            hub: &self.hub_kubeconfig,
            cluster: &self.planes.kubeconfig(),
            name: CLUSTER,
            workers,
            tells,
            log: &self.log(tells),
        }
        .start()
    }

    /// The controller of policies alone.
    pub(crate) fn controller(&self, tells: bool) -> Result<Process> {
        procs::controller(&self.planes.kubeconfig(), CLUSTER, tells, &self.log(tells))
    }

    pub(crate) fn log(&self, tells: bool) -> PathBuf {
        self.dir.join(if tells { "agent-telling.log" } else { "agent.log" })
    }
}

pub(crate) async fn client(kubeconfig: &Path) -> Result<Client> {
    // The same way to connect as the agent's.
    Ok(connect(config(kubeconfig).await?, "cleat-bench")?)
}

pub(crate) async fn config(kubeconfig: &Path) -> Result<kube::Config> {
    let read = Kubeconfig::read_from(kubeconfig)?;
    Ok(kube::Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await?)
}

pub(crate) async fn namespace(client: &Client, name: &str) -> Result<()> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = serde_json::from_value(json!({ "metadata": { "name": name } }))?;
    namespaces.create(&PostParams::default(), &namespace).await?;
    Ok(())
}
