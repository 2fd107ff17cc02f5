//! How long things took, counted as Prometheus' histograms are.

use std::time::Duration;

/// Durations of one sort, in `N` buckets whose bounds are kept elsewhere.
#[derive(Clone)]
pub(crate) struct Durations<const N: usize> {
    pub(super) count: u64,
    pub(super) seconds: f64,
    /// Each counts all durations up to its bound.
    pub(super) buckets: [u64; N],
}

impl<const N: usize> Default for Durations<N> {
    fn default() -> Self {
        Self { count: 0, seconds: 0.0, buckets: [0; N] }
    }
}

impl<const N: usize> Durations<N> {
    #[cfg(test)]
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    pub(crate) fn note(&mut self, bounds: &[f64; N], took: Duration) {
        let seconds = took.as_secs_f64();
        self.count += 1;
        self.seconds += seconds;
        for (bound, bucket) in bounds.iter().zip(&mut self.buckets) {
            *bucket += u64::from(seconds <= *bound);
        }
    }
}
