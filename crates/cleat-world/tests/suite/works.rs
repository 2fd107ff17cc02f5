//! Works from hub to cluster and away again, with an agent in this process.

mod adoption;
mod applying;
mod bad_input;
mod conditions;
mod delete_option;
mod eviction;
mod executor;
mod feedback;
mod foreground;
pub(crate) mod guard;
mod idle;
mod letting_go;
mod regressions;
mod strategies;
mod unwatchable;
mod widgets;
