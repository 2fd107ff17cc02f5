//! ConfigurationPolicy: what objects of a cluster must be like, and what is done if they are not.
//!
//! The wire form and the reading of its spellings; comparing and deciding is done elsewhere.

mod status;

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use kube_derive::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use crate::policy::GROUP;
pub use status::{
    ComplianceDetail, Condition, ConfigurationPolicyStatus, HistoryEvent, ObjectMetadata,
    ObjectResource, Properties, RelatedObject, Validity, reason, state,
};

/// Holds a policy until what it has to take with it was seen gone.
pub const FINALIZER: &str = "policy.open-cluster-management.io/delete-related-objects";

/// On a policy: `"true"` leaves the templates in it unresolved.
pub const DISABLE_TEMPLATES: &str = "policy.open-cluster-management.io/disable-templates";

/// On a policy: the initialization vector with which values in it were encrypted.
pub const ENCRYPTION_IV: &str = "policy.open-cluster-management.io/encryption-iv";

/// On a policy, and on the deployment of its controller: the controller is about to leave.
pub const UNINSTALLING: &str = "policy.open-cluster-management.io/uninstalling";

/// On a policy that is part of another: it is not evaluated, and is not to be deleted either. It waits for
/// others, or nobody can tell what it is to be.
pub const STOPPED: &str = "policy.open-cluster-management.io/stopped";

/// On a definition: its objects may stand in a Policy's `policy-templates`.
pub const POLICY_TYPE_LABEL: &str = "policy.open-cluster-management.io/policy-type";

/// What must hold, and what is done about it.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "policy.open-cluster-management.io",
    version = "v1",
    kind = "ConfigurationPolicy",
    plural = "configurationpolicies",
    namespaced,
    status = "ConfigurationPolicyStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "What objects of this cluster must be like, and what is done if they are not.",
    label("policy.open-cluster-management.io/policy-type", "template"),
    printcolumn(name = "Compliance state", type_ = "string", json_path = ".status.compliant"),
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["remediationAction"]))]
pub struct ConfigurationPolicySpec {
    /// Only say what is wrong (inform), or put it right (enforce).
    #[serde(default = "inform")]
    #[schemars(extend("enum" = ["Inform", "inform", "Enforce", "enforce"]))]
    pub remediation_action: String,
    /// The objects, and whether they must or must not be there.
    #[serde(rename = "object-templates", default, skip_serializing_if = "Option::is_none")]
    pub object_templates: Option<Vec<ObjectTemplate>>,
    /// The same as one text with templates in it, which gives a list in YAML.
    #[serde(rename = "object-templates-raw", default, skip_serializing_if = "Option::is_none")]
    pub object_templates_raw: Option<String>,
    /// The namespaces for objects that name none.
    #[serde(default, skip_serializing_if = "schema_default")]
    pub namespace_selector: NamespaceSelector,
    /// How often to look again. Without it, whenever something changes.
    #[serde(default, skip_serializing_if = "schema_default")]
    pub evaluation_interval: EvaluationInterval,
    /// What becomes of objects that leave the policy, or that it leaves behind: nothing (None), or
    /// those it created (DeleteIfCreated) or all of them (DeleteAll) are deleted.
    #[serde(default)]
    pub prune_object_behavior: PruneObjectBehavior,
    /// How bad it is if the policy does not hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = [
        "low", "Low", "medium", "Medium", "high", "High", "critical", "Critical"
    ]))]
    pub severity: Option<String>,
    /// What is said instead of the usual messages.
    #[serde(default, skip_serializing_if = "schema_default")]
    pub custom_message: CustomMessage,
}

/// What the schema of a spec says beyond its fields: there is one kind of templates or the other.
pub(crate) fn spec_alternatives() -> Value {
    json!([{ "required": ["object-templates"] }, { "required": ["object-templates-raw"] }])
}

fn inform() -> String {
    "inform".to_owned()
}

fn schema_default<T: Default + PartialEq>(value: &T) -> bool {
    crate::schema::default(value)
}

/// What is done about an object that is not as it must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remediation {
    Inform,
    Enforce,
}

