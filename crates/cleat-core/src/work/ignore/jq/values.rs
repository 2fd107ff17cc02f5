//! What functions and operators make of values, wherever those come from.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Ordering;

use jaq_core::ops::Math;
use serde_json::{Number, Value};

use super::eval::Failure;
use super::read::number;
use super::{Comparison, Function};

pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Counted anew each time: that is no more work than what is about to be done with it.
pub(super) fn size(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(size).sum::<usize>(),
        Value::Object(entries) => {
            1 + entries.iter().map(|(key, value)| 1 + key.len() / 64 + size(value)).sum::<usize>()
        }
        Value::String(text) => 1 + text.len() / 64,
        _ => 1,
    }
}

pub(super) fn length(value: &Value) -> Result<Value, Failure> {
    Ok(match value {
        Value::Null => Value::from(0),
        Value::Bool(_) => return Err(Failure::Misfit("asks a boolean for its length".into())),
        Value::Number(number) => number.as_f64().map(f64::abs).into(),
        Value::String(text) => Value::from(text.chars().count()),
        Value::Array(items) => Value::from(items.len()),
        Value::Object(entries) => Value::from(entries.len()),
    })
}

pub(super) fn tested(function: Function, value: &Value, other: &Value) -> Result<bool, Failure> {
    let misfit = || {
        let (one, other) = (kind(value), kind(other));
        Failure::Misfit(format!(
            "tests values of types {one} and {other}, which do not go together"
        ))
    };
    match (function, value, other) {
        (Function::Has, Value::Object(entries), Value::String(key)) => {
            Ok(entries.contains_key(key))
        }
        (Function::Has, Value::Array(items), Value::Number(index)) => {
            Ok(index.as_u64().is_some_and(|index| index < items.len() as u64))
        }
        (Function::StartsWith, Value::String(text), Value::String(start)) => {
            Ok(text.starts_with(start.as_str()))
        }
        (Function::EndsWith, Value::String(text), Value::String(end)) => {
            Ok(text.ends_with(end.as_str()))
        }
        (Function::Contains, value, other) if kind(value) == kind(other) => {
            Ok(contains(value, other))
        }
        (Function::Inside, value, other) if kind(value) == kind(other) => {
            Ok(contains(other, value))
        }
        _ => Err(misfit()),
    }
}

/// The argument comes from the expression or the manifest, whose depth is bounded.
fn contains(value: &Value, other: &Value) -> bool {
    match (value, other) {
        (Value::String(value), Value::String(other)) => value.contains(other.as_str()),
        (Value::Array(value), Value::Array(other)) => {
            other.iter().all(|other| value.iter().any(|value| contains(value, other)))
        }
        (Value::Object(value), Value::Object(other)) => other
            .iter()
            .all(|(key, other)| value.get(key).is_some_and(|value| contains(value, other))),
        (value, other) => order(value, other).is_eq(),
    }
}

/// What one value makes of another.
pub(super) fn combined(function: Function, value: &Value, other: &Value) -> Result<Value, Failure> {
    let found = |index: Option<usize>| index.map_or(Value::Null, Value::from);
    // Counted in characters, not in bytes.
    let place = |text: &str, at: Option<usize>| {
        found(at.and_then(|at| text.get(..at)).map(|before| before.chars().count()))
    };
    Ok(match (function, value, other) {
        (Function::Index, Value::Null, _) | (Function::LastIndex, Value::Null, _) => Value::Null,
        (Function::Index, Value::String(text), Value::String(part)) if !part.is_empty() => {
            place(text, text.find(part.as_str()))
        }
        (Function::LastIndex, Value::String(text), Value::String(part)) if !part.is_empty() => {
            place(text, text.rfind(part.as_str()))
        }
        (Function::Index | Function::LastIndex, Value::String(_), Value::String(_)) => Value::Null,
        (Function::Index, Value::Array(items), one) if !one.is_array() => {
            found(items.iter().position(|item| order(item, one).is_eq()))
        }
        (Function::LastIndex, Value::Array(items), one) if !one.is_array() => {
            found(items.iter().rposition(|item| order(item, one).is_eq()))
        }
        // Whatever is not a text, or does not begin or end so, stays as it is.
        (Function::TrimStart, Value::String(text), Value::String(start)) => {
            text.strip_prefix(start.as_str()).unwrap_or(text).into()
        }
        (Function::TrimEnd, Value::String(text), Value::String(end)) => {
            text.strip_suffix(end.as_str()).unwrap_or(text).into()
        }
        (Function::TrimStart | Function::TrimEnd, value, _) => value.clone(),
        (Function::Split, Value::String(text), Value::String(by)) => split(text, by),
        (Function::Join, Value::Array(items), Value::String(by)) => {
            let parts = items.iter().map(|item| match item {
                Value::Null => Ok(String::new()),
                Value::Array(_) | Value::Object(_) => {
                    Err(Failure::Misfit(format!("cannot join a value of type {}", kind(item))))
                }
                item => Ok(text_of(item)),
            });
            parts.collect::<Result<Vec<_>, _>>()?.join(by.as_str()).into()
        }
        (_, one, other) => {
            let (one, other) = (kind(one), kind(other));
            return Err(Failure::Misfit(format!(
                "combines values of types {one} and {other}, which do not go together"
            )));
        }
    })
}

