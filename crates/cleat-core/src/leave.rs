//! How a cluster leaves its hub, with nothing forgotten.
//!
//! The hub says that the cluster is leaving, the agent says that it heard and by which strategy;
//! only then does the hub delete what was carried there, in order. The agent removes or releases
//! each thing, tells what stays, and says when it holds nothing any more; only then does the hub
//! take the cluster's place and access away. [`hub`] is the hub's half, [`agent`] the agent's;
//! [`clean`] finishes later what a cluster kept that could not be asked.

pub mod agent;
pub mod carried;
pub mod clean;
mod finish;
pub mod ground;
pub mod hub;
mod keeping;
mod obstacle;
mod order;
pub mod parts;
pub mod record;
mod report;
mod supposed;
#[cfg(test)]
mod tests;

pub use obstacle::beyond;
pub use report::{Verdict, counts, report};
