//! Walks over whole values. Each visited node costs a step, because a small template can build a
//! value whose walk would never end (`$d = list $d $d`, sixty times).

use std::rc::Rc;

use super::{Map, Value};
use crate::limits::{Budget, Fault};

/// `reflect.DeepEqual`: types must agree, not only content.
pub(crate) fn deep_equal(left: &Value, right: &Value, budget: &Budget) -> Result<bool, Fault> {
    let _level = budget.descend()?;
    budget.step()?;
    Ok(match (left, right) {
        (Value::Nil, Value::Nil) => true,
        (Value::Bool(left), Value::Bool(right)) => left == right,
        (Value::Int(left, kind), Value::Int(right, other)) => left == right && kind == other,
        (Value::Uint(left, kind), Value::Uint(right, other)) => left == right && kind == other,
        (Value::Float(left), Value::Float(right)) => left == right,
        (Value::Str(left), Value::Str(right)) => left == right,
        (Value::Raw(left), Value::Raw(right)) => left == right,
        (Value::Time(left), Value::Time(right)) => left == right,
        (Value::Version(left), Value::Version(right)) => left == right,
        (Value::List(left), Value::List(right)) => {
            if left.elem != right.elem
                || left.nil != right.nil
                || left.items().len() != right.items().len()
            {
                return Ok(false);
            }
            if Rc::ptr_eq(left, right) {
                return Ok(true);
            }
            for (left, right) in left.items().iter().zip(right.items()) {
                if !deep_equal(left, right, budget)? {
                    return Ok(false);
                }
            }
            true
        }
        (Value::Map(left), Value::Map(right)) => maps_equal(left, right, budget)?,
        _ => false,
    })
}

fn maps_equal(left: &Rc<Map>, right: &Rc<Map>, budget: &Budget) -> Result<bool, Fault> {
    if Rc::ptr_eq(left, right) {
        return Ok(true);
    }
    let (ours, theirs) = (left.entries(), right.entries());
    if left.elem != right.elem || left.nil != right.nil || ours.len() != theirs.len() {
        return Ok(false);
    }
    for (key, value) in ours.iter() {
        match theirs.get(key) {
            Some(other) if deep_equal(value, other, budget)? => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// A copy that shares no map with the original.
pub(crate) fn deep_copy(value: &Value, budget: &Budget) -> Result<Value, Fault> {
    let _level = budget.descend()?;
    budget.step()?;
    Ok(match value {
        Value::List(list) if !list.nil => {
            let items: Result<_, Fault> =
                list.items().iter().map(|item| deep_copy(item, budget)).collect();
            Value::typed_list(list.elem, items?)
        }
        Value::Map(map) if !map.nil => {
            let entries: Result<_, Fault> = map
                .entries()
                .iter()
                .map(|(key, item)| Ok((key.clone(), deep_copy(item, budget)?)))
                .collect();
            Value::typed_map(map.elem, entries?)
        }
        other => other.clone(),
    })
}

/// Whether `map` can be reached from `value`: putting `value` into `map` would then make a cycle,
/// which nothing would ever free.
pub(crate) fn contains_map(value: &Value, map: &Rc<Map>, budget: &Budget) -> Result<bool, Fault> {
    let mut stack = vec![value.clone()];
    while let Some(value) = stack.pop() {
        budget.step()?;
        match value {
            Value::Map(inner) if Rc::ptr_eq(&inner, map) => return Ok(true),
            Value::Map(inner) => stack.extend(inner.entries().values().cloned()),
            Value::List(list) => stack.extend(list.items().iter().cloned()),
            _ => {}
        }
    }
    Ok(false)
}
