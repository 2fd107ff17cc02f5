//! The committed state of one store in memory. Reads see this and nothing else; it changes only when
//! a commit is durable. It has no lock of its own and does no IO.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use crate::bucket::Bucket;
use crate::interest::News;
use crate::{Change, Compacted, Entry, Limits, Revision, Stored};

#[derive(Debug)]
pub(crate) struct State {
    revision: Revision,
    /// No one may look back before this: the revision found on disk, or what was compacted.
    floor: Revision,
    limits: Limits,
    closed: bool,
    buckets: BTreeMap<Arc<str>, Bucket>,
}

impl State {
    pub(crate) fn new(limits: Limits) -> Self {
        State { revision: 1, floor: 1, limits, closed: false, buckets: BTreeMap::new() }
    }

    /// Takes in one record found on disk, before the state is used.
    pub(crate) fn restore(&mut self, record: Stored<'_>) {
        let Stored { bucket, key, created, modified, value } = record;
        let entry = Entry { created, modified, value: Bytes::copy_from_slice(value) };
        self.bucket_or_new(bucket.into()).live.insert(key.into(), entry);
    }

    pub(crate) fn start_at(&mut self, revision: Revision) {
        self.revision = revision;
        self.floor = revision;
    }

    pub(crate) fn revision(&self) -> Revision {
        self.revision
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    pub(crate) fn bucket(&self, name: &str) -> Option<&Bucket> {
        self.buckets.get(name)
    }

    pub(crate) fn bucket_mut(&mut self, name: &str) -> Option<&mut Bucket> {
        self.buckets.get_mut(name)
    }

    pub(crate) fn bucket_or_new(&mut self, name: Arc<str>) -> &mut Bucket {
        self.buckets.entry(name).or_default()
    }

    pub(crate) fn get(&self, bucket: &str, key: &str) -> Option<&Entry> {
        self.buckets.get(bucket)?.live.get(key)
    }

    pub(crate) fn filled_buckets(&self) -> impl Iterator<Item = &Arc<str>> {
        self.buckets.iter().filter(|(_, bucket)| !bucket.live.is_empty()).map(|(name, _)| name)
    }

    /// Every entry there is, by bucket and key. Values are shared, not copied.
    pub(crate) fn items(&self) -> Vec<(Arc<str>, Arc<str>, Entry)> {
        let total = self.buckets.values().map(|bucket| bucket.live.len()).sum();
        let mut items = Vec::with_capacity(total);
        for (name, bucket) in &self.buckets {
            let entries = bucket.live.iter();
            items.extend(
                entries.map(|(key, entry)| (Arc::clone(name), Arc::clone(key), entry.clone())),
            );
        }
        items
    }

    /// Applies committed changes, in order, and returns whom to tell once no lock is held.
    pub(crate) fn apply(&mut self, changes: &[Change]) -> Vec<Arc<News>> {
        let limits = self.limits;
        let mut touched: Vec<Arc<News>> = Vec::new();
        for change in changes {
            let bucket = self.bucket_or_new(Arc::clone(&change.bucket));
            bucket.apply(change, &limits, |news| {
                if !touched.iter().any(|known| Arc::ptr_eq(known, news)) {
                    touched.push(Arc::clone(news));
                }
            });
            self.revision = change.revision;
        }
        touched
    }

    /// Whether everything that happened in `bucket` after `revision` is still known.
    pub(crate) fn check_remembered(
        &self,
        bucket: &str,
        revision: Revision,
    ) -> Result<(), Compacted> {
        let lost = self.buckets.get(bucket).map_or(0, |bucket| bucket.history.lost());
        let floor = self.floor.max(lost);
        if revision < floor { Err(Compacted { floor }) } else { Ok(()) }
    }

    pub(crate) fn forget(&mut self, upto: Revision) {
        let upto = upto.min(self.revision);
        self.floor = self.floor.max(upto);
        for bucket in self.buckets.values_mut() {
            bucket.forget(upto);
        }
        // A bucket that no one watches and that holds nothing need not be remembered: its floor is
        // the store's, which is not below anything it has lost.
        self.buckets.retain(|_, bucket| {
            let watched = !bucket.interests.is_empty();
            watched || !bucket.live.is_empty() || !bucket.history.is_empty()
        });
    }

    /// Ends all watches; returns whom to tell.
    pub(crate) fn close(&mut self) -> Vec<Arc<News>> {
        self.closed = true;
        self.buckets.values().flat_map(|bucket| bucket.interests.all()).collect()
    }
}
