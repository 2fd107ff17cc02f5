//! Reading JSON the way Go reads a struct: what is missing is empty, never an error.

use serde_json::{Map, Value};

static NULL: Value = Value::Null;

/// Total accessors: a wrong type reads like an absent field, because the decoding step has already
/// refused it where that matters.
pub(crate) trait Read {
    fn at(&self, key: &str) -> &Value;

    fn text(&self, key: &str) -> &str {
        self.at(key).as_str().unwrap_or("")
    }

    fn list(&self, key: &str) -> &[Value] {
        self.at(key).as_array().map_or(&[], Vec::as_slice)
    }

    fn map(&self, key: &str) -> Option<&Map<String, Value>> {
        self.at(key).as_object()
    }

    fn number(&self, key: &str) -> Option<i64> {
        self.at(key).as_i64()
    }

    fn flag(&self, key: &str) -> bool {
        self.at(key).as_bool().unwrap_or(false)
    }

    fn has(&self, key: &str) -> bool {
        !self.at(key).is_null()
    }

    /// Walks several keys.
    fn path(&self, keys: &[&str]) -> &Value {
        match keys {
            [] => &NULL,
            [first, rest @ ..] => rest.iter().fold(self.at(first), |value, key| value.at(key)),
        }
    }
}

impl Read for Value {
    fn at(&self, key: &str) -> &Value {
        self.get(key).unwrap_or(&NULL)
    }
}

impl Read for Map<String, Value> {
    fn at(&self, key: &str) -> &Value {
        self.get(key).unwrap_or(&NULL)
    }
}

/// The text at a JSON pointer.
pub(crate) fn text_at<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The object at `value`, made one if it is not.
pub(crate) fn object(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(map) => map,
        // Never taken: the value was made an object above.
        _ => Box::leak(Box::default()),
    }
}

/// The object under `key`, made one if it is not.
pub(crate) fn child<'a>(map: &'a mut Map<String, Value>, key: &str) -> &'a mut Map<String, Value> {
    object(map.entry(key).or_insert(Value::Null))
}

/// Sets `key` unless it already holds something; null and the empty string count as nothing.
pub(crate) fn fill(map: &mut Map<String, Value>, key: &str, value: impl Into<Value>) {
    match map.get(key) {
        None | Some(Value::Null) => {
            map.insert(key.to_owned(), value.into());
        }
        Some(Value::String(text)) if text.is_empty() => {
            map.insert(key.to_owned(), value.into());
        }
        Some(_) => {}
    }
}

/// The list under `key`, made one if it is not.
pub(crate) fn list<'a>(map: &'a mut Map<String, Value>, key: &str) -> &'a mut Vec<Value> {
    let value = map.entry(key).or_insert(Value::Null);
    if !value.is_array() {
        *value = Value::Array(Vec::new());
    }
    match value {
        Value::Array(items) => items,
        // Never taken: the value was made a list above.
        _ => Box::leak(Box::default()),
    }
}

/// The objects in the list under `key`.
pub(crate) fn objects<'a>(
    map: &'a mut Map<String, Value>,
    key: &str,
) -> impl Iterator<Item = &'a mut Map<String, Value>> {
    let items = map.get_mut(key).and_then(Value::as_array_mut);
    items.into_iter().flatten().filter_map(Value::as_object_mut)
}
