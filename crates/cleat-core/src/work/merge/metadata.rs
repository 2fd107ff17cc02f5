//! Labels and annotations of a manifest on an object. All other metadata is the object's own.

use alloc::string::String;

use serde_json::{Map, Value};

/// The metadata to put, or nothing if it says what the manifest says.
pub(super) fn lay(
    existing: &Value,
    wanted: &Value,
    previous: Option<&Value>,
) -> Option<Map<String, Value>> {
    let mut metadata = existing.get("metadata")?.as_object()?.clone();
    let mut changed = false;
    for field in ["labels", "annotations"] {
        let mut entries = entries(existing, field).cloned().unwrap_or_default();
        if change(
            &mut entries,
            self::entries(wanted, field),
            previous.map(|p| self::entries(p, field)),
        ) {
            changed = true;
            metadata.insert(String::from(field), Value::Object(entries));
        }
    }
    changed.then_some(metadata)
}

/// Leaves what a creator may say. The keys that would remove something have nothing to remove yet.
pub(super) fn freshen(metadata: &mut Map<String, Value>) {
    for field in [
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "managedFields",
        "ownerReferences",
        "selfLink",
    ] {
        metadata.remove(field);
    }
    for field in ["labels", "annotations"] {
        if let Some(Value::Object(entries)) = metadata.get_mut(field) {
            entries.retain(|key, value| !key.ends_with('-') && !value.is_null());
        }
    }
}

fn entries<'a>(object: &'a Value, field: &str) -> Option<&'a Map<String, Value>> {
    object.get("metadata")?.get(field)?.as_object()
}

/// Whether anything had to change.
fn change(
    entries: &mut Map<String, Value>,
    wanted: Option<&Map<String, Value>>,
    previous: Option<Option<&Map<String, Value>>>,
) -> bool {
    let mut changed = false;
    for (key, value) in wanted.into_iter().flatten() {
        if let Some(unwanted) = key.strip_suffix('-') {
            changed |= entries.remove(unwanted).is_some();
        } else if !value.is_null() && entries.get(key) != Some(value) {
            entries.insert(key.clone(), value.clone());
            changed = true;
        }
    }
    for (key, value) in previous.flatten().into_iter().flatten() {
        let stated =
            wanted.and_then(|wanted| wanted.get(key)).is_some_and(|value| !value.is_null());
        // A value that somebody has changed since is theirs.
        if !stated && entries.get(key) == Some(value) {
            entries.remove(key);
            changed = true;
        }
    }
    changed
}
