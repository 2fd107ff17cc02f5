//! Numbers against ranges, bounds and factors.
//!
//! Integers are compared as integers, with the bound cut to one; a bound that does not fit the
//! schema's own type is a finding by itself. Both as upstream does it.

use serde_json::{Number, Value};

use crate::{
    quote::float_text,
    schema::{Node, Type},
};

/// What is wrong with a number.
pub(super) enum Finding {
    /// Outside what the type can hold. Belongs to no field.
    Range(String),
    /// Outside a bound: the number as it was compared, and the text after `… in body`.
    Bound(Value, String),
    /// The schema's own factor makes no sense: the factor, and the whole text.
    Factor(Value, String),
}

pub(super) fn check(number: &Number, node: &Node, path: &str) -> Vec<Finding> {
    let bounds = &node.bounds;
    let (kind, format) = match (node.int_or_string, node.kind) {
        (false, Some(kind @ (Type::Integer | Type::Number))) => {
            (Some(kind), node.format.as_deref())
        }
        _ => (None, None),
    };
    let mut found = Vec::new();
    let data = number.as_f64().unwrap_or_default();
    let whole = number.as_i64();
    let mut fits = |what: &str, value: f64, exact: Option<i64>| {
        let fits = in_range(value, exact, kind, format);
        if !fits {
            found.push(Finding::Range(range_text(what, kind, format, path)));
        }
        fits
    };
    fits("Checked", data, whole);
    let factor_fits = bounds.multiple_of.is_none_or(|of| fits("MultipleOf", of, None));
    let minimum_fits = bounds.minimum.is_none_or(|min| fits("Minimum boundary", min, None));
    let maximum_fits = bounds.maximum.is_none_or(|max| fits("Maximum boundary", max, None));

    if let Some(factor) = bounds.multiple_of {
        found.extend(multiple(data, whole.filter(|_| factor_fits), factor, path));
    }
    if let Some(min) = bounds.minimum {
        let exclusive = bounds.exclusive_minimum;
        let (too_small, compared, shown) = match whole.filter(|_| minimum_fits) {
            Some(data) => {
                let min = truncate(min);
                (data < min || (exclusive && data == min), Value::from(data), min.to_string())
            }
            None => (data < min || (exclusive && data <= min), Value::from(data), float_text(min)),
        };
        if too_small {
            let or_equal = if exclusive { "" } else { " or equal to" };
            let text = format!("should be greater than{or_equal} {shown}");
            found.push(Finding::Bound(compared, text));
        }
    }
    if let Some(max) = bounds.maximum {
        let exclusive = bounds.exclusive_maximum;
        let (too_large, compared, shown) = match whole.filter(|_| maximum_fits) {
            Some(data) => {
                let max = truncate(max);
                (data > max || (exclusive && data == max), Value::from(data), max.to_string())
            }
            None => (data > max || (exclusive && data >= max), Value::from(data), float_text(max)),
        };
        if too_large {
            let or_equal = if exclusive { "" } else { " or equal to" };
            let text = format!("should be less than{or_equal} {shown}");
            found.push(Finding::Bound(compared, text));
        }
    }
    found
}

fn multiple(data: f64, whole: Option<i64>, factor: f64, path: &str) -> Option<Finding> {
    let (positive, divides, shown, factor) = match whole {
        Some(data) => {
            let factor = truncate(factor);
            let divides = factor > 0 && data.checked_rem(factor) == Some(0);
            (factor > 0, divides, factor.to_string(), Value::from(factor))
        }
        None => {
            let quotient = if factor < 1.0 { 1.0 / factor * data } else { data / factor };
            (factor > 0.0, is_whole(quotient), float_text(factor), Value::from(factor))
        }
    };
    if !positive {
        let text = format!("factor MultipleOf declared for {path} must be positive: {shown}");
        return Some(Finding::Factor(factor, text));
    }
    let compared = whole.map_or_else(|| Value::from(data), Value::from);
    (!divides).then(|| Finding::Bound(compared, format!("should be a multiple of {shown}")))
}

fn in_range(value: f64, exact: Option<i64>, kind: Option<Type>, format: Option<&str>) -> bool {
    match (kind, format) {
        (Some(Type::Integer), format) => {
            // Beyond 2^63 there is nothing between one float and the next, so this is exact.
            let whole = exact.or_else(|| {
                (value.fract() == 0.0 && value.abs() < 9.3e18).then(|| truncate(value))
            });
            match format {
                Some("int32") => whole.is_some_and(|whole| i32::try_from(whole).is_ok()),
                _ => whole.is_some(),
            }
        }
        (Some(Type::Number), Some("float")) => value.abs() <= f64::from(f32::MAX),
        _ => true,
    }
}

fn range_text(what: &str, kind: Option<Type>, format: Option<&str>, path: &str) -> String {
    let name = kind.map_or("", Type::name);
    let known = match kind {
        Some(Type::Integer) => format.filter(|format| matches!(*format, "int32" | "int64")),
        _ => format.filter(|format| matches!(*format, "float" | "double")),
    };
    match known {
        Some(format) => {
            format!("{what} value must be of type {name} with format {format} in {path}")
        }
        None => format!("{what} value must be of type {name} (default format) in {path}"),
    }
}

/// Whether a float stands for an integer that JSON can carry exactly, give or take rounding.
pub(super) fn is_whole(value: f64) -> bool {
    const LARGEST: f64 = 9_007_199_254_740_991.0;
    if !value.is_finite() || value.abs() > LARGEST {
        return false;
    }
    let near = value.round();
    value == near || (near != 0.0 && (value - near).abs() / (value.abs() + near.abs()) < 1e-9)
}

/// The integer part; saturates, as Rust's casts do.
#[expect(clippy::cast_possible_truncation, reason = "cutting is the purpose")]
pub(super) fn truncate(value: f64) -> i64 {
    value as i64
}
