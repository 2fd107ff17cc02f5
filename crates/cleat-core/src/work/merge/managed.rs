//! Who has set which field, from `metadata.managedFields`.
//!
//! An object without that account, or with one that cannot be read, has no field of ours: then
//! nothing is dropped for being ours.

use alloc::format;
use alloc::vec::Vec;

use serde_json::Value;

/// Field managers of this agent begin like this.
const OURS: &str = "work-agent";

/// The accounts of one place in an object: the field sets below it, of this agent and of others.
#[derive(Clone, Debug, Default)]
pub(super) struct Managed<'a> {
    ours: Vec<&'a Value>,
    others: Vec<&'a Value>,
}

impl<'a> Managed<'a> {
    pub(super) fn of(object: &'a Value) -> Self {
        let entries = object.get("metadata").and_then(|metadata| metadata.get("managedFields"));
        let mut managed = Self::default();
        for entry in entries.and_then(Value::as_array).into_iter().flatten() {
            let Some(fields) = entry.get("fieldsV1") else { continue };
            let manager = entry.get("manager").and_then(Value::as_str).unwrap_or_default();
            let direct = entry.get("subresource").is_none_or(|subresource| subresource == "");
            if direct && manager.starts_with(OURS) {
                managed.ours.push(fields);
            } else {
                managed.others.push(fields);
            }
        }
        managed
    }

    /// Whether this agent, and nobody else, has set this field or something below it.
    pub(super) fn only_ours(&self, field: &str) -> bool {
        let key = format!("f:{field}");
        let has = |sets: &[&Value]| sets.iter().any(|set| set.get(&key).is_some());
        has(&self.ours) && !has(&self.others)
    }

    pub(super) fn field(&self, field: &str) -> Self {
        self.below(&format!("f:{field}"))
    }

    /// The element of a list whose elements are told apart by name.
    pub(super) fn named(&self, name: &str) -> Self {
        self.below(&format!("k:{{\"name\":{}}}", Value::from(name)))
    }

    fn below(&self, key: &str) -> Self {
        let below = |sets: &[&'a Value]| sets.iter().filter_map(|set| set.get(key)).collect();
        Self { ours: below(&self.ours), others: below(&self.others) }
    }
}
