//! What an agent runs for a cluster that has joined: every story is started here.

use cleat_runtime::tasks::Tasks;
use kube::Client;

use crate::leave::{self, Leave, Presence};
use crate::registration::Keep;
use crate::{policy, policy_sync, preview, work};

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
    /// How it stands with its hub; whoever keeps it alive there says.
    pub presence: Presence,
    /// Where its credentials are kept, if they are to go when it has left.
    pub keep: Option<Keep>,
    /// Namespace and name of the Deployment this runs in, if it does: whoever takes that away says so
    /// on it first, and policies are let go of without pruning.
    pub deployment: Option<(String, String)>,
}

/// Starts all of them; they end with the tasks. `works` and `policies` may change how these are looked
/// after.
pub fn start_stories(
    member: &Member,
    works: impl Fn(work::Config) -> work::Config,
    policies: impl Fn(policy::Config) -> policy::Config,
    tasks: &Tasks,
) {
    let Member { name, cluster_id, hub_client, cluster_client, .. } = member;
    let Member { hub_address, presence, keep, deployment, .. } = member;
    presence.set_cluster_id(cluster_id);
    let (hub_client, cluster_client) = (hub_client.clone(), cluster_client.clone());
    let fleet = policy::Fleet {
        hub_client: hub_client.clone(),
        cluster: name.clone(),
        presence: presence.clone(),
    };
    let own = policies(policy::Config::of_member(cluster_client.clone(), name));
    let policies = policy::start(
        policy::Config { fleet: Some(fleet), deployment: deployment.clone(), ..own },
        tasks,
    );
    let sent = policy_sync::Config::new(hub_client.clone(), cluster_client.clone(), name);
    let sent = policy_sync::Config { presence: Some(presence.clone()), ..sent };
    policy_sync::start(sent, tasks);
    let remains = policy_sync::remains(hub_client.clone(), cluster_client.clone(), name);
    let config = work::Config::new(hub_client.clone(), cluster_client.clone(), name, hub_address);
    let config = work::Config { presence: Some(presence.clone()), ..works(config) };
    let works = work::start(config, tasks);
    preview::start(
        preview::Config {
            hub_client: hub_client.clone(),
            cluster_client: cluster_client.clone(),
            cluster: name.clone(),
            hub_hash: work::hub_hash(hub_address),
            works,
            policies: Some(policies),
        },
        tasks,
    );
    leave::start(
        Leave {
            name: name.clone(),
            hub_client,
            cluster_client,
            hub_hash: work::hub_hash(hub_address),
            presence: presence.clone(),
            keep: keep.clone(),
            // Every story that puts something on the cluster besides works is to be asked here.
            remains: vec![remains],
        },
        tasks,
    );
}
