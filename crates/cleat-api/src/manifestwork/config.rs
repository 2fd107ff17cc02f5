//! `manifestConfigs`: how single objects of a work are applied and what is reported of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::FIELD_MANAGER;
use crate::schema;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManifestConfigOption {
    /// Which objects this is about.
    pub resource_identifier: ResourceIdentifier,
    /// What of the objects' state is reported.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub feedback_rules: Vec<FeedbackRule>,
    /// How the objects are written. Without it they are updated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_strategy: Option<UpdateStrategy>,
    /// Conditions that follow from the objects' state.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["condition"]))]
    pub condition_rules: Vec<ConditionRule>,
    /// When state is looked at for feedback.
    #[serde(default)]
    pub feedback_scrape_type: FeedbackScrapeType,
}

/// Objects by where they are. `*` in name and namespace stands for anything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceIdentifier {
    /// The API group; empty for the core group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The resource, such as deployments.
    pub resource: String,
    /// The name, or a pattern with *.
    pub name: String,
    /// The namespace, or a pattern with *; empty for objects without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FeedbackRule {
    /// Well-known values of the kind, or values at given paths.
    #[serde(rename = "type")]
    pub type_: FeedbackRuleType,
    /// The paths, for type JSONPaths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub json_paths: Vec<JsonPath>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum FeedbackRuleType {
    #[default]
    WellKnownStatus,
    #[serde(rename = "JSONPaths")]
    JsonPaths,
    /// A value of a later version.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JsonPath {
    /// What the value is called in the status.
    pub name: String,
    /// The version the path is meant for; without it, any.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// The path below status, as kubectl understands it.
    pub path: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum FeedbackScrapeType {
    #[default]
    Poll,
    Watch,
    /// A value of a later version.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["type"]))]
pub struct UpdateStrategy {
    /// Update replaces what differs, CreateOnly leaves what is there alone, ServerSideApply owns
    /// only the fields of the manifest, ReadOnly only looks.
    #[serde(default, rename = "type")]
    pub type_: UpdateStrategyType,
    /// How to apply, for type ServerSideApply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_side_apply: Option<ServerSideApplyConfig>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum UpdateStrategyType {
    #[default]
    Update,
    CreateOnly,
    ServerSideApply,
    ReadOnly,
    /// A value of a later version. Objects under it must be left alone.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerSideApplyConfig {
    /// Take fields from other managers.
    #[serde(default, skip_serializing_if = "schema::default")]
    pub force: bool,
    /// The field manager; it begins with work-agent.
    #[serde(default = "field_manager")]
    #[schemars(regex(pattern = r"^work-agent"))]
    pub field_manager: String,
    /// Fields that are left to others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["condition"]))]
    pub ignore_fields: Vec<IgnoreField>,
}

impl Default for ServerSideApplyConfig {
    fn default() -> Self {
        Self { force: false, field_manager: field_manager(), ignore_fields: Vec::new() }
    }
}

fn field_manager() -> String {
    FIELD_MANAGER.to_owned()
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["condition"]))]
pub struct IgnoreField {
    /// OnSpokePresent leaves the fields out whenever the object exists; OnSpokeChange sets them
    /// again only when the manifest changes.
    #[serde(default)]
    pub condition: IgnoreFieldsCondition,
    /// The fields as JSONPaths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub json_paths: Vec<String>,
    /// The fields as JSON pointers (RFC 6901).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub json_pointers: Vec<String>,
    /// The fields as path expressions of jq.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jq_path_expressions: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum IgnoreFieldsCondition {
    #[default]
    OnSpokePresent,
    OnSpokeChange,
    /// A value of a later version.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "self.type != 'CEL' || self.condition != ''",
    "message": "Condition is required for CEL rules",
}]))]
pub struct ConditionRule {
    /// The type of the condition; with type WellKnownConditions, empty means Complete.
    pub condition: String,
    /// What decides.
    #[serde(rename = "type")]
    pub type_: ConditionRuleType,
    /// Expressions that must all be true, for type CEL.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cel_expressions: Vec<CelExpression>,
    /// The message of the condition.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// A CEL expression for the message, which goes before the fixed one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message_expression: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ConditionRuleType {
    #[default]
    WellKnownConditions,
    #[serde(rename = "CEL")]
    Cel,
    /// A value of a later version.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CelExpression {
    /// An expression over `object` that gives true or false.
    pub expression: String,
}
