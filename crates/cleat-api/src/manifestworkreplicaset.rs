//! ManifestWorkReplicaSet: one work for every cluster that placements choose.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::manifestwork::ManifestWorkSpec;
use crate::rollout::RolloutStrategy;
use crate::schema;

/// Holds a set until the works it made were dealt with as its policy says.
pub const FINALIZER: &str = "work.open-cluster-management.io/manifest-work-cleanup";

/// On a work: the set it is of, as `<namespace>.<name>`.
pub const SET_LABEL: &str = "work.open-cluster-management.io/manifestworkreplicaset";

/// On a work: the placement that chose its cluster.
pub const PLACEMENT_LABEL: &str = "work.open-cluster-management.io/placementname";

/// The longest `<namespace>.<name>` that can be the value of [`SET_LABEL`].
pub const LONGEST_KEY: usize = 63;

/// How works say which set they are of.
pub fn key(namespace: &str, name: &str) -> String {
    format!("{namespace}.{name}")
}

/// Types of conditions.
pub mod condition {
    pub const PLACEMENT_VERIFIED: &str = "PlacementVerified";
    pub const PLACEMENT_ROLLED_OUT: &str = "PlacementRolledOut";
    pub const MANIFESTWORK_APPLIED: &str = "ManifestworkApplied";
}

/// Reasons of conditions. Clients match on them.
pub mod reason {
    pub const AS_EXPECTED: &str = "AsExpected";
    pub const NOT_AS_EXPECTED: &str = "NotAsExpected";
    pub const PLACEMENT_DECISION_NOT_FOUND: &str = "PlacementDecisionNotFound";
    pub const PLACEMENT_DECISION_EMPTY: &str = "PlacementDecisionEmpty";
    pub const PROCESSING: &str = "Processing";
    pub const INVALID_MANIFEST_WORK_NAME: &str = "InvalidManifestWorkName";
    pub const PROGRESSING: &str = "Progressing";
    pub const COMPLETE: &str = "Complete";
}

/// Which work, and on which clusters.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "work.open-cluster-management.io",
    version = "v1alpha1",
    kind = "ManifestWorkReplicaSet",
    plural = "manifestworkreplicasets",
    shortname = "mwrs",
    namespaced,
    status = "ManifestWorkReplicaSetStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "One work for every cluster that placements choose.",
    printcolumn = r#"{"name": "Placement", "type": "string", "description": "Why the placement is found or not", "jsonPath": ".status.conditions[?(@.type==\"PlacementVerified\")].reason"}"#,
    printcolumn = r#"{"name": "Found", "type": "string", "description": "Whether the placement is found", "jsonPath": ".status.conditions[?(@.type==\"PlacementVerified\")].status"}"#,
    printcolumn = r#"{"name": "ManifestWorks", "type": "string", "description": "Why the works are applied or not", "jsonPath": ".status.conditions[?(@.type==\"ManifestworkApplied\")].reason"}"#,
    printcolumn = r#"{"name": "Applied", "type": "string", "description": "Whether the works are applied", "jsonPath": ".status.conditions[?(@.type==\"ManifestworkApplied\")].status"}"#,
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct ManifestWorkReplicaSetSpec {
    /// The spec of every work.
    pub manifest_work_template: ManifestWorkSpec,
    /// The placements, in the set's own namespace, that choose clusters.
    #[schemars(length(min = 1))]
    pub placement_refs: Vec<LocalPlacementReference>,
    /// Whether a deleted set leaves at once (Background) or after its works (Foreground). The works
    /// are deleted either way.
    #[serde(default)]
    pub cascade_deletion_policy: CascadeDeletionPolicy,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LocalPlacementReference {
    /// The name of the placement.
    #[schemars(length(min = 1))]
    pub name: String,
    /// In which order, and how carefully, clusters get a change.
    #[serde(default)]
    #[schemars(extend("default" = { "type": "All", "all": { "progressDeadline": "None" } }))]
    pub rollout_strategy: RolloutStrategy,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CascadeDeletionPolicy {
    #[default]
    Background,
    Foreground,
    /// A value of a later version.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

/// What is known of a set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManifestWorkReplicaSetStatus {
    /// What holds of the set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions_by_type")]
    pub conditions: Vec<Condition>,
    /// All works counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
    /// The works of each placement counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub placement_summary: Vec<PlacementSummary>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlacementSummary {
    /// The placement.
    pub name: String,
    /// Decision groups whose works are all available, and how many there are.
    pub available_decision_groups: String,
    /// Its works counted.
    pub summary: Summary,
}

/// Works counted by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Works that exist.
    pub total: i64,
    /// Works that should exist.
    pub desired_total: i64,
    /// Works that carry the current template.
    pub updated: i64,
    /// Works with condition Applied.
    pub applied: i64,
    /// Works with condition Available.
    pub available: i64,
    /// Works with condition Progressing.
    pub progressing: i64,
    /// Works with condition Degraded.
    pub degraded: i64,
}
