//! Objects inside objects (`x-kubernetes-embedded-resource`): they need a kind and a version, and
//! their metadata must be as good as that of any object.

use serde_json::Value;

use crate::{metadata, names, schema::Schema, status::FieldError};

/// What is wrong with the embedded objects of an object. The object itself is not looked at.
pub(super) fn check(value: &Value, schema: Schema<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    walk(value, schema, &mut String::new(), &mut errors);
    errors
}

fn walk(value: &Value, schema: Schema<'_>, path: &mut String, errors: &mut Vec<FieldError>) {
    let length = path.len();
    match value {
        Value::Object(map) => {
            if schema.node().embedded_resource {
                embedded(value, path, errors);
            }
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

fn embedded(object: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let field = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    for key in ["apiVersion", "kind"] {
        let Some(value) = object.get(key) else {
            errors.push(FieldError::required(field(key), ""));
            continue;
        };
        let Some(text) = value.as_str() else {
            errors.push(FieldError::invalid(field(key), value.clone(), "must be a string"));
            continue;
        };
        if text.is_empty() {
            errors.push(FieldError::invalid(field(key), "", "must not be empty"));
        } else if key == "apiVersion" {
            if text.matches('/').count() > 1 {
                let detail = format!("unexpected GroupVersion string: {text}");
                errors.push(FieldError::invalid(field(key), text, detail));
            }
        } else {
            let wrong = names::dns_1035_label(&text.to_lowercase());
            if !wrong.is_empty() {
                let detail =
                    format!("may have mixed case, but should otherwise match: {}", wrong.join(","));
                errors.push(FieldError::invalid(field(key), text, detail));
            }
        }
    }
    if let Some(meta) = object.get("metadata") {
        match metadata::decode(&mut meta.clone()) {
            Ok(_) => errors.extend(metadata::validate_embedded(object, &field("metadata"))),
            Err(why) => errors.push(FieldError::invalid(field("metadata"), meta.clone(), why)),
        }
    }
}
