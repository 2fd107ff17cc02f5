//! Moments with a zone, written and read with Go's reference layout (`Mon Jan 2 15:04:05 2006`).
//!
//! There is no clock here. "Local" is UTC, as it is in the containers that resolve policies.

use std::fmt;

use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp};

mod duration;
mod layout;
mod parse;

pub(crate) use duration::{duration_text, parse_duration};
pub(crate) use parse::parse;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Time {
    at: Timestamp,
    /// Seconds east of Greenwich.
    offset: i32,
    zone: String,
}

impl Time {
    pub(crate) fn new(at: Timestamp) -> Self {
        Self { at, offset: 0, zone: "UTC".to_owned() }
    }

    /// Seconds since 1970; out of range becomes the nearest moment that can be told.
    pub(crate) fn from_unix(seconds: i64) -> Self {
        let at = Timestamp::from_second(seconds).unwrap_or(if seconds < 0 {
            Timestamp::MIN
        } else {
            Timestamp::MAX
        });
        Self::new(at)
    }

    /// Go's zero time, the first second of year 1.
    pub(crate) fn zero() -> Self {
        Self::from_unix(-62_135_596_800)
    }

    pub(crate) fn unix(&self) -> i64 {
        self.at.as_second()
    }

    pub(crate) fn utc(&self) -> Self {
        Self::new(self.at)
    }

    /// In a zone by its IANA name; UTC if there is no such zone, as Sprig does.
    pub(crate) fn in_zone(&self, name: &str) -> Self {
        if matches!(name, "" | "UTC" | "Local") {
            return self.utc();
        }
        let Ok(zone) = TimeZone::get(name) else { return self.utc() };
        let info = zone.to_offset_info(self.at);
        Self { at: self.at, offset: info.offset().seconds(), zone: info.abbreviation().to_owned() }
    }

    pub(crate) fn with_offset(at: Timestamp, offset: i32, zone: String) -> Self {
        Self { at, offset, zone }
    }

    /// Date and clock where the zone is.
    pub(crate) fn civil(&self) -> DateTime {
        let offset = Offset::from_seconds(self.offset).unwrap_or(Offset::UTC);
        offset.to_datetime(self.at)
    }

    pub(crate) fn offset(&self) -> i32 {
        self.offset
    }

    /// The zone's short name, or its offset where it has none.
    pub(crate) fn zone(&self) -> String {
        if self.zone.is_empty() {
            return layout::offset_text(self.offset, false, false);
        }
        self.zone.clone()
    }

    pub(crate) fn add(&self, nanoseconds: i64) -> Self {
        let moved = self.at.checked_add(SignedDuration::from_nanos(nanoseconds));
        Self { at: moved.unwrap_or(self.at), ..self.clone() }
    }

    /// Nanoseconds from `earlier` until this, as far as they can be counted.
    pub(crate) fn since(&self, earlier: &Self) -> i64 {
        let nanoseconds = self.at.duration_since(earlier.at).as_nanos();
        i64::try_from(nanoseconds).unwrap_or(if nanoseconds < 0 { i64::MIN } else { i64::MAX })
    }

    pub(crate) fn format(&self, layout: &str) -> String {
        layout::format(self, layout)
    }

    pub(crate) fn rfc3339(&self) -> String {
        self.format("2006-01-02T15:04:05.999999999Z07:00")
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.format("2006-01-02 15:04:05.999999999 -0700 MST"))
    }
}
