//! The kinds the hub's stories look at, untyped: what is kept of them is read from them as they are.

use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::core::GroupVersionKind;

/// Group, version, kind and plural.
pub(crate) type Kind = [&'static str; 4];

pub(crate) const WORK: Kind =
    ["work.open-cluster-management.io", "v1", "ManifestWork", "manifestworks"];
pub(crate) const SET: Kind = [
    "work.open-cluster-management.io",
    "v1alpha1",
    "ManifestWorkReplicaSet",
    "manifestworkreplicasets",
];
pub(crate) const PLACEMENT: Kind =
    ["cluster.open-cluster-management.io", "v1beta1", "Placement", "placements"];
pub(crate) const DECISION: Kind =
    ["cluster.open-cluster-management.io", "v1beta1", "PlacementDecision", "placementdecisions"];

pub(crate) const CLUSTER: Kind =
    ["cluster.open-cluster-management.io", "v1", "ManagedCluster", "managedclusters"];
pub(crate) const CLUSTER_SET: Kind =
    ["cluster.open-cluster-management.io", "v1beta2", "ManagedClusterSet", "managedclustersets"];
pub(crate) const SET_BINDING: Kind = [
    "cluster.open-cluster-management.io",
    "v1beta2",
    "ManagedClusterSetBinding",
    "managedclustersetbindings",
];
pub(crate) const SCORE: Kind = [
    "cluster.open-cluster-management.io",
    "v1alpha1",
    "AddOnPlacementScore",
    "addonplacementscores",
];
pub(crate) const PREVIEW: Kind = ["cleat.dev", "v1alpha1", "RemovalPreview", "removalpreviews"];
pub(crate) const AUTOMATION: Kind =
    ["policy.open-cluster-management.io", "v1beta1", "PolicyAutomation", "policyautomations"];
pub(crate) const POLICY: Kind = ["policy.open-cluster-management.io", "v1", "Policy", "policies"];
pub(crate) const JOB: Kind = ["tower.ansible.com", "v1alpha1", "AnsibleJob", "ansiblejobs"];

/// Everything of a kind, or what a namespace has of it.
pub(crate) fn every(client: &Client, namespace: &Option<String>, kind: Kind) -> Api<DynamicObject> {
    let [group, version, kind, plural] = kind;
    let kind = GroupVersionKind::gvk(group, version, kind);
    let kind = ApiResource::from_gvk_with_plural(&kind, plural);
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &kind),
        None => Api::all_with(client.clone(), &kind),
    }
}
