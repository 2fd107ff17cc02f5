//! The life of one ManifestWork on a managed cluster, as pure functions.
//!
//! [`plan`] turns what was seen of the work, its ledger and its objects into the next writes;
//! [`report`] turns the same into what the hub is told. Read `plan` first: it is the whole life.

pub(crate) mod along;
pub mod asking;
pub mod contents;
pub mod converge;
pub mod feedback;
pub mod ignore;
pub mod judge;
pub mod kind_order;
pub mod leaving;
pub mod ledger;
pub mod matching;
pub mod merge;
pub mod observed;
pub mod outlook;
pub mod ownership;
mod plan;
pub mod proposal;
pub mod repair;
mod report;
pub mod retire;
pub mod rules;
#[cfg(test)]
mod tests;
pub mod trouble;
pub mod wanted;

pub use plan::{WORK_FINALIZER, plan};
pub use report::{Verdict, report, stranded};
