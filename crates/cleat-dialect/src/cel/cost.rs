//! What an evaluation may cost, counted while it runs.
//!
//! How large the collections are that an expression makes itself is known only then, so every round
//! of every loop asks first (`@tick`), what it gathered is paid for in the end (`@gathered`), and so is
//! what makes much of little. Who was refused once is refused from then on: an error that `||` swallows
//! buys no further round.
//!
//! Steps are counted where evaluation happens, on one thread from beginning to end.

use std::{
    cell::Cell,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use cel::{
    ExecutionError, FunctionContext, IdedExpr, Value,
    common::{
        ast::{CallExpr, EntryExpr, Expr, LiteralValue},
        types::{CelBytes, CelList, CelMap, CelOptional, CelString},
        value::Val,
    },
};

/// How many steps all evaluations within one budget may take.
pub(super) const MOST_STEPS: u64 = 20_000_000;
/// No expression may come to hold more than about this of what it was given: every part of it could be
/// a copy of all of that.
const MOST_GIVEN: u64 = 2 << 30;
/// Nor more than this of what it made.
const MOST_MADE: u64 = 256 << 20;
/// What a value takes beside its text.
const BYTES_PER_VALUE: u64 = 32;
/// How much is copied at the price of a step.
const BYTES_PER_STEP: u64 = 256;

/// The function that every round of a loop calls, and the one at its end; no source can name them.
pub(super) const TICK: &str = "@tick";
pub(super) const GATHERED: &str = "@gathered";
/// What the parser calls the value that a loop works on.
const ACCUMULATED: &str = "@result";

/// How many steps are left; clones share them.
#[derive(Clone, Debug)]
pub struct Budget(Arc<AtomicU64>);

impl Default for Budget {
    fn default() -> Self {
        Self::of(MOST_STEPS)
    }
}

impl Budget {
    pub(super) fn of(steps: u64) -> Self {
        Self(Arc::new(AtomicU64::new(steps)))
    }

    fn left(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Runs an evaluation of an expression with so many nodes. `None` if it took too many steps,
    /// whatever it came to.
    pub(super) fn spend<T>(&self, nodes: u64, evaluation: impl FnOnce() -> T) -> Option<T> {
        METER.set(Meter { left: self.left(), nodes, refused: false });
        let outcome = charge(nodes).is_ok().then(evaluation);
        let meter = METER.get();
        self.0.store(meter.left, Ordering::Relaxed);
        outcome.filter(|_| !meter.refused)
    }
}

#[derive(Clone, Copy)]
struct Meter {
    left: u64,
    nodes: u64,
    refused: bool,
}

thread_local! {
    static METER: Cell<Meter> = const { Cell::new(Meter { left: 0, nodes: 0, refused: false }) };
}

/// Takes steps off what is left.
pub(super) fn charge(steps: u64) -> Result<(), ExecutionError> {
    let mut meter = METER.get();
    let left = meter.left.checked_sub(steps).filter(|_| !meter.refused);
    meter.left = left.unwrap_or(0);
    meter.refused = left.is_none();
    METER.set(meter);
    match left {
        Some(_) => Ok(()),
        None => Err(ExecutionError::function_error("cost", "out of budget")),
    }
}

/// Takes the steps of making so many bytes, before they are made where that is known.
pub(super) fn charge_for(bytes: u64) -> Result<(), ExecutionError> {
    match METER.get().nodes.saturating_mul(bytes) <= MOST_MADE {
        true => charge(bytes / BYTES_PER_STEP),
        false => charge(u64::MAX),
    }
}

/// Whether an expression with so many nodes may work on so much.
pub(super) fn may_be_given(nodes: u64, bytes: u64) -> bool {
    nodes.saturating_mul(bytes) <= MOST_GIVEN
}

/// `@tick(condition, steps)`: the condition, if this round can be paid for. What the loop has gathered
/// so far is copied by the round.
pub(super) fn tick(call: &FunctionContext<'_, '_>) -> Result<Value, ExecutionError> {
    let [condition, steps] = call.args else { return Err(ExecutionError::NoSuchOverload) };
    charge_gathered(call)?;
    match Value::resolve(steps, call.ptx)? {
        Value::Int(steps) => charge(u64::try_from(steps).unwrap_or(1).max(1))?,
        _ => return Err(ExecutionError::NoSuchOverload),
    }
    Value::resolve(condition, call.ptx)
}

/// `@gathered(result)`: the result, if what the loop has gathered can be paid for.
pub(super) fn gathered(call: &FunctionContext<'_, '_>) -> Result<Value, ExecutionError> {
    let [result] = call.args else { return Err(ExecutionError::NoSuchOverload) };
    charge_gathered(call)?;
    Value::resolve(result, call.ptx)
}

fn charge_gathered(call: &FunctionContext<'_, '_>) -> Result<(), ExecutionError> {
    let gathered = call.ptx.get_variable(ACCUMULATED);
    charge_for(gathered.map_or(0, |value| weight(value.as_ref())))
}

/// About how many bytes a value takes.
fn weight(value: &dyn Val) -> u64 {
    let inner = if let Some(list) = value.downcast_ref::<CelList>() {
        list.iter().map(|item| weight(item.as_ref())).sum()
    } else if let Some(map) = value.downcast_ref::<CelMap>() {
        map.values().map(|item| BYTES_PER_VALUE + weight(item.as_ref())).sum()
    } else if let Some(text) = value.downcast_ref::<CelString>() {
        text.inner().len() as u64
    } else if let Some(bytes) = value.downcast_ref::<CelBytes>() {
        bytes.inner().len() as u64
    } else if let Some(optional) = value.downcast_ref::<CelOptional>() {
        optional.inner().map_or(0, weight)
    } else {
        0
    };
    BYTES_PER_VALUE + inner
}

/// What is known of a value before an evaluation.
#[derive(Clone, Copy, Default)]
pub(super) struct Size {
    /// Items of the largest list or map, and how long texts are compared with them.
    pub(super) largest: u64,
    pub(super) bytes: u64,
}

impl Size {
    pub(super) fn of(value: &Value) -> Self {
        let mut size = Self { largest: 0, bytes: BYTES_PER_VALUE };
        match value {
            Value::List(items) => {
                size.largest = items.len() as u64;
                items.iter().for_each(|item| size.add(Self::of(item)));
            }
            Value::Map(map) => {
                size.largest = map.map.len() as u64;
                map.map.values().for_each(|item| size.add(Self::of(item)));
            }
            Value::String(text) => {
                size.largest = text.len() as u64 / 64;
                size.bytes += text.len() as u64;
            }
            Value::Bytes(bytes) => size.bytes += bytes.len() as u64,
            _ => {}
        }
        size
    }

    pub(super) fn add(&mut self, other: Self) {
        self.largest = self.largest.max(other.largest);
        self.bytes += other.bytes;
    }
}

/// Has every round of every loop pay for the steps that it takes. Gives how many nodes there are.
pub(super) fn meter(tree: &mut IdedExpr) -> u64 {
    let inner = match &mut tree.expr {
        Expr::Call(call) => {
            let target = call.target.iter_mut().map(|target| &mut **target);
            target.chain(&mut call.args).map(meter).sum()
        }
        Expr::Comprehension(inner) => {
            let round = meter(&mut inner.loop_cond) + meter(&mut inner.loop_step);
            let once = [&mut inner.iter_range, &mut inner.accu_init, &mut inner.result];
            let once: u64 = once.into_iter().map(meter).sum();
            let steps = LiteralValue::Int(i64::try_from(round).unwrap_or(i64::MAX).into());
            let steps = IdedExpr { id: inner.loop_cond.id, expr: Expr::Literal(steps) };
            call(TICK, &mut inner.loop_cond, Some(steps));
            call(GATHERED, &mut inner.result, None);
            round + once
        }
        Expr::List(list) => list.elements.iter_mut().map(meter).sum(),
        Expr::Map(map) => {
            let entries = map.entries.iter_mut().map(|entry| match &mut entry.expr {
                EntryExpr::MapEntry(entry) => meter(&mut entry.key) + meter(&mut entry.value),
                EntryExpr::StructField(field) => meter(&mut field.value),
            });
            entries.sum()
        }
        Expr::Select(select) => meter(&mut select.operand),
        Expr::Struct(_) | Expr::Unspecified | Expr::Literal(_) | Expr::Ident(_) => 0,
    };
    inner + 1
}

/// Has a function called with an expression in its place.
fn call(function: &str, expression: &mut IdedExpr, second: Option<IdedExpr>) {
    let inner = std::mem::take(expression);
    let id = inner.id;
    let args = std::iter::once(inner).chain(second).collect();
    let call = CallExpr { func_name: function.to_owned(), target: None, args };
    *expression = IdedExpr { id, expr: Expr::Call(call) };
}
