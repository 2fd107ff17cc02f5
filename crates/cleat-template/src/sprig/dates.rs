//! Dates. The present is handed in; the zone "Local" is UTC.

use crate::library::{Answer, Args, Env, Table, Ty, fixed};
use crate::limits::Fault;
use crate::time::{self, Time, duration_text, parse_duration};
use crate::value::{IntKind, Value};

const ANY: &[Ty] = &[Ty::Any];
const MODIFY: &[Ty] = &[Ty::Text, Ty::Time];
const IN_ZONE: &[Ty] = &[Ty::Text, Ty::Any, Ty::Text];

pub(super) const TABLE: Table = &[
    ("ago", fixed(ANY, ago)),
    ("date", fixed(&[Ty::Text, Ty::Any], |env, args| format(env, args.text(0)?, args.any(1), ""))),
    ("dateInZone", fixed(IN_ZONE, in_zone)),
    ("dateModify", fixed(MODIFY, modify)),
    ("date_in_zone", fixed(IN_ZONE, in_zone)),
    ("date_modify", fixed(MODIFY, modify)),
    ("duration", fixed(ANY, duration)),
    ("durationRound", fixed(ANY, duration_round)),
    ("htmlDate", fixed(ANY, |env, args| format(env, "2006-01-02", args.any(0), ""))),
    ("htmlDateInZone", fixed(&[Ty::Any, Ty::Text], html_in_zone)),
    ("mustDateModify", fixed(MODIFY, must_modify)),
    ("mustToDate", fixed(&[Ty::Text, Ty::Text], must_to_date)),
    ("must_date_modify", fixed(MODIFY, must_modify)),
    ("now", fixed(&[], |env, _| Ok(Value::Time(env.now.clone())))),
    ("toDate", fixed(&[Ty::Text, Ty::Text], to_date)),
    ("unixEpoch", fixed(&[Ty::Time], unix_epoch)),
];

/// Times as they are, whole numbers as seconds since 1970, everything else as the present.
fn moment(env: &Env, value: &Value) -> Time {
    match value {
        Value::Time(time) => time.clone(),
        Value::Int(seconds, _) => Time::from_unix(*seconds),
        _ => env.now.clone(),
    }
}

fn format(env: &Env, layout: &str, value: &Value, zone: &str) -> Answer {
    env.budget.charge(layout.len().saturating_mul(9))?;
    Ok(Value::text(moment(env, value).in_zone(zone).format(layout)))
}

fn in_zone(env: &Env, args: &Args<'_>) -> Answer {
    format(env, args.text(0)?, args.any(1), args.text(2)?)
}

fn html_in_zone(env: &Env, args: &Args<'_>) -> Answer {
    format(env, "2006-01-02", args.any(0), args.text(1)?)
}

fn time<'a>(args: &'a Args<'_>, index: usize) -> Result<&'a Time, Fault> {
    match args.any(index) {
        Value::Time(time) => Ok(time),
        _ => Err(Fault::text("a time was expected")),
    }
}

fn modify(_: &Env, args: &Args<'_>) -> Answer {
    let time = time(args, 1)?;
    Ok(Value::Time(match parse_duration(args.text(0)?) {
        Ok(nanoseconds) => time.add(nanoseconds),
        Err(_) => time.clone(),
    }))
}

fn must_modify(_: &Env, args: &Args<'_>) -> Answer {
    let nanoseconds = parse_duration(args.text(0)?).map_err(Fault::Text)?;
    Ok(Value::Time(time(args, 1)?.add(nanoseconds)))
}

fn to_date(_: &Env, args: &Args<'_>) -> Answer {
    let time = time::parse(args.text(0)?, args.text(1)?);
    Ok(Value::Time(time.unwrap_or_else(|_| Time::zero())))
}

fn must_to_date(_: &Env, args: &Args<'_>) -> Answer {
    Ok(Value::Time(time::parse(args.text(0)?, args.text(1)?).map_err(Fault::Text)?))
}

fn unix_epoch(_: &Env, args: &Args<'_>) -> Answer {
    Ok(Value::text(time(args, 0)?.unix().to_string()))
}

const SECOND: i64 = 1_000_000_000;

fn ago(env: &Env, args: &Args<'_>) -> Answer {
    let passed = env.now.since(&moment(env, args.any(0)));
    let half = if passed < 0 { -SECOND / 2 } else { SECOND / 2 };
    let seconds = passed.saturating_add(half) / SECOND;
    Ok(Value::text(duration_text(seconds.saturating_mul(SECOND))))
}

/// A number of seconds; an `int` is none of Sprig's business here.
fn duration(_: &Env, args: &Args<'_>) -> Answer {
    let seconds = match args.any(0) {
        Value::Str(text) => text.parse().unwrap_or(0),
        Value::Int(seconds, IntKind::Int64) => *seconds,
        _ => 0,
    };
    Ok(Value::text(duration_text(seconds.wrapping_mul(SECOND))))
}

fn duration_round(env: &Env, args: &Args<'_>) -> Answer {
    let nanoseconds = match args.any(0) {
        Value::Str(text) => parse_duration(text).unwrap_or(0),
        Value::Int(nanoseconds, IntKind::Int64) => *nanoseconds,
        Value::Time(time) => env.now.since(time),
        _ => 0,
    };
    let all = nanoseconds.unsigned_abs();
    let second = SECOND.unsigned_abs();
    let hour = 3600 * second;
    let units = [
        (hour * 24 * 365, "y"),
        (hour * 24 * 30, "mo"),
        (hour * 24, "d"),
        (hour, "h"),
        (60 * second, "m"),
        (second, "s"),
    ];
    let unit = units.iter().find(|(size, _)| all > *size);
    Ok(Value::text(unit.map_or("0s".to_owned(), |(size, name)| format!("{}{name}", all / size))))
}
