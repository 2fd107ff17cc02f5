//! Whether an OpenAPI schema is structural: every part of an object has one type, and junctors
//! (`allOf`, `anyOf`, `oneOf`, `not`) only restrict values, never shapes.

use serde_json::{Map, Value, json};

use super::text;
use crate::{schema::check_pattern, status::FieldError};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// What keeps the schema at `path` from being structural, sorted.
pub(super) fn check(schema: &Map<String, Value>, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    invariants(schema, Level::Root, path, &mut errors);
    junctors_are_covered(schema, Some(schema), path, path, &mut errors);
    errors.sort_by_key(ToString::to_string);
    errors
}

/// Whether the schema can be looked at at all: one that refers elsewhere, or has a list of schemas
/// for the entries of a list, is refused for that alone.
pub(super) fn is_readable(schema: &Map<String, Value>) -> bool {
    let refers = !text(schema, "$ref").is_empty();
    let listed = schema.get("items").is_some_and(Value::is_array);
    let below = properties(schema)
        .map(|(_, below)| below)
        .chain(object(schema, "items"))
        .chain(object(schema, "additionalProperties"));
    !refers && !listed && below.into_iter().all(is_readable)
}

fn invariants(schema: &Map<String, Value>, level: Level, path: &str, errors: &mut Vec<FieldError>) {
    let at = |key: &str| format!("{path}.{key}");
    let kind = text(schema, "type");
    let items = object(schema, "items");
    if kind == "array" && items.is_none() {
        errors.push(FieldError::required(at("items"), "must be specified"));
    }
    if let Some(items) = items {
        invariants(items, Level::Item, &at("items"), errors);
    }
    for (key, property) in properties(schema) {
        invariants(property, Level::Field, &format!("{path}.properties[{key}]"), errors);
    }
    let additional = schema.get("additionalProperties").filter(|value| !value.is_null());
    if let Some(additional) = additional {
        if level == Level::Root {
            let detail = "must not be used at the root";
            errors.push(FieldError::forbidden(at("additionalProperties"), detail));
        }
        if let Some(additional) = additional.as_object() {
            invariants(additional, Level::Field, &at("additionalProperties"), errors);
        }
    }
    let (int_or_string, preserve, embedded) = (
        flag(schema, "x-kubernetes-int-or-string"),
        flag(schema, "x-kubernetes-preserve-unknown-fields"),
        flag(schema, "x-kubernetes-embedded-resource"),
    );
    for (set, key) in [
        (preserve, "x-kubernetes-preserve-unknown-fields"),
        (embedded, "x-kubernetes-embedded-resource"),
    ] {
        if int_or_string && set {
            let detail = "must be false if x-kubernetes-int-or-string is true";
            errors.push(FieldError::invalid(at(key), true, detail));
        }
    }
    let first_all_of = array(schema, "allOf").first().and_then(Value::as_object);
    let skip = Skip {
        any_of: is_int_or_string(schema),
        first_any_of: first_all_of.is_some_and(is_int_or_string),
    };
    values(schema, skip, path, errors);
    if embedded && kind != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(match kind {
            "" => FieldError::required(at("type"), detail),
            kind => FieldError::invalid(at("type"), kind, detail),
        });
    } else if kind.is_empty() && !int_or_string && !preserve {
        let detail = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(FieldError::required(at("type"), detail));
    }
    if embedded && additional.is_some() {
        let detail = "must not be used if x-kubernetes-embedded-resource is set";
        errors.push(FieldError::forbidden(at("additionalProperties"), detail));
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        errors.push(FieldError::invalid(at("type"), kind, "must be object at the root"));
    }
    let is_object = level == Level::Root || embedded;
    for key in ["kind", "apiVersion"] {
        if let Some((_, property)) = properties(schema).find(|(name, _)| *name == key)
            && is_object
            && text(property, "type") != "string"
        {
            let field = format!("{path}.properties[{key}].type");
            errors.push(FieldError::invalid(field, text(property, "type"), "must be string"));
        }
    }
    if let Some((_, metadata)) = properties(schema).find(|(name, _)| *name == "metadata") {
        let field = format!("{path}.properties[metadata]");
        if is_object && text(metadata, "type") != "object" {
            let field = format!("{field}.type");
            errors.push(FieldError::invalid(field, text(metadata, "type"), "must be object"));
        }
        if level == Level::Root && !names_only(metadata) {
            errors.push(FieldError::forbidden(
                field,
                "must not specify anything other than name and generateName, but metadata is implicitly specified",
            ));
        }
    }
    if embedded && !preserve && properties(schema).next().is_none() {
        errors.push(FieldError::required(
            at("properties"),
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
        ));
    }
}

/// Whether a schema for metadata only speaks of names.
fn names_only(metadata: &Map<String, Value>) -> bool {
    metadata.iter().all(|(key, value)| match key.as_str() {
        "type" | "default" | "example" | "externalDocs" | "id" | "$schema" => true,
        "properties" => value.as_object().is_none_or(|properties| {
            properties.keys().all(|key| matches!(key.as_str(), "name" | "generateName"))
        }),
        _ => is_zero(value),
    })
}

#[derive(Clone, Copy, Default)]
struct Skip {
    any_of: bool,
    first_any_of: bool,
}

