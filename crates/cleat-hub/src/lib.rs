//! What runs for the hub, one file per story.

pub mod clusters;
mod followed;
pub mod hub;
mod kinds;
mod mirror;
pub mod prepare;
pub mod registration;
mod replicaset;
mod stranded;
mod ttl;
mod view;
