//! Kubernetes' protocol on `cleat-store`: what `kubectl`, `kube` and client-go need, in one process.
//!
//! This crate knows none of Cleat's own kinds; they arrive as CustomResourceDefinitions like
//! anybody else's.

pub mod builtin;
pub mod discovery;
pub mod names;
pub mod quote;
pub mod resource;
pub mod schema;
pub mod selector;
pub mod status;
