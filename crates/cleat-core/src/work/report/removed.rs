//! What a living work says of objects that left its manifests and may not go yet.

use alloc::format;
use alloc::vec::Vec;

use cleat_api::manifestwork::condition as kinds;

use super::Found;
use super::deleting::waits_for;
use crate::protection::denial::PROTECTED_BY;
use crate::work::converge;
use crate::work::observed::{Book, Observed};
use crate::work::retire;

/// How many objects are named.
const NAMED: usize = 5;

/// `None`: no CriticalService keeps anything that the work let go of.
pub(super) fn held(seen: &Observed, book: &Book) -> Option<Found> {
    let leaving = converge::leaving(seen, book);
    let fates = retire::fates(seen, book, leaving.iter());
    let protected = retire::protected(seen, &fates);
    let named = protected.keys().take(NAMED).filter_map(|id| {
        let fate = fates.get(*id)?;
        Some(format!("{id} ({})", waits_for(seen, id, fate)))
    });
    let named: Vec<_> = named.collect();
    let more = match protected.len().saturating_sub(NAMED) {
        0 => "".into(),
        more => format!("; and {more} more"),
    };
    let what = match protected.len() {
        0 => return None,
        1 => "1 object that left the work remains".into(),
        many => format!("{many} objects that left the work remain"),
    };
    let message = format!("{what}: {}{more}", named.join("; "));
    Some(Found::new(kinds::REMOVED, "False", PROTECTED_BY, message))
}
