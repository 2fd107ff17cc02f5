//! What a live value would be once a template was applied to it.
//!
//! Nothing is judged here; [`super::equal`] says whether the result differs from what is live.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use serde_json::{Map, Value};

use super::equal::{self, Absence};

/// How a template's value and the live one come together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Merge {
    /// What only the live side has stays.
    Keep,
    /// The template is all there is.
    Replace,
}

pub(super) fn merged(template: &Value, live: &Value, how: Merge) -> Value {
    match (how, template, live) {
        (Merge::Replace, _, _) => template.clone(),
        (Merge::Keep, Value::Object(template), Value::Object(live)) => {
            Value::Object(objects(template, live))
        }
        (Merge::Keep, Value::Array(template), Value::Array(live)) => {
            Value::Array(lists(template, live))
        }
        (Merge::Keep, Value::Null, Value::Object(_)) => live.clone(),
        (Merge::Keep, _, _) => template.clone(),
    }
}

fn objects(template: &Map<String, Value>, live: &Map<String, Value>) -> Map<String, Value> {
    let mut all = live.clone();
    for (key, value) in template {
        let below = match live.get(key) {
            Some(existing) => merged(value, existing, Merge::Keep),
            None => value.clone(),
        };
        all.insert(key.clone(), below);
    }
    all
}

/// The template's list, each item completed by the live one it stands for, then the live items no
/// item stands for.
fn lists(template: &[Value], live: &[Value]) -> Vec<Value> {
    let mut result = template.to_vec();
    let mut used = alloc::vec![false; template.len()];
    let mut extra = Vec::new();
    for (item, occurrences) in distinct(live) {
        let mut found = 0;
        let slots = result.iter_mut().zip(template).zip(used.iter_mut());
        for ((slot, wanted), used) in slots {
            if found == occurrences {
                break;
            }
            if *used {
                continue;
            }
            if let Some(completed) = stands_for(wanted, item) {
                *slot = completed;
                *used = true;
                found += 1;
            }
        }
        for _ in found..occurrences {
            extra.push(item.clone());
        }
    }
    result.extend(extra);
    result
}

/// The template's item completed by the live one, if they are the same thing.
fn stands_for(wanted: &Value, item: &Value) -> Option<Value> {
    let completed = match (wanted, item) {
        (Value::Object(_), Value::Object(_)) => merged(wanted, item, Merge::Keep),
        _ => wanted.clone(),
    };
    let same = same_name(wanted, item)
        || equal::equivalent(&completed, Some(item), Absence::EmptyMaps).holds();
    same.then_some(completed)
}

fn same_name(wanted: &Value, item: &Value) -> bool {
    let name = |value: &Value| match value.get("name") {
        Some(Value::String(name)) if !name.is_empty() => Some(name.clone()),
        _ => None,
    };
    name(wanted).is_some_and(|wanted| name(item) == Some(wanted))
}

/// The items in the order in which they first occur, and how often they do.
fn distinct(items: &[Value]) -> Vec<(&Value, usize)> {
    let mut places: BTreeMap<(String, String), usize> = BTreeMap::new();
    let mut all: Vec<(&Value, usize)> = Vec::new();
    for item in items {
        let place = *places.entry(equal::key(item)).or_insert(all.len());
        match all.get_mut(place) {
            Some((_, occurrences)) => *occurrences += 1,
            None => all.push((item, 1)),
        }
    }
    all
}
