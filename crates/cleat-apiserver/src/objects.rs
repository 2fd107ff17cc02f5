//! Objects as they lie in the store, and nothing about who may touch them.
//!
//! An object is kept as JSON without `apiVersion` and `kind`: those follow from where it lies and
//! from the version a client asks for, so answering in any version is a matter of putting a few
//! bytes in front ([`Envelope`]), for one object or for ten thousand.

mod carried;
mod sealed;

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use cleat_store::{Entry, Expected, Range, Revision, Store, WriteError};
use serde_json::Value;

use self::carried::Carried;
use self::sealed::Sealed;
use crate::housekeeping::Housekeeper;
use crate::object;
use crate::resource::{Origin, ResourceType, Root};
use crate::rules::{autoscaler, events};
use crate::schema::default::default;
use crate::schema::prune::prune;
use crate::status::Status;

/// An object and the revision it was read or written at.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub(crate) value: Value,
    pub(crate) revision: Revision,
    /// As it lies in the store.
    pub(crate) bytes: Bytes,
}

/// Why a write did not happen.
#[derive(Debug)]
pub(crate) enum NotWritten {
    /// Somebody else wrote in between; look again.
    Raced,
    Failed(Status),
}

/// The store, seen as objects. Every write to it passes through here.
pub(crate) struct Objects {
    store: Store,
    housekeeper: Arc<Housekeeper>,
}

impl Objects {
    pub(crate) fn new(store: Store, housekeeper: Arc<Housekeeper>) -> Self {
        Self { store, housekeeper }
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Bytes that cannot be read are an error, not an absence.
    pub(crate) fn get(
        &self,
        ty: &ResourceType,
        version: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Stored>, Status> {
        let Some(entry) = self.entry(ty, namespace, name) else { return Ok(None) };
        let value =
            Envelope::of(ty, version).open(&entry.value).ok_or_else(|| damaged(ty, name))?;
        Ok(Some(Stored { value, revision: entry.modified, bytes: entry.value }))
    }

    pub(crate) fn entry(&self, ty: &ResourceType, namespace: &str, name: &str) -> Option<Entry> {
        self.store.get(&bucket(ty), &key(namespace, name))
    }

    /// Every object of a type, or of one namespace of it.
    pub(crate) fn all(
        &self,
        ty: &ResourceType,
        version: &str,
        namespace: &str,
    ) -> Result<Vec<Value>, Status> {
        let mut all = Vec::new();
        self.each(ty, version, namespace, |object| all.push(object))?;
        all.into_iter().collect()
    }

    /// Shows every object of a type, or of one namespace of it, one after another: only one of them is
    /// held at a time. What is damaged is an error among them.
    pub(crate) fn each(
        &self,
        ty: &ResourceType,
        version: &str,
        namespace: &str,
        mut show: impl FnMut(Result<Value, Status>),
    ) -> Result<(), Status> {
        let envelope = Envelope::of(ty, version);
        let (bucket, prefix) = (bucket(ty), prefix(namespace));
        let range = Range { bucket: &bucket, prefix: &prefix, ..Range::default() };
        let page = self.store.list(range).map_err(Status::internal)?;
        for (key, entry) in &page.entries {
            show(envelope.open(&entry.value).ok_or_else(|| damaged(ty, key)));
        }
        Ok(())
    }

    pub(crate) fn create(
        &self,
        ty: &Arc<ResourceType>,
        version: &str,
        value: Value,
    ) -> impl Future<Output = Result<Stored, NotWritten>> {
        self.put(ty, version, value, None, Expected::Absent)
    }

    /// Replaces what was read at `old`'s revision.
    pub(crate) fn replace(
        &self,
        ty: &Arc<ResourceType>,
        version: &str,
        value: Value,
        old: &Stored,
    ) -> impl Future<Output = Result<Stored, NotWritten>> {
        self.put(ty, version, value, Some(&old.value), Expected::Revision(old.revision))
    }

    /// Carried through even if its client goes away and cancels the request: what was stored must
    /// still be told to housekeeping.
    async fn put(
        &self,
        ty: &Arc<ResourceType>,
        version: &str,
        mut value: Value,
        old: Option<&Value>,
        expected: Expected,
    ) -> Result<Stored, NotWritten> {
        let envelope = Envelope::of(ty, version);
        let before = old.map(Before::of);
        let (store, housekeeper, ty) =
            (self.store.clone(), Arc::clone(&self.housekeeper), Arc::clone(ty));
        let writing = async move {
            let (bucket, key) = (bucket(&ty), key(object::namespace(&value), object::name(&value)));
            let sealed = envelope.seal(&value);
            let written = store.put(&bucket, &key, expected, |revision| sealed.at(revision)).await;
            let entry = written.map_err(NotWritten::from)?;
            set_revision(&mut value, entry.modified);
            // Of two writers the later one must have the last word, whoever gets here first.
            let newest = before
                .as_ref()
                .is_some_and(Before::owned)
                .then(|| store.get(&bucket, &key))
                .flatten()
                .and_then(|entry| envelope.open(&entry.value));
            housekeeper.written(&ty, before.as_ref(), newest.as_ref().unwrap_or(&value));
            if matches!(envelope.conversion, Conversion::Custom { .. }) {
                // What was stored may show less than what was sent.
                value = envelope.open(&entry.value).unwrap_or(value);
            }
            Ok(Stored { value, revision: entry.modified, bytes: entry.value })
        };
        Carried::new(writing).await
    }

    /// Removes the object; watchers are shown `last` as its final state.
    pub(crate) async fn remove(
        &self,
        ty: &Arc<ResourceType>,
        version: &str,
        mut last: Value,
        revision: Revision,
    ) -> Result<Stored, NotWritten> {
        let envelope = Envelope::of(ty, version);
        let (store, housekeeper, ty) =
            (self.store.clone(), Arc::clone(&self.housekeeper), Arc::clone(ty));
        let removing = async move {
            let (bucket, key) = (bucket(&ty), key(object::namespace(&last), object::name(&last)));
            let expected = Expected::Revision(revision);
            let sealed = envelope.seal(&last);
            let removed =
                store.delete(&bucket, &key, expected, |revision| sealed.at(revision)).await;
            let entry = removed.map_err(NotWritten::from)?;
            set_revision(&mut last, entry.modified);
            housekeeper.removed(&ty, &last);
            Ok(Stored { value: last, revision: entry.modified, bytes: entry.value })
        };
        Carried::new(removing).await
    }
}

/// What housekeeping needs to know of an object that was replaced.
pub(crate) struct Before {
    pub(crate) owner_references: Vec<Value>,
}

impl Before {
    fn of(old: &Value) -> Self {
        Self { owner_references: object::owner_references(old).to_vec() }
    }

    fn owned(&self) -> bool {
        !self.owner_references.is_empty()
    }
}

impl From<WriteError> for NotWritten {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Conflict { .. } => Self::Raced,
            other => Self::Failed(Status::internal(with_causes(&other))),
        }
    }
}

