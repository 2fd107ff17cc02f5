//! Messages whose JSON is not an object with the same fields.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Special {
    Quantity,
    Time,
    MicroTime,
    IntOrString,
    /// Bytes that are JSON themselves.
    Raw,
    /// A list in a message of its own, because protobuf has no map of lists.
    List,
    SchemaOrArray,
    SchemaOrBool,
    SchemaOrStrings,
}

impl Special {
    pub(super) fn named(message: &str) -> Option<Self> {
        Some(match message.rsplit('.').next()? {
            "Quantity" => Self::Quantity,
            "Time" => Self::Time,
            "MicroTime" => Self::MicroTime,
            "IntOrString" => Self::IntOrString,
            "RawExtension" | "FieldsV1" | "JSON" => Self::Raw,
            "ExtraValue" | "Verbs" => Self::List,
            "JSONSchemaPropsOrArray" => Self::SchemaOrArray,
            "JSONSchemaPropsOrBool" => Self::SchemaOrBool,
            "JSONSchemaPropsOrStringArray" => Self::SchemaOrStrings,
            _ => return None,
        })
    }

    /// `fields` are those on the wire, under protobuf's names.
    pub(super) fn json(self, mut fields: Map<String, Value>) -> Result<Value, String> {
        let mut take = |name: &str| fields.remove(name).unwrap_or(Value::Null);
        Ok(match self {
            Self::Quantity => match take("string") {
                Value::String(text) if !text.is_empty() => Value::String(text),
                _ => Value::from("0"),
            },
            Self::Time | Self::MicroTime => {
                let seconds = take("seconds").as_i64().unwrap_or(0);
                let nanos = take("nanos").as_i64().unwrap_or(0);
                time(seconds, nanos, self == Self::MicroTime)?
            }
            Self::IntOrString => match take("type").as_i64() {
                None | Some(0) => match take("intVal") {
                    Value::Null => Value::from(0),
                    number => number,
                },
                Some(1) => match take("strVal") {
                    Value::Null => Value::from(""),
                    text => text,
                },
                Some(_) => return Err("impossible IntOrString.Type".to_owned()),
            },
            Self::Raw => raw(take("-").as_str())?,
            Self::List => take("items"),
            Self::SchemaOrArray => match take("jSONSchemas") {
                Value::Array(schemas) if !schemas.is_empty() => Value::Array(schemas),
                _ => take("schema"),
            },
            Self::SchemaOrBool => match take("schema") {
                Value::Null => Value::Bool(take("allows") == Value::Bool(true)),
                schema => schema,
            },
            Self::SchemaOrStrings => match take("property") {
                Value::Array(names) if !names.is_empty() => Value::Array(names),
                _ => take("schema"),
            },
        })
    }
}

/// The zero time, which protobuf cannot tell from the beginning of 1970, is `null`.
fn time(seconds: i64, nanos: i64, micro: bool) -> Result<Value, String> {
    if seconds == 0 && nanos == 0 {
        return Ok(Value::Null);
    }
    let out_of_range = || "Time.MarshalJSON: year outside of range [0,9999]".to_owned();
    let nanos = i32::try_from(nanos).map_err(|_| out_of_range())?;
    let time = Timestamp::new(seconds, nanos).map_err(|_| out_of_range())?;
    let format = if micro { "%Y-%m-%dT%H:%M:%S.%6fZ" } else { "%Y-%m-%dT%H:%M:%SZ" };
    Ok(Value::String(time.strftime(format).to_string()))
}

fn raw(encoded: Option<&str>) -> Result<Value, String> {
    let bytes = encoded.and_then(|encoded| STANDARD.decode(encoded).ok()).unwrap_or_default();
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_slice(&bytes).map_err(|error| format!("json: {error}"))
}
