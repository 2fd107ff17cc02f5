//! What a strategic merge patch made, put back into its struct.
//!
//! kube-apiserver does not write such an object as text to read it again: a converter of its own
//! goes from maps to structs. It words its refusals differently from the decoder ([`super::decode`]),
//! and lets numbers through which that one refuses.

use cleat_dialect::gotypes::{Shape, StructId, types};
use serde_json::Value;

use super::decode::{go_name, json_of_its_own};

/// Makes of numbers what the struct can hold.
///
/// Errors: what the converter says of the first value, in the order of declaration, that it cannot
/// put where it belongs.
pub(crate) fn restore(api_version: &str, kind: &str, object: &mut Value) -> Result<(), String> {
    match types().root(api_version, kind) {
        Some(root) => structure(root, object),
        None => Ok(()),
    }
}

fn structure(id: StructId, value: &mut Value) -> Result<(), String> {
    let Value::Object(object) = value else {
        return Err(format!("cannot restore struct from: {}", go_kind(value)));
    };
    for field in &types().get(id).fields {
        if let Some(value) = object.get_mut(field.name) {
            convert(&field.shape, value)?;
        }
    }
    Ok(())
}

fn convert(shape: &Shape, value: &mut Value) -> Result<(), String> {
    if value.is_null() {
        return Ok(());
    }
    match shape {
        Shape::Pointer(inner) => convert(inner, value),
        Shape::Struct(id) => structure(*id, value),
        Shape::List(inner) => match value {
            Value::Array(items) => items.iter_mut().try_for_each(|item| convert(inner, item)),
            other => Err(format!("cannot restore slice from {}", go_kind(other))),
        },
        Shape::Map(inner) => match value {
            Value::Object(map) => map.values_mut().try_for_each(|item| convert(inner, item)),
            other => Err(format!("cannot restore map from {}", go_kind(other))),
        },
        Shape::Bytes => match value {
            Value::String(_) => match json_of_its_own(shape, value) {
                Some(why) => Err(format!("error decoding from json: {why}")),
                None => Ok(()),
            },
            Value::Array(_) => Ok(()),
            other => Err(format!("cannot restore slice from {}", go_kind(other))),
        },
        Shape::String(_) => match value {
            Value::String(_) => Ok(()),
            // Go would make a letter of a whole number; other numbers are no text in any sense.
            other if go_kind(other) == "int64" => Err(inconvertible(other, shape)),
            _ => Err("unrecognized type: string".to_owned()),
        },
        Shape::Boolean => match value {
            Value::Bool(_) => Ok(()),
            _ => Err("unrecognized type: bool".to_owned()),
        },
        Shape::Float => match value {
            Value::Number(_) => Ok(()),
            _ => Err("unrecognized type: float64".to_owned()),
        },
        Shape::Int32(_) => match whole(value) {
            // Go takes the lower half of a number that is too large.
            Some(Whole::Number(number)) => {
                #[expect(clippy::cast_possible_truncation, reason = "as Go does")]
                let kept = number as i32;
                *value = kept.into();
                Ok(())
            }
            Some(Whole::Broken) => Err(inconvertible(value, shape)),
            None => Err("unrecognized type: int32".to_owned()),
        },
        Shape::Int64(_) => match whole(value) {
            Some(Whole::Number(number)) => {
                *value = number.into();
                Ok(())
            }
            Some(Whole::Broken) => Err(inconvertible(value, shape)),
            None => Err("unrecognized type: int64".to_owned()),
        },
        Shape::Quantity | Shape::Time | Shape::MicroTime | Shape::Duration | Shape::IntOrString => {
            json_of_its_own(shape, value).map_or(Ok(()), Err)
        }
        Shape::Any => Ok(()),
    }
}

fn inconvertible(value: &Value, shape: &Shape) -> String {
    format!("cannot convert {} to {}", go_kind(value), go_name(shape))
}

enum Whole {
    Number(i64),
    /// A number with a fraction.
    Broken,
}

fn whole(value: &Value) -> Option<Whole> {
    let Value::Number(number) = value else { return None };
    if let Some(number) = number.as_i64() {
        return Some(Whole::Number(number));
    }
    let float = number.as_f64()?;
    #[expect(clippy::cast_possible_truncation, reason = "checked to be whole")]
    Some(if float.fract() == 0.0 { Whole::Number(float as i64) } else { Whole::Broken })
}

/// What Go calls a value that came as JSON.
fn go_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "invalid",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn refusals_are_the_converters() {
        for (spec, expected) in [
            (json!({ "replicas": "many" }), "unrecognized type: int32"),
            (json!({ "replicas": 1.5 }), "cannot convert float64 to int32"),
            (json!({ "replicas": [] }), "unrecognized type: int32"),
            (json!({ "serviceName": 5 }), "cannot convert int64 to string"),
            (json!({ "serviceName": 5.5 }), "unrecognized type: string"),
            (
                json!({ "podManagementPolicy": 5 }),
                "cannot convert int64 to v1.PodManagementPolicyType",
            ),
            (json!({ "selector": "a" }), "cannot restore struct from: string"),
            (json!({ "selector": { "matchLabels": [] } }), "cannot restore map from slice"),
            (
                json!({ "template": { "spec": { "containers": { "name": "x" } } } }),
                "cannot restore slice from map",
            ),
            (
                json!({ "template": { "metadata": { "creationTimestamp": 5 } } }),
                "json: cannot unmarshal number into Go value of type string",
            ),
        ] {
            let mut object = json!({ "spec": spec });
            let found = restore("apps/v1", "StatefulSet", &mut object).unwrap_err();
            assert_eq!(found, expected, "{object}");
        }
    }

    #[test]
    fn numbers_are_cut_to_size() {
        let mut object =
            json!({ "spec": { "replicas": 4_294_967_297_i64, "minReadySeconds": 2.0 } });
        restore("apps/v1", "StatefulSet", &mut object).unwrap();
        assert_eq!(object, json!({ "spec": { "replicas": 1, "minReadySeconds": 2 } }));
    }
}
