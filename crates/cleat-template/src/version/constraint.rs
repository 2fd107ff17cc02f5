//! `>=1.2, <2 || ~3.4`: alternatives of conditions that must all hold.
//!
//! A prerelease satisfies only an alternative that itself mentions a prerelease.

use std::cmp::Ordering;
use std::sync::LazyLock;

use regex::Regex;

use super::Version;

const VERSION: &str = concat!(
    r"v?([0-9|x|X|\*]+)(\.[0-9|x|X|\*]+)?(\.[0-9|x|X|\*]+)?",
    r"(-(?:[0-9A-Za-z\-]+(?:\.[0-9A-Za-z\-]+)*))?",
    r"(?:\+(?:[0-9A-Za-z\-]+(?:\.[0-9A-Za-z\-]+)*))?"
);

struct Patterns {
    range: Regex,
    valid: Regex,
    one: Regex,
    each: Regex,
}

static PATTERNS: LazyLock<Option<Patterns>> = LazyLock::new(|| {
    // Longer operators must be tried before their beginnings.
    let operators = r"!=|>=|=>|<=|=<|~>|=|>|<|~|\^|";
    Some(Patterns {
        range: Regex::new(&format!(r"\s*({VERSION})\s+-\s+({VERSION})\s*")).ok()?,
        valid: Regex::new(&format!(
            r"^(\s*({operators})\s*({VERSION})\s*)((?:\s+|,\s*)({operators})\s*({VERSION})\s*)*$"
        ))
        .ok()?,
        one: Regex::new(&format!(r"^\s*({operators})\s*({VERSION})\s*$")).ok()?,
        each: Regex::new(&format!(r"({operators})\s*({VERSION})")).ok()?,
    })
});

/// How much of the version was left open.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    Nothing,
    Patch,
    Minor,
    Everything,
}

struct Condition {
    operator: String,
    version: Version,
    open: Open,
}

/// # Errors
/// A constraint or version that cannot be understood.
pub(crate) fn satisfies(constraint: &str, version: &str) -> Result<bool, String> {
    let alternatives = alternatives(constraint)?;
    let version = Version::parse(version)?;
    Ok(alternatives.iter().any(|conditions| {
        let mentions = conditions.iter().any(|condition| !condition.version.prerelease.is_empty());
        if !version.prerelease.is_empty() && !mentions {
            return false;
        }
        conditions.iter().all(|condition| condition.holds(&version))
    }))
}

fn alternatives(text: &str) -> Result<Vec<Vec<Condition>>, String> {
    let patterns = PATTERNS.as_ref().ok_or("constraint parser error")?;
    let mut rewritten = text.to_owned();
    for found in patterns.range.captures_iter(text) {
        let part = |index: usize| found.get(index).map_or("", |part| part.as_str());
        let range = format!(">= {}, <= {} ", part(1), part(6));
        rewritten = rewritten.replacen(part(0), &range, 1);
    }
    rewritten
        .split("||")
        .map(|part| {
            if !patterns.valid.is_match(part) {
                return Err(format!("improper constraint: {part}"));
            }
            patterns.each.find_iter(part).map(|found| condition(patterns, found.as_str())).collect()
        })
        .collect()
}

fn condition(patterns: &Patterns, text: &str) -> Result<Condition, String> {
    let Some(found) = patterns.one.captures(text) else {
        return Err(format!("improper constraint: {text}"));
    };
    let part = |index: usize| found.get(index).map_or("", |part| part.as_str());
    let is_open = |text: &str| matches!(text.trim_start_matches('.'), "" | "x" | "X" | "*");
    let (major, minor, patch, tail) = (part(3), part(4), part(5), part(6));
    let (open, version) = if is_open(major) {
        (Open::Everything, format!("0.0.0{tail}"))
    } else if is_open(minor) {
        (Open::Minor, format!("{major}.0.0{tail}"))
    } else if is_open(patch) {
        (Open::Patch, format!("{major}{minor}.0{tail}"))
    } else {
        (Open::Nothing, part(2).to_owned())
    };
    let version = Version::parse(&version).map_err(|_| "constraint parser error".to_owned())?;
    Ok(Condition { operator: part(1).to_owned(), version, open })
}

impl Condition {
    fn holds(&self, version: &Version) -> bool {
        let order = version.order(&self.version);
        match self.operator.as_str() {
            "" | "=" if self.open == Open::Nothing => order == Ordering::Equal,
            "" | "=" | "~" | "~>" => self.tilde(version),
            "!=" => self.differs(version),
            ">" => self.greater(version),
            "<" => order == Ordering::Less,
            ">=" | "=>" => order != Ordering::Less,
            "<=" | "=<" => self.at_most(version),
            _ => self.caret(version),
        }
    }

    fn tilde(&self, version: &Version) -> bool {
        let ours = &self.version;
        if version.order(ours) == Ordering::Less {
            return false;
        }
        let zero = (ours.major, ours.minor, ours.patch) == (0, 0, 0);
        if zero && matches!(self.open, Open::Nothing | Open::Everything) {
            return true;
        }
        version.major == ours.major && (version.minor == ours.minor || self.open == Open::Minor)
    }

    fn differs(&self, version: &Version) -> bool {
        let ours = &self.version;
        match self.open {
            Open::Nothing => version.order(ours) != Ordering::Equal,
            _ if version.major != ours.major => true,
            Open::Minor => false,
            _ if version.minor != ours.minor => true,
            Open::Patch => version.prerelease != ours.prerelease,
            Open::Everything => {
                version.patch != ours.patch || version.order(ours) != Ordering::Equal
            }
        }
    }

    fn greater(&self, version: &Version) -> bool {
        let ours = &self.version;
        match self.open {
            Open::Nothing => version.order(ours) == Ordering::Greater,
            _ if version.major != ours.major => version.major > ours.major,
            Open::Minor => false,
            Open::Patch => version.minor > ours.minor,
            Open::Everything => version.order(ours) == Ordering::Greater,
        }
    }

    fn at_most(&self, version: &Version) -> bool {
        let ours = &self.version;
        match self.open {
            Open::Nothing => version.order(ours) != Ordering::Greater,
            _ if version.major > ours.major => false,
            Open::Minor => true,
            _ => version.major != ours.major || version.minor <= ours.minor,
        }
    }

    /// Changes that do not touch the leftmost part that is not zero.
    fn caret(&self, version: &Version) -> bool {
        let ours = &self.version;
        if version.order(ours) == Ordering::Less {
            return false;
        }
        if ours.major > 0 || self.open == Open::Minor {
            return version.major == ours.major;
        }
        if version.major > 0 {
            return false;
        }
        if ours.minor > 0 || self.open == Open::Patch {
            return version.minor == ours.minor;
        }
        version.minor == 0 && version.patch == ours.patch
    }
}
