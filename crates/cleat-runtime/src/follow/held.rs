//! The objects that a [`Follow`](super::Follow) holds. Pure but for the time of contact.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use super::text::Text;
use crate::known::{Incarnation, Known, Sure};
use crate::mirror::Reason;
use crate::watch::Fault;

/// Namespace and name.
pub(super) type Key = (Box<str>, Box<str>);

/// One object.
#[derive(Debug, PartialEq, Eq)]
pub struct Object {
    pub namespace: Box<str>,
    pub name: Box<str>,
    pub uid: Box<str>,
    pub resource_version: Box<str>,
    text: Text,
}

/// What is known of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Held {
    Absent,
    Present(Arc<Object>),
    Unknown(Reason),
}

impl Object {
    /// The object without its managed fields.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        self.text.parse()
    }

    pub(super) fn key(&self) -> Key {
        (self.namespace.clone(), self.name.clone())
    }

    pub(super) fn of_text(object: &RawValue) -> Option<Arc<Self>> {
        Self::of(serde_json::from_str(object.get()).ok()?)
    }

    pub(super) fn of_value(object: &Value) -> Option<Arc<Self>> {
        Self::of(object.clone())
    }

    fn of(mut object: Value) -> Option<Arc<Self>> {
        let metadata = object.get_mut("metadata")?.as_object_mut()?;
        metadata.remove("managedFields");
        let text = |field: &str| metadata.get(field).and_then(Value::as_str).unwrap_or_default();
        let [namespace, name, uid, resource_version] =
            ["namespace", "name", "uid", "resourceVersion"].map(|field| text(field).into());
        let text = Text::of(&object)?;
        Some(Arc::new(Self { namespace, name, uid, resource_version, text }))
    }
}

impl Incarnation for Arc<Object> {
    fn uid(&self) -> &str {
        &self.uid
    }

    fn revision(&self) -> Option<u64> {
        self.resource_version.parse().ok()
    }
}

#[derive(Default)]
pub(super) struct State {
    entries: BTreeMap<Key, Entry>,
    synced: bool,
    round: u32,
    reached: u64,
    last_contact: Option<Timestamp>,
    down: Option<(Timestamp, Fault)>,
    /// How many there may be before absent ones are forgotten.
    bound: usize,
}

struct Entry {
    known: Known<Arc<Object>>,
    listed: u32,
}

impl State {
    pub(super) fn get(&self, key: &Key) -> Held {
        match self.entries.get(key).map(|entry| entry.known.sure()) {
            Some(Sure::Present(object)) => Held::Present(Arc::clone(object)),
            Some(Sure::Absent) => Held::Absent,
            None if self.synced => Held::Absent,
            Some(Sure::Unread) | None => {
                Held::Unknown(self.trouble().unwrap_or(Reason::NotReadYet))
            }
        }
    }

    pub(super) fn all(&self) -> Vec<Arc<Object>> {
        let present = self.entries.values().filter_map(|entry| match entry.known.sure() {
            Sure::Present(object) => Some(Arc::clone(object)),
            Sure::Unread | Sure::Absent => None,
        });
        present.collect()
    }

    pub(super) fn last_contact(&self) -> Option<Timestamp> {
        self.last_contact
    }

    pub(super) fn trouble(&self) -> Option<Reason> {
        let (since, fault) = self.down.as_ref()?;
        Some(match fault {
            Fault::Forbidden(message) => Reason::Forbidden(message.clone()),
            Fault::Failed(message) => {
                Reason::Unreachable { since: *since, message: message.clone() }
            }
            Fault::NoSuchKind => Reason::Unreachable {
                since: *since,
                message: "the server does not serve this kind".to_owned(),
            },
            Fault::Unwatchable => Reason::Unwatchable,
            Fault::Expired => Reason::NotReadYet,
        })
    }

    pub(super) fn is_unserved(&self) -> bool {
        matches!(self.down, Some((_, Fault::NoSuchKind)))
    }

    pub(super) fn up(&mut self) -> Vec<Key> {
        self.down = None;
        self.last_contact = Some(Timestamp::now());
        let doubted = self.entries.iter().filter(|(_, entry)| is_unread(entry));
        doubted.map(|(key, _)| key.clone()).collect()
    }

    /// Whether that is news.
    pub(super) fn down(&mut self, fault: &Fault) -> bool {
        let since = self.down.as_ref().map(|(since, _)| *since);
        self.down = Some((since.unwrap_or_else(Timestamp::now), fault.clone()));
        since.is_none()
    }

    pub(super) fn reached(&mut self, revision: Option<u64>) {
        self.reached = self.reached.max(revision.unwrap_or_default());
        self.last_contact = Some(Timestamp::now());
    }

    pub(super) fn list_began(&mut self) {
        self.round = self.round.wrapping_add(1);
    }

    pub(super) fn listed(&mut self, object: Arc<Object>, revision: Option<u64>) -> bool {
        let round = self.round;
        let entry = self.entry(object.key());
        entry.listed = round;
        entry.known.listed(Some(object), revision, round)
    }

    pub(super) fn list_ended(&mut self, revision: Option<u64>) -> Vec<Key> {
        self.synced = true;
        self.reached = revision.unwrap_or_default();
        let round = self.round;
        let mut changed = Vec::new();
        for (key, entry) in &mut self.entries {
            if entry.listed != round && entry.known.listed(None, revision, round) {
                changed.push(key.clone());
            }
        }
        changed
    }

    pub(super) fn changed(&mut self, object: Arc<Object>) -> bool {
        let round = self.round;
        self.entry(object.key()).known.changed(object, round)
    }

    pub(super) fn deleted(&mut self, object: &Arc<Object>) -> bool {
        let round = self.round;
        let entry = self.entry(object.key());
        entry.known.deleted(&object.uid, object.revision(), round)
    }

    pub(super) fn wrote(&mut self, object: Arc<Object>) -> bool {
        let round = self.round;
        self.entry(object.key()).known.wrote(object, round)
    }

    pub(super) fn gone(&mut self, key: &Key, uid: &str) -> bool {
        let round = self.round;
        self.entry(key.clone()).known.gone(uid, round)
    }

    pub(super) fn doubt(&mut self, key: &Key) -> bool {
        self.entry(key.clone()).known.doubt()
    }

    /// What was told of an object so far, if it must be read.
    pub(super) fn doubted(&self, key: &Key) -> Option<u32> {
        let entry = self.entries.get(key).filter(|entry| is_unread(entry))?;
        Some(entry.known.told())
    }

    pub(super) fn read(
        &mut self,
        key: &Key,
        object: Option<Arc<Object>>,
        told: u32,
    ) -> Option<bool> {
        let round = self.round;
        self.entry(key.clone()).known.read(object, told, round)
    }

    /// What is absent is kept in mind for a while: an answer to a write may come after the watch
    /// told of its end.
    fn entry(&mut self, key: Key) -> &mut Entry {
        let Self { entries, synced, round, reached, bound, .. } = self;
        if entries.len() > *bound {
            entries.retain(|other, entry| {
                *other == key || !matches!(entry.known.sure(), Sure::Absent)
            });
            *bound = 2 * entries.len() + 256;
        }
        entries.entry(key).or_insert_with(|| {
            let known =
                if *synced { Known::absent(*reached, *round) } else { Known::unread(*round) };
            Entry { known, listed: 0 }
        })
    }
}

fn is_unread(entry: &Entry) -> bool {
    matches!(entry.known.sure(), Sure::Unread)
}
