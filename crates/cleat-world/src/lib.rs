//! The test kit: real control planes on loopback, and the conformance of our server with them.
//!
//! It may depend on everything in the workspace; nothing but `xtask` and tests depends on it.

pub mod ansible;
pub mod conformance;
pub mod cut;
pub mod fleet;
pub mod fuse;
pub mod kubectl;
pub mod kubernetes;
pub mod loss;
pub mod server;
pub mod wait;
pub mod webhook;
pub mod world;

pub use cut::Link;
pub use fleet::Fleet;
pub use fuse::Fuse;
pub use loss::Loss;
pub use wait::{eventually, within};
pub use webhook::Webhook;
pub use world::World;
