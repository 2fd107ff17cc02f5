//! jq, as far as paths need it.
//!
//! jq is a language in which programs need not end, so only expressions that select places are
//! allowed: fields, indices, slices, iteration, `..`, `?`, `|`, `,`, `//`, `if`, comparisons and
//! the tests that `select` makes. They are read by jaq's parser and walked here, with a budget of
//! steps, over the value itself: what is selected is a place in it.

mod eval;
mod read;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use serde_json::Value;

pub(super) use self::eval::Budget;

/// Longer expressions are refused. With it, what the parser needs of stack is bounded.
const LONGEST: usize = 1024;
/// So is how deep brackets may nest.
const DEEPEST_BRACKETS: usize = 32;

/// The places that an expression selects, so that `del` could remove them.
pub(super) fn places<'v>(
    expression: &str,
    value: &'v Value,
    budget: &mut Budget,
) -> Result<Vec<&'v Value>, String> {
    let filter = read::filter(expression)?;
    eval::places(&filter, value, budget)
}

/// An expression that was understood.
#[derive(Clone, Debug, PartialEq)]
enum Filter {
    Identity,
    Recurse,
    Literal(Value),
    Path(Box<Filter>, Vec<(Part, Optional)>),
    Pipe(Box<Filter>, Box<Filter>),
    Comma(Box<Filter>, Box<Filter>),
    Alternative(Box<Filter>, Box<Filter>),
    And(Box<Filter>, Box<Filter>),
    Or(Box<Filter>, Box<Filter>),
    Compare(Box<Filter>, Comparison, Box<Filter>),
    If(Vec<(Filter, Filter)>, Box<Filter>),
    Try(Box<Filter>),
    Call(Function, Vec<Filter>),
}

#[derive(Clone, Debug, PartialEq)]
enum Part {
    Index(Filter),
    Slice(Option<Filter>, Option<Filter>),
    Each,
}

/// Whether a part that does not fit is passed over.
type Optional = bool;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
}

/// The functions there are, with how many arguments they take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Function {
    All,
    AllOf,
    Any,
    AnyOf,
    Contains,
    Empty,
    EndsWith,
    First,
    FirstOf,
    Has,
    In,
    Last,
    LastOf,
    Length,
    Not,
    OfType(&'static [&'static str]),
    Select,
    StartsWith,
    Type,
}

impl Function {
    fn named(name: &str, arguments: usize) -> Option<Self> {
        Some(match (name, arguments) {
            ("all", 0) => Self::All,
            ("all", 1) => Self::AllOf,
            ("any", 0) => Self::Any,
            ("any", 1) => Self::AnyOf,
            ("contains", 1) => Self::Contains,
            ("empty", 0) => Self::Empty,
            ("endswith", 1) => Self::EndsWith,
            ("first", 0) => Self::First,
            ("first", 1) => Self::FirstOf,
            ("has", 1) => Self::Has,
            ("IN", 1) => Self::In,
            ("last", 0) => Self::Last,
            ("last", 1) => Self::LastOf,
            ("length", 0) => Self::Length,
            ("not", 0) => Self::Not,
            ("arrays", 0) => Self::OfType(&["array"]),
            ("booleans", 0) => Self::OfType(&["boolean"]),
            ("iterables", 0) => Self::OfType(&["array", "object"]),
            ("nulls", 0) => Self::OfType(&["null"]),
            ("numbers", 0) => Self::OfType(&["number"]),
            ("objects", 0) => Self::OfType(&["object"]),
            ("scalars", 0) => Self::OfType(&["null", "boolean", "number", "string"]),
            ("strings", 0) => Self::OfType(&["string"]),
            ("values", 0) => Self::OfType(&["boolean", "number", "string", "array", "object"]),
            ("select", 1) => Self::Select,
            ("startswith", 1) => Self::StartsWith,
            ("type", 0) => Self::Type,
            _ => return None,
        })
    }
}
