//! Go's durations: `1h15m30.918s`.

const UNITS: &[(&str, u64)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Nanoseconds.
///
/// # Errors
/// The text of Go's `time.ParseDuration`.
pub(crate) fn parse_duration(text: &str) -> Result<i64, String> {
    let quoted = || cleat_dialect::quote::quoted(text);
    let invalid = || format!("time: invalid duration {}", quoted());
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let digits =
            |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (whole, after) = rest.split_at(digits(rest));
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => after.split_at(digits(after)),
            None => ("", after),
        };
        if whole.is_empty() && fraction.is_empty() {
            return Err(invalid());
        }
        let end = after.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        if unit.is_empty() {
            return Err(format!("time: missing unit in duration {}", quoted()));
        }
        let Some((_, scale)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            let unit = cleat_dialect::quote::quoted(unit);
            return Err(format!("time: unknown unit {unit} in duration {}", quoted()));
        };
        let scale = i128::from(*scale);
        let whole: i128 =
            if whole.is_empty() { 0 } else { whole.parse().map_err(|_| invalid())? };
        total = whole
            .checked_mul(scale)
            .and_then(|part| total.checked_add(part))
            .ok_or_else(invalid)?;
        let mut unit_part = scale;
        for digit in fraction.chars().take(20) {
            total += i128::from(digit.to_digit(10).unwrap_or(0)) * unit_part / 10;
            unit_part /= 10;
        }
        rest = after;
    }
    let total = if negative { -total } else { total };
    i64::try_from(total).map_err(|_| invalid())
}

/// Go's `Duration.String`.
pub(crate) fn duration_text(nanoseconds: i64) -> String {
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let all = nanoseconds.unsigned_abs();
    if all == 0 {
        return "0s".to_owned();
    }
    let fraction = |value: u64, scale: u64, digits: usize| {
        let text = format!("{}.{:0digits$}", value / scale, value % scale);
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    if all < 1_000 {
        return format!("{sign}{all}ns");
    }
    if all < 1_000_000 {
        return format!("{sign}{}µs", fraction(all, 1_000, 3));
    }
    if all < 1_000_000_000 {
        return format!("{sign}{}ms", fraction(all, 1_000_000, 6));
    }
    let minutes = all / 60_000_000_000;
    let seconds = fraction(all % 60_000_000_000, 1_000_000_000, 9);
    match (minutes / 60, minutes % 60) {
        (0, 0) => format!("{sign}{seconds}s"),
        (0, minutes) => format!("{sign}{minutes}m{seconds}s"),
        (hours, minutes) => format!("{sign}{hours}h{minutes}m{seconds}s"),
    }
}
