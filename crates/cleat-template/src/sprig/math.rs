//! Arithmetic on whole numbers, and on decimals that do not surprise: `addf 0.1 0.2` is `0.3`.

use super::cast::{count, number_of, to_float, to_int64};
use crate::library::{Answer, Args, Env, Table, Ty, fixed, variadic};
use crate::limits::{Budget, Fault};
use crate::print;
use crate::value::{Elem, Value};

mod decimal;

use decimal::Decimal;

const ONE: &[Ty] = &[Ty::Any];
const TWO: &[Ty] = &[Ty::Any, Ty::Any];

pub(super) const TABLE: Table = &[
    ("add", variadic(&[], Ty::Any, add)),
    ("add1", fixed(ONE, |_, args| Ok(Value::int64(to_int64(args.any(0)).wrapping_add(1))))),
    ("add1f", fixed(ONE, |_, args| decimals(args.any(0), &[Value::int(1)], Decimal::add))),
    (
        "addf",
        variadic(&[], Ty::Any, |_, args| decimals(&Value::int(0), args.from(0), Decimal::add)),
    ),
    ("biggest", variadic(ONE, Ty::Any, max)),
    ("ceil", fixed(ONE, |_, args| Ok(Value::Float(to_float(args.any(0)).ceil())))),
    ("div", fixed(TWO, div)),
    ("divf", variadic(ONE, Ty::Any, divf)),
    ("float64", fixed(ONE, |_, args| Ok(Value::Float(to_float(args.any(0)))))),
    ("floor", fixed(ONE, |_, args| Ok(Value::Float(to_float(args.any(0)).floor())))),
    ("int", fixed(ONE, |_, args| Ok(number_of(args.any(0))))),
    ("int64", fixed(ONE, |_, args| Ok(Value::int64(to_int64(args.any(0)))))),
    ("max", variadic(ONE, Ty::Any, max)),
    ("maxf", variadic(ONE, Ty::Any, maxf)),
    ("min", variadic(ONE, Ty::Any, min)),
    ("minf", variadic(ONE, Ty::Any, minf)),
    ("mod", fixed(TWO, modulo)),
    ("mul", variadic(ONE, Ty::Any, mul)),
    ("mulf", variadic(ONE, Ty::Any, |_, args| decimals(args.any(0), args.from(1), Decimal::mul))),
    ("round", variadic(&[Ty::Any, Ty::Int], Ty::Float, round)),
    ("seq", variadic(&[], Ty::Int, seq)),
    ("sub", fixed(TWO, sub)),
    ("subf", variadic(ONE, Ty::Any, |_, args| decimals(args.any(0), args.from(1), Decimal::sub))),
    ("toDecimal", fixed(ONE, to_decimal)),
    ("until", fixed(&[Ty::Int], until)),
    ("untilStep", fixed(&[Ty::Int, Ty::Int, Ty::Int], until_step)),
];

fn add(_: &Env, args: &Args<'_>) -> Answer {
    let sum = args.from(0).iter().map(to_int64).fold(0, i64::wrapping_add);
    Ok(Value::int64(sum))
}

fn sub(_: &Env, args: &Args<'_>) -> Answer {
    Ok(Value::int64(to_int64(args.any(0)).wrapping_sub(to_int64(args.any(1)))))
}

fn mul(_: &Env, args: &Args<'_>) -> Answer {
    Ok(Value::int64(args.from(0).iter().map(to_int64).fold(1, i64::wrapping_mul)))
}

fn divisor(args: &Args<'_>) -> Result<i64, Fault> {
    match to_int64(args.any(1)) {
        0 => Err(Fault::text("runtime error: integer divide by zero")),
        divisor => Ok(divisor),
    }
}

fn div(_: &Env, args: &Args<'_>) -> Answer {
    Ok(Value::int64(to_int64(args.any(0)).wrapping_div(divisor(args)?)))
}

fn modulo(_: &Env, args: &Args<'_>) -> Answer {
    Ok(Value::int64(to_int64(args.any(0)).wrapping_rem(divisor(args)?)))
}

fn max(_: &Env, args: &Args<'_>) -> Answer {
    Ok(Value::int64(args.from(0).iter().map(to_int64).max().unwrap_or(0)))
}

