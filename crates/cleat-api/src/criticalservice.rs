//! CriticalService: something others need in order to be deleted, and so must not go before them.
//!
//! What is decided from it lives in `cleat-core`. A provider cannot be changed: who means another
//! one makes another CriticalService, so that no edit takes protection away unnoticed.

mod status;

use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::status::{
    CriterionState, CriterionStatus, CriticalServiceStatus, Denial, Latch, Phase, ProviderStatus,
    condition, reason,
};
use crate::schema;

pub const GROUP: &str = "protection.open-cluster-management.io";
pub const VERSION: &str = "v1alpha1";
pub const RESOURCE: &str = "criticalservices";

/// The name of the definition, whose deletion would take all protection along.
pub const DEFINITION: &str = "criticalservices.protection.open-cluster-management.io";

/// What is protected, and while what is there.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "protection.open-cluster-management.io",
    version = "v1alpha1",
    kind = "CriticalService",
    plural = "criticalservices",
    shortname = "critsvc",
    status = "CriticalServiceStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "Keeps a provider, such as the deployment that serves a finalizer, from being deleted while others need it. Its namespace and the CriticalService itself are kept for as long.",
    printcolumn = r#"{"name": "Provider", "type": "string", "jsonPath": ".spec.provider.name"}"#,
    printcolumn = r#"{"name": "Effective", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Effective\")].status"}"#,
    printcolumn = r#"{"name": "Needed", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Needed\")].status"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    selectable = ".spec.provider.name",
    selectable = ".spec.provider.namespace",
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct CriticalServiceSpec {
    /// What is protected from deletion.
    #[schemars(extend("x-kubernetes-validations" = [{
        "rule": "self == oldSelf",
        "message": "the provider cannot be changed: make another CriticalService",
    }]))]
    pub provider: Provider,
    /// What must all hold before the provider may go.
    #[schemars(length(min = 1, max = 32))]
    pub criteria: Vec<Criterion>,
    /// Whether the CriticalService itself may be deleted while its provider is there. May be set to
    /// Release at any time, also when something already waits for the deletion.
    #[serde(default, skip_serializing_if = "schema::default")]
    pub on_delete: OnDelete,
    /// What else the provider is protected from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 2), extend("x-kubernetes-list-type" = "set"))]
    pub guard: Vec<Guard>,
}

/// An object of any kind that an API server stores itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Provider {
    /// The API group; empty for the core group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(schema_with = "group_name")]
    pub group: String,
    /// The resource, such as deployments.
    #[schemars(schema_with = "resource_name")]
    pub resource: String,
    /// The namespace; empty for objects without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(schema_with = "namespace_name")]
    pub namespace: String,
    /// The name.
    #[schemars(schema_with = "object_name")]
    pub name: String,
    /// Only this incarnation. Without it, whatever has the name is protected.
    #[serde(default, skip_serializing_if = "String::is_empty", rename = "pinUID")]
    #[schemars(length(max = 128))]
    pub pin_uid: String,
}

/// One thing that must hold: of the three fields, the one that the type names is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "has(self.finalizer) == (self.type == 'Finalizer')",
    "message": "finalizer is set for the type Finalizer, and for no other",
}, {
    "rule": "has(self.specificResource) == (self.type == 'SpecificResource')",
    "message": "specificResource is set for the type SpecificResource, and for no other",
}, {
    "rule": "has(self.anyInstance) == (self.type == 'AnyInstance')",
    "message": "anyInstance is set for the type AnyInstance, and for no other",
}]))]
pub struct Criterion {
    /// What kind of criterion this is.
    #[serde(rename = "type")]
    pub kind: CriterionType,
    /// No object of a resource has this finalizer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finalizer: Option<FinalizerCriterion>,
    /// One object does not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub specific_resource: Option<SpecificResourceCriterion>,
    /// No object of a resource exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub any_instance: Option<AnyInstanceCriterion>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CriterionType {
    #[default]
    Finalizer,
    SpecificResource,
    AnyInstance,
    /// A value of a later version.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FinalizerCriterion {
    /// The API group; empty for the core group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(schema_with = "group_name")]
    pub group: String,
    /// The resource, such as coolresources.
    #[schemars(schema_with = "resource_name")]
    pub resource: String,
    /// The finalizer, such as my.group/clean-up.
    #[schemars(schema_with = "finalizer_name")]
    pub finalizer_name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SpecificResourceCriterion {
    /// The API group; empty for the core group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(schema_with = "group_name")]
    pub group: String,
    /// The resource, such as customresourcedefinitions.
    #[schemars(schema_with = "resource_name")]
    pub resource: String,
    /// The namespace; empty for objects without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(schema_with = "namespace_name")]
    pub namespace: String,
    /// The name.
    #[schemars(schema_with = "object_name")]
    pub name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnyInstanceCriterion {
    /// The API group; empty for the core group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(schema_with = "group_name")]
    pub group: String,
    /// The resource, such as coolresources.
    #[schemars(schema_with = "resource_name")]
    pub resource: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OnDelete {
    /// It stays while its provider is there.
    #[default]
    Protect,
    /// It may go at once, and protection ends with it.
    Release,
    /// A value of a later version, of which no more is known than that it is not Release.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum Guard {
    /// Deletion. Always guarded, whether listed or not.
    Delete,
    /// Setting spec.replicas to 0.
    ScaleToZero,
    /// A value of a later version.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

/// Discovery and paths know resources by their plural; a kind here would never match anything.
fn resource_name(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "string",
        "minLength": 1,
        "maxLength": 253,
        "x-kubernetes-validations": [{
            "rule": "self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
            "message": "write the resource as paths have it, the plural in lower case, such as customresourcedefinitions for the kind CustomResourceDefinition",
        }],
    })
}

/// One group that cannot be told to an API server would keep all others from being told.
fn group_name(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "string",
        "maxLength": 253,
        "x-kubernetes-validations": [{
            "rule": "self == '' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",
            "message": "write the group alone, without a version, such as apps; empty for the core group",
        }],
    })
}

fn namespace_name(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "string",
        "maxLength": 63,
        "x-kubernetes-validations": [{
            "rule": "self == '' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
            "message": "this cannot be the name of a namespace",
        }],
    })
}

/// Names differ by kind; all are one segment of a path.
fn object_name(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "string",
        "minLength": 1,
        "maxLength": 253,
        "x-kubernetes-validations": [{
            "rule": "self.matches('^[^/%[:cntrl:]]+$') && self != '.' && self != '..'",
            "message": "this cannot be the name of an object",
        }],
    })
}

fn finalizer_name(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "string",
        "minLength": 1,
        "maxLength": 317,
        "x-kubernetes-validations": [{
            "rule": "self.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",
            "message": "this cannot be the name of a finalizer, such as my.group/clean-up",
        }],
    })
}
