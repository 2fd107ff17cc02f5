//! Which policies depend on what, so that an event finds them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cleat_core::id::{Id, Target};
use cleat_core::policy::observed::ListOf;
use jiff::{SignedDuration, Timestamp};

use super::{Context, Key};
use crate::concerned::Concerned;

/// What one policy depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Needs {
    pub(super) targets: BTreeSet<Target>,
    pub(super) lists: BTreeSet<ListOf>,
    pub(super) namespaces: bool,
    /// It is about a kind that the cluster did not have.
    pub(super) lacks_a_kind: bool,
}

impl Needs {
    pub(super) fn and(mut self, other: &Self) -> Self {
        self.targets.extend(other.targets.iter().cloned());
        self.lists.extend(other.lists.iter().cloned());
        self.namespaces |= other.namespaces;
        self.lacks_a_kind |= other.lacks_a_kind;
        self
    }
}

#[derive(Default)]
pub(super) struct Subjects {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    needs: BTreeMap<Arc<Key>, Needs>,
    of_objects: Concerned<Id, Key>,
    of_lists: Concerned<ListOf, Key>,
    kinds_changed: Option<Timestamp>,
}

/// A server may accept a definition well before it serves the kind, and says so nowhere.
const SETTLING: SignedDuration = SignedDuration::from_secs(30);
const LOOK_AGAIN: SignedDuration = SignedDuration::from_millis(500);

impl Subjects {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn needs(&self, key: &Key) -> Needs {
        self.lock().needs.get(key).cloned().unwrap_or_default()
    }

    /// Replaces what a policy depends on. Gives what was before, if it was something else.
    fn set(&self, key: &Key, needs: &Needs) -> Option<Needs> {
        let mut inner = self.lock();
        let inner = &mut *inner;
        let (key, before) = match inner.needs.remove_entry(key) {
            Some(known) => known,
            None => (Arc::new(key.clone()), Needs::default()),
        };
        if before == *needs {
            if *needs != Needs::default() {
                inner.needs.insert(key, before);
            }
            return None;
        }
        for target in before.targets.difference(&needs.targets) {
            inner.of_objects.remove(&target.id, &key);
        }
        // Two versions of one object are one subject: what went with one of them is here again.
        for target in &needs.targets {
            inner.of_objects.add(&target.id, &key);
        }
        for list in before.lists.difference(&needs.lists) {
            inner.of_lists.remove(list, &key);
        }
        for list in &needs.lists {
            inner.of_lists.add(list, &key);
        }
        if *needs != Needs::default() {
            inner.needs.insert(key, needs.clone());
        }
        Some(before)
    }

    /// The policies that depend on an object.
    pub(super) fn of(&self, id: &Id, tell: impl FnMut(&Key)) {
        self.lock().of_objects.of(id).for_each(tell);
    }

    /// Whether more than so many objects of the same kind and namespace that policies depend on are
    /// of that sort.
    pub(super) fn more_than(&self, most: usize, like: &Id, is: impl Fn(&Id) -> bool) -> bool {
        let first = Id { name: String::new(), ..like.clone() };
        let inner = self.lock();
        let all = inner.of_objects.starting_at(&first);
        let same = |other: &&Id| {
            other.group == like.group
                && other.resource == like.resource
                && other.namespace == like.namespace
        };
        all.take_while(same).filter(|id| is(id)).nth(most).is_some()
    }

    /// The policies that depend on a list; whether there are any.
    pub(super) fn of_list(&self, list: &ListOf, tell: impl FnMut(&Key)) -> bool {
        let inner = self.lock();
        inner.of_lists.of(list).for_each(tell);
        inner.of_lists.contains(list)
    }

    /// The policies that choose namespaces.
    pub(super) fn of_namespaces(&self, mut tell: impl FnMut(&Key)) {
        let inner = self.lock();
        for (key, _) in inner.needs.iter().filter(|(_, needs)| needs.namespaces) {
            tell(key);
        }
    }

    /// The policies for which it matters that the cluster has other kinds now.
    pub(super) fn kinds_changed(&self, mut tell: impl FnMut(&Key)) {
        let mut inner = self.lock();
        inner.kinds_changed = Some(Timestamp::now());
        for (key, needs) in &inner.needs {
            if needs.lacks_a_kind || !needs.lists.is_empty() {
                tell(key);
            }
        }
    }

    /// When a policy that lacks a kind should look again, because kinds changed a moment ago.
    pub(super) fn expects_a_kind(&self, key: &Key, now: Timestamp) -> Option<Timestamp> {
        let inner = self.lock();
        let changed = inner.kinds_changed?;
        let lacks = inner.needs.get(key).is_some_and(|needs| needs.lacks_a_kind);
        let soon = lacks && now.duration_since(changed) < SETTLING;
        soon.then(|| now.checked_add(LOOK_AGAIN).unwrap_or(now))
    }
}

impl Context {
    /// From now on this is what wakes the policy.
    pub(super) fn care(&self, key: &Key, needs: &Needs) {
        let Some(before) = self.subjects.set(key, needs) else { return };
        if before.targets != needs.targets {
            self.mirror.interest(&owner(key), &needs.targets);
        }
        for list in before.lists.difference(&needs.lists) {
            self.lists.release(list, &self.tasks);
        }
    }

    /// The same of many policies that nothing was known of.
    pub(super) fn care_first(&self, all: &[(Key, Needs)]) {
        for (key, needs) in all {
            self.subjects.set(key, needs);
        }
        let owners: Vec<String> = all.iter().map(|(key, _)| owner(key)).collect();
        let interests = owners.iter().zip(all);
        self.mirror
            .interests(interests.map(|(owner, (_, needs))| (owner.as_str(), &needs.targets)));
    }
}

/// As whom a policy cares about objects.
fn owner(key: &Key) -> String {
    format!("{}/{}", key.0, key.1)
}