fn min(_: &Env, args: &Args<'_>) -> Answer {
    Ok(Value::int64(args.from(0).iter().map(to_int64).min().unwrap_or(0)))
}

fn maxf(_: &Env, args: &Args<'_>) -> Answer {
    let numbers = args.from(0).iter().map(to_float);
    Ok(Value::Float(numbers.reduce(f64::max).unwrap_or(0.0)))
}

fn minf(_: &Env, args: &Args<'_>) -> Answer {
    let numbers = args.from(0).iter().map(to_float);
    Ok(Value::Float(numbers.reduce(f64::min).unwrap_or(0.0)))
}

fn decimals(first: &Value, rest: &[Value], step: fn(Decimal, Decimal) -> Decimal) -> Answer {
    let mut result = Decimal::from(to_float(first));
    for value in rest {
        result = step(result, Decimal::from(to_float(value)));
    }
    Ok(Value::Float(result.to_float()))
}

fn divf(_: &Env, args: &Args<'_>) -> Answer {
    if args.from(1).iter().any(|value| to_float(value) == 0.0) {
        return Err(Fault::text("decimal division by 0"));
    }
    decimals(args.any(0), args.from(1), Decimal::div)
}

/// Half away from zero upwards, unless another threshold is given.
fn round(_: &Env, args: &Args<'_>) -> Answer {
    let threshold = match args.any(2) {
        Value::Float(threshold) => *threshold,
        _ => 0.5,
    };
    let power = 10.0_f64.powi(i32::try_from(args.int(1)).unwrap_or(i32::MAX));
    let shifted = power * to_float(args.any(0));
    let rounded = if shifted.fract() >= threshold { shifted.ceil() } else { shifted.floor() };
    Ok(Value::Float(rounded / power))
}

/// What an octal spelling means, for file modes.
fn to_decimal(env: &Env, args: &Args<'_>) -> Answer {
    let text = print::plain_text(args.any(0), &env.budget)?;
    Ok(Value::int64(i64::from_str_radix(&text, 8).unwrap_or(0)))
}

fn until(env: &Env, args: &Args<'_>) -> Answer {
    let stop = args.int(0);
    Ok(ints(numbers(0, stop, if stop < 0 { -1 } else { 1 }, &env.budget)?))
}

fn until_step(env: &Env, args: &Args<'_>) -> Answer {
    Ok(ints(numbers(args.int(0), args.int(1), args.int(2), &env.budget)?))
}

fn ints(numbers: Vec<i64>) -> Value {
    Value::typed_list(Elem::Int, numbers.into_iter().map(Value::int).collect())
}

fn numbers(start: i64, stop: i64, step: i64, budget: &Budget) -> Result<Vec<i64>, Fault> {
    if step == 0 || (stop < start) != (step < 0) {
        return Ok(Vec::new());
    }
    let distance = i128::from(stop) - i128::from(start);
    let total = (distance.abs() + i128::from(step).abs() - 1) / i128::from(step).abs();
    budget.steps(u64::try_from(total).unwrap_or(u64::MAX))?;
    let total = count(i64::try_from(total).unwrap_or(i64::MAX), "too many numbers")?;
    budget.charge(total.saturating_mul(16))?;
    let mut number = start;
    let mut all = Vec::with_capacity(total);
    for _ in 0..total {
        all.push(number);
        number = number.saturating_add(step);
    }
    Ok(all)
}

/// Like the shell's `seq`, both ends included.
fn seq(env: &Env, args: &Args<'_>) -> Answer {
    let (start, step, end) = match args.len() {
        1 => (1, if args.int(0) < 1 { -1 } else { 1 }, args.int(0)),
        2 => (args.int(0), if args.int(1) < args.int(0) { -1 } else { 1 }, args.int(1)),
        3 if args.int(2) < args.int(0) && args.int(1) > 0 => return Ok(Value::text("")),
        3 => (args.int(0), args.int(1), args.int(2)),
        _ => return Ok(Value::text("")),
    };
    let beyond = end.saturating_add(if end < start { -1 } else { 1 });
    let all = numbers(start, beyond, step, &env.budget)?;
    Ok(Value::text(all.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")))
}
