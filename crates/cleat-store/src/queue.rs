//! The line in front of a disk's committer: first come, first served, over all stores of the disk.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};

use tokio::sync::oneshot;

use crate::shared::Shared;
use crate::state::State;
use crate::{BackendError, Change, Entry, Limits, WriteError};

/// A writer waiting for its answer. The answer is known, it only has to become true: with no change
/// this is a conflict with a write that stands before it in the line.
pub(crate) struct Job {
    pub(crate) store: Arc<Shared>,
    /// The epoch of the store's pending writes in which this was accepted.
    pub(crate) epoch: u64,
    pub(crate) change: Option<Change>,
    pub(crate) answer: Result<Entry, WriteError>,
    pub(crate) reply: oneshot::Sender<Result<Entry, WriteError>>,
}

pub(crate) enum Item {
    Write(Job),
    Load { name: Arc<str>, limits: Limits, reply: mpsc::SyncSender<Result<State, BackendError>> },
}

#[derive(Default)]
pub(crate) struct Queue {
    line: Mutex<Line>,
    filled: Condvar,
}

#[derive(Default)]
struct Line {
    items: VecDeque<Item>,
    closed: bool,
}

impl Queue {
    pub(crate) fn push(&self, item: Item) {
        self.line().items.push_back(item);
        self.filled.notify_one();
    }

    /// Everything that waits, or nothing once the queue is closed and empty. Blocks.
    pub(crate) fn take(&self) -> Option<VecDeque<Item>> {
        let mut line = self.line();
        loop {
            if !line.items.is_empty() {
                return Some(std::mem::take(&mut line.items));
            }
            if line.closed {
                return None;
            }
            line = self.filled.wait(line).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(crate) fn close(&self) {
        self.line().closed = true;
        self.filled.notify_one();
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
