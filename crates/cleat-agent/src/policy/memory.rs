//! What a controller remembers between passes, and may lose at any time: what was done and not
//! reported, what failed and when to try again, and which differences make none to the server.
//!
//! Nothing here is needed for a pass to be right; it saves reads and writes.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cleat_api::configurationpolicy::state;
use cleat_core::id::Id;
use cleat_core::policy::observed::{Observed, Subject};
use cleat_core::protection::Heard;
use cleat_core::work::repair::Repairs;
use cleat_core::write::{Action, Outcome, Plan, Write};
use jiff::Timestamp;

use super::Key;

#[derive(Default)]
pub(super) struct Memory {
    lives: Mutex<BTreeMap<Key, Life>>,
}

/// What is remembered of one policy.
#[derive(Default)]
pub(super) struct Life {
    pub(super) memory: cleat_core::policy::Memory,
    /// Updates of which the server said that they change nothing, by what would have been sent.
    pub(super) no_change: BTreeMap<Id, u64>,
    repairs: BTreeMap<Id, Repairs>,
    /// How the CriticalServices that keep objects were when that was last looked at.
    pub(super) protections: Heard,
    /// The policy that all this is about, and as it was then: under its name may be another now.
    uid: String,
    generation: i64,
}

impl Memory {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Life>> {
        self.lives.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn with<T>(&self, key: &Key, look: impl FnOnce(&mut Life) -> T) -> T {
        look(self.lock().entry(key.clone()).or_default())
    }

    pub(super) fn forget(&self, key: &Key) {
        self.lock().remove(key);
    }
}

impl Life {
    /// What is remembered of the policy as it is now: what was refused before may be asked for
    /// differently, and another policy has no past.
    pub(super) fn of(&mut self, uid: &str, generation: i64) -> cleat_core::policy::Memory {
        if self.uid != uid {
            *self = Self { uid: uid.to_owned(), generation, ..Self::default() };
        } else if self.generation != generation {
            self.memory.troubles.clear();
            self.repairs.clear();
            self.no_change.clear();
        }
        self.generation = generation;
        self.memory.clone()
    }

    /// Takes in what came of an action.
    pub(super) fn happened(
        &mut self,
        seen: &Observed,
        action: &Action,
        outcome: &Outcome,
        now: Timestamp,
    ) {
        self.memory = std::mem::take(&mut self.memory).after(action, outcome, now);
        if outcome.is_done() && is_about_an_object(action) && was_right(seen) {
            let before = self.repairs.get(&action.target.id).copied();
            self.repairs.insert(action.target.id.clone(), Repairs::after(before, now));
        }
    }
}

/// Whether all was as it must be: then what has to be done now, somebody else undid.
fn was_right(seen: &Observed) -> bool {
    let Subject::Policy(policy) = &seen.policy else { return false };
    !policy.deleting
        && policy.status.compliant.as_deref() == Some(state::COMPLIANT)
        && policy.status.last_evaluated_generation == Some(policy.generation)
}

fn is_about_an_object(action: &Action) -> bool {
    let writes =
        matches!(action.write, Write::Create(_) | Write::Replace(_) | Write::Delete { .. });
    writes && !(action.target.id.resource == "events" && action.target.id.group.is_empty())
}

/// The plan without what somebody else keeps undoing, and when that may be tried again.
pub(super) fn held_back(life: &mut Life, plan: Plan) -> (Plan, Option<Timestamp>) {
    let now = Timestamp::now();
    let mut until: Option<Timestamp> = None;
    let mut left = false;
    let mut going: Plan = Vec::with_capacity(plan.len());
    for step in plan {
        let mut kept = Vec::with_capacity(step.len());
        for action in step {
            let repairs = life.repairs.get(&action.target.id).copied();
            let pause = repairs.and_then(Repairs::not_before).filter(|time| *time > now);
            match pause.filter(|_| is_about_an_object(&action)) {
                Some(time) => until = Some(until.map_or(time, |until| until.min(time))),
                None => {
                    left |= !matches!(action.write, Write::ReplaceStatus(_))
                        && action.target.id.resource != "events";
                    kept.push(action);
                }
            }
        }
        if !kept.is_empty() {
            going.push(kept);
        }
    }
    // To say what will be done, and then not to do it, would be said again and again.
    if until.is_some() && !left {
        going.clear();
    }
    (going, until)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cleat_core::policy::Deed;

    #[test]
    fn a_policy_made_anew_under_the_same_name_has_no_past() {
        let (memory, key) = (Memory::default(), ("n".to_owned(), "p".to_owned()));
        let done = |life: &mut Life| {
            life.memory.deeds.insert(Id::default(), Deed::Created);
        };
        let deeds = |uid: &str, generation: i64| {
            memory.with(&key, |life| life.of(uid, generation).deeds.len())
        };
        assert_eq!(deeds("first", 1), 0);
        memory.with(&key, done);
        assert_eq!((deeds("first", 1), deeds("first", 2)), (1, 1));
        assert_eq!(deeds("second", 2), 0);
    }
}
