//! What is inside a namespace that is about to go because its cluster leaves.
//!
//! Deleting a namespace takes along whatever is in it, so somebody must have looked: everything that
//! is neither ours nor made by Kubernetes for every namespace is foreign, and foreign things stay.
//! Nothing is read here.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::observed::Owner;
use crate::id::Id;

/// What a namespace holds, as far as deleting it is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Contents {
    /// Nothing but what comes with every namespace.
    Ours,
    /// What is on its way out, or another work of ours still holds.
    Waiting(String),
    /// What others brought; the first few.
    Foreign(Vec<Id>),
    /// It could not be looked into.
    Unknown(String),
}

/// One object in a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub id: Id,
    pub uid: String,
    pub terminating: bool,
    pub owners: Vec<Owner>,
    /// The service account a token is for.
    pub account: Option<String>,
    pub labels: BTreeMap<String, String>,
    /// What would hold it up if it were to go.
    pub finalizers: Vec<String>,
}

/// Begins every account of why a namespace stays.
pub(crate) const HOLDS_FOREIGN: &str = "it holds what is not ours";

/// How many foreign objects are named.
const NAMED: usize = 5;

pub(crate) fn is_namespace(id: &Id) -> bool {
    id.group.is_empty() && id.resource == "namespaces"
}

/// What to make of everything in a namespace. `hub_hash` is that of our hub's address.
pub fn judge(found: &[Found], hub_hash: &str) -> Contents {
    let here: BTreeSet<&str> = found.iter().map(|one| one.uid.as_str()).collect();
    let mut foreign = Vec::new();
    let mut waiting: Option<&Id> = None;
    for one in found.iter().filter(|one| !comes_with_every_namespace(one)) {
        match standing(one, &here, hub_hash) {
            Standing::Foreign => foreign.push(one.id.clone()),
            Standing::Waiting => waiting = Some(waiting.map_or(&one.id, |id| id.min(&one.id))),
            Standing::Follows => {}
        }
    }
    if !foreign.is_empty() {
        foreign.sort();
        foreign.truncate(NAMED);
        return Contents::Foreign(foreign);
    }
    match waiting {
        Some(id) => Contents::Waiting(id.to_string()),
        None => Contents::Ours,
    }
}

enum Standing {
    Foreign,
    Waiting,
    /// It goes, or is judged, with an owner that is here as well.
    Follows,
}

fn standing(one: &Found, here: &BTreeSet<&str>, hub_hash: &str) -> Standing {
    if one.terminating {
        return Standing::Waiting;
    }
    if one.owners.iter().any(|owner| here.contains(owner.uid.as_str())) {
        return Standing::Follows;
    }
    let mut ledgers = one.owners.iter().filter(|owner| owner.is_ledger()).peekable();
    if ledgers.peek().is_some() {
        return match ledgers.all(|owner| owner.is_of_hub(hub_hash)) {
            true => Standing::Waiting,
            false => Standing::Foreign,
        };
    }
    // An owner that is not here is gone, and then the collector is on its way, or it is an object
    // without a namespace, and then this is its owner's business.
    match one.owners.is_empty() || one.owners.iter().all(is_cluster_wide) {
        true => Standing::Foreign,
        false => Standing::Waiting,
    }
}

/// Owners without a namespace, as far as Kubernetes' own kinds go.
fn is_cluster_wide(owner: &Owner) -> bool {
    matches!(
        owner.kind.as_str(),
        "Namespace" | "Node" | "ClusterRole" | "ClusterRoleBinding" | "CustomResourceDefinition"
    )
}

pub(crate) fn comes_with_every_namespace(one: &Found) -> bool {
    let Id { group, resource, name, .. } = &one.id;
    match (group.as_str(), resource.as_str()) {
        // What happened there is not worth a namespace; and endpoints follow their services.
        ("" | "events.k8s.io", "events") | ("", "endpoints") | ("metrics.k8s.io", _) => true,
        ("", "configmaps") => name == "kube-root-ca.crt" || name == "openshift-service-ca.crt",
        ("", "serviceaccounts") => is_everywhere(name),
        ("", "secrets") => one.account.as_deref().is_some_and(is_everywhere),
        // OpenShift binds its builders and deployers in every namespace.
        ("rbac.authorization.k8s.io" | "authorization.openshift.io", "rolebindings") => {
            matches!(&**name, "system:deployers" | "system:image-builders" | "system:image-pullers")
        }
        _ => false,
    }
}

/// Service accounts that every namespace has, the latter two where OpenShift runs.
fn is_everywhere(account: &str) -> bool {
    matches!(account, "default" | "builder" | "deployer")
}

impl Contents {
    /// Why a namespace stays, for people.
    pub(crate) fn why_kept(&self) -> Option<String> {
        let Self::Foreign(ids) = self else { return None };
        let names: Vec<String> = ids.iter().map(ToString::to_string).collect();
        Some(format!("{HOLDS_FOREIGN}: {}", names.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::super::ownership::LEDGER_KIND;
    use super::*;
    use std::vec;

    fn found(resource: &str, name: &str) -> Found {
        let id = Id {
            resource: resource.into(),
            namespace: "n".into(),
            name: name.into(),
            ..Id::default()
        };
        Found {
            uid: format!("{resource}/{name}"),
            id,
            terminating: false,
            owners: vec![],
            account: None,
            labels: BTreeMap::new(),
            finalizers: vec![],
        }
    }

    fn owner(kind: &str, name: &str, uid: &str) -> Owner {
        let api_version =
            if kind == LEDGER_KIND { "work.open-cluster-management.io/v1" } else { "apps/v1" };
        Owner {
            api_version: api_version.into(),
            kind: kind.into(),
            name: name.into(),
            uid: uid.into(),
            controller: None,
            block_owner_deletion: None,
        }
    }

    #[test]
    fn what_comes_with_every_namespace_is_nobodys() {
        let token = Found { account: Some("default".into()), ..found("secrets", "default-token") };
        let all = [
            found("configmaps", "kube-root-ca.crt"),
            found("serviceaccounts", "default"),
            found("events", "e"),
            token,
        ];
        assert_eq!(judge(&all, "hub"), Contents::Ours);
    }

    #[test]
    fn what_others_brought_is_foreign_even_beside_what_goes() {
        let going = Found { terminating: true, ..found("pods", "p") };
        let map = found("configmaps", "theirs");
        assert_eq!(judge(&[going, map.clone()], "hub"), Contents::Foreign(vec![map.id]));
    }

    #[test]
    fn dependents_follow_and_orphans_are_waited_for() {
        let deployment = found("deployments", "d");
        let mut set = found("replicasets", "r");
        set.owners = vec![owner("Deployment", "d", &deployment.uid)];
        assert_eq!(judge(&[set.clone()], "hub"), Contents::Waiting(set.id.to_string()));
        let id = deployment.id.clone();
        assert_eq!(judge(&[deployment, set], "hub"), Contents::Foreign(vec![id]));
    }

    #[test]
    fn another_hubs_objects_are_foreign_and_another_works_are_waited_for() {
        let mut held = found("configmaps", "m");
        held.owners = vec![owner(LEDGER_KIND, "hub-other-work", "l1")];
        assert_eq!(judge(&[held.clone()], "hub"), Contents::Waiting(held.id.to_string()));
        held.owners.push(owner(LEDGER_KIND, "elsewhere-work", "l2"));
        assert_eq!(judge(&[held.clone()], "hub"), Contents::Foreign(vec![held.id]));
    }
}
