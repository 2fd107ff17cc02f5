//! What would become of the objects of all works if their cluster left its hub with nothing.
//!
//! Each work decides for itself ([`outlook`]), but none of them is alone: an object that two of them hold
//! goes with the last, and a namespace or a definition that one of them brought stays if another leaves
//! something in it.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use cleat_api::managedcluster::RemoveStrategy;

use super::along::take_along;
use super::contents::{Above, Contents, Found, judge};
use super::observed::{Ledger, Observed, Seen};
use super::outlook::{self, Change, Foreseen, Prospect};
use super::retire::{Fate, Unmarked, is_holder};
use crate::id::Id;

/// What is in namespaces and of definitions, or why nobody could look.
pub type Inside = BTreeMap<Id, Result<Vec<Found>, String>>;

/// The outlook for each work by its name, or why there is none.
pub type Outlooks = BTreeMap<String, Result<Vec<Foreseen>, String>>;

type Fates = BTreeMap<String, Result<Vec<(Foreseen, Fate)>, String>>;

/// The namespaces and definitions that works hold and that are there: somebody has to look into them
/// first.
pub fn holders(all: &[Observed]) -> BTreeSet<Id> {
    let mut holders = BTreeSet::new();
    for seen in all {
        let Ledger::Present(book) = &seen.ledger else { continue };
        let held = book.ids().into_iter().filter(|id| is_holder(id));
        let there = held.filter(|id| matches!(seen.live.get(*id), Some(Seen::Present(_))));
        holders.extend(there.cloned());
    }
    holders
}

/// The outlook for everything that any of these works has, which are all that the hub sent.
pub fn leaving(mut all: Vec<Observed>, strategy: RemoveStrategy, inside: &Inside) -> Outlooks {
    if strategy == RemoveStrategy::Required {
        all.iter_mut().for_each(take_marks_of_others_off);
        fill(&mut all, |_, _| Contents::Ours);
        let ends = Ends::of(&fates(&all, strategy));
        fill(&mut all, |id, hub_hash| ends.contents(inside.get(id), hub_hash));
        all.iter_mut().for_each(|seen| ends.take_away(seen));
    }
    let mut outlooks: Outlooks = fates(&all, strategy)
        .into_iter()
        .map(|(name, fates)| (name, fates.map(|all| all.into_iter().map(|(one, _)| one).collect())))
        .collect();
    let mut each: Vec<&mut Foreseen> = outlooks.values_mut().flatten().flatten().collect();
    take_along(&mut each, |_| false);
    outlooks
}

/// The other works of the same hub leave too, so in the end nobody of them holds anything back.
fn take_marks_of_others_off(seen: &mut Observed) {
    let own = seen.ledger_name();
    let hub_hash = &seen.agent.hub_hash;
    for live in seen.live.values_mut() {
        if let Seen::Present(present) = live {
            present.owners.retain(|owner| owner.name == own || !owner.is_of_hub(hub_hash));
        }
    }
}

fn fill(all: &mut [Observed], contents: impl Fn(&Id, &str) -> Contents) {
    for seen in all {
        let holders = holders(core::slice::from_ref(seen));
        let hub_hash = &seen.agent.hub_hash;
        seen.contents =
            holders.into_iter().map(|id| (id.clone(), contents(&id, hub_hash))).collect();
    }
}

/// What each work would do, and where several hold one object, what comes of it in the end.
fn fates(all: &[Observed], strategy: RemoveStrategy) -> Fates {
    let change = Change::Leaving(strategy);
    let mut fates: Fates =
        all.iter().map(|seen| (seen.name.clone(), outlook::fates(seen, change))).collect();
    let ends = shared(&fates);
    for one in fates.values_mut().flatten().flatten() {
        if let Some(end) = ends.get(&one.0.id) {
            end.put_right(&mut one.0);
        }
    }
    fates
}

/// What becomes of an object that several works hold, and do not agree about.
enum End {
    /// This work says by this field that it stays, and what is declared to stay stays.
    Kept(String, &'static str),
    /// This work spares it for the sake of what is in it, and takes the marks of the others off.
    Spared(String),
    Goes(String),
    /// It depends on this work.
    Unclear(String),
}

fn shared(fates: &Fates) -> BTreeMap<Id, End> {
    let mut holders: BTreeMap<&Id, Vec<Holder<'_>>> = BTreeMap::new();
    for (name, all) in fates {
        for (one, fate) in all.iter().flatten() {
            holders.entry(&one.id).or_default().push((name, one, fate));
        }
    }
    let several = holders.into_iter().filter(|(_, holders)| holders.len() > 1);
    several.filter_map(|(id, holders)| Some((id.clone(), End::of(&holders)?))).collect()
}

/// A work that holds an object, what it foresees for it, and in the planner's own words.
type Holder<'a> = (&'a str, &'a Foreseen, &'a Fate);

