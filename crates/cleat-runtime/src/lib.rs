//! What every process needs: queue, the one executor, mirrors of clusters, tasks.
//!
//! Nothing here decides: what to write and when to look again, planners say.

pub mod census;
pub mod clock;
pub mod connect;
pub mod contents;
pub mod definitions;
pub mod execute;
pub mod follow;
pub mod kinds;
mod known;
pub mod mirror;
mod path;
pub mod queue;
mod reflect;
pub mod served;
mod status;
pub mod tasks;
mod watch;
mod wire;
