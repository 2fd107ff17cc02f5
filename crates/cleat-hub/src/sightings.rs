//! What this process has seen of clusters that come and go, and when it last decided each placement,
//! by its own clock. Kept in memory: who begins anew has seen nothing, and is careful.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cleat_core::placement::{Cluster, Sightings};
use jiff::{SignedDuration, Timestamp};

use crate::followed::Key;

/// Its clones are the same.
#[derive(Clone)]
pub(crate) struct Watched {
    state: Arc<Mutex<State>>,
}

struct State {
    since: Timestamp,
    /// The last moment that was given out.
    latest: Timestamp,
    away: BTreeMap<String, Away>,
    looked: BTreeMap<Key, Timestamp>,
}

/// How it is with a cluster that was seen away.
#[derive(Clone, Copy)]
enum Away {
    Still,
    Until(Timestamp),
}

impl State {
    /// Later than all before, whatever is done to the clock: what was first must be seen to be.
    fn moment(&mut self) -> Timestamp {
        let next = self.latest.checked_add(SignedDuration::from_nanos(1)).unwrap_or(self.latest);
        self.latest = Timestamp::now().max(next);
        self.latest
    }
}

impl Watched {
    pub(crate) fn new() -> Self {
        let since = Timestamp::now();
        let (away, looked) = (BTreeMap::new(), BTreeMap::new());
        Self { state: Arc::new(Mutex::new(State { since, latest: since, away, looked })) }
    }

    /// A cluster changed. To be told before its placements are looked at for it: a look that began
    /// before may not have known.
    pub(crate) fn saw(&self, old: Option<&Cluster>, new: Option<&Cluster>) {
        let mut state = self.state();
        match (old, new) {
            (_, Some(new)) if new.is_away() => {
                state.away.insert(new.name.clone(), Away::Still);
            }
            (_, Some(new)) => {
                if let Some(Away::Still) = state.away.get(&new.name) {
                    let moment = state.moment();
                    state.away.insert(new.name.clone(), Away::Until(moment));
                }
            }
            (Some(gone), None) => drop(state.away.remove(&gone.name)),
            (None, None) => {}
        }
    }

    /// To be asked before a placement is looked at.
    pub(crate) fn begin(&self) -> Timestamp {
        self.state().moment()
    }

    /// A look that began then found all decisions of the placement as they should be.
    pub(crate) fn looked(&self, placement: Key, began: Timestamp) {
        self.state().looked.insert(placement, began);
    }

    pub(crate) fn forget(&self, placement: &Key) {
        self.state().looked.remove(placement);
    }

    /// What matters to those who use these placements, which this process decides. To be asked
    /// before a server is asked for their decisions.
    pub(crate) fn of(&self, placements: impl Iterator<Item = Key>) -> Sightings {
        let mut state = self.state();
        let moment = state.moment();
        let away = state.away.iter().map(|(name, away)| match away {
            Away::Still => (name.clone(), moment),
            Away::Until(until) => (name.clone(), *until),
        });
        let away = away.collect();
        let looked = placements.map(|key| {
            let began = state.looked.get(&key).copied();
            (key.1, began)
        });
        let looked = looked.collect();
        Sightings { since: state.since, away, looked }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
