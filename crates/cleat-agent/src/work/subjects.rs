//! Which works care about which objects, so that an event about an object finds them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use cleat_core::id::{Id, Target};
use jiff::{SignedDuration, Timestamp};

use super::Key;

#[derive(Default)]
pub(super) struct Subjects {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    keys: BTreeMap<Id, Vec<Key>>,
    targets: BTreeMap<Key, BTreeSet<Target>>,
    without_a_kind: BTreeSet<Key>,
    kinds_changed: Option<Timestamp>,
}

/// A server may accept a definition well before it serves the kind, and says so nowhere.
const SETTLING: SignedDuration = SignedDuration::from_secs(30);
const LOOK_AGAIN: SignedDuration = SignedDuration::from_millis(500);

impl Subjects {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces what a work cares about; whether that is news.
    pub(super) fn set(&self, key: &Key, targets: &BTreeSet<Target>, lacks_a_kind: bool) -> bool {
        let mut inner = self.lock();
        if lacks_a_kind {
            inner.without_a_kind.insert(key.clone());
        } else {
            inner.without_a_kind.remove(key);
        }
        let before = inner.targets.get(key);
        if before.map_or(targets.is_empty(), |before| before == targets) {
            return false;
        }
        let before = inner.targets.remove(key).unwrap_or_default();
        for target in before.difference(targets) {
            if let Some(keys) = inner.keys.get_mut(&target.id) {
                keys.retain(|other| other != key);
                if keys.is_empty() {
                    inner.keys.remove(&target.id);
                }
            }
        }
        for target in targets {
            let keys = inner.keys.entry(target.id.clone()).or_default();
            if !keys.contains(key) {
                keys.push(key.clone());
            }
        }
        if !targets.is_empty() {
            inner.targets.insert(key.clone(), targets.clone());
        }
        true
    }

    /// The works that care about an object.
    pub(super) fn of(&self, id: &Id, tell: impl FnMut(&Key)) {
        self.lock().keys.get(id).into_iter().flatten().for_each(tell);
    }

    /// The works with a manifest of a kind that the cluster did not have.
    pub(super) fn without_a_kind(&self, tell: impl FnMut(&Key)) {
        let mut inner = self.lock();
        inner.kinds_changed = Some(Timestamp::now());
        inner.without_a_kind.iter().for_each(tell);
    }

    /// When a work that lacks a kind should look again, because kinds changed a moment ago.
    pub(super) fn expects_a_kind(&self, key: &Key, now: Timestamp) -> Option<Timestamp> {
        let inner = self.lock();
        let changed = inner.kinds_changed.filter(|_| inner.without_a_kind.contains(key))?;
        (now.duration_since(changed) < SETTLING).then(|| now.checked_add(LOOK_AGAIN).unwrap_or(now))
    }
}
