//! What a server makes of an object by itself, and so is no difference.

use alloc::string::String;

use serde_json::{Map, Value};

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Whether what a server would store is what it has, but for its own bookkeeping.
pub fn same_to_a_server(one: &Value, other: &Value) -> bool {
    stripped(one) == stripped(other)
}

/// The object without what a server writes down for itself.
pub(super) fn stripped(object: &Value) -> Value {
    let mut object = object.clone();
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
        return object;
    };
    for field in ["managedFields", "generation", "resourceVersion"] {
        metadata.remove(field);
    }
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.remove(LAST_APPLIED);
    }
    let empty =
        |annotations: &Value| annotations.as_object().is_none_or(Map::<String, Value>::is_empty);
    if metadata.get("annotations").is_some_and(empty) {
        metadata.remove("annotations");
    }
    object
}
