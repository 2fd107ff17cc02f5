//! The life of a policy on a cluster, planned by hand and in a small world with crashes.

mod gone;
mod histories;
mod kept;
mod many;
mod mute;
mod stories;
mod stranded;
mod world;
