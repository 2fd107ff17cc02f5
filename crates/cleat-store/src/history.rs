//! The recent past of one bucket: a bounded ring of what happened, oldest first. It does not know
//! who looks at it; watchers keep their own place.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;

use crate::{Entry, Revision};

/// How much of the past each bucket remembers. The newest event is always kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub history_events: usize,
    pub history_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { history_events: 10_000, history_bytes: 16 << 20 }
    }
}

/// Something that happened to one key.
#[derive(Debug)]
pub(crate) struct Past {
    pub(crate) revision: Revision,
    pub(crate) key: Arc<str>,
    /// The value written, or for a delete the one shown as its last.
    pub(crate) value: Bytes,
    pub(crate) deleted: bool,
    /// What the key was before. With this a step can be undone.
    pub(crate) previous: Option<Entry>,
}

impl Past {
    /// An upper bound of what this keeps alive: most values are shared with the live map or with
    /// the neighbouring step.
    fn cost(&self) -> usize {
        let previous = self.previous.as_ref().map_or(0, |e| e.value.len());
        size_of::<Past>() + self.key.len() + self.value.len() + previous
    }
}

#[derive(Debug, Default)]
pub(crate) struct History {
    ring: VecDeque<Past>,
    bytes: usize,
    /// The newest step that was dropped; everything after it is here.
    lost: Revision,
}

impl History {
    pub(crate) fn lost(&self) -> Revision {
        self.lost
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// `dropped` is given what is too old from now on.
    pub(crate) fn push(&mut self, step: Past, limits: &Limits, mut dropped: impl FnMut(&Past)) {
        self.bytes += step.cost();
        self.ring.push_back(step);
        while self.ring.len() > 1
            && (self.ring.len() > limits.history_events || self.bytes > limits.history_bytes)
        {
            self.drop_oldest(&mut dropped);
        }
    }

    /// What happened at `revision`, if it is remembered.
    pub(crate) fn at(&self, revision: Revision) -> Option<&Past> {
        let at = self.ring.binary_search_by_key(&revision, |step| step.revision).ok()?;
        self.ring.get(at)
    }

    /// Steps after `revision`, oldest first.
    pub(crate) fn after(
        &self,
        revision: Revision,
    ) -> impl DoubleEndedIterator<Item = &Past> + use<'_> {
        let from = self.ring.partition_point(|step| step.revision <= revision);
        self.ring.range(from..)
    }

    /// `dropped` is given what is forgotten.
    pub(crate) fn forget(&mut self, upto: Revision, mut dropped: impl FnMut(&Past)) {
        while self.ring.front().is_some_and(|step| step.revision <= upto) {
            self.drop_oldest(&mut dropped);
        }
        self.ring.shrink_to_fit();
    }

    fn drop_oldest(&mut self, dropped: &mut impl FnMut(&Past)) {
        if let Some(step) = self.ring.pop_front() {
            dropped(&step);
            self.bytes = self.bytes.saturating_sub(step.cost());
            self.lost = step.revision;
        }
    }
}
