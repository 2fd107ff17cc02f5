//! What a placement asks for.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube_derive::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::PlacementStatus;
use crate::schema;

/// Which clusters. An empty one chooses all that are bound to its namespace.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cluster.open-cluster-management.io",
    version = "v1beta1",
    kind = "Placement",
    plural = "placements",
    namespaced,
    status = "PlacementStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "Chooses clusters from the cluster sets bound to its namespace.",
    printcolumn = r#"{"name": "Succeeded", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"PlacementSatisfied\")].status"}"#,
    printcolumn = r#"{"name": "Reason", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"PlacementSatisfied\")].reason"}"#,
    printcolumn = r#"{"name": "SelectedClusters", "type": "integer", "jsonPath": ".status.numberOfSelectedClusters"}"#,
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct PlacementSpec {
    /// The cluster sets to choose from, of those bound to the namespace. Without it, all of those.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cluster_sets: Vec<String>,
    /// How many clusters to choose. Without it, all that fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number_of_clusters: Option<i32>,
    /// A cluster fits if it fits one of these. Without any, all fit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub predicates: Vec<ClusterPredicate>,
    /// Which clusters go first when there are more than enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prioritizer_policy: Option<PrioritizerPolicy>,
    /// How the chosen clusters are spread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread_policy: Option<SpreadPolicy>,
    /// Taints that do not keep a cluster from being chosen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,
    /// How the chosen clusters are divided into groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision_strategy: Option<DecisionStrategy>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterPredicate {
    /// What a cluster must fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required_cluster_selector: Option<ClusterSelector>,
}

/// All of the selectors must fit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSelector {
    /// By the cluster's labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,
    /// By the claims in the cluster's status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim_selector: Option<ClusterClaimSelector>,
    /// By expressions over managedCluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cel_selector: Option<ClusterCelSelector>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterClaimSelector {
    /// Requirements that must all be met.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<LabelSelectorRequirement>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterCelSelector {
    /// CEL expressions that must all be true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cel_expressions: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PrioritizerPolicy {
    /// Additive adds to the built-in weights, Exact replaces them.
    #[serde(default)]
    pub mode: PrioritizerMode,
    /// Scores and their weights.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub configurations: Vec<PrioritizerConfig>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PrioritizerMode {
    #[default]
    Additive,
    Exact,
    /// A value of a later version.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PrioritizerConfig {
    /// Where the score comes from.
    pub score_coordinate: ScoreCoordinate,
    /// How much the score counts. 0 not at all, below 0 the other way round.
    #[serde(default = "one")]
    #[schemars(range(min = -10, max = 10))]
    pub weight: i32,
}

fn one() -> i32 {
    1
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["type"]))]
pub struct ScoreCoordinate {
    /// A built-in score or an add-on's.
    #[serde(default, rename = "type")]
    pub type_: ScoreCoordinateType,
    /// Balance, Steady, ResourceAllocatableCPU or ResourceAllocatableMemory, for type BuiltIn.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub built_in: String,
    /// Which score, for type AddOn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub add_on: Option<AddOnScore>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ScoreCoordinateType {
    #[default]
    BuiltIn,
    AddOn,
    /// A value of a later version.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddOnScore {
    /// The name of the AddOnPlacementScore in the cluster's namespace.
    pub resource_name: String,
    /// The name of the score in it.
    pub score_name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SpreadPolicy {
    /// Terms, the most important first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub spread_constraints: Vec<SpreadConstraintsTerm>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SpreadConstraintsTerm {
    /// The label or claim by whose value clusters belong together.
    #[schemars(length(max = 316), extend("pattern" = schema::LABEL_KEY))]
    pub topology_key: String,
    /// What the key is the name of.
    pub topology_key_type: TopologyKeyType,
    /// By how many clusters values may differ.
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    pub max_skew: i32,
    /// What to do when they differ by more.
    #[serde(default)]
    pub when_unsatisfiable: UnsatisfiableMaxSkewAction,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TopologyKeyType {
    #[default]
    Label,
    Claim,
    /// A value of a later version.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum UnsatisfiableMaxSkewAction {
    DoNotSchedule,
    #[default]
    ScheduleAnyway,
    /// A value of a later version.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Toleration {
    /// The taint's key; empty, with operator Exists, for every taint.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 316), extend("pattern" = schema::LABEL_KEY))]
    pub key: String,
    /// Whether the value counts.
    #[serde(default)]
    pub operator: TolerationOperator,
    /// The taint's value, for operator Equal.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1024))]
    pub value: String,
    /// The taint's effect. Without it, every effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<TaintEffect>,
    /// For how long, from when the taint was added. Without it, for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toleration_seconds: Option<i64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TolerationOperator {
    #[default]
    Equal,
    Exists,
    /// A value of a later version.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TaintEffect {
    #[default]
    NoSelect,
    PreferNoSelect,
    NoSelectIfNew,
    /// A value of a later version.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DecisionStrategy {
    /// How groups are made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_strategy: Option<GroupStrategy>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GroupStrategy {
    /// Named groups, made first and in this order. The other clusters form groups without names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decision_groups: Vec<DecisionGroup>,
    /// The most clusters of a group: a number, or a share of all that were chosen.
    #[serde(default = "all_in_one")]
    #[schemars(schema_with = "clusters_per_group")]
    pub clusters_per_decision_group: IntOrString,
}

impl Default for GroupStrategy {
    fn default() -> Self {
        Self { decision_groups: Vec::new(), clusters_per_decision_group: all_in_one() }
    }
}

fn all_in_one() -> IntOrString {
    IntOrString::String("100%".to_owned())
}

fn clusters_per_group(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "pattern": "^((100|[1-9][0-9]{0,1})%|[1-9][0-9]*)$",
        "x-kubernetes-int-or-string": true,
    })
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DecisionGroup {
    /// The name of the group, also a label of its decisions.
    #[schemars(regex(pattern = r"^[a-zA-Z0-9][-A-Za-z0-9_.]{0,61}[a-zA-Z0-9]$"))]
    pub group_name: String,
    /// Which of the chosen clusters are in it.
    pub group_cluster_selector: GroupClusterSelector,
}

/// Both selectors must fit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GroupClusterSelector {
    /// By the cluster's labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,
    /// By the claims in the cluster's status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim_selector: Option<ClusterClaimSelector>,
}
