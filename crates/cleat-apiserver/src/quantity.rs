//! Kubernetes' quantities: `500m`, `1Gi`, `2e3`.
//!
//! kube-apiserver reads a quantity and writes it again in canonical form, so that is what clients
//! get back. Amounts are kept in billionths, the finest step Kubernetes has; anything finer is
//! rounded away from zero, and anything beyond 2^63-1 stops there, as it does upstream.

use std::{cmp::Ordering, fmt};

use serde_json::Value;

const NANO: i128 = 1_000_000_000;
const LIMIT: i128 = i64::MAX as i128 * NANO;

/// How kube-apiserver words a quantity it cannot read.
pub(crate) const MALFORMED: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/// What kube-apiserver says about a suffix it does not have.
pub(crate) const BAD_SUFFIX: &str = "unable to parse quantity's suffix";

/// An amount and the family of suffixes it was written with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quantity {
    nanos: i128,
    form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// `k`, `M`, `G`
    Decimal,
    /// `Ki`, `Mi`, `Gi`
    Binary,
    /// `e3`
    Exponent,
}

impl Quantity {
    /// Errors with the sentence kube-apiserver uses.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        let (negative, body) = match text.as_bytes().first() {
            Some(b'-') => (true, text.get(1..)),
            Some(b'+') => (false, text.get(1..)),
            _ => (false, Some(text)),
        };
        let body = body.unwrap_or("");
        let end = body.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(body.len());
        let (number, suffix) = body.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return Err(MALFORMED);
        }
        if !well_formed(suffix) {
            return Err(MALFORMED);
        }
        let (scale, form) = scale(suffix).ok_or(BAD_SUFFIX)?;
        let nanos = match scale {
            Scale::Two(bits) => times_two(whole, fraction, bits),
            Scale::Ten(power) => times_ten(whole, fraction, power),
        };
        Ok(Self { nanos: if negative { -nanos } else { nanos }, form })
    }

    /// A quantity in JSON is a string, or a number that is read as if it were quoted.
    pub(crate) fn from_json(value: &Value) -> Result<Self, &'static str> {
        match value {
            Value::String(text) => Self::parse(text.trim()),
            Value::Number(number) => Self::parse(&number.to_string()),
            Value::Null => Ok(Self::ZERO),
            _ => Err(MALFORMED),
        }
    }

    pub(crate) const ZERO: Self = Self { nanos: 0, form: Form::Decimal };

    pub(crate) fn is_negative(self) -> bool {
        self.nanos < 0
    }

    pub(crate) fn is_zero(self) -> bool {
        self.nanos == 0
    }

    pub(crate) fn is_whole(self) -> bool {
        self.nanos % NANO == 0
    }

    /// Resource amounts of built-in kinds have no steps finer than a thousandth.
    pub(crate) fn rounded_up_to_milli(self) -> Self {
        Self { nanos: round_up(self.nanos, NANO / 1000) * (NANO / 1000), form: self.form }
    }

    /// The sum, written the way the first was.
    pub(crate) fn plus(self, other: Self) -> Self {
        let form = if self.is_zero() { other.form } else { self.form };
        Self { nanos: (self.nanos + other.nanos).clamp(-LIMIT, LIMIT), form }
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
        const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
        if self.nanos == 0 {
            return f.write_str("0");
        }
        // Small or broken amounts are written decimally whatever they came in as.
        let binary = self.form == Form::Binary
            && self.nanos.unsigned_abs() >= 1024 * NANO.unsigned_abs()
            && self.is_whole();
        if binary {
            let mut amount = self.nanos / NANO;
            let mut suffixes = BINARY.iter();
            let mut suffix = suffixes.next();
            while amount % 1024 == 0
                && let Some(next) = suffixes.next()
            {
                amount /= 1024;
                suffix = Some(next);
            }
            return write!(f, "{amount}{}", suffix.unwrap_or(&""));
        }
        let mut amount = self.nanos;
        let mut power = -9;
        let mut suffixes = DECIMAL.iter();
        let mut suffix = suffixes.next();
        while amount % 1000 == 0
            && let Some(next) = suffixes.next()
        {
            amount /= 1000;
            power += 3;
            suffix = Some(next);
        }
        match (self.form, power) {
            (Form::Exponent, 0) => write!(f, "{amount}"),
            (Form::Exponent, power) => write!(f, "{amount}e{power}"),
            _ => write!(f, "{amount}{}", suffix.unwrap_or(&"")),
        }
    }
}

/// Letters, then a sign, then digits, each of which may be missing.
fn well_formed(suffix: &str) -> bool {
    let rest = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
    let rest = rest.strip_prefix(['+', '-']).unwrap_or(rest);
    rest.bytes().all(|c| c.is_ascii_digit())
}

/// What a suffix multiplies by.
enum Scale {
    Two(u32),
    Ten(i32),
}

fn scale(suffix: &str) -> Option<(Scale, Form)> {
    let decimal = |power| Some((Scale::Ten(power), Form::Decimal));
    let binary = |bits| Some((Scale::Two(bits), Form::Binary));
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
        _ => {
            let power = suffix.strip_prefix(['e', 'E'])?;
            let power: i32 = power.parse().ok()?;
            Some((Scale::Ten(power), Form::Exponent))
        }
    }
}

