//! Lists that are sets or maps must not repeat themselves.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::{
    schema::{ListType, Node, Schema},
    status::{FieldError, Problem},
};

/// Repeated elements of sets and repeated keys of list-maps, anywhere in an object.
pub(super) fn check(value: &Value, schema: Schema<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    walk(value, schema, &mut String::new(), &mut errors);
    errors
}

fn walk(value: &Value, schema: Schema<'_>, path: &mut String, errors: &mut Vec<FieldError>) {
    let length = path.len();
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let Some(below) = schema.property(key) else { continue };
                match schema.node().properties.contains_key(key.as_str()) {
                    true if length > 0 => path.push_str(&format!(".{key}")),
                    true => path.push_str(key),
                    false => path.push_str(&format!("[{key}]")),
                }
                walk(value, below, path, errors);
                path.truncate(length);
            }
        }
        Value::Array(items) => {
            list(items, schema.node(), path, errors);
            let Some(below) = schema.items() else { return };
            for (index, item) in items.iter().enumerate() {
                path.push_str(&format!("[{index}]"));
                walk(item, below, path, errors);
                path.truncate(length);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn list(items: &[Value], node: &Node, path: &str, errors: &mut Vec<FieldError>) {
    let identities: Vec<Value> = match node.list_type {
        Some(ListType::Set) => items.to_vec(),
        Some(ListType::Map) => {
            for (index, item) in items.iter().enumerate() {
                if !(item.is_object() || item.is_null()) {
                    let detail = "must be an object for an array of list-type map";
                    errors.push(FieldError::invalid(
                        format!("{path}[{index}]"),
                        item.clone(),
                        detail,
                    ));
                    return;
                }
            }
            items.iter().map(|item| keys_of(item, &node.list_map_keys)).collect()
        }
        Some(ListType::Atomic) | None => return,
    };
    // How often each was seen, so that it is reported once.
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (index, identity) in identities.into_iter().enumerate() {
        let times = seen.entry(identity.to_string()).or_default();
        *times += 1;
        if *times == 2 {
            let problem = Problem::Duplicate { value: identity };
            errors.push(FieldError { field: format!("{path}[{index}]"), problem });
        }
    }
}

fn keys_of(item: &Value, keys: &[Box<str>]) -> Value {
    let mut found = Map::new();
    for key in keys {
        if let Some(value) = item.get(&**key) {
            found.insert(key.to_string(), value.clone());
        }
    }
    Value::Object(found)
}
