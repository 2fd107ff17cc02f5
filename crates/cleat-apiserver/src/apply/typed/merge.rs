//! Merging a configuration into an object: nothing is removed, leaves take the configuration's
//! value, and lists end up in its order as far as it says.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::{elements_in, fields_in, identify};
use crate::apply::element::Element;
use crate::apply::shape::{Form, ListForm, MapForm, Shape};

/// Merges `config` into `live`, leaving out `metadata.managedFields`, which says nothing about the
/// object itself.
pub(in crate::apply) fn merge_objects(live: &Value, config: &Value, shape: Shape<'_>) -> Value {
    let Form::Map(form) = shape.form(Some(config)) else { return config.clone() };
    let (live, config) = (fields_in(Some(live)), fields_in(Some(config)));
    let mut merged = merge_fields(live, config, form, "metadata");
    let (old, new) = (live.get("metadata"), config.get("metadata"));
    if old.is_none() && new.is_none() {
        return merged.into();
    }
    let metadata = match (form.field_or_other("metadata").map(|shape| shape.form(new)), new) {
        (Some(Form::Map(form)), None | Some(Value::Object(_) | Value::Null)) => {
            Some(merge_fields(fields_in(old), fields_in(new), form, "managedFields").into())
        }
        _ => new.or(old).cloned(),
    };
    if let Some(metadata) = metadata {
        merged.insert("metadata".to_owned(), metadata);
    }
    merged.into()
}

/// Merges two values, either of which may be absent.
fn merge(live: Option<&Value>, config: Option<&Value>, shape: Shape<'_>) -> Option<Value> {
    let (Some(_), Some(new)) = (live, config) else { return config.or(live).cloned() };
    match shape.form(config) {
        Form::Map(form) if !form.atomic => {
            let (left, right) = (fields_in(live), fields_in(config));
            if left.is_empty() && right.is_empty() {
                return Some(new.clone());
            }
            Some(Value::Object(merge_fields(left, right, form, "")))
        }
        Form::List(form) if !form.is_atomic() => {
            let (left, right) = (elements_in(live), elements_in(config));
            if left.is_empty() && right.is_empty() {
                return Some(new.clone());
            }
            Some(Value::Array(merge_elements(left, right, form)))
        }
        _ => Some(new.clone()),
    }
}

/// Merges all fields but `omitted`.
fn merge_fields(
    live: &Map<String, Value>,
    config: &Map<String, Value>,
    form: MapForm<'_>,
    omitted: &str,
) -> Map<String, Value> {
    let names: BTreeSet<&String> = live.keys().chain(config.keys()).collect();
    names
        .into_iter()
        .filter(|name| *name != omitted)
        .filter_map(|name| {
            let shape = form.field_or_other(name).unwrap_or(Shape::Opaque);
            let merged = merge(live.get(name), config.get(name), shape)?;
            Some((name.clone(), merged))
        })
        .collect()
}

/// Merges two lists. The configuration's elements keep its order; the others stay where they were
/// relative to the elements that both have.
fn merge_elements(live: &[Value], config: &[Value], form: ListForm<'_>) -> Vec<Value> {
    let left = identified(live, form);
    let right = identified(config, form);
    // Elements that are in the live list more than once are replaced, not merged with.
    let mut in_live: BTreeMap<&Element, Option<&Value>> = BTreeMap::new();
    for (element, item) in &left {
        in_live.entry(element).and_modify(|item| *item = None).or_insert(Some(item));
    }
    let in_config: BTreeSet<&Element> = right.iter().map(|(element, _)| element).collect();
    let mut shared =
        right.iter().map(|(element, _)| element).filter(|element| in_live.contains_key(element));
    let mut next_shared = shared.next();
    let mut merged: BTreeSet<&Element> = BTreeSet::new();
    let mut out = Vec::with_capacity(left.len().max(right.len()));

    let (mut lefts, mut rights) = (left.iter().peekable(), right.iter().peekable());
    loop {
        match (lefts.peek(), rights.peek()) {
            (None, None) => break,
            (Some((ours, _)), Some((theirs, _))) if ours != theirs => {
                let another = next_shared.is_some_and(|next| next != ours);
                if in_config.contains(ours) && another {
                    // It comes later, where the configuration has it.
                    lefts.next();
                    continue;
                }
            }
            _ => {}
        }
        if let Some((ours, item)) = lefts.peek() {
            if !in_config.contains(ours) {
                out.push((*item).clone());
                lefts.next();
                continue;
            }
            let here = rights.peek().is_some_and(|(theirs, _)| theirs == ours);
            if here || merged.contains(ours) {
                lefts.next();
            }
        }
        if let Some((theirs, item)) = rights.next() {
            merged.insert(theirs);
            let known = in_live.get(theirs).copied().flatten();
            out.extend(merge(known, Some(item), form.element));
            if next_shared == Some(theirs) {
                next_shared = shared.next();
            }
        }
    }
    // What cannot be told apart cannot be merged, but is not ours to drop either.
    out.extend(live.iter().filter(|item| identify(item, form).is_err()).cloned());
    out
}

fn identified<'v>(list: &'v [Value], form: ListForm<'_>) -> Vec<(Element, &'v Value)> {
    list.iter().filter_map(|item| Some((identify(item, form).ok()?, item))).collect()
}
