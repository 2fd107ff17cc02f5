//! JSON as `encoding/json` reads and writes it.

use serde_json::Value as Json;

use crate::library::{Answer, Args, Env, Table, Ty, fixed};
use crate::limits::{Budget, Fault};
use crate::value::{Numbers, Value, from_json};

const ONE: &[Ty] = &[Ty::Any];
const TEXT: &[Ty] = &[Ty::Text];

pub(super) const TABLE: Table = &[
    ("fromJson", fixed(TEXT, |_, args| Ok(decode(args.bytes(0)).unwrap_or(Value::Nil)))),
    ("mustFromJson", fixed(TEXT, must_decode)),
    ("mustToJson", fixed(ONE, must_encode)),
    ("mustToPrettyJson", fixed(ONE, must_pretty)),
    ("mustToRawJson", fixed(ONE, raw)),
    ("toJson", fixed(ONE, |env, args| forgiving(must_encode(env, args)))),
    ("toPrettyJson", fixed(ONE, |env, args| forgiving(must_pretty(env, args)))),
    ("toRawJson", fixed(ONE, raw)),
];

/// # Errors
/// Text that is not JSON; the wording is Go's where it is the usual mistake.
pub(crate) fn decode(bytes: &[u8]) -> Result<Value, Fault> {
    match serde_json::from_slice::<Json>(bytes) {
        Ok(json) => Ok(from_json(&json, Numbers::Float)),
        Err(error) => Err(Fault::text(complaint(bytes, &error))),
    }
}

fn complaint(bytes: &[u8], error: &serde_json::Error) -> String {
    if error.is_eof() || bytes.iter().all(u8::is_ascii_whitespace) {
        return "unexpected end of JSON input".to_owned();
    }
    let before = bytes.split(|byte| *byte == b'\n').take(error.line().saturating_sub(1));
    let offset: usize = before.map(|line| line.len() + 1).sum();
    let at = (offset + error.column()).checked_sub(1).and_then(|at| bytes.get(at));
    match at {
        Some(byte) if bytes.first() == Some(byte) && error.column() == 1 => format!(
            "invalid character '{}' looking for beginning of value",
            char::from(*byte).escape_default()
        ),
        _ => format!("invalid JSON: {error}"),
    }
}

fn must_decode(_: &Env, args: &Args<'_>) -> Answer {
    decode(args.bytes(0))
}

/// Limits are never forgiven.
fn forgiving(answer: Answer) -> Answer {
    match answer {
        Err(Fault::Text(_)) => Ok(Value::text("")),
        other => other,
    }
}

fn must_encode(env: &Env, args: &Args<'_>) -> Answer {
    Ok(Value::text(encode(args.any(0), Escape::Html, None, &env.budget)?))
}

fn must_pretty(env: &Env, args: &Args<'_>) -> Answer {
    Ok(Value::text(encode(args.any(0), Escape::Html, Some("  "), &env.budget)?))
}

fn raw(env: &Env, args: &Args<'_>) -> Answer {
    Ok(Value::text(encode(args.any(0), Escape::Plain, None, &env.budget)?))
}

/// Whether `<`, `>` and `&` are written as escapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Escape {
    Html,
    Plain,
}

pub(crate) fn encode(
    value: &Value,
    escape: Escape,
    indent: Option<&str>,
    budget: &Budget,
) -> Result<String, Fault> {
    let mut writer = Writer { out: String::new(), escape, indent, budget };
    writer.value(value, 0)?;
    Ok(writer.out)
}

struct Writer<'a> {
    out: String,
    escape: Escape,
    indent: Option<&'a str>,
    budget: &'a Budget,
}

