//! Go's own functions: logic, comparison, indexing, printing and escaping.

use crate::library::{Answer, Args, Env, Slot, Table, Ty, reflective, variadic};
use crate::limits::Fault;
use crate::print;
use crate::value::{Elem, UintKind, Value};

mod compare;

const ONE: &[Ty] = &[Ty::Reflect];
const TWO: &[Ty] = &[Ty::Reflect, Ty::Reflect];

pub(crate) const TABLE: Table = &[
    ("and", reflective(ONE, Some(Ty::Reflect), last)),
    ("call", reflective(ONE, Some(Ty::Reflect), last)),
    ("eq", reflective(ONE, Some(Ty::Reflect), compare::eq)),
    ("ge", reflective(TWO, None, compare::ge)),
    ("gt", reflective(TWO, None, compare::gt)),
    ("html", variadic(&[], Ty::Any, html)),
    ("index", reflective(ONE, Some(Ty::Reflect), index)),
    ("js", variadic(&[], Ty::Any, js)),
    ("le", reflective(TWO, None, compare::le)),
    ("len", reflective(ONE, None, len)),
    ("lt", reflective(TWO, None, compare::lt)),
    ("ne", reflective(TWO, None, compare::ne)),
    ("not", reflective(ONE, None, not)),
    ("or", reflective(ONE, Some(Ty::Reflect), last)),
    ("print", variadic(&[], Ty::Any, print)),
    ("printf", variadic(&[Ty::Text], Ty::Any, printf)),
    ("println", variadic(&[], Ty::Any, println)),
    ("slice", reflective(ONE, Some(Ty::Reflect), slice)),
    ("urlquery", variadic(&[], Ty::Any, urlquery)),
];

/// `and`, `or` and `call` are handled where their arguments are still unevaluated.
fn last(_: &Env, slots: &[Slot]) -> Result<Slot, Fault> {
    Ok(slots.last().cloned().unwrap_or(Slot::NOTHING))
}

fn not(_: &Env, slots: &[Slot]) -> Result<Slot, Fault> {
    Ok(Slot::new(Value::Bool(!slots.first().is_some_and(|slot| slot.value.truth()))))
}

fn len(_: &Env, slots: &[Slot]) -> Result<Slot, Fault> {
    let slot = slots.first().unwrap_or(&Slot::NOTHING);
    let length = match &slot.value {
        Value::List(list) => list.items().len(),
        Value::Map(map) => map.entries().len(),
        Value::Nil if slot.boxed => return Err(Fault::text("len of nil pointer")),
        Value::Nil => return Err(Fault::text("reflect: call of reflect.Value.Type on zero Value")),
        other => match other.string_bytes() {
            Some(bytes) => bytes.len(),
            None => return Err(Fault::text(format!("len of type {}", pointed(other)))),
        },
    };
    Ok(Slot::new(Value::length(length)))
}

/// The type of what a value is or points to.
fn pointed(value: &Value) -> String {
    value.type_name().trim_start_matches('*').to_owned()
}

fn index(_: &Env, slots: &[Slot]) -> Result<Slot, Fault> {
    let Some((item, indexes)) = slots.split_first() else { return Ok(Slot::NOTHING) };
    if item.value.is_nil() {
        return Err(Fault::text("index of untyped nil"));
    }
    let mut item = Slot::new(item.value.clone());
    for index in indexes {
        item = match &item.value {
            Value::List(list) => {
                let at = position(index, list.items().len())?;
                let Some(value) = list.items().get(at) else { return Err(past_end(at, "slice")) };
                Slot::boxed(value.clone(), list.elem == Elem::Any)
            }
            Value::Map(map) => {
                let key = match &index.value {
                    Value::Str(key) => key,
                    Value::Nil => {
                        return Err(Fault::text("value is nil; should be of type string"));
                    }
                    other => {
                        let given = other.type_name();
                        return Err(Fault::text(format!(
                            "value has type {given}; should be string"
                        )));
                    }
                };
                let value = map.get(key).unwrap_or_else(|| map.elem.zero());
                Slot::boxed(value, map.elem == Elem::Any)
            }
            Value::Nil => return Err(Fault::text("index of nil pointer")),
            other => match other.string_bytes() {
                Some(bytes) => {
                    let at = position(index, bytes.len())?;
                    let Some(byte) = bytes.get(at) else { return Err(past_end(at, "string")) };
                    Slot::new(Value::Uint(u64::from(*byte), UintKind::Uint8))
                }
                None => {
                    let given = pointed(other);
                    return Err(Fault::text(format!("can't index item of type {given}")));
                }
            },
        };
    }
    Ok(item)
}

/// Go checks against the capacity first and lets reflection complain about the rest.
fn past_end(_: usize, what: &str) -> Fault {
    Fault::text(format!("reflect: {what} index out of range"))
}

