//! Kubernetes' protocol on `cleat-store`: what `kubectl`, `kube` and client-go need, in one process.
//!
//! This crate knows none of Cleat's own kinds; they arrive as CustomResourceDefinitions like
//! anybody else's.

pub mod admission;
#[allow(dead_code, reason = "the verbs that call it come after it")]
mod apply;
pub mod authn;
pub mod authz;
pub mod builtin;
pub mod certificates;
pub mod discovery;
mod gojson;
pub mod jsonpath;
pub mod metadata;
pub mod names;
pub mod negotiate;
pub mod openapi;
#[allow(dead_code, reason = "the verbs that call it come after it")]
mod patch;
pub mod path;
pub mod protobuf;
pub mod query;
pub mod quote;
pub mod resource;
#[allow(dead_code, unused_imports, reason = "the verbs that use the rules land beside them")]
mod rules;
pub mod schema;
pub mod selector;
pub mod status;
pub mod table;
pub mod tls;
pub mod user;
