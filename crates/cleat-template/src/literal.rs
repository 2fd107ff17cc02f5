//! Go's literals: quoted strings, character constants and numbers.
//!
//! Imaginary numbers are not known; no policy has a use for them.

use cleat_dialect::quote;

/// A number means whatever its context asks for, as long as its value allows it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Number {
    pub(crate) text: String,
    pub(crate) int: Option<i64>,
    pub(crate) uint: Option<u64>,
    pub(crate) float: Option<f64>,
}

impl Number {
    /// Whether the spelling says that this is a float even if its value is whole.
    pub(crate) fn looks_like_float(&self) -> bool {
        let hex = self.text.len() > 2
            && (self.text.starts_with("0x") || self.text.starts_with("0X"))
            && !self.text.contains(['p', 'P']);
        self.float.is_some()
            && !hex
            && !self.text.starts_with('\'')
            && self.text.contains(['.', 'e', 'E', 'p', 'P'])
    }
}

pub(crate) fn number(text: &str) -> Result<Number, String> {
    let mut number =
        Number { text: text.to_owned(), int: parse_int(text), uint: parse_uint(text), float: None };
    if number.int == Some(0) {
        number.uint = Some(0);
    }
    if let Some(int) = number.int {
        number.float = Some(int as f64);
    } else if let Some(uint) = number.uint {
        number.float = Some(uint as f64);
    } else if let Some(float) = parse_float(text) {
        if !text.contains(['.', 'e', 'E', 'p', 'P']) {
            return Err(format!("integer overflow: {}", quote::quoted(text)));
        }
        number.float = Some(float);
        number.int = Some(float as i64).filter(|int| *int as f64 == float);
        number.uint = Some(float as u64).filter(|uint| *uint as f64 == float);
    } else {
        return Err(format!("illegal number syntax: {}", quote::quoted(text)));
    }
    Ok(number)
}

pub(crate) fn character(text: &str) -> Result<Number, String> {
    let inner = text.strip_prefix('\'').unwrap_or(text);
    let mut rest = inner;
    let code = match next_unit(&mut rest, '\'') {
        Some(Unit::Char(c)) => i64::from(u32::from(c)),
        Some(Unit::Byte(byte)) => i64::from(byte),
        None => return Err("invalid syntax".to_owned()),
    };
    if rest != "'" {
        return Err(format!("malformed character constant: {text}"));
    }
    Ok(Number {
        text: text.to_owned(),
        int: Some(code),
        uint: u64::try_from(code).ok(),
        float: Some(code as f64),
    })
}

/// The bytes of a quoted or raw string, with its quotes.
pub(crate) fn unquote(text: &str) -> Option<Vec<u8>> {
    if let Some(raw) = text.strip_prefix('`') {
        return Some(raw.strip_suffix('`')?.replace('\r', "").into_bytes());
    }
    let mut rest = text.strip_prefix('"')?.strip_suffix('"')?;
    let mut bytes = Vec::with_capacity(rest.len());
    while !rest.is_empty() {
        match next_unit(&mut rest, '"')? {
            Unit::Char(c) => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            Unit::Byte(byte) => bytes.push(byte),
        }
    }
    Some(bytes)
}

enum Unit {
    Char(char),
    Byte(u8),
}

fn next_unit(rest: &mut &str, quote: char) -> Option<Unit> {
    let mut chars = rest.chars();
    let first = chars.next()?;
    if first == quote || first == '\n' {
        return None;
    }
    if first != '\\' {
        *rest = chars.as_str();
        return Some(Unit::Char(first));
    }
    let escape = chars.next()?;
    let after = chars.as_str();
    let simple = match escape {
        'a' => Some('\u{7}'),
        'b' => Some('\u{8}'),
        'f' => Some('\u{c}'),
        'n' => Some('\n'),
        'r' => Some('\r'),
        't' => Some('\t'),
        'v' => Some('\u{b}'),
        '\\' => Some('\\'),
        c if c == quote => Some(c),
        _ => None,
    };
    if let Some(c) = simple {
        *rest = after;
        return Some(Unit::Char(c));
    }
    let (digits, radix, tail) = match escape {
        'x' => (after.get(..2)?, 16, after.get(2..)?),
        'u' => (after.get(..4)?, 16, after.get(4..)?),
        'U' => (after.get(..8)?, 16, after.get(8..)?),
        '0'..='7' => {
            let from = rest.get(1..)?;
            (from.get(..3)?, 8, from.get(3..)?)
        }
        _ => return None,
    };
    if !digits.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    let code = u32::from_str_radix(digits, radix).ok()?;
    *rest = tail;
    match escape {
        'u' | 'U' => char::from_u32(code).map(Unit::Char),
        _ => {
            let byte = u8::try_from(code).ok()?;
            Some(if byte.is_ascii() { Unit::Char(char::from(byte)) } else { Unit::Byte(byte) })
        }
    }
}

/// `strconv.ParseInt` with base 0.
pub(crate) fn parse_int(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let value = parse_uint(digits)?;
    if negative { 0_i64.checked_sub_unsigned(value) } else { i64::try_from(value).ok() }
}

/// `strconv.ParseUint` with base 0: prefixes, and underscores where Go allows them.
pub(crate) fn parse_uint(text: &str) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    let (radix, digits, prefixed) = if let Some(digits) = lower.strip_prefix("0x") {
        (16, digits, true)
    } else if let Some(digits) = lower.strip_prefix("0b") {
        (2, digits, true)
    } else if let Some(digits) = lower.strip_prefix("0o") {
        (8, digits, true)
    } else if let Some(digits) = lower.strip_prefix('0').filter(|digits| !digits.is_empty()) {
        (8, digits, true)
    } else {
        (10, lower.as_str(), false)
    };
    // An underscore stands between digits, or between the prefix and a digit.
    let misplaced = digits.ends_with('_')
        || digits.contains("__")
        || (digits.starts_with('_') && !prefixed)
        || digits.is_empty();
    if misplaced || digits.starts_with(['+', '-']) {
        return None;
    }
    u64::from_str_radix(&digits.replace('_', ""), radix).ok()
}

/// `strconv.ParseFloat`; underscores may stand between digits.
pub(crate) fn parse_float(text: &str) -> Option<f64> {
    let lower = text.to_ascii_lowercase();
    let bare = lower.strip_prefix(['+', '-']).unwrap_or(&lower);
    if bare.starts_with("0x") {
        return hex_float(&lower);
    }
    let infinite = matches!(bare, "inf" | "infinity" | "nan");
    if !infinite && !bare.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    let misplaced = bare.split('_').collect::<Vec<_>>().windows(2).any(|sides| match sides {
        [left, right] => {
            !left.ends_with(|c: char| c.is_ascii_digit())
                || !right.starts_with(|c: char| c.is_ascii_digit())
        }
        _ => false,
    });
    if misplaced {
        return None;
    }
    let value: f64 = lower.replace('_', "").parse().ok()?;
    (infinite || value.is_finite()).then_some(value)
}

fn hex_float(text: &str) -> Option<f64> {
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    let (mantissa, exponent) = rest.strip_prefix("0x")?.split_once('p')?;
    let exponent: i32 = exponent.parse().ok()?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut value = 0.0_f64;
    for digit in whole.chars().chain(fraction.chars()) {
        value = value * 16.0 + f64::from(digit.to_digit(16)?);
    }
    let shift = exponent.checked_sub(i32::try_from(fraction.len()).ok()?.checked_mul(4)?)?;
    let value = sign * value * 2.0_f64.powi(shift);
    value.is_finite().then_some(value)
}