/// `whole.fraction * 2^bits` in billionths, rounded up.
fn times_two(whole: &str, fraction: &str, bits: u32) -> i128 {
    let Some(whole) = digits(whole, 19) else { return LIMIT };
    let factor = 1i128 << bits;
    // Eighteen digits of a fraction decide every billionth of it; the rest can only round up.
    let (kept, dropped) = fraction.split_at(fraction.len().min(18));
    let sticky = i128::from(dropped.bytes().any(|c| c != b'0'));
    let padded = format!("{kept:0<18}");
    let fraction = digits(&padded, 18).unwrap_or(0) + sticky;
    let fraction = round_up(fraction * factor, NANO);
    whole
        .checked_mul(factor * NANO)
        .and_then(|whole| whole.checked_add(fraction))
        .map_or(LIMIT, |nanos| nanos.min(LIMIT))
}

/// `whole.fraction * 10^power` in billionths, rounded up: moves the point through the digits.
fn times_ten(whole: &str, fraction: &str, power: i32) -> i128 {
    let all = format!("{whole}{fraction}");
    let all = all.trim_start_matches('0');
    if all.is_empty() {
        return 0;
    }
    let fraction_len = i64::try_from(fraction.len()).unwrap_or(i64::MAX);
    let shift = i64::from(power) + 9 - fraction_len;
    let length = i64::try_from(all.len()).unwrap_or(i64::MAX);
    if length + shift > 29 {
        return LIMIT;
    }
    if length + shift <= 0 {
        return 1;
    }
    if shift >= 0 {
        let zeros = "0".repeat(usize::try_from(shift).unwrap_or(0));
        return digits(&format!("{all}{zeros}"), 29).map_or(LIMIT, |nanos| nanos.min(LIMIT));
    }
    let (kept, dropped) = all.split_at(usize::try_from(length + shift).unwrap_or(0));
    let sticky = i128::from(dropped.bytes().any(|c| c != b'0'));
    digits(kept, 29).map_or(LIMIT, |nanos| (nanos + sticky).min(LIMIT))
}

/// None when there are more than `most` significant digits.
fn digits(text: &str, most: usize) -> Option<i128> {
    let text = text.trim_start_matches('0');
    if text.is_empty() {
        return Some(0);
    }
    if text.len() > most { None } else { text.parse().ok() }
}

/// Away from zero.
fn round_up(amount: i128, step: i128) -> i128 {
    let whole = amount / step;
    match (amount % step).cmp(&0) {
        Ordering::Equal => whole,
        Ordering::Greater => whole + 1,
        Ordering::Less => whole - 1,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quantities_are_written_canonically() {
        for (given, written) in [
            ("0", "0"),
            ("0Gi", "0"),
            ("1", "1"),
            ("1000m", "1"),
            ("0.5", "500m"),
            ("1.5", "1500m"),
            ("100m", "100m"),
            ("1024Mi", "1Gi"),
            ("1536Mi", "1536Mi"),
            ("1.5Gi", "1536Mi"),
            ("1Ki", "1Ki"),
            ("0.5Ki", "512"),
            ("1023Ki", "1023Ki"),
            ("1000", "1k"),
            ("1000k", "1M"),
            ("128974848", "128974848"),
            ("129e6", "129e6"),
            ("12e2", "1200"),
            ("1e3", "1e3"),
            ("1E", "1E"),
            ("-1.5", "-1500m"),
            ("+2", "2"),
            (".5", "500m"),
            ("5.", "5"),
            ("0.0000000001", "1n"),
            ("100u", "100u"),
            ("9223372036854775808", "9223372036854775807"),
            ("100Ei", "9223372036854775807"),
            ("007", "7"),
        ] {
            assert_eq!(Quantity::parse(given).unwrap().to_string(), written, "{given}");
        }
    }

    #[test]
    fn malformed_quantities_are_refused() {
        for (given, text) in [
            ("", MALFORMED),
            ("abc", MALFORMED),
            ("1.2.3", MALFORMED),
            ("1 Gi", MALFORMED),
            ("-", MALFORMED),
            ("1GB", MALFORMED),
            ("1KiB", MALFORMED),
            ("1e3Mi", MALFORMED),
            ("1e+-3", MALFORMED),
            ("1Ki3", BAD_SUFFIX),
            ("1K", BAD_SUFFIX),
            ("1mm", BAD_SUFFIX),
            ("1e", BAD_SUFFIX),
        ] {
            assert_eq!(Quantity::parse(given).unwrap_err(), text, "{given}");
        }
    }

    #[test]
    fn amounts_compare_across_suffixes() {
        let of = |text| Quantity::parse(text).unwrap();
        assert!(of("1Gi") > of("1G"));
        assert!(of("999m") < of("1"));
        assert_eq!(of("1Ki"), of("1024"));
        assert_eq!(of("1500u").rounded_up_to_milli().to_string(), "2m");
    }

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
            let read = Quantity::parse(text).map(|quantity| quantity.to_string());
            assert_eq!(read.as_deref(), Ok(written), "{text}");
        }
    }

    #[test]
    fn other_text_is_refused() {
        for text in ["", "x", "1x", "1.2.3", "-", ".", "1 Gi"] {
            assert_eq!(Quantity::parse(text).err(), Some(MALFORMED), "{text}");
        }
        assert_eq!(Quantity::parse("1kk").err(), Some(BAD_SUFFIX));
        assert_eq!(Quantity::parse("1e").err(), Some(BAD_SUFFIX));
    }

    proptest! {
        #[test]
        fn no_text_panics_and_the_canonical_form_is_stable(text in "[-+]?[0-9.]{0,40}[a-zA-Z0-9+-]{0,6}") {
            if let Ok(quantity) = Quantity::parse(&text) {
                let written = quantity.to_string();
                let again = Quantity::parse(&written).unwrap();
                prop_assert_eq!(again, quantity);
                prop_assert_eq!(again.to_string(), written);
            }
        }
    }
}
