//! What the API server accepts in the OpenAPI schema of a custom resource, beyond its being
//! structural: which keywords, which list and map types, which rules.

use serde_json::{Map, Value};

use super::{
    structural::{array, object, properties},
    text,
};
use crate::{
    gojson::escape_html,
    schema::{Schema, cel},
    status::{FieldError, Problem},
};

/// Keywords that have no place in a custom resource's schema.
const REFUSED: [&str; 6] =
    ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"];
const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// What is wrong with the schema at `path`. `typed` is the same schema loaded, when it is
/// structural and its defaults are good; rules are only checked then.
pub(super) fn check(
    schema: &Map<String, Value>,
    path: &str,
    typed: Option<Schema<'_>>,
) -> Vec<FieldError> {
    let mut found = Found::default();
    walk(schema, path, &Place { root: true, ..Place::default() }, typed, &mut found);
    found.schema.extend(found.rules);
    found.schema
}

#[derive(Default)]
struct Found {
    schema: Vec<FieldError>,
    rules: Vec<FieldError>,
}

/// What the surroundings of a schema forbid.
#[derive(Clone, Default)]
struct Place {
    root: bool,
    /// Why no default may stand here.
    no_default: Option<String>,
    inside_metadata: bool,
    /// The list or map whose elements cannot be found again after an update.
    uncorrelatable: Option<String>,
}

fn walk(
    schema: &Map<String, Value>,
    path: &str,
    place: &Place,
    typed: Option<Schema<'_>>,
    found: &mut Found,
) {
    let before = found.schema.len();
    let at = |key: &str| format!("{path}.{key}");
    let below = Place { root: false, ..place.clone() };
    keywords(schema, path, place, &mut found.schema);
    if schema.get("uniqueItems").and_then(Value::as_bool) == Some(true) {
        found.schema.push(FieldError::forbidden(
            at("uniqueItems"),
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        ));
    }
    if let Some(additional) = schema.get("additionalProperties").filter(|value| !value.is_null()) {
        if properties(schema).next().is_some() && *additional != Value::Bool(true) {
            let detail = "additionalProperties and properties are mutual exclusive";
            found.schema.push(FieldError::forbidden(at("additionalProperties"), detail));
        }
        if let Some(inner) = additional.as_object() {
            let mut below = below.clone();
            if place.inside_metadata {
                let reason = "inside additionalProperties applying to object metadata";
                below.no_default = Some(reason.to_owned());
            }
            let typed = typed.and_then(|typed| typed.property("\u{0}any key"));
            walk(inner, &at("additionalProperties"), &below, typed, found);
        }
    }
    let embedded = flag(schema, "x-kubernetes-embedded-resource");
    for (key, property) in properties(schema) {
        let mut below = below.clone();
        if (place.root || embedded) && matches!(key, "metadata" | "kind" | "apiVersion") {
            below.inside_metadata = true;
            if place.root {
                below.no_default = Some(format!("in top-level {key}"));
            }
        }
        let typed = typed.and_then(|typed| typed.property(key));
        walk(property, &format!("{path}.properties[{key}]"), &below, typed, found);
    }
    if let Some(not) = object(schema, "not") {
        walk(not, &at("not"), &below, None, found);
    }
    for key in ["allOf", "oneOf", "anyOf"] {
        for (index, branch) in array(schema, key).iter().enumerate() {
            if let Some(branch) = branch.as_object() {
                walk(branch, &format!("{path}.{key}[{index}]"), &below, None, found);
            }
        }
    }
    if let Some(items) = object(schema, "items") {
        let mut below = below.clone();
        if text(schema, "x-kubernetes-list-type") != "map" {
            below.uncorrelatable.get_or_insert_with(|| path.to_owned());
        }
        walk(items, &at("items"), &below, typed.and_then(Schema::items), found);
    }
    if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
        let field = at("x-kubernetes-preserve-unknown-fields");
        found.schema.push(FieldError::invalid(field, false, "must be true or undefined"));
    }
    list_and_map_types(schema, path, &mut found.schema);
    rules_are_written_well(schema, path, typed, &mut found.schema);
    if let Some(typed) = typed
        && found.schema.len() == before
    {
        rules_compile(schema, path, place, embedded, typed, &mut found.rules);
    }
}

fn keywords(schema: &Map<String, Value>, path: &str, place: &Place, errors: &mut Vec<FieldError>) {
    let at = |key: &str| format!("{path}.{key}");
    let kind = text(schema, "type");
    if !kind.is_empty() && !TYPES.contains(&kind) {
        errors.push(FieldError::not_supported(at("type"), kind, &TYPES));
    }
    if let Some(reason) = &place.no_default
        && schema.get("default").is_some_and(|default| !default.is_null())
    {
        errors.push(FieldError::forbidden(at("default"), format!("must not be set {reason}")));
    }
    for key in REFUSED {
        let given = schema.get(key).is_some_and(|value| match value {
            Value::Null => false,
            Value::Object(map) => !map.is_empty() || key == "dependencies",
            Value::String(text) => !text.is_empty(),
            _ => true,
        });
        if given {
            errors.push(FieldError::forbidden(at(key), format!("{key} is not supported")));
        }
    }
    if kind == "null" {
        let detail = "type cannot be set to null, use nullable as an alternative";
        errors.push(FieldError::forbidden(at("type"), detail));
    }
    if schema.get("items").is_some_and(|items| items.as_array().is_some_and(|all| !all.is_empty()))
    {
        let detail = "items must be a schema object and not an array";
        errors.push(FieldError::forbidden(at("items"), detail));
    }
    if place.inside_metadata && flag(schema, "x-kubernetes-embedded-resource") {
        let detail = "must not be used inside of resource meta";
        errors.push(FieldError::forbidden(at("x-kubernetes-embedded-resource"), detail));
    }
}

