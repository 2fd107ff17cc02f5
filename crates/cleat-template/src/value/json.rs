//! Between JSON and template values.

use serde_json::{Map as JsonMap, Number, Value as Json};

use super::{Entries, UintKind, Value};
use crate::limits::{Budget, Fault};

/// What whole numbers become; it depends on who read them in Go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Numbers {
    /// Objects of the Kubernetes API: `int64`.
    Int64,
    /// YAML: `int`.
    Int,
    /// `encoding/json`: everything is a `float64`.
    Float,
}

/// JSON comes from a reader that bounds its depth, so this may recurse.
pub(crate) fn from_json(json: &Json, numbers: Numbers) -> Value {
    match json {
        Json::Null => Value::Nil,
        Json::Bool(flag) => Value::Bool(*flag),
        Json::Number(number) => from_number(number, numbers),
        Json::String(text) => Value::text(text),
        Json::Array(items) => {
            Value::list(items.iter().map(|item| from_json(item, numbers)).collect())
        }
        Json::Object(entries) => Value::map(
            entries.iter().map(|(key, item)| (key.clone(), from_json(item, numbers))).collect(),
        ),
    }
}

fn from_number(number: &Number, numbers: Numbers) -> Value {
    let float = || Value::Float(number.as_f64().unwrap_or_default());
    match (numbers, number.as_i64(), number.as_u64()) {
        (Numbers::Float, _, _) => float(),
        (Numbers::Int64, Some(whole), _) => Value::int64(whole),
        (Numbers::Int, Some(whole), _) => Value::int(whole),
        (Numbers::Int, None, Some(large)) => Value::Uint(large, UintKind::Uint64),
        _ => float(),
    }
}

/// # Errors
/// Values that `encoding/json` refuses, and values too deep or too large.
pub(crate) fn to_json(value: &Value, budget: &Budget) -> Result<Json, Fault> {
    let _level = budget.descend()?;
    budget.step()?;
    Ok(match value {
        Value::Nil => Json::Null,
        Value::Bool(flag) => Json::Bool(*flag),
        Value::Int(whole, _) => Json::from(*whole),
        Value::Uint(whole, _) => Json::from(*whole),
        Value::Float(float) => match Number::from_f64(*float) {
            Some(number) => Json::Number(number),
            None => {
                let text = cleat_dialect::quote::float_text(*float);
                return Err(Fault::text(format!("json: unsupported value: {text}")));
            }
        },
        Value::Str(text) => {
            budget.charge(text.len())?;
            Json::String(text.to_string())
        }
        Value::Raw(bytes) => {
            budget.charge(bytes.len())?;
            Json::String(String::from_utf8_lossy(bytes).into_owned())
        }
        Value::List(list) if list.nil => Json::Null,
        Value::List(list) => {
            let items: Result<_, Fault> =
                list.items().iter().map(|item| to_json(item, budget)).collect();
            Json::Array(items?)
        }
        Value::Map(map) if map.nil => Json::Null,
        Value::Map(map) => entries_to_json(&map.entries(), budget)?,
        Value::Struct(shape) => {
            let mut entries = JsonMap::new();
            for (name, field) in &shape.fields {
                entries.insert(name.clone(), to_json(field, budget)?);
            }
            Json::Object(entries)
        }
        Value::Time(time) => Json::String(time.rfc3339()),
        Value::Version(version) => Json::String(version.to_string()),
    })
}

fn entries_to_json(entries: &Entries, budget: &Budget) -> Result<Json, Fault> {
    let mut json = JsonMap::new();
    for (key, value) in entries {
        budget.charge(key.len())?;
        json.insert(key.clone(), to_json(value, budget)?);
    }
    Ok(Json::Object(json))
}
