//! What would become of a work's objects if it were deleted or its cluster left, before anything is
//! done.
//!
//! It is the planner's own decision ([`retire`]) about a world in which that has begun, so that a
//! preview cannot say anything but what the execution does.

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use cleat_api::managedcluster::RemoveStrategy;

use super::along::take_along;
use super::contents::Contents;
use super::observed::{Book, Hub, Ledger, Observed, Origin, Seen};
use super::ownership::{Ownership, origin};
use super::retire::{self, Fate, Settled, Unmarked};
use crate::id::Id;

/// What somebody thinks of doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Deleting the work.
    Deleted,
    /// Letting the cluster leave.
    Leaving(RemoveStrategy),
}

/// What would become of one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Prospect {
    Delete,
    /// It goes, and another takes its place.
    Recreate,
    Create,
    Change,
    /// It is there, and is taken over.
    Adopt,
    /// It stays because the work says so; our mark comes off.
    Orphan,
    /// It stays because it is, or is also, somebody else's.
    Keep,
    /// It stays because its cluster leaves with everything; our mark comes off.
    StripMarks,
    /// There is nothing of that name.
    Gone,
    /// What is asked for cannot be done.
    Stuck,
    /// It is as it should be.
    Unchanged,
    /// It cannot be said, so nothing would be done about it until it can.
    Unknown,
}

/// One object, and why that would become of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Foreseen {
    pub id: Id,
    pub version: String,
    /// Which incarnation; empty if none was seen.
    pub uid: String,
    pub prospect: Prospect,
    pub why: String,
    /// The field that decided it; empty if no field did.
    pub decided_by: &'static str,
    /// The work found it there rather than making it.
    pub adopted: bool,
    /// What already holds it back, if it is on its way out.
    pub finalizers: Vec<String>,
}

/// The outlook for everything that the work has on the cluster, or why there is none.
///
/// It is of this work alone: works that leave together are asked by [`leaving`](super::leaving).
pub fn outlook(seen: &Observed, change: Change) -> Result<Vec<Foreseen>, String> {
    let fates = fates(seen, change)?;
    let mut all: Vec<Foreseen> = fates.into_iter().map(|(one, _)| one).collect();
    take_along(&mut all.iter_mut().collect::<Vec<_>>(), |_| false);
    Ok(all)
}

/// The same by the planner's own words, and without what goes along.
pub(super) fn fates(seen: &Observed, change: Change) -> Result<Vec<(Foreseen, Fate)>, String> {
    let seen = imagined(seen, change);
    if let Hub::Unknown(why) = &seen.hub {
        return Err(format!("the hub cannot be seen: {why}"));
    }
    let book = match &seen.ledger {
        Ledger::Present(book) => book,
        Ledger::Absent => return Ok(Vec::new()),
        Ledger::NotYet => return Err("the ledger was not read yet".to_string()),
        Ledger::Unknown(why) => return Err(format!("the ledger cannot be read: {why}")),
    };
    let goes = match seen.leaving {
        Some(_) => {
            Goes { why: "the cluster leaves with nothing", decided_by: "spec.removeStrategy" }
        }
        None => Goes { why: "it goes with the work", decided_by: DELETE_OPTION },
    };
    let fates = retire::fates(&seen, book, book.ids().into_iter());
    let told = |(id, fate): (&Id, Fate)| (foreseen(&seen, book, id, fate.clone(), goes), fate);
    Ok(fates.into_iter().map(told).collect())
}

/// Why an object goes that nothing keeps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Goes {
    pub(super) why: &'static str,
    pub(super) decided_by: &'static str,
}

/// The world in which that has just begun. What holds a namespace up only until other things of ours
/// are gone is no obstacle in the end.
fn imagined(seen: &Observed, change: Change) -> Observed {
    let mut seen = seen.clone();
    if let Hub::Work(work) = &mut seen.hub {
        work.deleting = true;
    }
    match change {
        Change::Deleted => {}
        Change::Leaving(strategy) => seen.leaving = Some(strategy),
    }
    for contents in seen.contents.values_mut() {
        if let Contents::Waiting(_) = contents {
            *contents = Contents::Ours;
        }
    }
    seen
}

