//! `metadata.managedFields`: who manages which fields of an object, since when.
//!
//! This is the record and its wire form. What a write means for it is decided in `apply`.

use jiff::Timestamp;
use serde_json::{Map, Value};
use thiserror::Error;

use super::fields::{FieldSet, NotFields};

/// More managers that update than this, and the oldest are thrown together.
const MOST_UPDATERS: usize = 10;
const ANCIENT: &str = "ancient-changes";

/// Whether a manager applies configurations or writes otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operation {
    Apply,
    Update,
}

/// What tells managers apart. Those that apply are the same in every version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Identity {
    pub(super) name: Box<str>,
    pub(super) operation: Operation,
    /// Empty for those that apply.
    pub(super) api_version: Box<str>,
    pub(super) subresource: Box<str>,
}

/// One manager and what it manages.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) identity: Identity,
    /// The version in which `fields` are named.
    pub(super) api_version: Box<str>,
    pub(super) time: Option<Box<str>>,
    pub(super) fields: FieldSet,
}

/// All managers of an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Managers {
    entries: Vec<Entry>,
}

/// Why a list is not managedFields.
#[derive(Debug, Error, PartialEq, Eq)]
pub(super) enum Undecodable {
    #[error("operation must be `Apply` or `Update`")]
    Operation,
    #[error("apiVersion must not be empty")]
    ApiVersion,
    #[error("missing fieldsType in managed fields entry {0}")]
    NoFieldsType(usize),
    #[error("invalid fieldsType \"{1}\" in managed fields entry {0}")]
    FieldsType(usize, String),
    #[error("error decoding versioned set")]
    Fields,
}

impl From<NotFields> for Undecodable {
    fn from(NotFields: NotFields) -> Self {
        Self::Fields
    }
}

impl Identity {
    pub(super) fn new(
        name: &str,
        operation: Operation,
        api_version: &str,
        subresource: &str,
    ) -> Self {
        let api_version = match operation {
            Operation::Apply => "",
            Operation::Update => api_version,
        };
        Self {
            name: name.into(),
            operation,
            api_version: api_version.into(),
            subresource: subresource.into(),
        }
    }
}

impl Entry {
    fn read(index: usize, entry: &Value) -> Result<Self, Undecodable> {
        let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default();
        let operation = match text("operation") {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            _ => return Err(Undecodable::Operation),
        };
        let api_version = text("apiVersion");
        if api_version.is_empty() {
            return Err(Undecodable::ApiVersion);
        }
        match text("fieldsType") {
            "FieldsV1" => {}
            "" => return Err(Undecodable::NoFieldsType(index)),
            other => return Err(Undecodable::FieldsType(index, other.to_owned())),
        }
        let fields = match entry.get("fieldsV1") {
            None | Some(Value::Null) => FieldSet::default(),
            Some(fields) => FieldSet::from_json(fields)?,
        };
        Ok(Self {
            identity: Identity::new(text("manager"), operation, api_version, text("subresource")),
            api_version: api_version.into(),
            time: entry.get("time").and_then(Value::as_str).map(Box::from),
            fields,
        })
    }

    fn to_json(&self) -> Value {
        let mut entry = Map::new();
        let mut put = |key: &str, value: &str| {
            if !value.is_empty() {
                entry.insert(key.to_owned(), value.into());
            }
        };
        put("manager", &self.identity.name);
        put(
            "operation",
            match self.identity.operation {
                Operation::Apply => "Apply",
                Operation::Update => "Update",
            },
        );
        put("apiVersion", &self.api_version);
        put("time", self.time.as_deref().unwrap_or_default());
        put("fieldsType", "FieldsV1");
        put("subresource", &self.identity.subresource);
        entry.insert("fieldsV1".to_owned(), self.fields.to_json());
        Value::Object(entry)
    }

