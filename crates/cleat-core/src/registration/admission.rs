//! What a hub refuses to store about clusters, and for what it asks whether the writer may.
//!
//! Rights are questions here: who answers them is not decided in this crate.

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use cleat_api::managedcluster::{CLUSTER_SET_LABEL, ManagedCluster};
use cleat_api::managedclustersetbinding::ManagedClusterSetBinding;

use super::identity::is_cluster_name;

/// Something the writer must be allowed, in the group of clusters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Right {
    pub verb: &'static str,
    pub resource: &'static str,
    pub subresource: &'static str,
    pub name: String,
}

impl core::fmt::Display for Right {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self { verb, resource, subresource, name } = self;
        write!(f, "{verb} {resource}/{subresource} {name}")
    }
}

/// What is wrong with it and will be for everybody, sorted.
pub fn objections(new: &ManagedCluster, old: Option<&ManagedCluster>) -> Vec<String> {
    let mut all = Vec::new();
    let called = new.metadata.name.as_deref().unwrap_or_default();
    if old.is_none() && !is_cluster_name(called) {
        all.push(format!(
            "metadata.name: {called:?} must be usable as the name of a namespace (at most 63 \
             lower-case letters, digits and `-`), and not be managed-clusters"
        ));
    }
    let known = |url: &str| {
        old.is_some_and(|old| {
            old.spec.managed_cluster_client_configs.iter().any(|config| config.url == url)
        })
    };
    for (index, config) in new.spec.managed_cluster_client_configs.iter().enumerate() {
        let host = config.url.strip_prefix("https://").map(|rest| rest.split('/').next());
        let plain = host.flatten().is_some_and(|host| !host.is_empty() && !host.contains(' '));
        if !plain && !known(&config.url) {
            all.push(format!(
                "spec.managedClusterClientConfigs[{index}].url: {:?} must begin with https:// and \
                 name a host",
                config.url.chars().take(120).collect::<String>()
            ));
        }
    }
    all
}

/// Whether this write makes the hub accept the cluster. It must not while the namespace of an
/// earlier cluster of that name is going.
pub fn accepts(new: &ManagedCluster, old: Option<&ManagedCluster>) -> bool {
    new.spec.hub_accepts_client && !old.is_some_and(|old| old.spec.hub_accepts_client)
}

/// What the writer must be allowed to do.
pub fn rights(new: &ManagedCluster, old: Option<&ManagedCluster>) -> Vec<Right> {
    let mut all = Vec::new();
    let called = new.metadata.name.clone().unwrap_or_default();
    if new.spec.hub_accepts_client != old.is_some_and(|old| old.spec.hub_accepts_client) {
        let (verb, resource, subresource) = ("update", "managedclusters", "accept");
        all.push(Right { verb, resource, subresource, name: called });
    }
    let set = |cluster: &ManagedCluster| {
        cluster.metadata.labels.as_ref().and_then(|all| all.get(CLUSTER_SET_LABEL)).cloned()
    };
    let (before, after) = (old.and_then(set), set(new));
    if before != after {
        for name in [before, after].into_iter().flatten().filter(|name| !name.is_empty()) {
            let (verb, resource, subresource) = ("create", "managedclustersets", "join");
            all.push(Right { verb, resource, subresource, name });
        }
    }
    all
}

/// What is wrong with a binding.
pub fn binding_objections(
    new: &ManagedClusterSetBinding,
    old: Option<&ManagedClusterSetBinding>,
) -> Vec<String> {
    let mut all = Vec::new();
    let (called, set) = (new.metadata.name.as_deref().unwrap_or_default(), &new.spec.cluster_set);
    if called != set {
        all.push(format!("metadata.name: {called:?} must be the name of the set, {set:?}"));
    }
    if old.is_some_and(|old| old.spec.cluster_set != *set) {
        all.push("spec.clusterSet: it cannot change; make another binding".to_owned());
    }
    all
}

/// What the writer of a binding must be allowed to do.
pub fn binding_rights(
    new: &ManagedClusterSetBinding,
    old: Option<&ManagedClusterSetBinding>,
) -> Vec<Right> {
    let name = new.spec.cluster_set.clone();
    if old.is_some_and(|old| old.spec.cluster_set == name) {
        return Vec::new();
    }
    let (verb, resource, subresource) = ("create", "managedclustersets", "bind");
    [Right { verb, resource, subresource, name }].into()
}

#[cfg(test)]
mod tests;
