//! What is counted of seats and queues.

use std::time::Duration;

use crate::metrics::Durations;

/// Upper bounds of the buckets of waiting, in seconds: those of kube-apiserver.
pub(crate) const WAITS: [f64; 13] =
    [0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0];

/// Why a request got no seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    QueueFull,
    TimeOut,
    /// Its client went away.
    Cancelled,
}

/// Counters of one sort of requests.
#[derive(Clone, Default)]
pub(crate) struct Tally {
    queue_full: u64,
    time_out: u64,
    cancelled: u64,
    executed: Durations<{ WAITS.len() }>,
    refused: Durations<{ WAITS.len() }>,
}

impl Tally {
    pub(super) fn dispatched(&mut self, waited: Duration) {
        self.executed.note(&WAITS, waited);
    }

    pub(super) fn refused(&mut self, why: Reason, waited: Duration) {
        let count = match why {
            Reason::QueueFull => &mut self.queue_full,
            Reason::TimeOut => &mut self.time_out,
            Reason::Cancelled => &mut self.cancelled,
        };
        *count += 1;
        self.refused.note(&WAITS, waited);
    }

    /// How many got no seat, by kube-apiserver's words for why.
    pub(crate) fn rejections(&self) -> [(&'static str, u64); 3] {
        [
            ("cancelled", self.cancelled),
            ("queue-full", self.queue_full),
            ("time-out", self.time_out),
        ]
    }

    /// How long was waited, by whether there was a seat in the end.
    pub(crate) fn waits(&self) -> [(bool, &Durations<{ WAITS.len() }>); 2] {
        [(false, &self.refused), (true, &self.executed)]
    }
}
