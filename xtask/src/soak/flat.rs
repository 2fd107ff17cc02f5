//! Whether a series of looks at something stays where it is.

use std::fmt;

use anyhow::{Result, bail};

/// Parts of a series. The first is not judged: caches fill and allocators learn.
const QUARTERS: usize = 4;
/// Fewer looks tell nothing.
const FEWEST: usize = 8;
/// What is noise.
const FLAT: f64 = 1.05;

/// How the last quarter of the looks compares with the second one, by their medians.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Trend {
    Unknown,
    Known { early: f64, late: f64 },
}

impl Trend {
    pub(crate) fn of(looks: &[f64]) -> Self {
        let quarter = looks.len() / QUARTERS;
        let early = looks.get(quarter..quarter * 2);
        let late = looks.get(looks.len() - quarter..);
        match (early, late) {
            (Some(early), Some(late)) if looks.len() >= FEWEST => {
                Self::Known { early: median(early), late: median(late) }
            }
            _ => Self::Unknown,
        }
    }

    /// Whether it is known not to be flat.
    pub(crate) fn grows(self) -> bool {
        matches!(self, Self::Known { early, late } if late > early * FLAT)
    }
}

impl fmt::Display for Trend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Known { early, late } = self else {
            return write!(f, "too few looks to tell");
        };
        let verdict = if self.grows() { "NOT flat" } else { "flat" };
        let times = late / early;
        write!(f, "{verdict}: {early:.1} early, {late:.1} in the end, {times:.2} times")
    }
}

/// An error that names what grows, if anything does.
pub(crate) fn all_flat(trends: &[(&str, Trend)]) -> Result<()> {
    let growing: Vec<&str> =
        trends.iter().filter(|(_, trend)| trend.grows()).map(|(name, _)| *name).collect();
    if !growing.is_empty() {
        bail!("not flat: {}", growing.join(" and "));
    }
    Ok(())
}

fn median(looks: &[f64]) -> f64 {
    let mut sorted = looks.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(each: impl Fn(f64) -> f64) -> Vec<f64> {
        (0..40).map(f64::from).map(each).collect()
    }

    #[test]
    fn warming_up_and_noise_are_flat_and_a_leak_is_not() {
        let warming = Trend::of(&series(|at| 100.0 - 80.0 / (1.0 + at)));
        assert!(!warming.grows(), "{warming}");
        let saw = Trend::of(&series(|at| 100.0 + 10.0 * (at % 5.0)));
        assert!(!saw.grows(), "{saw}");
        let leak = Trend::of(&series(|at| 100.0 + at));
        assert!(leak.grows(), "{leak}");
        let shrinking = Trend::of(&series(|at| 100.0 - at));
        assert!(!shrinking.grows(), "{shrinking}");
    }

    #[test]
    fn what_grew_was_printed_and_the_command_succeeded() {
        let flat = Trend::Known { early: 100.0, late: 104.0 };
        let grown = Trend::Known { early: 100.0, late: 106.0 };
        assert!(all_flat(&[("memory", flat), ("the file", Trend::Unknown)]).is_ok());
        let both = all_flat(&[("memory", grown), ("the file", grown)]).unwrap_err();
        assert_eq!(both.to_string(), "not flat: memory and the file");
    }

    #[test]
    fn few_looks_tell_nothing() {
        assert_eq!(Trend::of(&[]), Trend::Unknown);
        assert_eq!(Trend::of(&[1.0; 7]), Trend::Unknown);
        assert_eq!(Trend::of(&[1.0; 8]), Trend::Known { early: 1.0, late: 1.0 });
    }
}
