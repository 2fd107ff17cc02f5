//! Defaults and choices.

use super::cast::is_empty;
use crate::library::{Answer, Args, Env, Table, Ty, fixed, variadic};
use crate::limits::Fault;
use crate::value::{Value, deep_copy, deep_equal};

pub(super) const TABLE: Table = &[
    ("all", variadic(&[], Ty::Any, all)),
    ("any", variadic(&[], Ty::Any, any)),
    ("coalesce", variadic(&[], Ty::Any, coalesce)),
    ("deepCopy", fixed(&[Ty::Any], copy)),
    ("deepEqual", fixed(&[Ty::Any, Ty::Any], equal)),
    ("default", variadic(&[Ty::Any], Ty::Any, default)),
    ("empty", fixed(&[Ty::Any], empty)),
    ("fail", fixed(&[Ty::Text], fail)),
    ("hello", fixed(&[], |_, _| Ok(Value::text("Hello!")))),
    ("mustDeepCopy", fixed(&[Ty::Any], copy)),
    ("ternary", fixed(&[Ty::Any, Ty::Any, Ty::Bool], ternary)),
];

fn default(_: &Env, args: &Args<'_>) -> Answer {
    let given = args.any(1);
    Ok(if is_empty(given) { args.any(0) } else { given }.clone())
}

fn empty(_: &Env, args: &Args<'_>) -> Answer {
    Ok(Value::Bool(is_empty(args.any(0))))
}

fn coalesce(_: &Env, args: &Args<'_>) -> Answer {
    Ok(args.from(0).iter().find(|value| !is_empty(value)).cloned().unwrap_or(Value::Nil))
}

fn all(_: &Env, args: &Args<'_>) -> Answer {
    Ok(Value::Bool(!args.from(0).iter().any(is_empty)))
}

fn any(_: &Env, args: &Args<'_>) -> Answer {
    Ok(Value::Bool(args.from(0).iter().any(|value| !is_empty(value))))
}

fn ternary(_: &Env, args: &Args<'_>) -> Answer {
    Ok(args.any(if args.flag(2) { 0 } else { 1 }).clone())
}

fn copy(env: &Env, args: &Args<'_>) -> Answer {
    if args.any(0).is_nil() {
        return Err(Fault::text("reflect: call of reflect.Value.Type on zero Value"));
    }
    deep_copy(args.any(0), &env.budget)
}

fn equal(env: &Env, args: &Args<'_>) -> Answer {
    Ok(Value::Bool(deep_equal(args.any(0), args.any(1), &env.budget)?))
}

fn fail(_: &Env, args: &Args<'_>) -> Answer {
    Err(Fault::text(args.text(0)?))
}
