//! From the arena back to OpenAPI v3 JSON, as Kubernetes publishes a custom kind's schema.
//!
//! What the arena does not keep (the order of properties, `externalDocs`) does not come back.
//! Built-in kinds are published from their data as it is, not through here.

use serde_json::{Map, Value, json};

use super::{Additional, ListType, Node, Schema, Type};

impl Schema<'_> {
    /// This schema as JSON, self-contained except for named definitions, which become references.
    /// Unlike the arena's other readers, one meets here only what a CustomResourceDefinition can
    /// say, so the depth is what loading allowed.
    pub(crate) fn to_openapi(self) -> Map<String, Value> {
        let node = self.node();
        let mut out = Map::new();
        generics(node, &mut out);
        validations(node, &mut out);
        extensions(node, &mut out);
        if !node.properties.is_empty() {
            let properties: Map<String, Value> = node
                .properties
                .iter()
                .map(|(name, id)| (name.to_string(), self.child(*id).to_reference()))
                .collect();
            out.insert("properties".into(), properties.into());
        }
        match node.additional {
            Additional::Absent => {}
            Additional::Boolean(allowed) => {
                out.insert("additionalProperties".into(), allowed.into());
            }
            Additional::Schema(id) => {
                out.insert("additionalProperties".into(), self.child(id).to_reference());
            }
        }
        for (key, id) in [("items", node.items), ("not", node.not)] {
            if let Some(id) = id {
                out.insert(key.into(), self.child(id).to_reference());
            }
        }
        for (key, branches) in
            [("allOf", &node.all_of), ("anyOf", &node.any_of), ("oneOf", &node.one_of)]
        {
            if !branches.is_empty() {
                let all = branches.iter().map(|id| self.child(*id).to_reference()).collect();
                out.insert(key.into(), all);
            }
        }
        if node.int_or_string {
            spell_out_int_or_string(&mut out);
        }
        out
    }

    fn to_reference(self) -> Value {
        match &self.node().name {
            Some(name) => json!({ "$ref": format!("#/components/schemas/{name}") }),
            None => Value::Object(self.to_openapi()),
        }
    }
}

fn generics(node: &Node, out: &mut Map<String, Value>) {
    if let Some(kind) = node.kind {
        let kind = match kind {
            Type::Object => "object",
            Type::Array => "array",
            Type::String => "string",
            Type::Integer => "integer",
            Type::Number => "number",
            Type::Boolean => "boolean",
        };
        out.insert("type".into(), kind.into());
    }
    for (key, text) in [
        ("format", &node.format),
        ("title", &node.title),
        ("description", &node.description),
        ("pattern", &node.pattern),
    ] {
        if let Some(text) = text {
            out.insert(key.into(), (&**text).into());
        }
    }
    for (key, value) in [("default", &node.default), ("example", &node.example)] {
        if let Some(value) = value {
            out.insert(key.into(), value.clone());
        }
    }
    if node.nullable {
        out.insert("nullable".into(), true.into());
    }
}

fn validations(node: &Node, out: &mut Map<String, Value>) {
    if let Some(values) = &node.enumeration {
        out.insert("enum".into(), values.clone().into());
    }
    if !node.required.is_empty() {
        out.insert("required".into(), texts(&node.required));
    }
    let bounds = &node.bounds;
    for (key, limit) in [
        ("minimum", bounds.minimum),
        ("maximum", bounds.maximum),
        ("multipleOf", bounds.multiple_of),
    ] {
        if let Some(limit) = limit {
            out.insert(key.into(), number(limit));
        }
    }
    for (key, limit) in [
        ("minLength", bounds.min_length),
        ("maxLength", bounds.max_length),
        ("minItems", bounds.min_items),
        ("maxItems", bounds.max_items),
        ("minProperties", bounds.min_properties),
        ("maxProperties", bounds.max_properties),
    ] {
        if let Some(limit) = limit {
            out.insert(key.into(), limit.into());
        }
    }
    for (key, set) in [
        ("exclusiveMinimum", bounds.exclusive_minimum),
        ("exclusiveMaximum", bounds.exclusive_maximum),
        ("uniqueItems", node.unique_items),
    ] {
        if set {
            out.insert(key.into(), true.into());
        }
    }
}

