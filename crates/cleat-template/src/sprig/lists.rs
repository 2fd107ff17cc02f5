//! Lists. They are never changed; every function gives a new one.

use super::cast::{NIL, is_empty, to_int64};
use crate::library::{Answer, Args, Env, Table, Ty, fixed, variadic};
use crate::limits::{Budget, Fault};
use crate::value::{Elem, Value, deep_equal};

const ONE: &[Ty] = &[Ty::Any];
const TWO: &[Ty] = &[Ty::Any, Ty::Any];

pub(super) const TABLE: Table = &[
    ("append", fixed(TWO, push)),
    ("chunk", fixed(&[Ty::Int, Ty::Any], chunk)),
    ("compact", fixed(ONE, compact)),
    ("concat", variadic(&[], Ty::Any, concat)),
    ("first", fixed(ONE, first)),
    ("has", fixed(TWO, has)),
    ("initial", fixed(ONE, initial)),
    ("last", fixed(ONE, last)),
    ("list", variadic(&[], Ty::Any, list)),
    ("mustAppend", fixed(TWO, push)),
    ("mustChunk", fixed(&[Ty::Int, Ty::Any], chunk)),
    ("mustCompact", fixed(ONE, compact)),
    ("mustFirst", fixed(ONE, first)),
    ("mustHas", fixed(TWO, has)),
    ("mustInitial", fixed(ONE, initial)),
    ("mustLast", fixed(ONE, last)),
    ("mustPrepend", fixed(TWO, prepend)),
    ("mustPush", fixed(TWO, push)),
    ("mustRest", fixed(ONE, rest)),
    ("mustReverse", fixed(ONE, reverse)),
    ("mustSlice", variadic(ONE, Ty::Any, slice)),
    ("mustUniq", fixed(ONE, uniq)),
    ("mustWithout", variadic(ONE, Ty::Any, without)),
    ("prepend", fixed(TWO, prepend)),
    ("push", fixed(TWO, push)),
    ("rest", fixed(ONE, rest)),
    ("reverse", fixed(ONE, reverse)),
    ("slice", variadic(ONE, Ty::Any, slice)),
    ("tuple", variadic(&[], Ty::Any, list)),
    ("uniq", fixed(ONE, uniq)),
    ("without", variadic(ONE, Ty::Any, without)),
];

/// The items of a list, each of which costs a step because it is going to be copied.
fn items<'a>(value: &'a Value, budget: &Budget, complaint: &str) -> Result<&'a [Value], Fault> {
    match value {
        Value::List(list) => {
            budget.steps(list.items().len() as u64)?;
            Ok(list.items())
        }
        Value::Nil => Err(Fault::text(NIL)),
        other => Err(Fault::text(format!("{complaint} {}", other.kind_name()))),
    }
}

fn list(_: &Env, args: &Args<'_>) -> Answer {
    Ok(Value::list(args.from(0).to_vec()))
}

fn push(env: &Env, args: &Args<'_>) -> Answer {
    let mut all = items(args.any(0), &env.budget, "Cannot push on type")?.to_vec();
    all.push(args.any(1).clone());
    Ok(Value::list(all))
}

fn prepend(env: &Env, args: &Args<'_>) -> Answer {
    let old = items(args.any(0), &env.budget, "Cannot prepend on type")?;
    let all = std::iter::once(args.any(1)).chain(old).cloned().collect();
    Ok(Value::list(all))
}

fn chunk(env: &Env, args: &Args<'_>) -> Answer {
    let all = items(args.any(1), &env.budget, "Cannot chunk type")?;
    let size = args.int(0);
    // Two items in chunks of minus one are no chunks, by Go's arithmetic.
    let last = all.len() as i64 - 1;
    if size < 0 && last > 0 && last <= size.saturating_neg() {
        return Ok(Value::typed_list(Elem::AnyList, Vec::new()));
    }
    let size = usize::try_from(size).ok().filter(|size| *size > 0);
    let size = size.ok_or_else(|| Fault::text("runtime error: makeslice: len out of range"))?;
    let chunks = all.chunks(size).map(|chunk| Value::list(chunk.to_vec())).collect();
    Ok(Value::typed_list(Elem::AnyList, chunks))
}

