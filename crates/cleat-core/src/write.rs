//! The only things Cleat ever does to an API server, as data.
//!
//! Planners make them, one executor performs them, and what came of each goes back as an
//! [`Outcome`]. Every write is safe to repeat: it says what must hold for it to be right.

use alloc::string::String;
use alloc::vec::Vec;

use serde_json::Value;

use crate::id::Target;

/// Which API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    Hub,
    Cluster,
}

/// A write and where it goes.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    pub side: Side,
    pub target: Target,
    pub write: Write,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    Create(Value),
    /// The whole object; `metadata.resourceVersion` in it is the precondition.
    Replace(Value),
    /// Server-side apply.
    Apply {
        object: Value,
        manager: String,
        force: bool,
    },
    /// A JSON merge patch; `metadata.uid` and `metadata.resourceVersion` in it are preconditions.
    Merge(Value),
    /// The same, of the `status` subresource.
    MergeStatus(Value),
    /// The whole status, in an object with `metadata.uid` and `metadata.resourceVersion` as preconditions
    /// and without a `spec`, which would not be looked at. For a large status this costs a server a good
    /// part less than a patch, which it lays over the whole object in writing.
    ReplaceStatus(Value),
    /// The same, of the `approval` subresource, which requests for certificates have.
    MergeApproval(Value),
    Delete {
        /// This incarnation only.
        uid: String,
        /// This state of it only, where a change in between would change the decision.
        resource_version: Option<String>,
        propagation: Propagation,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    Background,
    Orphan,
}

/// What came of one action.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It happened. The object as the server answered; after a delete it is what remains of the
    /// object (it waits for finalizers), or `Null` when nothing remains.
    Done(Value),
    /// Nothing of that name is there. For a delete, that is success.
    NotFound,
    /// A create met an object of that name.
    AlreadyExists,
    /// A precondition did not hold: what the plan was made from is out of date.
    ///
    /// Somebody else managing a field that an apply sets is not this but a refusal: looking again
    /// would not change it.
    Conflict(String),
    /// The server does not serve that kind. It says nothing about objects of it: while a definition
    /// is being replaced they may well be there.
    NoSuchKind,
    /// The server, or a webhook it asked, said no. Asking again later may help.
    Refused(Refusal),
    /// No answer, or none that says. It may have happened or happen yet.
    Lost(String),
    /// An action of an earlier step did not succeed.
    NotTried,
}

/// A server's no.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub code: u16,
    /// Kubernetes' machine-readable reason, such as `Forbidden` or `Invalid`.
    pub reason: String,
    pub message: String,
}

impl Outcome {
    pub fn is_done(&self) -> bool {
        matches!(self, Self::Done(_))
    }
}

/// Steps run in order. The actions of a step are independent of each other and all tried, at the
/// same time; the next step begins only if all of them were done.
pub type Plan = Vec<Vec<Action>>;