fn extensions(node: &Node, out: &mut Map<String, Value>) {
    for (key, set) in [
        ("x-kubernetes-int-or-string", node.int_or_string),
        ("x-kubernetes-preserve-unknown-fields", node.preserve_unknown_fields),
        ("x-kubernetes-embedded-resource", node.embedded_resource),
    ] {
        if set {
            out.insert(key.into(), true.into());
        }
    }
    if let Some(list_type) = node.list_type {
        let list_type = match list_type {
            ListType::Atomic => "atomic",
            ListType::Set => "set",
            ListType::Map => "map",
        };
        out.insert("x-kubernetes-list-type".into(), list_type.into());
    }
    if !node.list_map_keys.is_empty() {
        out.insert("x-kubernetes-list-map-keys".into(), texts(&node.list_map_keys));
    }
    if node.atomic_map {
        out.insert("x-kubernetes-map-type".into(), "atomic".into());
    }
    if !node.rules.is_empty() {
        out.insert("x-kubernetes-validations".into(), node.rules.clone().into());
    }
}

/// Clients that do not know the extension still learn that both types are allowed. A schema that
/// already says so in one of the two permitted ways stays as it is.
fn spell_out_int_or_string(out: &mut Map<String, Value>) {
    let both = json!([{ "type": "integer" }, { "type": "string" }]);
    let first_of_all = out.get("allOf").and_then(|all| all.get(0)).and_then(|s| s.get("anyOf"));
    match out.get("anyOf") {
        Some(any) if *any == both => {}
        _ if first_of_all == Some(&both) => {}
        None => {
            out.insert("anyOf".into(), both);
        }
        Some(_) => {
            let mut all = vec![json!({ "anyOf": both })];
            if let Some(Value::Array(given)) = out.remove("allOf") {
                all.extend(given);
            }
            out.insert("allOf".into(), all.into());
        }
    }
}

fn texts(all: &[Box<str>]) -> Value {
    all.iter().map(|text| Value::from(&**text)).collect()
}

/// Limits are kept as floats, but `1` must not come back as `1.0`.
fn number(limit: f64) -> Value {
    // Beyond 2^53 not every integer is a float, and the printed form would pretend to know more.
    if limit.fract() == 0.0 && limit.abs() <= 9_007_199_254_740_992.0 {
        Value::from(limit as i64)
    } else {
        Value::from(limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Schemas;

    #[test]
    fn a_custom_schema_comes_back_as_it_was() {
        let schema = json!({
            "type": "object",
            "description": "A thing.",
            "required": ["size"],
            "properties": {
                "size": { "type": "integer", "format": "int32", "minimum": 1, "maximum": 1.5 },
                "ports": {
                    "type": "array",
                    "maxItems": 4,
                    "items": {
                        "type": "object",
                        "properties": { "port": { "type": "integer", "default": 80 } },
                    },
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["port"],
                },
                "labels": { "type": "object", "additionalProperties": { "type": "string" } },
                "free": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
                "mode": { "type": "string", "enum": ["a", "b"], "nullable": true },
                "one": { "oneOf": [{ "required": ["a"] }], "not": { "required": ["b"] } },
            },
            "x-kubernetes-validations": [{ "rule": "self.size > 0" }],
        });
        let (arena, root) = Schemas::from_single(&schema).unwrap();
        assert_eq!(Value::Object(arena.at(root).to_openapi()), schema);
    }

    #[test]
    fn int_or_string_is_spelled_out_once() {
        let both = json!([{ "type": "integer" }, { "type": "string" }]);
        let cases = [
            (json!({}), json!({ "anyOf": both })),
            (json!({ "anyOf": both }), json!({ "anyOf": both })),
            (
                json!({ "allOf": [{ "anyOf": both }, { "pattern": "^1" }] }),
                json!({ "allOf": [{ "anyOf": both }, { "pattern": "^1" }] }),
            ),
            (
                json!({ "anyOf": [{ "pattern": "^1" }], "allOf": [{ "pattern": "2" }] }),
                json!({
                    "anyOf": [{ "pattern": "^1" }],
                    "allOf": [{ "anyOf": both }, { "pattern": "2" }],
                }),
            ),
        ];
        for (mut given, mut expected) in cases {
            given["x-kubernetes-int-or-string"] = true.into();
            expected["x-kubernetes-int-or-string"] = true.into();
            let (arena, root) = Schemas::from_single(&given).unwrap();
            assert_eq!(Value::Object(arena.at(root).to_openapi()), expected);
        }
    }
}