/// That a disk is full is said by the cause alone.
fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| (*error).source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

pub(crate) fn damaged(ty: &ResourceType, name: &str) -> Status {
    Status::internal(format!("the stored form of {} \"{name}\" is damaged", ty.group_resource()))
}

fn set_revision(object: &mut Value, revision: Revision) {
    object::metadata_mut(object).insert("resourceVersion".into(), revision.to_string().into());
}

/// Where objects of a type lie. Both event kinds are views of one stored object.
pub(crate) fn bucket(ty: &ResourceType) -> String {
    match &*ty.group {
        "events.k8s.io" => "/events".to_owned(),
        group => format!("{group}/{}", ty.plural),
    }
}

pub(crate) fn key(namespace: &str, name: &str) -> String {
    match namespace {
        "" => name.to_owned(),
        namespace => format!("{namespace}/{name}"),
    }
}

/// Where Kubernetes would keep the object; only messages show it.
pub(crate) fn path(ty: &ResourceType, namespace: &str, name: &str) -> String {
    let custom = matches!(ty.origin, Origin::Custom { .. });
    let group = if custom { format!("{}/", ty.group) } else { String::new() };
    format!("{group}{}/{}", ty.plural, key(namespace, name))
}

/// The keys of one namespace, or all of them.
pub(crate) fn prefix(namespace: &str) -> String {
    match namespace {
        "" => String::new(),
        namespace => format!("{namespace}/"),
    }
}

/// What stands between stored bytes and an object in a client's version.
pub(crate) struct Envelope {
    opening: Vec<u8>,
    api_version: String,
    kind: Box<str>,
    conversion: Conversion,
}

