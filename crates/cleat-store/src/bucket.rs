//! One bucket in memory: its live entries, its recent past, and those who wait for news of it.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use tokio::sync::Notify;

use crate::history::{History, Limits, Past};
use crate::{Change, Effect, Entry, Revision};

#[derive(Debug, Default)]
pub(crate) struct Bucket {
    pub(crate) live: BTreeMap<Arc<str>, Entry>,
    pub(crate) history: History,
    pub(crate) news: Arc<Notify>,
}

impl Bucket {
    pub(crate) fn apply(&mut self, change: &Change, limits: &Limits) {
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
        let step = Past { revision: change.revision, key, value, deleted, previous };
        self.history.push(step, limits);
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
