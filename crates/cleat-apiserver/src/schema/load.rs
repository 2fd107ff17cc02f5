//! From OpenAPI v3 JSON to the arena: a document of named definitions with `$ref`s (built-in
//! kinds), or one self-contained schema (a CRD version).

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use thiserror::Error;

use super::{Additional, Bounds, Id, ListType, Node, Refined, Schema, Schemas, Type};

/// Deeper schemas are refused: they would only serve to exhaust the stack.
const DEEPEST: usize = 64;

/// Why a document is not a schema.
#[derive(Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoadError {
    #[error("{at} must be {expected}")]
    Shape { at: String, expected: &'static str },
    #[error("{at} refers to {name}, which is not defined")]
    UnknownReference { at: String, name: String },
    #[error("{at} is nested more than {DEEPEST} levels deep")]
    TooDeep { at: String },
}

impl Schemas {
    /// Reads a map of definition name → schema, in which schemas may refer to each other with
    /// `#/components/schemas/NAME`.
    pub fn from_definitions(definitions: &Map<String, Value>) -> Result<Self, LoadError> {
        let mut arena = Self::default();
        for name in definitions.keys() {
            let id = arena.push(Node::default());
            arena.names.insert(name.as_str().into(), id);
        }
        for (name, schema) in definitions {
            let mut node = arena.read(schema, name, 0)?;
            node.name = Some(name.as_str().into());
            if let Some(id) = arena.names.get(name.as_str()).copied()
                && let Some(slot) = arena.nodes.get_mut(id.0 as usize)
            {
                *slot = node;
            }
        }
        Ok(arena)
    }

    /// Reads one schema without references and returns where it begins.
    pub fn from_single(schema: &Value) -> Result<(Self, Id), LoadError> {
        let mut arena = Self::default();
        let root = arena.add(schema)?;
        Ok((arena, root))
    }

    /// Adds one schema, which may refer to definitions already here.
    pub fn add(&mut self, schema: &Value) -> Result<Id, LoadError> {
        self.read_id(schema, "schema", 0)
    }

    /// The schema that begins at `id`, after [`Schemas::add`].
    pub fn root(&self, id: Id) -> Schema<'_> {
        self.at(id)
    }

    fn read_id(&mut self, schema: &Value, at: &str, depth: usize) -> Result<Id, LoadError> {
        if depth > DEEPEST {
            return Err(LoadError::TooDeep { at: at.to_owned() });
        }
        if let Some(target) = reference(schema) {
            return self.names.get(target).copied().ok_or_else(|| LoadError::UnknownReference {
                at: at.to_owned(),
                name: target.to_owned(),
            });
        }
        let node = self.read(schema, at, depth)?;
        Ok(self.push(node))
    }

    fn read(&mut self, schema: &Value, at: &str, depth: usize) -> Result<Node, LoadError> {
        let Value::Object(map) = schema else {
            return Err(LoadError::Shape { at: at.to_owned(), expected: "an object" });
        };
        let shape = |expected| LoadError::Shape { at: at.to_owned(), expected };
        let mut node = Node {
            kind: kind(map, at)?,
            format: text(map, "format"),
            title: text(map, "title"),
            description: text(map, "description"),
            nullable: flag(map, "nullable"),
            default: map.get("default").cloned(),
            example: map.get("example").cloned(),
            enumeration: map.get("enum").and_then(Value::as_array).cloned(),
            bounds: bounds(map),
            pattern: text(map, "pattern"),
            unique_items: flag(map, "uniqueItems"),
            required: texts(map, "required"),
            int_or_string: flag(map, "x-kubernetes-int-or-string")
                || text(map, "format").as_deref() == Some("int-or-string"),
            preserve_unknown_fields: flag(map, "x-kubernetes-preserve-unknown-fields"),
            embedded_resource: flag(map, "x-kubernetes-embedded-resource"),
            list_type: list_type(map, at)?,
            list_map_keys: texts(map, "x-kubernetes-list-map-keys"),
            atomic_map: text(map, "x-kubernetes-map-type").as_deref() == Some("atomic"),
            patch_strategy: patch_strategy(map),
            patch_merge_key: text(map, "x-kubernetes-patch-merge-key"),
            rules: array(map, "x-kubernetes-validations"),
            group_version_kinds: array(map, "x-kubernetes-group-version-kind"),
            ..Node::default()
        };
        if let Some(properties) = map.get("properties") {
            let properties =
                properties.as_object().ok_or_else(|| shape("an object with properties"))?;
            let mut read = BTreeMap::new();
            for (key, value) in properties {
                let id = self.read_id(value, &format!("{at}.{key}"), depth + 1)?;
                read.insert(key.as_str().into(), id);
                if let Some(refined) = refined(value) {
                    node.refined.insert(key.as_str().into(), refined);
                }
            }
            node.properties = read;
        }
        node.additional = match map.get("additionalProperties") {
            None | Some(Value::Null) => Additional::Absent,
            Some(Value::Bool(allowed)) => Additional::Boolean(*allowed),
            Some(value) => {
                Additional::Schema(self.read_id(value, &format!("{at}.*"), depth + 1)?)
            }
        };
        node.items = match map.get("items") {
            None | Some(Value::Null) => None,
            Some(value) => Some(self.read_id(value, &format!("{at}[]"), depth + 1)?),
        };
        node.not = match map.get("not") {
            None | Some(Value::Null) => None,
            Some(value) => Some(self.read_id(value, &format!("{at}.not"), depth + 1)?),
        };
        for (key, branches) in
            [("allOf", &mut node.all_of), ("anyOf", &mut node.any_of), ("oneOf", &mut node.one_of)]
        {
            for (index, value) in array(map, key).iter().enumerate() {
                branches.push(self.read_id(value, &format!("{at}.{key}[{index}]"), depth + 1)?);
            }
        }
        Ok(node)
    }
}

