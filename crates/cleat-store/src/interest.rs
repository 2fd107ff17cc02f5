//! Who waits for news of which keys of a bucket. A change wakes those it concerns and nobody else:
//! with a thousand watches of a thousand namespaces, a write must not cost a thousand looks.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

use crate::Revision;
use crate::history::History;

/// What tells the watches with one prefix of news, without a look at the store.
#[derive(Debug, Default)]
pub(crate) struct News {
    pub(crate) told: Notify,
    /// When something last happened to keys with the prefix, or may have.
    latest: AtomicU64,
}

impl News {
    /// When something last happened, or may have. Whoever can read a change of the store finds its
    /// revision here: it is written before the state's lock is given back.
    pub(crate) fn latest(&self) -> Revision {
        self.latest.load(Ordering::Acquire)
    }
}

/// What the watches with one prefix share.
#[derive(Debug)]
pub(crate) struct Interest {
    news: Arc<News>,
    watches: usize,
    /// When something happened to keys with the prefix, as far back as the history goes.
    revisions: VecDeque<Revision>,
    /// The newest of these that the history has dropped.
    lost: Revision,
}

impl Interest {
    /// A watch that has not seen this has missed something.
    pub(crate) fn lost(&self) -> Revision {
        self.lost
    }

    /// When something happened after `revision`.
    pub(crate) fn after(&self, revision: Revision) -> impl Iterator<Item = Revision> + use<'_> {
        let from = self.revisions.partition_point(|one| *one <= revision);
        self.revisions.range(from..).copied()
    }
}

#[derive(Debug, Default)]
pub(crate) struct Interests {
    by_prefix: HashMap<Box<str>, Interest>,
    /// How many prefixes there are of each length. There are few lengths, so what concerns a key is
    /// found by looking up its beginnings.
    lengths: BTreeMap<usize, usize>,
}

impl Interests {
    pub(crate) fn is_empty(&self) -> bool {
        self.by_prefix.is_empty()
    }

    pub(crate) fn get(&self, prefix: &str) -> Option<&Interest> {
        self.by_prefix.get(prefix)
    }

    /// One more watch with this prefix; what wakes it.
    pub(crate) fn join(&mut self, prefix: &str, history: &History) -> Arc<News> {
        if let Some(interest) = self.by_prefix.get_mut(prefix) {
            interest.watches += 1;
            return Arc::clone(&interest.news);
        }
        let concerned = history.after(0).filter(|step| step.key.starts_with(prefix));
        let revisions: VecDeque<Revision> = concerned.map(|step| step.revision).collect();
        // Of what was dropped before, nobody knows whom it concerned.
        let lost = history.lost();
        let latest = revisions.back().copied().unwrap_or(lost);
        let news = News { latest: AtomicU64::new(latest), ..News::default() };
        let interest = Interest { news: Arc::new(news), watches: 1, revisions, lost };
        let news = Arc::clone(&interest.news);
        self.by_prefix.insert(prefix.into(), interest);
        *self.lengths.entry(prefix.len()).or_default() += 1;
        news
    }

    /// One watch fewer with this prefix.
    pub(crate) fn leave(&mut self, prefix: &str) {
        let Some(interest) = self.by_prefix.get_mut(prefix) else { return };
        interest.watches -= 1;
        if interest.watches > 0 {
            return;
        }
        self.by_prefix.remove(prefix);
        if let Some(count) = self.lengths.get_mut(&prefix.len()) {
            *count -= 1;
            if *count == 0 {
                self.lengths.remove(&prefix.len());
            }
        }
    }

    /// Something happened to a key; `tell` is given what wakes each who waits for that.
    pub(crate) fn happened(
        &mut self,
        key: &str,
        revision: Revision,
        mut tell: impl FnMut(&Arc<News>),
    ) {
        self.concerned(key, |interest| {
            interest.revisions.push_back(revision);
            interest.news.latest.store(revision, Ordering::Release);
            tell(&interest.news);
        });
    }

    /// The history, which drops its oldest step first, has dropped this one.
    pub(crate) fn dropped(&mut self, key: &str, revision: Revision) {
        self.concerned(key, |interest| {
            interest.revisions.pop_front_if(|oldest| *oldest <= revision);
            interest.lost = revision;
        });
    }

    /// Everybody who waits for anything.
    pub(crate) fn all(&self) -> impl Iterator<Item = Arc<News>> + use<'_> {
        self.by_prefix.values().map(|interest| Arc::clone(&interest.news))
    }

    fn concerned(&mut self, key: &str, mut each: impl FnMut(&mut Interest)) {
        for length in self.lengths.keys().take_while(|length| **length <= key.len()) {
            // A beginning that ends within a character is no prefix that anybody can have asked for.
            let beginning = key.get(..*length);
            if let Some(interest) = beginning.and_then(|prefix| self.by_prefix.get_mut(prefix)) {
                each(interest);
            }
        }
    }
}
