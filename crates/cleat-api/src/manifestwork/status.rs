//! What is known of a work and of each of its objects.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::leftoverrecord::LeftObject;
use crate::schema;

/// Types of conditions, of works and of single manifests.
pub mod condition {
    pub const APPLIED: &str = "Applied";
    pub const AVAILABLE: &str = "Available";
    pub const DELETING: &str = "Deleting";
    /// False while something stands in the way of an object that left the manifests.
    pub const REMOVED: &str = "Removed";
    pub const COMPLETE: &str = "Complete";
    pub const PROGRESSING: &str = "Progressing";
    pub const DEGRADED: &str = "Degraded";
    /// Of manifests only.
    pub const STATUS_FEEDBACK_SYNCED: &str = "StatusFeedbackSynced";
}

/// Reasons of conditions. Clients match on them.
pub mod reason {
    // Of a work: Applied, Available, Deleting, Removed, and what rules give.
    pub const APPLIED_MANIFEST_WORK_COMPLETE: &str = "AppliedManifestWorkComplete";
    pub const APPLIED_MANIFEST_WORK_FAILED: &str = "AppliedManifestWorkFailed";
    pub const RESOURCES_AVAILABLE: &str = "ResourcesAvailable";
    pub const RESOURCES_NOT_AVAILABLE: &str = "ResourcesNotAvailable";
    pub const RESOURCES_STATUS_UNKNOWN: &str = "ResourcesStatusUnknown";
    pub const WORK_DELETING: &str = "WorkDeleting";
    pub const OBJECTS_REMAIN: &str = "ObjectsRemain";
    pub const CONDITION_RULES_AGGREGATED: &str = "ConditionRulesAggregated";
    // For those who set Complete and Progressing on works themselves.
    pub const MANIFESTS_COMPLETE: &str = "ManifestsComplete";
    pub const APPLYING: &str = "Applying";
    pub const COMPLETED: &str = "Completed";
    pub const FAILED: &str = "Failed";
    // Of a manifest: Applied.
    pub const APPLIED_MANIFEST_COMPLETE: &str = "AppliedManifestComplete";
    pub const APPLIED_MANIFEST_FAILED: &str = "AppliedManifestFailed";
    pub const APPLIED_MANIFEST_SSA_IGNORE_FIELD_ERROR: &str = "AppliedManifestSSAIgnoreFieldError";
    // Of a manifest: Available.
    pub const RESOURCE_AVAILABLE: &str = "ResourceAvailable";
    pub const RESOURCE_NOT_AVAILABLE: &str = "ResourceNotAvailable";
    pub const FETCHING_RESOURCE_FAILED: &str = "FetchingResourceFailed";
    pub const INCOMPLETE_RESOURCE_META: &str = "IncompleteResourceMeta";
    // Of a manifest: StatusFeedbackSynced.
    pub const NO_STATUS_FEEDBACK_SYNCED: &str = "NoStatusFeedbackSynced";
    pub const STATUS_FEEDBACK_SYNCED: &str = "StatusFeedbackSynced";
    pub const STATUS_FEEDBACK_SYNC_FAILED: &str = "StatusFeedbackSyncFailed";
    // Of a manifest: from condition rules. They share a prefix by which old ones are found.
    pub const CONDITION_RULE_PREFIX: &str = "ConditionRule";
    pub const CONDITION_RULE_EVALUATED: &str = "ConditionRuleEvaluated";
    pub const CONDITION_RULE_INVALID: &str = "ConditionRuleInvalid";
    pub const CONDITION_RULE_EXPRESSION_ERROR: &str = "ConditionRuleExpressionError";
    pub const CONDITION_RULE_INTERNAL_ERROR: &str = "ConditionRuleInternalError";
}

/// What is known of a work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManifestWorkStatus {
    /// What holds of the work as a whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions_by_type")]
    pub conditions: Vec<Condition>,
    /// What holds of each of its objects.
    #[serde(default, skip_serializing_if = "schema::default")]
    pub resource_status: ManifestResourceStatus,
    /// How the removal goes, while the cluster is leaving. OCM knows no such field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removal: Option<Removal>,
    /// What left the manifests and is still on the cluster, for the hub to know in case the cluster is
    /// lost. OCM knows no such field.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retiring: Vec<LeftObject>,
    /// How many more there are of those than are listed.
    #[serde(default, skip_serializing_if = "schema::default")]
    pub untold: i64,
}

/// How the removal of a work's objects goes on a cluster that leaves. Empty lists are written out: a
/// merge patch keeps what it does not mention.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Removal {
    /// How many objects of each resource have yet to go.
    #[serde(default)]
    pub remaining: Vec<ResourceCount>,
    /// What cannot go now, and why; the first of them.
    #[serde(default)]
    pub blocked: Vec<BlockedObject>,
    /// What stays, and why. Told before it is forgotten.
    #[serde(default)]
    pub left: Vec<LeftObject>,
    /// How many more stay than are listed.
    #[serde(default)]
    pub untold: i64,
}

#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct ResourceCount {
    /// The resource with its group, such as deployments.apps.
    pub resource: String,
    /// How many.
    pub count: i64,
}

/// An object that has to go and does not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlockedObject {
    /// The object, as people would look for it.
    pub object: String,
    /// What stands in the way.
    pub why: String,
    /// Whether somebody said no, rather than taking their time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub refused: bool,
    /// Since when it is so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManifestResourceStatus {
    /// One entry per manifest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub manifests: Vec<ManifestCondition>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManifestCondition {
    /// Which manifest.
    pub resource_meta: ManifestResourceMeta,
    /// Values the work asked for.
    #[serde(default, skip_serializing_if = "schema::default")]
    pub status_feedback: StatusFeedback,
    /// What holds of the object.
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}

#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct ManifestResourceMeta {
    /// The place of the manifest in the spec, from 0.
    pub ordinal: i32,
    /// The API group; empty for the core group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The API version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// The kind.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The resource, such as deployments.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub resource: String,
    /// The name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The namespace; empty for objects without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Which incarnation of it was seen last. OCM knows no such field.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatusFeedback {
    /// The values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub values: Vec<FeedbackValue>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FeedbackValue {
    /// The name the rule gave it.
    pub name: String,
    /// The value.
    pub field_value: FieldValue,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FieldValue {
    /// Which of the others is set.
    #[serde(rename = "type")]
    pub type_: FieldValueType,
    /// A whole number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub integer: Option<i64>,
    /// A text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub string: Option<String>,
    /// True or false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boolean: Option<bool>,
    /// A list or object, as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub json_raw: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum FieldValueType {
    #[default]
    Integer,
    String,
    Boolean,
    JsonRaw,
    /// A value of a later version.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}
