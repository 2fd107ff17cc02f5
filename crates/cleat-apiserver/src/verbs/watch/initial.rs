//! What was there when a watch began, read page by page as of that one moment.

use std::sync::Arc;

use bytes::Bytes;
use cleat_store::{Compacted, Entry, Range, Revision, Store};

/// How many entries are held at a time. They share their values with the store.
pub(super) const PAGE: usize = 1000;

/// A place in a list as of one revision.
pub(super) struct Initial {
    bucket: Box<str>,
    prefix: Box<str>,
    at: Revision,
    mark_end: bool,
    /// The last key of the page.
    after: Option<Arc<str>>,
    page: std::vec::IntoIter<(Arc<str>, Entry)>,
    /// Whether another page follows.
    more: bool,
}

impl Initial {
    /// `mark_end`: the client wants to be told where this ends.
    pub(super) fn new(bucket: &str, prefix: &str, at: Revision, mark_end: bool) -> Self {
        Self {
            bucket: bucket.into(),
            prefix: prefix.into(),
            at,
            mark_end,
            after: None,
            page: Vec::new().into_iter(),
            more: true,
        }
    }

    /// The revision to put into the mark at the end, if there is to be one.
    pub(super) fn marked_end(&self) -> Option<Revision> {
        self.mark_end.then_some(self.at)
    }

    /// The next value. An error means that the store has forgotten what things were like then.
    pub(super) fn next(&mut self, store: &Store) -> Result<Option<Bytes>, Compacted> {
        if let Some((_, entry)) = self.page.next() {
            return Ok(Some(entry.value));
        }
        if !self.more {
            return Ok(None);
        }
        let page = store.list(Range {
            bucket: &self.bucket,
            prefix: &self.prefix,
            after: self.after.as_deref(),
            limit: PAGE,
            at: Some(self.at),
            count: false,
        })?;
        self.more = page.more;
        self.after = page.entries.last().map(|(key, _)| Arc::clone(key));
        self.page = page.entries.into_iter();
        Ok(self.page.next().map(|(_, entry)| entry.value))
    }
}
