//! How often an object is put right that somebody else keeps changing.
//!
//! The first repair is immediate. Whoever changes it back at once is met with pauses that double up
//! to five minutes, so that two controllers who disagree do not keep an API server busy; after ten
//! quiet minutes all is forgotten.

use jiff::{SignedDuration, Timestamp};

const FREE_REPAIRS: u32 = 3;
const FIRST_PAUSE: SignedDuration = SignedDuration::from_secs(1);
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_mins(5);
/// So many are no accident.
const QUARREL: u32 = 6;
const QUIET: SignedDuration = SignedDuration::from_mins(10);

/// The repairs of one object that still count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repairs {
    pub count: u32,
    pub last: Timestamp,
}

impl Repairs {
    /// One more repair, now.
    pub fn after(before: Option<Self>, now: Timestamp) -> Self {
        let recent = before.filter(|before| now.duration_since(before.last) < QUIET);
        Self { count: recent.map_or(0, |recent| recent.count).saturating_add(1), last: now }
    }

    /// Before then it is not repaired again.
    pub fn not_before(self) -> Option<Timestamp> {
        let beyond = self.count.checked_sub(FREE_REPAIRS)?;
        let pause = FIRST_PAUSE.saturating_mul(1 << beyond.min(16)).min(LONGEST_PAUSE);
        self.last.checked_add(pause).ok()
    }

    /// Until when users hear that somebody else keeps changing it, whether or not it is right at the
    /// moment: what is told of it must not change with every turn.
    pub fn quarrel_until(self) -> Option<Timestamp> {
        (self.count >= QUARREL).then(|| self.last.checked_add(QUIET).ok()).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarrel_slows_down_and_is_forgotten() {
        let start = Timestamp::UNIX_EPOCH;
        let mut repairs = None;
        let mut pauses = alloc::vec::Vec::new();
        for _ in 0..14 {
            let next = Repairs::after(repairs, start);
            pauses.push(next.not_before().map_or(0, |time| time.duration_since(start).as_secs()));
            repairs = Some(next);
        }
        assert_eq!(pauses, [0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]);
        let later = start.checked_add(QUIET).unwrap();
        assert_eq!(repairs.and_then(Repairs::quarrel_until), Some(later));
        let few = Repairs { count: QUARREL - 1, last: start };
        assert_eq!(few.quarrel_until(), None);
        assert_eq!(Repairs::after(repairs, later).count, 1);
    }
}
