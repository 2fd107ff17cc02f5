//! Which works care about which objects, so that an event about an object finds them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cleat_core::id::{Id, Target};
use jiff::{SignedDuration, Timestamp};

use super::Key;
use crate::concerned::Concerned;

#[derive(Default)]
pub(super) struct Subjects {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    keys: Concerned<Id, Key>,
    /// In the order of targets.
    targets: BTreeMap<Arc<Key>, Box<[Subject]>>,
    without_a_kind: BTreeSet<Key>,
    kinds_changed: Option<Timestamp>,
}

/// A target whose names are those that [`Concerned`] keeps.
struct Subject {
    id: Arc<Id>,
    version: Arc<str>,
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
        let (key, before) = match inner.targets.remove_entry(key) {
            Some(known) => known,
            None => (Arc::new(key.clone()), Box::default()),
        };
        let news = !is_same(&before, targets);
        let now = if news { inner.change(&key, &before, targets) } else { before };
        if !now.is_empty() {
            inner.targets.insert(key, now);
        }
        news
    }

    /// The works that care about an object.
    pub(super) fn of(&self, id: &Id, tell: impl FnMut(&Key)) {
        self.lock().keys.of(id).for_each(tell);
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

impl Inner {
    /// Gives what the work cares about now, as it is kept.
    fn change(
        &mut self,
        key: &Arc<Key>,
        before: &[Subject],
        targets: &BTreeSet<Target>,
    ) -> Box<[Subject]> {
        let mut last: Arc<str> = Arc::from("");
        let now = targets.iter().map(|Target { version, id }| {
            if *last != **version {
                last = Arc::from(version.as_str());
            }
            Subject { id: self.keys.add(id, key), version: Arc::clone(&last) }
        });
        let now: Box<[Subject]> = now.collect();
        let ids: BTreeSet<&Id> = targets.iter().map(|target| &target.id).collect();
        for Subject { id, .. } in before.iter().filter(|subject| !ids.contains(&*subject.id)) {
            self.keys.remove(id, key);
        }
        now
    }
}

fn is_same(before: &[Subject], targets: &BTreeSet<Target>) -> bool {
    let same = |(subject, target): (&Subject, &Target)| {
        *subject.id == target.id && *subject.version == *target.version
    };
    before.len() == targets.len() && before.iter().zip(targets).all(same)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        Key::Work(name.to_owned())
    }

    fn targets(names: &[(&str, &str)]) -> BTreeSet<Target> {
        let target = |(version, name): &(&str, &str)| {
            let id = Id { name: (*name).to_owned(), ..Id::default() };
            Target { version: (*version).to_owned(), id }
        };
        names.iter().map(target).collect()
    }

    fn told(subjects: &Subjects, name: &str) -> Vec<Key> {
        let mut all = Vec::new();
        let id = Id { name: name.to_owned(), ..Id::default() };
        subjects.of(&id, |key| all.push(key.clone()));
        all
    }

    #[test]
    fn a_work_hears_of_what_it_cares_about_now() {
        let (subjects, a, b) = (Subjects::default(), key("a"), key("b"));
        assert!(!subjects.set(&a, &targets(&[]), false), "nothing before, nothing now");
        assert!(subjects.set(&a, &targets(&[("v1", "x"), ("v2", "y")]), false));
        assert!(!subjects.set(&a, &targets(&[("v2", "y"), ("v1", "x")]), false));
        assert!(subjects.set(&b, &targets(&[("v1", "y")]), false));
        assert_eq!(told(&subjects, "y"), [a.clone(), b.clone()]);
        // The same object in another version is the same object.
        assert!(subjects.set(&a, &targets(&[("v1", "y")]), false));
        assert_eq!(told(&subjects, "y"), [a.clone(), b.clone()]);
        assert_eq!(told(&subjects, "x"), [] as [Key; 0]);
        assert!(subjects.set(&a, &targets(&[]), false));
        assert_eq!(told(&subjects, "y"), [b]);
    }
}
