//! Decimal numbers that are added and multiplied exactly, as long as 38 digits are enough; beyond
//! that they are floats again.

#[derive(Clone, Copy, Debug)]
pub(super) enum Decimal {
    /// `mantissa * 10^exponent`.
    Exact {
        mantissa: i128,
        exponent: i32,
    },
    Float(f64),
}

/// Digits after the point that a division gives.
const DIVISION: i32 = 16;

impl From<f64> for Decimal {
    /// The shortest decimal that reads back as this float.
    fn from(number: f64) -> Self {
        let parts = || {
            let text = format!("{number:e}");
            let (mantissa, exponent) = text.split_once('e')?;
            let decimals = mantissa.split_once('.').map_or(0, |(_, decimals)| decimals.len());
            let exponent = exponent.parse::<i32>().ok()? - i32::try_from(decimals).ok()?;
            let mantissa = mantissa.replace('.', "").parse().ok()?;
            Some(Self::Exact { mantissa, exponent })
        };
        if number.is_finite() {
            parts().unwrap_or(Self::Float(number))
        } else {
            Self::Float(number)
        }
    }
}

impl Decimal {
    pub(super) fn to_float(self) -> f64 {
        match self {
            Self::Exact { mantissa, exponent } => {
                format!("{mantissa}e{exponent}").parse().unwrap_or(0.0)
            }
            Self::Float(number) => number,
        }
    }

    pub(super) fn add(self, other: Self) -> Self {
        let exact = Self::aligned(self, other).and_then(|(left, right, exponent)| {
            Some(Self::Exact { mantissa: left.checked_add(right)?, exponent })
        });
        exact.unwrap_or(Self::Float(self.to_float() + other.to_float()))
    }

    pub(super) fn sub(self, other: Self) -> Self {
        let exact = Self::aligned(self, other).and_then(|(left, right, exponent)| {
            Some(Self::Exact { mantissa: left.checked_sub(right)?, exponent })
        });
        exact.unwrap_or(Self::Float(self.to_float() - other.to_float()))
    }

    pub(super) fn mul(self, other: Self) -> Self {
        let exact = || match (self, other) {
            (
                Self::Exact { mantissa: left, exponent: at },
                Self::Exact { mantissa: right, exponent },
            ) => Some(Self::Exact {
                mantissa: left.checked_mul(right)?,
                exponent: at.checked_add(exponent)?,
            }),
            _ => None,
        };
        exact().unwrap_or(Self::Float(self.to_float() * other.to_float()))
    }

    /// Rounded half away from zero.
    pub(super) fn div(self, other: Self) -> Self {
        let exact = || {
            let (left, right, _) = Self::aligned(self, other)?;
            let negative = (left < 0) != (right < 0);
            let (left, right) = (left.unsigned_abs(), right.unsigned_abs());
            let (mut digits, mut rest) = (left.checked_div(right)?, left.checked_rem(right)?);
            for _ in 0..=DIVISION {
                rest = rest.checked_mul(10)?;
                digits = digits.checked_mul(10)?.checked_add(rest / right)?;
                rest %= right;
            }
            let rounded = i128::try_from((digits + 5) / 10).ok()?;
            let rounded = if negative { -rounded } else { rounded };
            Some(Self::Exact { mantissa: rounded, exponent: -DIVISION })
        };
        exact().unwrap_or(Self::Float(self.to_float() / other.to_float()))
    }

    /// Both mantissas over the same exponent.
    fn aligned(left: Self, right: Self) -> Option<(i128, i128, i32)> {
        let (
            Self::Exact { mantissa: left, exponent: at },
            Self::Exact { mantissa: right, exponent: other },
        ) = (left, right)
        else {
            return None;
        };
        let exponent = at.min(other);
        let scale = |mantissa: i128, from: i32| {
            let power = u32::try_from(from - exponent).ok()?;
            mantissa.checked_mul(10_i128.checked_pow(power)?)
        };
        Some((scale(left, at)?, scale(right, other)?, exponent))
    }
}
