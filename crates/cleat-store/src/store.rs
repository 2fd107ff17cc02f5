//! The store as its users see it.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::oneshot;

use crate::queue::Job;
use crate::range;
use crate::shared::Shared;
use crate::state::State;
use crate::{
    BackendError, Backup, Change, Compacted, Disk, Effect, Entry, Expected, Limits, OpenError,
    Page, Range, Revision, Watch, WriteError,
};

/// A cheap handle on one store. When the last one is dropped, its watches end.
///
/// *Guarantees*: reads see only what is durable. Once a write is answered, every read sees it. A
/// conflict is answered once the state it conflicts with can be read.
#[derive(Clone)]
pub struct Store(Arc<Owner>);

impl Store {
    /// A store that lives as long as its handles. It commits in place: no thread, no clock.
    pub fn in_memory(limits: Limits) -> Store {
        let shared = Arc::new(Shared::new("", State::new(limits)));
        Store(Arc::new(Owner { shared, disk: None }))
    }

    /// Reads the store of this name into memory; a name the disk does not know yet is an empty
    /// store. Blocks.
    pub fn open(disk: &Disk, name: &str, limits: Limits) -> Result<Store, OpenError> {
        let state = disk.load(&name.into(), limits)?;
        let shared = Arc::new(Shared::new(name, state));
        Ok(Store(Arc::new(Owner { shared, disk: Some(disk.clone()) })))
    }

    /// The last committed revision; 1 if nothing was ever written.
    pub fn revision(&self) -> Revision {
        self.0.shared.state().revision()
    }

    pub fn get(&self, bucket: &str, key: &str) -> Option<Entry> {
        self.0.shared.state().get(bucket, key).cloned()
    }

    pub fn list(&self, range: Range<'_>) -> Result<Page, Compacted> {
        range::list(&self.0.shared.state(), range)
    }

    pub fn count(&self, bucket: &str, prefix: &str) -> usize {
        let state = self.0.shared.state();
        match state.bucket(bucket) {
            Some(bucket) => bucket.count(prefix),
            None => 0,
        }
    }

    /// Names of the buckets that hold something, in order.
    pub fn buckets(&self) -> Vec<Arc<str>> {
        self.0.shared.state().filled_buckets().cloned().collect()
    }

    /// Everything as of this moment, to be kept elsewhere. Later writes are not in it.
    pub fn backup(&self) -> Backup {
        let state = self.0.shared.state();
        Backup::new(Arc::clone(&self.0.shared.name), state.revision(), state.items())
    }

    /// How many bytes the file takes that this store shares with others; nothing without a file.
    pub fn size_on_disk(&self) -> Option<u64> {
        self.0.disk.as_ref()?.size()
    }

    /// Writes a value. `make` is given the revision the write will have and returns the bytes; it
    /// runs while other writers of this store wait, so it should be quick, and it runs only if the
    /// expectation holds. The bytes are kept as they are: spare capacity behind them is kept too.
    pub async fn put(
        &self,
        bucket: &str,
        key: &str,
        expected: Expected,
        make: impl FnOnce(Revision) -> Bytes,
    ) -> Result<Entry, WriteError> {
        let submitted = self.submit(bucket, key, expected, |revision, current| {
            let created = current.map_or(revision, |entry| entry.created);
            let entry = Entry { created, modified: revision, value: make(revision) };
            Some((Effect::Put(entry.clone()), entry))
        })?;
        submitted.answer().await
    }

    /// Removes a key. `last` is called like `make` of [`Store::put`]; its bytes are what watchers
    /// are shown. Returns the entry as it went: with the revision of the delete, and those bytes. A
    /// key that does not exist is a conflict with nothing.
    pub async fn delete(
        &self,
        bucket: &str,
        key: &str,
        expected: Expected,
        last: impl FnOnce(Revision) -> Bytes,
    ) -> Result<Entry, WriteError> {
        let submitted = self.submit(bucket, key, expected, |revision, current| {
            let created = current?.created;
            let last = last(revision);
            let entry = Entry { created, modified: revision, value: last.clone() };
            Some((Effect::Delete { last }, entry))
        })?;
        submitted.answer().await
    }

    /// Events of a bucket, of keys with the prefix, with revisions greater than `after`.
    pub fn watch(&self, bucket: &str, prefix: &str, after: Revision) -> Result<Watch, Compacted> {
        Watch::start(&self.0.shared, bucket, prefix, after)
    }

    /// Forgets the past up to and including a revision, in all buckets.
    pub fn compact(&self, upto: Revision) {
        self.0.shared.state_mut().forget(upto);
    }

    /// Checks a write and either does it in place or puts it in line. `decide` says what it does
    /// to the current entry and how it is answered, or nothing if it needs an entry and has none.
    fn submit(
        &self,
        bucket: &str,
        key: &str,
        expected: Expected,
        decide: impl FnOnce(Revision, Option<&Entry>) -> Option<(Effect, Entry)>,
    ) -> Result<Submitted, WriteError> {
        if bucket.is_empty() || bucket.contains('\0') {
            return Err(WriteError::Bucket { bucket: bucket.to_owned() });
        }
        let shared = &self.0.shared;
        let mut pending = shared.pending();
        let newest = pending.newest(&shared.state(), bucket, key);
        let revision = pending.next();
        let decided = match expected.holds_for(newest.entry.as_ref()) {
            true => decide(revision, newest.entry.as_ref()),
            false => None,
        };

        let Some((effect, entry)) = decided else {
            let conflict = WriteError::Conflict { current: newest.entry };
            return match &self.0.disk {
                Some(disk) if !newest.committed => {
                    Ok(enqueue(disk, shared, pending.epoch(), None, Err(conflict)))
                }
                _ => Err(conflict),
            };
        };
        let change = Change { revision, bucket: bucket.into(), key: key.into(), effect };
        Ok(match &self.0.disk {
            Some(disk) => {
                pending.push(&change);
                // Still under the lock, so that the line has the order of the revisions.
                enqueue(disk, shared, pending.epoch(), Some(change), Ok(entry))
            }
            None => {
                pending.pass(revision);
                shared.publish(&[change]);
                Submitted::Done(entry)
            }
        })
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("name", &self.0.shared.name).finish_non_exhaustive()
    }
}

/// Owned by the handles alone: what waits in line or watches must not keep the disk open.
struct Owner {
    shared: Arc<Shared>,
    disk: Option<Disk>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.shared.close();
        if let Some(disk) = &self.disk {
            disk.release(&self.shared.name);
        }
    }
}

enum Submitted {
    Done(Entry),
    Waiting(oneshot::Receiver<Result<Entry, WriteError>>),
}

impl Submitted {
    async fn answer(self) -> Result<Entry, WriteError> {
        match self {
            Submitted::Done(entry) => Ok(entry),
            Submitted::Waiting(reply) => reply.await.unwrap_or_else(|_| {
                Err(WriteError::Unavailable(BackendError::new("the disk stopped")))
            }),
        }
    }
}

fn enqueue(
    disk: &Disk,
    store: &Arc<Shared>,
    epoch: u64,
    change: Option<Change>,
    answer: Result<Entry, WriteError>,
) -> Submitted {
    let (reply, waiting) = oneshot::channel();
    disk.submit(Job { store: Arc::clone(store), epoch, change, answer, reply });
    Submitted::Waiting(waiting)
}
