//! The store's public behaviour, in one binary so that it links once.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "clippy.toml exempts test functions, but not what they call"
)]

#[path = "suite/crash.rs"]
mod crash;
#[path = "suite/disk.rs"]
mod disk;
#[path = "suite/failing.rs"]
mod failing;
#[path = "suite/gathering.rs"]
mod gathering;
#[path = "suite/kill.rs"]
mod kill;
#[path = "suite/model.rs"]
mod model;
#[path = "suite/ram.rs"]
mod ram;
#[path = "suite/watching.rs"]
mod watching;
