//! Takes from an answer what its step wants compared: the rest is too long, or not the server's own.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::case::Step;

pub(crate) fn compared(step: &Step, mut answer: Value) -> Value {
    let Some(body) = answer.get_mut("body") else {
        return answer;
    };
    for (at, fields) in &step.only {
        if let Some(Value::Array(items)) = body.pointer_mut(at) {
            items.retain(|item| fits(item, fields));
        }
    }
    for (at, field) in &step.sort {
        if let Some(Value::Array(items)) = body.pointer_mut(at) {
            items.sort_by_key(|item| item.pointer(field).map(Value::to_string));
        }
    }
    if !step.keep.is_empty() {
        let kept: Map<String, Value> = step
            .keep
            .iter()
            .map(|at| (at.clone(), body.pointer(at).cloned().unwrap_or(json!("(nothing)"))))
            .collect();
        *body = Value::Object(kept);
    }
    for at in &step.drop {
        let segments: Vec<&str> = at.split('/').skip(1).collect();
        remove(body, &segments);
    }
    answer
}

fn fits(item: &Value, fields: &BTreeMap<String, Vec<Value>>) -> bool {
    fields.iter().all(|(at, wanted)| item.pointer(at).is_some_and(|found| wanted.contains(found)))
}

/// A segment `*` is every entry of a list or object.
fn remove(value: &mut Value, segments: &[&str]) {
    match (segments, value) {
        ([last], Value::Object(fields)) => {
            fields.remove(&last.replace("~1", "/").replace("~0", "~"));
        }
        (["*", rest @ ..], Value::Array(items)) => {
            items.iter_mut().for_each(|item| remove(item, rest));
        }
        (["*", rest @ ..], Value::Object(fields)) => {
            fields.values_mut().for_each(|field| remove(field, rest));
        }
        ([first, rest @ ..], value) => {
            if let Some(below) = value.pointer_mut(&format!("/{first}")) {
                remove(below, rest);
            }
        }
        ([], _) => {}
    }
}
