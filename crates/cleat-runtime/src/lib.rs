//! What every process needs: queue, the one executor, mirrors of clusters, tasks.
//!
//! Nothing here decides: what to write and when to look again, planners say.

pub mod connect;
pub mod execute;
pub mod kinds;
mod path;
pub mod queue;
mod status;
pub mod tasks;
mod wire;
