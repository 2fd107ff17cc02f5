//! Looking at policies as if they, or what places them, were deleted or others: which clusters would
//! get, keep or lose copies. Only reads, straight from the server.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cleat_api::policy::name::ROOT_POLICY;
use cleat_core::placement::Sightings;
use cleat_core::propagation::outlook::{Change, Proposed, Prospect, outlook, proposal};
use cleat_core::propagation::{
    Asked, Binding, Observed, PolicySet, Replica, Root, Source, replica_name,
};
use cleat_core::replicaset::Decided;
use cleat_runtime::execute::{self, Executor};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use kube::api::ListParams;
use serde_json::Value;

use super::confirm::Server;
use super::follow::{BINDING, SET};
use super::templates::{Purpose, Resolver};
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
    let (bindings, sets) = ways(hub_client, namespace).await.map_err(Untold)?;
    Ok(change.concerns(namespace, bindings.iter(), &sets))
}

type Sets = BTreeMap<(String, String), PolicySet>;

/// All bindings and sets of policies of a namespace.
async fn ways(hub_client: &Client, namespace: &str) -> Result<(Vec<Binding>, Sets), Unsure> {
    let server = Server { hub_client };
    let bindings = server.list(namespace, BINDING).await?;
    let bindings = bindings.iter().map(|one| Binding::read(&one.metadata, &one.data)).collect();
    let mut sets = BTreeMap::new();
    for set in server.list(namespace, SET).await? {
        let set = PolicySet::read(&set.metadata, &set.data);
        sets.insert((set.namespace.clone(), set.name.clone()), set);
    }
    Ok((bindings, sets))
}

/// What somebody thinks of giving to a hub, in one namespace. Objects are whole.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// Policies, by name.
    pub roots: BTreeMap<String, Value>,
    /// Bindings, by name.
    pub bindings: BTreeMap<String, Value>,
    /// Sets of policies, by name.
    pub sets: BTreeMap<String, Value>,
    /// What placements would decide, by name.
    pub decided: BTreeMap<String, Decided>,
}

impl Given {
    fn bindings(&self) -> impl Iterator<Item = Binding> {
        self.bindings.values().map(|one| Binding::read(&metadata(one), one))
    }

    fn sets(&self) -> impl Iterator<Item = PolicySet> {
        self.sets.values().map(|one| PolicySet::read(&metadata(one), one))
    }
}

/// What cannot be read of it is as if it were not said; the server has found it valid.
fn metadata(object: &Value) -> ObjectMeta {
    let metadata = object.get("metadata").cloned().unwrap_or_default();
    serde_json::from_value(metadata).unwrap_or_default()
}

/// The policies of a namespace that it may concern, by what is bound now and by what would be.
pub async fn concerned_by(
    hub_client: &Client,
    namespace: &str,
    given: &Given,
) -> Result<BTreeSet<String>, Untold> {
    let mut policies: BTreeSet<String> = given.roots.keys().cloned().collect();
    if given.bindings.is_empty() && given.decided.is_empty() && given.sets.is_empty() {
        return Ok(policies);
    }
    let (mut bindings, mut sets) = ways(hub_client, namespace).await.map_err(Untold)?;
    bindings.extend(given.bindings());
    for mut set in given.sets() {
        let key = (set.namespace.clone(), set.name.clone());
        // What a set had is concerned as much as what it would have.
        let before = sets.get(&key).map(|set| set.policies.clone()).unwrap_or_default();
        policies.extend(before.iter().chain(&set.policies).cloned());
        set.policies.extend(before);
        sets.insert(key, set);
    }
    let placements = given.decided.keys().map(|name| Change::Placement(name.clone()));
    let changes = given.bindings.keys().map(|name| Change::Binding(name.clone()));
    for change in changes.chain(placements) {
        policies.extend(change.concerns(namespace, bindings.iter(), &sets));
    }
    Ok(policies)
}

/// What would become of each copy of a policy, by cluster.
pub async fn proposed(
    hub_client: &Client,
    key: &(String, String),
    given: &Given,
) -> Result<BTreeMap<String, Proposed>, Untold> {
    let seen = imagine(hub_client, key, given).await.map_err(Untold)?;
    Ok(proposal(&seen))
}

async fn imagine(
    hub_client: &Client,
    key: &(String, String),
    given: &Given,
) -> Result<Observed, Unsure> {
    let server = Server { hub_client };
    let mut seen = observe(hub_client, key).await?;
    if let Some(root) = given.roots.get(&key.1) {
        seen.root = Some(Arc::new(Root::read(&metadata(root), root)));
    }
    for binding in given.bindings() {
        seen.bindings.retain(|one| one.name != binding.name);
        if let Some(source) = binding.source.clone().filter(|one| !seen.decided.contains_key(one)) {
            // What cannot be read is not known.
            let decided = server.ask(&key.0, &source).await.unwrap_or(Decided::Unknown);
            seen.decided.insert(source, decided);
        }
        seen.bindings.push(Arc::new(binding));
    }
    for set in given.sets() {
        seen.sets.insert((set.namespace.clone(), set.name.clone()), Arc::new(set));
    }
    for (name, decided) in &given.decided {
        seen.decided.insert(Source::Placement(name.clone()), decided.clone());
    }
    let chosen = seen.decided.values().flat_map(|decided| decided.clusters().map(str::to_owned));
    let clusters: BTreeSet<String> = chosen.chain(seen.replicas.keys().cloned()).collect();
    server.read_clusters(&mut seen, &clusters).await?;
    let executor = Executor::new(execute::Config {
        hub: Some(hub_client.clone()),
        ..execute::Config::default()
    });
    Resolver::new(hub_client.clone(), executor, Purpose::Show).resolve(&mut seen).await;
    Ok(seen)
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

/// The clusters that would lose their copy, now or once they can be reached again, by policy. `name` is
/// that of what would be deleted.
pub async fn losing(
    hub_client: &Client,
    namespace: &str,
    name: &str,
    change: &Change,
) -> Result<BTreeMap<String, BTreeSet<String>>, Untold> {
    let policies = match change {
        Change::Root => [name.to_owned()].into(),
        Change::Binding(_) | Change::Placement(_) => {
            concerned(hub_client, namespace, change).await?
        }
    };
    let mut losing = BTreeMap::new();
    for policy in policies {
        let key = (namespace.to_owned(), policy);
        let copies = copies(hub_client, &key, change).await?.into_iter();
        let goes = copies.filter(|(_, prospect)| !matches!(prospect, Prospect::Stays(_)));
        losing.insert(key.1, goes.map(|(cluster, _)| cluster).collect());
    }
    Ok(losing)
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
        sightings: Sightings::default(),
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
