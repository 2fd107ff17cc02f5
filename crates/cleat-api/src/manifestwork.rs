//! ManifestWork: objects a hub wants on one cluster. Its namespace on the hub is the cluster's name.

mod config;
mod delete_option;
mod status;

use kube_derive::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;

pub use config::{
    CelExpression, ConditionRule, ConditionRuleType, FeedbackRule, FeedbackRuleType,
    FeedbackScrapeType, IgnoreField, IgnoreFieldsCondition, JsonPath, ManifestConfigOption,
    ResourceIdentifier, ServerSideApplyConfig, UpdateStrategy, UpdateStrategyType,
};
pub use delete_option::{
    DeleteOption, Keep, OrphanRule, OrphaningRule, Problem, PropagationPolicy, SelectivelyOrphans,
};
pub use status::{
    BlockedObject, FeedbackValue, FieldValue, FieldValueType, ManifestCondition,
    ManifestResourceMeta, ManifestResourceStatus, ManifestWorkStatus, Removal, ResourceCount,
    StatusFeedback, condition, reason,
};

use crate::schema;

/// The API group of works.
pub const GROUP: &str = "work.open-cluster-management.io";

/// Holds a work until everything it must take with it was seen gone.
pub const FINALIZER: &str = "cluster.open-cluster-management.io/manifest-work-cleanup";

/// Holds a work of a leaving cluster until the hub has written down what stays of it.
pub const LEAVE_FINALIZER: &str = "cleat.dev/leaving";

/// On a work or policy that was being deleted before its cluster began to leave, so that nothing could
/// hold it for the hub: what the hub has written down of what stays of it. Its agent waits for that.
pub const ON_RECORD: &str = "cleat.dev/left-on-record";

/// On a work: `"true"` keeps the objects that were on the cluster before it.
pub const KEEP_ADOPTED: &str = "cleat.dev/keep-adopted";

/// On objects applied with `ignoreFields`: the hash of what was sent.
pub const CONFIG_SPEC_HASH: &str = "open-cluster-management.io/config-spec-hash";

/// Declared by OCM for the hash of a manifest; nobody writes it.
pub const OBJECT_HASH: &str = "open-cluster-management.io/object-hash";

/// The field manager of everything the agent writes, unless a work names another.
pub const FIELD_MANAGER: &str = "work-agent";

/// The verb a user must be allowed, on a service account's user name as a resource name, to let a
/// work be carried out with that account's rights.
pub const EXECUTE_AS: &str = "execute-as";

/// What a hub wants on one cluster.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "work.open-cluster-management.io",
    version = "v1",
    kind = "ManifestWork",
    plural = "manifestworks",
    namespaced,
    status = "ManifestWorkStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "Objects a hub wants on one managed cluster. The namespace is that cluster's name.",
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct ManifestWorkSpec {
    /// The objects.
    #[serde(default, skip_serializing_if = "schema::default")]
    pub workload: ManifestsTemplate,
    /// What happens to the objects when they leave the work or the work is deleted. Without it
    /// they are deleted, and the work stays until they are gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete_option: Option<DeleteOption>,
    /// How single objects are applied and what is reported of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub manifest_configs: Vec<ManifestConfigOption>,
    /// Whose rights on the cluster are needed to apply the objects. Without it the agent's own do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<ManifestWorkExecutor>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManifestsTemplate {
    /// At least one, each of its own apiVersion, kind, namespace and name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub manifests: Vec<Manifest>,
}

/// A Kubernetes object as it is to be on the cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Manifest(pub Value);

impl JsonSchema for Manifest {
    fn schema_name() -> Cow<'static, str> {
        "Manifest".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        schema::embedded_resource(generator)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManifestWorkExecutor {
    /// Who needs the rights.
    pub subject: ManifestWorkExecutorSubject,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManifestWorkExecutorSubject {
    /// What kind of subject it is.
    #[serde(rename = "type")]
    pub type_: ExecutorSubjectType,
    /// The account, for type ServiceAccount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account: Option<ManifestWorkSubjectServiceAccount>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ExecutorSubjectType {
    #[default]
    ServiceAccount,
    /// A value of a later version. It is read so that one work cannot hide all others from us.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManifestWorkSubjectServiceAccount {
    /// The namespace of the account on the cluster.
    #[schemars(length(min = 1, max = 253), extend("pattern" = schema::SUBDOMAIN))]
    pub namespace: String,
    /// The name of the account on the cluster.
    #[schemars(length(min = 1, max = 253), extend("pattern" = schema::SUBDOMAIN))]
    pub name: String,
}

impl ManifestWorkSubjectServiceAccount {
    /// The name under which the account is known to authorizers.
    pub fn user_name(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.name)
    }
}
