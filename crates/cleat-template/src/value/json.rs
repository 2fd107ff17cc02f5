//! Between JSON and template values.

use serde_json::{Number, Value as Json};

use super::{UintKind, Value};

/// What whole numbers become; it depends on who read them in Go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Numbers {
    /// Objects of the Kubernetes API: `int64`.
    Int64,
    /// YAML: `int`.
    #[expect(dead_code, reason = "the policy functions will use it")]
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
