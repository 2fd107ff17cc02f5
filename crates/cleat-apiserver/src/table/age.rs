//! Times as people read them: `5m`, `3h12m`, `2d`.

use jiff::Timestamp;
use serde_json::Value;

/// Two or three significant figures of a duration in seconds.
pub fn human_duration(seconds: i64) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    let two = |big: i64, unit: &str, small: i64, part: &str| match small {
        0 => format!("{big}{unit}"),
        small => format!("{big}{unit}{small}{part}"),
    };
    let (minutes, hours) = (seconds / MINUTE, seconds / HOUR);
    match seconds {
        // Clocks may differ a little.
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        _ if minutes < 10 => two(minutes, "m", seconds % MINUTE, "s"),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => two(hours, "h", minutes % 60, "m"),
        _ if hours < 48 => format!("{hours}h"),
        _ if hours < 192 => two(hours / 24, "d", hours % 24, "h"),
        _ if hours < 24 * 365 * 2 => format!("{}d", hours / 24),
        _ if hours < 24 * 365 * 8 => two(hours / 24 / 365, "y", hours / 24 % 365, "d"),
        _ => format!("{}y", hours / 24 / 365),
    }
}

/// How long ago a time in RFC 3339 was. Nothing is `<unknown>`.
pub(super) fn since(time: Option<&Value>, now: Timestamp) -> String {
    match time.and_then(Value::as_str) {
        None | Some("" | "null") => "<unknown>".to_owned(),
        Some(text) => match text.parse::<Timestamp>() {
            Ok(time) => human_duration(between(time, now)),
            Err(_) => "<invalid>".to_owned(),
        },
    }
}

/// Whole seconds, towards zero.
pub(super) fn between(from: Timestamp, to: Timestamp) -> i64 {
    to.duration_since(from).as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_few_figures() {
        const DAY: i64 = 86_400;
        for (seconds, expected) in [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (130, "2m10s"),
            (600, "10m"),
            (179 * 60, "179m"),
            (3 * 3600, "3h"),
            (3 * 3600 + 300, "3h5m"),
            (8 * 3600 + 300, "8h"),
            (2 * DAY, "2d"),
            (2 * DAY + 3600, "2d1h"),
            (8 * DAY + 3600, "8d"),
            (2 * 365 * DAY, "2y"),
            (2 * 365 * DAY + DAY, "2y1d"),
            (9 * 365 * DAY + DAY, "9y"),
        ] {
            assert_eq!(human_duration(seconds), expected, "{seconds}");
        }
        let now: Timestamp = "2026-01-01T00:05:00Z".parse().unwrap();
        assert_eq!(since(Some(&"2026-01-01T00:00:00Z".into()), now), "5m");
        assert_eq!(since(Some(&"x".into()), now), "<invalid>");
        assert_eq!(since(None, now), "<unknown>");
    }
}