/// How the stored form differs from the one asked for.
#[derive(Clone)]
enum Conversion {
    /// Only in `apiVersion` and `kind`.
    None,
    /// `events.k8s.io` events are core events, seen differently.
    Event,
    /// The first version of autoscalers knows fewer metrics.
    AutoscalerV1,
    /// Another version of a custom resource: each shows only what its own schema knows.
    Custom { shown: Option<Root>, stored: Option<Root> },
}

impl Conversion {
    fn of(ty: &ResourceType, version: &str) -> Self {
        match (&*ty.group, &*ty.plural, version) {
            ("events.k8s.io", "events", _) => Self::Event,
            ("autoscaling", "horizontalpodautoscalers", "v1") => Self::AutoscalerV1,
            _ if ty.origin != Origin::Builtin && *version != *ty.storage_version => {
                let schema = |name: &str| ty.version(name).and_then(|found| found.schema.clone());
                Self::Custom { shown: schema(version), stored: schema(&ty.storage_version) }
            }
            _ => Self::None,
        }
    }

    fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }

    fn show(&self, mut stored: Value) -> Value {
        match self {
            Self::Custom { shown: Some(root), .. } => {
                prune(&mut stored, root.schema());
                stored
            }
            Self::Custom { shown: None, .. } => stored,
            Self::None => stored,
            Self::Event => events::from_core(&stored),
            Self::AutoscalerV1 => autoscaler::to_v1(&stored),
        }
    }

    fn keep(&self, object: &Value) -> Option<Value> {
        match self {
            Self::Custom { stored: Some(root), .. } => {
                let mut stored = object.clone();
                prune(&mut stored, root.schema());
                default(&mut stored, root.schema());
                Some(stored)
            }
            Self::Custom { stored: None, .. } => None,
            Self::None => None,
            Self::Event => Some(events::to_core(object)),
            Self::AutoscalerV1 => Some(autoscaler::from_v1(object)),
        }
    }
}

impl Envelope {
    pub(crate) fn of(ty: &ResourceType, version: &str) -> Self {
        let api_version = ty.api_version(version);
        let opening = format!(r#"{{"kind":"{}","apiVersion":"{api_version}","#, ty.kind);
        Self {
            opening: opening.into_bytes(),
            api_version,
            kind: ty.kind.clone(),
            conversion: Conversion::of(ty, version),
        }
    }

    /// The whole object as bytes, without parsing where the stored form allows it.
    pub(crate) fn raw(&self, stored: &Bytes) -> Bytes {
        let mut out = BytesMut::with_capacity(self.opening.len() + stored.len());
        self.write(stored, &mut out);
        out.freeze()
    }

    /// The answer to a write, a line of its own, from the bytes that were stored. `None` where these are
    /// not what was written but another view of it.
    pub(crate) fn line(&self, stored: &Bytes) -> Option<Bytes> {
        if !self.conversion.is_none() {
            return None;
        }
        let mut out = BytesMut::with_capacity(self.opening.len() + stored.len());
        self.write(stored, &mut out);
        out.put_u8(b'\n');
        Some(out.freeze())
    }

    /// Appends the whole object to `out`.
    pub(crate) fn write(&self, stored: &Bytes, out: &mut BytesMut) {
        if !self.conversion.is_none() {
            let object = self.open(stored).unwrap_or_default();
            out.put_slice(object.to_string().as_bytes());
            return;
        }
        out.put_slice(&self.opening);
        out.put_slice(stored.get(1..).unwrap_or_default());
    }

    /// Appends the object as an item of a list: built-in lists leave out what the list says.
    pub(crate) fn write_item(&self, stored: &Bytes, builtin: bool, out: &mut BytesMut) {
        if builtin && self.conversion.is_none() {
            out.put_slice(stored);
        } else {
            self.write(stored, out);
        }
    }

    /// Parses a stored object. `None` means the bytes are damaged.
    pub(crate) fn open(&self, stored: &[u8]) -> Option<Value> {
        let value: Value = serde_json::from_slice(stored).ok()?;
        let mut value = self.conversion.show(value);
        let map = value.as_object_mut()?;
        map.insert("apiVersion".into(), self.api_version.clone().into());
        map.insert("kind".into(), (*self.kind).into());
        Some(value)
    }

    fn seal(&self, value: &Value) -> Sealed {
        let converted = self.conversion.keep(value);
        match converted.as_ref().unwrap_or(value).as_object() {
            Some(map) => Sealed::of(map),
            None => Sealed::of(&serde_json::Map::new()),
        }
    }
}
