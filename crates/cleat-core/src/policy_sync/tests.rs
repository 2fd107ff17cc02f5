//! The life of a policy on a cluster, planned by hand and in a small world with crashes.

mod histories;
mod kept;
mod mute;
mod stories;
mod stranded;
mod world;
