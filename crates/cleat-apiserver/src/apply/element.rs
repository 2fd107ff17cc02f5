//! One step of a path through an object, as managedFields writes it: `f:spec`, `k:{"name":"x"}`,
//! `v:"x"`, `i:0`.

use std::cmp::Ordering;
use std::fmt::{self, Write as _};

use serde_json::{Map, Value};

use crate::gojson::escape_html;
use crate::quote;

/// A step into a map or a list. Ordered as upstream orders them: fields, keys, values, indices.
#[derive(Clone, Debug)]
pub(crate) enum Element {
    /// A member of an object.
    Field(Box<str>),
    /// An element of a list, known by some of its fields, sorted by name.
    Key(Box<[(Box<str>, Value)]>),
    /// An element of a set, known by itself.
    Item(Value),
    /// An element of any other list.
    Index(i64),
}

/// Why a key of fieldsV1 is not a path element.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// Of a kind that a later version may know: to be left out.
    Unknown,
    Malformed,
}

impl Element {
    pub(super) fn field(name: &str) -> Self {
        Self::Field(name.into())
    }

    /// Reads `f:name` and the like.
    pub(super) fn parse(text: &str) -> Result<Self, Unreadable> {
        let mut chars = text.chars();
        let (Some(kind), Some(':')) = (chars.next(), chars.next()) else {
            return Err(Unreadable::Malformed);
        };
        let rest = chars.as_str();
        match kind {
            'f' => Ok(Self::field(rest)),
            'v' => serde_json::from_str(rest).map(Self::Item).map_err(|_| Unreadable::Malformed),
            'k' => {
                let fields: Map<String, Value> =
                    serde_json::from_str(rest).map_err(|_| Unreadable::Malformed)?;
                // The map is sorted by name already.
                Ok(Self::Key(
                    fields.into_iter().map(|(name, value)| (name.into(), value)).collect(),
                ))
            }
            'i' => rest.parse().map(Self::Index).map_err(|_| Unreadable::Malformed),
            _ => Err(Unreadable::Unknown),
        }
    }

    /// `f:name` and the like.
    pub(super) fn encode(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Key(fields) => {
                let mut out = String::from("k:{");
                for (index, (name, value)) in fields.iter().enumerate() {
                    let comma = if index > 0 { "," } else { "" };
                    let name = Value::from(&**name);
                    // Writing to a String cannot fail.
                    let _ = write!(out, "{comma}{name}:{}", encoded(value));
                }
                out.push('}');
                out
            }
            Self::Item(value) => format!("v:{}", encoded(value)),
            Self::Index(index) => format!("i:{index}"),
        }
    }
}

/// A value inside a path element, written as Go writes it.
fn encoded(value: &Value) -> String {
    match value {
        Value::Number(number) => {
            let text = number.to_string();
            text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
        }
        other => escape_html(&other.to_string()),
    }
}

/// How a conflict names it: `.spec`, `[name="x"]`, `[="x"]`, `[0]`.
impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(fields) => {
                f.write_str("[")?;
                for (index, (name, value)) in fields.iter().enumerate() {
                    write!(f, "{}{name}={}", if index > 0 { "," } else { "" }, shown(value))?;
                }
                f.write_str("]")
            }
            Self::Item(value) => write!(f, "[={}]", shown(value)),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::String(text) => quote::quoted(text),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(","))
        }
        Value::Object(map) => {
            map.iter().map(|(key, value)| format!("{key}={}", shown(value))).collect()
        }
        scalar => quote::plain(scalar),
    }
}

impl Ord for Element {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(left), Self::Field(right)) => left.cmp(right),
            (Self::Key(left), Self::Key(right)) => {
                let pairs = left.iter().zip(right.iter());
                let differing = pairs
                    .map(|((left, a), (right, b))| left.cmp(right).then_with(|| compare(a, b)))
                    .find(|order| order.is_ne());
                differing.unwrap_or_else(|| left.len().cmp(&right.len()))
            }
            (Self::Item(left), Self::Item(right)) => compare(left, right),
            (Self::Index(left), Self::Index(right)) => left.cmp(right),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl Element {
    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Item(_) => 2,
            Self::Index(_) => 3,
        }
    }
}

impl PartialOrd for Element {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Element {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Element {}

/// Whether two values are the same, whole floats counting as integers.
pub(super) fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(_), Value::Number(_)) => compare(left, right).is_eq(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(l, r)| equal(l, r))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().zip(right).all(|((l, a), (r, b))| l == r && equal(a, b))
        }
        _ => left == right,
    }
}

/// A total order over values of all types.
fn compare(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Number(l), Value::Number(r)) => match (l.as_i64(), r.as_i64()) {
            (Some(l), Some(r)) => l.cmp(&r),
            _ => match (l.as_f64(), r.as_f64()) {
                (Some(a), Some(b)) => a.total_cmp(&b),
                _ => l.to_string().cmp(&r.to_string()),
            },
        },
        (Value::String(l), Value::String(r)) => l.cmp(r),
        (Value::Bool(l), Value::Bool(r)) => l.cmp(r),
        (Value::Array(l), Value::Array(r)) => {
            let differing = l.iter().zip(r).map(|(l, r)| compare(l, r)).find(|order| order.is_ne());
            differing.unwrap_or_else(|| l.len().cmp(&r.len()))
        }
        (Value::Object(l), Value::Object(r)) => {
            let pairs = l.iter().zip(r);
            let differing = pairs
                .map(|((l, a), (r, b))| l.cmp(r).then_with(|| compare(a, b)))
                .find(|order| order.is_ne());
            differing.unwrap_or_else(|| l.len().cmp(&r.len()))
        }
        _ => rank(left).cmp(&rank(right)),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}
