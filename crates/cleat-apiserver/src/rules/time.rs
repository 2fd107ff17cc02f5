//! Kubernetes' two ways of writing a moment: whole seconds, and microseconds.

use jiff::{Timestamp, tz::TimeZone};

/// `2026-11-15T21:07:54Z`, as `metav1.Time` is written.
pub(crate) fn seconds(now: Timestamp) -> String {
    now.to_zoned(TimeZone::UTC).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// `2026-11-15T21:07:54.000000Z`, as `metav1.MicroTime` is written.
pub(crate) fn micros(now: Timestamp) -> String {
    now.to_zoned(TimeZone::UTC).strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

/// RFC 3339 with any offset. The `T` and the offset are not optional, unlike in jiff's own parser.
pub(crate) fn parse(text: &str) -> Option<Timestamp> {
    if text.as_bytes().get(10) != Some(&b'T') || text.contains('[') {
        return None;
    }
    text.parse().ok()
}

/// What Go would write after reading `text`; unreadable text stays as it is.
pub(crate) fn canonical_seconds(text: &str) -> Option<String> {
    parse(text).map(seconds)
}

pub(crate) fn canonical_micros(text: &str) -> Option<String> {
    parse(text).map(micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_in_utc() {
        let written = |text| canonical_seconds(text).unwrap();
        assert_eq!(written("2026-11-15T21:07:54Z"), "2026-11-15T21:07:54Z");
        assert_eq!(written("2026-11-15T23:07:54.9+02:00"), "2026-11-15T21:07:54Z");
        let written = |text| canonical_micros(text).unwrap();
        assert_eq!(written("2026-11-15T21:07:54.1Z"), "2026-11-15T21:07:54.100000Z");
        assert_eq!(written("2026-11-15T21:07:54Z"), "2026-11-15T21:07:54.000000Z");
        assert_eq!(canonical_seconds("2026-11-15"), None);
        assert_eq!(canonical_seconds("2026-11-15 21:07:54Z"), None);
    }
}
