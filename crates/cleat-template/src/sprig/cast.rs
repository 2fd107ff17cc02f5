//! Sprig's generous conversions: anything is a number, anything is a text.

use std::borrow::Cow;

use crate::limits::{Budget, Fault};
use crate::literal;
use crate::print;
use crate::value::Value;

/// What Go says when a function is handed nil where it needs a type.
pub(super) const NIL: &str = "runtime error: invalid memory address or nil pointer dereference";

/// A whole number; 0 for what is none. Decimals are cut, and texts may have Go's prefixes.
pub(crate) fn to_int64(value: &Value) -> i64 {
    match value {
        Value::Bool(flag) => i64::from(*flag),
        Value::Int(number, _) => *number,
        Value::Uint(number, _) => i64::from_ne_bytes(number.to_ne_bytes()),
        Value::Float(number) => whole(*number),
        Value::Str(text) => literal::parse_int(without_decimals(text).as_ref()).unwrap_or(0),
        _ => 0,
    }
}

/// Out of range gives what the processors Go runs on give.
fn whole(number: f64) -> i64 {
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&number) {
        return number as i64;
    }
    i64::MIN
}

/// The same as an `int`.
pub(crate) fn number_of(value: &Value) -> Value {
    Value::int(to_int64(value))
}

fn without_decimals(text: &str) -> Cow<'_, str> {
    let Some((whole, fraction)) = text.split_once('.') else { return text.into() };
    let unsigned = whole.strip_prefix(['+', '-']).unwrap_or(whole);
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    match (digits(unsigned) && digits(fraction), unsigned.is_empty()) {
        (false, _) => text.into(),
        (true, true) => format!("{whole}0").into(),
        (true, false) => whole.into(),
    }
}

pub(super) fn to_float(value: &Value) -> f64 {
    match value {
        Value::Bool(flag) => f64::from(u8::from(*flag)),
        Value::Int(number, _) => *number as f64,
        Value::Uint(number, _) => *number as f64,
        Value::Float(number) => *number,
        Value::Str(text) => literal::parse_float(text).unwrap_or(0.0),
        _ => 0.0,
    }
}

/// Strings as they are, everything else as `%v`.
pub(super) fn to_text(value: &Value, budget: &Budget) -> Result<String, Fault> {
    match value {
        Value::Str(text) => {
            budget.charge(text.len())?;
            Ok(text.to_string())
        }
        other => print::plain_text(other, budget),
    }
}

/// A list of texts out of anything: lists lose their nils, nil is no text, else one text.
pub(super) fn to_texts(value: &Value, budget: &Budget) -> Result<Vec<String>, Fault> {
    match value {
        Value::Nil => Ok(Vec::new()),
        Value::List(list) => {
            budget.steps(list.items().len() as u64)?;
            let items = list.items().iter().filter(|item| !item.is_nil());
            items.map(|item| to_text(item, budget)).collect()
        }
        other => Ok(vec![to_text(other, budget)?]),
    }
}

/// Zero, empty or nil.
pub(super) fn is_empty(value: &Value) -> bool {
    !value.truth()
}

/// A count that must not be negative.
pub(super) fn count(number: i64, complaint: &str) -> Result<usize, Fault> {
    usize::try_from(number).map_err(|_| Fault::text(complaint))
}
