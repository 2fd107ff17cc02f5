//! Reading JSON the way a Go program reads it into its structs. Built-in kinds are structs in
//! kube-apiserver: what no struct field takes is dropped, what has the wrong type is refused in
//! the words of Go's decoder, and what comes back is what a struct would write.
//!
//! Names of Go types are derived from definition names, so a named string type shows up as
//! `string` unless [`NAMED`] knows better. Zero values of scalars stay as they were sent.

mod leaf;

use serde_json::{Map, Value};

use super::{Additional, Node, Schema, Type};
use crate::{gojson::json_type, status::Status};

/// Deeper values are refused.
const DEEPEST: usize = 256;

/// Makes an object of a built-in kind what the struct behind `schema` would hold, and returns the
/// paths of the fields it has no place for.
///
/// Nulls disappear, and so do empty lists and maps of optional fields; times and quantities come
/// out in their canonical form.
pub fn coerce(
    value: &mut Value,
    schema: Schema<'_>,
    kind: &str,
    version: &str,
) -> Result<Vec<String>, Status> {
    decode(value, schema).map_err(|why| refusal(kind, version, &why))
}

/// A body whose kind is known but which does not fit it.
pub fn refusal(kind: &str, version: &str, why: &str) -> Status {
    Status::bad_request(format!(
        "{kind} in version \"{version}\" cannot be handled as a {kind}: {why}"
    ))
}

/// [`coerce`] with the bare text of the decoder.
pub(crate) fn decode(value: &mut Value, schema: Schema<'_>) -> Result<Vec<String>, String> {
    let mut decoding = Decoding::default();
    decoding.value(value, schema)?;
    match decoding.saved {
        None => Ok(decoding.unknown),
        Some(why) => Err(why),
    }
}

#[derive(Default)]
struct Decoding<'a> {
    /// Where we are, with indices and map keys.
    path: String,
    /// The struct fields on the way, which is how Go's decoder says where it is.
    fields: Vec<&'a str>,
    /// The innermost struct.
    owner: Option<&'a str>,
    unknown: Vec<String>,
    /// The first mismatch. The decoder carries on after one, but not after a failing parser.
    saved: Option<String>,
    depth: usize,
}

impl<'a> Decoding<'a> {
    fn value(&mut self, value: &mut Value, schema: Schema<'a>) -> Result<(), String> {
        if self.depth >= DEEPEST {
            return Err("exceeded max depth".to_owned());
        }
        self.depth += 1;
        let result = self.at_depth(value, schema);
        self.depth -= 1;
        result
    }

    fn at_depth(&mut self, value: &mut Value, schema: Schema<'a>) -> Result<(), String> {
        if value.is_null() {
            return Ok(());
        }
        let node = schema.node();
        if let Some(leaf) = leaf::Leaf::of(node) {
            return match leaf.read(value) {
                Ok(()) => Ok(()),
                Err(leaf::Mismatch::Parser(why)) => Err(why),
                Err(leaf::Mismatch::Saved(why)) => {
                    self.saved.get_or_insert(why);
                    Ok(())
                }
                Err(leaf::Mismatch::Type { found, go_type }) => {
                    self.mismatch(&found, go_type);
                    Ok(())
                }
            };
        }
        match shape(node) {
            Shape::Opaque => Ok(()),
            Shape::Struct => match value {
                Value::Object(map) => self.object(map, schema),
                other => self.wrong(other, schema),
            },
            Shape::Map(id) => match value {
                Value::Object(map) => self.map(map, schema.child(id)),
                other => self.wrong(other, schema),
            },
            Shape::List => match value {
                Value::Array(items) => self.list(items, schema),
                other => self.wrong(other, schema),
            },
        }
    }

    fn object(&mut self, map: &mut Map<String, Value>, schema: Schema<'a>) -> Result<(), String> {
        let node = schema.node();
        let (length, owner) = (self.path.len(), self.owner);
        let mut result = Ok(());
        map.retain(|key, value| {
            if result.is_err() {
                return true;
            }
            let Some((name, id)) = node.properties.get_key_value(key.as_str()) else {
                self.enter(key);
                self.unknown.push(self.path.clone());
                self.path.truncate(length);
                return false;
            };
            if value.is_null() {
                return false;
            }
            self.enter(key);
            self.fields.push(name);
            self.owner = node.name.as_deref().map(last_segment).or(owner);
            result = self.value(value, schema.child(*id));
            self.path.truncate(length);
            self.fields.pop();
            self.owner = owner;
            node.required.contains(name) || !is_empty(value, schema.child(*id).node())
        });
        result
    }

    fn map(&mut self, map: &mut Map<String, Value>, schema: Schema<'a>) -> Result<(), String> {
        let length = self.path.len();
        for (key, value) in map {
            self.enter(key);
            zero_for_null(value, schema.node());
            self.value(value, schema)?;
            self.path.truncate(length);
        }
        Ok(())
    }

