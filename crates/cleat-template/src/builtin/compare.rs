//! `eq` and its kin, with Go's idea of what can be compared with what.

use std::cmp::Ordering;
use std::rc::Rc;

use crate::library::{Env, Slot};
use crate::limits::Fault;
use crate::print;
use crate::value::Value;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Basic {
    Bool,
    Int,
    Float,
    Text,
    Uint,
    Other,
}

fn basic(value: &Value) -> Basic {
    match value {
        Value::Bool(_) => Basic::Bool,
        Value::Int(..) => Basic::Int,
        Value::Uint(..) => Basic::Uint,
        Value::Float(_) => Basic::Float,
        Value::Str(_) | Value::Raw(_) => Basic::Text,
        _ => Basic::Other,
    }
}

pub(super) fn eq(env: &Env, slots: &[Slot]) -> Result<Slot, Fault> {
    let Some((first, others)) = slots.split_first() else { return answer(false) };
    if others.is_empty() {
        return Err(Fault::text("missing argument for comparison"));
    }
    for other in others {
        if equal(env, &first.value, &other.value)? {
            return answer(true);
        }
    }
    answer(false)
}

pub(super) fn ne(env: &Env, slots: &[Slot]) -> Result<Slot, Fault> {
    let (left, right) = two(slots);
    answer(!equal(env, left, right)?)
}

pub(super) fn lt(_: &Env, slots: &[Slot]) -> Result<Slot, Fault> {
    let (left, right) = two(slots);
    answer(less(left, right)?)
}

pub(super) fn le(env: &Env, slots: &[Slot]) -> Result<Slot, Fault> {
    let (left, right) = two(slots);
    answer(less(left, right)? || equal(env, left, right)?)
}

pub(super) fn gt(env: &Env, slots: &[Slot]) -> Result<Slot, Fault> {
    let (left, right) = two(slots);
    answer(!(less(left, right)? || equal(env, left, right)?))
}

pub(super) fn ge(_: &Env, slots: &[Slot]) -> Result<Slot, Fault> {
    let (left, right) = two(slots);
    answer(!less(left, right)?)
}

fn answer(truth: bool) -> Result<Slot, Fault> {
    Ok(Slot::new(Value::Bool(truth)))
}

fn two(slots: &[Slot]) -> (&Value, &Value) {
    let at = |index: usize| slots.get(index).map_or(&Value::Nil, |slot| &slot.value);
    (at(0), at(1))
}

fn equal(env: &Env, left: &Value, right: &Value) -> Result<bool, Fault> {
    if basic(left) != basic(right) {
        return match mixed(left, right) {
            Some(order) => Ok(order == Ordering::Equal),
            None if left.is_nil() || right.is_nil() => Ok(false),
            None => Err(incompatible(left, right)),
        };
    }
    Ok(match (left, right) {
        (Value::Bool(left), Value::Bool(right)) => left == right,
        (Value::Int(left, _), Value::Int(right, _)) => left == right,
        (Value::Uint(left, _), Value::Uint(right, _)) => left == right,
        (Value::Float(left), Value::Float(right)) => left == right,
        _ if basic(left) == Basic::Text => left.string_bytes() == right.string_bytes(),
        _ => return alike(env, left, right),
    })
}

/// Maps, lists and the rest: all that can be asked of most of them is whether they are nil.
fn alike(env: &Env, left: &Value, right: &Value) -> Result<bool, Fault> {
    let budget = &env.budget;
    if left.kind_name() != right.kind_name() && !left.is_nil() && !right.is_nil() {
        return Err(Fault::text(format!(
            "non-comparable types {}: {}, {}: {}",
            print::with_verb(left, 's', budget)?,
            left.type_name(),
            right.type_name(),
            print::plain_text(right, budget)?,
        )));
    }
    if nil_like(left) || nil_like(right) {
        return Ok(nil_like(left) == nil_like(right));
    }
    match (left, right) {
        (Value::Time(left), Value::Time(right)) => Ok(left == right),
        (Value::Version(left), Value::Version(right)) => Ok(Rc::ptr_eq(left, right)),
        _ => Err(Fault::text(format!(
            "non-comparable type {}: {}",
            print::with_verb(right, 's', budget)?,
            right.type_name()
        ))),
    }
}

fn nil_like(value: &Value) -> bool {
    match value {
        Value::Nil => true,
        Value::List(list) => list.nil,
        Value::Map(map) => map.nil,
        _ => false,
    }
}

fn less(left: &Value, right: &Value) -> Result<bool, Fault> {
    let bad = || Fault::text("invalid type for comparison");
    if basic(left) == Basic::Other || basic(right) == Basic::Other {
        return Err(bad());
    }
    if basic(left) != basic(right) {
        let order = mixed(left, right).ok_or_else(|| incompatible(left, right))?;
        return Ok(order == Ordering::Less);
    }
    Ok(match (left, right) {
        (Value::Int(left, _), Value::Int(right, _)) => left < right,
        (Value::Uint(left, _), Value::Uint(right, _)) => left < right,
        (Value::Float(left), Value::Float(right)) => left < right,
        _ if basic(left) == Basic::Text => left.string_bytes() < right.string_bytes(),
        _ => return Err(bad()),
    })
}

/// Signed and unsigned integers can be compared with each other; nothing else can.
fn mixed(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Int(left, _), Value::Uint(right, _)) => {
            Some(i128::from(*left).cmp(&i128::from(*right)))
        }
        (Value::Uint(left, _), Value::Int(right, _)) => {
            Some(i128::from(*left).cmp(&i128::from(*right)))
        }
        _ => None,
    }
}

fn incompatible(left: &Value, right: &Value) -> Fault {
    Fault::text(format!(
        "incompatible types for comparison: {} and {}",
        left.type_name(),
        right.type_name()
    ))
}
