//! RemovalPreview: a question to a cluster's agent, what a removal would do there, and its answer.
//! What a changed work or policy would do is asked the same way: what it would take away is part of the
//! answer.
//!
//! The hub never dials a cluster, so whoever wants to know asks through the cluster's namespace. The
//! answer is of one moment; a question that was not answered in time is not an empty answer.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube_derive::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::managedcluster::RemoveStrategy;

/// The most objects in one answer; what is more is counted.
pub const MOST_OBJECTS: usize = 2000;

/// On questions: the plan they belong to.
pub const PLAN_LABEL: &str = "cleat.dev/plan";

/// On questions that were not answered in time for their plan: what the hub believed to be there. An
/// answer that comes later is none that anybody saw with that plan.
pub const UNANSWERED: &str = "cleat.dev/unanswered";

/// On what is to be deleted: the plan that somebody looked at and agreed to, as `PLAN` or
/// `PLAN@GENERATION`.
pub const APPROVED_PLAN: &str = "cleat.dev/approved-plan";

/// What somebody thinks of removing, and until when the answer is of interest.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cleat.dev",
    version = "v1alpha1",
    kind = "RemovalPreview",
    plural = "removalpreviews",
    shortname = "preview",
    namespaced,
    status = "RemovalPreviewStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A question to the cluster of this namespace: what would a removal do there?",
    printcolumn = r#"{"name": "Work", "type": "string", "jsonPath": ".spec.work"}"#,
    printcolumn = r#"{"name": "Policy", "type": "string", "jsonPath": ".spec.policy"}"#,
    printcolumn = r#"{"name": "Leave", "type": "string", "jsonPath": ".spec.leave"}"#,
    printcolumn = r#"{"name": "Answered", "type": "date", "jsonPath": ".status.answeredAt"}"#,
    printcolumn = r#"{"name": "Expires", "type": "string", "jsonPath": ".spec.expiresAt"}"#,
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct RemovalPreviewSpec {
    /// What would become of the objects of this work if it were deleted.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub work: String,
    /// What would become of everything if there were such a work, or it said this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposed: Option<ProposedWork>,
    /// What would become of everything that the templates of this policy hold, if it were taken away
    /// from the cluster.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub policy: String,
    /// What would become of everything if the hub sent such a policy, or it said this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposed_policy: Option<ProposedPolicy>,
    /// What would become of everything that this one ConfigurationPolicy, in the cluster's namespace
    /// on the cluster, holds, if it were deleted there.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub configuration_policy: String,
    /// What would become of everything if the cluster left by this strategy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leave: Option<RemoveStrategy>,
    /// Nobody waits for the answer any more, and the question may be deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
}

/// A work as somebody thinks of making it. It is named here and not beside, so that an agent that knows
/// of no such questions is not asked about the end of that work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProposedWork {
    /// Its name.
    pub name: String,
    /// All labels it would have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// All annotations it would have that mean something to an agent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Its spec, as a hub would store it.
    #[schemars(schema_with = "stored")]
    pub spec: Value,
}

/// A policy as somebody thinks of making it, as the hub would send it to the cluster. It is named here
/// and not beside, for the same reason.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProposedPolicy {
    /// The name of the hub's copy.
    pub name: String,
    /// All labels the copy would have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// All annotations the copy would have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Its spec, with what the hub resolves resolved.
    #[schemars(schema_with = "stored")]
    pub spec: Value,
}

/// What was found valid by the definition of another kind.
fn stored(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

/// What the cluster's agent answered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RemovalPreviewStatus {
    /// When the agent looked; absent while there is no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_at: Option<Time>,
    /// Why there is no answer, or not a whole one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub problems: Vec<String>,
    /// What else is to be known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub notes: Vec<String>,
    /// What would become of each object.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub objects: Vec<PreviewedObject>,
    /// How many more objects there are than are listed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: i64,
    /// Stands for all objects and what would become of them, if not all are listed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub digest: String,
}

fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// One object and what would become of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreviewedObject {
    /// The API group; empty for the core group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The version in which it was seen.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// The resource, such as deployments.
    pub resource: String,
    /// The namespace; empty for objects without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The name.
    pub name: String,
    /// Which incarnation of it; empty if none was seen.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// The work or the policy that brought it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// What would become of it.
    pub verdict: PreviewVerdict,
    /// Why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// The field that decides it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub decided_by: String,
    /// It was there before the work or the policy.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adopted: bool,
    /// How many objects would go with it that nobody lists: what is in a namespace, or of a kind.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub takes_along: i64,
    /// Stands for which objects go along, as far as they were looked at.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub along_digest: String,
    /// How many objects the collector would remove after it, because it owns them, or because what is in
    /// it does.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub followed: i64,
    /// What else would go with it, or what would change in it, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub effects: Vec<String>,
    /// What would stand in the way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub blockers: Vec<String>,
}

/// What would become of an object.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum PreviewVerdict {
    /// It would be deleted.
    Delete,
    /// It would be deleted and made anew.
    Recreate,
    /// It would be made.
    Create,
    /// It would be changed.
    Change,
    /// It is there already, and would be taken over.
    Adopt,
    /// It would stay because the work says so, without our mark.
    Orphan,
    /// It would stay because it is somebody else's, or also somebody else's, or because its policy
    /// deletes nothing.
    Keep,
    /// It would stay because the cluster leaves with everything, without our mark.
    StripMarks,
    /// There is nothing of that name.
    Gone,
    /// Something is asked for that could not be done.
    Stuck,
    /// It is as it should be.
    Unchanged,
    /// It cannot be said.
    #[default]
    Unknown,
}

impl PreviewVerdict {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Delete => "delete",
            Self::Recreate => "recreate",
            Self::Create => "create",
            Self::Change => "change",
            Self::Adopt => "adopt",
            Self::Orphan => "orphan",
            Self::Keep => "keep",
            Self::StripMarks => "strip marks",
            Self::Gone => "gone",
            Self::Stuck => "stuck",
            Self::Unchanged => "unchanged",
            Self::Unknown => "unknown",
        }
    }
}
