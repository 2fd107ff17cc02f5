//! What runs for the hub, one file per story.

pub mod prepare;

mod followed;
pub mod hub;
mod kinds;
mod replicaset;
mod ttl;
mod view;
