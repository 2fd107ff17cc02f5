//! What is known of a CriticalService: its provider, its criteria, and whether protection works.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::CriterionType;
use crate::schema;

/// Types of conditions.
pub mod condition {
    /// A delete of the provider would be refused now if it is needed: a dry run proved it.
    pub const EFFECTIVE: &str = "Effective";
    /// Not all criteria are satisfied.
    pub const NEEDED: &str = "Needed";
    /// Consumers and provider are in one namespace, which cannot be deleted as a whole.
    pub const SELF_CONTAINED: &str = "SelfContained";
    /// It waits for something that waits for it.
    pub const CYCLIC: &str = "Cyclic";
    /// Consumers came when the provider was already going.
    pub const STRANDED: &str = "Stranded";
}

/// Reasons of conditions. Clients match on them.
pub mod reason {
    pub const REFUSED_IN_DRY_RUN: &str = "RefusedInDryRun";
    pub const SEEN_IN_DRY_RUN: &str = "SeenInDryRun";
    pub const NOT_ASKED: &str = "NotAsked";
    pub const WAITING: &str = "Waiting";
    pub const UNPROTECTABLE: &str = "Unprotectable";
    pub const CANNOT_TELL: &str = "CannotTell";
    pub const CRITERIA_UNSATISFIED: &str = "CriteriaUnsatisfied";
    pub const CRITERIA_SATISFIED: &str = "CriteriaSatisfied";
    pub const SAME_NAMESPACE: &str = "SameNamespace";
    pub const WAITS_FOR_ITSELF: &str = "WaitsForItself";
    pub const CAME_TOO_LATE: &str = "CameTooLate";
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CriticalServiceStatus {
    /// The generation of the spec that this is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The provider as it was last seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<ProviderStatus>,
    /// The criteria, in the order of the spec.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub criteria: Vec<CriterionStatus>,
    /// Closed when the provider began to go: from then on, new consumers are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latch: Option<Latch>,
    /// The latest requests that were refused, newest first. Dry runs are not among them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denials: Vec<Denial>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions_by_type")]
    pub conditions: Vec<Condition>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProviderStatus {
    /// Whether it is there.
    pub phase: Phase,
    /// Which incarnation is protected.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// The incarnation before this one, if the provider was made anew.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub replaced: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Phase {
    /// It was never seen.
    #[default]
    Waiting,
    Present,
    /// It is being deleted.
    Terminating,
    /// It was there, and is not.
    Gone,
    /// What has the name is not the incarnation that the spec pins.
    Replaced,
}

/// How one criterion stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CriterionStatus {
    #[serde(rename = "type")]
    pub kind: CriterionType,
    /// What it is about, such as coolresources.my.group.
    pub subject: String,
    pub state: CriterionState,
    /// How many objects stand against it.
    #[serde(default)]
    pub count: i64,
    /// Some of them, by namespace and name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<String>,
    /// Why its state is unknown, or what is odd about it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CriterionState {
    Satisfied,
    Unsatisfied,
    /// Counts as unsatisfied.
    #[default]
    Unknown,
}

/// Since when no new consumers are let in, and which came all the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Latch {
    /// The incarnation of the provider whose deletion closed it.
    pub uid: String,
    /// When that was noticed.
    pub since: Time,
    /// When it opens again by itself.
    pub expires: Time,
    /// Consumers that came after the provider was let go, by criterion and name. No more than ten
    /// are named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub late: Vec<String>,
    /// How many such consumers were seen at the same time, at most.
    #[serde(default, skip_serializing_if = "schema::default")]
    pub late_count: i64,
}

/// One refused request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Denial {
    pub time: Time,
    /// Who asked.
    pub user: String,
    /// What was to be done, such as DELETE.
    pub operation: String,
    /// To what, such as deployments.apps web/server.
    pub object: String,
}
