//! ManagedCluster: a cluster of the fleet, as the hub knows it.
//!
//! The wire form alone: what happens to a cluster that joins, lives or leaves is decided elsewhere.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube_derive::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::leftoverrecord::LeftObject;
pub use crate::placement::TaintEffect;
use crate::schema;

/// Holds a cluster until its access to the hub is taken away.
pub const FINALIZER: &str = "cluster.open-cluster-management.io/api-resource-cleanup";

/// On everything that belongs to a cluster: the cluster's name.
pub const CLUSTER_NAME_LABEL: &str = "open-cluster-management.io/cluster-name";

/// On a cluster: the exclusive set it is in.
pub const CLUSTER_SET_LABEL: &str = "cluster.open-cluster-management.io/clusterset";

/// On a cluster: the UID of its `kube-system` namespace, by which it is known under any name.
pub const CLUSTER_ID: &str = "cleat.dev/cluster-id";

/// The claim that carries the same, as other tools read it.
pub const ID_CLAIM: &str = "id.k8s.io";

/// The claim that carries the same from an agent itself: [`ID_CLAIM`] the cluster may say otherwise.
pub const CLUSTER_ID_CLAIM: &str = "clusterid.cleat.dev";

/// The claim by which an agent tells what its ledgers on the cluster are named after: the SHA-256, in
/// hexadecimal, of the hub's address as it was given.
pub const HUB_HASH_CLAIM: &str = "hubhash.cleat.dev";

/// The claim by which an agent tells in which namespace of the cluster it keeps its credentials, and
/// lives if it is deployed there.
pub const AGENT_NAMESPACE_CLAIM: &str = "agentnamespace.cleat.dev";

/// On a cluster: `"true"` if its clock is nobody's business.
pub const SKIP_CLOCK_CHECK: &str = "registration.open-cluster-management.io/skip-clock-sync-check";

/// On a leaving cluster: its own name, by which a person declares that it exists no more. The hub then
/// lets it go without asking it, and writes down what it leaves.
pub const CLUSTER_DESTROYED: &str = "cleat.dev/cluster-destroyed";

/// Annotations with this prefix are carried from the agent to the cluster when it is created.
pub const AGENT_ANNOTATION_PREFIX: &str = "agent.open-cluster-management.io";

/// The lease in the cluster's namespace that its agent renews.
pub const LEASE: &str = "managed-cluster-lease";

/// How often an agent renews its lease where the cluster does not say.
pub const DEFAULT_LEASE_SECONDS: i32 = 60;

/// Keys of taints that the hub sets and removes by itself.
pub mod taint {
    pub const UNREACHABLE: &str = "cluster.open-cluster-management.io/unreachable";
    pub const UNAVAILABLE: &str = "cluster.open-cluster-management.io/unavailable";
}

/// Types of conditions.
pub mod condition {
    pub const ACCEPTED: &str = "HubAcceptedManagedCluster";
    pub const JOINED: &str = "ManagedClusterJoined";
    pub const AVAILABLE: &str = "ManagedClusterConditionAvailable";
    pub const CLOCK_SYNCED: &str = "ManagedClusterConditionClockSynced";
    pub const CERTIFICATE_ROTATED: &str = "ClusterCertificateRotated";
    pub const DELETING: &str = "Deleting";
    pub const UNJOINING: &str = "Unjoining";
    pub const UNJOIN_FAILED: &str = "UnjoinFailed";
    /// Said by the agent of a leaving cluster: whether it holds nothing any more, and in its reason
    /// the strategy it follows.
    pub const RELEASED: &str = "ResourcesReleased";
}

/// Reasons of conditions. Clients match on them.
pub mod reason {
    pub const ACCEPTED: &str = "HubClusterAdminAccepted";
    pub const DENIED: &str = "HubClusterAdminDenied";
    pub const ERROR: &str = "Error";
    /// The hub refuses a cluster that its administrator accepted.
    pub const REFUSED: &str = "Refused";
    pub const JOINED: &str = "ManagedClusterJoined";
    pub const AVAILABLE: &str = "ManagedClusterAvailable";
    pub const API_SERVER_UNAVAILABLE: &str = "ManagedClusterKubeAPIServerUnavailable";
    pub const LEASE_UPDATE_STOPPED: &str = "ManagedClusterLeaseUpdateStopped";
    pub const CLOCK_SYNCED: &str = "ManagedClusterClockSynced";
    pub const CLOCK_OUT_OF_SYNC: &str = "ManagedClusterClockOutOfSync";
    pub const CERTIFICATE_UPDATED: &str = "ClientCertificateUpdated";
    pub const CERTIFICATE_UPDATE_FAILED: &str = "ClientCertificateUpdateFailed";
    pub const RESOURCE_REMAINING: &str = "ResourceRemaining";
    pub const DELETING_ERROR: &str = "DeletingError";
    pub const NO_RESOURCE: &str = "NoResource";
    pub const UNJOIN_CLUSTER: &str = "UnjoinCluster";
    pub const RESOURCES_REMAIN: &str = "ResourcesRemain";
    pub const CLUSTER_UNREACHABLE: &str = "ClusterUnreachable";
    /// The agent lives, and does not say what the hub waits for.
    pub const AGENT_DOES_NOT_ANSWER: &str = "AgentDoesNotAnswer";
    pub const UNJOIN_GOES_ON: &str = "UnjoinGoesOn";
}

