//! What an agent runs for a cluster that has joined: every story is started here.

use cleat_runtime::tasks::Tasks;
use kube::Client;

use crate::work;

/// A cluster that has joined, as its stories see it.
#[derive(Clone)]
pub struct Member {
    /// Its name, which is also that of its namespace on the hub.
    pub name: String,
    pub cluster_id: String,
    /// Always with the latest certificate.
    pub hub_client: Client,
    pub cluster_client: Client,
    /// The hub's address exactly as it was given; ledgers are named after its hash.
    pub hub_address: String,
}

/// Starts all of them; they end with the tasks. `works` may change how works are looked after.
pub fn start_stories(member: &Member, works: impl Fn(work::Config) -> work::Config, tasks: &Tasks) {
    let Member { name, cluster_id: _, hub_client, cluster_client, hub_address } = member;
    let (hub_client, cluster_client) = (hub_client.clone(), cluster_client.clone());
    work::start(works(work::Config::new(hub_client, cluster_client, name, hub_address)), tasks);
}
