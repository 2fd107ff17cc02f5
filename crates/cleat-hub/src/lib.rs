//! What runs for the hub, one file per story.

mod asked;
pub mod automation;
pub mod clusters;
mod defined;
mod followed;
pub mod hub;
mod kinds;
mod metrics;
mod mirror;
mod placement;
pub mod prepare;
mod previews;
mod propagation;
pub mod registration;
mod replicaset;
mod served;
mod sightings;
mod stranded;
mod ttl;
mod view;
mod written;

pub use metrics::Metrics;
pub use placement::outlook as placement_outlook;
pub use propagation::outlook;
pub use replicaset::outlook as set_outlook;
