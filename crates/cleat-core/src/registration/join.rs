//! Who may not join, and what to do about it.
//!
//! A cluster is known by its id, the UID of its `kube-system` namespace, whatever it is called.

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::{String, ToString as _};

use cleat_api::managedcluster::{
    CLUSTER_ID, CLUSTER_ID_CLAIM, ID_CLAIM, ManagedCluster, condition as kind,
};

use super::identity::{AGENTS, group, is_cluster_name};
use crate::condition;

/// Somebody wants this cluster to join.
#[derive(Clone, Debug)]
pub struct Wish<'a> {
    pub name: &'a str,
    pub cluster_id: &'a str,
    /// The hub's own id, if the hub tells.
    pub hub_id: Option<&'a str>,
    /// The hub's address.
    pub hub: &'a str,
    /// Join again under the same name, with a new certificate.
    pub again: bool,
}

/// What the cluster itself remembers of joining before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub name: String,
    pub hub: String,
}

/// Why a cluster may not join. Each says what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    #[error(
        "{0:?} cannot be the name of a cluster: use at most 63 lower-case letters, digits and `-`, \
         beginning and ending with a letter or digit, and not `managed-clusters`"
    )]
    BadName(String),
    #[error(
        "this cluster is the hub itself: a hub that manages itself could remove itself. Choose \
         another cluster with --cluster-kubeconfig or --cluster-context"
    )]
    IsHub,
    #[error(
        "this cluster has already joined {hub} as {name}. To run its agent, use `cleat agent`; to \
         join with new credentials, add --again; to leave, use `cleat unjoin {name}`"
    )]
    AlreadyJoined { name: String, hub: String },
    #[error(
        "this cluster has already joined {hub} as {name}, and a cluster has one name. Use that \
         name, or let it leave first with `cleat unjoin {name}`"
    )]
    OtherName { name: String, hub: String },
    #[error(
        "the credentials in this place are those for {hub}, which this cluster joined as {name}. For a \
         second hub choose another place with --agent-namespace or --credentials-dir; to change \
         hubs, leave the first with `cleat unjoin {name}`, or remove the credentials if it exists no \
         more"
    )]
    OtherHub { name: String, hub: String },
    #[error(
        "another cluster has the name {name} on this hub (its id is {id}). Choose another name, or \
         let that one leave first with `cleat unjoin {name}`"
    )]
    NameTaken { name: String, id: String },
    #[error(
        "a cluster named {name} is leaving this hub. Wait until `cleat clusters` no longer shows \
         it, or choose another name"
    )]
    Leaving { name: String },
    #[error(
        "this cluster is leaving this hub as {name}. If its agent has no valid credentials any more, \
         add --again and it gets new ones, to leave with; else wait until `cleat clusters` no longer \
         shows it"
    )]
    LeavingItself { name: String },
}

/// Whether the cluster may try. `existing` is the hub's cluster of that name, `record` what this
/// cluster remembers.
pub fn check(
    wish: &Wish<'_>,
    existing: Option<&ManagedCluster>,
    record: Option<&Record>,
) -> Result<(), Refusal> {
    let name = wish.name.to_owned();
    if !is_cluster_name(wish.name) {
        return Err(Refusal::BadName(name.chars().take(80).collect()));
    }
    if wish.hub_id == Some(wish.cluster_id) {
        return Err(Refusal::IsHub);
    }
    if let Some(Record { name, hub }) = record {
        let (name, hub) = (name.clone(), hub.clone());
        // The same hub may be known by another address; then it knows this cluster.
        let known = existing.and_then(id) == Some(wish.cluster_id);
        if hub != wish.hub && !(wish.again && known) {
            return Err(Refusal::OtherHub { name, hub });
        }
        if name != wish.name {
            return Err(Refusal::OtherName { name, hub });
        }
        if !wish.again {
            return Err(Refusal::AlreadyJoined { name, hub });
        }
    }
    let Some(existing) = existing else { return Ok(()) };
    if existing.metadata.deletion_timestamp.is_some() {
        return match id(existing) {
            // Who was away for longer than a certificate lasts has to come back to leave.
            Some(id) if id == wish.cluster_id && wish.again => Ok(()),
            Some(id) if id == wish.cluster_id => Err(Refusal::LeavingItself { name }),
            Some(_) | None => Err(Refusal::Leaving { name }),
        };
    }
    match id(existing) {
        Some(id) if id != wish.cluster_id => Err(Refusal::NameTaken { name, id: id.to_owned() }),
        Some(_) if !wish.again && has_joined(existing) => {
            Err(Refusal::AlreadyJoined { name, hub: wish.hub.to_owned() })
        }
        // Made for it in advance, or by an attempt that did not come to its end.
        Some(_) | None => Ok(()),
    }
}

