//! Filling in what a structural schema says by default, and dropping nulls it does not allow.
//!
//! An object is defaulted after pruning. Nothing is ever defaulted inside a list or map that is
//! not there.

use serde_json::Value;

use super::Schema;

/// [`prune_nulls`] on a whole object, whose metadata is not the schema's business.
pub(crate) fn prune_nulls_below_root(value: &mut Value, schema: Schema<'_>) {
    let Value::Object(map) = value else { return };
    let metadata = map.remove("metadata");
    prune_nulls(value, schema);
    if let (Some(metadata), Value::Object(map)) = (metadata, value) {
        map.insert("metadata".to_owned(), metadata);
    }
}

/// Removes nulls from maps where the schema neither allows null nor has a default to put there.
/// Nulls in lists stay, so that indices keep their meaning.
pub fn prune_nulls(value: &mut Value, schema: Schema<'_>) {
    match value {
        Value::Object(map) => map.retain(|key, value| {
            let Some(below) = schema.property(key) else { return true };
            let node = below.node();
            if value.is_null() && !node.nullable && given(below).is_none() {
                return false;
            }
            prune_nulls(value, below);
            true
        }),
        Value::Array(items) => {
            let Some(below) = schema.items() else { return };
            for item in items {
                prune_nulls(item, below);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Puts the schema's defaults where a property is absent, or null although it may not be.
/// Defaulting twice changes nothing more.
pub fn default(value: &mut Value, schema: Schema<'_>) {
    match value {
        Value::Object(map) => {
            for (key, id) in &schema.node().properties {
                let property = schema.child(*id);
                let Some(default) = given(property) else { continue };
                match map.get_mut(&**key) {
                    None => {
                        map.insert(key.to_string(), default.clone());
                    }
                    Some(slot) if slot.is_null() && !property.node().nullable => {
                        *slot = default.clone();
                    }
                    Some(_) => {}
                }
            }
            for (key, value) in map {
                let Some(below) = schema.property(key) else { continue };
                replace_null(value, below);
                default(value, below);
            }
        }
        Value::Array(items) => {
            let Some(below) = schema.items() else { return };
            for item in items {
                replace_null(item, below);
                default(item, below);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn replace_null(value: &mut Value, schema: Schema<'_>) {
    if value.is_null()
        && !schema.node().nullable
        && let Some(default) = given(schema)
    {
        *value = default.clone();
    }
}

/// The schema's default. `default: null` counts as none.
fn given(schema: Schema<'_>) -> Option<&Value> {
    schema.node().default.as_ref().filter(|default| !default.is_null())
}

#[cfg(test)]
mod tests;
