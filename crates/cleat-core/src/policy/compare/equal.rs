//! Whether a merged value says the same as the live one.
//!
//! Lists are compared without regard to order, quantities by amount, scalars by how they are
//! written. What a server would leave out because it is empty counts as there.

use alloc::string::String;
use alloc::vec::Vec;

use cleat_dialect::quote;
use serde_json::{Map, Value};

use super::quantity::Quantity;

/// What of the live side may be absent and still be equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Absence {
    /// Zero scalars and empty lists.
    Zeros,
    /// Empty maps as well.
    EmptyMaps,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Equality {
    Equal,
    /// Equal only if the server would leave out a zero value.
    Missing,
    Different,
}

impl Equality {
    /// Whether it is equal, or as good as.
    pub(super) fn holds(self) -> bool {
        self != Self::Different
    }

    pub(super) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Different, _) | (_, Self::Different) => Self::Different,
            (Self::Missing, _) | (_, Self::Missing) => Self::Missing,
            (Self::Equal, Self::Equal) => Self::Equal,
        }
    }

    fn of(equal: bool) -> Self {
        if equal { Self::Equal } else { Self::Different }
    }
}

/// `live` is `None` where the live side has no such key.
pub(super) fn equivalent(merged: &Value, live: Option<&Value>, absence: Absence) -> Equality {
    let live = live.unwrap_or(&Value::Null);
    match (merged, live) {
        (Value::Object(merged), Value::Object(live)) => objects(merged, live, absence),
        (Value::Object(merged), Value::Null) => {
            Equality::of(merged.is_empty() && absence == Absence::EmptyMaps)
        }
        (Value::Array(merged), Value::Array(live)) => lists(merged, live, absence),
        (Value::Array(merged), Value::Null) => Equality::of(merged.is_empty()),
        (Value::Object(_) | Value::Array(_), _) => Equality::Different,
        (Value::Null, Value::Null) => Equality::Equal,
        (_, Value::Null) if is_zero(merged) => Equality::Missing,
        (_, Value::Null) => Equality::Different,
        (Value::String(text), _) => strings(text, live),
        _ => Equality::of(quote::plain(merged) == quote::plain(live)),
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Null => true,
        Value::Array(_) | Value::Object(_) => false,
    }
}

fn strings(text: &str, live: &Value) -> Equality {
    let Some(amount) = Quantity::parse(text) else {
        return Equality::of(*text == quote::plain(live));
    };
    match live {
        Value::String(live) => Equality::of(text == live || Quantity::parse(live) == Some(amount)),
        _ => Equality::Different,
    }
}

fn objects(merged: &Map<String, Value>, live: &Map<String, Value>, absence: Absence) -> Equality {
    if merged.len() < live.len() {
        return Equality::Different;
    }
    let mut all = Equality::Equal;
    for (key, value) in merged {
        all = all.and(equivalent(value, live.get(key), absence));
        if all == Equality::Different {
            break;
        }
    }
    all
}

fn lists(merged: &[Value], live: &[Value], absence: Absence) -> Equality {
    if merged.len() != live.len() {
        return Equality::Different;
    }
    let mut all = Equality::Equal;
    for (merged, live) in sorted(merged).into_iter().zip(sorted(live)) {
        all = all.and(equivalent(merged, Some(live), absence));
        if all == Equality::Different {
            break;
        }
    }
    all
}

fn sorted(items: &[Value]) -> Vec<&Value> {
    let mut sorted: Vec<((String, String), &Value)> =
        items.iter().map(|item| (key(item), item)).collect();
    sorted.sort_by(|(one, _), (other, _)| one.cmp(other));
    sorted.into_iter().map(|(_, item)| item).collect()
}

/// By which items of lists are told apart and put in order. The second part tells apart what is
/// written alike, such as an empty list and a list of an empty text.
pub(super) fn key(value: &Value) -> (String, String) {
    (canonical(value), exact(value))
}

fn exact(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let mut items: Vec<String> = items.iter().map(exact).collect();
            items.sort();
            alloc::format!("[{}]", items.join(","))
        }
        Value::Object(entries) => {
            let entry =
                |(key, value): (&String, &Value)| alloc::format!("{key:?}:{}", exact(value));
            let entries: Vec<String> = entries.iter().map(entry).collect();
            alloc::format!("{{{}}}", entries.join(","))
        }
        scalar => alloc::format!("{scalar}"),
    }
}

/// One text for all values that differ only in the order of their lists.
fn canonical(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let mut items: Vec<String> = items.iter().map(canonical).collect();
            items.sort();
            alloc::format!("[{}]", items.join(" "))
        }
        Value::Object(entries) => {
            let entry =
                |(key, value): (&String, &Value)| alloc::format!("{key}:{}", canonical(value));
            let entries: Vec<String> = entries.iter().map(entry).collect();
            alloc::format!("map[{}]", entries.join(" "))
        }
        scalar => quote::plain(scalar),
    }
}
