//! The kinds Cleat reads and writes, and what makes them valid; no client.
//!
//! One file per kind. The CustomResourceDefinitions are generated from these types
//! ([`definitions`]), so what a server accepts and what the code understands cannot drift apart.

pub mod addonplacementscore;
pub mod admission;
pub mod ansiblejob;
pub mod appliedmanifestwork;
pub mod clusterclaim;
pub mod configurationpolicy;
pub mod criticalservice;
mod definition;
pub mod leftoverrecord;
pub mod managedcluster;
pub mod managedclusterset;
pub mod managedclustersetbinding;
pub mod manifestwork;
pub mod manifestworkreplicaset;
pub mod placement;
pub mod placementbinding;
pub mod policy;
pub mod policyautomation;
pub mod policyset;
pub mod removalpreview;
pub mod rollout;
mod schema;

pub use definition::{cluster_definitions, definitions, hub_definitions, protection_definitions};
