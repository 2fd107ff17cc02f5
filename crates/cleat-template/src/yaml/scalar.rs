//! Which type a plain scalar has: YAML 1.2's with a few of 1.1 left over.

use super::Scalar;
use crate::literal;
use crate::time::{self, Time};

pub(super) fn resolve(text: &str) -> Scalar {
    match text {
        "true" | "True" | "TRUE" => return Scalar::Bool(true),
        "false" | "False" | "FALSE" => return Scalar::Bool(false),
        "" | "~" | "null" | "Null" | "NULL" => return Scalar::Null,
        ".nan" | ".NaN" | ".NAN" => return Scalar::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => {
            return Scalar::Float(f64::INFINITY);
        }
        "-.inf" | "-.Inf" | "-.INF" => return Scalar::Float(f64::NEG_INFINITY),
        "<<" => return Scalar::Merge,
        _ => {}
    }
    match text.chars().next() {
        Some('.') => match literal::parse_float(text) {
            Some(float) => Scalar::Float(float),
            None => Scalar::Text,
        },
        Some('+' | '-' | '0'..='9') => number(text),
        _ => Scalar::Text,
    }
}

fn number(text: &str) -> Scalar {
    if let Some(time) = timestamp(text) {
        return Scalar::Timestamp(time);
    }
    let plain = text.replace('_', "");
    if let Some(int) = literal::parse_int(&plain) {
        return Scalar::Int(int);
    }
    if let Some(uint) = literal::parse_uint(&plain) {
        return Scalar::Uint(uint);
    }
    if looks_like_float(&plain)
        && let Some(float) = literal::parse_float(&plain)
    {
        return Scalar::Float(float);
    }
    Scalar::Text
}

/// `[-+]? (.digits | digits (.digits?)?) (e [-+]? digits)?`
fn looks_like_float(text: &str) -> bool {
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (text.get(..at).unwrap_or(""), text.get(at + 1..)),
        None => (text, None),
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let mantissa_fits = match mantissa.split_once('.') {
        None => digits(mantissa),
        Some(("", fraction)) => digits(fraction),
        Some((whole, fraction)) => digits(whole) && (fraction.is_empty() || digits(fraction)),
    };
    let exponent_fits = exponent
        .is_none_or(|exponent| digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)));
    mantissa_fits && exponent_fits
}

fn timestamp(text: &str) -> Option<Time> {
    let year = text.bytes().take_while(u8::is_ascii_digit).count();
    if year != 4 || text.as_bytes().get(4) != Some(&b'-') {
        return None;
    }
    const LAYOUTS: [&str; 4] = [
        "2006-1-2T15:4:5.999999999Z07:00",
        "2006-1-2t15:4:5.999999999Z07:00",
        "2006-1-2 15:4:5.999999999",
        "2006-1-2",
    ];
    LAYOUTS.iter().find_map(|layout| time::parse(layout, text).ok())
}

/// Whether a string can be written without quotes and still be read as the same string, by this
/// library and by older ones.
pub(super) fn stays_text(text: &str) -> bool {
    let old_bool = matches!(
        text,
        "y" | "Y"
            | "yes"
            | "Yes"
            | "YES"
            | "on"
            | "On"
            | "ON"
            | "n"
            | "N"
            | "no"
            | "No"
            | "NO"
            | "off"
            | "Off"
            | "OFF"
    );
    resolve(text) == Scalar::Text && !old_bool && !base60(text)
}

/// `[-+]? digit [digits_]* (: [0-5]? digit)+ (. [digits_]*)?`
fn base60(text: &str) -> bool {
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let loose = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    let mut parts = whole.split(':');
    let first = parts.next().unwrap_or_default();
    if !first.starts_with(|c: char| c.is_ascii_digit()) || !loose(first) || !loose(fraction) {
        return false;
    }
    let mut any = false;
    for part in parts {
        any = true;
        match part.as_bytes() {
            [digit] if digit.is_ascii_digit() => {}
            [b'0'..=b'5', digit] if digit.is_ascii_digit() => {}
            _ => return false,
        }
    }
    any
}
