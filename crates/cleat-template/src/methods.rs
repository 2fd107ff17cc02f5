//! The methods of the two kinds of values that have any: times and versions.

use std::rc::Rc;

use crate::library::{Answer, Args, Ty};
use crate::limits::Fault;
use crate::value::{UintKind, Value};

#[derive(Clone, Copy)]
pub(crate) struct Method {
    pub(crate) params: &'static [Ty],
    pub(crate) call: fn(&Value, &Args<'_>) -> Answer,
}

pub(crate) fn find(receiver: &Value, name: &str) -> Option<Method> {
    match receiver {
        Value::Version(_) => of_version(name),
        Value::Time(_) => of_time(name),
        _ => None,
    }
}

fn of_version(name: &str) -> Option<Method> {
    let call: fn(&Value, &Args<'_>) -> Answer = match name {
        "Major" => |value, _| number(value, |version| version.major),
        "Minor" => |value, _| number(value, |version| version.minor),
        "Patch" => |value, _| number(value, |version| version.patch),
        "Prerelease" => |value, _| text(value, |version| version.prerelease.clone()),
        "Metadata" => |value, _| text(value, |version| version.metadata.clone()),
        "Original" => |value, _| text(value, |version| version.original.clone()),
        "String" => |value, _| text(value, ToString::to_string),
        "Compare" => {
            let call = |value: &Value, args: &Args<'_>| match (value, args.any(0)) {
                (Value::Version(left), Value::Version(right)) => {
                    Ok(Value::int(left.order(right) as i64))
                }
                _ => Err(Fault::text("a version was expected")),
            };
            return Some(Method { params: &[Ty::Any], call });
        }
        _ => return None,
    };
    Some(Method { params: &[], call })
}

fn number(value: &Value, part: fn(&Rc<crate::version::Version>) -> u64) -> Answer {
    match value {
        Value::Version(version) => Ok(Value::Uint(part(version), UintKind::Uint64)),
        _ => Err(Fault::text("a version was expected")),
    }
}

fn text(value: &Value, part: fn(&Rc<crate::version::Version>) -> String) -> Answer {
    match value {
        Value::Version(version) => Ok(Value::text(part(version))),
        _ => Err(Fault::text("a version was expected")),
    }
}

fn of_time(name: &str) -> Option<Method> {
    type Part = fn(&crate::time::Time) -> Value;
    macro_rules! part {
        ($read:expr) => {{
            fn call(value: &Value, _: &Args<'_>) -> Answer {
                let read: Part = $read;
                match value {
                    Value::Time(time) => Ok(read(time)),
                    _ => Err(Fault::text("a time was expected")),
                }
            }
            call
        }};
    }
    let call: fn(&Value, &Args<'_>) -> Answer = match name {
        "Year" => part!(|time| Value::int(i64::from(time.civil().year()))),
        "Day" => part!(|time| Value::int(i64::from(time.civil().day()))),
        "Hour" => part!(|time| Value::int(i64::from(time.civil().hour()))),
        "Minute" => part!(|time| Value::int(i64::from(time.civil().minute()))),
        "Second" => part!(|time| Value::int(i64::from(time.civil().second()))),
        "Nanosecond" => part!(|time| Value::int(i64::from(time.civil().subsec_nanosecond()))),
        "YearDay" => part!(|time| Value::int(i64::from(time.civil().date().day_of_year()))),
        "Unix" => part!(|time| Value::int64(time.unix())),
        "String" => part!(|time| Value::text(time.to_string())),
        "UTC" => part!(|time| Value::Time(time.utc())),
        "Format" => {
            let call = |value: &Value, args: &Args<'_>| match value {
                Value::Time(time) => Ok(Value::text(time.format(args.text(0)?))),
                _ => Err(Fault::text("a time was expected")),
            };
            return Some(Method { params: &[Ty::Text], call });
        }
        _ => return None,
    };
    Some(Method { params: &[], call })
}
