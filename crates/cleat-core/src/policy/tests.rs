//! Policies as a whole, in a world of a few maps.

mod certainty;
mod chosen;
mod departure;
mod dryrun;
mod faults;
mod histories;
mod outlooks;
mod proposals;
mod pruning;
mod remarks;
mod site;
mod space;
mod sparing;
mod stories;
mod world;
