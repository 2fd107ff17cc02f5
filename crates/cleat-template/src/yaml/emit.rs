//! Writing YAML in block style, two spaces deep, with no line ever broken.

use std::cmp::Ordering;

use serde_json::{Map, Value};

use cleat_dialect::quote;

use super::scalar::stays_text;

/// The text ends with a line break.
pub(crate) fn emit(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(entries) if !entries.is_empty() => mapping(&mut out, entries, 0),
        Value::Array(items) if !items.is_empty() => sequence(&mut out, items, 0),
        scalar_value => {
            out.push_str(&scalar(scalar_value, 2));
            // A block scalar that keeps its line breaks has written them already.
            if !out.ends_with('\n') {
                out.push('\n');
            }
        }
    }
    out
}

fn pad(out: &mut String, depth: usize) {
    out.extend(std::iter::repeat_n(' ', depth));
}

/// Expects to be where the first key goes.
fn mapping(out: &mut String, entries: &Map<String, Value>, depth: usize) {
    let mut entries: Vec<_> = entries.iter().collect();
    entries.sort_by(|(left, _), (right, _)| key_order(left, right));
    for (index, (key, value)) in entries.into_iter().enumerate() {
        if index > 0 {
            pad(out, depth);
        }
        if key.contains('\n') || key.len() > 128 {
            out.push_str("? ");
            out.push_str(&text(key, depth + 2, Place::Value));
            end_line(out);
            pad(out, depth);
            out.push(':');
        } else {
            out.push_str(&text(key, depth + 2, Place::Key));
            out.push(':');
        }
        node(out, value, depth);
    }
}

fn sequence(out: &mut String, items: &[Value], depth: usize) {
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            pad(out, depth);
        }
        out.push('-');
        match item {
            Value::Object(entries) if !entries.is_empty() => {
                out.push(' ');
                mapping(out, entries, depth + 2);
            }
            Value::Array(items) if !items.is_empty() => {
                out.push(' ');
                sequence(out, items, depth + 2);
            }
            scalar => node(out, scalar, depth),
        }
    }
}

/// What follows a `key:` or a `-`, up to the end of its last line.
fn node(out: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Object(entries) if !entries.is_empty() => {
            out.push('\n');
            pad(out, depth + 2);
            mapping(out, entries, depth + 2);
        }
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            pad(out, depth + 2);
            sequence(out, items, depth + 2);
        }
        scalar_value => {
            out.push(' ');
            out.push_str(&scalar(scalar_value, depth + 2));
            end_line(out);
        }
    }
}

fn end_line(out: &mut String) {
    if !out.ends_with('\n') {
        out.push('\n');
    }
}

fn scalar(value: &Value, depth: usize) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => quote::number_text(number),
        Value::String(string) => text(string, depth, Place::Value),
        Value::Array(_) => "[]".to_owned(),
        Value::Object(_) => "{}".to_owned(),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Key,
    Value,
}

fn text(text: &str, depth: usize, place: Place) -> String {
    let shape = Shape::of(text);
    if text.contains('\n') {
        if place == Place::Key || !shape.block {
            return double_quoted(text);
        }
        return literal(text, depth);
    }
    if !stays_text(text) {
        return double_quoted(text);
    }
    if shape.plain {
        return text.to_owned();
    }
    if shape.single { format!("'{}'", text.replace('\'', "''")) } else { double_quoted(text) }
}

/// Which styles can hold a text.
struct Shape {
    plain: bool,
    single: bool,
    block: bool,
}

