//! Which key is next. Pure: the time is an argument.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use tokio::time::Instant;

pub(super) struct Schedule<K> {
    /// Due, in the order of becoming so.
    due: VecDeque<K>,
    /// Not due yet.
    waiting: BTreeSet<(Instant, K)>,
    /// Where every key is; one that is not here is nowhere.
    places: BTreeMap<K, Place>,
    running: usize,
    closed: bool,
}

#[derive(Clone, Copy)]
enum Place {
    Due,
    Waiting(Instant),
    Running(Again),
}

/// What was asked for while a key is being handled.
#[derive(Clone, Copy)]
enum Again {
    No,
    Now,
    At(Instant),
}

impl<K: Ord + Clone> Schedule<K> {
    pub(super) fn new() -> Self {
        Self {
            due: VecDeque::new(),
            waiting: BTreeSet::new(),
            places: BTreeMap::new(),
            running: 0,
            closed: false,
        }
    }

    /// Whether whoever waits for a key should look again.
    pub(super) fn add(&mut self, key: K) -> bool {
        if self.closed {
            return false;
        }
        match self.places.get_mut(&key) {
            Some(Place::Due) => false,
            Some(Place::Running(again)) => {
                *again = Again::Now;
                false
            }
            Some(place @ &mut Place::Waiting(at)) => {
                *place = Place::Due;
                let waiting = self.waiting.take(&(at, key));
                self.due.extend(waiting.map(|(_, key)| key));
                true
            }
            None => {
                self.places.insert(key.clone(), Place::Due);
                self.due.push_back(key);
                true
            }
        }
    }

    /// The same, once it is `at`.
    pub(super) fn add_at(&mut self, key: K, at: Instant) -> bool {
        if self.closed {
            return false;
        }
        match self.places.get_mut(&key) {
            Some(Place::Due) => return false,
            Some(Place::Running(again)) => {
                *again = again.or_at(at);
                return false;
            }
            Some(Place::Waiting(before)) if *before <= at => return false,
            Some(Place::Waiting(before)) => {
                self.waiting.remove(&(*before, key.clone()));
            }
            None => {}
        }
        self.places.insert(key.clone(), Place::Waiting(at));
        self.waiting.insert((at, key));
        true
    }

    /// The next key, now being handled; and when to look again if there is none.
    pub(super) fn take(&mut self, now: Instant) -> (Option<K>, Option<Instant>) {
        if self.closed {
            return (None, None);
        }
        while let Some((at, _)) = self.waiting.first()
            && *at <= now
            && let Some((_, key)) = self.waiting.pop_first()
        {
            self.places.insert(key.clone(), Place::Due);
            self.due.push_back(key);
        }
        let key = self.due.pop_front();
        if let Some(key) = &key {
            self.places.insert(key.clone(), Place::Running(Again::No));
            self.running += 1;
        }
        (key, self.waiting.first().map(|(at, _)| *at))
    }

    /// The handling of `key` ended.
    pub(super) fn finish(&mut self, key: &K, again: Option<Instant>) {
        let Some(Place::Running(asked)) = self.places.get(key).copied() else { return };
        self.places.remove(key);
        self.running = self.running.saturating_sub(1);
        let asked = again.map_or(asked, |at| asked.or_at(at));
        match asked {
            Again::No => {}
            Again::Now => drop(self.add(key.clone())),
            Again::At(at) => drop(self.add_at(key.clone(), at)),
        }
    }

    pub(super) fn close(&mut self) {
        self.closed = true;
        self.due.clear();
        self.waiting.clear();
        self.places.retain(|_, place| matches!(place, Place::Running(_)));
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    pub(super) fn busy(&self) -> usize {
        self.due.len() + self.running
    }
}

impl Again {
    fn or_at(self, at: Instant) -> Self {
        match self {
            Self::No => Self::At(at),
            Self::Now => Self::Now,
            Self::At(before) => Self::At(before.min(at)),
        }
    }
}
