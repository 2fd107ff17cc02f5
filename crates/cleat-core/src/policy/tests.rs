//! Policies as a whole, in a world of a few maps.

mod dryrun;
mod histories;
mod stories;
mod world;
