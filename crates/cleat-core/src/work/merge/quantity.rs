//! Whether two Kubernetes quantities are the same amount: `1000m` and `1`, `1Gi` and `1024Mi`.
//!
//! Servers write quantities in a canonical form. Nothing here makes that form: equality is all that
//! comparing needs.

use alloc::string::{String, ToString as _};

use serde_json::Value;

/// Whether both are quantities, written as text or as numbers, of one amount.
pub(super) fn same(one: &Value, other: &Value) -> bool {
    match (amount(one), amount(other)) {
        (Some(one), Some(other)) => one == other,
        _ => false,
    }
}

/// Digits that do not end in zero, and the power of ten that multiplies them: one form per amount.
#[derive(Debug, PartialEq, Eq)]
struct Amount {
    negative: bool,
    digits: u128,
    tens: i32,
}

fn amount(value: &Value) -> Option<Amount> {
    let text: String = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    parse(&text)
}

fn parse(text: &str) -> Option<Amount> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at_checked(end)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    let mut digits: u128 = 0;
    for digit in whole.chars().chain(fraction.trim_end_matches('0').chars()) {
        digits = digits.checked_mul(10)?.checked_add(u128::from(digit.to_digit(10)?))?;
    }
    let places = i32::try_from(fraction.trim_end_matches('0').len()).ok()?;
    let (twos, tens) = suffix_of(suffix)?;
    let mut tens = tens.checked_sub(places)?;
    digits = digits.checked_mul(1_u128.checked_shl(twos)?)?;
    if digits == 0 {
        return Some(Amount { negative: false, digits, tens: 0 });
    }
    while digits.is_multiple_of(10) {
        digits /= 10;
        tens = tens.checked_add(1)?;
    }
    Some(Amount { negative, digits, tens })
}

/// The powers of two and of ten a suffix stands for.
fn suffix_of(suffix: &str) -> Option<(u32, i32)> {
    Some(match suffix {
        "" => (0, 0),
        "n" => (0, -9),
        "u" => (0, -6),
        "m" => (0, -3),
        "k" => (0, 3),
        "M" => (0, 6),
        "G" => (0, 9),
        "T" => (0, 12),
        "P" => (0, 15),
        "E" => (0, 18),
        "Ki" => (10, 0),
        "Mi" => (20, 0),
        "Gi" => (30, 0),
        "Ti" => (40, 0),
        "Pi" => (50, 0),
        "Ei" => (60, 0),
        _ => {
            let exponent = suffix.strip_prefix(['e', 'E'])?;
            let exponent: i32 = exponent.parse().ok()?;
            if exponent.abs() > 100 {
                return None;
            }
            (0, exponent)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn amounts() {
        for (one, other, expected) in [
            (json!("1000m"), json!("1"), true),
            (json!("0.5"), json!("500m"), true),
            (json!(1), json!("1"), true),
            (json!(0.1), json!("100m"), true),
            (json!("1Gi"), json!("1024Mi"), true),
            (json!("1.5Gi"), json!("1536Mi"), true),
            (json!("1e3"), json!("1k"), true),
            (json!("1E"), json!("1000P"), true),
            (json!("0"), json!("0Mi"), true),
            (json!("-0"), json!("0"), true),
            (json!("01.50"), json!("1500m"), true),
            (json!("1"), json!("2"), false),
            (json!("1G"), json!("1Gi"), false),
            (json!("-1"), json!("1"), false),
            (json!("25%"), json!("25%"), false),
            (json!("web"), json!("web"), false),
            (json!(""), json!("0"), false),
            (json!("1.2.3"), json!("1.2.3"), false),
            (json!("1e999"), json!("1e999"), false),
            (json!(null), json!("0"), false),
        ] {
            assert_eq!(same(&one, &other), expected, "{one} {other}");
        }
    }

    proptest! {
        #[test]
        fn nothing_breaks_it(text in "[+-]?[0-9.]{0,45}[a-zA-Z0-9+-]{0,5}|.*") {
            let value = json!(text);
            prop_assert_eq!(same(&value, &value), parse(&text).is_some());
        }
    }
}
