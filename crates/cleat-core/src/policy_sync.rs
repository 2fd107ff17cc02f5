//! Policies on a cluster: a copy of what the hub sent, the templates in it as objects of their own,
//! and what becomes of them told back to the hub.
//!
//! [`plan`] says what to do next about one policy, [`report`] what to tell. A template that waits for
//! others, or that cannot be made sense of, is stopped where it is; it is not taken away, because
//! that would take with it what it made.

mod adrift;
mod desired;
mod event;
mod gone;
mod history;
pub mod observed;
mod plan;
pub mod proposal;
mod removal;
mod report;
mod template;

pub use adrift::is_adrift;
pub use event::announce;
pub use gone::{is_forgotten, to_be_seen_gone};
pub(crate) use history::moment;
pub use history::{Told, told};
pub use observed::Observed;
pub use plan::{Depends, dependencies, plan, template_ids};
pub use removal::{is_over, is_untold, listed, made_kinds, mute, stranded, unsettled};
pub use report::{Verdict, report};

/// Holds a replica on the hub until what its templates made was let go of on the cluster, so that the
/// hub can show what is stuck. Only policies that prune are held, and all while the cluster leaves.
pub const HOLD: &str = "policy.open-cluster-management.io/removal-on-cluster";

#[cfg(test)]
mod tests;
