//! The fuzz targets of this crate, on the same few thousand inputs each time.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "clippy.toml exempts test functions, but not what they call"
)]

#[path = "../../../fuzz/exercise.rs"]
mod exercise;

use cleat_apiserver::fuzzing;

use exercise::exercise;

#[test]
fn request_path() {
    exercise("request_path", 2000, fuzzing::request_path);
}

#[test]
fn request() {
    exercise("request", 2000, fuzzing::request);
}

#[test]
fn patches() {
    exercise("patches", 2000, fuzzing::patches);
}

#[test]
fn selectors() {
    exercise("selectors", 2000, fuzzing::selectors);
}

#[test]
fn cel() {
    exercise("cel", 1000, fuzzing::cel);
}
