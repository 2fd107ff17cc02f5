//! One stored value and what a writer may expect of it.

use bytes::Bytes;

/// Position in a store's one sequence of writes. A store that was never written to is at 1.
pub type Revision = u64;

/// A value and the revisions that made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The write that brought the key into being (again, if it had been deleted before).
    pub created: Revision,
    /// The write that gave the key this value.
    pub modified: Revision,
    pub value: Bytes,
}

/// What a writer believes the key to be at; the write is refused if it is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// No such key. A delete that expects this is always refused.
    Absent,
    /// The key was last modified by exactly this write.
    Revision(Revision),
    /// Whatever there is. A delete still needs the key to exist.
    Any,
}

impl Expected {
    pub(crate) fn holds_for(self, current: Option<&Entry>) -> bool {
        match self {
            Expected::Absent => current.is_none(),
            Expected::Revision(revision) => current.is_some_and(|e| e.modified == revision),
            Expected::Any => true,
        }
    }
}
