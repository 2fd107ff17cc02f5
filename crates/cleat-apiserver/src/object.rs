//! Reading and changing the metadata that every object has.
//!
//! Objects come from outside: a field of the wrong type reads as absent here, and is refused where
//! metadata is validated.

use serde_json::{Map, Value};

const NOTHING: &[Value] = &[];

pub(crate) fn metadata(object: &Value) -> Option<&Map<String, Value>> {
    object.get("metadata")?.as_object()
}

/// The metadata of `object`, made empty first if it has none.
pub(crate) fn metadata_mut(object: &mut Value) -> &mut Map<String, Value> {
    let holder = match object {
        Value::Object(map) => map.entry("metadata").or_insert_with(|| Value::Object(Map::new())),
        other => other,
    };
    as_map(holder)
}

/// Makes `value` a map if it is none, and hands it out.
pub(crate) fn as_map(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(map) => map,
        _ => unreachable!("it was just made a map"),
    }
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    metadata(object).and_then(|meta| meta.get(field)?.as_str()).unwrap_or_default()
}

pub(crate) fn name(object: &Value) -> &str {
    text(object, "name")
}

pub(crate) fn namespace(object: &Value) -> &str {
    text(object, "namespace")
}

pub(crate) fn uid(object: &Value) -> &str {
    text(object, "uid")
}

pub(crate) fn resource_version(object: &Value) -> &str {
    text(object, "resourceVersion")
}

pub(crate) fn deletion_timestamp(object: &Value) -> Option<&str> {
    metadata(object)?.get("deletionTimestamp")?.as_str()
}

pub(crate) fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    list(object, "finalizers").iter().filter_map(Value::as_str)
}

pub(crate) fn has_finalizer(object: &Value, finalizer: &str) -> bool {
    finalizers(object).any(|present| present == finalizer)
}

/// Adds a finalizer unless it is there.
pub(crate) fn add_finalizer(object: &mut Value, finalizer: &str) {
    if has_finalizer(object, finalizer) {
        return;
    }
    let slot = metadata_mut(object).entry("finalizers").or_insert_with(|| Value::Array(vec![]));
    match slot {
        Value::Array(all) => all.push(finalizer.into()),
        other => *other = Value::Array(vec![finalizer.into()]),
    }
}

/// Removes a finalizer, and the empty list it may leave.
pub(crate) fn remove_finalizer(object: &mut Value, finalizer: &str) {
    let meta = metadata_mut(object);
    if let Some(Value::Array(all)) = meta.get_mut("finalizers") {
        all.retain(|present| present != finalizer);
        if all.is_empty() {
            meta.remove("finalizers");
        }
    }
}

pub(crate) fn owner_references(object: &Value) -> &[Value] {
    list(object, "ownerReferences")
}

fn list<'a>(object: &'a Value, field: &str) -> &'a [Value] {
    metadata(object).and_then(|meta| meta.get(field)?.as_array()).map_or(NOTHING, Vec::as_slice)
}

pub(crate) fn labels(object: &Value) -> Option<&Map<String, Value>> {
    metadata(object)?.get("labels")?.as_object()
}

/// A string somewhere below the root, or nothing.
pub(crate) fn at<'a>(object: &'a Value, pointer: &str) -> Option<&'a str> {
    object.pointer(pointer)?.as_str()
}