    fn list(&mut self, items: &mut [Value], schema: Schema<'a>) -> Result<(), String> {
        let Some(schema) = schema.items() else { return Ok(()) };
        let length = self.path.len();
        for (index, item) in items.iter_mut().enumerate() {
            self.path.push_str(&format!("[{index}]"));
            zero_for_null(item, schema.node());
            self.value(item, schema)?;
            self.path.truncate(length);
        }
        Ok(())
    }

    fn enter(&mut self, key: &str) {
        if !self.path.is_empty() {
            self.path.push('.');
        }
        self.path.push_str(key);
    }

    fn wrong(&mut self, value: &Value, schema: Schema<'_>) -> Result<(), String> {
        self.mismatch(json_type(value), &go_type(schema, 0));
        Ok(())
    }

    fn mismatch(&mut self, found: &str, go_type: &str) {
        let named = match (self.owner, self.fields.last()) {
            (Some(owner), Some(field)) if go_type == "string" => NAMED
                .iter()
                .find(|(named_owner, named_field, _)| *named_owner == owner && named_field == field)
                .map(|(_, _, go_type)| *go_type),
            _ => None,
        };
        let go_type = named.unwrap_or(go_type);
        let into = match self.owner {
            Some(owner) => format!("struct field {owner}.{}", self.fields.join(".")),
            None => "value".to_owned(),
        };
        self.saved.get_or_insert(format!(
            "json: cannot unmarshal {found} into Go {into} of type {go_type}"
        ));
    }
}

/// What kind of Go type stands behind a node that is no leaf.
enum Shape {
    Struct,
    Map(super::Id),
    List,
    /// Raw JSON.
    Opaque,
}

fn shape(node: &Node) -> Shape {
    match (node.kind, node.additional) {
        (Some(Type::Array), _) => Shape::List,
        _ if !node.properties.is_empty() => Shape::Struct,
        (Some(Type::Object), Additional::Schema(id)) => Shape::Map(id),
        _ => Shape::Opaque,
    }
}

/// Whether Go would leave the value out when writing an optional field.
fn is_empty(value: &Value, node: &Node) -> bool {
    match (value, shape(node)) {
        (Value::Array(items), _) => items.is_empty(),
        (Value::Object(map), Shape::Map(_)) => map.is_empty(),
        _ => false,
    }
}

/// A null element of a list or map becomes the zero value of its type.
fn zero_for_null(value: &mut Value, node: &Node) {
    if !value.is_null() {
        return;
    }
    *value = match (leaf::Leaf::of(node), shape(node)) {
        (Some(leaf), _) => leaf.zero(),
        (None, Shape::Struct) => Value::Object(Map::new()),
        (None, Shape::Map(_) | Shape::List | Shape::Opaque) => return,
    };
}

fn go_type(schema: Schema<'_>, depth: usize) -> String {
    let node = schema.node();
    if let Some(leaf) = leaf::Leaf::of(node) {
        return leaf.go_type().to_owned();
    }
    // A list of lists of … is no Go type anybody has.
    if depth > 8 {
        return "interface {}".to_owned();
    }
    match (shape(node), node.name.as_deref()) {
        (Shape::List, _) => match schema.items() {
            Some(items) => format!("[]{}", go_type(items, depth + 1)),
            None => "[]interface {}".to_owned(),
        },
        (Shape::Map(id), _) => format!("map[string]{}", go_type(schema.child(id), depth + 1)),
        (_, Some(name)) => {
            let mut segments = name.rsplit('.');
            let last = segments.next().unwrap_or_default();
            format!("{}.{last}", segments.next().unwrap_or_default())
        }
        (_, None) => "interface {}".to_owned(),
    }
}

fn last_segment(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// Fields whose Go type is a named string, by struct and field.
const NAMED: [(&str, &str, &str); 20] = [
    ("ObjectMeta", "uid", "types.UID"),
    ("OwnerReference", "uid", "types.UID"),
    ("ObjectReference", "uid", "types.UID"),
    ("ManagedFieldsEntry", "operation", "v1.ManagedFieldsOperationType"),
    ("Condition", "status", "v1.ConditionStatus"),
    ("Container", "imagePullPolicy", "v1.PullPolicy"),
    ("ContainerPort", "protocol", "v1.Protocol"),
    ("LabelSelectorRequirement", "operator", "v1.LabelSelectorOperator"),
    ("NamespaceStatus", "phase", "v1.NamespacePhase"),
    ("PersistentVolumeStatus", "phase", "v1.PersistentVolumePhase"),
    ("PodSpec", "dnsPolicy", "v1.DNSPolicy"),
    ("PodSpec", "restartPolicy", "v1.RestartPolicy"),
    ("PodStatus", "phase", "v1.PodPhase"),
    ("Secret", "type", "v1.SecretType"),
    ("ServicePort", "protocol", "v1.Protocol"),
    ("ServiceSpec", "sessionAffinity", "v1.ServiceAffinity"),
    ("ServiceSpec", "type", "v1.ServiceType"),
    ("Taint", "effect", "v1.TaintEffect"),
    ("Toleration", "effect", "v1.TaintEffect"),
    ("Toleration", "operator", "v1.TolerationOperator"),
];

#[cfg(test)]
mod tests;