fn list_and_map_types(schema: &Map<String, Value>, path: &str, errors: &mut Vec<FieldError>) {
    let at = |key: &str| format!("{path}.{key}");
    let kind = text(schema, "type");
    let must_be = |wanted: &str, key: &str| {
        let detail = format!("must be {wanted} if {key} is specified");
        match kind {
            "" => FieldError::required(at("type"), detail),
            kind => FieldError::invalid(at("type"), kind, detail),
        }
    };
    let map_type = text(schema, "x-kubernetes-map-type");
    if !map_type.is_empty() {
        if kind != "object" {
            errors.push(must_be("object", "x-kubernetes-map-type"));
        }
        if !matches!(map_type, "atomic" | "granular") {
            let field = at("x-kubernetes-map-type");
            errors.push(FieldError::not_supported(field, map_type, &["atomic", "granular"]));
        }
    }
    let list_type = text(schema, "x-kubernetes-list-type");
    let items = object(schema, "items");
    if !list_type.is_empty() && kind != "array" {
        errors.push(must_be("array", "x-kubernetes-list-type"));
    } else if let ("set", Some(items)) = (list_type, items) {
        let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
        match (text(items, "type"), text(items, "x-kubernetes-list-type")) {
            ("array", inner) if !matches!(inner, "" | "atomic") => {
                let field = at("items.x-kubernetes-list-type");
                errors.push(FieldError::invalid(field, inner, detail));
            }
            ("object", _) if text(items, "x-kubernetes-map-type") != "atomic" => {
                let field = at("items.x-kubernetes-map-type");
                errors.push(FieldError::invalid(field, Value::Null, detail));
            }
            _ => {}
        }
    }
    if !matches!(list_type, "" | "atomic" | "set" | "map") {
        let field = at("x-kubernetes-list-type");
        errors.push(FieldError::not_supported(field, list_type, &["atomic", "set", "map"]));
    }
    let keys: Vec<&str> =
        array(schema, "x-kubernetes-list-map-keys").iter().filter_map(Value::as_str).collect();
    if !keys.is_empty() && list_type != "map" {
        let field = at("x-kubernetes-list-type");
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        errors.push(match list_type {
            "" => FieldError::required(field, detail),
            list_type => FieldError::invalid(field, list_type, detail),
        });
    }
    if list_type == "map" {
        list_map(&keys, items, path, errors);
    }
    if let (Some(items), "set" | "map") = (items, list_type) {
        if flag(items, "nullable") {
            let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
            errors.push(FieldError::forbidden(at("items.nullable"), detail));
        }
        let required: Vec<&str> =
            array(items, "required").iter().filter_map(Value::as_str).collect();
        for key in keys.iter().filter(|_| list_type == "map") {
            let Some((_, property)) = properties(items).find(|(name, _)| name == key) else {
                continue;
            };
            let field = format!("{path}.items.properties[{key}]");
            if !required.contains(key) && property.get("default").is_none_or(Value::is_null) {
                errors.push(FieldError::required(format!("{field}.default"), "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"));
            }
            if flag(property, "nullable") {
                errors.push(FieldError::forbidden(
                    format!("{field}.nullable"),
                    "this property is in x-kubernetes-list-map-keys, so it cannot be nullable",
                ));
            }
        }
    }
}

fn list_map(
    keys: &[&str],
    items: Option<&Map<String, Value>>,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    let keys_at = format!("{path}.x-kubernetes-list-map-keys");
    if keys.is_empty() {
        let detail = "must not be empty if x-kubernetes-list-type is map";
        errors.push(FieldError::required(&*keys_at, detail));
    }
    let Some(items) = items else {
        let detail = "must have a schema if x-kubernetes-list-type is map";
        errors.push(FieldError::required(format!("{path}.items"), detail));
        return;
    };
    let kind = text(items, "type");
    if kind != "object" {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        errors.push(FieldError::invalid(format!("{path}.items.type"), kind, detail));
        return;
    }
    for (index, key) in keys.iter().enumerate() {
        match properties(items).find(|(name, _)| name == key) {
            Some((_, property)) if matches!(text(property, "type"), "array" | "object") => {
                errors.push(FieldError::invalid(
                    format!("{path}.items.properties[{key}].type"),
                    kind,
                    "must be a scalar type if parent array's x-kubernetes-list-type is map",
                ));
            }
            Some(_) => {}
            None => {
                let detail = "entries must all be names of item properties";
                errors.push(FieldError::invalid(&*keys_at, keys.to_vec(), detail));
            }
        }
        if keys.iter().take(index).any(|before| before == key) {
            let detail = "must not contain duplicate entries";
            errors.push(FieldError::invalid(&*keys_at, keys.to_vec(), detail));
        }
    }
}

