//! What the handles, watches and waiting writes of one store share: the committed state and, apart
//! from it, the writes in flight.
//!
//! Locks are taken in the order pending, queue of the disk, state; none is held over an `.await`.
//! Nothing panics while the state is being changed, so a poisoned lock still guards whole data.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::pending::Pending;
use crate::state::State;
use crate::{BackendError, Change};

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) name: Arc<str>,
    state: RwLock<State>,
    pending: Mutex<Pending>,
}

impl Shared {
    pub(crate) fn new(name: &str, state: State) -> Self {
        let pending = Mutex::new(Pending::after(state.revision()));
        Shared { name: name.into(), state: RwLock::new(state), pending }
    }

    pub(crate) fn state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn state_mut(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes committed changes visible to readers, then to watchers.
    pub(crate) fn publish(&self, changes: &[Change]) {
        let touched = self.state_mut().apply(changes);
        for news in touched {
            news.told.notify_waiters();
        }
    }

    /// The same for changes that no one was told of in time. What waits was checked without them and
    /// is thrown away in the same moment, so that who sees them can write on top of them.
    pub(crate) fn publish_late(&self, changes: &[Change], why: &BackendError) {
        let mut pending = self.pending();
        let mut state = self.state_mut();
        let touched = state.apply(changes);
        pending.throw_away(state.revision(), why.clone());
        drop((state, pending));
        for news in touched {
            news.told.notify_waiters();
        }
    }

    /// Throws away what waits; those who wait are told when their turn comes.
    pub(crate) fn throw_away(&self, why: &BackendError) {
        let mut pending = self.pending();
        let committed = self.state().revision();
        pending.throw_away(committed, why.clone());
    }

    /// Ends every watch.
    pub(crate) fn close(&self) {
        let watched = self.state_mut().close();
        for news in watched {
            news.told.notify_waiters();
        }
    }
}