pub(super) fn foreseen(seen: &Observed, book: &Book, id: &Id, fate: Fate, goes: Goes) -> Foreseen {
    let present = match seen.live.get(id) {
        Some(Seen::Present(present)) => Some(present),
        _ => None,
    };
    let adopted = present.is_some_and(|present| origin(book, id, present) == Origin::Adopted);
    let finalizers = present.and_then(|present| present.terminating.clone());
    // Nobody can take back a deletion that was accepted, whatever the work says by now.
    let fate = match &finalizers {
        Some(finalizers) => Fate::Terminating(finalizers.clone()),
        None => fate,
    };
    let (prospect, why, decided_by) = said(seen, book, id, fate, goes);
    let recorded = book.applied.get(id).map(|applied| applied.version.clone());
    Foreseen {
        id: id.clone(),
        version: seen.versions.get(id).cloned().or(recorded).unwrap_or_default(),
        uid: present.map(|present| present.uid.clone()).unwrap_or_default(),
        prospect,
        why,
        decided_by,
        adopted,
        finalizers: finalizers.unwrap_or_default(),
    }
}

pub(super) const DELETE_OPTION: &str = "spec.deleteOption";

/// Why an object stays that another work holds.
pub(crate) const SHARED: &str = "another work holds it as well";

fn said(
    seen: &Observed,
    book: &Book,
    id: &Id,
    fate: Fate,
    goes: Goes,
) -> (Prospect, String, &'static str) {
    let by = |prospect, why: &str, field| (prospect, why.to_string(), field);
    match fate {
        Fate::Delete { .. } => by(Prospect::Delete, goes.why, goes.decided_by),
        Fate::Terminating(_) => by(Prospect::Delete, "it is being deleted already", ""),
        Fate::Settled(Settled::Gone) => by(Prospect::Gone, "there is nothing of that name", ""),
        Fate::Settled(Settled::NotOurs) => match kept_by(seen, book, id) {
            Some(field) => by(prospect_of(field), "it is declared to stay", field_of(field)),
            None => by(Prospect::Keep, "it does not bear the mark of this work", ""),
        },
        Fate::Unmark { why: Unmarked::Kept(field), .. } => {
            by(prospect_of(field), "it is declared to stay", field_of(field))
        }
        Fate::Unmark { why: Unmarked::Shared, .. } => by(Prospect::Keep, SHARED, ""),
        Fate::Unmark { why: Unmarked::Recreated, .. } => {
            by(Prospect::Keep, "somebody made it anew", "")
        }
        Fate::Unmark { why: Unmarked::HoldsKept, .. } => {
            by(Prospect::Keep, "something in it is declared to stay", DELETE_OPTION)
        }
        Fate::Unmark { why: Unmarked::HoldsForeign, .. } => {
            by(Prospect::Keep, "it holds what is not ours", "")
        }
        Fate::Unknown(why) => (Prospect::Unknown, why, ""),
        Fate::Undecided(why) => (Prospect::Unknown, why, DELETE_OPTION),
    }
}

/// What says that an object without our mark was to stay, if anything does.
fn kept_by(seen: &Observed, book: &Book, id: &Id) -> Option<&'static str> {
    let Some(Seen::Present(present)) = seen.live.get(id) else { return None };
    match retire::wish(seen, book, id, present) {
        Ownership::Kept(field) => Some(field),
        Ownership::Owned | Ownership::Undecided(_) => None,
    }
}

fn prospect_of(field: &str) -> Prospect {
    if field == retire::NEEDLESS { Prospect::StripMarks } else { Prospect::Orphan }
}

/// The path of a field that planners know by a shorter name.
pub(super) fn field_of(field: &'static str) -> &'static str {
    match field {
        retire::NEEDLESS => "spec.removeStrategy",
        "deleteOption" => DELETE_OPTION,
        other => other,
    }
}
