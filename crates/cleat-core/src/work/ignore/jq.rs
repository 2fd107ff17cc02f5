//! jq, as far as paths need it.
//!
//! jq is a language in which programs need not end, so only expressions that select places are
//! allowed: fields, indices, slices, iteration, `..`, `?`, `|`, `,`, `//`, `if`, variables, comparisons,
//! arithmetic and the functions that tests need. They are read by jaq's parser and walked here, with a
//! budget of steps, over the value itself: what is selected is a place in it. jaq's own evaluation has
//! neither a budget nor a bound on its stack, so an expression could take the whole agent along.

mod eval;
mod read;
mod results;
#[cfg(test)]
mod tests;
mod values;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use jaq_core::ops::Math;
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
    Reckon(Box<Filter>, Math, Box<Filter>),
    List(Box<Filter>),
    /// Runs the second with each result of the first as one more variable.
    Bind(Box<Filter>, Box<Filter>),
    /// By its place among those that are bound where it stands.
    Variable(usize),
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
    Add,
    All,
    AllOf,
    Any,
    AnyOf,
    Contains,
    Empty,
    EndsWith,
    First,
    FirstOf,
    GetPath,
    Has,
    In,
    Index,
    Inside,
    IsEmpty,
    Join,
    Keys,
    Last,
    LastIndex,
    LastOf,
    Length,
    Limit,
    LowerCase,
    Map,
    Not,
    OfType(&'static [&'static str]),
    RecurseBy,
    Select,
    Split,
    StartsWith,
    Test,
    ToNumber,
    ToString,
    TrimEnd,
    TrimStart,
    Type,
    UpperCase,
}

impl Function {
    fn named(name: &str, arguments: usize) -> Option<Self> {
        Some(match (name, arguments) {
            ("add", 0) => Self::Add,
            ("all", 0) => Self::All,
            ("all", 1 | 2) => Self::AllOf,
            ("any", 0) => Self::Any,
            ("any", 1 | 2) => Self::AnyOf,
            ("ascii_downcase", 0) => Self::LowerCase,
            ("ascii_upcase", 0) => Self::UpperCase,
            ("contains", 1) => Self::Contains,
            ("empty", 0) => Self::Empty,
            ("endswith", 1) => Self::EndsWith,
            ("first", 0) => Self::First,
            ("first", 1) => Self::FirstOf,
            ("getpath", 1) => Self::GetPath,
            ("has", 1) => Self::Has,
            ("IN", 1) => Self::In,
            ("index", 1) => Self::Index,
            ("inside", 1) => Self::Inside,
            ("isempty", 1) => Self::IsEmpty,
            ("join", 1) => Self::Join,
            ("keys" | "keys_unsorted", 0) => Self::Keys,
            ("last", 0) => Self::Last,
            ("last", 1) => Self::LastOf,
            ("length", 0) => Self::Length,
            ("limit", 2) => Self::Limit,
            ("ltrimstr", 1) => Self::TrimStart,
            ("map", 1) => Self::Map,
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
            ("recurse", 1) => Self::RecurseBy,
            ("rindex", 1) => Self::LastIndex,
            ("rtrimstr", 1) => Self::TrimEnd,
            ("select", 1) => Self::Select,
            ("split", 1) => Self::Split,
            ("startswith", 1) => Self::StartsWith,
            ("test", 1 | 2) => Self::Test,
            ("tonumber", 0) => Self::ToNumber,
            ("tostring", 0) => Self::ToString,
            ("type", 0) => Self::Type,
            _ => return None,
        })
    }
}