/// What becomes of one value by itself.
pub(super) fn changed(function: Function, value: &Value) -> Result<Value, Failure> {
    Ok(match (function, value) {
        (Function::LowerCase, Value::String(text)) => text.to_ascii_lowercase().into(),
        (Function::UpperCase, Value::String(text)) => text.to_ascii_uppercase().into(),
        (Function::ToString, value) => text_of(value).into(),
        (Function::ToNumber, Value::Number(_)) => value.clone(),
        (Function::ToNumber, Value::String(text)) => number(text.trim())
            .map_err(|_| Failure::Misfit(format!("cannot take {text:?} for a number")))?,
        (Function::Keys, Value::Object(entries)) => {
            let mut keys: Vec<&String> = entries.keys().collect();
            keys.sort();
            keys.into_iter().map(|key| Value::from(key.as_str())).collect::<Vec<_>>().into()
        }
        (Function::Keys, Value::Array(items)) => (0..items.len()).collect::<Vec<_>>().into(),
        (function, value) => {
            let asked_for = match function {
                Function::Keys => "its keys",
                Function::ToNumber => "a number",
                _ => "its letters",
            };
            let kind = kind(value);
            return Err(Failure::Misfit(format!("asks a value of type {kind} for {asked_for}")));
        }
    })
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => format!("{other}"),
    }
}

fn split(text: &str, by: &str) -> Value {
    let parts: Vec<Value> = match (text, by) {
        ("", _) => Vec::new(),
        (text, "") => text.chars().map(|one| Value::from(String::from(one))).collect(),
        (text, by) => text.split(by).map(Value::from).collect(),
    };
    parts.into()
}

/// Arithmetic as jq has it.
pub(super) fn reckon(one: &Value, operator: Math, other: &Value) -> Result<Value, Failure> {
    let misfit = || {
        let (one, other) = (kind(one), kind(other));
        Failure::Misfit(format!("reckons with values of types {one} and {other}"))
    };
    Ok(match (operator, one, other) {
        (Math::Add, Value::Null, value) | (Math::Add, value, Value::Null) => value.clone(),
        (_, Value::Number(one), Value::Number(other)) => {
            return reckon_numbers(one, operator, other);
        }
        (Math::Add, Value::String(one), Value::String(other)) => format!("{one}{other}").into(),
        (Math::Add, Value::Array(one), Value::Array(other)) => {
            one.iter().chain(other).cloned().collect::<Vec<_>>().into()
        }
        (Math::Add, Value::Object(one), Value::Object(other)) => {
            let entries = one.iter().chain(other);
            Value::Object(entries.map(|(key, value)| (key.clone(), value.clone())).collect())
        }
        (Math::Sub, Value::Array(one), Value::Array(other)) => {
            let left = one.iter().filter(|item| !other.iter().any(|o| order(o, item).is_eq()));
            left.cloned().collect::<Vec<_>>().into()
        }
        (Math::Div, Value::String(text), Value::String(by)) => split(text, by),
        _ => return Err(misfit()),
    })
}

fn reckon_numbers(one: &Number, operator: Math, other: &Number) -> Result<Value, Failure> {
    let zero = || Failure::Misfit("divides by zero".into());
    let whole = one.as_i64().zip(other.as_i64()).and_then(|(one, other)| match operator {
        Math::Add => one.checked_add(other),
        Math::Sub => one.checked_sub(other),
        Math::Mul => one.checked_mul(other),
        Math::Div => one.checked_rem(other).filter(|rest| *rest == 0).and(one.checked_div(other)),
        Math::Rem => one.checked_rem(other),
    });
    if let Some(whole) = whole {
        return Ok(whole.into());
    }
    let (one, other) = (one.as_f64().unwrap_or_default(), other.as_f64().unwrap_or_default());
    let result = match operator {
        Math::Add => one + other,
        Math::Sub => one - other,
        Math::Mul => one * other,
        Math::Div | Math::Rem if other == 0.0 => return Err(zero()),
        Math::Div => one / other,
        Math::Rem => one % other,
    };
    let result = Number::from_f64(result).map(Value::Number);
    result.ok_or_else(|| Failure::Misfit("reckons with numbers that are too large".into()))
}

/// How deep a value nests. Values are walked by recursion, so what is made is not to be deeper than
/// what comes from outside can be.
pub(super) fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Value::Object(entries) => 1 + entries.values().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}

pub(super) fn compare(one: &Value, operator: Comparison, other: &Value) -> bool {
    let order = order(one, other);
    match operator {
        Comparison::Less => order.is_lt(),
        Comparison::LessOrEqual => order.is_le(),
        Comparison::Greater => order.is_gt(),
        Comparison::GreaterOrEqual => order.is_ge(),
        Comparison::Equal => order.is_eq(),
        Comparison::NotEqual => order.is_ne(),
    }
}

/// jq's order of all values: null, false, true, numbers, strings, arrays, objects.
pub(super) fn order(one: &Value, other: &Value) -> Ordering {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => match (one.as_i64(), other.as_i64()) {
            (Some(one), Some(other)) => one.cmp(&other),
            _ => one.as_f64().partial_cmp(&other.as_f64()).unwrap_or(Ordering::Equal),
        },
        (Value::Bool(one), Value::Bool(other)) => one.cmp(other),
        (Value::String(one), Value::String(other)) => one.cmp(other),
        (Value::Array(one), Value::Array(other)) => {
            let pairs = one.iter().zip(other).map(|(one, other)| order(one, other));
            pairs.into_iter().find(|order| order.is_ne()).unwrap_or(one.len().cmp(&other.len()))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.keys().cmp(other.keys()).then_with(|| {
                let pairs = one.values().zip(other.values()).map(|(one, other)| order(one, other));
                pairs.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
            })
        }
        (one, other) => rank(one).cmp(&rank(other)),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Number(_) => 2,
        Value::String(_) => 3,
        Value::Array(_) => 4,
        Value::Object(_) => 5,
    }
}
