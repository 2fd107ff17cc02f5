//! Regular expressions. Both engines are of one family; what differs is translated: Go's `\d`,
//! `\w`, `\s` and `\b` know ASCII only, `\Q…\E` quotes, and a class has no set operations.
//!
//! The texts of syntax errors are this engine's own.

use regex::{Regex, RegexBuilder};

use crate::library::{Answer, Args, Env, Table, Ty, fixed};
use crate::limits::{Budget, Fault};
use crate::value::{Elem, Value};

mod translate;

const TWO: &[Ty] = &[Ty::Text, Ty::Text];
const THREE: &[Ty] = &[Ty::Text, Ty::Text, Ty::Text];
const COUNTED: &[Ty] = &[Ty::Text, Ty::Text, Ty::Int];

pub(super) const TABLE: Table = &[
    ("mustRegexFind", fixed(TWO, find)),
    ("mustRegexFindAll", fixed(COUNTED, find_all)),
    ("mustRegexMatch", fixed(TWO, matches)),
    ("mustRegexReplaceAll", fixed(THREE, replace)),
    ("mustRegexReplaceAllLiteral", fixed(THREE, replace_literal)),
    ("mustRegexSplit", fixed(COUNTED, split)),
    ("regexFind", fixed(TWO, |env, args| panicking(find(env, args), args))),
    ("regexFindAll", fixed(COUNTED, |env, args| panicking(find_all(env, args), args))),
    ("regexMatch", fixed(TWO, quiet_match)),
    ("regexQuoteMeta", fixed(&[Ty::Text], quote_meta)),
    ("regexReplaceAll", fixed(THREE, |env, args| panicking(replace(env, args), args))),
    (
        "regexReplaceAllLiteral",
        fixed(THREE, |env, args| panicking(replace_literal(env, args), args)),
    ),
    ("regexSplit", fixed(COUNTED, |env, args| panicking(split(env, args), args))),
];

fn compiled(pattern: &str) -> Result<Regex, Fault> {
    let complaint = |error: String| Fault::text(format!("error parsing regexp: {error}"));
    let translated = translate::to_rust(pattern).map_err(complaint)?;
    RegexBuilder::new(&translated).size_limit(1 << 20).nest_limit(100).build().map_err(|error| {
        // The engine draws a picture of the mistake; its last line says what it is.
        let text = error.to_string();
        let reason =
            text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
        let reason = match reason.as_str() {
            "unclosed group" => "missing closing )",
            "unopened group" => "unexpected )",
            other => other,
        };
        complaint(format!("{reason}: `{pattern}`"))
    })
}

/// Functions without `must` panic in Go, which puts the pattern in front.
fn panicking(answer: Answer, args: &Args<'_>) -> Answer {
    match answer {
        Err(Fault::Text(text)) if text.starts_with("error parsing regexp") => {
            let pattern = args.text(0)?;
            Err(Fault::text(format!("regexp: Compile(`{pattern}`): {text}")))
        }
        answer => answer,
    }
}

fn matches(_: &Env, args: &Args<'_>) -> Answer {
    Ok(Value::Bool(compiled(args.text(0)?)?.is_match(args.text(1)?)))
}

fn quiet_match(env: &Env, args: &Args<'_>) -> Answer {
    Ok(matches(env, args).unwrap_or(Value::Bool(false)))
}

fn find(_: &Env, args: &Args<'_>) -> Answer {
    let found = compiled(args.text(0)?)?;
    Ok(Value::text(found.find(args.text(1)?).map_or("", |found| found.as_str())))
}

fn limit(number: i64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn charge(budget: &Budget, parts: usize, bytes: usize) -> Result<(), Fault> {
    budget.steps(parts as u64)?;
    budget.charge(parts.saturating_mul(16).saturating_add(bytes))
}

fn find_all(env: &Env, args: &Args<'_>) -> Answer {
    let (pattern, text) = (compiled(args.text(0)?)?, args.text(1)?);
    let found: Vec<&str> =
        pattern.find_iter(text).take(limit(args.int(2))).map(|found| found.as_str()).collect();
    charge(&env.budget, found.len(), text.len())?;
    Ok(if found.is_empty() { Value::nil_list(Elem::Str) } else { Value::strings(found) })
}

fn replace(env: &Env, args: &Args<'_>) -> Answer {
    let (pattern, text, by) = (compiled(args.text(0)?)?, args.text(1)?, args.text(2)?);
    let mut out = String::new();
    let mut end = 0;
    for found in pattern.captures_iter(text) {
        let Some(whole) = found.get(0) else { continue };
        let before = out.len();
        out.push_str(text.get(end..whole.start()).unwrap_or_default());
        found.expand(by, &mut out);
        charge(&env.budget, 1, out.len() - before)?;
        end = whole.end();
    }
    out.push_str(text.get(end..).unwrap_or_default());
    Ok(Value::text(out))
}

fn replace_literal(env: &Env, args: &Args<'_>) -> Answer {
    let (pattern, text, by) = (compiled(args.text(0)?)?, args.text(1)?, args.text(2)?);
    let count = pattern.find_iter(text).count();
    charge(&env.budget, count, text.len().saturating_add(count.saturating_mul(by.len())))?;
    Ok(Value::text(pattern.replace_all(text, regex::NoExpand(by))))
}

fn split(env: &Env, args: &Args<'_>) -> Answer {
    let (pattern, text, wanted) = (args.text(0)?, args.text(1)?, args.int(2));
    let compiled = compiled(pattern)?;
    if wanted == 0 {
        return Ok(Value::nil_list(Elem::Str));
    }
    if !pattern.is_empty() && text.is_empty() {
        return Ok(Value::strings([""]));
    }
    let limit = limit(wanted);
    let mut parts = Vec::new();
    let (mut start, mut end) = (0, 0);
    for found in compiled.find_iter(text).take(limit) {
        if wanted > 0 && parts.len() == limit - 1 {
            break;
        }
        end = found.start();
        if found.end() != 0 {
            parts.push(text.get(start..end).unwrap_or_default());
        }
        start = found.end();
    }
    if end != text.len() {
        parts.push(text.get(start..).unwrap_or_default());
    }
    charge(&env.budget, parts.len(), text.len())?;
    Ok(Value::strings(parts))
}

fn quote_meta(_: &Env, args: &Args<'_>) -> Answer {
    let mut out = String::new();
    for c in args.text(0)?.chars() {
        if r"\.+*?()|[]{}^$".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    Ok(Value::text(out))
}
