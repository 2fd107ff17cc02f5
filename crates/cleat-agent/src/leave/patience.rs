//! For how long something is tried that does not get on.

use std::time::{Duration, Instant};

/// How soon to look again.
pub(super) const PAUSE: Duration = Duration::from_millis(500);

/// How long nothing may happen before it counts as stuck.
const PATIENCE: Duration = Duration::from_secs(60);

/// Since when nothing has become less.
pub(super) struct Patience {
    since: Instant,
    left: usize,
}

impl Patience {
    pub(super) fn new() -> Self {
        Self { since: Instant::now(), left: usize::MAX }
    }

    /// Whether it was so much, or more, for too long.
    pub(super) fn is_over(&mut self, left: usize) -> bool {
        if left < self.left {
            self.since = Instant::now();
        }
        self.left = left;
        self.since.elapsed() > PATIENCE
    }
}
