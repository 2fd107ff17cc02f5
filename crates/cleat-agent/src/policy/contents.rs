//! Whole objects as they were last read or written, so that a policy about twenty objects does not
//! read nineteen again because one changed.
//!
//! They are kept as compact text, without managed fields, up to a bound; what was dropped is read
//! again when it is needed. Whether one is still up to date, the mirror's revision says.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cleat_core::id::{Id, Target};
use cleat_core::policy::observed::Present;
use cleat_runtime::mirror::Meta;
use serde_json::Value;

use super::FIELD_MANAGER;

/// How much text is kept.
const MOST: usize = 32 << 20;
/// What an entry costs beside its text.
const EACH: usize = 256;

#[derive(Default)]
pub(super) struct Contents {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    entries: BTreeMap<Arc<Id>, (u64, Arc<Content>)>,
    /// In the order of being kept, with those that were replaced since.
    order: VecDeque<(u64, Arc<Id>)>,
    next: u64,
    bytes: usize,
}

struct Content {
    api_version: Box<str>,
    uid: Box<str>,
    revision: Box<str>,
    /// The uids of the policies that wrote it.
    writers: Box<[Box<str>]>,
    json: Box<[u8]>,
}

impl Contents {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The text, if it is not older than the mirror says.
    fn current(&self, target: &Target, meta: &Meta) -> Option<Arc<Content>> {
        let content =
            self.lock().entries.get(&target.id).map(|(_, content)| Arc::clone(content))?;
        let newer = |known: &str, told: &str| match (known.parse::<u64>(), told.parse::<u64>()) {
            (Ok(known), Ok(told)) => known >= told,
            _ => known == told,
        };
        let good = content.uid == meta.uid
            && newer(&content.revision, &meta.resource_version)
            && *content.api_version == *target.api_version();
        good.then_some(content)
    }

    /// Whether the object need not be read.
    pub(super) fn has(&self, target: &Target, meta: &Meta) -> bool {
        self.current(target, meta).is_some()
    }

    /// The object, if it need not be read.
    pub(super) fn get(&self, target: &Target, meta: &Meta) -> Option<Present> {
        let content = self.current(target, meta)?;
        let object = serde_json::from_slice(&content.json).ok()?;
        let writers = content.writers.iter().map(|writer| String::from(&**writer)).collect();
        Some(Present { object: Arc::new(object), writers })
    }

    /// Keeps an object that a policy just made. Managers are told only of objects that have anything
    /// beyond a name; whose the others are, only the answer to their creation says.
    pub(super) fn made(&self, id: &Id, object: Value, policy: &str) {
        self.keep_by(id, object, vec![policy.to_owned()]);
    }

    /// Keeps an object as a server told it.
    pub(super) fn keep(&self, id: &Id, object: Value) -> Present {
        let uid = object.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default();
        // Who is known to have written it has written it, as long as it is the same one.
        let known = match self.lock().entries.get(id) {
            Some((_, content)) if *content.uid == *uid && !uid.is_empty() => {
                content.writers.iter().map(|writer| writer.to_string()).collect()
            }
            _ => Vec::new(),
        };
        self.keep_by(id, object, known)
    }

    fn keep_by(&self, id: &Id, mut object: Value, mut writers: Vec<String>) -> Present {
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            let managers = metadata.remove("managedFields");
            let managers = managers.as_ref().and_then(Value::as_array).into_iter().flatten();
            let names = managers.filter_map(|entry| entry.get("manager")?.as_str());
            let policies =
                names.filter_map(|name| name.strip_prefix(FIELD_MANAGER)?.strip_prefix('/'));
            writers.extend(policies.map(str::to_owned));
            writers.sort();
            writers.dedup();
        }
        let text = |pointer: &str| {
            object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().into()
        };
        let content = Content {
            api_version: text("/apiVersion"),
            uid: text("/metadata/uid"),
            revision: text("/metadata/resourceVersion"),
            writers: writers.iter().map(|writer| writer.as_str().into()).collect(),
            json: serde_json::to_vec(&object).unwrap_or_default().into(),
        };
        self.lock().insert(id, content);
        Present { object: Arc::new(object), writers }
    }

    pub(super) fn forget(&self, id: &Id) {
        self.lock().remove(id);
    }
}

impl Inner {
    fn insert(&mut self, id: &Id, content: Content) {
        let id = self.remove(id).unwrap_or_else(|| Arc::new(id.clone()));
        self.next += 1;
        self.bytes += content.json.len() + EACH;
        self.entries.insert(Arc::clone(&id), (self.next, Arc::new(content)));
        self.order.push_back((self.next, id));
        while self.bytes > MOST
            && let Some((number, oldest)) = self.order.pop_front()
        {
            if self.entries.get(&oldest).is_some_and(|(current, _)| *current == number) {
                self.remove(&oldest);
            }
        }
        if self.order.len() > 64 + 2 * self.entries.len() {
            let entries = &self.entries;
            self.order.retain(|(number, id)| {
                entries.get(id).is_some_and(|(current, _)| current == number)
            });
        }
    }

    /// Gives the id as it was kept.
    fn remove(&mut self, id: &Id) -> Option<Arc<Id>> {
        let (id, (_, content)) = self.entries.remove_entry(id)?;
        self.bytes = self.bytes.saturating_sub(content.json.len() + EACH);
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn id(name: &str) -> Id {
        Id { resource: "configmaps".into(), name: name.into(), ..Id::default() }
    }

    #[test]
    fn what_is_kept_is_bounded_and_the_oldest_goes_first() {
        let contents = Contents::default();
        let long = "x".repeat(1 << 20);
        for number in 0..40 {
            let object = json!({ "metadata": { "uid": "u" }, "data": { "text": long } });
            drop(contents.keep(&id(&number.to_string()), object));
        }
        let inner = contents.lock();
        assert!(inner.bytes <= MOST && inner.entries.len() < 40);
        assert!(!inner.entries.contains_key(&id("0")) && inner.entries.contains_key(&id("39")));
    }

    #[test]
    fn the_policies_that_wrote_an_object_are_known_by_its_managers() {
        let contents = Contents::default();
        let object = |manager: &str| json!({ "metadata": { "managedFields": [{ "manager": manager, "fieldsV1": {} }] } });
        let ours = contents.keep(&id("a"), object(&crate::policy::field_manager("uid")));
        assert_eq!(ours.writers, ["uid"]);
        assert_eq!(contents.keep(&id("c"), object(FIELD_MANAGER)).writers, [""; 0]);
        let others = contents.keep(&id("b"), object("kubectl"));
        assert_eq!(others.writers, [""; 0]);
        assert_eq!(others.object.pointer("/metadata/managedFields"), None);
    }
    /// They were never counted as made by the policy, and so never pruned.
    #[test]
    fn an_object_without_any_field_is_known_to_be_made_by_who_made_it() {
        let contents = Contents::default();
        let object = |uid: &str| json!({ "metadata": { "name": "a", "uid": uid } });
        contents.made(&id("a"), object("one"), "policy");
        assert_eq!(contents.keep(&id("a"), object("one")).writers, ["policy"]);
        assert_eq!(contents.keep(&id("a"), object("two")).writers, [""; 0]);
        assert_eq!(contents.keep(&id("a"), object("one")).writers, [""; 0]);
    }
}
