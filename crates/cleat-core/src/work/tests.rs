//! Works in worlds small enough to hold in one hand.

mod histories;
mod outlooks;
mod plans;
mod proposals;
mod regressions;
mod world;
