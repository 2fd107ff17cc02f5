//! All that a mirror knows of one kind. Pure but for the hash and the notification.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

use cleat_core::id::Id;
use jiff::Timestamp;
use serde_json::value::RawValue;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::meta::{Head, Meta, Owners};
use super::names::{Named, Names};
use super::pages::Pages;
use super::{GRACE, Look, Reason};
use crate::known::{Known, Sure};
use crate::reflect::Wish;
use crate::watch::{Ask, Fault, PAGE};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct KindName {
    pub(super) group: Box<str>,
    pub(super) resource: Box<str>,
}

impl KindName {
    pub(super) fn of(id: &Id) -> Self {
        Self { group: id.group.as_str().into(), resource: id.resource.as_str().into() }
    }
}

pub(super) struct Kind {
    /// In which somebody cares; the one that is asked for is at `version`.
    versions: Vec<Box<str>>,
    version: usize,
    /// How many of them turned out not to be served.
    unserved: usize,
    spots: BTreeMap<Box<str>, BTreeMap<Named, Entry>>,
    cared_about: usize,
    idle_since: Option<Instant>,
    /// Of what nothing can be said before it was read.
    unread: BTreeSet<Arc<Id>>,
    /// Those of them that the server does not let us read, and what it says.
    unreadable: BTreeMap<Arc<Id>, String>,
    names: Names,
    /// What a list under way has told of so far.
    listing: Option<HashSet<u64>>,
    /// How its pages went.
    pages: Pages,
    round: u32,
    /// A list was read whole.
    synced: bool,
    relist: bool,
    reached: u64,
    /// Names that we wrote, by the revision of the write, as long as the watch tells of an earlier
    /// time: it may yet tell of the end of what was there before.
    ahead: BTreeSet<(u64, u64)>,
    line: Line,
    attention: Arc<Notify>,
}

struct Entry {
    known: Known<Arc<Meta>>,
    holders: u32,
    /// The round of the list that last had it.
    listed: u32,
}

enum Line {
    New,
    Up,
    Down { since: Instant, at: Timestamp, fault: Fault },
}

/// What must be read one by one.
#[derive(Default)]
pub(super) struct Settling {
    pub(super) read: Vec<Arc<Id>>,
}

/// Reading one object costs the server about as much as so much of a page of a list.
pub(super) const READS_PER_PAGE: usize = 20;

impl Kind {
    pub(super) fn new() -> Self {
        Self {
            versions: Vec::new(),
            version: 0,
            unserved: 0,
            spots: BTreeMap::new(),
            cared_about: 0,
            idle_since: None,
            unread: BTreeSet::new(),
            unreadable: BTreeMap::new(),
            names: Names::default(),
            listing: None,
            pages: Pages::default(),
            round: 0,
            synced: false,
            relist: false,
            reached: 0,
            ahead: BTreeSet::new(),
            line: Line::New,
            attention: Arc::new(Notify::new()),
        }
    }

    pub(super) fn version(&self) -> &str {
        self.versions.get(self.version).map_or("", AsRef::as_ref)
    }

    pub(super) fn attention(&self) -> Arc<Notify> {
        Arc::clone(&self.attention)
    }

    pub(super) fn is_cared_about(&self) -> bool {
        self.cared_about > 0
    }

    pub(super) fn wish(&self, linger: Duration) -> Wish {
        match self.idle_since {
            Some(since) => Wish::EndAt(since + linger),
            None if self.relist => Wish::List,
            None => Wish::GoOn,
        }
    }