/// How the hub treats the cluster.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cluster.open-cluster-management.io",
    version = "v1",
    kind = "ManagedCluster",
    plural = "managedclusters",
    shortname = "mcl",
    shortname = "mcls",
    status = "ManagedClusterStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A cluster of the fleet. Its name is also that of its namespace on the hub.",
    printcolumn = r#"{"name": "Hub Accepted", "type": "boolean", "jsonPath": ".spec.hubAcceptsClient"}"#,
    printcolumn = r#"{"name": "Managed Cluster URLs", "type": "string", "jsonPath": ".spec.managedClusterClientConfigs[*].url"}"#,
    printcolumn = r#"{"name": "Joined", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"ManagedClusterJoined\")].status"}"#,
    printcolumn = r#"{"name": "Available", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"ManagedClusterConditionAvailable\")].status"}"#,
    printcolumn = r#"{"name": "Strategy", "type": "string", "priority": 1, "jsonPath": ".spec.removeStrategy"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterSpec {
    /// Where the cluster's API server is, for those who have a route to it. The hub needs none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub managed_cluster_client_configs: Vec<ClientConfig>,
    /// Whether the cluster may join. Setting it needs the right to update managedclusters/accept.
    #[serde(default)]
    pub hub_accepts_client: bool,
    /// How often the agent renews its lease. A lease that is five times as old is out of date.
    #[serde(default = "default_lease")]
    pub lease_duration_seconds: i32,
    /// What keeps placements from choosing the cluster unless they tolerate it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
    /// What happens to all that was carried to the cluster when it leaves: Needless keeps it,
    /// Required removes it and lets the cluster go only once all of it was seen gone.
    #[serde(default)]
    pub remove_strategy: RemoveStrategy,
}

fn default_lease() -> i32 {
    DEFAULT_LEASE_SECONDS
}

#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum RemoveStrategy {
    #[default]
    Needless,
    Required,
}

impl RemoveStrategy {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Needless => "Needless",
            Self::Required => "Required",
        }
    }
}

/// An address of the cluster's API server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClientConfig {
    /// It begins with https://.
    pub url: String,
    /// Who vouches for the server; without it, the usual authorities.
    #[serde(default, rename = "caBundle", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "bytes")]
    pub ca_bundle: Option<ByteString>,
}

/// A reason not to choose the cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["effect", "key"]))]
pub struct Taint {
    /// What it is about.
    #[schemars(length(max = 316), regex(pattern = schema::LABEL_KEY))]
    pub key: String,
    /// More about it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1024))]
    pub value: String,
    /// What it does to placements that do not tolerate it.
    pub effect: TaintEffect,
    /// When it was added; the hub fills it in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_added: Option<Time>,
}

/// What is known of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterStatus {
    /// What holds of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions_by_type")]
    pub conditions: Vec<Condition>,
    /// What all its nodes have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "quantities")]
    pub capacity: BTreeMap<String, Quantity>,
    /// What of it is for workloads.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "quantities")]
    pub allocatable: BTreeMap<String, Quantity>,
    /// Which versions it runs.
    #[serde(default, skip_serializing_if = "schema::default")]
    pub version: ManagedClusterVersion,
    /// What the cluster says of itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cluster_claims: Vec<ManagedClusterClaim>,
    /// The namespaces that sets of clusters have on it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend(
        "x-kubernetes-list-type" = "map",
        "x-kubernetes-list-map-keys" = ["clusterSet", "name"],
    ))]
    pub managed_namespaces: Vec<ClusterSetManagedNamespace>,
    /// What its agent itself leaves on it when it leaves the fleet. OCM knows no such field.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub left: Vec<LeftObject>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterVersion {
    /// The version of Kubernetes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kubernetes: String,
}

#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["name", "value"]))]
pub struct ManagedClusterClaim {
    /// Which claim.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// What it says.
    #[schemars(length(min = 1, max = 1024))]
    pub value: String,
}

/// A namespace that a set of clusters has on each of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSetManagedNamespace {
    /// The namespace on the cluster.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// The set that wants it.
    pub cluster_set: String,
    /// What holds of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions_by_type")]
    pub conditions: Vec<Condition>,
}

fn bytes(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "byte" })
}

fn quantities(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": {
            "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
            "anyOf": [{ "type": "integer" }, { "type": "string" }],
            "x-kubernetes-int-or-string": true,
        },
    })
}
