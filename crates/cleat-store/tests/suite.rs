//! The store's public behaviour, in one binary so that it links once.

#[path = "suite/disk.rs"]
mod disk;
