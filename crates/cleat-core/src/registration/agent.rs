//! What an agent does for its cluster on the hub: ask to join, keep its certificate, say how it is.

use alloc::borrow::ToOwned as _;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use cleat_api::managedcluster::{
    AGENT_ANNOTATION_PREFIX, AGENT_NAMESPACE_CLAIM, CLUSTER_ID, CLUSTER_ID_CLAIM, ClientConfig,
    HUB_HASH_CLAIM, ID_CLAIM, ManagedCluster, ManagedClusterClaim, RemoveStrategy,
    condition as kind, reason,
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde_json::{Map, Value, json};

use super::hub::target;
use super::quantity;
use crate::condition::{self, Said, Status};
use crate::write::{Action, Side, Write};

/// How long the cluster's API server may fail before it counts as unavailable.
const PATIENCE: SignedDuration = SignedDuration::from_secs(20);

/// The most claims that are carried beside those every cluster has.
const MOST_CLAIMS: usize = 20;

/// The claim that says which Kubernetes the cluster runs.
const VERSION_CLAIM: &str = "kubeversion.open-cluster-management.io";

/// How a cluster presents itself to a hub.
#[derive(Clone, Debug, Default)]
pub struct Application {
    pub name: String,
    pub cluster_id: String,
    pub remove_strategy: RemoveStrategy,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    pub client_configs: Vec<ClientConfig>,
    pub lease_seconds: Option<i32>,
}

/// The request to be taken in. Whether it is, the hub decides.
pub fn apply(application: &Application) -> Action {
    let Application {
        name,
        cluster_id,
        remove_strategy,
        labels,
        annotations,
        client_configs,
        lease_seconds,
    } = application;
    let mut carried: BTreeMap<&str, &str> = annotations
        .iter()
        .filter(|(key, _)| key.starts_with(AGENT_ANNOTATION_PREFIX))
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect();
    carried.insert(CLUSTER_ID, cluster_id);
    let mut spec = json!({
        "hubAcceptsClient": false,
        "removeStrategy": remove_strategy,
        "managedClusterClientConfigs": client_configs,
    });
    if let (Some(seconds), Some(spec)) = (lease_seconds, spec.as_object_mut()) {
        spec.insert("leaseDurationSeconds".to_owned(), json!(seconds));
    }
    let object = json!({
        "apiVersion": "cluster.open-cluster-management.io/v1",
        "kind": "ManagedCluster",
        "metadata": { "name": name, "labels": labels, "annotations": carried },
        "spec": spec,
    });
    Action { side: Side::Hub, target: target(name), write: Write::Create(object) }
}

/// When a certificate is to be renewed: with a fifth to a quarter of its life left, so that agents
/// that joined together do not renew together. `dice` is anything.
pub fn renew_at(not_before: Timestamp, not_after: Timestamp, dice: u16) -> Timestamp {
    let life = not_after.duration_since(not_before);
    let left = life / 5 + life / 20 * i32::from(dice) / i32::from(u16::MAX);
    not_after.checked_sub(left).unwrap_or(not_before)
}

/// What the agent knows of its cluster. What could not be read is missing, and stays as it was.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Since when the cluster's API server has failed, and how.
    pub failing: Option<(Timestamp, String)>,
    pub version: Option<String>,
    pub nodes: Option<Vec<Node>>,
    pub claims: Option<Vec<ManagedClusterClaim>>,
    pub cluster_id: String,
    /// What the agent's ledgers are named after.
    pub hub_hash: String,
    /// Where on the cluster the agent keeps its credentials; empty if it does not.
    pub agent_namespace: String,
}

/// What a node has.
#[derive(Clone, Debug, Default)]
pub struct Node {
    pub capacity: BTreeMap<String, Quantity>,
    pub allocatable: BTreeMap<String, Quantity>,
}

/// What came of the last attempt to renew the certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Renewal {
    Done,
    Failed(String),
}

/// Everything the status depends on.
#[derive(Clone, Debug)]
pub struct Observed<'a> {
    /// As the hub has it.
    pub cluster: &'a ManagedCluster,
    pub facts: &'a Facts,
    pub renewal: Option<&'a Renewal>,
    pub now: Timestamp,
}

