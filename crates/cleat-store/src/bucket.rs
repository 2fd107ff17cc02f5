//! One bucket in memory: its live entries, its recent past, and those who wait for news of it.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use crate::history::{History, Limits, Past};
use crate::interest::{Interest, Interests, News};
use crate::{Change, Effect, Entry, Revision};

#[derive(Debug, Default)]
pub(crate) struct Bucket {
    pub(crate) live: BTreeMap<Arc<str>, Entry>,
    pub(crate) history: History,
    pub(crate) interests: Interests,
}

impl Bucket {
    /// Applies a change; `tell` is given what wakes each who waits for news of it.
    pub(crate) fn apply(&mut self, change: &Change, limits: &Limits, tell: impl FnMut(&Arc<News>)) {
        // The key already in the map is shared with the history instead of keeping a second copy.
        let known = self.live.get_key_value(&*change.key).map(|(key, _)| Arc::clone(key));
        let key = known.unwrap_or_else(|| Arc::clone(&change.key));
        let (value, deleted, previous) = match &change.effect {
            Effect::Put(entry) => {
                let previous = self.live.insert(Arc::clone(&key), entry.clone());
                (entry.value.clone(), false, previous)
            }
            Effect::Delete { last } => (last.clone(), true, self.live.remove(&*key)),
        };
        self.interests.happened(&key, change.revision, tell);
        let step = Past { revision: change.revision, key, value, deleted, previous };
        self.history.push(step, limits, |old| self.interests.dropped(&old.key, old.revision));
    }

    pub(crate) fn forget(&mut self, upto: Revision) {
        self.history.forget(upto, |old| self.interests.dropped(&old.key, old.revision));
    }

    /// What happened to keys with a watched prefix after `revision`, oldest first.
    pub(crate) fn steps_after(
        &self,
        interest: &Interest,
        revision: Revision,
    ) -> impl Iterator<Item = &Past> {
        interest.after(revision).filter_map(|revision| self.history.at(revision))
    }

    pub(crate) fn count(&self, prefix: &str) -> usize {
        match prefix {
            "" => self.live.len(),
            _ => self.live_from(prefix, Bound::Included(prefix)).count(),
        }
    }

    /// The live entries with a prefix, from a key on, in order.
    pub(crate) fn live_from<'a>(
        &'a self,
        prefix: &'a str,
        from: Bound<&'a str>,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a Entry)> + use<'a> {
        self.live
            .range::<str, _>((from, Bound::Unbounded))
            .take_while(move |(key, _)| key.starts_with(prefix))
    }

    /// What was different at `revision`: for each key touched since, what it was then.
    pub(crate) fn undo(
        &self,
        revision: Revision,
        wanted: impl Fn(&str) -> bool,
    ) -> BTreeMap<&Arc<str>, Option<&Entry>> {
        let mut then = BTreeMap::new();
        for step in self.history.after(revision).rev().filter(|step| wanted(&step.key)) {
            then.insert(&step.key, step.previous.as_ref());
        }
        then
    }
}
