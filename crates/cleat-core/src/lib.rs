//! Every decision Cleat makes, and nothing else.
//!
//! A story here is a few pure functions: `plan` turns what was seen into writes, `report` turns what
//! happened into what users are told. There is no clock, socket, file or task in this crate, and no
//! map without an order: the same observation always gives the same plan.
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod ansiblejob;
pub mod automation;
pub mod clusterset;
pub mod condition;
pub mod digest;
pub mod explain;
pub mod id;
pub mod lease;
pub mod leave;
pub mod metrics;
pub mod name;
pub mod number;
pub mod placement;
pub mod policy;
pub mod policy_sync;
pub mod preview;
pub mod propagation;
pub mod protection;
pub mod registration;
pub mod replicaset;
pub mod rollout;
pub mod selector;
pub mod stranded;
pub mod ttl;
pub mod work;
pub mod write;