/// What to tell the hub, if it does not know it.
pub fn report(seen: &Observed<'_>) -> Option<Action> {
    let Observed { cluster, facts, renewal, now } = seen;
    let before = cluster.status.clone().unwrap_or_default();
    let mut status = before.clone();
    let generation = cluster.metadata.generation;
    let mut say = |said| condition::say(&mut status.conditions, said, generation, *now);
    say(Said {
        kind: kind::JOINED,
        status: Status::True,
        reason: reason::JOINED,
        message: "Managed cluster joined".to_owned(),
    });
    if let Some(said) = availability(facts, *now) {
        say(said);
    }
    if let Some(renewal) = renewal {
        say(rotation(renewal));
    }
    let Facts { failing: _, version, nodes, claims, cluster_id, hub_hash, agent_namespace } = facts;
    if let Some(version) = version {
        status.version.kubernetes.clone_from(version);
    }
    if let Some(nodes) = nodes {
        status.capacity = total(nodes.iter().map(|node| &node.capacity));
        status.allocatable = total(nodes.iter().map(|node| &node.allocatable));
    }
    if let Some(claims) = claims {
        status.cluster_claims = known(
            claims,
            [(ID_CLAIM, cluster_id), (VERSION_CLAIM, &status.version.kubernetes)],
            [
                (CLUSTER_ID_CLAIM, cluster_id),
                (HUB_HASH_CLAIM, hub_hash),
                (AGENT_NAMESPACE_CLAIM, agent_namespace),
            ],
        );
    }
    if status == before {
        return None;
    }
    // A merge patch keeps what it does not mention, so what is empty now is said to be nothing.
    let mut patch = Map::new();
    if let (Ok(Value::Object(old)), Ok(Value::Object(new))) =
        (serde_json::to_value(&before), serde_json::to_value(&status))
    {
        for (key, value) in &new {
            if old.get(key) != Some(value) {
                patch.insert(key.clone(), changed(old.get(key), value));
            }
        }
        for key in old.keys().filter(|key| !new.contains_key(*key)) {
            patch.insert(key.clone(), Value::Null);
        }
    }
    let patch = json!({
        "metadata": {
            "uid": cluster.metadata.uid, "resourceVersion": cluster.metadata.resource_version,
        },
        "status": patch,
    });
    let name = cluster.metadata.name.as_deref().unwrap_or_default();
    Some(Action { side: Side::Hub, target: target(name), write: Write::MergeStatus(patch) })
}

/// A map with nothing where an entry is gone; anything else as it is.
fn changed(old: Option<&Value>, new: &Value) -> Value {
    let (Some(Value::Object(old)), Value::Object(new)) = (old, new) else { return new.clone() };
    let mut all = new.clone();
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        all.insert(key.clone(), Value::Null);
    }
    Value::Object(all)
}

fn availability(facts: &Facts, now: Timestamp) -> Option<Said> {
    let kind = kind::AVAILABLE;
    match &facts.failing {
        None => Some(Said {
            kind,
            status: Status::True,
            reason: reason::AVAILABLE,
            message: "Managed cluster is available".to_owned(),
        }),
        Some((since, _)) if now.duration_since(*since) < PATIENCE => None,
        Some((_, why)) => Some(Said {
            kind,
            status: Status::False,
            reason: reason::API_SERVER_UNAVAILABLE,
            message: format!("The cluster's API server does not answer as it should: {why}"),
        }),
    }
}

fn rotation(renewal: &Renewal) -> Said {
    let (status, reason, message) = match renewal {
        Renewal::Done => (
            Status::True,
            reason::CERTIFICATE_UPDATED,
            "The agent's certificate was renewed.".to_owned(),
        ),
        Renewal::Failed(why) => (
            Status::False,
            reason::CERTIFICATE_UPDATE_FAILED,
            format!("The agent's certificate could not be renewed: {why}"),
        ),
    };
    Said { kind: kind::CERTIFICATE_ROTATED, status, reason, message }
}

fn total<'a>(
    nodes: impl Iterator<Item = &'a BTreeMap<String, Quantity>>,
) -> BTreeMap<String, Quantity> {
    let mut all: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (resource, quantity) in nodes.flatten() {
        all.entry(resource).or_default().push(&quantity.0);
    }
    let sums = all
        .into_iter()
        .map(|(resource, quantities)| (resource.to_owned(), Quantity(quantity::sum(quantities))));
    sums.collect()
}

/// Sorted, what every cluster has first, and bounded: a claim of a cluster is not the hub's to
/// store without end.
///
/// What is `given` the cluster may say otherwise; of `own` things, such as its ledgers, the agent knows
/// better than anything there.
fn known(
    claims: &[ManagedClusterClaim],
    given: [(&str, &str); 2],
    own_claims: [(&str, &str); 3],
) -> Vec<ManagedClusterClaim> {
    let mut own: BTreeMap<&str, &str> = given.into();
    let mut others: BTreeMap<&str, &str> = BTreeMap::new();
    for claim in claims {
        let all = if own.contains_key(claim.name.as_str()) { &mut own } else { &mut others };
        all.insert(&claim.name, &claim.value);
    }
    for (name, value) in own_claims {
        others.remove(name);
        own.insert(name, value);
    }
    own.into_iter()
        .chain(others.into_iter().take(MOST_CLAIMS))
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| ManagedClusterClaim {
            name: name.to_string(),
            value: value.to_string(),
        })
        .collect()
}

#[cfg(test)]
mod tests;
