//! JSON patch (RFC 6902), as lenient as the library behind kube-apiserver.
//!
//! `replace` and `test` take an absent member of an object for null, indices may count from the
//! end, and what stands before the first slash of a path is ignored. The `json-patch` crate follows
//! the RFC in these and would refuse what clients of Kubernetes get away with.

use serde_json::{Map, Value};

use super::shown::Reach;
use super::{does_not_fit, read_json, undecodable};
use crate::gojson;
use crate::status::Status;

const MOST_OPERATIONS: usize = 10_000;
/// What all `copy` operations of one patch may add, in bytes of JSON.
const MOST_COPIED: usize = 3 * 1024 * 1024;
/// Operations can nest an object deeper than any JSON reader would read it back, or than the stack
/// could drop it, so every one of them is checked.
const DEEPEST: usize = 120;

/// A JSON patch, read but not tried.
#[derive(Clone, Debug)]
pub(crate) struct Operations(Vec<Operation>);

#[derive(Clone, Debug)]
struct Operation {
    kind: String,
    path: Option<String>,
    from: Option<String>,
    /// Absent and null mean the same.
    value: Value,
}

/// Why an operation was refused is not told to the client.
struct Refused;

impl Operations {
    pub(crate) fn parse(body: &[u8]) -> Result<Self, Status> {
        let list = match read_json(body).map_err(|why| undecodable(&why))? {
            Value::Array(list) => list,
            Value::Null => Vec::new(),
            other => return Err(mistyped(&other, "value of type []handlers.jsonPatchOp")),
        };
        let operations =
            list.into_iter().map(Operation::parse).collect::<Result<Vec<_>, Status>>()?;
        if operations.len() > MOST_OPERATIONS {
            return Err(Status::too_large(format!(
                "The allowed maximum operations in a JSON patch is {MOST_OPERATIONS}, got {}",
                operations.len()
            )));
        }
        Ok(Self(operations))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn apply(&self, document: &mut Value) -> Result<(), Status> {
        let mut copied = 0;
        for operation in &self.0 {
            operation.apply(document, &mut copied).map_err(|Refused| does_not_fit())?;
        }
        Ok(())
    }
}

impl Operations {
    /// How far the operations went into the object that they made. Elements of a list are taken to
    /// be where an operation found them, though a later one may have moved them.
    pub(super) fn reach(&self, made: &Value) -> Reach {
        let mut reach = Reach::apart();
        for operation in &self.0 {
            let end = match operation.kind.as_str() {
                "add" | "replace" | "test" => Some(Reach::Whole),
                _ => None,
            };
            reach.note(&way(made, operation.path.as_deref()), end);
            reach.note(&way(made, operation.from.as_deref()), None);
        }
        reach
    }
}

/// The parts of a path, with positions counted from the start of a list.
fn way(made: &Value, path: Option<&str>) -> Vec<String> {
    let mut place = Some(made);
    let mut parts = Vec::new();
    for part in path.unwrap_or_default().split('/').skip(1) {
        let mut part = unescape(part);
        if let Some(Value::Array(items)) = place {
            let position = match part.as_str() {
                "-" => items.len().checked_sub(1),
                part => position(part, items.len()).ok(),
            };
            place = position.and_then(|position| items.get(position));
            part = position.map_or(part, |position| position.to_string());
        } else {
            place = place.and_then(|place| place.get(&part));
        }
        parts.push(part);
    }
    parts
}

impl Operation {
    fn parse(value: Value) -> Result<Self, Status> {
        let mut fields = match value {
            Value::Object(fields) => fields,
            Value::Null => Map::new(),
            other => return Err(mistyped(&other, "value of type handlers.jsonPatchOp")),
        };
        Ok(Self {
            kind: text(&mut fields, "op")?.unwrap_or_default(),
            path: text(&mut fields, "path")?,
            from: text(&mut fields, "from")?,
            value: fields.remove("value").unwrap_or(Value::Null),
        })
    }

    fn apply(&self, document: &mut Value, copied: &mut usize) -> Result<(), Refused> {
        let path = self.path.as_deref().ok_or(Refused)?;
        match self.kind.as_str() {
            "add" => add(document, path, self.value.clone()),
            "remove" => remove(document, path).map(drop),
            "replace" => self.replace(document, path),
            "test" => self.test(document, path),
            "move" => {
                let value = remove(document, self.from.as_deref().ok_or(Refused)?)?;
                add(document, path, value)
            }
            "copy" => {
                let value = get(document, self.from.as_deref().ok_or(Refused)?)?.clone();
                *copied += value.to_string().len();
                if *copied > MOST_COPIED {
                    return Err(Refused);
                }
                add(document, path, value)
            }
            _ => Err(Refused),
        }
    }