impl ConfigurationPolicySpec {
    /// `None` if the policy does not say, or says something of a later version.
    pub fn remediation(&self) -> Option<Remediation> {
        match self.remediation_action.as_str() {
            "inform" | "Inform" => Some(Remediation::Inform),
            "enforce" | "Enforce" => Some(Remediation::Enforce),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PruneObjectBehavior {
    DeleteAll,
    DeleteIfCreated,
    #[default]
    None,
    /// A value of a later version. Nothing may be deleted under it.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

/// One object, or all objects of a kind, and what must hold of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectTemplate {
    /// The object must have what the definition says, must have nothing else, or must not be there.
    #[schemars(extend("enum" = [
        "MustHave", "Musthave", "musthave",
        "MustOnlyHave", "Mustonlyhave", "mustonlyhave",
        "MustNotHave", "Mustnothave", "mustnothave",
    ]))]
    pub compliance_type: String,
    /// The same for labels and annotations. Without it, complianceType counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = [
        "MustHave", "Musthave", "musthave", "MustOnlyHave", "Mustonlyhave", "mustonlyhave",
    ]))]
    pub metadata_compliance_type: Option<String>,
    /// The object, or the part of it that matters.
    #[schemars(schema_with = "definition")]
    pub object_definition: Value,
    /// Which objects, where the definition has no name or a templated one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object_selector: Option<LabelSelector>,
    /// Where to write down how an object differs: in the status, in the log, or nowhere. Without
    /// it, in the status unless that might tell secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Log", "InStatus", "None"]))]
    pub record_diff: Option<String>,
    /// Whether an object that cannot be changed is deleted and made anew.
    #[serde(default)]
    pub recreate_option: RecreateOption,
}

fn definition(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RecreateOption {
    #[default]
    None,
    IfRequired,
    Always,
    /// A value of a later version. Nothing is recreated under it.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

/// Namespaces by name and by label. An empty one chooses none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceSelector {
    /// Patterns of names to take. Without any, and with labels to go by, all names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "patterns")]
    pub include: Vec<String>,
    /// Patterns of names to leave out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "patterns")]
    pub exclude: Vec<String>,
    /// Labels that a namespace must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub match_labels: Option<BTreeMap<String, String>>,
    /// Requirements that its labels must meet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub match_expressions: Option<Vec<LabelSelectorRequirement>>,
    /// Whether namespaces that are being deleted count: if they match, never, or as the controller
    /// was told.
    #[serde(default, skip_serializing_if = "schema_default")]
    pub terminating_inclusion: TerminatingInclusion,
}

fn patterns(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": { "type": "string", "minLength": 1 } })
}

impl NamespaceSelector {
    /// The selector by label, if there is one; an empty one selects all.
    pub fn label_selector(&self) -> Option<LabelSelector> {
        if self.match_labels.is_none() && self.match_expressions.is_none() {
            return None;
        }
        Some(LabelSelector {
            match_labels: self.match_labels.clone(),
            match_expressions: self.match_expressions.clone(),
        })
    }

    /// Whether it can never choose anything.
    pub fn is_empty(&self) -> bool {
        self.include.is_empty() && self.match_labels.is_none() && self.match_expressions.is_none()
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TerminatingInclusion {
    IfMatch,
    Never,
    #[default]
    Default,
    /// A value of a later version.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

/// The least time between two evaluations: a duration, `never`, or `watch`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EvaluationInterval {
    /// While the policy holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = INTERVAL))]
    pub compliant: Option<String>,
    /// While it does not, or nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = INTERVAL))]
    pub noncompliant: Option<String>,
}

const INTERVAL: &str = "^(?:(?:(?:[0-9]+(?:.[0-9])?)(?:h|m|s|(?:ms)|(?:us)|(?:ns)))|never|watch)+$";

/// Templates of messages. They may use `.DefaultMessage` and `.Policy`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CustomMessage {
    /// While the policy holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compliant: Option<String>,
    /// While it does not, or nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noncompliant: Option<String>,
}
