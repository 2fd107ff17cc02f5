//! The scalars of Go's structs, and the types that parse themselves: times, quantities, numbers or
//! strings, base64.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use jiff::{Timestamp, tz::TimeZone};
use serde_json::{Number, Value};

use super::last_segment;
use crate::{
    gojson::json_type,
    quantity::{self, Quantity},
    quote::quoted,
    schema::{Node, Type},
};

/// A type without parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaf {
    String,
    Boolean,
    Int32,
    Int64,
    Float,
    Bytes,
    Time,
    MicroTime,
    Quantity,
    IntOrString,
}

/// Why a value is no such leaf.
pub(super) enum Mismatch {
    /// The JSON type is wrong.
    Type { found: String, go_type: &'static str },
    /// The decoder notes this and carries on.
    Saved(String),
    /// The type's own parser failed, which ends decoding.
    Parser(String),
}

impl Leaf {
    pub(super) fn of(node: &Node) -> Option<Self> {
        match node.name.as_deref().map(last_segment) {
            Some("Quantity") => return Some(Self::Quantity),
            Some("Time") => return Some(Self::Time),
            Some("MicroTime") => return Some(Self::MicroTime),
            _ if node.int_or_string => return Some(Self::IntOrString),
            _ => {}
        }
        Some(match (node.kind?, node.format.as_deref()) {
            (Type::String, Some("byte")) => Self::Bytes,
            (Type::String, Some("date-time")) => Self::Time,
            (Type::String, _) => Self::String,
            (Type::Boolean, _) => Self::Boolean,
            (Type::Integer, Some("int32")) => Self::Int32,
            (Type::Integer, _) => Self::Int64,
            (Type::Number, _) => Self::Float,
            (Type::Object | Type::Array, _) => return None,
        })
    }

    pub(super) fn go_type(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Boolean => "bool",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::Float => "float64",
            Self::Bytes => "[]uint8",
            Self::Time => "v1.Time",
            Self::MicroTime => "v1.MicroTime",
            Self::Quantity => "resource.Quantity",
            Self::IntOrString => "intstr.IntOrString",
        }
    }

    pub(super) fn zero(self) -> Value {
        match self {
            Self::String | Self::Bytes => "".into(),
            Self::Boolean => false.into(),
            Self::Int32 | Self::Int64 | Self::Float | Self::IntOrString => 0.into(),
            Self::Time | Self::MicroTime => Value::Null,
            Self::Quantity => "0".into(),
        }
    }

    /// Checks a value and puts it into the form Go would write.
    pub(super) fn read(self, value: &mut Value) -> Result<(), Mismatch> {
        let mismatch =
            |value: &Value, go_type| Mismatch::Type { found: json_type(value).to_owned(), go_type };
        match (self, &*value) {
            (_, Value::Null)
            | (Self::String, Value::String(_))
            | (Self::Boolean, Value::Bool(_))
            | (Self::Float, Value::Number(_))
            | (Self::IntOrString, Value::String(_)) => Ok(()),
            (Self::Int32 | Self::IntOrString, Value::Number(number)) => {
                let fits = number.as_i64().is_some_and(|n| i32::try_from(n).is_ok());
                if fits { Ok(()) } else { Err(number_mismatch(number, "int32")) }
            }
            (Self::Int64, Value::Number(number)) => {
                if number.is_i64() {
                    Ok(())
                } else {
                    Err(number_mismatch(number, "int64"))
                }
            }
            (Self::Bytes, Value::String(text)) => {
                *value = base64(text)?.into();
                Ok(())
            }
            (Self::Time | Self::MicroTime, Value::String(text)) => {
                *value = time(text, self).map_err(Mismatch::Parser)?.into();
                Ok(())
            }
            (Self::Quantity, Value::String(_) | Value::Number(_)) => {
                let text = match &*value {
                    Value::String(text) => text.trim().to_owned(),
                    other => other.to_string(),
                };
                let quantity = Quantity::parse(&text);
                let quantity = quantity.map_err(|why| Mismatch::Parser(why.to_owned()))?;
                *value = quantity.to_string().into();
                Ok(())
            }
            (Self::Quantity, _) => Err(Mismatch::Parser(quantity::MALFORMED.to_owned())),
            (Self::IntOrString, other) => Err(mismatch(other, "int32")),
            (Self::Time | Self::MicroTime, other) => Err(mismatch(other, "string")),
            (leaf, other) => Err(mismatch(other, leaf.go_type())),
        }
    }
}

fn number_mismatch(number: &Number, go_type: &'static str) -> Mismatch {
    Mismatch::Type { found: format!("number {number}"), go_type }
}

/// Line breaks inside are allowed and dropped.
fn base64(text: &str) -> Result<String, Mismatch> {
    let clean: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    match STANDARD.decode(&clean) {
        Ok(bytes) => Ok(STANDARD.encode(bytes)),
        Err(error) => {
            let at = match error {
                base64::DecodeError::InvalidByte(at, _) => at,
                _ => clean.len() - clean.len() % 4,
            };
            Err(Mismatch::Saved(format!("illegal base64 data at input byte {at}")))
        }
    }
}

/// The instant in UTC, to the second or microsecond.
fn time(text: &str, leaf: Leaf) -> Result<String, String> {
    let (layout, written) = match leaf {
        Leaf::MicroTime => ("2006-01-02T15:04:05.000000Z07:00", "%Y-%m-%dT%H:%M:%S%.6fZ"),
        _ => ("2006-01-02T15:04:05Z07:00", "%Y-%m-%dT%H:%M:%SZ"),
    };
    let shaped = text.len() >= 20
        && text.as_bytes().get(10) == Some(&b'T')
        && text.ends_with(|c: char| c == 'Z' || c.is_ascii_digit());
    let parsed: Option<Timestamp> = shaped.then(|| text.parse().ok()).flatten();
    let Some(parsed) = parsed else {
        let shown = quoted(text);
        let (rest, part) = first_bad_part(text);
        return Err(format!(
            "parsing time {shown} as {}: cannot parse {} as {}",
            quoted(layout),
            quoted(rest),
            quoted(part)
        ));
    };
    Ok(parsed.to_zoned(TimeZone::UTC).strftime(written).to_string())
}

/// Where Go's parser would stop, and what it expected there.
fn first_bad_part(text: &str) -> (&str, &'static str) {
    let parts: [(usize, &'static str); 11] = [
        (4, "2006"),
        (0, "-"),
        (2, "01"),
        (0, "-"),
        (2, "02"),
        (0, "T"),
        (2, "15"),
        (0, ":"),
        (2, "04"),
        (0, ":"),
        (2, "05"),
    ];
    let mut rest = text;
    for (digits, part) in parts {
        let good = match digits {
            0 => rest.starts_with(part),
            digits => rest.get(..digits).is_some_and(|t| t.bytes().all(|b| b.is_ascii_digit())),
        };
        if !good {
            return (rest, part);
        }
        rest = rest.get(digits.max(1)..).unwrap_or_default();
    }
    (rest, "Z07:00")
}