    fn seconds(&self) -> i64 {
        let time = self.time.as_deref().and_then(|time| time.parse::<Timestamp>().ok());
        time.map_or(0, Timestamp::as_second)
    }
}

impl Managers {
    /// Reads `metadata.managedFields` of an object.
    pub(super) fn of(object: &Value) -> Result<Self, Undecodable> {
        let mut managers = Self::default();
        let list = object.get("metadata").and_then(|metadata| metadata.get("managedFields"));
        for (index, entry) in list.and_then(Value::as_array).into_iter().flatten().enumerate() {
            let entry = Entry::read(index, entry)?;
            // The last of several entries for one manager counts.
            managers.remove(&entry.identity);
            managers.entries.push(entry);
        }
        Ok(managers)
    }

    /// Writes `metadata.managedFields`, in upstream's order, or takes it away.
    pub(super) fn write_to(mut self, object: &mut Value) {
        let Some(object) = object.as_object_mut() else { return };
        if self.entries.is_empty() {
            if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
                metadata.remove("managedFields");
            }
            return;
        }
        self.entries.sort_by_cached_key(|entry| {
            (
                entry.identity.operation,
                entry.seconds(),
                entry.identity.name.clone(),
                entry.api_version.clone(),
                entry.identity.subresource.clone(),
            )
        });
        let list = self.entries.iter().map(Entry::to_json).collect();
        let metadata = object.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.insert("managedFields".to_owned(), Value::Array(list));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.entries.iter_mut()
    }

    pub(super) fn get(&self, identity: &Identity) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.identity == *identity)
    }

    pub(super) fn remove(&mut self, identity: &Identity) -> Option<Entry> {
        let place = self.entries.iter().position(|entry| entry.identity == *identity)?;
        Some(self.entries.remove(place))
    }

    /// Adds or replaces a manager; one that manages nothing is none.
    pub(super) fn put(&mut self, entry: Entry) {
        self.remove(&entry.identity);
        if !entry.fields.is_empty() {
            self.entries.push(entry);
        }
    }

    /// Adds an entry beside those its manager may have. Whoever reads them takes the last.
    pub(super) fn add(&mut self, entry: Entry) {
        self.entries.push(entry);
    }

    pub(super) fn retain(&mut self, keep: impl FnMut(&Entry) -> bool) {
        self.entries.retain(keep);
    }

    /// Unites the oldest managers that update, per version, until there are few enough.
    pub(super) fn cap_updaters(&mut self) {
        let is_updater = |entry: &Entry| entry.identity.operation == Operation::Update;
        let mut left = self.entries.iter().filter(|entry| is_updater(entry)).count();
        if left <= MOST_UPDATERS {
            return;
        }
        let mut updaters: Vec<(i64, Identity)> = self
            .entries
            .iter()
            .filter(|entry| is_updater(entry))
            .map(|entry| (entry.seconds(), entry.identity.clone()))
            .collect();
        updaters.sort();
        let mut first_of_version: Vec<Identity> = Vec::new();
        for (_, identity) in updaters {
            if left <= MOST_UPDATERS {
                break;
            }
            let same_version = |other: &&Identity| other.api_version == identity.api_version;
            let Some(first) = first_of_version.iter().find(same_version).cloned() else {
                first_of_version.push(identity);
                continue;
            };
            let bucket = Identity::new(ANCIENT, Operation::Update, &identity.api_version, "");
            if self.get(&bucket).is_none()
                && let Some(mut oldest) = self.remove(&first)
            {
                oldest.identity = bucket.clone();
                self.entries.push(oldest);
            }
            if identity == bucket {
                continue;
            }
            if let Some(entry) = self.remove(&identity)
                && let Some(united) = self.entries.iter_mut().find(|e| e.identity == bucket)
            {
                united.fields = std::mem::take(&mut united.fields).union(entry.fields);
                // The more recent of the two.
                united.time = entry.time;
                left -= 1;
            }
        }
    }
}
