//! Sums of quantities, written as Kubernetes would.

use alloc::format;
use alloc::string::{String, ToString as _};

/// Thousand-millionths: the smallest thing a quantity can count.
const NANO: i128 = 1_000_000_000;

const DECIMAL: [(&str, i128); 10] = [
    ("E", NANO * 1_000_000_000_000_000_000),
    ("P", NANO * 1_000_000_000_000_000),
    ("T", NANO * 1_000_000_000_000),
    ("G", NANO * 1_000_000_000),
    ("M", NANO * 1_000_000),
    ("k", NANO * 1_000),
    ("", NANO),
    ("m", NANO / 1_000),
    ("u", NANO / 1_000_000),
    ("n", 1),
];

const BINARY: [(&str, i128); 6] = [
    ("Ei", NANO << 60),
    ("Pi", NANO << 50),
    ("Ti", NANO << 40),
    ("Gi", NANO << 30),
    ("Mi", NANO << 20),
    ("Ki", NANO << 10),
];

/// A sum in the making.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum {
    nanos: i128,
    binary: bool,
}

impl Sum {
    /// What cannot be read counts nothing: one odd node must not hide the others.
    pub(super) fn add(&mut self, quantity: &str) {
        let Some((nanos, binary)) = parse(quantity) else { return };
        self.nanos = self.nanos.saturating_add(nanos);
        self.binary |= binary;
    }
}

/// The shortest form without a fraction.
impl core::fmt::Display for Sum {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let fits = |(_, unit): &&(&str, i128)| self.nanos % unit == 0;
        let binary = BINARY.iter().filter(|_| self.binary && self.nanos != 0).find(fits);
        let unit = if self.nanos == 0 { None } else { DECIMAL.iter().find(fits) };
        let whole = DECIMAL.iter().find(|(name, _)| name.is_empty()).filter(|one| fits(one));
        let unit = binary.or(if self.binary { whole } else { None }).or(unit);
        match unit {
            Some((name, unit)) => write!(f, "{}{name}", self.nanos / unit),
            None => f.write_str("0"),
        }
    }
}

/// Thousand-millionths, and whether it counts in powers of two.
pub(crate) fn parse(quantity: &str) -> Option<(i128, bool)> {
    let end = quantity.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '+' | '-')));
    let (number, suffix) = quantity.split_at_checked(end.unwrap_or(quantity.len()))?;
    let (unit, binary) = unit(suffix)?;
    let negative = number.starts_with('-');
    let digits = number.trim_start_matches(['+', '-']);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.len() > 19 || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let fraction: String = fraction.chars().take(9).collect();
    let padded = format!("{fraction:0<9}");
    let read = |text: &str| if text.is_empty() { Some(0) } else { text.parse::<i128>().ok() };
    let value = read(whole)?.checked_mul(NANO)?.checked_add(read(&padded)?)?;
    let value = value.checked_mul(unit)? / NANO;
    Some((if negative { -value } else { value }, binary))
}

fn unit(suffix: &str) -> Option<(i128, bool)> {
    let named = |table: &[(&str, i128)]| {
        table.iter().find(|(name, _)| *name == suffix).map(|(_, unit)| *unit)
    };
    if let Some(unit) = named(&DECIMAL) {
        return Some((unit, false));
    }
    if let Some(unit) = named(&BINARY) {
        return Some((unit, true));
    }
    let exponent: u32 = suffix.strip_prefix(['e', 'E'])?.parse().ok().filter(|ten| *ten <= 18)?;
    Some((10_i128.checked_pow(exponent)?.checked_mul(NANO)?, false))
}

/// The sum of these, as text.
pub(super) fn sum<'a>(all: impl IntoIterator<Item = &'a str>) -> String {
    let mut sum = Sum::default();
    all.into_iter().for_each(|quantity| sum.add(quantity));
    sum.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_written_as_kubernetes_would() {
        let cases: [(&[&str], &str); 12] = [
            (&[], "0"),
            (&["4"], "4"),
            (&["3500m", "500m"], "4"),
            (&["3920m", "1"], "4920m"),
            (&["16Gi", "16Gi"], "32Gi"),
            (&["16393244Ki", "1Gi"], "17441820Ki"),
            (&["110", "110"], "220"),
            (&["500", "500"], "1k"),
            (&["1e3"], "1k"),
            (&["0.5", "1.5"], "2"),
            (&["rubbish", "1", "", "9999999999999999999999E"], "1"),
            (&["1Ki", "1"], "1025"),
        ];
        for (all, expected) in cases {
            assert_eq!(sum(all.iter().copied()), expected, "{all:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn nothing_makes_it_panic(all in proptest::collection::vec(".{0,24}", 0..4)) {
            let _ = sum(all.iter().map(String::as_str));
        }
    }
}
