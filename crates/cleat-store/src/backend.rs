//! The seam between the store and whatever keeps its bytes. It knows nothing of watches or history.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use crate::{BackendError, Entry, Revision};

/// Keeps the newest value of every key, and the revision of every store.
///
/// *Assumptions*: called from one thread at a time. After `commit` has failed nothing but `settle`
/// is called until `settle` has succeeded.
pub trait Backend: Send + 'static {
    /// Hands every record of `store` to `each` and returns the store's revision, or nothing if
    /// nothing was ever committed for it.
    fn load(
        &mut self,
        store: &str,
        each: &mut dyn FnMut(Stored<'_>),
    ) -> Result<Option<Revision>, BackendError>;

    /// Makes the whole batch durable, or nothing of it. On an error it is unknown which, until
    /// `settle` tells.
    fn commit(&mut self, batch: &Batch) -> Result<(), BackendError>;

    /// Gets back into working order if needed and returns the number of the last batch that is
    /// durable; 0 if there never was one.
    fn settle(&mut self) -> Result<u64, BackendError>;
}

/// What one commit writes: for each store its changes in order and the revision they lead to.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Counts the commits of this backend, over all its life. A batch that failed and turned out
    /// not to be there gives its number to the next.
    pub number: u64,
    pub stores: BTreeMap<Arc<str>, Vec<Change>>,
}

/// One write to one key.
#[derive(Clone, Debug)]
pub struct Change {
    pub revision: Revision,
    pub bucket: Arc<str>,
    pub key: Arc<str>,
    pub effect: Effect,
}

#[derive(Clone, Debug)]
pub enum Effect {
    Put(Entry),
    /// `last` is only shown to watchers; it is not kept.
    Delete {
        last: Bytes,
    },
}

/// One record as it lies in the backend.
#[derive(Clone, Copy, Debug)]
pub struct Stored<'a> {
    pub bucket: &'a str,
    pub key: &'a str,
    pub created: Revision,
    pub modified: Revision,
    pub value: &'a [u8],
}
