//! The store's public behaviour, in one binary so that it links once.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "clippy.toml exempts test functions, but not what they call"
)]

#[path = "store/backup.rs"]
mod backup;
#[path = "store/crash.rs"]
mod crash;
#[path = "store/disk.rs"]
mod disk;
#[path = "../../../fuzz/exercise.rs"]
mod exercise;
#[path = "store/failing.rs"]
mod failing;
#[path = "store/fuzzing.rs"]
mod fuzzing;
#[path = "store/gathering.rs"]
mod gathering;
#[path = "store/kill.rs"]
mod kill;
#[path = "store/model.rs"]
mod model;
#[path = "store/ram.rs"]
mod ram;
#[path = "store/watching.rs"]
mod watching;
