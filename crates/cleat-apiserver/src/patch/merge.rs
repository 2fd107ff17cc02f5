//! JSON merge patch (RFC 7396), with the library quirks that kube-apiserver shows to clients:
//! a value that replaces something which is not an object, or nothing at all, loses its nulls even
//! inside lists.

use serde_json::Value;

/// Merges `patch`, an object, into `current`.
pub(super) fn apply(current: &mut Value, patch: &Value) {
    let (Value::Object(fields), Value::Object(changes)) = (&mut *current, patch) else {
        *current = without_nulls(patch);
        return;
    };
    for (key, change) in changes {
        if change.is_null() {
            fields.remove(key);
            continue;
        }
        match fields.get_mut(key) {
            None | Some(Value::Null) => {
                fields.insert(key.clone(), without_nulls(change));
            }
            Some(field @ Value::Object(_)) if !change.is_object() => *field = change.clone(),
            Some(field) => apply(field, change),
        }
    }
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => map
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| (key.clone(), without_nulls(value)))
            .collect(),
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        scalar => scalar.clone(),
    }
}
