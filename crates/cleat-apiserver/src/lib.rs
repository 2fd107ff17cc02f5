//! Kubernetes' protocol on `cleat-store`: what `kubectl`, `kube` and client-go need, in one process.
//!
//! This crate knows none of Cleat's own kinds; they arrive as CustomResourceDefinitions like
//! anybody else's.

mod addresses;
pub mod admission;
mod admit;
mod apply;
pub mod audit;
pub mod authn;
pub mod authz;
mod bootstrap;
pub mod builtin;
pub mod certificates;
mod clock;
pub mod crd;
pub mod discovery;
mod follow;
mod form;
#[doc(hidden)]
pub mod fuzzing;
mod gojson;
mod goyaml;
mod housekeeping;
mod http;
pub mod metadata;
mod metrics;
pub mod names;
pub mod negotiate;
mod object;
mod objects;
pub mod openapi;
mod patch;
pub mod path;
pub mod priority;
pub mod protobuf;
mod quantity;
pub mod query;
pub mod resource;
mod rules;
pub mod schema;
pub mod selector;
mod server;
mod standing;
pub mod status;
pub mod table;
pub mod tls;
mod types;
pub mod user;
mod verbs;

use cleat_dialect::{jsonpath, quote};

pub use crate::http::Api;
pub use server::{Config, Server, StartError};
