//! Taking fields out of an object.

use serde_json::Value;

use super::identify;
use crate::apply::fields::FieldSet;
use crate::apply::shape::{Form, ListForm, MapForm, Shape};

/// Removes every member of `doomed`. A map or list that loses all it had becomes null.
pub(in crate::apply) fn remove(value: &mut Value, doomed: &FieldSet, shape: Shape<'_>) {
    match (shape.form(Some(value)), &mut *value) {
        (Form::Scalar(_), _) => {}
        (Form::Map(form), Value::Object(map)) if !form.atomic => {
            remove_fields(map, doomed, form);
            if map.is_empty() {
                *value = Value::Null;
            }
        }
        (Form::List(form), Value::Array(list)) if !form.is_atomic() => {
            remove_elements(list, doomed, form);
            if list.is_empty() {
                *value = Value::Null;
            }
        }
        _ => *value = Value::Null,
    }
}

fn remove_fields(map: &mut serde_json::Map<String, Value>, doomed: &FieldSet, form: MapForm<'_>) {
    map.retain(|name, value| {
        let Some(node) = doomed.get_field(name) else { return true };
        if node.member {
            return false;
        }
        remove(value, &node.children, form.field_or_other(name).unwrap_or(Shape::Opaque));
        true
    });
}

fn remove_elements(list: &mut Vec<Value>, doomed: &FieldSet, form: ListForm<'_>) {
    list.retain_mut(|item| {
        let Ok(element) = identify(item, form) else { return true };
        let Some(node) = doomed.get(&element) else { return true };
        if node.member {
            return false;
        }
        remove(item, &node.children, form.element);
        true
    });
}