impl End {
    fn of(holders: &[Holder<'_>]) -> Option<Self> {
        let holder = |wanted: Prospect| holders.iter().find(|(_, one, _)| one.prospect == wanted);
        let work = |wanted: Prospect| holder(wanted).map(|(name, ..)| (*name).to_string());
        let spares = |fate: &Fate| {
            let why = [Unmarked::HoldsKept, Unmarked::HoldsForeign];
            matches!(fate, Fate::Unmark { why: is, .. } if why.contains(is))
        };
        let spared = holders.iter().find(|(_, _, fate)| spares(fate));
        if let (Some((name, ..)), None) = (spared, work(Prospect::Orphan)) {
            return Some(Self::Spared((*name).to_string()));
        }
        let goes_with = work(Prospect::Delete)?;
        // One that takes it for somebody else's only takes its mark off; whether the other then still
        // finds its own mark on it depends on who is first.
        let anew = holders
            .iter()
            .find(|(_, _, fate)| matches!(fate, Fate::Unmark { why: Unmarked::Recreated, .. }));
        let anew = anew.map(|(name, ..)| (*name).to_string());
        Some(match (holder(Prospect::Orphan), work(Prospect::Unknown).or(anew)) {
            (Some((keeper, one, _)), _) => Self::Kept((*keeper).to_string(), one.decided_by),
            (None, Some(other)) => Self::Unclear(other),
            (None, None) => Self::Goes(goes_with),
        })
    }

    fn put_right(&self, one: &mut Foreseen) {
        let (prospect, why, field) = match (self, one.prospect) {
            (Self::Kept(work, field), Prospect::Delete) => {
                (Prospect::Keep, format!("it is declared to stay by work {work}"), *field)
            }
            (Self::Spared(work), Prospect::Delete | Prospect::Unknown) => {
                (Prospect::Keep, format!("work {work} spares it for the sake of what is in it"), "")
            }
            (Self::Goes(work), Prospect::Keep) => {
                (Prospect::Delete, format!("it goes with work {work}"), "spec.removeStrategy")
            }
            (Self::Unclear(work), Prospect::Delete | Prospect::Keep) => {
                let why = format!("it depends on work {work}, which holds it as well");
                (Prospect::Unknown, why, "")
            }
            _ => return,
        };
        (one.prospect, one.why, one.decided_by) = (prospect, why, field);
    }
}

/// What the works leave behind.
#[derive(Default)]
struct Ends {
    /// By incarnation.
    stays: BTreeSet<String>,
    unknown: BTreeSet<Id>,
    /// By incarnation.
    goes: BTreeSet<String>,
}

impl Ends {
    fn of(fates: &Fates) -> Self {
        let mut ends = Self::default();
        for (one, _) in fates.values().flatten().flatten().filter(|(one, _)| !one.uid.is_empty()) {
            match one.prospect {
                Prospect::Keep | Prospect::Orphan => drop(ends.stays.insert(one.uid.clone())),
                Prospect::Unknown => drop(ends.unknown.insert(one.id.clone())),
                Prospect::Delete => drop(ends.goes.insert(one.uid.clone())),
                _ => {}
            }
        }
        ends
    }

    /// What a work only names, and another takes along, keeps nothing in its place.
    fn take_away(&self, seen: &mut Observed) {
        let Ledger::Present(book) = &seen.ledger else { return };
        let own = book.ids();
        for (_, live) in seen.live.iter_mut().filter(|(id, _)| !own.contains(*id)) {
            if let Seen::Present(present) = live
                && self.goes.contains(&present.uid)
            {
                *live = Seen::Absent;
            }
        }
    }

    /// What a namespace or a definition holds by the time that its own turn comes: what works take along is
    /// gone by then, whoever's mark it bears; and what one of them left there is nobody's of ours any more.
    fn contents(&self, inside: Option<&Result<Vec<Found>, String>>, hub_hash: &str) -> Contents {
        let found = match inside {
            None => return Contents::Unknown("what it holds was not looked at".into()),
            Some(Err(why)) => return Contents::Unknown(why.clone()),
            Some(Ok(found)) => found,
        };
        let left: Vec<Found> = found.iter().cloned().map(|one| self.in_the_end(one)).collect();
        let unknown = found.iter().find(|one| self.unknown.contains(&one.id));
        match (judge(&left, hub_hash), unknown) {
            (Contents::Waiting(_) | Contents::Ours, Some(one)) => {
                Contents::Unknown(format!("what becomes of {} in it is not known", one.id))
            }
            (contents, _) => contents,
        }
    }

    fn in_the_end(&self, one: Found) -> Found {
        let mut one = one.once_going(|uid| self.goes.contains(uid));
        if self.stays.contains(&one.uid) {
            one.owners.clear();
            one.terminating = false;
        }
        for (_, above) in one.above.iter_mut().filter(|(uid, _)| self.stays.contains(*uid)) {
            *above = Above::There { terminating: false, owners: Vec::new() };
        }
        one
    }
}
