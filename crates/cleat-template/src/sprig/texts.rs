//! Strings: cutting, trimming, searching, joining.
//!
//! Positions count bytes, as in Go. A cut inside a character gives a string that is not UTF-8.

use super::cast::{count, to_int64, to_text, to_texts};
use super::words::{lower, upper};
use crate::library::{Answer, Args, Env, Table, Ty, fixed, variadic};
use crate::limits::{Budget, Fault};
use crate::print;
use crate::value::{Elem, Entries, Value};

const ONE: &[Ty] = &[Ty::Text];
const TWO: &[Ty] = &[Ty::Text, Ty::Text];

pub(super) const TABLE: Table = &[
    ("atoi", fixed(ONE, atoi)),
    ("cat", variadic(&[], Ty::Any, cat)),
    ("contains", fixed(TWO, |_, args| Ok(Value::Bool(args.text(1)?.contains(args.text(0)?))))),
    ("hasPrefix", fixed(TWO, |_, args| Ok(Value::Bool(args.text(1)?.starts_with(args.text(0)?))))),
    ("hasSuffix", fixed(TWO, |_, args| Ok(Value::Bool(args.text(1)?.ends_with(args.text(0)?))))),
    ("indent", fixed(&[Ty::Int, Ty::Text], |env, args| indent(env, args, ""))),
    ("join", fixed(&[Ty::Text, Ty::Any], join)),
    (
        "lower",
        fixed(ONE, |_, args| Ok(Value::text(args.text(0)?.chars().map(lower).collect::<String>()))),
    ),
    ("nindent", fixed(&[Ty::Int, Ty::Text], |env, args| indent(env, args, "\n"))),
    ("plural", fixed(&[Ty::Text, Ty::Text, Ty::Int], plural)),
    ("quote", variadic(&[], Ty::Any, quote)),
    ("repeat", fixed(&[Ty::Int, Ty::Text], repeat)),
    ("replace", fixed(&[Ty::Text, Ty::Text, Ty::Text], replace)),
    ("sortAlpha", fixed(&[Ty::Any], sort_alpha)),
    ("split", fixed(TWO, |env, args| split(env, args.text(0)?, -1, args.text(1)?))),
    ("splitList", fixed(TWO, split_list)),
    ("splitn", fixed(&[Ty::Text, Ty::Int, Ty::Text], splitn)),
    ("squote", variadic(&[], Ty::Any, squote)),
    ("substr", fixed(&[Ty::Int, Ty::Int, Ty::Text], substr)),
    ("toString", fixed(&[Ty::Any], to_string)),
    ("toStrings", fixed(&[Ty::Any], to_strings)),
    ("trim", fixed(ONE, |_, args| Ok(Value::text(args.text(0)?.trim())))),
    ("trimAll", fixed(TWO, trim_all)),
    ("trimPrefix", fixed(TWO, trim_prefix)),
    ("trimSuffix", fixed(TWO, trim_suffix)),
    ("trimall", fixed(TWO, trim_all)),
    ("trunc", fixed(&[Ty::Int, Ty::Text], trunc)),
    (
        "upper",
        fixed(ONE, |_, args| Ok(Value::text(args.text(0)?.chars().map(upper).collect::<String>()))),
    ),
];

/// Only decimal digits, unlike the other conversions; 0 for anything else.
fn atoi(_: &Env, args: &Args<'_>) -> Answer {
    Ok(Value::int(args.text(0)?.parse().unwrap_or(0)))
}

fn cat(env: &Env, args: &Args<'_>) -> Answer {
    let mut out = Vec::new();
    let values = args.from(0).iter().filter(|value| !value.is_nil());
    for (index, value) in values.enumerate() {
        if index > 0 {
            out.push(b' ');
        }
        out.extend(print::plain(value, &env.budget)?);
    }
    Ok(Value::bytes(out))
}

fn indent(env: &Env, args: &Args<'_>, before: &str) -> Answer {
    let text = args.text(1)?;
    let spaces = count(args.int(0), "strings: negative Repeat count")?;
    let lines = text.bytes().filter(|byte| *byte == b'\n').count() + 1;
    env.budget.charge(spaces.saturating_mul(lines))?;
    let pad = " ".repeat(spaces);
    Ok(Value::text(format!("{before}{pad}{}", text.replace('\n', &format!("\n{pad}")))))
}

fn join(env: &Env, args: &Args<'_>) -> Answer {
    let texts = to_texts(args.any(1), &env.budget)?;
    let separator = args.text(0)?;
    env.budget.charge(separator.len().saturating_mul(texts.len()))?;
    Ok(Value::text(texts.join(separator)))
}

fn plural(_: &Env, args: &Args<'_>) -> Answer {
    Ok(args.any(if args.int(2) == 1 { 0 } else { 1 }).clone())
}

fn quote(env: &Env, args: &Args<'_>) -> Answer {
    let mut out = Vec::new();
    for value in args.from(0).iter().filter(|value| !value.is_nil()) {
        let bytes = match value.string_bytes() {
            Some(bytes) => bytes.to_vec(),
            None => print::plain(value, &env.budget)?,
        };
        env.budget.charge(bytes.len().saturating_mul(2))?;
        out.push(print::quoted_bytes(&bytes));
    }
    Ok(Value::text(out.join(" ")))
}

fn squote(env: &Env, args: &Args<'_>) -> Answer {
    let mut out = Vec::new();
    for value in args.from(0).iter().filter(|value| !value.is_nil()) {
        out.push(format!("'{}'", print::plain_text(value, &env.budget)?));
    }
    Ok(Value::text(out.join(" ")))
}