fn values(schema: &Map<String, Value>, skip: Skip, path: &str, errors: &mut Vec<FieldError>) {
    for key in ["anyOf", "allOf", "oneOf"] {
        if key == "anyOf" && skip.any_of {
            continue;
        }
        for (index, branch) in array(schema, key).iter().enumerate() {
            let Some(branch) = branch.as_object() else { continue };
            let any_of = key == "allOf" && index == 0 && skip.first_any_of;
            let skip = Skip { any_of, first_any_of: false };
            nested(branch, skip, &format!("{path}.{key}[{index}]"), errors);
        }
    }
    if let Some(not) = object(schema, "not") {
        nested(not, Skip::default(), &format!("{path}.not"), errors);
    }
    let pattern = text(schema, "pattern");
    if !pattern.is_empty()
        && let Err(why) = check_pattern(pattern)
    {
        let detail = format!(
            "must be a valid regular expression, but isn't: error parsing regexp: {why}: `{pattern}`"
        );
        errors.push(FieldError::invalid(format!("{path}.pattern"), pattern, detail));
    }
}

fn nested(schema: &Map<String, Value>, skip: Skip, path: &str, errors: &mut Vec<FieldError>) {
    values(schema, skip, path, errors);
    if let Some(items) = object(schema, "items") {
        nested(items, Skip::default(), &format!("{path}.items"), errors);
    }
    for (key, property) in properties(schema) {
        nested(property, Skip::default(), &format!("{path}.properties[{key}]"), errors);
    }
    for (key, detail) in [
        ("type", "must be empty to be structural"),
        ("additionalProperties", "must be undefined to be structural"),
        ("default", "must be undefined to be structural"),
        ("title", "must be empty to be structural"),
        ("description", "must be empty to be structural"),
        ("nullable", "must be false to be structural"),
        ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
        ("x-kubernetes-embedded-resource", "must be false to be structural"),
        ("x-kubernetes-int-or-string", "must be false to be structural"),
        ("x-kubernetes-list-map-keys", "must be empty to be structural"),
        ("x-kubernetes-list-type", "must be undefined to be structural"),
        ("x-kubernetes-map-type", "must be undefined to be structural"),
        ("x-kubernetes-validations", "must be empty to be structural"),
    ] {
        let given = schema.get(key).is_some_and(|value| match key {
            "default" | "additionalProperties" => !value.is_null(),
            _ => !is_zero(value),
        });
        if given {
            errors.push(FieldError::forbidden(format!("{path}.{key}"), detail));
        }
    }
    if properties(schema).any(|(key, _)| key == "metadata") {
        let detail = "must not be specified in a nested context";
        errors.push(FieldError::forbidden(format!("{path}.properties[metadata]"), detail));
    }
}

/// Every part that a junctor of `branch` speaks of must be declared in `schema` itself.
fn junctors_are_covered(
    branch: &Map<String, Value>,
    schema: Option<&Map<String, Value>>,
    path: &str,
    branch_path: &str,
    errors: &mut Vec<FieldError>,
) {
    if let Some(not) = object(branch, "not") {
        is_covered(not, schema, path, &format!("{branch_path}.not"), errors);
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        for (index, inner) in array(branch, key).iter().enumerate() {
            let Some(inner) = inner.as_object() else { continue };
            is_covered(inner, schema, path, &format!("{branch_path}.{key}[{index}]"), errors);
        }
    }
}

fn is_covered(
    branch: &Map<String, Value>,
    schema: Option<&Map<String, Value>>,
    path: &str,
    branch_path: &str,
    errors: &mut Vec<FieldError>,
) {
    let missing =
        |path: &str, at: &str| FieldError::required(path, format!("because it is defined in {at}"));
    let Some(schema) = schema else {
        errors.push(missing(path, branch_path));
        return;
    };
    junctors_are_covered(branch, Some(schema), path, branch_path, errors);
    if let Some(items) = object(branch, "items") {
        let (path, at) = (format!("{path}.items"), format!("{branch_path}.items"));
        is_covered(items, object(schema, "items"), &path, &at, errors);
    }
    for (key, property) in properties(branch) {
        let path = format!("{path}.properties[{key}]");
        let at = format!("{branch_path}.properties[{key}]");
        match properties(schema).find(|(name, _)| *name == key) {
            Some((_, declared)) => is_covered(property, Some(declared), &path, &at, errors),
            None => errors.push(missing(&path, &at)),
        }
    }
}

fn is_int_or_string(schema: &Map<String, Value>) -> bool {
    schema.get("anyOf") == Some(&json!([{"type": "integer"}, {"type": "string"}]))
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(_) => false,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

fn flag(schema: &Map<String, Value>, key: &str) -> bool {
    schema.get(key).and_then(Value::as_bool).unwrap_or(false)
}

pub(super) fn object<'a>(
    schema: &'a Map<String, Value>,
    key: &str,
) -> Option<&'a Map<String, Value>> {
    schema.get(key).and_then(Value::as_object)
}

pub(super) fn array<'a>(schema: &'a Map<String, Value>, key: &str) -> &'a [Value] {
    schema.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

pub(super) fn properties(
    schema: &Map<String, Value>,
) -> impl Iterator<Item = (&str, &Map<String, Value>)> {
    let properties = object(schema, "properties");
    properties
        .into_iter()
        .flatten()
        .filter_map(|(key, schema)| schema.as_object().map(|schema| (key.as_str(), schema)))
}
