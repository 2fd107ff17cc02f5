//! The server's only source of time.
//!
//! Wall time is read once; afterwards time passes as tokio's clock does, so that a test with paused
//! time sees expiries and timestamps move together with its timers.

use jiff::{SignedDuration, Timestamp, Unit};

/// A wall clock that follows tokio's.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    wall: Timestamp,
    begun: tokio::time::Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self { wall: Timestamp::now(), begun: tokio::time::Instant::now() }
    }

    pub(crate) fn now(&self) -> Timestamp {
        let passed = SignedDuration::try_from(self.begun.elapsed()).unwrap_or_default();
        self.wall.checked_add(passed).unwrap_or(self.wall)
    }

    /// Kubernetes' `Time`: RFC 3339 in UTC, to the second.
    pub(crate) fn now_text(&self) -> String {
        seconds(self.now())
    }
}

/// Kubernetes' `Time`: RFC 3339 in UTC, cut to the second.
pub(crate) fn seconds(time: Timestamp) -> String {
    let rounding = jiff::TimestampRound::new().smallest(Unit::Second).mode(jiff::RoundMode::Trunc);
    time.round(rounding).unwrap_or(time).to_string()
}
