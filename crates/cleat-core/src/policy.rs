//! ConfigurationPolicies: what objects of a cluster must be like, and what is done about it.
//!
//! [`reads`] says what has to be known, [`plan`] what to do next, [`report`] what to tell. The
//! ledger is the policy's own status: an object that will be made is listed there before it is.

pub mod compare;
pub mod departure;
mod desired;
pub mod dryrun;
mod evaluate;
mod event;
mod finding;
mod interval;
mod judge;
pub mod memory;
pub mod observed;
pub mod outlook;
mod plan;
pub mod proposal;
mod prune;
mod reader;
mod report;
pub mod select;
pub mod spare;
mod status;
mod tracking;

pub use event::{Remark, apart};
pub use interval::{duration, looks_by_itself};
pub use memory::{Deed, Memory};
pub use plan::{Reads, is_due, must_be_sure, namespaces, plan, reads};
pub use reader::{Question, Tried};
pub use report::{Verdict, report};

#[cfg(test)]
mod tests;
