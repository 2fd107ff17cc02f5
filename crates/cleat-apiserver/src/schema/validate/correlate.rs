//! Which part of the old object a part of the new one corresponds to, so that unchanged mistakes
//! can be let through.
//!
//! Map keys correspond to themselves, elements of list-maps to the element with the same keys;
//! elements of other lists to nothing.

use serde_json::Value;

use crate::schema::{ListType, Schema, Type};

/// A value, what it was before, and the schema both are read with.
#[derive(Clone, Copy)]
pub(crate) struct Pair<'a> {
    pub(crate) new: &'a Value,
    pub(crate) old: &'a Value,
    pub(crate) schema: Schema<'a>,
}

impl<'a> Pair<'a> {
    /// The pair under `key`, when both sides have it.
    pub(crate) fn key(self, key: &str) -> Option<Self> {
        let new = self.new.as_object()?.get(key)?;
        let old = self.old.as_object()?.get(key)?;
        Some(Self { new, old, schema: self.schema.property(key)? })
    }

    /// The pair of `item`, an element of the new list.
    pub(crate) fn index(self, item: &'a Value) -> Option<Self> {
        let schema = self.schema.items()?;
        if !self.is_list_map() {
            return None;
        }
        let wanted = self.keys_of(item)?;
        let old = self.old.as_array()?;
        let old = old.iter().find(|old| self.keys_of(old).as_ref() == Some(&wanted))?;
        Some(Self { new: item, old, schema })
    }

    /// Whether nothing changed, except perhaps the order of list-maps.
    pub(crate) fn unchanged(self) -> bool {
        match (self.new, self.old) {
            (Value::Array(new), Value::Array(old)) => {
                new.len() == old.len()
                    && match self.is_list_map() && self.schema.items().is_some() {
                        true => {
                            new.iter().all(|item| self.index(item).is_some_and(Self::unchanged))
                        }
                        false => new == old,
                    }
            }
            (Value::Object(new), Value::Object(old)) => {
                new.len() == old.len()
                    && new.keys().all(|key| self.key(key).is_some_and(Self::unchanged))
            }
            (new, old) => new == old,
        }
    }

    fn is_list_map(self) -> bool {
        let node = self.schema.node();
        node.kind == Some(Type::Array)
            && node.list_type == Some(ListType::Map)
            && !node.list_map_keys.is_empty()
    }

    /// The key values of a list-map's element; they must be scalars and not null.
    fn keys_of(self, item: &Value) -> Option<Vec<&Value>> {
        let item = item.as_object()?;
        let keys = self.schema.node().list_map_keys.iter();
        keys.map(|key| item.get(&**key).filter(|v| !(v.is_array() || v.is_object() || v.is_null())))
            .collect()
    }
}
