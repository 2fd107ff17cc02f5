//! What runs for the hub, one file per story.

pub mod prepare;
