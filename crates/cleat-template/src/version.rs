//! Semantic versions and their constraints, as forgiving as the Go library that Sprig uses:
//! `v1.2` is a version, and so is `01.2`.

use std::cmp::Ordering;
use std::fmt;
use std::sync::LazyLock;

use regex::Regex;

mod constraint;

pub(crate) use constraint::satisfies;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) major: u64,
    pub(crate) minor: u64,
    pub(crate) patch: u64,
    pub(crate) prerelease: String,
    pub(crate) metadata: String,
    pub(crate) original: String,
}

static PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"^v?([0-9]+)(\.[0-9]+)?(\.[0-9]+)?",
        r"(?:-([0-9A-Za-z\-]+(?:\.[0-9A-Za-z\-]+)*))?",
        r"(?:\+([0-9A-Za-z\-]+(?:\.[0-9A-Za-z\-]+)*))?$"
    ))
    .ok()
});

impl Version {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let invalid = || "invalid semantic version".to_owned();
        let found =
            PATTERN.as_ref().and_then(|pattern| pattern.captures(text)).ok_or_else(invalid)?;
        let part = |index: usize| found.get(index).map_or("", |part| part.as_str());
        let number = |index: usize| {
            let digits = part(index).trim_start_matches('.');
            if digits.is_empty() {
                return Ok(0);
            }
            digits.parse().map_err(|_| {
                let digits = cleat_dialect::quote::quoted(digits);
                format!(
                    "error parsing version segment: strconv.ParseUint: parsing {digits}: value out of range"
                )
            })
        };
        let version = Self {
            major: number(1)?,
            minor: number(2)?,
            patch: number(3)?,
            prerelease: part(4).to_owned(),
            metadata: part(5).to_owned(),
            original: text.to_owned(),
        };
        for segment in version.prerelease.split('.') {
            let numeric = segment.bytes().all(|byte| byte.is_ascii_digit());
            if numeric && segment.len() > 1 && segment.starts_with('0') {
                return Err("version segment starts with 0".to_owned());
            }
        }
        Ok(version)
    }

    /// The order of versions; metadata does not count.
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        let numbers = |version: &Self| (version.major, version.minor, version.patch);
        numbers(self).cmp(&numbers(other)).then_with(|| {
            match (self.prerelease.is_empty(), other.prerelease.is_empty()) {
                (true, true) => Ordering::Equal,
                (true, false) => Ordering::Greater,
                (false, true) => Ordering::Less,
                (false, false) => prereleases(&self.prerelease, &other.prerelease),
            }
        })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        if !self.prerelease.is_empty() {
            write!(f, "-{}", self.prerelease)?;
        }
        if !self.metadata.is_empty() {
            write!(f, "+{}", self.metadata)?;
        }
        Ok(())
    }
}

fn prereleases(left: &str, right: &str) -> Ordering {
    let mut left = left.split('.');
    let mut right = right.split('.');
    loop {
        let order = match (left.next(), right.next()) {
            (None, None) => return Ordering::Equal,
            (left, right) => segments(left.unwrap_or_default(), right.unwrap_or_default()),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

/// Numbers come before words; nothing comes before both.
fn segments(left: &str, right: &str) -> Ordering {
    match (left.parse::<u64>(), right.parse::<u64>()) {
        _ if left == right => Ordering::Equal,
        _ if left.is_empty() => Ordering::Less,
        _ if right.is_empty() => Ordering::Greater,
        (Ok(left), Ok(right)) => left.cmp(&right),
        (Ok(_), Err(_)) => Ordering::Less,
        (Err(_), Ok(_)) => Ordering::Greater,
        (Err(_), Err(_)) => left.cmp(right),
    }
}