impl Writer<'_> {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), Fault> {
        let _level = self.budget.descend()?;
        self.budget.step()?;
        match value {
            Value::Nil => self.push("null"),
            Value::Bool(flag) => self.push(if *flag { "true" } else { "false" }),
            Value::Int(number, _) => self.push(&number.to_string()),
            Value::Uint(number, _) => self.push(&number.to_string()),
            Value::Float(number) => {
                let text = float(*number)?;
                self.push(&text)
            }
            Value::Str(text) => self.text(text),
            Value::Raw(bytes) => self.raw(bytes),
            Value::Time(time) => self.text(&time.rfc3339()),
            Value::Version(version) => self.text(&version.to_string()),
            Value::List(list) if list.nil => self.push("null"),
            Value::Map(map) if map.nil => self.push("null"),
            Value::List(list) if list.items().is_empty() => self.push("[]"),
            Value::Map(map) if map.entries().is_empty() => self.push("{}"),
            Value::List(list) => {
                self.push("[")?;
                for (index, item) in list.items().iter().enumerate() {
                    self.next(index, depth)?;
                    self.value(item, depth + 1)?;
                }
                self.line(depth)?;
                self.push("]")
            }
            Value::Map(map) => {
                let entries = map.entries();
                self.entries(entries.iter().map(|(key, item)| (key.as_str(), item)), depth)
            }
            Value::Struct(shape) => {
                let fields = shape.fields.iter().map(|(name, field)| (name.as_str(), field));
                self.entries(fields, depth)
            }
        }
    }

    fn entries<'v>(
        &mut self,
        entries: impl Iterator<Item = (&'v str, &'v Value)>,
        depth: usize,
    ) -> Result<(), Fault> {
        self.push("{")?;
        for (index, (key, item)) in entries.enumerate() {
            self.next(index, depth)?;
            self.text(key)?;
            self.push(if self.indent.is_some() { ": " } else { ":" })?;
            self.value(item, depth + 1)?;
        }
        self.line(depth)?;
        self.push("}")
    }

    fn next(&mut self, index: usize, depth: usize) -> Result<(), Fault> {
        if index > 0 {
            self.push(",")?;
        }
        self.line(depth + 1)
    }

    fn line(&mut self, depth: usize) -> Result<(), Fault> {
        match self.indent {
            Some(indent) => {
                self.push("\n")?;
                let indent = indent.repeat(depth);
                self.push(&indent)
            }
            None => Ok(()),
        }
    }

    fn push(&mut self, text: &str) -> Result<(), Fault> {
        self.budget.charge(text.len())?;
        self.out.push_str(text);
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<(), Fault> {
        self.raw(text.as_bytes())
    }

    /// A string; each byte that is not part of a character is written as a replacement.
    fn raw(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.budget.charge(bytes.len())?;
        self.out.push('"');
        for chunk in bytes.utf8_chunks() {
            self.characters(chunk.valid());
            for _ in chunk.invalid() {
                self.out.push_str("\\ufffd");
            }
        }
        self.out.push('"');
        Ok(())
    }

    fn characters(&mut self, text: &str) {
        for c in text.chars() {
            match c {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                '\u{8}' => self.out.push_str("\\b"),
                '\u{c}' => self.out.push_str("\\f"),
                '<' | '>' | '&' if self.escape == Escape::Html => {
                    self.out += &format!("\\u{:04x}", u32::from(c));
                }
                c if c < ' ' || c == '\u{2028}' || c == '\u{2029}' => {
                    self.out += &format!("\\u{:04x}", u32::from(c));
                }
                c => self.out.push(c),
            }
        }
    }
}

/// As JavaScript writes numbers: no exponent between 1e-6 and 1e21.
fn float(number: f64) -> Result<String, Fault> {
    if !number.is_finite() {
        let shown = print_float(number);
        return Err(Fault::text(format!("json: unsupported value: {shown}")));
    }
    let size = number.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let text = format!("{number:e}");
        return Ok(match text.split_once('e') {
            Some((mantissa, exponent)) if !exponent.starts_with('-') => {
                format!("{mantissa}e+{exponent}")
            }
            _ => text,
        });
    }
    Ok(format!("{number}"))
}

fn print_float(number: f64) -> &'static str {
    if number.is_nan() {
        "NaN"
    } else if number > 0.0 {
        "+Inf"
    } else {
        "-Inf"
    }
}
