//! ManagedClusterSetBinding: lets a namespace choose from a set of clusters.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema;

/// Types of conditions.
pub mod condition {
    pub const BOUND: &str = "Bound";
}

/// Reasons of conditions. Clients match on them.
pub mod reason {
    pub const CLUSTER_SET_BOUND: &str = "ClusterSetBound";
    pub const CLUSTER_SET_NOT_FOUND: &str = "ClusterSetNotFound";
}

/// Which set. Its name is also that of the binding.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cluster.open-cluster-management.io",
    version = "v1beta2",
    kind = "ManagedClusterSetBinding",
    plural = "managedclustersetbindings",
    shortname = "mclsetbinding",
    shortname = "mclsetbindings",
    namespaced,
    status = "ManagedClusterSetBindingStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "Lets placements of its namespace choose from a set of clusters. Creating one needs the right to create managedclustersets/bind.",
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterSetBindingSpec {
    /// The set; it cannot change.
    #[serde(default)]
    #[schemars(length(min = 1), extend("default" = serde_json::Value::Null))]
    pub cluster_set: String,
}

/// What holds of the binding.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterSetBindingStatus {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions_by_type")]
    pub conditions: Vec<Condition>,
}
