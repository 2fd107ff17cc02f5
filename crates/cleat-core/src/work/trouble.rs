//! What failed, and when it is tried again.
//!
//! A refused write is kept and retried; the pause doubles from 100 ms and never exceeds 10 s, so
//! that whatever stood in the way is noticed gone soon after.

use alloc::format;
use alloc::string::{String, ToString as _};

use jiff::{SignedDuration, Timestamp};

use crate::id::Id;
use crate::protection::denial::Protected;
use crate::write::{Action, Outcome, Side, Write};

const FIRST_PAUSE: SignedDuration = SignedDuration::from_millis(100);
pub(crate) const LONGEST_PAUSE: SignedDuration = SignedDuration::from_secs(10);
/// Nobody waits for a manifest that is refused as it is, and the next change of it is tried at once.
const LONGEST_PAUSE_OF_WRITES: SignedDuration = SignedDuration::from_secs(60);

/// The longest message of a server that is passed on to users.
const LONGEST_MESSAGE: usize = 1024;

/// The last failure about one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// For users: what the server said, without times or counters.
    pub message: String,
    pub kind: TroubleKind,
    /// How often in a row.
    pub attempts: u32,
    pub retry_at: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TroubleKind {
    /// The world moved on between look and write: not worth a word to users.
    Stale,
    /// Said no: a webhook, missing rights, an invalid object.
    Refused,
    /// Unreachable, overloaded, or no answer.
    Unreachable,
}

impl Trouble {
    /// What a failure of this action is about. That the hub does not take in how a work stands keeps
    /// nobody from letting go of it, so it is a trouble of its own.
    pub fn about(action: &Action) -> Id {
        let id = action.target.id.clone();
        match (action.side, &action.write) {
            (Side::Hub, Write::MergeStatus(_)) => {
                Id { resource: format!("{}/status", id.resource), ..id }
            }
            _ => id,
        }
    }

    /// What an outcome means after `before` went wrong. `None`: it went well.
    pub fn after(
        before: Option<&Self>,
        write: &Write,
        outcome: &Outcome,
        now: Timestamp,
    ) -> Option<Self> {
        let (kind, message) = match outcome {
            Outcome::Done(_) | Outcome::NotFound => return None,
            Outcome::NotTried => return before.cloned(),
            Outcome::AlreadyExists => {
                (TroubleKind::Stale, "it came to exist meanwhile".to_string())
            }
            Outcome::Conflict(message) => (TroubleKind::Stale, message.clone()),
            Outcome::Refused(refusal) if refusal.code >= 500 || refusal.code == 429 => {
                (TroubleKind::Unreachable, refusal.message.clone())
            }
            Outcome::Refused(refusal) => (TroubleKind::Refused, refusal.message.clone()),
            Outcome::NoSuchKind => {
                (TroubleKind::Unreachable, "the cluster does not serve this kind now".to_string())
            }
            Outcome::Lost(message) => (TroubleKind::Unreachable, message.clone()),
        };
        let attempts = before.map_or(0, |before| before.attempts).saturating_add(1);
        let pause = match kind {
            // The next look sees why; only a write that goes stale again and again has to wait.
            TroubleKind::Stale if attempts < 3 => SignedDuration::ZERO,
            TroubleKind::Refused if carries_a_manifest(write) => {
                pause(attempts, LONGEST_PAUSE_OF_WRITES)
            }
            _ => pause(attempts, LONGEST_PAUSE),
        };
        let retry_at = now.checked_add(pause).unwrap_or(now);
        Some(Self { message: shortened(&message), kind, attempts, retry_at })
    }
}

impl Trouble {
    /// Who protects the object, if that is why it was refused. Others must go first, and when one of
    /// the CriticalServices changes it is worth another try.
    pub fn protected(&self) -> Option<Protected> {
        match self.kind {
            TroubleKind::Refused => Protected::parse(&self.message),
            TroubleKind::Stale | TroubleKind::Unreachable => None,
        }
    }
}

fn carries_a_manifest(write: &Write) -> bool {
    matches!(write, Write::Create(_) | Write::Replace(_) | Write::Apply { .. })
}

/// 100 ms after the first failure, twice as long after each further one.
fn pause(attempts: u32, longest: SignedDuration) -> SignedDuration {
    let doubled = FIRST_PAUSE.saturating_mul(1 << attempts.saturating_sub(1).min(16));
    doubled.min(longest)
}

/// As much of what a server says as is passed on.
pub(crate) fn shortened(message: &str) -> String {
    if message.len() <= LONGEST_MESSAGE {
        return message.to_string();
    }
    let end = message.floor_char_boundary(LONGEST_MESSAGE);
    format!("{}…", message.get(..end).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::Refusal;
    use serde_json::Value;

    #[test]
    fn pauses_grow_to_ten_seconds_and_no_further() {
        let millis: alloc::vec::Vec<i128> =
            (1..12).map(|n| pause(n, LONGEST_PAUSE).as_millis()).collect();
        assert_eq!(millis, [100, 200, 400, 800, 1600, 3200, 6400, 10000, 10000, 10000, 10000]);
        assert_eq!(pause(u32::MAX, LONGEST_PAUSE), LONGEST_PAUSE);
    }

    #[test]
    fn a_mark_that_could_not_be_taken_off_was_tried_again_once_a_minute() {
        let now = Timestamp::UNIX_EPOCH;
        let denied = Outcome::Refused(Refusal {
            code: 403,
            reason: "Forbidden".into(),
            message: "not yet".into(),
        });
        let longest = |write: Write| {
            let next = |before: Option<Trouble>, _| {
                Some(Trouble::after(before.as_ref(), &write, &denied, now).unwrap())
            };
            let last = (0..20).fold(None, next).unwrap();
            last.retry_at.duration_since(now)
        };
        assert_eq!(longest(Write::Merge(Value::Null)), LONGEST_PAUSE);
        assert_eq!(longest(Write::Create(Value::Null)), LONGEST_PAUSE_OF_WRITES);
    }

    #[test]
    fn a_refusal_is_counted_and_success_forgets_it() {
        let now = Timestamp::UNIX_EPOCH;
        let denied = Outcome::Refused(Refusal {
            code: 403,
            reason: "Forbidden".into(),
            message: "admission webhook \"guard\" denied the request: not yet".into(),
        });
        let write = Write::Create(Value::Null);
        let first = Trouble::after(None, &write, &denied, now).unwrap();
        let second = Trouble::after(Some(&first), &write, &denied, now).unwrap();
        assert_eq!((first.attempts, second.attempts), (1, 2));
        assert!(second.retry_at > first.retry_at);
        let not_tried = Trouble::after(Some(&second), &write, &Outcome::NotTried, now);
        assert_eq!(not_tried, Some(second.clone()));
        assert_eq!(Trouble::after(Some(&second), &write, &Outcome::Done(Value::Null), now), None);
    }
}
