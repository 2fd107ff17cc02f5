//! Looking at policies as if they, or what places them, were deleted: which clusters would lose their
//! copies. Only reads, straight from the server.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cleat_api::policy::name::ROOT_POLICY;
use cleat_core::propagation::outlook::{Change, Prospect, outlook};
use cleat_core::propagation::{Asked, Binding, Observed, PolicySet, Replica, Root, replica_name};
use kube::Client;
use kube::api::ListParams;

use super::confirm::Server;
use super::follow::{BINDING, SET};
use crate::defined::Unsure;
use crate::kinds::{self, every};

/// Why it cannot be said.
#[derive(Debug, thiserror::Error)]
#[error("cannot tell which clusters would lose their copies")]
pub struct Untold(#[source] Unsure);

/// The policies of a namespace that a change may concern.
pub async fn concerned(
    hub_client: &Client,
    namespace: &str,
    change: &Change,
) -> Result<BTreeSet<String>, Untold> {
    let server = Server { hub_client };
    let bindings = server.list(namespace, BINDING).await.map_err(Untold)?;
    let bindings: Vec<Binding> =
        bindings.iter().map(|one| Binding::read(&one.metadata, &one.data)).collect();
    let mut sets = BTreeMap::new();
    for set in server.list(namespace, SET).await.map_err(Untold)? {
        let set = PolicySet::read(&set.metadata, &set.data);
        sets.insert((set.namespace.clone(), set.name.clone()), set);
    }
    Ok(change.concerns(namespace, bindings.iter(), &sets))
}

/// What would become of each copy of a policy, by cluster.
pub async fn copies(
    hub_client: &Client,
    key: &(String, String),
    change: &Change,
) -> Result<BTreeMap<String, Prospect>, Untold> {
    let seen = observe(hub_client, key).await.map_err(Untold)?;
    Ok(outlook(&seen, change))
}

async fn observe(hub_client: &Client, key: &(String, String)) -> Result<Observed, Unsure> {
    let server = Server { hub_client };
    let (namespace, name) = key;
    let of_root = format!("{ROOT_POLICY}={}", replica_name(key));
    let of_root = ListParams::default().labels(&of_root);
    let replicas = every(hub_client, &None, kinds::POLICY).list(&of_root).await?;
    let replicas = replicas.items.iter().map(|one| Replica::read(&one.metadata, &one.data));
    let named = replicas.filter(|replica| replica.name == replica_name(key));
    let replicas: BTreeMap<String, Arc<Replica>> =
        named.map(|replica| (replica.cluster.clone(), Arc::new(replica))).collect();
    let within = Some(namespace.clone());
    let root = every(hub_client, &within, kinds::POLICY).get_opt(name).await?;
    let mut seen = Observed {
        now: jiff::Timestamp::now(),
        key: key.clone(),
        root: root.map(|root| Arc::new(Root::read(&root.metadata, &root.data))),
        bindings: Vec::new(),
        sets: BTreeMap::new(),
        decided: BTreeMap::new(),
        clusters: BTreeMap::new(),
        replicas,
        resolved: BTreeMap::new(),
        asked: Asked::NotYet,
        unsure_since: None,
        setbacks: BTreeMap::new(),
        told: BTreeMap::new(),
    };
    server.read_ways(&mut seen, namespace).await?;
    let clusters: BTreeSet<String> = seen.replicas.keys().cloned().collect();
    server.read_clusters(&mut seen, &clusters).await?;
    seen.asked = server.defined().await?;
    Ok(seen)
}
