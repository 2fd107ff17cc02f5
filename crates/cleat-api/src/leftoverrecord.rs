//! LeftoverRecord: what a cluster kept, or is believed to have kept, when it left the fleet.
//!
//! It outlives the cluster's object on the hub, so that nothing is forgotten but in writing. What to
//! do about it is decided elsewhere.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::managedcluster::RemoveStrategy;
use crate::schema;

/// The most objects in one record; what is more goes into the next part.
pub const MOST_OBJECTS: usize = 1000;

/// Types of conditions.
pub mod condition {
    /// Whether everything in the record was seen gone, or nobody's.
    pub const CLEANED: &str = "Cleaned";
}

/// The name of a part of the record of one leave: of the cluster, and of the incarnation of its
/// object on the hub, because a cluster may leave more than once.
pub fn name(cluster: &str, cluster_uid: &str, part: usize) -> String {
    let short: String = cluster_uid.chars().filter(char::is_ascii_alphanumeric).take(8).collect();
    format!("{cluster}.{}.{part}", short.to_ascii_lowercase())
}

/// Which cluster left, why something is left there, and what.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cleat.dev",
    version = "v1alpha1",
    kind = "LeftoverRecord",
    plural = "leftoverrecords",
    shortname = "leftovers",
    status = "LeftoverRecordStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "What a cluster kept, or is believed to have kept, when it left the fleet.",
    printcolumn = r#"{"name": "Cluster", "type": "string", "jsonPath": ".spec.cluster"}"#,
    printcolumn = r#"{"name": "Reason", "type": "string", "jsonPath": ".spec.reason"}"#,
    printcolumn = r#"{"name": "Objects", "type": "integer", "jsonPath": ".spec.count"}"#,
    printcolumn = r#"{"name": "Cleaned", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Cleaned\")].status"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct LeftoverRecordSpec {
    /// The cluster's name.
    pub cluster: String,
    /// By what the cluster is known under any name: the UID of its kube-system namespace.
    #[serde(default, rename = "clusterID", skip_serializing_if = "String::is_empty")]
    pub cluster_id: String,
    /// The UID of the ManagedCluster that left.
    #[serde(rename = "clusterUID")]
    pub cluster_uid: String,
    /// Of which hub's ledgers on the cluster this is about: the SHA-256, in hexadecimal, of the hub's
    /// address as the agent was given it. Empty if the agent never told.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hub_hash: String,
    /// What was last declared about everything that had been carried to the cluster.
    #[serde(default)]
    pub remove_strategy: RemoveStrategy,
    /// Why something is left.
    pub reason: Reason,
    /// When the cluster's agent was last heard, if the cluster was let go of without it. What it did
    /// later, or never told, is on record only as believed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_last_heard: Option<Time>,
    /// Which part of the record this is, from 0; there is a next one when it is full.
    #[serde(default)]
    pub part: i64,
    /// How many objects are in this part.
    #[serde(default)]
    pub count: i64,
    /// The objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub objects: Vec<LeftObject>,
    /// Of which works and policies there was more than the hub could be told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub untold: Vec<Untold>,
}

/// How much there was that is not listed. The ledgers of works and the templates of policies on the
/// cluster know which.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Untold {
    /// The work or policy.
    pub source: String,
    /// Whether it is a policy; there may be a work of the same name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub policy: bool,
    /// How many objects more than are listed.
    pub count: i64,
}

/// Why something is left on a cluster.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum Reason {
    /// The strategy is to remove nothing; our marks were taken off.
    #[default]
    Needless,
    /// Works or policies declared that it stays; everything else was seen gone.
    Kept,
    /// Nothing was to be removed, and the cluster could not be reached: our marks are still on it.
    Unreachable,
    /// A person declared that the cluster exists no more.
    ClusterDestroyed,
}

impl Reason {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Needless => "Needless",
            Self::Kept => "Kept",
            Self::Unreachable => "Unreachable",
            Self::ClusterDestroyed => "ClusterDestroyed",
        }
    }
}

/// An object on a cluster that has left, or is about to.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct LeftObject {
    /// The API group; empty for the core group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The version in which it was last seen.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// The resource, such as deployments.
    pub resource: String,
    /// The namespace; empty for objects without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The name.
    pub name: String,
    /// Which incarnation of it; empty if nobody knows.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// The work or policy that brought it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// Why it stays.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// Whether it is to stay for good; absent means that it was to go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stays: Option<Stays>,
    /// Whether a policy made it. Such an object never bore a mark of ours; its uid alone says that it
    /// is the one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unmarked: bool,
    /// What it is to policies, if the agent made it for them, or whether it is the agent's own. Such an
    /// object may be known without its uid, by what it bears; any other without a uid is removed by
    /// nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
    /// Whether nobody told of it: it follows from what the work or policy says, and may not be there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub believed: bool,
    /// Its kind, where the resource is only what such a kind is most likely called.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
}

/// What an object is to the agent of its cluster.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum Part {
    /// The copy of a policy.
    Copy,
    /// An object that a template of a policy became.
    Template,
    /// The key with which the hub encrypts for policies.
    Key,
    /// The namespace made for policies.
    Place,
    /// The agent's own: its Deployment, its rights, its credentials, its namespace.
    Agent,
}

/// Whether an object that is left is to stay for good.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum Stays {
    /// It stays if it was there before the work, which the ledger on the cluster knows.
    IfAdopted,
    /// Somebody declared that it stays.
    Declared,
    /// It is not ours any more, or never was.
    NotOurs,
}

/// What was done about it since.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeftoverRecordStatus {
    /// What holds of the record.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions_by_type")]
    pub conditions: Vec<Condition>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_named_after_the_cluster_and_its_incarnation() {
        assert_eq!(name("c1", "1B2c-3d4e5f60-7", 0), "c1.1b2c3d4e.0");
        assert_ne!(name("c1", "aaaaaaaa", 0), name("c1", "bbbbbbbb", 0));
    }
}
