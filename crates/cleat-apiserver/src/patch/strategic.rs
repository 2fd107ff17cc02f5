//! Strategic merge patch: merge patch that knows which lists merge, and by which key.
//!
//! Keys and strategies come from the schema (`x-kubernetes-patch-strategy` and `-merge-key`). Where
//! the schema says nothing, maps merge and lists replace. Custom resources never get here.

mod lists;
mod refusal;

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use self::refusal::Refusal;
use crate::quote;
use crate::schema::Schema;
use crate::status::Status;

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const SET_ORDER: &str = "$setElementOrder";
const DELETE_PRIMITIVES: &str = "$deleteFromPrimitiveList";

/// How one field merges.
#[derive(Clone, Copy)]
struct Field<'a> {
    /// Of the field's value, or of its elements if it is a list.
    content: Option<Schema<'a>>,
    strategy: Strategy,
    merge_key: Option<&'a str>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Strategy {
    Unspecified,
    Merge,
    Replace,
}

/// Merges `patch`, an object, into `current`.
pub(super) fn apply(
    current: &mut Value,
    patch: &Value,
    schema: Option<Schema<'_>>,
) -> Result<(), Status> {
    let (Value::Object(original), Value::Object(patch)) = (current, patch) else {
        return Err(Refusal::NotAnObject.into());
    };
    merge_maps(original, patch.clone(), schema).map_err(Status::from)
}

fn merge_maps(
    original: &mut Map<String, Value>,
    mut patch: Map<String, Value>,
    schema: Option<Schema<'_>>,
) -> Result<(), Refusal> {
    if let Some(directive) = patch.get(DIRECTIVE) {
        match directive.as_str() {
            Some("replace") => {
                patch.remove(DIRECTIVE);
                *original = patch;
            }
            Some("delete") => original.clear(),
            _ => return Err(Refusal::unknown_directive(directive, &patch)),
        }
        return Ok(());
    }
    retain_keys(original, &mut patch)?;
    set_orders(original, &mut patch, schema)?;
    for (key, change) in patch {
        match key.strip_prefix(DELETE_PRIMITIVES) {
            Some(rest) => {
                let key = rest.strip_prefix('/').ok_or(Refusal::BadPrimitiveList)?;
                delete_primitives(original, key, &change, schema)?;
            }
            None => merge_field(original, &key, change, schema)?,
        }
    }
    Ok(())
}

fn merge_field(
    original: &mut Map<String, Value>,
    key: &str,
    change: Value,
    schema: Option<Schema<'_>>,
) -> Result<(), Refusal> {
    if change.is_null() {
        original.remove(key);
        return Ok(());
    }
    match (original.get_mut(key), change) {
        (Some(Value::Object(current)), Value::Object(change)) => {
            let field = field(schema, key);
            if field.strategy == Strategy::Replace {
                *current = change;
                return Ok(());
            }
            merge_maps(current, change, field.content)
        }
        (Some(Value::Array(current)), Value::Array(change)) => {
            let field = field(schema, key);
            if field.strategy == Strategy::Merge {
                let merged = lists::merge(std::mem::take(current), change, field)?;
                *current = merged;
            } else {
                *current = change;
            }
            Ok(())
        }
        (_, change) => {
            match plain(change) {
                Some(value) => original.insert(key.to_owned(), value),
                None => original.remove(key),
            };
            Ok(())
        }
    }
}

/// Drops everything a `$retainKeys` list does not name.
fn retain_keys(
    original: &mut Map<String, Value>,
    patch: &mut Map<String, Value>,
) -> Result<(), Refusal> {
    let Some(list) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let Value::Array(list) = list else { return Err(Refusal::BadRetainKeys) };
    let retained: BTreeSet<&str> = list.iter().filter_map(Value::as_str).collect();
    for (key, value) in patch.iter() {
        let directive = key.starts_with(DELETE_PRIMITIVES) || key.starts_with(SET_ORDER);
        if !value.is_null() && !directive && !retained.contains(key.as_str()) {
            return Err(Refusal::BadRetainKeys);
        }
    }
    original.retain(|key, _| retained.contains(key.as_str()));
    Ok(())
}

/// Merges and orders every list for which the patch carries a `$setElementOrder`, and takes both
/// out of the patch.
fn set_orders(
    original: &mut Map<String, Value>,
    patch: &mut Map<String, Value>,
    schema: Option<Schema<'_>>,
) -> Result<(), Refusal> {
    let orders: Vec<String> =
        patch.keys().filter(|key| key.starts_with(SET_ORDER)).cloned().collect();
    for order_key in orders {
        let order = match patch.remove(&order_key) {
            Some(Value::Array(order)) => order,
            other => return Err(Refusal::not_a_list(&other.unwrap_or_default())),
        };
        let key = order_key
            .strip_prefix(SET_ORDER)
            .and_then(|rest| rest.strip_prefix('/'))
            .ok_or(Refusal::BadOrder)?;
        let current = match original.get(key) {
            None => None,
            Some(Value::Array(list)) => Some(list.clone()),
            Some(other) => return Err(Refusal::not_a_list(other)),
        };
        let change = match patch.remove(key) {
            None => None,
            Some(Value::Array(list)) => Some(list),
            Some(other) => return Err(Refusal::not_a_list(&other)),
        };
        let field = field(schema, key);
        if let Some(ordered) = lists::merge_in_order(current, change, &order, field)? {
            original.insert(key.to_owned(), Value::Array(ordered));
        }
    }
    Ok(())
}

fn delete_primitives(
    original: &mut Map<String, Value>,
    key: &str,
    doomed: &Value,
    schema: Option<Schema<'_>>,
) -> Result<(), Refusal> {
    match (original.get_mut(key), doomed) {
        (_, Value::Null) => {
            original.remove(key);
            Ok(())
        }
        (Some(Value::Array(current)), Value::Array(doomed)) => {
            lists::delete(current, doomed, field(schema, key))
        }
        _ => Ok(()),
    }
}

/// What the schema says of a field.
fn field<'a>(schema: Option<Schema<'a>>, key: &str) -> Field<'a> {
    let unknown = Field { content: None, strategy: Strategy::Unspecified, merge_key: None };
    let Some(parent) = schema else { return unknown };
    let Some(property) = parent.property(key) else { return unknown };
    let node = property.node();
    let strategies = match parent.node().refined.get(key) {
        Some(refined) if !refined.patch_strategy.is_empty() => &refined.patch_strategy,
        _ => &node.patch_strategy,
    };
    let strategy = match strategies.iter().find(|strategy| &***strategy != "retainKeys") {
        Some(strategy) if &**strategy == "merge" => Strategy::Merge,
        Some(strategy) if &**strategy == "replace" => Strategy::Replace,
        _ => Strategy::Unspecified,
    };
    Field {
        content: Some(property.items().unwrap_or(property)),
        strategy,
        merge_key: node.patch_merge_key.as_deref(),
    }
}

/// A value from the patch that meets nothing to merge with: nulls and whatever carries a directive
/// are left out.
fn plain(value: Value) -> Option<Value> {
    match value {
        Value::Object(map) if map.contains_key(DIRECTIVE) => None,
        Value::Object(map) => Some(
            map.into_iter()
                .filter(|(_, value)| !value.is_null())
                .filter_map(|(key, value)| Some((key, plain(value)?)))
                .collect(),
        ),
        Value::Array(items) => Some(items.into_iter().filter_map(plain).collect()),
        scalar => Some(scalar),
    }
}

/// `map[...]` as upstream shows maps in its refusals.
fn shown(map: &Map<String, Value>) -> String {
    quote::plain(&Value::Object(map.clone()))
}
