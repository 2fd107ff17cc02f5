//! Words: case, initials, abbreviation, wrapping.

use crate::library::{Answer, Args, Env, Table, Ty, fixed};
use crate::limits::Fault;
use crate::value::Value;

mod case;

const ONE: &[Ty] = &[Ty::Text];

pub(super) const TABLE: Table = &[
    ("abbrev", fixed(&[Ty::Int, Ty::Text], abbrev)),
    ("abbrevboth", fixed(&[Ty::Int, Ty::Int, Ty::Text], abbrev_both)),
    ("camelcase", fixed(ONE, |_, args| Ok(Value::text(case::pascal(args.text(0)?))))),
    ("initials", fixed(ONE, initials)),
    ("kebabcase", fixed(ONE, |_, args| Ok(Value::text(case::lower(args.text(0)?, '-'))))),
    ("nospace", fixed(ONE, nospace)),
    ("snakecase", fixed(ONE, |_, args| Ok(Value::text(case::lower(args.text(0)?, '_'))))),
    ("swapcase", fixed(ONE, swapcase)),
    ("title", fixed(ONE, title)),
    ("untitle", fixed(ONE, untitle)),
    ("wrap", fixed(&[Ty::Int, Ty::Text], wrap)),
    ("wrapWith", fixed(&[Ty::Int, Ty::Text, Ty::Text], wrap_with)),
];

/// One character for one character, as Go has it: `ß` has no capital of its own.
pub(super) fn upper(c: char) -> char {
    let mut upper = c.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(upper), None) => upper,
        _ => c,
    }
}

pub(super) fn lower(c: char) -> char {
    c.to_lowercase().next().unwrap_or(c)
}

/// The first letter of every word; letters, digits and underscores make up words.
fn title(_: &Env, args: &Args<'_>) -> Answer {
    let mut before = ' ';
    let mut out = String::new();
    for c in args.text(0)?.chars() {
        let separates = !(before.is_alphanumeric() || before == '_')
            && (before.is_ascii() || before.is_whitespace());
        out.push(if separates { upper(c) } else { c });
        before = c;
    }
    Ok(Value::text(out))
}

fn untitle(_: &Env, args: &Args<'_>) -> Answer {
    let mut next = true;
    let mut out = String::new();
    for c in args.text(0)?.chars() {
        out.push(if next && !c.is_whitespace() { lower(c) } else { c });
        next = c.is_whitespace();
    }
    Ok(Value::text(out))
}

fn swapcase(_: &Env, args: &Args<'_>) -> Answer {
    let mut out = String::new();
    for c in args.text(0)?.chars() {
        out.push(match c {
            c if c.is_uppercase() => lower(c),
            c if c.is_lowercase() => upper(c),
            c => c,
        });
    }
    Ok(Value::text(out))
}

/// Byte by byte, as the Go library does, so only ASCII comes out right.
fn initials(_: &Env, args: &Args<'_>) -> Answer {
    let mut out = String::new();
    let mut gap = true;
    for byte in args.bytes(0) {
        let c = char::from(*byte);
        if c.is_whitespace() {
            gap = true;
        } else if gap {
            out.push(c);
            gap = false;
        }
    }
    Ok(Value::text(out))
}

fn nospace(_: &Env, args: &Args<'_>) -> Answer {
    let bytes = args.bytes(0);
    let is_space = |byte: &u8| char::from(*byte).is_whitespace();
    if !bytes.iter().any(is_space) {
        return Ok(args.any(0).clone());
    }
    let kept = bytes.iter().filter(|byte| !is_space(byte)).map(|byte| char::from(*byte));
    Ok(Value::text(kept.collect::<String>()))
}

fn abbrev(_: &Env, args: &Args<'_>) -> Answer {
    let width = args.int(0);
    if width < 4 {
        return Ok(args.any(1).clone());
    }
    Ok(Value::bytes(abbreviated(args.bytes(1), 0, width)))
}

fn abbrev_both(_: &Env, args: &Args<'_>) -> Answer {
    let (left, right) = (args.int(0), args.int(1));
    if right < 4 || (left > 0 && right < 7) {
        return Ok(args.any(2).clone());
    }
    Ok(Value::bytes(abbreviated(args.bytes(2), left, right)))
}

/// At most `width` bytes, with dots where something was left out around `offset`.
fn abbreviated(bytes: &[u8], offset: i64, width: i64) -> Vec<u8> {
    let length = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
    let cut = |from: i64, to: i64| {
        let range = usize::try_from(from).unwrap_or(0)..usize::try_from(to).unwrap_or(0);
        bytes.get(range).unwrap_or_default()
    };
    if length <= width {
        return bytes.to_vec();
    }
    let mut offset = offset.min(length);
    if length - offset < width - 3 {
        offset = length - (width - 3);
    }
    if offset <= 4 {
        return [cut(0, width - 3), b"..."].concat();
    }
    if width < 7 {
        return Vec::new();
    }
    if offset + width - 3 < length {
        let rest = cut(offset, length);
        return [b"...", abbreviated(rest, 0, width - 3).as_slice()].concat();
    }
    [b"...", cut(length - (width - 3), length)].concat()
}

fn wrap(env: &Env, args: &Args<'_>) -> Answer {
    wrapped(env, args.bytes(1), args.int(0), "\n", false)
}

fn wrap_with(env: &Env, args: &Args<'_>) -> Answer {
    let separator = args.text(1)?;
    let separator = if separator.is_empty() { "\n" } else { separator };
    wrapped(env, args.bytes(2), args.int(0), separator, true)
}

fn wrapped(env: &Env, bytes: &[u8], width: i64, line: &str, long_words: bool) -> Answer {
    let width = usize::try_from(width).unwrap_or(1).max(1);
    let line = line.as_bytes();
    let mut out = Vec::new();
    let mut rest = bytes;
    while rest.len() > width {
        env.budget.charge(line.len())?;
        if let Some(after) = rest.strip_prefix(b" ") {
            rest = after;
            continue;
        }
        let window = rest.get(..=width).unwrap_or(rest);
        let space = match window.iter().rposition(|byte| *byte == b' ') {
            Some(space) => Some((space, 1)),
            None if long_words => Some((width, 0)),
            None => {
                let beyond = rest.get(width..).unwrap_or_default();
                beyond.iter().position(|byte| *byte == b' ').map(|space| (space + width, 1))
            }
        };
        let Some((end, skip)) = space else {
            out.extend_from_slice(rest);
            rest = &[];
            break;
        };
        out.extend_from_slice(rest.get(..end).unwrap_or_default());
        out.extend_from_slice(line);
        rest = rest.get(end + skip..).unwrap_or_default();
    }
    out.extend_from_slice(rest);
    Ok::<_, Fault>(Value::bytes(out))
}
