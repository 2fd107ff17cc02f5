//! The one thread per disk that talks to the backend: whatever waits is committed as one batch, then
//! shown to readers and watchers, then answered. While it commits, the next batch gathers.
//!
//! *Guarantees*: per store, changes become visible in the order of their revisions, and only once
//! they are durable. When a commit fails, all writes of the stores in it fail, those still in line
//! too, because they were checked against what is not going to be.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::pending::Standing;
use crate::queue::{Item, Job, Queue};
use crate::shared::Shared;
use crate::state::State;
use crate::{Backend, BackendError, Batch, Change, Limits, WriteError};

pub(crate) struct Committer<B> {
    backend: B,
    queue: Arc<Queue>,
    /// The number of the last batch known to be durable.
    last: u64,
    /// A batch whose commit failed, and of which it is not known yet whether it is on disk.
    doubt: Option<Work>,
}

/// A batch and the stores it belongs to.
struct Work {
    batch: Batch,
    stores: BTreeMap<Arc<str>, Arc<Shared>>,
}

impl<B: Backend> Committer<B> {
    pub(crate) fn new(mut backend: B, queue: Arc<Queue>) -> Result<Self, BackendError> {
        let last = guarded(|| backend.settle())?;
        Ok(Committer { backend, queue, last, doubt: None })
    }

    /// Until the queue is closed and empty.
    pub(crate) fn run(mut self) {
        while let Some(items) = self.queue.take() {
            let mut jobs = Vec::new();
            for item in items {
                match item {
                    Item::Write(job) => jobs.push(job),
                    Item::Load { name, limits, reply } => {
                        // Writes of an earlier handle on the same store may stand before this.
                        self.write(std::mem::take(&mut jobs));
                        // No one to answer means the opener is gone, and with it the need.
                        let _ = reply.send(self.load(&name, limits));
                    }
                }
            }
            self.write(jobs);
        }
    }

    fn load(&mut self, name: &str, limits: Limits) -> Result<State, BackendError> {
        self.dispel_doubt()?;
        let mut state = State::new(limits);
        let backend = &mut self.backend;
        let found = guarded(|| backend.load(name, &mut |record| state.restore(record)))?;
        if let Some(revision) = found {
            state.start_at(revision);
        }
        Ok(state)
    }

    fn write(&mut self, jobs: Vec<Job>) {
        if jobs.is_empty() {
            return;
        }
        if let Err(error) = self.dispel_doubt() {
            for job in &jobs {
                job.store.throw_away(&error);
            }
            return answer(jobs, Some(&error));
        }
        let jobs = refuse_outdated(jobs);
        let work = Work::of(&jobs, self.last + 1);
        if work.stores.is_empty() {
            return answer(jobs, None);
        }
        let backend = &mut self.backend;
        match guarded(|| backend.commit(&work.batch)) {
            Ok(()) => {
                self.last = work.batch.number;
                work.publish();
                answer(jobs, None);
            }
            Err(error) => {
                for store in work.stores.values() {
                    store.throw_away(&error);
                }
                answer(jobs, Some(&error));
                self.doubt = Some(work);
                // Readers should not have to wait for the next write to learn how this ended. If
                // it cannot be told yet, the next write asks again.
                let _ = self.dispel_doubt();
            }
        }
    }

    /// Finds out whether the batch in doubt is on disk, and if so makes it visible.
    ///
    /// It is never answered as a success: a sync that failed once says nothing about what a power
    /// cut would leave.
    fn dispel_doubt(&mut self) -> Result<(), BackendError> {
        let Some(work) = &self.doubt else { return Ok(()) };
        let backend = &mut self.backend;
        let last = guarded(|| backend.settle())?;
        if last == work.batch.number {
            self.last = last;
            let why = BackendError::new("an earlier write was found stored after all; try again");
            for (store, changes) in work.parts() {
                store.publish_late(changes, &why);
            }
        } else if last != self.last {
            return Err(BackendError::new("someone else wrote to the disk; it must be reopened"));
        }
        self.doubt = None;
        Ok(())
    }
}

impl Work {
    fn of(jobs: &[Job], number: u64) -> Self {
        let mut batch = Batch { number, ..Batch::default() };
        let mut stores = BTreeMap::new();
        for job in jobs {
            let Some(change) = &job.change else { continue };
            let name = &job.store.name;
            batch.stores.entry(Arc::clone(name)).or_default().push(change.clone());
            stores.entry(Arc::clone(name)).or_insert_with(|| Arc::clone(&job.store));
        }
        Work { batch, stores }
    }

    fn parts(&self) -> impl Iterator<Item = (&Shared, &[Change])> {
        let changes = |name| self.batch.stores.get(name).map_or(&[][..], Vec::as_slice);
        self.stores.iter().map(move |(name, store)| (&**store, changes(name)))
    }

    fn publish(&self) {
        for (store, changes) in self.parts() {
            store.publish(changes);
            // Only now: a writer must find each change in at least one of the two places.
            store.pending().settle(changes);
        }
    }
}

/// Answers the writes that were accepted on top of something that failed; returns the others.
fn refuse_outdated(jobs: Vec<Job>) -> Vec<Job> {
    // Only this thread throws anything away, so that one look at each store holds for all of its
    // jobs, and writers are not kept from their lock once per job.
    let mut lines: BTreeMap<Arc<str>, Standing> = BTreeMap::new();
    let mut valid = Vec::with_capacity(jobs.len());
    for job in jobs {
        let line = match lines.get(&job.store.name) {
            Some(known) => known,
            None => lines
                .entry(Arc::clone(&job.store.name))
                .or_insert_with(|| job.store.pending().standing()),
        };
        match line.refusal(job.epoch) {
            Some(error) => answer(vec![job], Some(&error)),
            None => valid.push(job),
        }
    }
    valid
}

fn answer(jobs: Vec<Job>, failure: Option<&BackendError>) {
    for job in jobs {
        let answer = match failure {
            Some(error) => Err(WriteError::Unavailable(error.clone())),
            None => job.answer,
        };
        // A writer that stopped waiting has its write all the same.
        let _ = job.reply.send(answer);
    }
}

fn guarded<T>(call: impl FnOnce() -> Result<T, BackendError>) -> Result<T, BackendError> {
    BackendError::from_panic(call).flatten()
}
