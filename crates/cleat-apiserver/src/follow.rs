//! Knowledge derived from stored objects, brought up to date by looking just before it is used.
//!
//! A request therefore never decides on less than what was committed when it arrived: a role
//! binding that was answered counts for the very next request. No task and no buffer is needed,
//! only a place in the store's history.

use std::sync::{PoisonError, RwLock};

use cleat_store::{EventKind, Range, Store, Watch};

/// Takes in what changed in the buckets it is made from.
pub(crate) trait Digest {
    /// Forgets everything: what follows is the whole picture.
    fn clear(&mut self);

    /// `value` is the stored form; `None` when the object went.
    fn take(&mut self, bucket: &str, key: &str, value: Option<&[u8]>);

    /// All that was new has been taken.
    fn settle(&mut self) {}
}

/// A [`Digest`] together with its places in the history of its buckets.
pub(crate) struct Followed<T> {
    state: RwLock<State<T>>,
    buckets: Vec<&'static str>,
}

struct State<T> {
    digest: T,
    /// One per bucket; empty until the first look, and after falling too far behind.
    watches: Vec<Watch>,
}

impl<T: Digest> Followed<T> {
    pub(crate) fn new(digest: T, buckets: &[&'static str]) -> Self {
        let state = State { digest, watches: Vec::new() };
        Self { state: RwLock::new(state), buckets: buckets.to_vec() }
    }

    /// Looks at the store's news, then answers from the digest.
    pub(crate) fn read<R>(&self, store: &Store, answer: impl FnOnce(&T) -> R) -> R {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        if !state.watches.is_empty() && !state.watches.iter().any(Watch::has_news) {
            // As it is most of the time: then nobody waits for anybody.
            return answer(&state.digest);
        }
        drop(state);
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        if state.watches.is_empty() || !self.catch_up(&mut state) {
            self.start_over(store, &mut state);
        }
        answer(&state.digest)
    }

    /// `false` if history has moved on without us.
    fn catch_up(&self, state: &mut State<T>) -> bool {
        let mut news = false;
        for (bucket, watch) in self.buckets.iter().zip(&mut state.watches) {
            loop {
                match watch.try_next() {
                    Ok(None) => break,
                    Ok(Some(event)) => {
                        let value = match event.kind {
                            EventKind::Delete => None,
                            _ => Some(&*event.value),
                        };
                        state.digest.take(bucket, &event.key, value);
                        news = true;
                    }
                    Err(_) => return false,
                }
            }
        }
        if news {
            state.digest.settle();
        }
        true
    }

    fn start_over(&self, store: &Store, state: &mut State<T>) {
        state.digest.clear();
        state.watches.clear();
        for bucket in &self.buckets {
            // The watch begins at the page's own revision, so that nothing falls between the two.
            let range = Range { bucket, ..Range::default() };
            let Ok(page) = store.list(range) else { continue };
            for (key, entry) in &page.entries {
                state.digest.take(bucket, key, Some(&entry.value));
            }
            if let Ok(watch) = store.watch(bucket, "", page.revision) {
                state.watches.push(watch);
            }
        }
        // A bucket without its watch would go unnoticed for ever: begin again at the next look.
        if state.watches.len() != self.buckets.len() {
            state.watches.clear();
        }
        state.digest.settle();
    }
}