/// What a property adds to the definition it refers to, if it adds anything.
fn refined(schema: &Value) -> Option<Refined> {
    reference(schema)?;
    let map = schema.as_object()?;
    let refined = Refined {
        by_value: map.get("default").and_then(Value::as_object).is_some_and(Map::is_empty),
        atomic_map: text(map, "x-kubernetes-map-type").map(|kind| &*kind == "atomic"),
        patch_strategy: patch_strategy(map),
    };
    (refined != Refined::default()).then_some(refined)
}

fn patch_strategy(map: &Map<String, Value>) -> Vec<Box<str>> {
    let all = text(map, "x-kubernetes-patch-strategy");
    all.map(|all| all.split(',').map(Box::from).collect()).unwrap_or_default()
}

/// The definition a schema stands for. A reference that has siblings (a description, an empty
/// default) is published as `allOf` of one; the siblings say nothing about the shape.
fn reference(schema: &Value) -> Option<&str> {
    let direct = match schema.get("allOf").and_then(Value::as_array).map(Vec::as_slice) {
        Some([only]) if schema.get("type").is_none() => only,
        _ => schema,
    };
    direct.get("$ref")?.as_str()?.strip_prefix("#/components/schemas/")
}

fn kind(map: &Map<String, Value>, at: &str) -> Result<Option<Type>, LoadError> {
    Ok(Some(match map.get("type").and_then(Value::as_str) {
        None | Some("") => return Ok(None),
        Some("object") => Type::Object,
        Some("array") => Type::Array,
        Some("string") => Type::String,
        Some("integer") => Type::Integer,
        Some("number") => Type::Number,
        Some("boolean") => Type::Boolean,
        Some(_) => {
            let expected = "object, array, string, integer, number or boolean";
            return Err(LoadError::Shape { at: format!("{at}.type"), expected });
        }
    }))
}

fn list_type(map: &Map<String, Value>, at: &str) -> Result<Option<ListType>, LoadError> {
    Ok(match map.get("x-kubernetes-list-type").and_then(Value::as_str) {
        None => None,
        Some("atomic") => Some(ListType::Atomic),
        Some("set") => Some(ListType::Set),
        Some("map") => Some(ListType::Map),
        Some(_) => {
            let at = format!("{at}.x-kubernetes-list-type");
            return Err(LoadError::Shape { at, expected: "atomic, set or map" });
        }
    })
}

fn bounds(map: &Map<String, Value>) -> Bounds {
    let number = |key| map.get(key).and_then(Value::as_f64);
    let count = |key| map.get(key).and_then(Value::as_u64);
    Bounds {
        minimum: number("minimum"),
        maximum: number("maximum"),
        exclusive_minimum: flag(map, "exclusiveMinimum"),
        exclusive_maximum: flag(map, "exclusiveMaximum"),
        multiple_of: number("multipleOf"),
        min_length: count("minLength"),
        max_length: count("maxLength"),
        min_items: count("minItems"),
        max_items: count("maxItems"),
        min_properties: count("minProperties"),
        max_properties: count("maxProperties"),
    }
}

fn flag(map: &Map<String, Value>, key: &str) -> bool {
    map.get(key).and_then(Value::as_bool).unwrap_or(false)
}

fn text(map: &Map<String, Value>, key: &str) -> Option<Box<str>> {
    map.get(key).and_then(Value::as_str).filter(|text| !text.is_empty()).map(Box::from)
}

fn texts(map: &Map<String, Value>, key: &str) -> Vec<Box<str>> {
    let all = map.get(key).and_then(Value::as_array);
    all.into_iter().flatten().filter_map(Value::as_str).map(Box::from).collect()
}

fn array(map: &Map<String, Value>, key: &str) -> Vec<Value> {
    map.get(key).and_then(Value::as_array).cloned().unwrap_or_default()
}
