//! JSON written as YAML the way `kubectl` does: two spaces, lists not indented, keys in natural
//! order, long lines folded at 80 columns.
//!
//! Writing only. Which quotes a text needs is decided in [`scalar`].

mod scalar;

use std::cmp::Ordering;

use serde_json::{Map, Value};

/// The value as a YAML document, with a line break at the end.
pub fn to_string(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(entries) if !entries.is_empty() => map(&mut out, entries, 0, false),
        Value::Array(items) if !items.is_empty() => list(&mut out, items, 0, false),
        scalar => {
            leaf(&mut out, scalar, 0);
            out.push('\n');
        }
    }
    out
}

/// `inline`: the first entry continues the line of a list item.
fn map(out: &mut String, entries: &Map<String, Value>, indent: usize, inline: bool) {
    let mut entries: Vec<(&String, &Value)> = entries.iter().collect();
    entries.sort_by(|(one, _), (other, _)| natural(one, other));
    for (index, (key, value)) in entries.into_iter().enumerate() {
        if index > 0 || !inline {
            pad(out, indent);
        }
        scalar::write(out, key, indent, scalar::Place::Key);
        out.push(':');
        match value {
            Value::Object(below) if !below.is_empty() => {
                out.push('\n');
                map(out, below, indent + 2, false);
            }
            Value::Array(below) if !below.is_empty() => {
                out.push('\n');
                list(out, below, indent, false);
            }
            value => {
                out.push(' ');
                leaf(out, value, indent);
                out.push('\n');
            }
        }
    }
}

fn list(out: &mut String, items: &[Value], indent: usize, inline: bool) {
    for (index, item) in items.iter().enumerate() {
        if index > 0 || !inline {
            pad(out, indent);
        }
        out.push_str("- ");
        match item {
            Value::Object(below) if !below.is_empty() => map(out, below, indent + 2, true),
            Value::Array(below) if !below.is_empty() => list(out, below, indent + 2, true),
            item => {
                leaf(out, item, indent);
                out.push('\n');
            }
        }
    }
}

/// A scalar or an empty collection; `indent` is that of the line it stands on.
fn leaf(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => out.push_str(&crate::quote::number_text(number)),
        Value::String(text) => scalar::write(out, text, indent, scalar::Place::Value),
        Value::Array(_) => out.push_str("[]"),
        Value::Object(_) => out.push_str("{}"),
    }
}

fn pad(out: &mut String, indent: usize) {
    out.extend(std::iter::repeat_n(' ', indent));
}

/// A part of a key as it is compared. Symbols come before numbers and numbers before letters.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Part<'a> {
    Symbol(char),
    /// By length without leading zeros, then digits, then length with them.
    Number(usize, &'a str, usize),
    Letter(char),
}

/// `item2` before `item10`. Go's own order is circular for some keys; this one agrees with it
/// wherever that makes sense.
fn natural(one: &str, other: &str) -> Ordering {
    let (mut one, mut other) = (one, other);
    loop {
        match (next(&mut one), next(&mut other)) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some(a), Some(b)) => match a.cmp(&b) {
                Ordering::Equal => {}
                decided => return decided,
            },
        }
    }
}

fn next<'a>(text: &mut &'a str) -> Option<Part<'a>> {
    let first = text.chars().next()?;
    let length = if first.is_ascii_digit() {
        text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len())
    } else {
        first.len_utf8()
    };
    let (part, rest) = text.split_at_checked(length)?;
    *text = rest;
    Some(if first.is_ascii_digit() {
        let digits = part.trim_start_matches('0');
        Part::Number(digits.len(), digits, part.len())
    } else if first.is_alphabetic() {
        Part::Letter(first)
    } else {
        Part::Symbol(first)
    })
}

#[cfg(test)]
mod tests;
