//! Works in worlds small enough to hold in one hand.

mod histories;
mod leaves;
mod outlooks;
mod plans;
mod proposals;
mod regressions;
pub(crate) mod world;
