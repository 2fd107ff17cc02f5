//! Where an object would be another after a write. Paths only: values may be secret.

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use serde_json::{Map, Value};

/// What a server keeps for itself, our marks, and what its own controllers report.
const UNTOLD: [&str; 6] = [
    "status",
    "metadata.generation",
    "metadata.managedFields",
    "metadata.ownerReferences",
    "metadata.resourceVersion",
    "metadata.uid",
];

/// The paths at which two states of an object differ, such as `spec.template.spec.containers[0].image`.
pub fn differences(before: &Value, after: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare("", before, after, &mut found);
    found
}

fn compare(path: &str, before: &Value, after: &Value, found: &mut Vec<String>) {
    if before == after || UNTOLD.contains(&path) {
        return;
    }
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => compare_fields(path, old, new, found),
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (index, (old, new)) in old.iter().zip(new).enumerate() {
                compare(&format!("{path}[{index}]"), old, new, found);
            }
        }
        _ => found.push(path.to_string()),
    }
}

fn compare_fields(
    path: &str,
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    found: &mut Vec<String>,
) {
    let added = new.iter().filter(|(key, _)| !old.contains_key(*key));
    let mut keys: Vec<&String> = old.keys().chain(added.map(|(key, _)| key)).collect();
    keys.sort();
    for key in keys {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        match (old.get(key), new.get(key)) {
            (Some(old), Some(new)) => compare(&path, old, new, found),
            _ if UNTOLD.contains(&path.as_str()) => {}
            _ => found.push(path),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_somebody_asked_for_is_told() {
        let before = json!({
            "metadata": { "resourceVersion": "1", "labels": { "a": "1" } },
            "spec": { "replicas": 1, "list": [{ "image": "a" }], "ports": [1] },
            "status": { "ready": 1 },
        });
        let after = json!({
            "metadata": { "resourceVersion": "2", "labels": { "a": "1", "b": "2" }, "generation": 2 },
            "spec": { "replicas": 2, "list": [{ "image": "b" }], "ports": [1, 2] },
        });
        let expected = ["metadata.labels.b", "spec.list[0].image", "spec.ports", "spec.replicas"];
        assert_eq!(differences(&before, &after), expected);
        assert_eq!(differences(&before, &before), [] as [String; 0]);
    }
}
