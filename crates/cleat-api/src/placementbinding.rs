//! PlacementBinding: which policies go where a placement chooses. It has no `spec`.

use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The value of `subFilter` that makes a binding only override, never place.
pub const RESTRICTED: &str = "restricted";

#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "policy.open-cluster-management.io",
    version = "v1",
    kind = "PlacementBinding",
    plural = "placementbindings",
    shortname = "pb",
    namespaced,
    no_spec,
    status = "PlacementBindingStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "Binds policies and sets of them to the clusters that a placement chooses.",
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct PlacementBindingContent {
    /// Where.
    pub placement_ref: PlacementSubject,
    /// What.
    #[schemars(length(min = 1))]
    pub subjects: Vec<Subject>,
    /// What is different on these clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding_overrides: Option<BindingOverrides>,
    /// With restricted, the binding overrides where other bindings place, and places nothing itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["restricted"]))]
    pub sub_filter: Option<String>,
}

/// What the schema of a reference says beyond its fields: each group has one kind.
pub(crate) fn reference_alternatives() -> Value {
    let pair = |group: &str, kind: &str| json!({ "properties": { "apiGroup": { "enum": [group] }, "kind": { "enum": [kind] } } });
    json!([
        pair("cluster.open-cluster-management.io", "Placement"),
        pair("apps.open-cluster-management.io", "PlacementRule"),
    ])
}

/// A placement or a placement rule in the binding's namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlacementSubject {
    /// Its API group.
    #[schemars(
        length(min = 1),
        extend("enum" = [
            "apps.open-cluster-management.io", "cluster.open-cluster-management.io"
        ])
    )]
    pub api_group: String,
    /// Its kind.
    #[schemars(length(min = 1), extend("enum" = ["PlacementRule", "Placement"]))]
    pub kind: String,
    /// Its name.
    #[schemars(length(min = 1))]
    pub name: String,
}

/// A policy, or a set of them, in the binding's namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Subject {
    /// Its API group.
    #[schemars(
        length(min = 1),
        extend("enum" = ["policy.open-cluster-management.io"])
    )]
    pub api_group: String,
    /// Its kind.
    #[schemars(length(min = 1), extend("enum" = ["Policy", "PolicySet"]))]
    pub kind: String,
    /// Its name.
    #[schemars(length(min = 1))]
    pub name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BindingOverrides {
    /// Makes policies that only inform enforce on these clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Enforce", "enforce"]))]
    pub remediation_action: Option<String>,
}

/// Nothing is reported of a binding.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlacementBindingStatus {}
