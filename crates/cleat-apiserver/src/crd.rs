//! CustomResourceDefinitions: what a definition must look like, what the server fills in, what its
//! status says, and the resource type it stands for.
//!
//! All pure: definitions are JSON that was read as the built-in kind it is. Conversion webhooks
//! are not supported, and the cost of CEL rules is bounded when they run, not when a definition is
//! written.

mod defaults;
mod openapi;
mod path;
mod resource;
pub(crate) mod scale;
mod status;
mod structural;
mod validate;

use serde_json::{Map, Value, json};

use crate::schema::{Schemas, validate::unsupported_format};

pub use resource::resource_type;
pub use status::status;
pub use validate::{is_established, validate_create, validate_update};

/// Fills in the names and the conversion strategy a definition leaves out.
pub fn default(crd: &mut Value) {
    let Some(spec) = crd.get_mut("spec").and_then(Value::as_object_mut) else { return };
    if let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) {
        let kind = text(names, "kind").to_owned();
        if text(names, "singular").is_empty() && !kind.is_empty() {
            names.insert("singular".to_owned(), kind.to_lowercase().into());
        }
        if text(names, "listKind").is_empty() && !kind.is_empty() {
            names.insert("listKind".to_owned(), format!("{kind}List").into());
        }
    }
    spec.entry("conversion").or_insert_with(|| json!({"strategy": "None"}));
}

/// Defaults a new definition and gives it the only status its creator may give it: none, but for
/// the version its objects will be stored in.
pub fn prepare_create(crd: &mut Value) {
    default(crd);
    let stored: Vec<&str> = storage_version(crd).into_iter().collect();
    let status = json!({
        "acceptedNames": {"kind": "", "plural": ""}, "conditions": null, "storedVersions": stored,
    });
    if let Some(crd) = crd.as_object_mut() {
        crd.insert("status".to_owned(), status);
    }
}

/// Defaults a changed definition, carries the status of `old` over, and notes the version objects
/// are stored in from now on. Through its `status`, nothing but the status changes.
pub fn prepare_update(new: &mut Value, old: &Value, subresource: Option<&str>) {
    if subresource == Some("status") {
        if let (Some(new), Some(spec)) = (new.as_object_mut(), old.get("spec")) {
            new.insert("spec".to_owned(), spec.clone());
        }
        return;
    }
    default(new);
    let mut status = old.get("status").cloned().unwrap_or_else(|| json!({}));
    if let Some(storage) = storage_version(new).map(str::to_owned)
        && let Some(status) = status.as_object_mut()
    {
        let stored = status.entry("storedVersions").or_insert_with(|| json!([]));
        if stored.is_null() {
            *stored = json!([]);
        }
        if let Some(stored) = stored.as_array_mut()
            && !stored.iter().any(|version| *version == *storage)
        {
            stored.push(storage.into());
        }
    }
    if let Some(new) = new.as_object_mut() {
        new.insert("status".to_owned(), status);
    }
}

/// Warnings about formats in the schemas that mean nothing, unless `old` had them too.
pub fn warnings(new: &Value, old: Option<&Value>) -> Vec<String> {
    let known = old.map(unrecognized_formats).unwrap_or_default();
    let mut formats = unrecognized_formats(new);
    formats.retain(|format| !known.contains(format));
    formats
        .iter()
        .map(|format| format!("unrecognized format {}", crate::quote::quoted(format)))
        .collect()
}

fn unrecognized_formats(crd: &Value) -> Vec<String> {
    let mut formats = Vec::new();
    for version in versions(crd) {
        let Some(schema) = version.pointer("/schema/openAPIV3Schema") else { continue };
        if let Ok((arena, root)) = Schemas::from_single(schema) {
            collect_formats(arena.at(root), 0, &mut formats);
        }
    }
    formats.sort_unstable();
    formats.dedup();
    formats
}

fn collect_formats(schema: crate::schema::Schema<'_>, depth: usize, formats: &mut Vec<String>) {
    // Deeper schemas do not load.
    if depth > 80 {
        return;
    }
    let node = schema.node();
    if let Some(format) = unsupported_format(node) {
        formats.push(format.to_owned());
    }
    let additional = match node.additional {
        crate::schema::Additional::Schema(id) => Some(id),
        _ => None,
    };
    for id in node.properties.values().chain(&node.items).chain(&additional) {
        collect_formats(schema.child(*id), depth + 1, formats);
    }
}

fn versions(crd: &Value) -> &[Value] {
    crd.pointer("/spec/versions").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn storage_version(crd: &Value) -> Option<&str> {
    let storage = versions(crd).iter().find(|version| flag(version, "storage"))?;
    storage.get("name")?.as_str()
}

fn flag(value: &Value, key: &str) -> bool {
    value.get(key).and_then(Value::as_bool).unwrap_or(false)
}

fn text<'a>(map: &'a Map<String, Value>, key: &str) -> &'a str {
    map.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn text_at<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn texts_at<'a>(value: &'a Value, pointer: &str) -> Vec<&'a str> {
    let list = value.pointer(pointer).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}

#[cfg(test)]
mod tests;