    pub(super) fn care(&mut self, id: &Id, version: &str) -> Arc<Id> {
        if !self.versions.iter().any(|known| **known == *version) {
            self.versions.push(version.into());
            // It may be served in this one.
            if self.is_unserved() {
                self.unserved = 0;
                self.attention.notify_one();
            }
        }
        if let Some((named, entry)) = self.entry(&id.namespace, &id.name) {
            entry.holders += 1;
            return named;
        }
        if self.idle_since.take().is_some() {
            self.attention.notify_one();
        }
        let id = Arc::new(id.clone());
        // The watch tells of everything, so a name it never told of is not there.
        let up_to_date = self.synced && self.listing.is_none();
        let hash = self.names.hash(&id.namespace, &id.name);
        let told_of = self.names.contains(hash) || self.ahead.iter().any(|(_, name)| *name == hash);
        let known = if up_to_date && !told_of {
            Known::absent(self.reached, self.round)
        } else {
            self.unread.insert(Arc::clone(&id));
            Known::unread(self.round)
        };
        let entry = Entry { known, holders: 1, listed: 0 };
        let of_namespace = self.spots.entry(id.namespace.as_str().into()).or_default();
        of_namespace.insert(Named(Arc::clone(&id)), entry);
        self.cared_about += 1;
        id
    }

    /// One who cared does not any more. Whether nobody does.
    pub(super) fn care_less(&mut self, id: &Id) -> bool {
        let Some((_, entry)) = self.entry(&id.namespace, &id.name) else { return true };
        entry.holders = entry.holders.saturating_sub(1);
        if entry.holders > 0 {
            return false;
        }
        self.unread.remove(id);
        self.unreadable.remove(id);
        if let Some(of_namespace) = self.spots.get_mut(id.namespace.as_str()) {
            of_namespace.remove(id.name.as_str());
            if of_namespace.is_empty() {
                self.spots.remove(id.namespace.as_str());
            }
        }
        self.cared_about = self.cared_about.saturating_sub(1);
        if self.cared_about == 0 {
            self.idle_since = Some(Instant::now());
            self.attention.notify_one();
        }
        true
    }

    pub(super) fn look(&self, id: &Id, now: Instant) -> Look {
        match &self.line {
            Line::Down { fault: Fault::NoSuchKind, .. } => return Look::NoSuchKind,
            Line::Down { fault: Fault::Unwatchable, .. } => {
                return Look::Unknown(Reason::Unwatchable);
            }
            Line::Down { fault: Fault::Forbidden(message), .. } => {
                return Look::Unknown(Reason::Forbidden(message.clone()));
            }
            Line::Down { since, at, fault: Fault::Failed(message) }
                if !self.synced || now.duration_since(*since) >= GRACE =>
            {
                let (since, message) = (*at, message.clone());
                return Look::Unknown(Reason::Unreachable { since, message });
            }
            Line::New | Line::Up | Line::Down { .. } => {}
        }
        let spot = self.spots.get(id.namespace.as_str());
        match spot.and_then(|names| names.get(id.name.as_str())).map(|entry| entry.known.sure()) {
            Some(Sure::Absent) => Look::Absent,
            Some(Sure::Present(meta)) => Look::Present(Arc::clone(meta)),
            Some(Sure::Unread) | None => Look::Unknown(match self.unreadable.get(id) {
                Some(message) => Reason::Forbidden(message.clone()),
                None => Reason::NotReadYet,
            }),
        }
    }

    /// What to do about what is not known: read it one by one, or list, whichever costs less.
    pub(super) fn settle(&mut self) -> Settling {
        if !self.synced || self.listing.is_some() {
            return Settling::default();
        }
        if self.unread.len() > READS_PER_PAGE * (1 + self.names.len() / PAGE) {
            self.relist = true;
            self.attention.notify_one();
            return Settling::default();
        }
        Settling { read: self.unread.iter().cloned().collect() }
    }

    pub(super) fn list_began(&mut self) {
        self.round = self.round.wrapping_add(1);
        self.relist = false;
        self.listing = Some(HashSet::with_capacity(self.names.len()));
        self.pages = Pages::default();
    }

    /// How to ask for the next page. `room`: for how many bytes of whole objects there is room.
    pub(super) fn ask(&self, room: usize) -> Ask {
        self.pages.next(self.unread.len(), room)
    }

    /// A page was taken in, with so many objects of which something new was told. `bytes`: of all of
    /// them, if they were whole.
    pub(super) fn page_ended(&mut self, objects: usize, wanted: usize, bytes: Option<usize>) {
        self.pages.told(objects, wanted, bytes);
    }