fn repeat(env: &Env, args: &Args<'_>) -> Answer {
    let text = args.text(1)?;
    let times = count(args.int(0), "strings: negative Repeat count")?;
    env.budget.charge(text.len().saturating_mul(times))?;
    Ok(Value::text(text.repeat(times)))
}

fn replace(env: &Env, args: &Args<'_>) -> Answer {
    let (old, new, source) = (args.text(0)?, args.text(1)?, args.text(2)?);
    if old.is_empty() {
        env.budget.charge((source.chars().count() + 1).saturating_mul(new.len()))?;
    } else {
        env.budget.charge(source.matches(old).count().saturating_mul(new.len()))?;
    }
    env.budget.charge(source.len())?;
    Ok(Value::text(source.replace(old, new)))
}

fn sort_alpha(env: &Env, args: &Args<'_>) -> Answer {
    let mut texts = match args.any(0) {
        list @ Value::List(_) => to_texts(list, &env.budget)?,
        other => vec![to_text(other, &env.budget)?],
    };
    texts.sort();
    Ok(Value::strings(texts))
}

/// Go's `strings.SplitN`: all parts when `limit` is negative, none when it is 0.
fn parts<'a>(separator: &str, limit: i64, text: &'a str) -> Vec<&'a str> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    if limit == 0 {
        return Vec::new();
    }
    if !separator.is_empty() {
        return text.splitn(limit, separator).collect();
    }
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if parts.len() + 1 == limit {
            parts.push(rest);
            return parts;
        }
        let (first, after) = rest.split_at(c.len_utf8());
        parts.push(first);
        rest = after;
    }
    parts
}

fn charge_parts(budget: &Budget, parts: &[&str]) -> Result<(), Fault> {
    budget.steps(parts.len() as u64)?;
    budget.charge(parts.iter().map(|part| part.len() + 16).sum())
}

fn split(env: &Env, separator: &str, limit: i64, text: &str) -> Answer {
    let parts = parts(separator, limit, text);
    charge_parts(&env.budget, &parts)?;
    let entries: Entries = parts
        .into_iter()
        .enumerate()
        .map(|(index, part)| (format!("_{index}"), Value::text(part)))
        .collect();
    Ok(Value::typed_map(Elem::Str, entries))
}

fn split_list(env: &Env, args: &Args<'_>) -> Answer {
    let parts = parts(args.text(0)?, -1, args.text(1)?);
    charge_parts(&env.budget, &parts)?;
    Ok(Value::strings(parts))
}

fn splitn(env: &Env, args: &Args<'_>) -> Answer {
    split(env, args.text(0)?, args.int(1), args.text(2)?)
}

fn substr(_: &Env, args: &Args<'_>) -> Answer {
    let (start, end, bytes) = (args.int(0), args.int(1), args.bytes(2));
    let length = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
    let (start, end) = match (start, end) {
        (start, end) if start < 0 => (0, end),
        (start, end) if end < 0 || end > length => (start, length),
        both => both,
    };
    let cut = usize::try_from(start).ok().zip(usize::try_from(end).ok());
    match cut.and_then(|(start, end)| bytes.get(start..end)) {
        Some(bytes) => Ok(Value::bytes(bytes.to_vec())),
        None if end < 0 => {
            Err(Fault::text(format!("runtime error: slice bounds out of range [:{end}]")))
        }
        None if end > length => Err(Fault::text(format!(
            "runtime error: slice bounds out of range [:{end}] with length {length}"
        ))),
        None => {
            Err(Fault::text(format!("runtime error: slice bounds out of range [{start}:{end}]")))
        }
    }
}

fn to_string(env: &Env, args: &Args<'_>) -> Answer {
    match args.any(0) {
        text if text.string_bytes().is_some() => Ok(text.clone()),
        other => Ok(Value::text(to_text(other, &env.budget)?)),
    }
}

fn to_strings(env: &Env, args: &Args<'_>) -> Answer {
    match args.any(0) {
        Value::List(list) if list.elem == Elem::Str => Ok(args.any(0).clone()),
        other => Ok(Value::strings(to_texts(other, &env.budget)?)),
    }
}

fn trim_all(_: &Env, args: &Args<'_>) -> Answer {
    let cut: Vec<char> = args.text(0)?.chars().collect();
    Ok(Value::text(args.text(1)?.trim_matches(cut.as_slice())))
}

fn trim_prefix(_: &Env, args: &Args<'_>) -> Answer {
    let text = args.text(1)?;
    Ok(Value::text(text.strip_prefix(args.text(0)?).unwrap_or(text)))
}

fn trim_suffix(_: &Env, args: &Args<'_>) -> Answer {
    let text = args.text(1)?;
    Ok(Value::text(text.strip_suffix(args.text(0)?).unwrap_or(text)))
}

/// From the start, or from the end when negative.
fn trunc(_: &Env, args: &Args<'_>) -> Answer {
    let (wanted, bytes) = (to_int64(args.any(0)), args.bytes(1));
    let size = usize::try_from(wanted.unsigned_abs()).unwrap_or(usize::MAX);
    let cut = if wanted < 0 {
        bytes
            .len()
            .checked_sub(size)
            .filter(|start| *start > 0)
            .and_then(|start| bytes.get(start..))
    } else {
        bytes.get(..size)
    };
    Ok(Value::bytes(cut.unwrap_or(bytes).to_vec()))
}
