//! ClusterClaim: something a cluster says of itself. It lives on that cluster.

use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the claim says; its name says about what.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cluster.open-cluster-management.io",
    version = "v1alpha1",
    kind = "ClusterClaim",
    plural = "clusterclaims",
    derive = "Default",
    derive = "PartialEq",
    doc = "Something this cluster says of itself. Its agent carries it to the hub.",
    crates(kube_core = "::kube_core")
)]
pub struct ClusterClaimSpec {
    /// The value, whatever it means.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 1024))]
    pub value: String,
}
