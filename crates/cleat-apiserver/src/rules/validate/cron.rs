//! Whether a text is a cron schedule, in the words of the library kube-apiserver uses.

/// The five fields: lowest and highest value, and names for them.
const FIELDS: [(u64, u64, &[&str]); 5] = [
    (0, 59, &[]),
    (0, 23, &[]),
    (1, 31, &[]),
    (1, 12, &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]),
    (0, 6, &["sun", "mon", "tue", "wed", "thu", "fri", "sat"]),
];

pub(super) fn check(schedule: &str) -> Result<(), String> {
    let schedule = match schedule.split_once(' ') {
        Some((zone, rest)) if zone.starts_with("TZ=") || zone.starts_with("CRON_TZ=") => {
            rest.trim()
        }
        _ => schedule,
    };
    if schedule.starts_with('@') {
        return descriptor(schedule);
    }
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        let count = fields.len();
        return Err(format!("expected exactly 5 fields, found {count}: [{}]", fields.join(" ")));
    }
    for (field, bounds) in fields.iter().zip(FIELDS) {
        for expression in field.split(',').filter(|expression| !expression.is_empty()) {
            range(expression, bounds)?;
        }
    }
    Ok(())
}

fn descriptor(text: &str) -> Result<(), String> {
    let known = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];
    if known.contains(&text) {
        return Ok(());
    }
    match text.strip_prefix("@every ") {
        Some(duration) if is_duration(duration) => Ok(()),
        Some(duration) => Err(format!(
            "failed to parse duration {text}: time: invalid duration {}",
            crate::quote::quoted(duration)
        )),
        None => Err(format!("unrecognized descriptor: {text}")),
    }
}

/// Go's durations: `1h30m`, `1.5s`.
fn is_duration(text: &str) -> bool {
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    if rest.is_empty() {
        return false;
    }
    while !rest.is_empty() {
        let unit = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let number = rest.len() - unit.len();
        let Some(next) =
            ["ns", "us", "µs", "ms", "s", "m", "h"].iter().find_map(|name| unit.strip_prefix(name))
        else {
            return false;
        };
        if number == 0 {
            return false;
        }
        rest = next;
    }
    true
}

fn range(expression: &str, (min, max, names): (u64, u64, &[&str])) -> Result<(), String> {
    let parts: Vec<&str> = expression.split('/').collect();
    let ends: Vec<&str> = parts.first().unwrap_or(&"").split('-').collect();
    let single = ends.len() == 1;
    let (start, mut end) = match ends.as_slice() {
        ["*" | "?", ..] => (min, max),
        [one] => {
            let one = number(one, min, names)?;
            (one, one)
        }
        [low, high] => (number(low, min, names)?, number(high, min, names)?),
        _ => {
            // The first end is read before the hyphens are counted.
            number(ends.first().unwrap_or(&""), min, names)?;
            return Err(format!("too many hyphens: {expression}"));
        }
    };
    let step = match parts.as_slice() {
        [_] => 1,
        [_, step] => {
            if single {
                end = max;
            }
            integer(step)?
        }
        _ => return Err(format!("too many slashes: {expression}")),
    };
    if start < min {
        let why = format!("beginning of range ({start}) below minimum ({min}): {expression}");
        return Err(why);
    }
    if end > max {
        return Err(format!("end of range ({end}) above maximum ({max}): {expression}"));
    }
    if start > end {
        let why = format!("beginning of range ({start}) beyond end of range ({end}): {expression}");
        return Err(why);
    }
    if step == 0 {
        return Err(format!("step of range should be a positive number: {expression}"));
    }
    Ok(())
}

fn number(text: &str, min: u64, names: &[&str]) -> Result<u64, String> {
    match (min..).zip(names).find(|(_, name)| name.eq_ignore_ascii_case(text)) {
        Some((value, _)) => Ok(value),
        None => integer(text),
    }
}

fn integer(text: &str) -> Result<u64, String> {
    let quoted = crate::quote::quoted(text);
    match text.parse::<i64>() {
        Ok(number) if number < 0 => Err(format!("negative number ({number}) not allowed: {text}")),
        Ok(number) => Ok(number.unsigned_abs()),
        Err(error) => {
            use std::num::IntErrorKind::{NegOverflow, PosOverflow};
            let why = match error.kind() {
                PosOverflow | NegOverflow => "value out of range",
                _ => "invalid syntax",
            };
            Err(format!("failed to parse int from {text}: strconv.Atoi: parsing {quoted}: {why}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn schedules_that_people_write() {
        for schedule in [
            "* * * * *",
            "*/5 * * * *",
            "0 0 1,15 * mon-fri",
            "0-30/10 1 ? JAN *",
            "@daily",
            "@every 1h30m",
            "5/15 * * * *",
        ] {
            assert_eq!(check(schedule), Ok(()), "{schedule}");
        }
    }

    #[test]
    fn mistakes_that_people_make() {
        for (schedule, why) in [
            ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
            ("60 * * * *", "end of range (60) above maximum (59): 60"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            (
                "a * * * *",
                "failed to parse int from a: strconv.Atoi: parsing \"a\": invalid syntax",
            ),
            ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
            ("1/2/3 * * * *", "too many slashes: 1/2/3"),
            ("@often", "unrecognized descriptor: @often"),
        ] {
            assert_eq!(check(schedule).unwrap_err(), why, "{schedule}");
        }
    }
}