fn rules_are_written_well(
    schema: &Map<String, Value>,
    path: &str,
    typed: Option<Schema<'_>>,
    errors: &mut Vec<FieldError>,
) {
    const REASONS: [&str; 4] =
        ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];
    let has_breaks = |text: &str| text.contains(['\n', '\r']);
    for (index, rule) in array(schema, "x-kubernetes-validations").iter().enumerate() {
        let Some(rule) = rule.as_object() else { continue };
        let at = |key: &str| format!("{path}.x-kubernetes-validations[{index}].{key}");
        let (source, message) = (text(rule, "rule").trim(), text(rule, "message"));
        if source.is_empty() {
            errors.push(FieldError::required(at("rule"), "rule is not specified"));
        } else if !message.is_empty() && message.trim().is_empty() {
            errors.push(FieldError::invalid(
                at("message"),
                message,
                "must be non-empty if specified",
            ));
        } else if has_breaks(message.trim()) {
            errors.push(FieldError::invalid(
                at("message"),
                message,
                "must not contain line breaks",
            ));
        } else if has_breaks(source) && message.trim().is_empty() {
            let detail = "message must be specified if rule contains line breaks";
            errors.push(FieldError::required(at("message"), detail));
        }
        let expression = text(rule, "messageExpression");
        if !expression.is_empty() && expression.trim().is_empty() {
            let detail = "messageExpression must be non-empty if specified";
            errors.push(FieldError::required(at("messageExpression"), detail));
        }
        let reason = text(rule, "reason");
        if !reason.is_empty() && !REASONS.contains(&reason) {
            errors.push(FieldError::not_supported(at("reason"), reason, &REASONS));
        }
        let field = text(rule, "fieldPath");
        if !field.is_empty() {
            if field.trim().is_empty() {
                let detail = "must be non-empty if specified";
                errors.push(FieldError::invalid(at("fieldPath"), field, detail));
            }
            if has_breaks(field) {
                let detail = "must not contain line breaks";
                errors.push(FieldError::invalid(at("fieldPath"), field, detail));
            }
            if typed.is_some_and(|typed| cel::field_path(field, typed).is_err()) {
                errors.push(FieldError::invalid(at("fieldPath"), field, "must be a valid path"));
            }
        }
    }
}

fn rules_compile(
    schema: &Map<String, Value>,
    path: &str,
    place: &Place,
    embedded: bool,
    typed: Schema<'_>,
    errors: &mut Vec<FieldError>,
) {
    for (index, rule) in array(schema, "x-kubernetes-validations").iter().enumerate() {
        let Some(rule) = rule.as_object() else { continue };
        let at = |key: &str| format!("{path}.x-kubernetes-validations[{index}].{key}");
        let whole = place.root || embedded;
        let source = text(rule, "rule");
        let refuse = |key: &str, detail: String| {
            let problem = Problem::InvalidShown { shown: shown_rule(rule), detail };
            FieldError { field: at(key), problem }
        };
        if let Err(why) = cel::check_rule(source, typed, whole) {
            errors.push(refuse("rule", why));
            continue;
        }
        let message = text(rule, "messageExpression");
        if !message.is_empty()
            && let Err(why) = cel::check_message(message, typed, whole)
        {
            errors.push(refuse("messageExpression", why));
        }
        let uses_old = cel::Expression::parse(source).is_ok_and(|rule| rule.uses("oldSelf"));
        if let (true, Some(within)) = (uses_old, &place.uncorrelatable) {
            let detail = format!(
                "oldSelf cannot be used on the uncorrelatable portion of the schema within {within}"
            );
            errors.push(FieldError::invalid(at("rule"), source, detail));
        } else if let (false, Some(optional)) = (uses_old, rule.get("optionalOldSelf")) {
            let detail = "may not be set if oldSelf is not used in rule";
            errors.push(FieldError::invalid(at("optionalOldSelf"), optional.clone(), detail));
        }
    }
}

/// A rule as messages show it: in the order and with the names of the Go struct.
fn shown_rule(rule: &Map<String, Value>) -> String {
    let fields = [
        ("Rule", "rule", "\"\""),
        ("Message", "message", "\"\""),
        ("MessageExpression", "messageExpression", "\"\""),
        ("Reason", "reason", "null"),
        ("FieldPath", "fieldPath", "\"\""),
        ("OptionalOldSelf", "optionalOldSelf", "null"),
    ];
    let entries: Vec<String> = fields
        .iter()
        .map(|(name, key, zero)| {
            let value = rule.get(*key).map_or_else(|| (*zero).to_owned(), ToString::to_string);
            format!("\"{name}\":{}", escape_html(&value))
        })
        .collect();
    format!("{{{}}}", entries.join(","))
}

fn flag(schema: &Map<String, Value>, key: &str) -> bool {
    schema.get(key).and_then(Value::as_bool).unwrap_or(false)
}