fn position(index: &Slot, limit: usize) -> Result<usize, Fault> {
    let at = match &index.value {
        Value::Int(at, _) => *at,
        Value::Uint(at, _) => i64::try_from(*at).unwrap_or(-1),
        Value::Nil => return Err(Fault::text("cannot index slice/array with nil")),
        other => {
            let given = other.type_name();
            return Err(Fault::text(format!("cannot index slice/array with type {given}")));
        }
    };
    match usize::try_from(at) {
        Ok(position) if position <= limit => Ok(position),
        _ => Err(Fault::text(format!("index out of range: {at}"))),
    }
}

fn slice(_: &Env, slots: &[Slot]) -> Result<Slot, Fault> {
    let Some((item, indexes)) = slots.split_first() else { return Ok(Slot::NOTHING) };
    if item.value.is_nil() {
        return Err(Fault::text("slice of untyped nil"));
    }
    if indexes.len() > 3 {
        return Err(Fault::text(format!("too many slice indexes: {}", indexes.len())));
    }
    let length = match &item.value {
        Value::List(list) => list.items().len(),
        other => match other.string_bytes() {
            Some(_) if indexes.len() == 3 => {
                return Err(Fault::text("cannot 3-index slice a string"));
            }
            Some(bytes) => bytes.len(),
            None => {
                let given = other.type_name();
                return Err(Fault::text(format!("can't slice item of type {given}")));
            }
        },
    };
    let mut bounds = [0, length, length];
    for (bound, index) in bounds.iter_mut().zip(indexes) {
        *bound = position(index, length)?;
    }
    let [start, end, capacity] = bounds;
    for (low, high) in [(start, end), (end, capacity)] {
        if low > high {
            return Err(Fault::text(format!("invalid slice index: {low} > {high}")));
        }
    }
    Ok(Slot::new(match &item.value {
        Value::List(list) => {
            Value::typed_list(list.elem, list.items().get(start..end).unwrap_or_default().to_vec())
        }
        other => {
            let bytes = other.string_bytes().unwrap_or_default();
            Value::bytes(bytes.get(start..end).unwrap_or_default().to_vec())
        }
    }))
}

fn print(env: &Env, args: &Args<'_>) -> Answer {
    Ok(Value::bytes(print::sprint(args.from(0), &env.budget)?))
}

fn println(env: &Env, args: &Args<'_>) -> Answer {
    Ok(Value::bytes(print::sprintln(args.from(0), &env.budget)?))
}

fn printf(env: &Env, args: &Args<'_>) -> Answer {
    Ok(Value::bytes(print::sprintf(args.text(0)?, args.from(1), &env.budget)?))
}

/// The arguments of an escaping function as one text.
fn joined(env: &Env, args: &Args<'_>) -> Result<String, Fault> {
    Ok(String::from_utf8_lossy(&joined_bytes(env, args)?).into_owned())
}

fn joined_bytes(env: &Env, args: &Args<'_>) -> Result<Vec<u8>, Fault> {
    let shown: Vec<Value> = args
        .from(0)
        .iter()
        .map(|value| if value.is_nil() { Value::text("<no value>") } else { value.clone() })
        .collect();
    print::sprint(&shown, &env.budget)
}

fn html(env: &Env, args: &Args<'_>) -> Answer {
    let mut out = String::new();
    for c in joined(env, args)?.chars() {
        match c {
            '\0' => out.push('\u{fffd}'),
            '"' => out.push_str("&#34;"),
            '\'' => out.push_str("&#39;"),
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            c => out.push(c),
        }
    }
    Ok(Value::text(out))
}

fn js(env: &Env, args: &Args<'_>) -> Answer {
    let mut out = String::new();
    for c in joined(env, args)?.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\'' => out.push_str("\\'"),
            '"' => out.push_str("\\\""),
            '<' | '>' | '&' | '=' => out += &format!("\\u{:04X}", u32::from(c)),
            c if c < ' ' => out += &format!("\\u{:04X}", u32::from(c)),
            c if c.is_ascii() || cleat_dialect::quote::is_printable(c) => out.push(c),
            c => out += &format!("\\u{:04X}", u32::from(c)),
        }
    }
    Ok(Value::text(out))
}

fn urlquery(env: &Env, args: &Args<'_>) -> Answer {
    Ok(Value::text(query_escape(&joined_bytes(env, args)?)))
}

fn query_escape(bytes: &[u8]) -> String {
    let mut out = String::new();
    for byte in bytes {
        match *byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.push(char::from(*byte));
            }
            b' ' => out.push('+'),
            _ => out += &format!("%{byte:02X}"),
        }
    }
    out
}
