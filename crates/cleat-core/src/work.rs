//! Works: what manifests mean for the objects of a cluster.

pub mod feedback;
pub mod ignore;
pub mod kind_order;
pub mod matching;
pub mod merge;
