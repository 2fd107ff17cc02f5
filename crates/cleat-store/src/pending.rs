//! Writes that were accepted and wait for their commit. Writers are checked against these on top of
//! the committed state; readers never see them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::state::State;
use crate::{BackendError, Change, Effect, Entry, Revision};

#[derive(Debug)]
pub(crate) struct Pending {
    next: Revision,
    standing: Standing,
    overlay: BTreeMap<Arc<str>, BTreeMap<Arc<str>, Waiting>>,
}

/// Which writes are still good. It changes only when the waiting ones are thrown away.
#[derive(Clone, Debug, Default)]
pub(crate) struct Standing {
    /// Raised whenever the waiting writes are thrown away. A write still in line that was accepted
    /// in an earlier epoch was checked against what never came to be.
    epoch: u64,
    thrown_away: Option<BackendError>,
}

impl Standing {
    /// Why a write accepted in `epoch` cannot be made any more, if so.
    pub(crate) fn refusal(&self, epoch: u64) -> Option<BackendError> {
        self.thrown_away.clone().filter(|_| epoch != self.epoch)
    }
}

/// What a key will be once its newest waiting write is committed.
#[derive(Debug)]
struct Waiting {
    revision: Revision,
    entry: Option<Entry>,
}

/// The newest state of a key, and whether a reader can already see it.
pub(crate) struct Newest {
    pub(crate) entry: Option<Entry>,
    pub(crate) committed: bool,
}

impl Pending {
    pub(crate) fn after(committed: Revision) -> Self {
        Pending { next: committed + 1, standing: Standing::default(), overlay: BTreeMap::new() }
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.standing.epoch
    }

    pub(crate) fn standing(&self) -> Standing {
        self.standing.clone()
    }

    /// Forgets all waiting writes.
    pub(crate) fn throw_away(&mut self, committed: Revision, why: BackendError) {
        self.next = committed + 1;
        self.standing.epoch += 1;
        self.standing.thrown_away = Some(why);
        self.overlay.clear();
    }

    /// The revision the next accepted write gets.
    pub(crate) fn next(&self) -> Revision {
        self.next
    }

    pub(crate) fn newest(&self, state: &State, bucket: &str, key: &str) -> Newest {
        match self.overlay.get(bucket).and_then(|keys| keys.get(key)) {
            Some(waiting) => Newest { entry: waiting.entry.clone(), committed: false },
            None => Newest { entry: state.get(bucket, key).cloned(), committed: true },
        }
    }

    pub(crate) fn push(&mut self, change: &Change) {
        let entry = match &change.effect {
            Effect::Put(entry) => Some(entry.clone()),
            Effect::Delete { .. } => None,
        };
        let waiting = Waiting { revision: change.revision, entry };
        let keys = self.overlay.entry(Arc::clone(&change.bucket)).or_default();
        keys.insert(Arc::clone(&change.key), waiting);
        self.next = change.revision + 1;
    }

    /// A write that leaves no trace here because it is committed already.
    pub(crate) fn pass(&mut self, revision: Revision) {
        self.next = revision + 1;
    }

    /// Forgets changes that the committed state now shows; a newer write to the same key stays.
    pub(crate) fn settle(&mut self, committed: &[Change]) {
        for change in committed {
            let Some(keys) = self.overlay.get_mut(&change.bucket) else { continue };
            if keys.get(&change.key).is_some_and(|waiting| waiting.revision == change.revision) {
                keys.remove(&change.key);
            }
            if keys.is_empty() {
                self.overlay.remove(&change.bucket);
            }
        }
    }
}
