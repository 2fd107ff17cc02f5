//! What a user may ask of a rollout, parsed once.

use alloc::string::String;
use alloc::vec::Vec;

use jiff::{SignedDuration, Timestamp};

use super::{Group, Progress, Standing};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strategy {
    pub kind: Kind,
    /// How long a cluster must have succeeded before others follow it.
    pub min_success: SignedDuration,
    /// How long a cluster may take; without one, for ever.
    pub deadline: Option<SignedDuration>,
    pub max_failures: Amount,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Every cluster at once, whatever becomes of any of them.
    All,
    Progressive {
        /// Without a limit, all.
        at_once: Option<Amount>,
        mandatory: Vec<Pick>,
    },
    ProgressivePerGroup {
        mandatory: Vec<Pick>,
    },
}

impl Default for Strategy {
    fn default() -> Self {
        Self {
            kind: Kind::All,
            min_success: SignedDuration::ZERO,
            deadline: None,
            max_failures: Amount::NONE,
        }
    }
}

/// Names a decision group: by its name if it has one, else by its index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pick {
    Name(String),
    Index(i64),
}

impl Pick {
    pub(super) fn is(&self, group: &Group) -> bool {
        match self {
            Self::Name(name) => *name == group.name,
            Self::Index(index) => *index == group.index,
        }
    }
}

/// So many clusters, or so many of each hundred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    Count(usize),
    Percent(u8),
}

impl Amount {
    pub const NONE: Self = Self::Count(0);

    /// Never more than there are; a part of a cluster counts as one.
    pub fn of(self, total: usize) -> usize {
        match self {
            Self::Count(count) => count.min(total),
            Self::Percent(percent) => {
                total.saturating_mul(usize::from(percent)).div_ceil(100).min(total)
            }
        }
    }

    /// `3` or `25%`.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let parsed = match text.strip_suffix('%') {
            Some(percent) => {
                percent.parse().ok().filter(|percent| *percent <= 100).map(Self::Percent)
            }
            None => text.parse().ok().map(Self::Count),
        };
        parsed.ok_or_else(|| Invalid::Amount(text.into()))
    }
}

/// What cannot be understood of a strategy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Invalid {
    #[error("rollout type {0:?} is none of All, Progressive, ProgressivePerGroup")]
    Kind(String),
    #[error("{0:?} is neither a number of clusters nor a percentage from 0% to 100%")]
    Amount(String),
    #[error("{0:?} is not a time such as 30s, 5m or 2h")]
    Duration(String),
}

impl Strategy {
    /// `minSuccessTime`: as Go writes durations, so also `1h30m` or a bare `0`.
    pub fn parse_duration(text: &str) -> Result<SignedDuration, Invalid> {
        duration(text).ok_or_else(|| Invalid::Duration(text.into()))
    }

    /// `progressDeadline`: a duration, or `None`.
    pub fn parse_deadline(text: &str) -> Result<Option<SignedDuration>, Invalid> {
        match text {
            "" | "None" => Ok(None),
            text => Self::parse_duration(text).map(Some),
        }
    }

    /// Where a cluster stands, and when that changes by itself.
    pub(super) fn judge(
        &self,
        progress: Progress,
        now: Timestamp,
    ) -> (Standing, Option<Timestamp>) {
        let end = |since: Option<Timestamp>, span: Option<SignedDuration>| {
            since.and_then(|since| since.checked_add(span?).ok())
        };
        let until = |end: Option<Timestamp>, before, after| match end {
            Some(end) if end <= now => (after, None),
            end => (before, end),
        };
        match progress {
            Progress::Pending => (Standing::Waiting, None),
            Progress::Applying { since } | Progress::Progressing { since } => {
                until(end(since, self.deadline), Standing::Underway, Standing::TimedOut)
            }
            Progress::Failed { since } => {
                until(end(since, self.deadline), Standing::Failed, Standing::TimedOut)
            }
            Progress::Succeeded { since } => {
                let soak = match self.kind {
                    Kind::All => None,
                    // Also where the cluster's clock is ahead of ours.
                    _ if self.min_success.is_zero() => None,
                    Kind::Progressive { .. } | Kind::ProgressivePerGroup { .. } => {
                        end(since, Some(self.min_success))
                    }
                };
                match soak {
                    None => (Standing::Succeeded, None),
                    soak => until(soak, Standing::Soaking, Standing::Succeeded),
                }
            }
        }
    }
}

/// Go's durations: decimal numbers, each with its unit.
fn duration(text: &str) -> Option<SignedDuration> {
    if text == "0" {
        return Some(SignedDuration::ZERO);
    }
    let mut total: i128 = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let numeric = |c: char| c.is_ascii_digit() || c == '.';
        let (number, tail) = rest.split_at_checked(rest.find(|c| !numeric(c))?)?;
        let (unit, tail) = tail.split_at_checked(tail.find(numeric).unwrap_or(tail.len()))?;
        let (whole, part) = number.split_once('.').unwrap_or((number, ""));
        let scale = 10_i128.checked_pow(u32::try_from(part.len()).ok()?)?;
        let digits: i128 = alloc::format!("{whole}{part}").parse().ok()?;
        let unit: i128 = match unit {
            "h" => 3_600_000_000_000,
            "m" => 60_000_000_000,
            "s" => 1_000_000_000,
            "ms" => 1_000_000,
            "us" | "µs" => 1_000,
            "ns" => 1,
            _ => return None,
        };
        total = total.checked_add(digits.checked_mul(unit)? / scale)?;
        rest = tail;
    }
    let nanos = i64::try_from(total).ok()?;
    (!text.is_empty()).then_some(SignedDuration::from_nanos(nanos))
}
