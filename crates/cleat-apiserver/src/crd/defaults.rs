//! Defaults in a schema must be good values themselves: nothing unknown, everything valid.
//!
//! Defaults inside the metadata of embedded objects are not looked into.

use serde_json::Value;

use crate::{
    schema::{Additional, Schema, cel, prune, validate},
    status::FieldError,
};

/// What is wrong with the defaults of the schema at `path`.
pub(super) fn check(schema: Schema<'_>, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    walk(schema, path, true, 0, &mut errors);
    errors
}

fn walk(schema: Schema<'_>, path: &str, root: bool, depth: usize, errors: &mut Vec<FieldError>) {
    // Deeper schemas do not load.
    if depth > 80 {
        return;
    }
    let node = schema.node();
    if let Some(default) = node.default.as_ref().filter(|default| !default.is_null()) {
        one(default, schema, &format!("{path}.default"), errors);
    }
    if let Some(items) = schema.items() {
        walk(items, &format!("{path}.items"), false, depth + 1, errors);
    }
    for (key, id) in &node.properties {
        let metadata = matches!(&**key, "metadata" | "apiVersion" | "kind");
        if !(metadata && (root || node.embedded_resource)) {
            let path = format!("{path}.properties[{key}]");
            walk(schema.child(*id), &path, false, depth + 1, errors);
        }
    }
    // Upstream does not look into additionalProperties here.
    let _: Additional = node.additional;
}

fn one(default: &Value, schema: Schema<'_>, path: &str, errors: &mut Vec<FieldError>) {
    let mut pruned = default.clone();
    prune::prune_part(&mut pruned, schema);
    if pruned != *default {
        let detail = "must not have unknown fields";
        errors.push(FieldError::invalid(path, default.clone(), detail));
    }
    let wrong = validate::check(path, default, schema, None);
    if !wrong.is_empty() {
        errors.extend(wrong);
        return;
    }
    let root = schema.node().embedded_resource;
    let wrong = cel::validate_at(path, default, Some(default), schema, root);
    match wrong.is_empty() {
        true => errors.extend(cel::validate_at(path, default, None, schema, root)),
        false => errors.extend(wrong),
    }
}