/// By what the cluster is known: what it came with, or else what its agent says, or else what it says
/// of itself, which may be anything.
pub fn id(cluster: &ManagedCluster) -> Option<&str> {
    let annotated = cluster.metadata.annotations.iter().flatten();
    let annotated = annotated.into_iter().find(|(key, _)| *key == CLUSTER_ID);
    let annotated = annotated.map(|(_, value)| value.as_str()).filter(|id| !id.is_empty());
    annotated.or_else(|| claimed(cluster, CLUSTER_ID_CLAIM)).or_else(|| claimed(cluster, ID_CLAIM))
}

fn claimed<'a>(cluster: &'a ManagedCluster, name: &str) -> Option<&'a str> {
    let claims = cluster.status.iter().flat_map(|status| &status.cluster_claims);
    let claim = claims.into_iter().find(|claim| claim.name == name);
    claim.map(|claim| claim.value.as_str()).filter(|id| !id.is_empty())
}

fn has_joined(cluster: &ManagedCluster) -> bool {
    let conditions = cluster.status.as_ref().map(|status| status.conditions.as_slice());
    condition::holds(conditions.unwrap_or_default(), kind::JOINED)
}

fn was_taken_in(cluster: &ManagedCluster) -> bool {
    let conditions = cluster.status.as_ref().map(|status| status.conditions.as_slice());
    condition::holds(conditions.unwrap_or_default(), kind::ACCEPTED)
}

/// Another object for the same cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namesake {
    pub name: String,
    /// It was taken in already.
    pub taken_in: bool,
    /// When it came; text, as the hub wrote it, so that it sorts.
    pub since: String,
}

impl Namesake {
    /// What `cluster` is to others of its id, if it counts: the hub accepts it.
    pub fn of(cluster: &ManagedCluster) -> Option<Self> {
        cluster.spec.hub_accepts_client.then(|| Self {
            name: cluster.metadata.name.clone().unwrap_or_default(),
            taken_in: was_taken_in(cluster),
            since: since(cluster),
        })
    }
}

fn since(cluster: &ManagedCluster) -> String {
    cluster.metadata.creation_timestamp.as_ref().map(|at| at.0.to_string()).unwrap_or_default()
}

/// Why the hub does not take in a cluster, even if it is accepted. Of several objects for one
/// cluster the first that was taken in stays, and else the oldest.
pub fn refused_by_hub(
    cluster: &ManagedCluster,
    namesakes: &[Namesake],
    hub_id: Option<&str>,
) -> Option<String> {
    let called = cluster.metadata.name.as_deref().unwrap_or_default();
    if group(called) == AGENTS {
        return Some(format!(
            "No cluster can be called {called:?}: what its agents may do, others could do as well. \
             Delete this ManagedCluster."
        ));
    }
    let id = id(cluster)?;
    if hub_id == Some(id) {
        return Some(
            "This cluster is the hub itself: a hub that manages itself could remove itself. Delete \
             this ManagedCluster."
                .to_string(),
        );
    }
    if was_taken_in(cluster) {
        return None;
    }
    let own = (since(cluster), cluster.metadata.name.clone().unwrap_or_default());
    let first = namesakes
        .iter()
        .filter(|other| other.taken_in || (other.since.clone(), other.name.clone()) < own)
        .min_by(|one, other| one.name.cmp(&other.name))?;
    Some(format!(
        "This cluster has already joined as {}, and a cluster has one name. Delete this \
         ManagedCluster, or let {0} leave first.",
        first.name
    ))
}

#[cfg(test)]
mod tests;
