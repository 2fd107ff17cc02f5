//! Reading a time with Go's layouts.
//!
//! Names of zones other than UTC are read as such but taken as UTC, because a short name does not
//! say which zone is meant.

use jiff::civil::Date;
use jiff::tz::Offset;

use cleat_dialect::quote;

use super::Time;
use super::layout::{self, DAYS, MONTHS, Part};

#[derive(Default)]
struct Read {
    year: i16,
    month: Option<i8>,
    day: Option<i8>,
    year_day: Option<i16>,
    hour: i8,
    minute: i8,
    second: i8,
    nanosecond: i32,
    afternoon: Option<bool>,
    offset: Option<i32>,
    zone: Option<String>,
}

/// # Errors
/// The text of Go's `time.Parse`.
pub(crate) fn parse(layout: &str, text: &str) -> Result<Time, String> {
    let mut read = Read::default();
    let mut rest = text;
    let wrong = |rest: &str, spelled: &str| {
        format!(
            "parsing time {} as {}: cannot parse {} as {}",
            quote::quoted(text),
            quote::quoted(layout),
            quote::quoted(rest),
            quote::quoted(spelled)
        )
    };
    let range = |what: &str| format!("parsing time {}: {what} out of range", quote::quoted(text));
    let parts = layout::parts(layout);
    let mut index = 0;
    while let Some((part, spelled)) = parts.get(index) {
        index += 1;
        if let Part::Text(_) = part {
            // Go compares the whole text up to the next part at once.
            let mut literal = (*spelled).to_owned();
            while let Some((Part::Text(more), _)) = parts.get(index) {
                literal += more;
                index += 1;
            }
            rest = skip(rest, &literal).ok_or_else(|| wrong(rest, &literal))?;
            continue;
        }
        let held = rest;
        match step(&mut read, *part, rest) {
            Ok(after) => rest = after,
            Err(Trouble::Syntax) => return Err(wrong(held, spelled)),
            Err(Trouble::Range(what)) => return Err(range(what)),
        }
        // A fraction may follow seconds even where the layout has none.
        let more = parts.get(index).map(|(part, _)| part);
        if matches!(part, Part::Second | Part::ZeroSecond)
            && !matches!(more, Some(Part::Fraction { .. }))
            && rest.starts_with(['.', ','])
            && rest.get(1..).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        {
            let digits = rest.get(1..).map_or(0, digits);
            let (fraction, after) = rest.split_at(digits + 1);
            read.nanosecond = nanoseconds(fraction.get(1..).unwrap_or_default());
            rest = after;
        }
    }
    if !rest.is_empty() {
        return Err(format!(
            "parsing time {}: extra text: {}",
            quote::quoted(text),
            quote::quoted(rest)
        ));
    }
    finish(read).ok_or_else(|| range("day"))
}

enum Trouble {
    Syntax,
    Range(&'static str),
}

fn skip<'a>(text: &'a str, literal: &str) -> Option<&'a str> {
    let mut rest = text;
    let mut wanted = literal;
    while let Some(c) = wanted.chars().next() {
        if c == ' ' {
            if !rest.is_empty() && !rest.starts_with(' ') {
                return None;
            }
            wanted = wanted.trim_start_matches(' ');
            rest = rest.trim_start_matches(' ');
            continue;
        }
        rest = rest.strip_prefix(c)?;
        wanted = wanted.get(c.len_utf8()..)?;
    }
    Some(rest)
}

fn digits(text: &str) -> usize {
    text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len()
}

fn nanoseconds(fraction: &str) -> i32 {
    let nine: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    nine.parse().unwrap_or(0)
}

/// One or two digits, or exactly two.
fn number(text: &str, fixed: bool) -> Result<(i8, &str), Trouble> {
    let count = digits(text).min(2);
    if count == 0 || (fixed && count == 1) {
        return Err(Trouble::Syntax);
    }
    let (number, rest) = text.split_at(count);
    Ok((number.parse().map_err(|_| Trouble::Syntax)?, rest))
}

fn checked<'a>(
    (value, rest): (i8, &'a str),
    from: i8,
    to: i8,
    what: &'static str,
) -> Result<(i8, &'a str), Trouble> {
    if (from..=to).contains(&value) { Ok((value, rest)) } else { Err(Trouble::Range(what)) }
}

fn name<'a>(
    text: &'a str,
    names: &[&str],
    length: Option<usize>,
) -> Result<(i8, &'a str), Trouble> {
    for (index, name) in names.iter().enumerate() {
        let name = name.get(..length.unwrap_or(name.len())).unwrap_or(name);
        if text.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name)) {
            let index = i8::try_from(index + 1).map_err(|_| Trouble::Syntax)?;
            return Ok((index, text.get(name.len()..).unwrap_or_default()));
        }
    }
    Err(Trouble::Syntax)
}

