//! Whether Go could read an object into its struct, and what it would say if not.
//!
//! A type error in a built-in object is not a validation error but a bad request, before anything
//! else is looked at. Unknown fields are not this file's business.

use cleat_dialect::gotypes::{Shape, StructId, types};
use serde_json::Value;

use super::time;
use crate::gojson::json_type;
use crate::quantity::Quantity;

/// The first thing Go could not read, in the order of field names. The caller puts
/// `Deployment in version "v1" cannot be handled as a Deployment: ` before it.
pub(crate) fn unreadable(api_version: &str, kind: &str, object: &Value) -> Option<String> {
    let root = types().root(api_version, kind)?;
    let mut place = Place { names: Vec::new(), within: root };
    structure(root, object, &mut place)
}

/// Where in the document we are.
struct Place {
    names: Vec<&'static str>,
    within: StructId,
}

fn structure(id: StructId, value: &Value, place: &mut Place) -> Option<String> {
    let Value::Object(object) = value else { return None };
    for field in &types().get(id).fields {
        let Some(value) = object.get(field.name) else { continue };
        let outer = std::mem::replace(&mut place.within, id);
        place.names.push(field.name);
        let problem = check(&field.shape, value, place);
        place.names.pop();
        place.within = outer;
        if problem.is_some() {
            return problem;
        }
    }
    None
}

/// What the reader of a type with a JSON form of its own says of a value. It does not know where the
/// value stands.
pub(super) fn json_of_its_own(shape: &Shape, value: &Value) -> Option<String> {
    match (shape, value) {
        (Shape::Bytes, Value::String(text)) => bad_base64(text),
        (Shape::Quantity, value) => Quantity::from_json(value).err().map(str::to_owned),
        (Shape::Time | Shape::MicroTime, Value::String(text)) => moment(shape, text),
        (Shape::Time | Shape::MicroTime | Shape::Duration, other) if !other.is_string() => {
            Some(into_value(json_type(other), "string"))
        }
        (Shape::IntOrString, Value::Number(number)) => {
            let fits = number.as_i64().is_some_and(|number| i32::try_from(number).is_ok());
            (!fits).then(|| into_value(&format!("number {number}"), "int32"))
        }
        (Shape::IntOrString, other) if !other.is_string() => {
            Some(into_value(json_type(other), "int32"))
        }
        _ => None,
    }
}

fn into_value(found: &str, wanted: &str) -> String {
    format!("json: cannot unmarshal {found} into Go value of type {wanted}")
}

fn check(shape: &Shape, value: &Value, place: &mut Place) -> Option<String> {
    if value.is_null() {
        return None;
    }
    match (shape, value) {
        (Shape::Pointer(inner), value) => check(inner, value, place),
        (Shape::Struct(id), Value::Object(_)) => structure(*id, value, place),
        (Shape::List(inner), Value::Array(items)) => {
            items.iter().find_map(|item| check(inner, item, place))
        }
        (Shape::Map(inner), Value::Object(map)) => {
            map.values().find_map(|item| check(inner, item, place))
        }
        (Shape::String(_) | Shape::Duration, Value::String(_))
        | (Shape::Boolean, Value::Bool(_))
        | (Shape::Float, Value::Number(_))
        | (Shape::Any, _) => None,
        // `2.0` is no whole number to Go's decoder.
        (Shape::Int32(_), Value::Number(number)) => {
            let fits = number.as_i64().is_some_and(|number| i32::try_from(number).is_ok());
            (!fits).then(|| mismatch(shape, &format!("number {number}"), place))
        }
        (Shape::Int64(_), Value::Number(number)) => {
            number.as_i64().is_none().then(|| mismatch(shape, &format!("number {number}"), place))
        }
        (Shape::IntOrString, Value::String(_)) => None,
        (Shape::IntOrString, Value::Number(number)) => {
            let fits = number.as_i64().is_some_and(|number| i32::try_from(number).is_ok());
            (!fits).then(|| mismatch(&Shape::Int32(None), &format!("number {number}"), place))
        }
        (Shape::IntOrString, other) => Some(mismatch(&Shape::Int32(None), json_type(other), place)),
        (Shape::Quantity | Shape::Time | Shape::MicroTime, value)
        | (Shape::Bytes, value @ Value::String(_)) => json_of_its_own(shape, value),
        (shape, other) => Some(mismatch(shape, json_type(other), place)),
    }
}

fn mismatch(shape: &Shape, found: &str, place: &Place) -> String {
    let owner = types().get(place.within).name;
    let owner = owner.rsplit('.').next().unwrap_or(owner);
    let path = place.names.join(".");
    let wanted = go_name(shape);
    format!("json: cannot unmarshal {found} into Go struct field {owner}.{path} of type {wanted}")
}

