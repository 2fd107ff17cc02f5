//! What an agent runs for a cluster that has joined: a list to which every story adds itself.

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

/// One thing an agent does.
pub struct Story {
    pub name: &'static str,
    /// Starts it; it ends with the tasks.
    pub start: fn(&Member, &Tasks),
}

/// All of them, in the order in which they start.
pub const STORIES: &[Story] = &[Story { name: "works", start: works }];

fn works(member: &Member, tasks: &Tasks) {
    let Member { name, cluster_id: _, hub_client, cluster_client, hub_address } = member;
    let (hub_client, cluster_client) = (hub_client.clone(), cluster_client.clone());
    work::start(work::Config::new(hub_client, cluster_client, name, hub_address), tasks);
}

/// Starts all of them.
pub fn start_stories(member: &Member, tasks: &Tasks) {
    for Story { name, start } in STORIES {
        tracing::debug!(story = name, cluster = member.name, "starts");
        start(member, tasks);
    }
}