fn step<'a>(read: &mut Read, part: Part<'_>, text: &'a str) -> Result<&'a str, Trouble> {
    Ok(match part {
        Part::Text(_) => text,
        Part::LongMonth => set(&mut read.month, name(text, &MONTHS, None)?),
        Part::Month => set(&mut read.month, name(text, &MONTHS, Some(3))?),
        Part::NumMonth | Part::ZeroMonth => {
            let fixed = part == Part::ZeroMonth;
            set(&mut read.month, checked(number(text, fixed)?, 1, 12, "month")?)
        }
        Part::LongDay => name(text, &DAYS, None)?.1,
        Part::Day => name(text, &DAYS, Some(3))?.1,
        Part::NumDay | Part::ZeroDay | Part::SpaceDay => {
            let text = if part == Part::SpaceDay { text.trim_start_matches(' ') } else { text };
            set(&mut read.day, number(text, part == Part::ZeroDay)?)
        }
        Part::SpaceYearDay | Part::ZeroYearDay => {
            let text = text.trim_start_matches(' ');
            let (day, rest) = text.split_at(digits(text).min(3));
            read.year_day = Some(day.parse().map_err(|_| Trouble::Syntax)?);
            rest
        }
        Part::Hour => {
            let (hour, rest) = checked(number(text, false)?, 0, 23, "hour")?;
            read.hour = hour;
            rest
        }
        Part::Hour12 | Part::ZeroHour12 => {
            let fixed = part == Part::ZeroHour12;
            let (hour, rest) = checked(number(text, fixed)?, 0, 12, "hour")?;
            read.hour = hour;
            rest
        }
        Part::Minute | Part::ZeroMinute => {
            let fixed = part == Part::ZeroMinute;
            let (minute, rest) = checked(number(text, fixed)?, 0, 59, "minute")?;
            read.minute = minute;
            rest
        }
        Part::Second | Part::ZeroSecond => {
            let fixed = part == Part::ZeroSecond;
            let (second, rest) = checked(number(text, fixed)?, 0, 59, "second")?;
            read.second = second;
            rest
        }
        Part::LongYear => {
            if digits(text) < 4 {
                return Err(Trouble::Syntax);
            }
            let (year, rest) = text.split_at(4);
            read.year = year.parse().map_err(|_| Trouble::Syntax)?;
            rest
        }
        Part::Year => {
            let (year, rest) = number(text, true)?;
            let year = i16::from(year);
            read.year = if year >= 69 { 1900 + year } else { 2000 + year };
            rest
        }
        Part::UpperPm | Part::LowerPm => {
            let spelled = text.get(..2).ok_or(Trouble::Syntax)?;
            let wanted = if part == Part::UpperPm { ["PM", "AM"] } else { ["pm", "am"] };
            read.afternoon = match wanted.iter().position(|word| *word == spelled) {
                Some(index) => Some(index == 0),
                None => return Err(Trouble::Syntax),
            };
            text.get(2..).unwrap_or_default()
        }
        Part::Zone => {
            let length =
                text.len() - text.trim_start_matches(|c: char| c.is_ascii_uppercase()).len();
            if length < 3 {
                return Err(Trouble::Syntax);
            }
            let (zone, rest) = text.split_at(length.min(5));
            read.zone = Some(zone.to_owned());
            rest
        }
        Part::Offset { iso, colon, seconds, short } => {
            if iso && text.starts_with('Z') {
                read.offset = Some(0);
                return Ok(text.get(1..).unwrap_or_default());
            }
            let (offset, rest) = offset(text, colon, seconds, short).ok_or(Trouble::Syntax)?;
            read.offset = Some(offset);
            rest
        }
        Part::Fraction { digits: count, trim, .. } => {
            if !text.starts_with(['.', ',']) {
                if trim {
                    return Ok(text);
                }
                return Err(Trouble::Syntax);
            }
            let after = text.get(1..).unwrap_or_default();
            let length = if trim { digits(after) } else { count };
            if digits(after) < length {
                return Err(Trouble::Syntax);
            }
            let (fraction, rest) = after.split_at(length);
            read.nanosecond = nanoseconds(fraction);
            rest
        }
    })
}

fn set<'a>(slot: &mut Option<i8>, (value, rest): (i8, &'a str)) -> &'a str {
    *slot = Some(value);
    rest
}

fn offset(text: &str, colon: bool, seconds: bool, short: bool) -> Option<(i32, &str)> {
    let sign = match text.chars().next()? {
        '+' => 1,
        '-' => -1,
        _ => return None,
    };
    let mut rest = text.get(1..)?;
    let mut total = 0;
    let fields = if short { 1 } else { 2 + usize::from(seconds) };
    for (index, scale) in [3600, 60, 1].into_iter().take(fields).enumerate() {
        if index > 0 && colon {
            rest = rest.strip_prefix(':')?;
        }
        let number = rest.get(..2).filter(|number| digits(number) == 2)?;
        total += number.parse::<i32>().ok()? * scale;
        rest = rest.get(2..)?;
    }
    Some((sign * total, rest))
}

fn finish(read: Read) -> Option<Time> {
    let hour = match read.afternoon {
        Some(true) if read.hour < 12 => read.hour + 12,
        Some(false) if read.hour == 12 => 0,
        _ => read.hour,
    };
    let date = match read.year_day {
        Some(day) => Date::new(read.year, 1, 1).ok()?.with().day_of_year(day).build().ok()?,
        None => Date::new(read.year, read.month.unwrap_or(1), read.day.unwrap_or(1)).ok()?,
    };
    let civil = date.at(hour, read.minute, read.second, read.nanosecond);
    let seconds = read.offset.unwrap_or(0);
    let at = Offset::from_seconds(seconds).ok()?.to_timestamp(civil).ok()?;
    let zone = match (read.zone, read.offset) {
        (Some(zone), _) => zone,
        (None, None | Some(0)) => "UTC".to_owned(),
        (None, Some(_)) => String::new(),
    };
    Some(Time::with_offset(at, seconds, zone))
}
