//! Go's layouts: which parts of them stand for which parts of a time, and writing a time with one.

use std::fmt::Write as _;

use super::Time;

pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
pub(super) const DAYS: [&str; 7] =
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part<'a> {
    /// Stands for itself.
    Text(&'a str),
    LongMonth,
    Month,
    NumMonth,
    ZeroMonth,
    LongDay,
    Day,
    NumDay,
    SpaceDay,
    ZeroDay,
    SpaceYearDay,
    ZeroYearDay,
    Hour,
    Hour12,
    ZeroHour12,
    Minute,
    ZeroMinute,
    Second,
    ZeroSecond,
    LongYear,
    Year,
    UpperPm,
    LowerPm,
    Zone,
    /// `Z` for UTC, with colons, with seconds, hours only.
    Offset {
        iso: bool,
        colon: bool,
        seconds: bool,
        short: bool,
    },
    /// Digits after a point; `trim` leaves out zeros at the end.
    Fraction {
        point: char,
        digits: usize,
        trim: bool,
    },
}

const FIXED: &[(&str, Part<'static>)] = &[
    ("January", Part::LongMonth),
    ("Jan", Part::Month),
    ("Monday", Part::LongDay),
    ("Mon", Part::Day),
    ("MST", Part::Zone),
    ("01", Part::ZeroMonth),
    ("002", Part::ZeroYearDay),
    ("02", Part::ZeroDay),
    ("03", Part::ZeroHour12),
    ("04", Part::ZeroMinute),
    ("05", Part::ZeroSecond),
    ("06", Part::Year),
    ("15", Part::Hour),
    ("1", Part::NumMonth),
    ("2006", Part::LongYear),
    ("2", Part::NumDay),
    ("__2", Part::SpaceYearDay),
    ("_2", Part::SpaceDay),
    ("3", Part::Hour12),
    ("4", Part::Minute),
    ("5", Part::Second),
    ("PM", Part::UpperPm),
    ("pm", Part::LowerPm),
    ("-070000", Part::Offset { iso: false, colon: false, seconds: true, short: false }),
    ("-07:00:00", Part::Offset { iso: false, colon: true, seconds: true, short: false }),
    ("-0700", Part::Offset { iso: false, colon: false, seconds: false, short: false }),
    ("-07:00", Part::Offset { iso: false, colon: true, seconds: false, short: false }),
    ("-07", Part::Offset { iso: false, colon: false, seconds: false, short: true }),
    ("Z070000", Part::Offset { iso: true, colon: false, seconds: true, short: false }),
    ("Z07:00:00", Part::Offset { iso: true, colon: true, seconds: true, short: false }),
    ("Z0700", Part::Offset { iso: true, colon: false, seconds: false, short: false }),
    ("Z07:00", Part::Offset { iso: true, colon: true, seconds: false, short: false }),
    ("Z07", Part::Offset { iso: true, colon: false, seconds: false, short: true }),
];

/// Cuts a layout into parts. Text in between comes out one character at a time.
pub(super) fn parts(layout: &str) -> Vec<(Part<'_>, &str)> {
    let mut rest = layout;
    let mut parts = Vec::new();
    while let Some(first) = rest.chars().next() {
        let (part, length) = first_part(rest, first);
        let (spelled, after) = rest.split_at(length);
        parts.push((part, spelled));
        rest = after;
    }
    parts
}

fn first_part(rest: &str, first: char) -> (Part<'_>, usize) {
    // `_2006` is an underscore and a year.
    if rest.starts_with("_2006") {
        return (Part::Text("_"), 1);
    }
    let known = |(spelled, part): &(&'static str, Part<'static>)| {
        if !rest.starts_with(spelled) {
            return None;
        }
        // `Januaryx` is a month; `Monx` followed by small letters would be a word.
        let after = rest.get(spelled.len()..).and_then(|rest| rest.chars().next());
        let word =
            matches!(*spelled, "Jan" | "Mon") && after.is_some_and(|c| c.is_ascii_lowercase());
        (!word).then_some((*part, spelled.len()))
    };
    if let Some(found) = FIXED.iter().find_map(known) {
        return found;
    }
    if matches!(first, '.' | ',') {
        let digits = rest.get(1..).unwrap_or_default();
        for (digit, trim) in [('0', false), ('9', true)] {
            let count = digits.len() - digits.trim_start_matches(digit).len();
            let after = digits.get(count..).and_then(|rest| rest.chars().next());
            if count > 0 && !after.is_some_and(|c| c.is_ascii_digit()) {
                return (Part::Fraction { point: first, digits: count, trim }, count + 1);
            }
        }
    }
    let length = first.len_utf8();
    (Part::Text(rest.get(..length).unwrap_or(rest)), length)
}

pub(super) fn format(time: &Time, layout: &str) -> String {
    let mut out = String::with_capacity(layout.len() + 10);
    for (part, _) in parts(layout) {
        write_part(&mut out, time, part);
    }
    out
}

fn write_part(out: &mut String, time: &Time, part: Part<'_>) {
    let civil = time.civil();
    let month = usize::try_from(civil.month() - 1).ok().and_then(|index| MONTHS.get(index));
    let month = month.copied().unwrap_or_default();
    let day = usize::try_from(civil.weekday().to_monday_zero_offset()).ok();
    let day = day.and_then(|index| DAYS.get(index)).copied().unwrap_or_default();
    let hour12 = match civil.hour() % 12 {
        0 => 12,
        hour => hour,
    };
    let _ = match part {
        Part::Text(text) => write!(out, "{text}"),
        Part::LongMonth => write!(out, "{month}"),
        Part::Month => write!(out, "{}", month.get(..3).unwrap_or_default()),
        Part::NumMonth => write!(out, "{}", civil.month()),
        Part::ZeroMonth => write!(out, "{:02}", civil.month()),
        Part::LongDay => write!(out, "{day}"),
        Part::Day => write!(out, "{}", day.get(..3).unwrap_or_default()),
        Part::NumDay => write!(out, "{}", civil.day()),
        Part::SpaceDay => write!(out, "{:2}", civil.day()),
        Part::ZeroDay => write!(out, "{:02}", civil.day()),
        Part::SpaceYearDay => write!(out, "{:3}", civil.date().day_of_year()),
        Part::ZeroYearDay => write!(out, "{:03}", civil.date().day_of_year()),
        Part::Hour => write!(out, "{:02}", civil.hour()),
        Part::Hour12 => write!(out, "{hour12}"),
        Part::ZeroHour12 => write!(out, "{hour12:02}"),
        Part::Minute => write!(out, "{}", civil.minute()),
        Part::ZeroMinute => write!(out, "{:02}", civil.minute()),
        Part::Second => write!(out, "{}", civil.second()),
        Part::ZeroSecond => write!(out, "{:02}", civil.second()),
        Part::LongYear => write!(out, "{:04}", civil.year()),
        Part::Year => write!(out, "{:02}", civil.year().rem_euclid(100)),
        Part::UpperPm => write!(out, "{}", if civil.hour() >= 12 { "PM" } else { "AM" }),
        Part::LowerPm => write!(out, "{}", if civil.hour() >= 12 { "pm" } else { "am" }),
        Part::Zone => write!(out, "{}", time.zone()),
        Part::Offset { iso: true, .. } if time.offset() == 0 => write!(out, "Z"),
        Part::Offset { short: true, .. } => {
            let text = offset_text(time.offset(), false, false);
            write!(out, "{}", text.get(..3).unwrap_or_default())
        }
        Part::Offset { colon, seconds, .. } => {
            write!(out, "{}", offset_text(time.offset(), colon, seconds))
        }
        Part::Fraction { point, digits, trim } => {
            let all = format!("{:09}", civil.subsec_nanosecond());
            let digits = all.get(..digits.min(9)).unwrap_or_default();
            let digits = if trim { digits.trim_end_matches('0') } else { digits };
            if digits.is_empty() { Ok(()) } else { write!(out, "{point}{digits}") }
        }
    };
}

pub(super) fn offset_text(offset: i32, colon: bool, seconds: bool) -> String {
    let sign = if offset < 0 { '-' } else { '+' };
    let all = offset.unsigned_abs();
    let (hours, minutes, rest) = (all / 3600, all / 60 % 60, all % 60);
    let between = if colon { ":" } else { "" };
    let mut text = format!("{sign}{hours:02}{between}{minutes:02}");
    if seconds {
        let _ = write!(text, "{between}{rest:02}");
    }
    text
}
