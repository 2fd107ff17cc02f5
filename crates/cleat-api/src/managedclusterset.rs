//! ManagedClusterSet: clusters that are chosen from together.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema;

/// The set of clusters that nobody put into another one.
pub const DEFAULT: &str = "default";

/// The set of all clusters.
pub const GLOBAL: &str = "global";

/// On one of these two: `"false"` leaves it to its owner.
pub const AUTO_UPDATE: &str = "cluster.open-cluster-management.io/autoupdate";

/// Types of conditions.
pub mod condition {
    pub const EMPTY: &str = "ClusterSetEmpty";
}

/// Reasons of conditions. Clients match on them.
pub mod reason {
    pub const NO_CLUSTER_MATCHED: &str = "NoClusterMatched";
    pub const CLUSTERS_SELECTED: &str = "ClustersSelected";
}

/// Which clusters are in the set.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cluster.open-cluster-management.io",
    version = "v1beta2",
    kind = "ManagedClusterSet",
    plural = "managedclustersets",
    shortname = "mclset",
    shortname = "mclsets",
    status = "ManagedClusterSetStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "Clusters that are chosen from together. A namespace may choose from the sets that are bound to it.",
    printcolumn = r#"{"name": "Empty", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"ClusterSetEmpty\")].status"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterSetSpec {
    /// How clusters get into it.
    #[serde(default)]
    pub cluster_selector: ClusterSetSelector,
    /// Namespaces that every cluster of the set is to have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub managed_namespaces: Vec<ManagedNamespace>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSetSelector {
    /// By a label that puts a cluster into one set only, or by labels of any kind.
    #[serde(default)]
    pub selector_type: SelectorType,
    /// Which labels, for the type LabelSelector. An empty one selects all clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SelectorType {
    #[default]
    ExclusiveClusterSetLabel,
    LabelSelector,
    /// A value of a later version.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ManagedNamespace {
    /// The namespace on the clusters.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
}

/// What holds of the set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterSetStatus {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions_by_type")]
    pub conditions: Vec<Condition>,
}
