//! Whether a configuration is of its type, in upstream's words.

use std::collections::BTreeSet;

use serde_json::Value;

use super::identify;
use crate::apply::element::Element;
use crate::apply::shape::{Form, ListForm, MapForm, ScalarForm, Shape};
use crate::quote;

/// More complaints than this help nobody.
const MOST: usize = 100;

/// Everything that is wrong with `value`, as one text; `None` if nothing is.
///
/// Elements of lists must be distinguishable here, which they need not be in a live object.
pub(in crate::apply) fn check(value: &Value, shape: Shape<'_>) -> Option<String> {
    let mut found = Vec::new();
    walk(value, shape, &mut String::new(), &mut found);
    match found.as_slice() {
        [] => None,
        [only] => Some(only.clone()),
        many => Some(format!("errors:\n  {}", many.join("\n  "))),
    }
}

fn walk(value: &Value, shape: Shape<'_>, path: &mut String, found: &mut Vec<String>) {
    match (shape.form(Some(value)), value) {
        (_, Value::Null) => {}
        (Form::Scalar(form), value) => {
            if let Some(problem) = scalar_problem(value, form) {
                complain(problem, path, found);
            }
        }
        (Form::Map(form), Value::Object(map)) => {
            for (name, value) in map {
                walk_field(name, value, form, path, found);
            }
        }
        (Form::List(form), Value::Array(items)) => walk_list(items, form, path, found),
        (Form::Map(_), other) => {
            complain(format!("expected map, got &{{{}}}", quote::plain(other)), path, found);
        }
        (Form::List(_), other) => {
            complain(format!("expected list, got &{{{}}}", quote::plain(other)), path, found);
        }
    }
}

fn walk_field(
    name: &str,
    value: &Value,
    form: MapForm<'_>,
    path: &mut String,
    found: &mut Vec<String>,
) {
    below(path, &Element::field(name), |path| match form.field_or_other(name) {
        Some(shape) => walk(value, shape, path, found),
        None => complain("field not declared in schema".to_owned(), path, found),
    });
}

fn walk_list(items: &[Value], form: ListForm<'_>, path: &mut String, found: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for (index, item) in items.iter().enumerate() {
        let element = if form.is_atomic() {
            Element::Index(i64::try_from(index).unwrap_or(i64::MAX))
        } else {
            match identify(item, form) {
                Ok(element) => element,
                Err(problem) => {
                    complain(format!("element {index}: {problem}"), path, found);
                    return;
                }
            }
        };
        if !form.is_atomic() && !seen.insert(element.clone()) {
            complain(format!("duplicate entries for key {element}"), path, found);
        }
        below(path, &element, |path| walk(item, form.element, path, found));
    }
}

fn below(path: &mut String, element: &Element, visit: impl FnOnce(&mut String)) {
    let length = path.len();
    path.push_str(&element.to_string());
    visit(path);
    path.truncate(length);
}

fn complain(problem: String, path: &str, found: &mut Vec<String>) {
    if found.len() < MOST {
        found.push(if path.is_empty() { problem } else { format!("{path}: {problem}") });
    }
}

fn scalar_problem(value: &Value, form: ScalarForm) -> Option<String> {
    match form {
        ScalarForm::Numeric if !value.is_number() => {
            Some(format!("expected numeric (int or float), got {}", quote::type_name(value)))
        }
        ScalarForm::String if !value.is_string() => Some(format!(
            "expected string, got &value.valueUnstructured{{Value:{}}}",
            quote::literal(value)
        )),
        ScalarForm::Boolean if !value.is_boolean() => {
            Some(format!("expected boolean, got &{{{}}}", quote::plain(value)))
        }
        ScalarForm::Any if value.is_object() || value.is_array() => {
            Some(format!("expected any scalar, got &{{{}}}", quote::plain(value)))
        }
        _ => None,
    }
}
