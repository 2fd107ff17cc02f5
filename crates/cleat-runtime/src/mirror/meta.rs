//! What a mirror keeps of an object.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::known::Incarnation;

/// An object's metadata, without what only servers care for. Name and namespace are what it was
/// looked up by.
#[derive(Debug, PartialEq, Eq)]
pub struct Meta {
    pub uid: Box<str>,
    pub resource_version: Box<str>,
    /// Not every kind counts.
    pub generation: Option<i64>,
    /// Since when it is to be deleted.
    pub deletion_timestamp: Option<Timestamp>,
    pub finalizers: Box<[Box<str>]>,
    /// Shared between objects: those of one work have the same owner.
    pub owner_references: Box<[Arc<OwnerReference>]>,
    /// Differs when labels or annotations do.
    pub labels_annotations_digest: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OwnerReference {
    pub uid: Box<str>,
    pub api_version: Box<str>,
    pub kind: Box<str>,
    pub name: Box<str>,
    pub controller: Option<bool>,
    pub block_owner_deletion: Option<bool>,
}

impl Incarnation for Arc<Meta> {
    fn uid(&self) -> &str {
        &self.uid
    }

    fn revision(&self) -> Option<u64> {
        self.resource_version.parse().ok()
    }
}

/// As little of an object as says whether anybody cares.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Head<'a> {
    #[serde(borrow, default)]
    pub(super) namespace: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) name: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) uid: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) resource_version: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Object<M> {
    metadata: M,
}

pub(super) fn head(object: &RawValue) -> Option<Head<'_>> {
    let parsed: serde_json::Result<Object<Head<'_>>> = serde_json::from_str(object.get());
    parsed.ok().map(|object| object.metadata)
}

/// What is read of an object somebody cares about; managed fields are skipped.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    uid: Box<str>,
    #[serde(default)]
    resource_version: Box<str>,
    generation: Option<i64>,
    deletion_timestamp: Option<String>,
    finalizers: Option<Box<[Box<str>]>>,
    owner_references: Option<Vec<OwnerReference>>,
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
}

/// Owner references that are kept once.
#[derive(Default)]
pub(super) struct Owners {
    all: BTreeSet<Arc<OwnerReference>>,
    /// How many there may be before the unused ones are looked for.
    bound: usize,
}

impl Owners {
    pub(super) fn meta_of_text(&mut self, object: &RawValue) -> Option<Arc<Meta>> {
        let parsed: serde_json::Result<Object<Body>> = serde_json::from_str(object.get());
        Some(self.meta(parsed.ok()?.metadata))
    }

    pub(super) fn meta_of_value(&mut self, object: &Value) -> Option<Arc<Meta>> {
        Some(self.meta(Body::deserialize(object.get("metadata")?).ok()?))
    }

    fn meta(&mut self, body: Body) -> Arc<Meta> {
        let Body {
            uid,
            resource_version,
            generation,
            deletion_timestamp,
            finalizers,
            owner_references,
            labels,
            annotations,
        } = body;
        let owners = owner_references.unwrap_or_default();
        Arc::new(Meta {
            uid,
            resource_version,
            generation,
            // A time that we cannot read is a deletion all the same.
            deletion_timestamp: deletion_timestamp
                .map(|time| time.parse().unwrap_or(Timestamp::UNIX_EPOCH)),
            finalizers: finalizers.unwrap_or_default(),
            owner_references: owners.into_iter().map(|owner| self.shared(owner)).collect(),
            labels_annotations_digest: digest([labels, annotations]),
        })
    }

    fn shared(&mut self, owner: OwnerReference) -> Arc<OwnerReference> {
        if let Some(known) = self.all.get(&owner) {
            return Arc::clone(known);
        }
        if self.all.len() >= self.bound {
            self.all.retain(|owner| Arc::strong_count(owner) > 1);
            self.bound = (2 * self.all.len()).max(64);
        }
        let owner = Arc::new(owner);
        self.all.insert(Arc::clone(&owner));
        owner
    }
}

/// FNV-1a. It need not withstand anybody: a revision changes with what it is made from.
fn digest(maps: [Option<BTreeMap<String, String>>; 2]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |byte: u8| {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    };
    for map in maps {
        for (key, value) in map.iter().flatten() {
            // No text has this byte, so it separates.
            key.bytes().chain([0xff]).chain(value.bytes()).chain([0xff]).for_each(&mut add);
        }
        add(0xfe);
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn text_and_value_give_the_same() {
        let object = json!({ "kind": "PartialObjectMetadata", "metadata": {
            "name": "a", "namespace": "n", "uid": "u", "resourceVersion": "7", "generation": 3,
            "creationTimestamp": null, "deletionTimestamp": "2026-01-02T03:04:05Z",
            "labels": { "<&>": "é\"\\" }, "annotations": { "a": "b" }, "finalizers": ["f/g"],
            "ownerReferences": [{ "apiVersion": "v1", "kind": "K", "name": "o", "uid": "x" }],
            "managedFields": [{ "manager": "m", "fieldsV1": { "f:data": {} } }],
        } });
        let text = RawValue::from_string(object.to_string().replace('<', "\\u003c")).unwrap();
        let mut owners = Owners::default();
        let one = owners.meta_of_text(&text).unwrap();
        let other = owners.meta_of_value(&object).unwrap();
        assert_eq!(one, other);
        assert!(Arc::ptr_eq(&one.owner_references[0], &other.owner_references[0]));
        assert_eq!(one.deletion_timestamp.unwrap().to_string(), "2026-01-02T03:04:05Z");
        assert_eq!((&*one.uid, one.revision(), one.generation), ("u", Some(7), Some(3)));
        let head = head(&text).unwrap();
        assert_eq!((&*head.namespace, &*head.name, &*head.uid), ("n", "a", "u"));
    }

    #[test]
    fn a_label_is_no_annotation() {
        let map = |key: &str| Some(BTreeMap::from([(key.to_owned(), String::new())]));
        let digests = [
            digest([None, None]),
            digest([map("a"), None]),
            digest([None, map("a")]),
            digest([map("b"), None]),
        ];
        assert_eq!(BTreeSet::from(digests).len(), digests.len());
    }

    #[test]
    fn owners_nobody_has_are_let_go() {
        let mut owners = Owners::default();
        for uid in 0..10_000 {
            let owner = OwnerReference { uid: uid.to_string().into(), ..OwnerReference::default() };
            drop(owners.shared(owner));
        }
        assert!(owners.all.len() <= 64);
    }
}
