//! Lists: a range of one bucket, now or at a revision that is still remembered.

use std::ops::Bound;
use std::sync::Arc;

use crate::bucket::Bucket;
use crate::state::State;
use crate::{Compacted, Entry, Revision};

/// Which entries to list.
#[derive(Clone, Copy, Debug, Default)]
pub struct Range<'a> {
    pub bucket: &'a str,
    pub prefix: &'a str,
    /// Only keys greater than this one: the last key of the page before.
    pub after: Option<&'a str>,
    /// How many at most; 0 for all.
    pub limit: usize,
    /// As things stood then; nothing, or a revision that is yet to come, means now.
    pub at: Option<Revision>,
    /// Whether to count what follows the page, which takes a walk over all of it.
    pub count: bool,
}

/// Entries in the order of their keys, all as of one revision.
#[derive(Clone, Debug)]
pub struct Page {
    pub revision: Revision,
    pub entries: Vec<(Arc<str>, Entry)>,
    /// Whether `limit` cut the list short.
    pub more: bool,
    /// How many entries follow the last one of this page, if they were to be counted.
    pub remaining: Option<usize>,
}

pub(crate) fn list(state: &State, range: Range<'_>) -> Result<Page, Compacted> {
    let past = range.at.filter(|at| *at < state.revision());
    if let Some(at) = past {
        state.check_remembered(range.bucket, at)?;
    }
    let revision = past.unwrap_or(state.revision());
    let mut page = Page { revision, entries: Vec::new(), more: false, remaining: None };
    let Some(bucket) = state.bucket(range.bucket) else {
        page.remaining = range.count.then_some(0);
        return Ok(page);
    };
    let limit = if range.limit == 0 { usize::MAX } else { range.limit };

    let mut rest = entries_at(bucket, range, past);
    for (key, entry) in rest.by_ref().take(limit) {
        page.entries.push((Arc::clone(key), entry.clone()));
    }
    if range.count {
        let remaining = rest.count();
        page.remaining = Some(remaining);
        page.more = remaining > 0;
    } else {
        page.more = rest.next().is_some();
    }
    Ok(page)
}

/// The live entries, with what was different at the past revision put in their place.
fn entries_at<'a>(
    bucket: &'a Bucket,
    range: Range<'a>,
    past: Option<Revision>,
) -> Box<dyn Iterator<Item = (&'a Arc<str>, &'a Entry)> + 'a> {
    let from = match range.after {
        Some(after) if after >= range.prefix => Bound::Excluded(after),
        _ => Bound::Included(range.prefix),
    };
    let live = bucket.live_from(range.prefix, from);
    let Some(past) = past else { return Box::new(live) };

    let wanted =
        |key: &str| key.starts_with(range.prefix) && range.after.is_none_or(|after| key > after);
    let mut then = bucket.undo(past, wanted).into_iter().peekable();
    let mut live = live.peekable();
    Box::new(
        std::iter::from_fn(move || {
            let order = match (live.peek(), then.peek()) {
                (Some((a, _)), Some((b, _))) => a.cmp(b),
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, _) => std::cmp::Ordering::Greater,
            };
            if order.is_lt() {
                return live.next().map(|(key, entry)| (key, Some(entry)));
            }
            if order.is_eq() {
                live.next();
            }
            then.next()
        })
        .filter_map(|(key, entry)| Some((key, entry?))),
    )
}
