//! Quantities (`500m`, `1.5Gi`, `1e3`) in the one form Kubernetes writes them in.
//!
//! No arithmetic: only what it takes to read and rewrite a value.

/// What Kubernetes says about text that is no quantity.
pub(crate) const MALFORMED: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

const TOO_LONG: &str = "unable to parse quantity's suffix";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Decimal,
    Exponent,
    Binary,
}

/// The canonical form: no fraction, and the largest suffix that needs none.
///
/// Values below a nano are rounded up to one, as upstream does; values that do not fit are given
/// back as they came.
pub(crate) fn canonical(text: &str) -> Result<String, String> {
    let (negative, unsigned) = match text.strip_prefix(['+', '-']) {
        Some(rest) => (text.starts_with('-'), rest),
        None => (false, text),
    };
    let end = unsigned.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if number.is_empty() || fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
        return Err(MALFORMED.to_owned());
    }
    let (form, power, shift) = suffix_of(suffix).ok_or_else(|| malformed_suffix(suffix))?;

    let Some(nanos) = nanos(whole, fraction, power, shift) else { return Ok(text.to_owned()) };
    let written = match form {
        Form::Binary if nanos >= 1024 * NANO => binary(nanos),
        Form::Binary | Form::Decimal => decimal(nanos),
        Form::Exponent => exponent(nanos),
    };
    Ok(if negative && nanos != 0 { format!("-{written}") } else { written })
}

const NANO: i128 = 1_000_000_000;

fn malformed_suffix(suffix: &str) -> String {
    let allowed = |c: char| "eEinumkKMGTP+-".contains(c) || c.is_ascii_digit();
    if suffix.chars().all(allowed) { TOO_LONG.to_owned() } else { MALFORMED.to_owned() }
}

/// The form, a power of ten and a power of two.
fn suffix_of(suffix: &str) -> Option<(Form, i32, u32)> {
    let decimal = |power| Some((Form::Decimal, power, 0));
    let binary = |shift| Some((Form::Binary, 0, shift));
    match suffix {
        "n" => decimal(-9),
        "u" => decimal(-6),
        "m" => decimal(-3),
        "" => decimal(0),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "Ki" => binary(10),
        "Mi" => binary(20),
        "Gi" => binary(30),
        "Ti" => binary(40),
        "Pi" => binary(50),
        "Ei" => binary(60),
        other => {
            let power: i32 = other.strip_prefix(['e', 'E'])?.parse().ok()?;
            Some((Form::Exponent, power, 0))
        }
    }
}

/// The value in billionths, rounded up; `None` when it does not fit.
fn nanos(whole: &str, fraction: &str, power: i32, shift: u32) -> Option<i128> {
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return Some(0);
    }
    let mut value: i128 = digits.parse().ok()?;
    value = value.checked_mul(1_i128.checked_shl(shift)?)?;
    let scale = 9 + power - i32::try_from(fraction.len()).ok()?;
    let factor = 10_i128.checked_pow(scale.unsigned_abs())?;
    if scale >= 0 {
        return value.checked_mul(factor);
    }
    Some(value / factor + i128::from(value % factor != 0))
}

fn decimal(nanos: i128) -> String {
    let (value, power) = thousands(nanos);
    let suffix = match power {
        -9 => "n",
        -6 => "u",
        -3 => "m",
        3 => "k",
        6 => "M",
        9 => "G",
        12 => "T",
        15 => "P",
        18 => "E",
        _ => "",
    };
    format!("{value}{suffix}")
}

fn exponent(nanos: i128) -> String {
    match thousands(nanos) {
        (value, 0) => value.to_string(),
        (value, power) => format!("{value}e{power}"),
    }
}

/// The value without factors of a thousand, and the power of ten they make.
fn thousands(nanos: i128) -> (i128, i32) {
    let (mut value, mut power) = (nanos, -9);
    if value == 0 {
        return (0, 0);
    }
    while value % 1000 == 0 && power < 18 {
        value /= 1000;
        power += 3;
    }
    (value, power)
}

fn binary(nanos: i128) -> String {
    // A binary value keeps no fraction: it is rounded up.
    let mut value = nanos / NANO + i128::from(nanos % NANO != 0);
    let suffixes = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    let mut index = 0;
    while value % 1024 == 0 && index + 1 < suffixes.len() {
        value /= 1024;
        index += 1;
    }
    format!("{value}{}", suffixes.get(index).unwrap_or(&""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_rewritten() {
        for (text, written) in [
            ("0", "0"),
            ("1", "1"),
            ("1000m", "1"),
            ("0.5", "500m"),
            ("100m", "100m"),
            ("1.5Gi", "1536Mi"),
            ("1024Mi", "1Gi"),
            ("512", "512"),
            ("512Ki", "512Ki"),
            ("0.5Ki", "512"),
            ("1e3", "1e3"),
            ("12e2", "1200"),
            ("1000", "1k"),
            ("1500", "1500"),
            ("-3k", "-3k"),
            ("+2", "2"),
            (".5", "500m"),
            ("5.", "5"),
            ("0.0000000001", "1n"),
        ] {
            assert_eq!(canonical(text).as_deref(), Ok(written), "{text}");
        }
    }

    #[test]
    fn other_text_is_refused() {
        for text in ["", "x", "1x", "1.2.3", "-", ".", "1 Gi"] {
            assert_eq!(canonical(text), Err(MALFORMED.to_owned()), "{text}");
        }
        assert_eq!(canonical("1kk"), Err(TOO_LONG.to_owned()));
        assert_eq!(canonical("1e"), Err(TOO_LONG.to_owned()));
    }
}
