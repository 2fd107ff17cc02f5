//! Which events are told now, and which are owed. What happened is told as far as there is room: a
//! policy for a thousand clusters has nothing to say a thousand times. What warns has room of its own,
//! and is told later where there is none, or where it could not be written.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use jiff::{SignedDuration, Timestamp};

use super::event::Event;
use super::report::pause;
use crate::write::Outcome;

/// What was said of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// It was told in an event, or needs none.
    Told(String),
    /// It is worth an event that is not written yet, and failed so often.
    Owed { message: String, attempts: u32 },
}

/// By cluster; what is said of the policy itself has no name.
pub type Told = BTreeMap<String, Said>;

impl Said {
    /// What is said now, after what was `before`. `shown`: the root's status says so already.
    pub(super) fn next(before: Option<&Self>, message: &str, warn: bool, shown: bool) -> Self {
        match before {
            Some(Self::Told(said)) if said == message => Self::Told(said.clone()),
            // The status may have been written where the event was not.
            Some(Self::Owed { message: said, attempts }) if warn && said == message => {
                Self::Owed { message: said.clone(), attempts: *attempts }
            }
            _ if shown || !warn => Self::Told(message.into()),
            _ => Self::Owed { message: message.into(), attempts: 0 },
        }
    }

    fn attempts(&self) -> u32 {
        match self {
            Self::Told(_) => 0,
            Self::Owed { attempts, .. } => *attempts,
        }
    }
}

/// How many events of a root were told lately.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    normal: Room,
    warnings: Room,
}

/// As many events are told at once.
const MOST: u32 = 25;
/// After so many seconds there is room for one more.
const PER_EVENT: u32 = 300;
const PER_WARNING: u32 = 2;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Room {
    taken: u32,
    since: Timestamp,
}

impl Room {
    /// How many of so many have room, if one becomes free each `per` seconds.
    fn take(&mut self, wanted: usize, per: u32, now: Timestamp) -> usize {
        let passed = now.duration_since(self.since).as_secs();
        let freed = passed.checked_div(i64::from(per)).unwrap_or_default();
        let freed = u32::try_from(freed.max(0)).unwrap_or(u32::MAX);
        // A clock that was set back frees nothing, and is the one that counts.
        if freed >= self.taken || passed < 0 {
            self.since = now;
        } else {
            let spans = SignedDuration::from_secs(i64::from(freed) * i64::from(per));
            self.since = self.since.checked_add(spans).unwrap_or(now);
        }
        self.taken = self.taken.saturating_sub(freed);
        let free = usize::try_from(MOST.saturating_sub(self.taken)).unwrap_or_default();
        let takes = wanted.min(free);
        self.taken = self.taken.saturating_add(u32::try_from(takes).unwrap_or(MOST));
        takes
    }
}

/// What is told now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Few {
    pub events: Vec<Event>,
    /// When there is room for those that are owed.
    pub again: Option<SignedDuration>,
}

/// Those of the events that there is room for. `told`: what the events are part of.
pub fn few(events: Vec<Event>, told: &Told, spent: &mut Spent, now: Timestamp) -> Few {
    let (mut warnings, mut normal): (Vec<_>, Vec<_>) =
        events.into_iter().partition(|event| event.warning);
    // What failed before goes last, so that it cannot keep others waiting.
    let attempts = |event: &Event| {
        let of = event.cluster.as_deref().unwrap_or_default();
        told.get(of).map_or(0, Said::attempts)
    };
    warnings.sort_by_key(attempts);
    let room = spent.warnings.take(warnings.len(), PER_WARNING, now);
    let left = u32::try_from(warnings.len().saturating_sub(room)).unwrap_or(MOST).min(MOST);
    let again =
        (left > 0).then(|| SignedDuration::from_secs(i64::from(left) * i64::from(PER_WARNING)));
    warnings.truncate(room);
    normal.truncate(spent.normal.take(normal.len(), PER_EVENT, now));
    warnings.append(&mut normal);
    Few { events: warnings, again }
}

/// Notes what came of telling them. Answers when to try again what could not be written.
pub fn written(told: &mut Told, events: &[Event], done: &[Outcome]) -> Option<SignedDuration> {
    let mut again: Option<SignedDuration> = None;
    for (event, outcome) in events.iter().zip(done).filter(|(event, _)| event.warning) {
        let of = event.cluster.as_deref().unwrap_or_default();
        let Some(said) = told.get_mut(of) else { continue };
        let Said::Owed { message, attempts } = said else { continue };
        if outcome.is_done() {
            *said = Said::Told(core::mem::take(message));
        } else {
            *attempts = attempts.saturating_add(1);
            let pause = pause(*attempts);
            again = Some(again.map_or(pause, |again| again.min(pause)));
        }
    }
    again
}
