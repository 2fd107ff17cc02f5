//! The form in which kube-apiserver gives a built-in object back: what reading it into Go structs
//! and writing it out again leaves.
//!
//! Unknown fields are left alone; pruning them is the schema's business. So are values of the wrong
//! type: see `decode`.

use cleat_dialect::gotypes::{Field, Shape, StructId, WhenEmpty, types};
use serde_json::{Map, Value};

use super::time;
use crate::quantity::Quantity;

/// Reads an object as Go would: nulls and empty values that would not be written again go, and
/// quantities and times get their canonical spelling.
pub(crate) fn tidy(id: StructId, object: &mut Map<String, Value>) {
    let shape = types().get(id);
    // Custom resource definitions are stored as JSON, everything else as protobuf, which cannot tell
    // an empty list or map from none.
    let keeps_empty = shape.name.starts_with("apiextensions/");
    for field in &shape.fields {
        let Some(value) = object.get_mut(field.name) else { continue };
        tidy_value(&field.shape, value);
        if vanishes(field, value, keeps_empty) {
            object.remove(field.name);
        }
    }
}

fn tidy_value(shape: &Shape, value: &mut Value) {
    match (shape, &mut *value) {
        (Shape::Struct(id), Value::Object(map)) => tidy(*id, map),
        (Shape::Pointer(inner), _) => tidy_value(inner, value),
        (Shape::List(inner), Value::Array(items)) => {
            items.iter_mut().for_each(|item| tidy_element(inner, item));
        }
        (Shape::Map(inner), Value::Object(map)) => {
            map.values_mut().for_each(|item| tidy_element(inner, item));
            if matches!(**inner, Shape::Quantity) {
                map.values_mut().for_each(round_resource);
            }
        }
        (Shape::Quantity, Value::String(_) | Value::Number(_)) => {
            if let Ok(quantity) = Quantity::from_json(value) {
                *value = quantity.to_string().into();
            }
        }
        (Shape::Time, Value::String(text)) => {
            if let Some(written) = time::canonical_seconds(text) {
                *text = written;
            }
        }
        (Shape::MicroTime, Value::String(text)) => {
            if let Some(written) = time::canonical_micros(text) {
                *text = written;
            }
        }
        _ => {}
    }
}

/// Elements of lists and maps are never left out: null becomes the type's zero value.
fn tidy_element(shape: &Shape, value: &mut Value) {
    if value.is_null() {
        *value = zero(shape);
    }
    tidy_value(shape, value);
}

fn round_resource(value: &mut Value) {
    if let Ok(quantity) = Quantity::from_json(value) {
        *value = quantity.rounded_up_to_milli().to_string().into();
    }
}

/// Whether the field is gone after reading: it may come back in its empty form.
fn vanishes(field: &Field, value: &Value, keeps_empty: bool) -> bool {
    if value.is_null() {
        return true;
    }
    if field.when_empty == WhenEmpty::Write {
        return !keeps_empty
            && match (&field.shape, value) {
                (Shape::List(_), Value::Array(items)) => items.is_empty(),
                (Shape::Map(_), Value::Object(map)) => map.is_empty(),
                _ => false,
            };
    }
    match (&field.shape, value) {
        (Shape::Pointer(_), _) => false,
        (_, Value::String(text)) => text.is_empty(),
        (_, Value::Bool(flag)) => !flag,
        (Shape::Int32(_) | Shape::Int64(_) | Shape::Float, Value::Number(number)) => {
            number.as_f64() == Some(0.0)
        }
        (Shape::List(_), Value::Array(items)) => items.is_empty(),
        (Shape::Map(_), Value::Object(map)) => map.is_empty(),
        _ => false,
    }
}

/// Writes an object as Go would: fields that are always written appear. `visit` sees each struct
/// before its fields are completed, parents before children, and may set defaults.
pub(crate) fn complete(
    id: StructId,
    object: &mut Map<String, Value>,
    visit: &mut impl FnMut(&str, &mut Map<String, Value>),
) {
    let shape = types().get(id);
    visit(shape.name, object);
    for field in &shape.fields {
        if !object.contains_key(field.name) {
            if !always_written(field) {
                continue;
            }
            object.insert(field.name.to_owned(), zero(&field.shape));
        }
        if let Some(value) = object.get_mut(field.name) {
            complete_value(&field.shape, value, visit);
        }
    }
}

fn complete_value(
    shape: &Shape,
    value: &mut Value,
    visit: &mut impl FnMut(&str, &mut Map<String, Value>),
) {
    match (shape, value) {
        (Shape::Struct(id), Value::Object(map)) => complete(*id, map, visit),
        (Shape::Pointer(inner), value) => complete_value(inner, value, visit),
        (Shape::List(inner), Value::Array(items)) => {
            items.iter_mut().for_each(|item| complete_value(inner, item, visit));
        }
        (Shape::Map(inner), Value::Object(map)) => {
            map.values_mut().for_each(|item| complete_value(inner, item, visit));
        }
        _ => {}
    }
}

fn always_written(field: &Field) -> bool {
    match field.when_empty {
        WhenEmpty::Write => true,
        WhenEmpty::OmitStruct => false,
        WhenEmpty::Omit => matches!(
            field.shape,
            Shape::Struct(_)
                | Shape::Time
                | Shape::MicroTime
                | Shape::Quantity
                | Shape::IntOrString
                | Shape::Duration
        ),
    }
}

fn zero(shape: &Shape) -> Value {
    match shape {
        Shape::String(_) => "".into(),
        Shape::Int32(_) | Shape::Int64(_) | Shape::Float | Shape::IntOrString => 0.into(),
        Shape::Boolean => false.into(),
        Shape::Quantity => "0".into(),
        Shape::Duration => "0s".into(),
        Shape::Struct(_) => Value::Object(Map::new()),
        Shape::Bytes
        | Shape::Time
        | Shape::MicroTime
        | Shape::Any
        | Shape::List(_)
        | Shape::Map(_)
        | Shape::Pointer(_) => Value::Null,
    }
}
