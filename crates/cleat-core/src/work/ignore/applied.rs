//! Whether a body was applied to an object already, so that it need not be applied again.

use alloc::string::String;

use cleat_api::manifestwork::{CONFIG_SPEC_HASH, FIELD_MANAGER};
use serde_json::{Map, Value};

use super::ApplyBody;
use crate::work::merge;

impl ApplyBody {
    /// Whether an object says what this body says, on behalf of any manager of this agent.
    ///
    /// With fields to ignore, the annotation decides alone: others may have changed what they are
    /// left to change. Without, every field of the body must be on the object, and the agent must
    /// have applied these fields and no others.
    pub fn was_applied_to(&self, existing: &Value) -> bool {
        self.was_applied(existing, |manager| manager.starts_with(FIELD_MANAGER))
    }

    /// The same on behalf of one manager.
    pub fn was_applied_by(&self, existing: &Value, manager: &str) -> bool {
        self.was_applied(existing, |other| other == manager)
    }

    fn was_applied(&self, existing: &Value, ours: impl Fn(&str) -> bool) -> bool {
        let metadata = existing.get("metadata");
        let entries = metadata.and_then(|metadata| metadata.get("managedFields"));
        let mut applied = entries.and_then(Value::as_array).into_iter().flatten().filter(|entry| {
            let text = |field| entry.get(field).and_then(Value::as_str).unwrap_or_default();
            text("operation") == "Apply" && text("subresource").is_empty() && ours(text("manager"))
        });
        if !self.hash.is_empty() {
            let hash = metadata.and_then(|metadata| metadata.get("annotations"));
            let hash = hash.and_then(|annotations| annotations.get(CONFIG_SPEC_HASH));
            return hash.and_then(Value::as_str) == Some(&self.hash) && applied.next().is_some();
        }
        let mut any = false;
        for entry in applied {
            any = true;
            let fields = entry.get("fieldsV1").and_then(Value::as_object);
            if fields.is_some_and(|fields| !states(&self.object, fields)) {
                return false;
            }
        }
        // A server keeps no account of who has said nothing.
        (any || says_nothing(&self.object))
            && merge::update(existing, &self.object, None) == merge::Merge::Same
    }
}

/// Whether a body only names an object.
fn says_nothing(body: &Value) -> bool {
    let empty = |value: &Value| match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(entries) => entries.is_empty(),
        _ => false,
    };
    body.as_object().into_iter().flatten().all(|(key, value)| match (key.as_str(), value) {
        ("apiVersion" | "kind", _) => true,
        ("metadata", Value::Object(metadata)) => metadata
            .iter()
            .all(|(key, value)| matches!(key.as_str(), "name" | "namespace") || empty(value)),
        (_, value) => empty(value),
    })
}

/// Whether a body has every field of a field set.
fn states(body: &Value, fields: &Map<String, Value>) -> bool {
    fields.iter().all(|(key, below)| {
        let found = if let Some(name) = key.strip_prefix("f:") {
            body.get(name)
        } else if let Some(keys) = key.strip_prefix("k:") {
            let Ok(Value::Object(keys)) = serde_json::from_str(keys) else { return true };
            element(body, |item| {
                // A key that the body leaves to its default is no contradiction.
                keys.iter().all(|(key, value)| item.get(key).is_none_or(|other| other == value))
            })
        } else if let Some(value) = key.strip_prefix("v:") {
            let Ok(value) = serde_json::from_str::<Value>(value) else { return true };
            element(body, |item| *item == value)
        } else {
            return true;
        };
        match (found, below.as_object()) {
            (None, _) => false,
            (Some(found), Some(below)) => states(found, below),
            (Some(_), None) => true,
        }
    })
}

fn element(list: &Value, is: impl Fn(&Value) -> bool) -> Option<&Value> {
    list.as_array()?.iter().find(|item| is(item))
}
