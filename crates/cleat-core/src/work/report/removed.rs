//! What a living work says of objects that left its manifests and do not go.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use cleat_api::manifestwork::{condition as kinds, reason};

use super::Found;
use super::deleting::{held_up, waits_for};
use crate::id::Id;
use crate::protection::denial::PROTECTED_BY;
use crate::work::converge;
use crate::work::observed::{Book, Observed};
use crate::work::retire::{self, Fate};
use crate::work::trouble::TroubleKind;

/// How many objects are named.
const NAMED: usize = 5;

/// `None`: nothing stands in the way of what the work let go of.
pub(super) fn held(seen: &Observed, book: &Book) -> Option<Found> {
    let leaving = converge::leaving(seen, book);
    let fates = retire::fates(seen, book, leaving.iter());
    let protected = retire::protected(seen, &fates);
    let waiting = fates.iter().filter(|(id, fate)| is_held(seen, id, fate));
    let held: Vec<(&Id, String)> =
        waiting.map(|(id, fate)| (*id, waits_for(seen, id, fate))).collect();
    let named: Vec<_> = held.iter().take(NAMED).map(|(id, why)| format!("{id} ({why})")).collect();
    let more = match held.len().saturating_sub(NAMED) {
        0 => "".into(),
        more => format!("; and {more} more"),
    };
    let what = match held.len() {
        0 => return None,
        1 => "1 object that left the work remains".into(),
        many => format!("{many} objects that left the work remain"),
    };
    let message = format!("{what}: {}{more}", named.join("; "));
    let why = match held.iter().any(|(id, _)| protected.contains_key(*id)) {
        true => PROTECTED_BY,
        false => reason::OBJECTS_REMAIN,
    };
    Some(Found::new(kinds::REMOVED, "False", why, message))
}

/// Whether there is more to say of it than that it is on its way.
fn is_held(seen: &Observed, id: &Id, fate: &Fate) -> bool {
    let trouble = seen.troubles.get(id).filter(|trouble| trouble.kind != TroubleKind::Stale);
    match fate {
        Fate::Settled(_) => false,
        Fate::Undecided(_) | Fate::Unknown(_) => true,
        Fate::Terminating(finalizers) => !finalizers.is_empty() || held_up(seen, id).is_some(),
        Fate::Unmark { .. } | Fate::Delete { .. } => trouble.is_some(),
    }
}
