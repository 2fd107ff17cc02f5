//! Whole objects that a list told of, for whoever asks for them first. Pure.
//!
//! A mirror keeps metadata. Who begins needs the objects themselves as well, and a list that is read
//! anyway tells both for about what it costs to tell one. None of it is knowledge: what is not here
//! is not absent, and has to be read as if there had been no list.

use std::collections::BTreeMap;
use std::sync::Arc;

use cleat_core::id::{Id, Target};
use serde_json::Value;

use super::Look;
use super::kind::KindName;
use super::meta::Head;

/// Guarantees: an object is given away at most once, and only while the mirror says that it is still
/// this incarnation in this state; all of them together cost no more than the bound.
#[derive(Default)]
pub(super) struct Handover {
    kept: BTreeMap<Arc<Id>, Kept>,
    bytes: usize,
    most: usize,
}

/// One object as it was listed.
pub(super) struct Kept {
    uid: Box<str>,
    resource_version: Box<str>,
    /// What the list said of all its objects.
    shape: Arc<Shape>,
    json: Box<str>,
}

/// In which form a page tells of objects.
pub(super) struct Shape {
    api_version: String,
    kind: String,
}

/// What an object costs beside its text.
const EACH: usize = 192;

impl Shape {
    /// As a list says it of itself.
    pub(super) fn of_list(api_version: &str, kind: &str) -> Self {
        let kind = kind.strip_suffix("List").unwrap_or(kind).to_owned();
        Self { api_version: api_version.to_owned(), kind }
    }
}

impl Kept {
    pub(super) fn new(head: &Head<'_>, json: &str, shape: &Arc<Shape>) -> Self {
        Self {
            uid: Box::from(&*head.uid),
            resource_version: Box::from(&*head.resource_version),
            shape: Arc::clone(shape),
            json: json.into(),
        }
    }

    /// Whether it is what the mirror says is there now, in the version that is asked for.
    fn holds(&self, target: &Target, now: &Look) -> bool {
        let Look::Present(meta) = now else { return false };
        !self.uid.is_empty()
            && !self.resource_version.is_empty()
            && self.uid == meta.uid
            && self.resource_version == meta.resource_version
            && self.shape.api_version == target.api_version()
            && !self.shape.kind.is_empty()
    }

    fn cost(&self) -> usize {
        EACH + self.json.len()
    }

    /// The object as reading it by itself would have given it.
    pub(super) fn object(&self) -> Option<Value> {
        let mut object: Value = serde_json::from_str(&self.json).ok()?;
        let fields = object.as_object_mut()?;
        for (field, value) in [("apiVersion", &self.shape.api_version), ("kind", &self.shape.kind)]
        {
            fields.entry(field).or_insert_with(|| Value::String(value.clone()));
        }
        Some(object)
    }
}

impl Handover {
    /// Keeps up to so many bytes.
    pub(super) fn new(most: usize) -> Self {
        Self { kept: BTreeMap::new(), bytes: 0, most }
    }

    /// How much more may be kept.
    pub(super) fn room(&self) -> usize {
        self.most.saturating_sub(self.bytes)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Keeps an object, in place of what was kept of it before, unless there is no room.
    pub(super) fn keep(&mut self, id: &Arc<Id>, kept: Kept) {
        self.forget(id);
        if kept.cost() <= self.room() {
            self.bytes += kept.cost();
            self.kept.insert(Arc::clone(id), kept);
        }
    }

    /// Whether [`take`](Self::take) would give the object.
    pub(super) fn has(&self, target: &Target, now: &Look) -> bool {
        self.kept.get(&target.id).is_some_and(|kept| kept.holds(target, now))
    }

    /// Gives the object away, if it is what the mirror says `now`. What is not, never will be again,
    /// so it is not kept either way.
    pub(super) fn take(&mut self, target: &Target, now: &Look) -> Option<Kept> {
        self.forget(&target.id).filter(|kept| kept.holds(target, now))
    }

    pub(super) fn forget(&mut self, id: &Id) -> Option<Kept> {
        let kept = self.kept.remove(id)?;
        self.bytes = self.bytes.saturating_sub(kept.cost());
        Some(kept)
    }

    /// Forgets everything of a kind.
    pub(super) fn forget_kind(&mut self, name: &KindName) {
        let of_kind = |id: &&Arc<Id>| *id.group == *name.group && *id.resource == *name.resource;
        let ids: Vec<Arc<Id>> = self.kept.keys().filter(of_kind).cloned().collect();
        for id in ids {
            self.forget(&id);
        }
    }
}

#[cfg(test)]
mod tests;