    pub(super) fn listed(
        &mut self,
        head: &Head<'_>,
        object: &RawValue,
        revision: Option<u64>,
        owners: &mut Owners,
    ) -> Option<Arc<Id>> {
        let hash = self.names.hash(&head.namespace, &head.name);
        self.listing.get_or_insert_default().insert(hash);
        let round = self.round;
        let (id, entry) = self.entry(&head.namespace, &head.name)?;
        entry.listed = round;
        let changed = entry.known.listed(Some(owners.meta_of_text(object)?), revision, round);
        self.settled(id, changed)
    }

    /// Gives what changed by not being in the list.
    pub(super) fn list_ended(&mut self, revision: Option<u64>) -> Vec<Arc<Id>> {
        self.names.replace(self.listing.take().unwrap_or_default());
        self.synced = true;
        self.reached = revision.unwrap_or_default();
        self.catch_up();
        let Self { spots, names, unread, unreadable, round, .. } = self;
        let mut changed = Vec::new();
        for (Named(id), entry) in spots.values_mut().flatten() {
            // One that came to be cared about after the list had told of it must be read.
            let hash = names.hash(&id.namespace, &id.name);
            if entry.listed == *round || names.contains(hash) {
                continue;
            }
            if entry.known.listed(None, revision, *round) {
                changed.push(Arc::clone(id));
            }
            if !matches!(entry.known.sure(), Sure::Unread) {
                unread.remove(id);
                unreadable.remove(id);
            }
        }
        changed
    }

    pub(super) fn changed(
        &mut self,
        head: &Head<'_>,
        object: &RawValue,
        owners: &mut Owners,
    ) -> Option<Arc<Id>> {
        self.names.insert(&head.namespace, &head.name);
        let round = self.round;
        let (id, entry) = self.entry(&head.namespace, &head.name)?;
        let changed = entry.known.changed(owners.meta_of_text(object)?, round);
        self.settled(id, changed)
    }

    pub(super) fn deleted(&mut self, head: &Head<'_>) -> Option<Arc<Id>> {
        self.names.remove(&head.namespace, &head.name);
        let round = self.round;
        let (id, entry) = self.entry(&head.namespace, &head.name)?;
        let revision = head.resource_version.parse().ok();
        let changed = entry.known.deleted(&head.uid, revision, round);
        self.settled(id, changed)
    }

    pub(super) fn reached(&mut self, revision: u64) {
        self.reached = self.reached.max(revision);
        self.catch_up();
    }

    fn catch_up(&mut self) {
        let next = (self.reached.saturating_add(1), 0);
        if self.ahead.first().is_some_and(|first| *first < next) {
            self.ahead = self.ahead.split_off(&next);
        }
    }

    pub(super) fn wrote(&mut self, id: &Id, meta: Arc<Meta>) -> Option<Arc<Id>> {
        self.names.insert(&id.namespace, &id.name);
        let hash = self.names.hash(&id.namespace, &id.name);
        if let Some(listing) = &mut self.listing {
            listing.insert(hash);
        }
        let revision = meta.resource_version.parse().unwrap_or(u64::MAX);
        if revision > self.reached {
            self.ahead.insert((revision, hash));
        }
        let round = self.round;
        let (id, entry) = self.entry(&id.namespace, &id.name)?;
        let changed = entry.known.wrote(meta, round);
        self.settled(id, changed)
    }

    pub(super) fn gone(&mut self, id: &Id, uid: &str) -> Option<Arc<Id>> {
        let round = self.round;
        let (id, entry) = self.entry(&id.namespace, &id.name)?;
        let changed = entry.known.gone(uid, round);
        self.settled(id, changed)
    }

    pub(super) fn doubt(&mut self, id: &Id) -> Option<Arc<Id>> {
        let (id, entry) = self.entry(&id.namespace, &id.name)?;
        let changed = entry.known.doubt();
        self.settled(id, changed)
    }

