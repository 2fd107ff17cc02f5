//! What runs for one managed cluster. It dials out to the hub and to its cluster, and never listens.
//!
//! One file per story; each is the IO half of its twin in `cleat-core`.

mod concerned;
pub mod leave;
pub mod policy;
pub mod policy_sync;
pub mod preview;
mod protected;
pub mod registration;
mod served_kind;
mod stories;
pub mod work;

pub use stories::{Member, start_stories};
