//! What is known of a configuration policy and of the objects it is about.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema;

/// States of compliance, of a policy, a template or an object.
pub mod state {
    pub const COMPLIANT: &str = "Compliant";
    pub const NONCOMPLIANT: &str = "NonCompliant";
    pub const PENDING: &str = "Pending";
    pub const TERMINATING: &str = "Terminating";
}

/// Reasons of conditions and of related objects. Clients match on them.
pub mod reason {
    // Of related objects.
    pub const FOUND: &str = "Resource found as expected";
    pub const CREATED: &str = "K8s creation success";
    pub const CREATED_STATUS_UNCHECKED: &str = "K8s creation success, status unchecked";
    pub const UPDATED: &str = "K8s update success";
    pub const DELETED: &str = "K8s deletion success";
    pub const NOT_FOUND: &str = "Resource not found but should exist";
    pub const MISMATCH: &str = "Resource found but does not match";
    pub const MISSING_AS_EXPECTED: &str = "Resource not found as expected";
    pub const UNWANTED: &str = "Resource found but should not exist";
    pub const CLEANUP_ERROR: &str = "Error cleaning up child objects";
    // Of conditions.
    pub const MUST_HAVE_EXISTS: &str = "K8s `must have` object already exists";
    pub const MUST_HAVE_MISSING: &str = "K8s does not have a `must have` object";
    pub const MUST_NOT_HAVE_MISSING: &str = "K8s `must not have` object already missing";
    pub const MUST_NOT_HAVE_EXISTS: &str = "K8s has a `must not have` object";
    pub const INVALID_SPEC: &str = "Invalid spec";
    pub const NO_TEMPLATES: &str = "No object templates";
    pub const TEMPLATE_ERROR: &str = "Error processing template";
    pub const HUB_TEMPLATE_ERROR: &str = "Hub template resolution failure";
    pub const ENCRYPTION_ERROR: &str = "Template encryption configuration error";
    pub const DECODE_ERROR: &str = "K8s decode object definition error";
    pub const KIND_ERROR: &str = "K8s error";
    pub const NAMESPACE_SELECTOR_ERROR: &str = "namespaceSelector error";
    pub const OBJECT_SELECTOR_ERROR: &str = "objectSelector error";
    pub const MISSING_NAMESPACE: &str = "K8s missing namespace";
    pub const CREATION_ERROR: &str = "K8s creation error";
    pub const DELETION_ERROR: &str = "K8s deletion error";
    pub const UPDATE_ERROR: &str = "K8s update template error";
    pub const API_ERROR: &str = "api error";
    pub const UNWATCHABLE: &str = "unwatchable resource";
}

/// What is known of a policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigurationPolicyStatus {
    /// Whether the policy holds: Compliant, NonCompliant, Pending or Terminating.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Compliant", "Pending", "NonCompliant", "Terminating"]))]
    pub compliant: Option<String>,
    /// One entry per object template.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compliancy_details: Vec<ComplianceDetail>,
    /// When it was last evaluated, as RFC 3339 in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_evaluated: Option<String>,
    /// The generation that was evaluated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_evaluated_generation: Option<i64>,
    /// The objects the policy is about, and those it still has to take away.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub related_objects: Vec<RelatedObject>,
    /// The last ten messages, newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub history: Vec<HistoryEvent>,
}

/// What came of one object template.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComplianceDetail {
    /// Whether it holds.
    #[serde(rename = "Compliant", default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Compliant", "Pending", "NonCompliant", "Terminating"]))]
    pub compliant: Option<String>,
    /// Kept for old readers; always empty.
    #[serde(rename = "Validity", default)]
    #[schemars(extend("default" = serde_json::Value::Null))]
    pub validity: Validity,
    /// What was found last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Validity {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Not quite what a condition is elsewhere: its reason is a sentence.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// violation or notification.
    #[serde(rename = "type")]
    pub type_: String,
    /// Always True.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// When it last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
    /// Why, in few words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why, with names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// An object the policy is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RelatedObject {
    /// Which object; the name - stands for all that might have matched.
    #[serde(default, skip_serializing_if = "schema::default")]
    pub object: ObjectResource,
    /// Whether it is as it must be.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub compliant: String,
    /// Why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What is known of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub properties: Option<Properties>,
}

#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct ObjectResource {
    /// Its kind.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Its name and namespace.
    #[serde(default, skip_serializing_if = "schema::default")]
    pub metadata: ObjectMetadata,
    /// Its API version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub api_version: String,
}

/// The namespace counts first where objects are sorted.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct ObjectMetadata {
    /// Its namespace; empty for what no namespace holds.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Its name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Properties {
    /// Whether the policy made it. Written down before it is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by_policy: Option<bool>,
    /// The incarnation of it that was meant. Empty while the policy is about to make it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// How it differs from what it should be.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub diff: String,
    /// It differs from the template in a way that makes no difference to the server.
    #[serde(default, skip_serializing_if = "schema::default")]
    pub matches_after_dry_run: bool,
}

/// One message of the past.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HistoryEvent {
    /// When it was said.
    pub last_timestamp: MicroTime,
    /// What was said.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}
