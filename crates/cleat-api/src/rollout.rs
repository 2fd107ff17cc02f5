//! Rollout strategies: in which order, and how carefully, clusters get something new.
//!
//! This is the wire form alone; deciding which cluster is next is not done here.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutStrategy {
    /// All at once, a number at a time, or decision group by decision group.
    #[serde(default, rename = "type")]
    pub type_: RolloutType,
    /// For type All.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all: Option<RolloutAll>,
    /// For type Progressive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progressive: Option<RolloutProgressive>,
    /// For type ProgressivePerGroup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progressive_per_group: Option<RolloutProgressivePerGroup>,
}

impl Default for RolloutStrategy {
    fn default() -> Self {
        Self {
            type_: RolloutType::All,
            all: Some(RolloutAll::default()),
            progressive: None,
            progressive_per_group: None,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RolloutType {
    #[default]
    All,
    Progressive,
    ProgressivePerGroup,
    /// A value of a later version. Nothing new may be rolled out under it.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutAll {
    /// How long a success must last before it counts, such as 90s, 5m or 2h.
    #[serde(default = "at_once")]
    pub min_success_time: String,
    /// How long to wait for a success, such as 90s, 5m or 2h; None for ever.
    #[serde(default = "never")]
    #[schemars(extend("pattern" = DEADLINE))]
    pub progress_deadline: String,
    /// How many clusters, or which share of them, may fail before the rollout stops.
    #[serde(default = "no_failures")]
    #[schemars(schema_with = "count_or_share")]
    pub max_failures: IntOrString,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutProgressive {
    /// How long a success must last before it counts, such as 90s, 5m or 2h.
    #[serde(default = "at_once")]
    pub min_success_time: String,
    /// How long to wait for a success, such as 90s, 5m or 2h; None for ever.
    #[serde(default = "never")]
    #[schemars(extend("pattern" = DEADLINE))]
    pub progress_deadline: String,
    /// How many clusters, or which share of them, may fail before the rollout stops.
    #[serde(default = "no_failures")]
    #[schemars(schema_with = "count_or_share")]
    pub max_failures: IntOrString,
    /// Decision groups that go first and in which nothing may fail.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mandatory_decision_groups: Vec<MandatoryDecisionGroup>,
    /// How many clusters, or which share of them, are changed at a time. Without it, as many as
    /// the placement puts into a decision group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "count_or_share")]
    pub max_concurrency: Option<IntOrString>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutProgressivePerGroup {
    /// How long a success must last before it counts, such as 90s, 5m or 2h.
    #[serde(default = "at_once")]
    pub min_success_time: String,
    /// How long to wait for a success, such as 90s, 5m or 2h; None for ever.
    #[serde(default = "never")]
    #[schemars(extend("pattern" = DEADLINE))]
    pub progress_deadline: String,
    /// How many clusters of a group, or which share of them, may fail before the rollout stops.
    #[serde(default = "no_failures")]
    #[schemars(schema_with = "count_or_share")]
    pub max_failures: IntOrString,
    /// Decision groups that go first and in which nothing may fail.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mandatory_decision_groups: Vec<MandatoryDecisionGroup>,
}

impl Default for RolloutAll {
    fn default() -> Self {
        Self {
            min_success_time: at_once(),
            progress_deadline: never(),
            max_failures: no_failures(),
        }
    }
}

impl Default for RolloutProgressive {
    fn default() -> Self {
        Self {
            min_success_time: at_once(),
            progress_deadline: never(),
            max_failures: no_failures(),
            mandatory_decision_groups: Vec::new(),
            max_concurrency: None,
        }
    }
}

impl Default for RolloutProgressivePerGroup {
    fn default() -> Self {
        Self {
            min_success_time: at_once(),
            progress_deadline: never(),
            max_failures: no_failures(),
            mandatory_decision_groups: Vec::new(),
        }
    }
}

/// A decision group by name or, without one, by index.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MandatoryDecisionGroup {
    /// The name of the group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group_name: String,
    /// The index of the group, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_index: Option<i32>,
}

/// A number of hours, minutes or seconds, or None.
const DEADLINE: &str = "^([0-9]+[hms]|None)$";

fn at_once() -> String {
    "0".to_owned()
}

fn never() -> String {
    "None".to_owned()
}

fn no_failures() -> IntOrString {
    IntOrString::Int(0)
}

fn count_or_share(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "pattern": "^((100|[0-9]{1,2})%|[0-9]+)$",
        "x-kubernetes-int-or-string": true,
    })
}
