//! AdmissionReview in, pure decision, AdmissionReview out.
//!
//! What is decided, `cleat_api::admission` decides for works and policies, and
//! `cleat_core::registration::admission` for clusters. This crate knows the protocol, asks the hub's
//! authorizer where a decision needs it, and says how an API server finds us. It neither listens
//! nor makes certificates: whoever runs it brings a socket, or none at all.

mod access;
mod clusters;
mod configuration;
mod guard;
mod judge;
mod review;

pub use configuration::{Reach, client_config, configuration, guard_configuration};
pub use guard::{Guard, Losing};
pub use judge::Judge;
pub use review::BadReview;

/// Where ManifestWorks are judged.
pub const MANIFEST_WORK_PATH: &str = "/validate-manifestwork";

/// Where ManifestWorkReplicaSets are judged.
pub const MANIFEST_WORK_REPLICA_SET_PATH: &str = "/validate-manifestworkreplicaset";

/// Where Policies are judged.
pub const POLICY_PATH: &str = "/validate-policy-open-cluster-management-io-v1-policy";

/// Where PolicySets are judged.
pub const POLICY_SET_PATH: &str = "/validate-policy-open-cluster-management-io-v1beta1-policyset";

/// Where ManagedClusters are judged.
pub const MANAGED_CLUSTER_PATH: &str = "/validate-managedcluster";

/// Where ManagedClusterSetBindings are judged.
pub const MANAGED_CLUSTER_SET_BINDING_PATH: &str = "/validate-managedclustersetbinding";

/// Where deletions are judged, of a hub that chose so.
pub const GUARD_PATH: &str = "/guard-deletions";
