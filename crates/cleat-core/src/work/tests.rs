//! Works in worlds small enough to hold in one hand.

mod histories;
mod plans;
mod regressions;
mod world;