fn first(env: &Env, args: &Args<'_>) -> Answer {
    let all = items(args.any(0), &env.budget, "Cannot find first on type")?;
    Ok(all.first().cloned().unwrap_or(Value::Nil))
}

fn last(env: &Env, args: &Args<'_>) -> Answer {
    let all = items(args.any(0), &env.budget, "Cannot find last on type")?;
    Ok(all.last().cloned().unwrap_or(Value::Nil))
}

fn rest(env: &Env, args: &Args<'_>) -> Answer {
    let all = items(args.any(0), &env.budget, "Cannot find rest on type")?;
    Ok(all
        .split_first()
        .map_or_else(|| Value::nil_list(Elem::Any), |(_, rest)| Value::list(rest.to_vec())))
}

fn initial(env: &Env, args: &Args<'_>) -> Answer {
    let all = items(args.any(0), &env.budget, "Cannot find initial on type")?;
    Ok(all
        .split_last()
        .map_or_else(|| Value::nil_list(Elem::Any), |(_, rest)| Value::list(rest.to_vec())))
}

fn reverse(env: &Env, args: &Args<'_>) -> Answer {
    let all = items(args.any(0), &env.budget, "Cannot find reverse on type")?;
    Ok(Value::list(all.iter().rev().cloned().collect()))
}

fn compact(env: &Env, args: &Args<'_>) -> Answer {
    let all = items(args.any(0), &env.budget, "Cannot compact on type")?;
    Ok(Value::list(all.iter().filter(|item| !is_empty(item)).cloned().collect()))
}

fn contains(all: &[Value], wanted: &Value, budget: &Budget) -> Result<bool, Fault> {
    for item in all {
        if deep_equal(wanted, item, budget)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn uniq(env: &Env, args: &Args<'_>) -> Answer {
    let mut kept: Vec<Value> = Vec::new();
    for item in items(args.any(0), &env.budget, "Cannot find uniq on type")? {
        if !contains(&kept, item, &env.budget)? {
            kept.push(item.clone());
        }
    }
    Ok(Value::list(kept))
}

fn without(env: &Env, args: &Args<'_>) -> Answer {
    let mut kept = Vec::new();
    for item in items(args.any(0), &env.budget, "Cannot find without on type")? {
        if !contains(args.from(1), item, &env.budget)? {
            kept.push(item.clone());
        }
    }
    Ok(Value::list(kept))
}

fn has(env: &Env, args: &Args<'_>) -> Answer {
    if args.any(1).is_nil() {
        return Ok(Value::Bool(false));
    }
    let all = items(args.any(1), &env.budget, "Cannot find has on type")?;
    Ok(Value::Bool(contains(all, args.any(0), &env.budget)?))
}

fn slice(env: &Env, args: &Args<'_>) -> Answer {
    let complaint = "list should be type of slice or array but";
    let all = items(args.any(0), &env.budget, complaint)?;
    let Value::List(list) = args.any(0) else { return Ok(Value::Nil) };
    if all.is_empty() {
        return Ok(Value::Nil);
    }
    let start = if args.len() > 1 { to_int64(args.any(1)) } else { 0 };
    let end = if args.len() > 2 { to_int64(args.any(2)) } else { all.len() as i64 };
    let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
    match range.and_then(|(start, end)| all.get(start..end)) {
        Some(part) => Ok(Value::typed_list(list.elem, part.to_vec())),
        None => Err(Fault::text("reflect.Value.Slice: slice index out of bounds")),
    }
}

fn concat(env: &Env, args: &Args<'_>) -> Answer {
    let mut all = Vec::new();
    for value in args.from(0) {
        let Value::List(_) = value else {
            return Err(Fault::text(if value.is_nil() {
                NIL.to_owned()
            } else {
                format!("Cannot concat type {} as list", value.kind_name())
            }));
        };
        all.extend_from_slice(items(value, &env.budget, "")?);
    }
    Ok(if all.is_empty() { Value::nil_list(Elem::Any) } else { Value::list(all) })
}
