//! What a controller remembers of a policy between passes.
//!
//! It may be lost at any time: what must survive is in the policy's status. Losing it costs a word
//! in a message or an attempt that comes too early, never an object.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use jiff::Timestamp;

use super::observed::{Cluster, Seen};
use crate::id::Id;
use crate::work::trouble::Trouble;
use crate::write::{Action, Outcome, Refusal, Write};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    /// What was done to objects and has not been reported.
    pub deeds: BTreeMap<Id, Deed>,
    /// What failed lately, by the object it was about, and when to try again.
    pub troubles: BTreeMap<Id, Trouble>,
    /// The namespaces that were chosen when the policy was last evaluated.
    pub namespaces: Option<Vec<String>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    Created,
    Updated,
    Deleted,
}

impl Memory {
    /// What is remembered after one action of a plan.
    pub fn after(mut self, action: &Action, outcome: &Outcome, now: Timestamp) -> Self {
        let id = &action.target.id;
        // Every event has a name of its own; that they cannot be written is one trouble.
        let about = match id.resource.as_str() {
            "events" => Id { name: String::new(), ..id.clone() },
            _ => id.clone(),
        };
        let outcome = &meant(action, outcome);
        match Trouble::after(self.troubles.get(&about), &action.write, outcome, now) {
            Some(trouble) => drop(self.troubles.insert(about, trouble)),
            None => drop(self.troubles.remove(&about)),
        }
        let deed = match (&action.write, outcome) {
            (Write::Create(_), Outcome::Done(_)) if id.resource == "events" => None,
            (Write::Create(_), Outcome::Done(_)) => match self.deeds.get(id) {
                // Deleted and made anew because it could not be changed.
                Some(Deed::Deleted) => Some(Deed::Updated),
                _ => Some(Deed::Created),
            },
            (Write::Replace(_), Outcome::Done(_)) => Some(Deed::Updated),
            (Write::Delete { .. }, Outcome::Done(_) | Outcome::NotFound) => Some(Deed::Deleted),
            _ => None,
        };
        if let Some(deed) = deed {
            self.deeds.insert(id.clone(), deed);
        }
        self
    }

    /// What is remembered once everything that was seen was reported.
    pub fn reported(mut self, cluster: &Cluster, now: Timestamp) -> Self {
        // That an object was deleted is news when it is gone, not before.
        let there = |id: &Id| matches!(cluster.objects.get(id), Some(Seen::Present(_)));
        self.deeds.retain(|id, deed| *deed == Deed::Deleted && there(id));
        // What was not tried again when it could have been is not needed any more.
        self.troubles.retain(|_, trouble| trouble.retry_at > now);
        self
    }

    /// Whether the last attempt about this object failed too recently to try again.
    pub(crate) fn must_wait(&self, id: &Id, now: Timestamp) -> bool {
        self.troubles.get(id).is_some_and(|trouble| trouble.retry_at > now)
    }
}

/// Where nothing can be created, what is not found is the namespace.
fn meant(action: &Action, outcome: &Outcome) -> Outcome {
    match (&action.write, outcome) {
        (Write::Create(_), Outcome::NotFound) => {
            let namespace = &action.target.id.namespace;
            Outcome::Refused(Refusal {
                code: 404,
                reason: "NotFound".into(),
                message: alloc::format!("namespaces \"{namespace}\" not found"),
            })
        }
        _ => outcome.clone(),
    }
}
