//! A backend in memory that outlives the disk on it, counts its commits, breaks when told to and can
//! be held still. What it keeps is what a file would keep.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use cleat_store::{Backend, BackendError, Batch, Effect, Entry, Revision, Stored};

#[derive(Clone, Default)]
pub(crate) struct Ram(Arc<(Mutex<Inner>, Condvar)>);

#[derive(Default)]
pub(crate) struct Inner {
    pub(crate) records: BTreeMap<(String, String, String), Entry>,
    pub(crate) revisions: BTreeMap<String, Revision>,
    pub(crate) last: u64,
    /// Calls of `commit`, failed ones too.
    pub(crate) commits: usize,
    pub(crate) next: Next,
    /// Which commit, counted from 1, `next` is for; 0 is the very next.
    pub(crate) next_at: usize,
    /// While set, every call fails: the process is dead, or the disk is.
    pub(crate) dead: bool,
    /// While set, a commit waits before it does anything.
    pub(crate) held: bool,
    pub(crate) waiting: bool,
}

/// What the next commit does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Next {
    #[default]
    Work,
    /// Fails with nothing written.
    Fail,
    /// Fails although everything is written.
    FailWritten,
    /// Nothing is written, and nothing works any more.
    DieBefore,
    /// Everything is written, but no one hears of it.
    DieAfter,
    Panic,
}

impl Ram {
    pub(crate) fn inner(&self) -> MutexGuard<'_, Inner> {
        // A commit that panicked on purpose poisons the lock.
        self.0.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(crate) fn next(&self, next: Next) {
        self.inner().next = next;
    }

    /// Returns once a commit has begun and waits.
    pub(crate) fn wait_until_held(&self) {
        let inner = self.inner();
        drop(self.0.1.wait_while(inner, |inner| !inner.waiting).unwrap());
    }

    pub(crate) fn release(&self) {
        self.inner().held = false;
        self.0.1.notify_all();
    }
}

impl Backend for Ram {
    fn load(
        &mut self,
        store: &str,
        each: &mut dyn FnMut(Stored<'_>),
    ) -> Result<Option<Revision>, BackendError> {
        let inner = self.inner();
        inner.check()?;
        for ((_, bucket, key), entry) in inner.records.iter().filter(|((s, _, _), _)| s == store) {
            let Entry { created, modified, value } = entry;
            each(Stored { bucket, key, created: *created, modified: *modified, value });
        }
        Ok(inner.revisions.get(store).copied())
    }

    fn commit(&mut self, batch: &Batch) -> Result<(), BackendError> {
        let mut inner = self.inner();
        inner.commits += 1;
        inner.waiting = true;
        self.0.1.notify_all();
        let mut inner = self.0.1.wait_while(inner, |inner| inner.held).unwrap();
        inner.waiting = false;
        inner.check()?;
        let due = inner.next_at == 0 || inner.next_at == inner.commits;
        let next = if due { std::mem::take(&mut inner.next) } else { Next::Work };
        match next {
            Next::Panic => panic!("planted"),
            Next::Fail => return Err(BackendError::new("planted")),
            Next::DieBefore => inner.dead = true,
            Next::Work | Next::FailWritten | Next::DieAfter => inner.write(batch),
        }
        match next {
            Next::Work => Ok(()),
            Next::DieAfter => {
                inner.dead = true;
                inner.check()
            }
            _ => Err(BackendError::new("planted")),
        }
    }

    fn settle(&mut self) -> Result<u64, BackendError> {
        let inner = self.inner();
        inner.check()?;
        Ok(inner.last)
    }
}

impl Inner {
    fn check(&self) -> Result<(), BackendError> {
        if self.dead { Err(BackendError::new("dead")) } else { Ok(()) }
    }

    fn write(&mut self, batch: &Batch) {
        assert_eq!(batch.number, self.last + 1);
        self.last = batch.number;
        for (store, changes) in &batch.stores {
            for change in changes {
                let revision = self.revisions.entry(store.to_string()).or_insert(1);
                assert_eq!(change.revision, *revision + 1, "revisions have no gap");
                *revision = change.revision;
                let key = (store.to_string(), change.bucket.to_string(), change.key.to_string());
                match &change.effect {
                    Effect::Put(entry) => drop(self.records.insert(key, entry.clone())),
                    Effect::Delete { .. } => drop(self.records.remove(&key).unwrap()),
                }
            }
        }
    }
}
