//! What an agent remembers between passes, and may lose at any time: what failed and when to try
//! again, which objects were found to be as wanted, and what rules made of them.
//!
//! Nothing here is needed for a pass to be right; it saves reads and writes.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cleat_core::id::Id;
use cleat_core::protection::Heard;
use cleat_core::work::observed::{Judged, Permission};
use cleat_core::work::repair::Repairs;
use cleat_core::work::trouble::Trouble;
use cleat_core::write::{Action, Outcome, Write};
use cleat_runtime::mirror::Meta;
use jiff::Timestamp;
use serde_json::Value;

use super::Key;

#[derive(Default)]
pub(super) struct Memory {
    lives: Mutex<BTreeMap<Key, Life>>,
}

/// What is remembered of one work.
#[derive(Default)]
pub(super) struct Life {
    pub(super) troubles: BTreeMap<Id, Trouble>,
    pub(super) objects: BTreeMap<Id, Object>,
    /// The state of the work that the rest is about.
    pub(super) generation: Option<i64>,
    /// When the hub was last told how a deletion goes.
    pub(super) told: Option<Timestamp>,
    /// When something that is not an event wants to be looked at again.
    pub(super) wake: Option<Timestamp>,
    /// The CriticalServices that keep objects.
    pub(super) protections: Heard,
    /// Its bookkeeping has waited for others already.
    pub(super) put_off: bool,
}

/// What is remembered of one object of a work. There is one of every object, so what few have is
/// elsewhere.
#[derive(Default)]
pub(super) struct Object {
    /// The incarnation that a create of ours made, until the ledger has it.
    pub(super) made: Option<Box<str>>,
    pub(super) verified: Option<Verified>,
    pub(super) repairs: Option<Repairs>,
    pub(super) judged: Option<Box<Judgement>>,
    pub(super) permission: Option<Box<(Timestamp, Permission)>>,
}

/// A state in which an object was as wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verified {
    /// Of the manifest and of how it is applied.
    pub(super) digest: u64,
    uid: Box<str>,
    resource_version: Box<str>,
    generation: Option<i64>,
    labels_annotations_digest: Option<u64>,
}

/// What rules made of one state of an object.
pub(super) struct Judgement {
    pub(super) resource_version: Box<str>,
    /// Of the rules.
    pub(super) digest: u64,
    pub(super) at: Timestamp,
    pub(super) judged: Judged,
}

impl Verified {
    pub(super) fn of(digest: u64, meta: &Meta) -> Self {
        Self {
            digest,
            uid: meta.uid.clone(),
            resource_version: meta.resource_version.clone(),
            generation: meta.generation,
            labels_annotations_digest: Some(meta.labels_annotations_digest),
        }
    }

    /// From the answer to a write of ours. Labels are left to the next look at the metadata.
    pub(super) fn of_answer(digest: u64, object: &Value) -> Option<Self> {
        let metadata = object.get("metadata")?;
        Some(Self {
            digest,
            uid: metadata.get("uid")?.as_str()?.into(),
            resource_version: metadata.get("resourceVersion")?.as_str()?.into(),
            generation: metadata.get("generation").and_then(Value::as_i64),
            labels_annotations_digest: None,
        })
    }

    /// Takes from the metadata what an answer does not say in the same form.
    pub(super) fn complete(&mut self, meta: &Meta) {
        if self.uid == meta.uid && self.resource_version == meta.resource_version {
            self.labels_annotations_digest = Some(meta.labels_annotations_digest);
        }
    }

    /// Whether an object that looks like this is still as wanted. Where the server counts the
    /// changes of a spec, changes of status do not matter.
    pub(super) fn holds(&self, digest: u64, meta: &Meta) -> bool {
        if self.digest != digest || self.uid != meta.uid {
            return false;
        }
        let same_version = self.resource_version == meta.resource_version;
        let counted = self.generation.is_some_and(|generation| generation > 0)
            && self.generation == meta.generation
            && self.labels_annotations_digest == Some(meta.labels_annotations_digest);
        same_version || counted
    }
}

impl Memory {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Life>> {
        self.lives.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn with<T>(&self, key: &Key, look: impl FnOnce(&mut Life) -> T) -> T {
        let mut lives = self.lock();
        match lives.get_mut(key) {
            Some(life) => look(life),
            None => look(lives.entry(key.clone()).or_default()),
        }
    }

    /// What is remembered, without beginning to remember anything.
    pub(super) fn known<T>(&self, key: &Key, look: impl FnOnce(Option<&Life>) -> T) -> T {
        look(self.lock().get(key))
    }

    pub(super) fn forget(&self, key: &Key) {
        self.lock().remove(key);
    }

    pub(super) fn wake(&self, key: &Key, now: Timestamp) -> Option<Timestamp> {
        let wake = self.lock().get(key).and_then(|life| life.wake)?;
        Some(wake.max(now))
    }

    /// Takes in what came of an action. `wanted`: the digest of the manifest it was for, and
    /// whether the object had been found as wanted before.
    pub(super) fn happened(
        &self,
        key: &Key,
        action: &Action,
        outcome: &Outcome,
        wanted: Option<(u64, bool)>,
        now: Timestamp,
    ) {
        let id = &action.target.id;
        self.with(key, |life| {
            let about = Trouble::about(action);
            match Trouble::after(life.troubles.get(&about), &action.write, outcome, now) {
                Some(trouble) => drop(life.troubles.insert(about, trouble)),
                None => drop(life.troubles.remove(&about)),
            }
            let (Outcome::Done(answer), Some((digest, as_wanted))) = (outcome, wanted) else {
                return;
            };
            match &action.write {
                Write::Create(_) | Write::Replace(_) | Write::Apply { .. } => {
                    let object = life.objects.entry(id.clone()).or_default();
                    // Somebody changed what had been as wanted.
                    let known = object.verified.as_ref().is_some_and(|v| v.digest == digest);
                    if known && !matches!(action.write, Write::Create(_)) {
                        object.repairs = Some(Repairs::after(object.repairs, now));
                    }
                    object.verified = Verified::of_answer(digest, answer);
                    if matches!(action.write, Write::Create(_)) {
                        let uid = answer.pointer("/metadata/uid").and_then(Value::as_str);
                        object.made = uid.map(Into::into);
                    }
                }
                // Only our mark changed, and nothing else meanwhile: the precondition says so.
                Write::Merge(_) if as_wanted => {
                    let object = life.objects.entry(id.clone()).or_default();
                    object.verified = Verified::of_answer(digest, answer);
                }
                _ => {}
            }
        });
    }
}
