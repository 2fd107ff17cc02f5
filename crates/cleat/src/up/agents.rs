//! The agents of the clusters of this process. They talk to hub and cluster without a socket.

use anyhow::{Context as _, Result};
use cleat_agent::work;
use cleat_runtime::tasks::Tasks;
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::Namespace;
use kube::Client;
use kube::api::{Api, PostParams};

/// What ledgers are named after. Not the hub's address: that may change with the ports of this
/// machine, and then every ledger would be another hub's.
const HUB_ADDRESS: &str = "https://hub.cleat.invalid";

/// Starts an agent for each cluster, given by name and client. Its namespace on the hub is made if
/// it is missing.
pub(super) async fn start(
    hub_client: Client,
    clusters: Vec<(String, Client)>,
    tasks: &Tasks,
) -> Result<()> {
    let namespaces = clusters.iter().map(|(name, _)| make_namespace(&hub_client, name));
    try_join_all(namespaces).await?;
    for (name, cluster_client) in clusters {
        let config = work::Config::new(hub_client.clone(), cluster_client, &name, HUB_ADDRESS);
        work::start(config, tasks);
    }
    Ok(())
}

async fn make_namespace(hub_client: &Client, name: &str) -> Result<()> {
    let namespaces: Api<Namespace> = Api::all(hub_client.clone());
    let mut namespace = Namespace::default();
    namespace.metadata.name = Some(name.to_owned());
    match namespaces.create(&PostParams::default(), &namespace).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        Err(error) => {
            Err(error).with_context(|| format!("make the namespace of {name} on the hub"))
        }
    }
}