pub(super) fn go_name(shape: &Shape) -> String {
    match shape {
        Shape::String(name) => name.unwrap_or("string").to_owned(),
        Shape::Int32(name) => name.unwrap_or("int32").to_owned(),
        Shape::Int64(name) => name.unwrap_or("int64").to_owned(),
        Shape::Float => "float64".to_owned(),
        Shape::Boolean => "bool".to_owned(),
        Shape::Bytes => "[]uint8".to_owned(),
        Shape::Struct(id) => {
            let name = types().get(*id).name;
            name.rsplit('/').next().unwrap_or(name).to_owned()
        }
        Shape::List(inner) => format!("[]{}", go_name(inner)),
        Shape::Map(inner) => format!("map[string]{}", go_name(inner)),
        Shape::Pointer(inner) => go_name(inner),
        _ => "string".to_owned(),
    }
}

/// Microseconds must be there, all six digits of them.
fn moment(shape: &Shape, text: &str) -> Option<String> {
    let micros = matches!(shape, Shape::MicroTime);
    let layout = match micros {
        true => "2006-01-02T15:04:05.000000Z07:00",
        false => "2006-01-02T15:04:05Z07:00",
    };
    let fraction = text.get(19..).unwrap_or("");
    let six = fraction
        .strip_prefix('.')
        .is_some_and(|digits| digits.bytes().take_while(u8::is_ascii_digit).count() == 6);
    let (rest, wanted) = match time::parse(text) {
        Some(_) if !micros || six => return None,
        Some(_) => (fraction, ".000000"),
        None => (text, "2006"),
    };
    let (text, rest) = (crate::quote::quoted(text), crate::quote::quoted(rest));
    Some(format!("parsing time {text} as \"{layout}\": cannot parse {rest} as \"{wanted}\""))
}

/// Go counts up to the byte it could not use.
fn bad_base64(text: &str) -> Option<String> {
    use base64::{DecodeError, Engine, engine::general_purpose::STANDARD};
    let clean: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    let at = match STANDARD.decode(clean.as_bytes()) {
        Ok(_) => return None,
        Err(DecodeError::InvalidByte(at, _) | DecodeError::InvalidLastSymbol(at, _)) => at,
        Err(DecodeError::InvalidLength(length)) => length / 4 * 4,
        Err(DecodeError::InvalidPadding) => clean.trim_end_matches('=').len(),
    };
    Some(format!("illegal base64 data at input byte {at}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn common_type_errors_read_like_gos() {
        for (kind, object, expected) in [
            (
                "Deployment",
                json!({ "spec": { "replicas": "3" } }),
                "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
            ),
            (
                "Deployment",
                json!({ "spec": { "template": { "spec": { "containers": [{ "env": [{ "name": "a", "value": 5 }] }] } } } }),
                "json: cannot unmarshal number into Go struct field EnvVar.spec.template.spec.containers.env.value of type string",
            ),
            (
                "Deployment",
                json!({ "spec": [] }),
                "json: cannot unmarshal array into Go struct field Deployment.spec of type v1.DeploymentSpec",
            ),
            (
                "Deployment",
                json!({ "spec": { "template": { "spec": { "containers": { "a": 1 } } } } }),
                "json: cannot unmarshal object into Go struct field PodSpec.spec.template.spec.containers of type []v1.Container",
            ),
            (
                "Deployment",
                json!({ "spec": { "template": { "spec": { "containers": [{ "resources": { "limits": { "cpu": "a lot" } } }] } } } }),
                "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            ),
            (
                "Deployment",
                json!({ "spec": { "replicas": 3000000000u32 } }),
                "json: cannot unmarshal number 3000000000 into Go struct field DeploymentSpec.spec.replicas of type int32",
            ),
            (
                "Deployment",
                json!({ "spec": { "replicas": 2.0 } }),
                "json: cannot unmarshal number 2.0 into Go struct field DeploymentSpec.spec.replicas of type int32",
            ),
            (
                "Deployment",
                json!({ "metadata": { "labels": { "a": true } } }),
                "json: cannot unmarshal bool into Go struct field ObjectMeta.metadata.labels of type string",
            ),
        ] {
            assert_eq!(unreadable("apps/v1", kind, &object).as_deref(), Some(expected));
        }
        let secret = json!({ "data": { "a": "not base64" } });
        assert_eq!(
            unreadable("v1", "Secret", &secret).as_deref(),
            Some("illegal base64 data at input byte 3")
        );
    }

    #[test]
    fn what_go_reads_is_left_alone() {
        let object = json!({
            "metadata": { "name": "a", "labels": null },
            "spec": { "replicas": 2, "minReadySeconds": null,
                "strategy": { "rollingUpdate": { "maxSurge": "25%", "maxUnavailable": 1 } } }
        });
        assert_eq!(unreadable("apps/v1", "Deployment", &object), None);
        assert_eq!(unreadable("example.com/v1", "Widget", &json!({ "spec": 1 })), None);
    }
}