impl Shape {
    fn of(text: &str) -> Self {
        let mut indicators = text.starts_with("---") || text.starts_with("...");
        let (mut special, mut tabs) = (false, false);
        let (mut break_space, mut space_break) = (false, false);
        let mut before = None;
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            let next_blank = chars.peek().is_none_or(|next| matches!(next, ' ' | '\t'));
            indicators |= match (c, before) {
                ('#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>', None) => true,
                ('\'' | '"' | '%' | '@' | '`', None) => true,
                ('?' | '-', None) | (':', _) => next_blank,
                ('#', Some(before)) => {
                    matches!(
                        before,
                        ' ' | '\t' | '\n' | '\r' | '\0' | '\u{85}' | '\u{2028}' | '\u{2029}'
                    )
                }
                _ => false,
            };
            tabs |= c == '\t';
            special |= c != '\t' && !is_printable(c);
            break_space |= c == ' ' && before.is_some_and(is_break);
            space_break |= is_break(c) && before == Some(' ');
            before = Some(c);
        }
        let edge = |c: Option<char>| c.is_some_and(|c| c == ' ' || is_break(c));
        let edges = edge(text.chars().next()) || edge(text.chars().next_back());
        let awkward = space_break || tabs || special || break_space;
        Self {
            plain: !edges && !awkward && !indicators && !text.chars().any(is_break),
            single: !awkward,
            block: !(space_break || special || text.ends_with(' ')),
        }
    }
}

fn is_break(c: char) -> bool {
    matches!(c, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Characters beyond the basic plane count as not printable here.
fn is_printable(c: char) -> bool {
    matches!(c, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}')
        && c != '\u{feff}'
}

fn literal(text: &str, depth: usize) -> String {
    let mut out = String::from("|");
    if text.starts_with([' ', '\n']) {
        out.push('2');
    }
    let body = text.trim_end_matches('\n');
    match text.len() - body.len() {
        0 => out.push('-'),
        1 if !body.is_empty() => {}
        _ => out.push('+'),
    }
    out.push('\n');
    for line in text.split_inclusive('\n') {
        if line != "\n" {
            pad(&mut out, depth);
        }
        out.push_str(line);
    }
    out
}

fn double_quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        let escape = match c {
            '\0' => '0',
            '\u{7}' => 'a',
            '\u{8}' => 'b',
            '\t' => 't',
            '\n' => 'n',
            '\u{b}' => 'v',
            '\u{c}' => 'f',
            '\r' => 'r',
            '\u{1b}' => 'e',
            '"' | '\\' => c,
            '\u{85}' => 'N',
            '\u{2028}' => 'L',
            '\u{2029}' => 'P',
            c if is_printable(c) => {
                out.push(c);
                continue;
            }
            c => {
                let code = u32::from(c);
                out += &match code {
                    0..=0xff => format!("\\x{code:02X}"),
                    0x100..=0xffff => format!("\\u{code:04X}"),
                    _ => format!("\\U{code:08X}"),
                };
                continue;
            }
        };
        out.push('\\');
        out.push(escape);
    }
    out.push('"');
    out
}

/// Keys sort as people count: `a2` before `a10`, and letters after everything else.
fn key_order(left: &str, right: &str) -> Ordering {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    let mut digits = false;
    for (at, (ours, theirs)) in left.iter().zip(&right).enumerate() {
        if ours == theirs {
            digits = ours.is_numeric();
            continue;
        }
        let before = |first: bool| if first { Ordering::Less } else { Ordering::Greater };
        match (ours.is_alphabetic(), theirs.is_alphabetic()) {
            (true, true) => return ours.cmp(theirs),
            (true, false) => return before(digits),
            (false, true) => return before(!digits),
            (false, false) => {}
        }
        let zero = *ours == '0' || *theirs == '0';
        let started = left.iter().take(at).rev().take_while(|c| c.is_numeric()).any(|c| *c != '0');
        let seed = u64::from(zero && started);
        let ((our_number, our_end), (their_number, their_end)) =
            (counted(&left, at, seed), counted(&right, at, seed));
        return our_number.cmp(&their_number).then(our_end.cmp(&their_end)).then(ours.cmp(theirs));
    }
    left.len().cmp(&right.len())
}

fn counted(chars: &[char], from: usize, seed: u64) -> (u64, usize) {
    let mut number = seed;
    let mut end = from;
    for digit in chars.iter().skip(from).map_while(|c| c.to_digit(10)) {
        number = number.wrapping_mul(10).wrapping_add(u64::from(digit));
        end += 1;
    }
    (number, end)
}
