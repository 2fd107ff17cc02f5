//! Policy: templates of policies that a hub spreads over clusters.
//!
//! The same kind is what users write (the root), what the hub puts into a cluster's namespace (the
//! replica), and what the agent puts on the cluster.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube_derive::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::leftoverrecord::LeftObject;
use crate::manifestwork::Removal;
use crate::schema;

/// The API group of policies.
pub const GROUP: &str = "policy.open-cluster-management.io";

/// Names that policies and their parts are marked with.
pub mod name {
    /// On a replica: `<namespace>.<name>` of the root.
    pub const ROOT_POLICY: &str = "policy.open-cluster-management.io/root-policy";
    pub const CLUSTER_NAME: &str = "policy.open-cluster-management.io/cluster-name";
    pub const CLUSTER_NAMESPACE: &str = "policy.open-cluster-management.io/cluster-namespace";
    /// On what a policy's template became: the policy's name.
    pub const PARENT_POLICY: &str = "policy.open-cluster-management.io/policy";
    pub const OLD_CLUSTER_NAME: &str = "cluster-name";
    pub const OLD_CLUSTER_NAMESPACE: &str = "cluster-namespace";
    /// Holds a policy on a cluster while templates without a namespace are left.
    pub const CLUSTER_SCOPED_FINALIZER: &str =
        "policy.open-cluster-management.io/cleanup-cluster-scoped-policies";
    pub const TRIGGER_UPDATE: &str = "policy.open-cluster-management.io/trigger-update";
    pub const HUB_TEMPLATES_ERROR: &str = "policy.open-cluster-management.io/hub-templates-error";
    pub const LAST_ROTATED: &str = "policy.open-cluster-management.io/last-rotated";
    pub const DISABLE_ROTATION: &str = "policy.open-cluster-management.io/disable-rotation";
    pub const ARGO_COMPARE_OPTIONS: &str = "argocd.argoproj.io/compare-options";
    /// The secret in each cluster's namespace with the keys `key` and `previousKey`.
    pub const ENCRYPTION_KEY_SECRET: &str = "policy-encryption-key";
}

/// The longest namespace and name of a root together: a dot joins them to a label value.
pub const LONGEST_NAME: usize = 62;

/// What is to hold on the clusters the policy is bound to.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "policy.open-cluster-management.io",
    version = "v1",
    kind = "Policy",
    plural = "policies",
    shortname = "plc",
    namespaced,
    status = "PolicyStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "Templates of policies, for the clusters that placements choose.",
    printcolumn = r#"{"name": "Remediation action", "type": "string", "jsonPath": ".spec.remediationAction"}"#,
    printcolumn = r#"{"name": "Compliance state", "type": "string", "jsonPath": ".status.compliant"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct PolicySpec {
    /// Takes the policy off all clusters.
    pub disabled: bool,
    /// The policies for a cluster.
    #[serde(rename = "policy-templates")]
    pub policy_templates: Vec<PolicyTemplate>,
    /// Takes the place of the templates' own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Inform", "inform", "Enforce", "enforce"]))]
    pub remediation_action: Option<String>,
    /// What must hold before any template is put on a cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<PolicyDependency>,
    /// Whether replicas get the labels and annotations of the root; true unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy_policy_metadata: Option<bool>,
    /// How templates are resolved on the hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hub_template_options: Option<HubTemplateOptions>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyTemplate {
    /// A policy of any kind that may be one.
    #[schemars(schema_with = "object")]
    pub object_definition: Value,
    /// What must hold before this template is put on a cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extra_dependencies: Vec<PolicyDependency>,
    /// Waiting for dependencies does not count against the policy.
    #[serde(default, skip_serializing_if = "schema::default")]
    pub ignore_pending: bool,
}

fn object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

/// What a dependency's schema says beyond its fields: templates live beside the policy.
pub(crate) fn dependency_alternatives() -> Value {
    let beside = json!({ "enum": ["CertificatePolicy", "ConfigurationPolicy"] });
    json!([
        { "properties": { "kind": beside, "namespace": { "maxLength": 0 } } },
        { "not": { "properties": { "kind": beside } } },
    ])
}

/// An object whose compliance is waited for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyDependency {
    /// Its API version.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its namespace; none for kinds that live beside the policy.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The state that is waited for.
    #[schemars(extend("enum" = ["Compliant", "Pending", "NonCompliant"]))]
    pub compliance: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HubTemplateOptions {
    /// The service account, in the root's namespace, with whose rights hub templates read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
}

/// What is known of a policy. A root has placement and status, a replica has details.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyStatus {
    /// Of a root: what binds it to clusters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub placement: Vec<PlacementStatus>,
    /// Of a root: how it stands on each cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub status: Vec<CompliancePerCluster>,
    /// How it stands altogether.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Compliant", "Pending", "NonCompliant"]))]
    pub compliant: Option<String>,
    /// Of a replica: what stands for it on the cluster, as the agent last saw it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub copies: Vec<LeftObject>,
    /// Of a replica: how each template stands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<TemplateDetail>,
    /// Of a replica: what its templates made on the cluster, as the agent last saw it; the first
    /// thousands of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub objects: Vec<LeftObject>,
    /// Of a replica: how many more there are than are listed in copies and objects.
    #[serde(default, skip_serializing_if = "schema::default")]
    pub untold: i64,
    /// Of a replica whose cluster leaves: what has yet to go, what stands in the way, what stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removal: Option<Removal>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlacementStatus {
    /// The binding.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub placement_binding: String,
    /// The placement it names,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub placement: String,
    /// or the placement rule.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub placement_rule: String,
    /// The set through which the policy is bound, if it is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub policy_set: String,
    /// Kept for old readers; always empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<ClusterName>,
    /// Clusters that the set leaves out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclusions: Vec<ClusterName>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterName {
    /// The cluster.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cluster_name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompliancePerCluster {
    /// How it stands there; nothing while nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Compliant", "Pending", "NonCompliant"]))]
    pub compliant: Option<String>,
    /// The cluster.
    #[serde(rename = "clustername", default, skip_serializing_if = "String::is_empty")]
    pub cluster_name: String,
    /// The cluster's namespace on the hub.
    #[serde(rename = "clusternamespace", default, skip_serializing_if = "String::is_empty")]
    pub cluster_namespace: String,
    /// What still binds a cluster that one set leaves out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remaining_bindings: Vec<RemainingBinding>,
    /// What keeps the policy there, or from getting there; nothing if all is as it should be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RemainingBinding {
    /// The binding.
    pub placement_binding: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TemplateDetail {
    /// Which template.
    #[serde(default)]
    pub template_meta: TemplateMeta,
    /// How it stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Compliant", "Pending", "NonCompliant"]))]
    pub compliant: Option<String>,
    /// What was said of it, newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<ComplianceHistory>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct TemplateMeta {
    /// The template's name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ComplianceHistory {
    /// When it was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_timestamp: Option<Time>,
    /// What was said.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The event that said it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub event_name: String,
}
