//! A watch: a place in the history of one bucket. It keeps no events of its own, so one that is too
//! slow costs nothing and finds its place forgotten.

use std::pin::pin;
use std::sync::Arc;

use crate::history::Past;
use crate::interest::News;
use crate::shared::Shared;
use crate::{Compacted, Revision, WatchError};
use bytes::Bytes;

/// Something that happened to a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub revision: Revision,
    pub key: Arc<str>,
    pub kind: EventKind,
    /// The value written, or what the delete gave as the last one.
    pub value: Bytes,
    /// The value before this, if there was one.
    pub previous: Option<Bytes>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// `created` if the key did not exist before.
    Put {
        created: bool,
    },
    Delete,
}

/// Yields each event once, in the order of revisions, with no gap.
#[derive(Debug)]
pub struct Watch {
    store: Arc<Shared>,
    bucket: Arc<str>,
    prefix: Box<str>,
    news: Arc<News>,
    seen: Revision,
}

impl Watch {
    pub(crate) fn start(
        store: &Arc<Shared>,
        bucket: &str,
        prefix: &str,
        after: Revision,
    ) -> Result<Watch, Compacted> {
        let bucket: Arc<str> = bucket.into();
        let mut state = store.state_mut();
        state.check_remembered(&bucket, after)?;
        let watched = state.bucket_or_new(Arc::clone(&bucket));
        let news = watched.interests.join(prefix, &watched.history);
        drop(state);
        Ok(Watch { store: Arc::clone(store), bucket, prefix: prefix.into(), news, seen: after })
    }

    /// Everything up to here was yielded or was none of this watch's business. Asked right after
    /// [`Watch::try_next`] found nothing, this is the store's revision at that moment.
    pub fn revision(&self) -> Revision {
        self.seen
    }

    /// Whether a look could find anything: an event, or that some were forgotten. Takes no lock. What
    /// can be read from the store is never missed.
    pub fn has_news(&self) -> bool {
        self.news.latest() > self.seen
    }

    /// The next event. May be dropped while it waits without losing one.
    pub async fn next(&mut self) -> Result<Event, WatchError> {
        loop {
            let news = Arc::clone(&self.news);
            let mut news = pin!(news.told.notified());
            // Listening before looking: what is published in between wakes this.
            news.as_mut().enable();
            if let Some(event) = self.try_next()? {
                return Ok(event);
            }
            news.await;
        }
    }

    /// At least one and at most `most` events; several when they are there already. May be dropped
    /// while it waits without losing one.
    pub async fn next_batch(&mut self, most: usize) -> Result<Vec<Event>, WatchError> {
        let mut events = vec![self.next().await?];
        events.extend(self.take(most.saturating_sub(1)).unwrap_or_default());
        Ok(events)
    }

    /// The next event if there is one already.
    pub fn try_next(&mut self) -> Result<Option<Event>, WatchError> {
        Ok(self.take(1)?.pop())
    }

    fn take(&mut self, most: usize) -> Result<Vec<Event>, WatchError> {
        let state = self.store.state();
        let mut events = Vec::new();
        if let Some(bucket) = state.bucket(&self.bucket)
            && let Some(interest) = bucket.interests.get(&self.prefix)
        {
            // Not the floor: forgetting what this watch has passed anyway, or what is none of its
            // business, does not end it.
            let lost = interest.lost();
            if self.seen < lost {
                return Err(Compacted { floor: lost }.into());
            }
            for step in bucket.steps_after(interest, self.seen) {
                if events.len() == most {
                    return Ok(events);
                }
                self.seen = step.revision;
                events.push(Event::from(step));
            }
        }
        if events.is_empty() && state.is_closed() {
            return Err(WatchError::Closed);
        }
        self.seen = self.seen.max(state.revision());
        Ok(events)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(bucket) = self.store.state_mut().bucket_mut(&self.bucket) {
            bucket.interests.leave(&self.prefix);
        }
    }
}

impl From<&Past> for Event {
    fn from(step: &Past) -> Self {
        let Past { revision, key, value, deleted, previous } = step;
        let kind = match deleted {
            true => EventKind::Delete,
            false => EventKind::Put { created: previous.is_none() },
        };
        Event {
            revision: *revision,
            key: Arc::clone(key),
            kind,
            value: value.clone(),
            previous: previous.as_ref().map(|entry| entry.value.clone()),
        }
    }
}
