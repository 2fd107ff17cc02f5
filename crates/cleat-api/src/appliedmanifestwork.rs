//! AppliedManifestWork: what an agent put on its cluster for one work. It lives on that cluster.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Holds the record until everything on it was seen gone.
pub const FINALIZER: &str = "cluster.open-cluster-management.io/applied-manifest-work-cleanup";

/// The longest name of a work whose record can still be named.
pub const LONGEST_WORK_NAME: usize = 253 - (HASH_LENGTH + 1);

/// A SHA-256 in hexadecimal.
const HASH_LENGTH: usize = 64;

/// The name of the record of a work.
pub fn name(hub_hash: &str, work: &str) -> String {
    format!("{hub_hash}-{work}")
}

/// Which work this is the record of, and what it lays claim to.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "work.open-cluster-management.io",
    version = "v1",
    kind = "AppliedManifestWork",
    plural = "appliedmanifestworks",
    status = "AppliedManifestWorkStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "What an agent put on this cluster for one work of a hub.",
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct AppliedManifestWorkSpec {
    /// The SHA-256, in hexadecimal, of the hub's address as the agent was given it.
    pub hub_hash: String,
    /// Which agent looks after this; others leave it alone.
    #[serde(default, rename = "agentID", skip_serializing_if = "String::is_empty")]
    pub agent_id: String,
    /// The work's name on the hub.
    pub manifest_work_name: String,
    /// What the agent is about to touch or has touched, written down before it does. OCM's agent
    /// knows no such list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub claims: Vec<Claim>,
}

/// Objects of one kind in one namespace that the work lays claim to. What goes for all of them is said
/// once: an API server checks every entry of a list at every write of the record.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct Claim {
    /// The API group; empty for the core group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The resource, such as configmaps.
    pub resource: String,
    /// The namespace; empty for objects without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub names: Vec<String>,
    /// One name more. Agents that made an entry of each object wrote it here.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Whether the objects are there because of the work, or were there before it.
    pub origin: Origin,
    /// Whether the work declared that the objects stay when it goes. Absent means they go.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kept: bool,
}

/// What is wrong with a record that is [`nameless`](AppliedManifestWorkSpec::nameless), for people.
pub const NAMELESS: &str = "an entry of spec.claims of an AppliedManifestWork names nothing: the \
    cluster's definition of the kind is older than its agent; give it Cleat's, with cleat agent --define";

impl AppliedManifestWorkSpec {
    /// Whether a claim names nothing, which no agent writes.
    pub fn nameless(&self) -> bool {
        self.claims.iter().any(|claim| claim.all_names().next().is_none())
    }
}

impl Claim {
    /// Every name, whichever way it was written down.
    pub fn all_names(&self) -> impl Iterator<Item = &str> {
        let one = Some(&self.name).filter(|name| !name.is_empty());
        self.names.iter().chain(one).map(String::as_str)
    }
}

#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum Origin {
    #[default]
    Created,
    Adopted,
}

/// What was seen on the cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppliedManifestWorkStatus {
    /// The objects of the work as they were last seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub applied_resources: Vec<AppliedResource>,
    /// Since when the work is missing on the hub. After a grace period its objects are removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eviction_start_time: Option<Time>,
}

/// An object that was seen. The order of the fields is the order of the list.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct AppliedResource {
    /// The API group; empty for the core group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The version in which it was applied.
    pub version: String,
    /// The resource, such as configmaps.
    pub resource: String,
    /// The namespace; empty for objects without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The name.
    pub name: String,
    /// Which incarnation of it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
}