    /// What was told of an object so far, if it must be read.
    pub(super) fn unsettled(&mut self, id: &Id) -> Option<(Arc<Id>, u32)> {
        if !self.unread.contains(id) {
            return None;
        }
        let (id, entry) = self.entry(&id.namespace, &id.name)?;
        Some((id, entry.known.told()))
    }

    /// A read of one object gave this. Err: it must be read again.
    pub(super) fn read(
        &mut self,
        id: &Id,
        meta: Option<Arc<Meta>>,
        told: u32,
    ) -> Result<Option<Arc<Id>>, ()> {
        let round = self.round;
        let Some((id, entry)) = self.entry(&id.namespace, &id.name) else { return Ok(None) };
        let changed = entry.known.read(meta, told, round).ok_or(())?;
        Ok(self.settled(id, changed))
    }

    /// The server does not let us read an object. Gives whom to tell, if that is news.
    pub(super) fn unreadable(&mut self, id: &Arc<Id>, message: String) -> Option<Arc<Id>> {
        let news = self.unread.contains(id) && self.unreadable.get(id) != Some(&message);
        news.then(|| {
            self.unreadable.insert(Arc::clone(id), message);
            Arc::clone(id)
        })
    }

    /// The kind may have appeared or gone.
    pub(super) fn check(&mut self) {
        self.relist = true;
        self.attention.notify_one();
    }

    pub(super) fn is_unserved(&self) -> bool {
        matches!(self.line, Line::Down { fault: Fault::NoSuchKind, .. })
    }

    /// Gives whom to tell: all, if that it is up is news.
    pub(super) fn up(&mut self, now: Instant) -> Vec<Arc<Id>> {
        let blind = self.is_blind(now);
        self.line = Line::Up;
        self.unserved = 0;
        if blind { self.ids() } else { Vec::new() }
    }

    /// The same. The second is whether to come back to that after a while.
    pub(super) fn down(&mut self, fault: &Fault, now: Instant) -> (Vec<Arc<Id>>, bool) {
        if *fault == Fault::NoSuchKind && self.unserved + 1 < self.versions.len() {
            self.unserved += 1;
            self.version = (self.version + 1) % self.versions.len();
            self.attention.notify_one();
            return (Vec::new(), false);
        }
        let (blind, clear) = (self.is_blind(now), matches!(self.line, Line::New | Line::Up));
        let (since, at) = match &self.line {
            Line::Down { since, at, fault: Fault::Failed(_) } => (*since, *at),
            Line::New | Line::Up | Line::Down { .. } => (now, Timestamp::now()),
        };
        self.line = Line::Down { since, at, fault: fault.clone() };
        let news = blind != self.is_blind(now);
        (if news { self.ids() } else { Vec::new() }, clear)
    }

    /// Whether nothing can be said although it was listed.
    pub(super) fn is_blind(&self, now: Instant) -> bool {
        match &self.line {
            Line::New | Line::Up => false,
            Line::Down { since, fault: Fault::Failed(_), .. } => {
                !self.synced || now.duration_since(*since) >= GRACE
            }
            Line::Down { .. } => true,
        }
    }

    pub(super) fn ids(&self) -> Vec<Arc<Id>> {
        self.spots.values().flat_map(BTreeMap::keys).map(|Named(id)| Arc::clone(id)).collect()
    }

    fn entry(&mut self, namespace: &str, name: &str) -> Option<(Arc<Id>, &mut Entry)> {
        let of_namespace = self.spots.get_mut(namespace)?;
        let (Named(id), _) = of_namespace.get_key_value(name)?;
        let id = Arc::clone(id);
        Some((id, of_namespace.get_mut(name)?))
    }

    /// Keeps in mind whether it must be read, and gives it back if it changed.
    fn settled(&mut self, id: Arc<Id>, changed: bool) -> Option<Arc<Id>> {
        let (_, entry) = self.entry(&id.namespace, &id.name)?;
        if matches!(entry.known.sure(), Sure::Unread) {
            self.unread.insert(Arc::clone(&id));
        } else {
            self.unread.remove(&id);
            self.unreadable.remove(&id);
        }
        changed.then_some(id)
    }
}

#[cfg(test)]
mod tests;
