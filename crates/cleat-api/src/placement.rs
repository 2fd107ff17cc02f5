//! Placement and PlacementDecision: which clusters something is for, and the answer.
//!
//! The wire form alone; choosing clusters is not done here.

mod spec;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use spec::Placement;
pub use spec::{
    AddOnScore, ClusterCelSelector, ClusterClaimSelector, ClusterPredicate, ClusterSelector,
    DecisionGroup, DecisionStrategy, GroupClusterSelector, GroupStrategy, PlacementSpec,
    PrioritizerConfig, PrioritizerMode, PrioritizerPolicy, ScoreCoordinate, ScoreCoordinateType,
    SpreadConstraintsTerm, SpreadPolicy, TaintEffect, Toleration, TolerationOperator,
    TopologyKeyType, UnsatisfiableMaxSkewAction,
};

use crate::schema;

/// The API group of clusters.
pub const GROUP: &str = "cluster.open-cluster-management.io";

/// On a decision: the placement it is of.
pub const PLACEMENT_LABEL: &str = "cluster.open-cluster-management.io/placement";

/// On a decision: the name of its group, perhaps empty.
pub const GROUP_NAME_LABEL: &str = "cluster.open-cluster-management.io/decision-group-name";

/// On a decision: the index of its group, from 0.
pub const GROUP_INDEX_LABEL: &str = "cluster.open-cluster-management.io/decision-group-index";

/// On a placement: `"true"` leaves its decisions to somebody else.
pub const SCHEDULING_DISABLED: &str =
    "cluster.open-cluster-management.io/experimental-scheduling-disable";

/// The most clusters one decision names.
pub const MOST_DECISIONS: usize = 100;

/// Types of conditions.
pub mod condition {
    pub const SATISFIED: &str = "PlacementSatisfied";
    pub const MISCONFIGURED: &str = "PlacementMisconfigured";
}

/// Reasons of conditions. Clients match on them.
pub mod reason {
    pub const ALL_DECISIONS_SCHEDULED: &str = "AllDecisionsScheduled";
    pub const NOT_ALL_DECISIONS_SCHEDULED: &str = "NotAllDecisionsScheduled";
    pub const NO_MANAGED_CLUSTER_SET_BINDINGS: &str = "NoManagedClusterSetBindings";
    pub const NO_INTERSECTION: &str = "NoIntersection";
    pub const ALL_MANAGED_CLUSTER_SETS_EMPTY: &str = "AllManagedClusterSetsEmpty";
    pub const NO_MANAGED_CLUSTER_MATCHED: &str = "NoManagedClusterMatched";
    pub const MISCONFIGURED: &str = "Misconfigured";
    pub const SUCCEEDCONFIGURED: &str = "Succeedconfigured";
}

/// What came of a placement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlacementStatus {
    /// How many clusters were chosen.
    #[serde(default, skip_serializing_if = "schema::default")]
    pub number_of_selected_clusters: i32,
    /// The groups they were divided into.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decision_groups: Vec<DecisionGroupStatus>,
    /// What holds of the placement.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions_by_type")]
    pub conditions: Vec<Condition>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DecisionGroupStatus {
    /// The index of the group, from 0.
    #[serde(default)]
    #[schemars(extend("default" = serde_json::Value::Null))]
    pub decision_group_index: i32,
    /// The name of the group, empty for those made of the rest.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub decision_group_name: String,
    /// The names of the decisions that list the group's clusters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<String>,
    /// How many clusters are in it.
    #[serde(default)]
    pub cluster_count: i32,
}

/// A PlacementDecision says nothing but its status.
#[derive(
    CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "cluster.open-cluster-management.io",
    version = "v1beta1",
    kind = "PlacementDecision",
    plural = "placementdecisions",
    namespaced,
    no_spec,
    status = "PlacementDecisionStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "Clusters that a placement chose. The label cluster.open-cluster-management.io/placement names it.",
    crates(kube_core = "::kube_core")
)]
pub struct PlacementDecisionContent {}

/// The chosen clusters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlacementDecisionStatus {
    /// At most 100 of them.
    pub decisions: Vec<ClusterDecision>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["clusterName", "reason"]))]
pub struct ClusterDecision {
    /// The cluster; it occurs once in all decisions of a placement.
    pub cluster_name: String,
    /// Why it was chosen.
    #[serde(default)]
    #[schemars(extend("default" = serde_json::Value::Null))]
    pub reason: String,
    /// The score with which it was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<i64>,
}