    fn replace(&self, document: &mut Value, path: &str) -> Result<(), Refused> {
        if path.is_empty() {
            return match &self.value {
                value @ (Value::Object(_) | Value::Array(_)) => {
                    *document = value.clone();
                    Ok(())
                }
                _ => Err(Refused),
            };
        }
        check_depth(path, &self.value)?;
        match parent(document, path)? {
            (Value::Object(fields), key) => {
                fields.insert(key, self.value.clone());
                Ok(())
            }
            (Value::Array(items), key) => {
                let place = position(&key, items.len())?;
                *items.get_mut(place).ok_or(Refused)? = self.value.clone();
                Ok(())
            }
            _ => Err(Refused),
        }
    }

    fn test(&self, document: &mut Value, path: &str) -> Result<(), Refused> {
        let found = if path.is_empty() { document } else { get(document, path)? };
        if *found == self.value { Ok(()) } else { Err(Refused) }
    }
}

/// The value at a path. An absent member of an object is null; an absent element is an error.
fn get<'v>(document: &'v mut Value, path: &str) -> Result<&'v Value, Refused> {
    match parent(document, path)? {
        (Value::Object(fields), key) => Ok(fields.get(&key).unwrap_or(&Value::Null)),
        (Value::Array(items), key) => items.get(position(&key, items.len())?).ok_or(Refused),
        _ => Err(Refused),
    }
}

fn add(document: &mut Value, path: &str, value: Value) -> Result<(), Refused> {
    check_depth(path, &value)?;
    match parent(document, path)? {
        (Value::Object(fields), key) => {
            fields.insert(key, value);
        }
        (Value::Array(items), key) if key == "-" => items.push(value),
        (Value::Array(items), key) => {
            let place = position(&key, items.len() + 1)?;
            if place > items.len() {
                return Err(Refused);
            }
            items.insert(place, value);
        }
        _ => return Err(Refused),
    }
    Ok(())
}

fn remove(document: &mut Value, path: &str) -> Result<Value, Refused> {
    match parent(document, path)? {
        (Value::Object(fields), key) => fields.remove(&key).ok_or(Refused),
        (Value::Array(items), key) => {
            let place = position(&key, items.len())?;
            if place >= items.len() {
                return Err(Refused);
            }
            Ok(items.remove(place))
        }
        _ => Err(Refused),
    }
}

/// The container a path's last part lies in, and that part.
fn parent<'v>(document: &'v mut Value, path: &str) -> Result<(&'v mut Value, String), Refused> {
    let (_, path) = path.split_once('/').ok_or(Refused)?;
    let (way, key) = path.rsplit_once('/').map_or((None, path), |(way, key)| (Some(way), key));
    let mut container = document;
    for part in way.into_iter().flat_map(|way| way.split('/')) {
        let part = unescape(part);
        container = match container {
            Value::Object(fields) => fields.get_mut(&part).ok_or(Refused)?,
            Value::Array(items) => {
                let place = position(&part, items.len())?;
                items.get_mut(place).ok_or(Refused)?
            }
            _ => return Err(Refused),
        };
    }
    Ok((container, unescape(key)))
}

fn unescape(part: &str) -> String {
    // In one pass, so that `~01` stays `~1`.
    let mut out = String::with_capacity(part.len());
    let mut rest = part;
    while let Some(at) = rest.find('~') {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        rest = if let Some(rest) = from.strip_prefix("~1") {
            out.push('/');
            rest
        } else if let Some(rest) = from.strip_prefix("~0") {
            out.push('~');
            rest
        } else {
            out.push('~');
            from.get(1..).unwrap_or_default()
        };
    }
    out.push_str(rest);
    out
}

/// Where an index points in a list of `length`; below zero it counts from the end.
fn position(key: &str, length: usize) -> Result<usize, Refused> {
    let index: i64 = key.parse().map_err(|_| Refused)?;
    let length = i64::try_from(length).map_err(|_| Refused)?;
    let index = if index < 0 { index.checked_add(length).ok_or(Refused)? } else { index };
    usize::try_from(index).map_err(|_| Refused)
}

fn check_depth(path: &str, value: &Value) -> Result<(), Refused> {
    let above = path.matches('/').count();
    match DEEPEST.checked_sub(above) {
        Some(left) if !deeper_than(value, left) => Ok(()),
        _ => Err(Refused),
    }
}

fn deeper_than(value: &Value, levels: usize) -> bool {
    let Some(levels) = levels.checked_sub(1) else {
        return value.is_object() || value.is_array();
    };
    match value {
        Value::Object(map) => map.values().any(|value| deeper_than(value, levels)),
        Value::Array(items) => items.iter().any(|value| deeper_than(value, levels)),
        _ => false,
    }
}

fn text(fields: &mut Map<String, Value>, key: &str) -> Result<Option<String>, Status> {
    match fields.remove(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => {
            Err(mistyped(&other, &format!("struct field jsonPatchOp.{key} of type string")))
        }
    }
}

fn mistyped(value: &Value, target: &str) -> Status {
    undecodable(&format!("json: cannot unmarshal {} into Go {target}", gojson::json_type(value)))
}
