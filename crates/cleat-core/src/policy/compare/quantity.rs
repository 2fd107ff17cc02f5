//! Amounts as Kubernetes writes them (`500m`, `1Gi`, `2e3`), only to tell whether two are equal.
//!
//! The comparison is exact: an amount is a whole number times a power of ten times a power of two,
//! with all common factors moved to the powers.

/// The digits of an amount that are kept; a longer text is no amount.
const MOST_DIGITS: usize = 34;

/// The largest exponent that is read; beyond it nothing can be said.
const LARGEST_EXPONENT: i32 = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Quantity {
    negative: bool,
    /// Neither two nor five divides it, unless it is zero.
    digits: u128,
    twos: i32,
    fives: i32,
}

impl Quantity {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (negative, body) = match text.strip_prefix('-') {
            Some(body) => (true, body),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let end = body.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(body.len());
        let (number, suffix) = body.split_at_checked(end)?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.len() + fraction.len() == 0
            || whole.len() + fraction.len() > MOST_DIGITS
            || fraction.contains('.')
        {
            return None;
        }
        let mut digits: u128 = 0;
        for digit in whole.bytes().chain(fraction.bytes()) {
            digits = digits.checked_mul(10)?.checked_add(u128::from(digit - b'0'))?;
        }
        let (tens, twos) = scale(suffix)?;
        let tens = tens.checked_sub(i32::try_from(fraction.len()).ok()?)?;
        Some(Self { negative, digits, twos: tens.checked_add(twos)?, fives: tens }.reduced())
    }

    fn reduced(mut self) -> Self {
        if self.digits == 0 {
            return Self { negative: false, digits: 0, twos: 0, fives: 0 };
        }
        while self.digits.is_multiple_of(2) {
            self.digits /= 2;
            self.twos = self.twos.saturating_add(1);
        }
        while self.digits.is_multiple_of(5) {
            self.digits /= 5;
            self.fives = self.fives.saturating_add(1);
        }
        self
    }
}

/// The powers of ten and of two that a suffix stands for.
fn scale(suffix: &str) -> Option<(i32, i32)> {
    Some(match suffix {
        "" => (0, 0),
        "n" => (-9, 0),
        "u" => (-6, 0),
        "m" => (-3, 0),
        "k" => (3, 0),
        "M" => (6, 0),
        "G" => (9, 0),
        "T" => (12, 0),
        "P" => (15, 0),
        "E" => (18, 0),
        "Ki" => (0, 10),
        "Mi" => (0, 20),
        "Gi" => (0, 30),
        "Ti" => (0, 40),
        "Pi" => (0, 50),
        "Ei" => (0, 60),
        _ => {
            let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            (-LARGEST_EXPONENT..=LARGEST_EXPONENT).contains(&exponent).then_some((exponent, 0))?
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_amounts_are_equal_however_written() {
        for (one, other, expected) in [
            ("1", "1000m", true),
            ("1.5", "1500m", true),
            ("1Gi", "1024Mi", true),
            ("1G", "1Gi", false),
            ("0", "-0m", true),
            ("1e3", "1k", true),
            ("1E3", "1000", true),
            ("1E", "1e18", true),
            (".5", "500m", true),
            ("5.", "5", true),
            ("-1", "1", false),
            ("0.1", "0.10", true),
        ] {
            let same = Quantity::parse(one).unwrap() == Quantity::parse(other).unwrap();
            assert_eq!(same, expected, "{one} {other}");
        }
        for text in ["", ".", "1.2.3", "abc", "1x", "1 ", "nginx:1", "1.18.0", "--1", "1ee3"] {
            assert_eq!(Quantity::parse(text), None, "{text}");
        }
    }
}
