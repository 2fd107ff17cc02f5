//! The JSONPath dialect of `kubectl` and of printer columns: `{.spec.x}`, filters, slices, unions,
//! recursive descent, and templates with literal text and `{range}` … `{end}`.
//!
//! Results, refusals and oddities follow client-go. The one difference is order: where client-go
//! walks a map in random order, this walks it by key. Nothing here knows servers or requests.

mod eval;
mod parse;
#[cfg(test)]
mod tests;
mod unquote;

use std::borrow::Cow;

use serde_json::Value;

use crate::quote;

/// A parsed template.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPath {
    nodes: Vec<Node>,
}

/// What to do about fields that no input has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The result is empty.
    Allowed,
    /// `x is not found`.
    Refused,
}

/// A template that cannot be parsed, or does not fit the data, in client-go's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct JsonPathError(String);

#[derive(Clone, Debug, PartialEq)]
enum Node {
    /// One `{…}`.
    List(Vec<Node>),
    Text(String),
    Field(String),
    Slice(Slice),
    Filter {
        left: Vec<Node>,
        operator: String,
        right: Vec<Node>,
    },
    Integer(i64),
    Float(f64),
    Boolean(bool),
    Wildcard,
    Recursive,
    Union(Vec<Vec<Node>>),
    Identifier(String),
}

/// `[start:end:step]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slice {
    start: Option<i64>,
    end: Option<i64>,
    /// The end was not written: `[n]` means the one element at n.
    single: bool,
    step: Option<i64>,
}

impl JsonPath {
    /// A template with expressions in braces.
    pub fn parse(template: &str) -> Result<Self, JsonPathError> {
        parse::template(template).map(|nodes| Self { nodes }).map_err(JsonPathError)
    }

    /// A bare expression, as printer columns and selectable fields have it: `.spec.x`.
    pub fn parse_expression(expression: &str) -> Result<Self, JsonPathError> {
        Self::parse(&format!("{{{expression}}}"))
    }

    /// One list of results for every literal text and every expression, in order.
    pub fn find<'a>(
        &self,
        data: &'a Value,
        missing: Missing,
    ) -> Result<Vec<Vec<Cow<'a, Value>>>, JsonPathError> {
        eval::find(&self.nodes, data, missing).map_err(JsonPathError)
    }

    /// What `kubectl -o jsonpath=` prints.
    pub fn print(&self, data: &Value, missing: Missing) -> Result<String, JsonPathError> {
        let mut out = String::new();
        for results in self.find(data, missing)? {
            for (index, value) in results.iter().enumerate() {
                if index > 0 {
                    out.push(' ');
                }
                out.push_str(&text(value));
            }
        }
        Ok(out)
    }
}

/// One result as text: JSON for maps and lists, the bare value otherwise.
pub fn text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        Value::Null => Cow::Borrowed("null"),
        Value::Array(_) | Value::Object(_) => Cow::Owned(value.to_string()),
        scalar => Cow::Owned(quote::plain(scalar)),
    }
}
