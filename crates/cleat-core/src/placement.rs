//! The story of one Placement: which clusters it chooses, and how that is written down.
//!
//! What users may rely on:
//! - *No gap.* Decisions are first made longer and then shorter, so a cluster that stays chosen is
//!   listed at every moment, also while clusters move between decisions. The count in the status is
//!   written after them: while decisions are being shortened it is larger than what they list.
//! - *Nothing is taken back for lack of knowledge.* A placement that cannot be understood keeps its
//!   decisions, and `PlacementMisconfigured` says what is wrong with it. So does one whose sets,
//!   bindings or clusters went along with the definition of their kind: nobody took those away.
//! - *There is always a decision*, also for no cluster: then it lists none.
//! - *The same observation gives the same choice*: scores first, names second.
//! - Decisions of other placements count (Balance), but their changes alone move nothing: two
//!   placements must not chase each other.
//!
//! Not decided here: who uses the decisions, and what a CEL expression means (it is handed in).

mod choose;
mod cluster;
mod decision;
mod doubt;
mod filter;
mod group;
pub mod outlook;
mod report;
mod score;
mod sightings;
mod wish;

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use cleat_api::managedclusterset::ManagedClusterSet;
use jiff::Timestamp;

pub use self::choose::{Misconfigured, Selection, choose};
pub use self::cluster::{Cluster, Scores};
pub use self::decision::{Decision, plan};
pub use self::doubt::{Defined, taken_out};
pub use self::group::Group;
pub use self::report::{Verdict, report};
pub use self::sightings::{Early, NOTICED, Sightings};
pub use self::wish::Wish;

/// Everything a choice may look at.
#[derive(Clone, Debug)]
pub struct Observed {
    pub now: Timestamp,
    pub wish: Wish,
    /// The sets that are bound to the placement's namespace and exist.
    pub bound: Vec<Arc<ManagedClusterSet>>,
    /// The names of sets that are bound to it and do not exist.
    pub lost: Vec<String>,
    /// All clusters of the hub.
    pub clusters: Vec<Arc<Cluster>>,
    /// What add-ons say of clusters, by cluster and name of the object.
    pub scores: BTreeMap<(String, String), Arc<Scores>>,
    /// How many other placements chose a cluster.
    pub elsewhere: BTreeMap<String, usize>,
    /// The decisions with the placement's label, in its namespace.
    pub decisions: Vec<Arc<Decision>>,
    /// What a server said of the definitions of all these kinds. Before it said anything, a plan
    /// takes no cluster out of a decision.
    pub defined: Defined,
}

/// Why an expression does not choose a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// It cannot be read at all.
    Invalid(String),
    /// It has no answer for this cluster, such as one that asks for a label it does not have.
    Unanswered,
}

/// Answers whether a CEL expression holds of a cluster.
pub type Holds<'a> = &'a dyn Fn(&str, &Cluster) -> Result<bool, Unfit>;

#[cfg(test)]
mod tests;
