//! Integers and floats under a verb.

use cleat_dialect::quote;

use super::{Flags, Printer};
use crate::limits::Fault;
use crate::value::Value;

impl Printer<'_> {
    pub(super) fn integer(
        &mut self,
        value: &Value,
        negative: bool,
        number: u64,
        verb: char,
        flags: &Flags,
    ) -> Result<(), Fault> {
        let digits = match verb {
            'v' if flags.sharp_v && matches!(value, Value::Uint(..)) => format!("{number:#x}"),
            'd' | 'v' => number.to_string(),
            'b' => format!("{number:b}"),
            'o' | 'O' => format!("{number:o}"),
            'x' => format!("{number:x}"),
            'X' => format!("{number:X}"),
            'c' | 'q' | 'U' => return self.character(value, negative, number, verb, flags),
            _ => return self.bad_verb(value, verb, flags),
        };
        self.digits(negative, &digits, verb, flags)
    }

    fn digits(
        &mut self,
        negative: bool,
        digits: &str,
        verb: char,
        flags: &Flags,
    ) -> Result<(), Fault> {
        if flags.precision == Some(0) && digits == "0" {
            let plain = Flags { zero: false, ..flags.clone() };
            return self.padded(b"", &plain);
        }
        let sign = match (negative, flags.plus, flags.space) {
            (true, _, _) => "-",
            (_, true, _) => "+",
            (_, _, true) => " ",
            _ => "",
        };
        let mut least = flags.precision.unwrap_or(0);
        if flags.precision.is_none() && flags.zero && !flags.minus {
            least = flags.width.unwrap_or(0).saturating_sub(sign.len());
        }
        let prefix = match verb {
            'b' if flags.sharp => "0b",
            'o' if flags.sharp && !digits.starts_with('0') => "0",
            'O' => "0o",
            'x' if flags.sharp => "0x",
            'X' if flags.sharp => "0X",
            _ => "",
        };
        let zeros = least.saturating_sub(digits.len());
        self.budget.charge(zeros)?;
        let text = format!("{sign}{prefix}{}{digits}", "0".repeat(zeros));
        self.padded(text.as_bytes(), &Flags { zero: false, ..flags.clone() })
    }

    fn character(
        &mut self,
        _value: &Value,
        negative: bool,
        number: u64,
        verb: char,
        flags: &Flags,
    ) -> Result<(), Fault> {
        let code = u32::try_from(number).ok().filter(|_| !negative);
        let c = code.and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER);
        let text = match verb {
            'c' => c.to_string(),
            'q' => {
                let text = quote::quoted(&c.to_string());
                match text.as_str() {
                    "\"'\"" => "'\\''".to_owned(),
                    "\"\\\"\"" => "'\"'".to_owned(),
                    text => {
                        format!(
                            "'{}'",
                            text.get(1..text.len().saturating_sub(1)).unwrap_or_default()
                        )
                    }
                }
            }
            _ if flags.sharp => quote::code_point(c),
            _ => format!("U+{number:04X}"),
        };
        self.padded(text.as_bytes(), flags)
    }

    pub(super) fn float(
        &mut self,
        value: &Value,
        number: f64,
        verb: char,
        flags: &Flags,
    ) -> Result<(), Fault> {
        let text = match verb {
            'v' | 'g' | 'G' => match flags.precision {
                None => shortest(number),
                Some(precision) => general(number, precision),
            },
            'e' | 'E' => exponential(number, flags.precision.unwrap_or(6)),
            'f' | 'F' => {
                let precision = flags.precision.unwrap_or(6);
                self.budget.charge(precision + 400)?;
                if number.is_finite() { format!("{number:.precision$}") } else { shortest(number) }
            }
            _ => return self.bad_verb(value, verb, flags),
        };
        let text = if verb.is_ascii_uppercase() { text.replace('e', "E") } else { text };
        let (sign, bare) = match text.strip_prefix('-') {
            Some(bare) => ("-", bare),
            None if text.starts_with('+') && !flags.plus => ("", text.get(1..).unwrap_or_default()),
            None => {
                let bare = text.strip_prefix('+').unwrap_or(&text);
                (
                    if flags.plus {
                        "+"
                    } else if flags.space {
                        " "
                    } else {
                        ""
                    },
                    bare,
                )
            }
        };
        // The sign of infinity is always written.
        let sign = if bare == "Inf" && sign.is_empty() { "+" } else { sign };
        if !number.is_finite() {
            let flags = Flags { zero: false, ..flags.clone() };
            return self.padded(format!("{sign}{bare}").as_bytes(), &flags);
        }
        if flags.zero && !flags.minus && flags.width.is_some() {
            let zeros = flags.width.unwrap_or(0).saturating_sub(sign.len() + bare.len());
            self.budget.charge(zeros)?;
            return self.push(&format!("{sign}{}{bare}", "0".repeat(zeros)));
        }
        self.padded(format!("{sign}{bare}").as_bytes(), flags)
    }
}

/// `%v` of a float; infinities as `+Inf` and `-Inf`.
pub(super) fn shortest(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    quote::float_text(number)
}

fn exponential(number: f64, precision: usize) -> String {
    if number.is_finite() {
        go_exponent(&format!("{number:.precision$e}"))
    } else {
        shortest(number)
    }
}

fn general(number: f64, precision: usize) -> String {
    if !number.is_finite() {
        return shortest(number);
    }
    let precision = precision.max(1);
    let scientific = format!("{number:.*e}", precision - 1);
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let limit = i32::try_from(precision).unwrap_or(i32::MAX);
    let trim = |text: &str| {
        if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            text.to_owned()
        }
    };
    if exponent < -4 || exponent >= limit {
        return go_exponent(&format!("{}e{exponent}", trim(mantissa)));
    }
    let decimals = usize::try_from(limit - 1 - exponent).unwrap_or(0);
    trim(&format!("{number:.decimals$}"))
}

/// From `1.5e7` to `1.5e+07`.
fn go_exponent(scientific: &str) -> String {
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return scientific.to_owned();
    };
    let (sign, digits) = match exponent.strip_prefix('-') {
        Some(digits) => ('-', digits),
        None => ('+', exponent),
    };
    format!("{mantissa}e{sign}{digits:0>2}")
}
