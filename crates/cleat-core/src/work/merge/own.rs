//! Our owner reference among those of an object.

use alloc::vec::Vec;

use serde_json::Value;

/// The owner references an object should have, or nothing if it has them.
///
/// References are one and the same if name, kind and group are: a reference with the uid of an
/// earlier incarnation is replaced, and all of them are removed if the object is not `owned`.
/// Everybody else's stay, in their order.
pub fn own(existing_refs: &Value, own_ref: &Value, owned: bool) -> Option<Value> {
    let existing = existing_refs.as_array().map(Vec::as_slice).unwrap_or_default();
    let ours = identity(own_ref);
    let mut placed = !owned;
    let mut references = Vec::with_capacity(existing.len() + 1);
    for reference in existing {
        if identity(reference) != ours {
            references.push(reference.clone());
        } else if !placed {
            placed = true;
            let current = ["apiVersion", "uid"]
                .into_iter()
                .all(|field| reference.get(field) == own_ref.get(field));
            references.push(if current { reference.clone() } else { own_ref.clone() });
        }
    }
    if !placed {
        references.push(own_ref.clone());
    }
    (references != existing).then_some(Value::Array(references))
}

fn identity(reference: &Value) -> [&str; 3] {
    let text = |field| reference.get(field).and_then(Value::as_str).unwrap_or_default();
    let group = text("apiVersion").split_once('/').map_or("", |(group, _)| group);
    [group, text("kind"), text("name")]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::format;

    fn reference(api_version: &str, name: &str, uid: &str) -> Value {
        json!({ "apiVersion": api_version, "kind": "AppliedManifestWork", "name": name, "uid": uid })
    }

    #[test]
    fn references() {
        let group = "work.open-cluster-management.io";
        let ours = reference(&format!("{group}/v1"), "a", "1");
        let stale = reference(&format!("{group}/v1"), "a", "0");
        let older = reference(&format!("{group}/v1alpha1"), "a", "1");
        let other = reference(&format!("{group}/v1"), "b", "1");
        let foreign = reference("example.com/v1", "a", "1");
        let core = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "9" });
        for (existing, owned, expected) in [
            (Value::Null, true, Some(json!([ours]))),
            (json!([]), true, Some(json!([ours]))),
            (json!([ours]), true, None),
            (json!([other, ours, core]), true, None),
            (json!([other, stale, core]), true, Some(json!([other, ours, core]))),
            (json!([stale, ours]), true, Some(json!([ours]))),
            (json!([older]), true, Some(json!([ours]))),
            (json!([foreign]), true, Some(json!([foreign, ours]))),
            (Value::Null, false, None),
            (json!([other, foreign]), false, None),
            (json!([other, ours]), false, Some(json!([other]))),
            (json!([stale]), false, Some(json!([]))),
        ] {
            assert_eq!(own(&existing, &ours, owned), expected, "{existing} {owned}");
        }
    }

    #[test]
    fn what_others_set_on_our_reference_stays() {
        let ours = reference("work.open-cluster-management.io/v1", "a", "1");
        let mut blocking = ours.clone();
        blocking["blockOwnerDeletion"] = json!(true);
        assert_eq!(own(&json!([blocking]), &ours, true), None);
    }
}
