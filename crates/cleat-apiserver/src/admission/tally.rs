//! How long webhooks took to answer.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::{Operation, Phase};
use crate::metrics::Durations;

/// Upper bounds of the buckets, in seconds: those of kube-apiserver.
pub(crate) const ANSWERS: [f64; 8] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 25.0];
/// Configurations come and go. When there would be more rows than this, counting begins anew, as it
/// does when a server starts.
const MOST_ROWS: usize = 2000;

/// What calls are told apart by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Row {
    pub(crate) webhook: Box<str>,
    pub(crate) phase: Phase,
    pub(crate) operation: &'static str,
    pub(crate) rejected: bool,
}

type Rows = BTreeMap<Row, Durations<{ ANSWERS.len() }>>;

#[derive(Default)]
pub(super) struct Tally(Mutex<Rows>);

impl Tally {
    pub(super) fn note(
        &self,
        webhook: &str,
        phase: Phase,
        operation: Operation,
        rejected: bool,
        took: Duration,
    ) {
        let row = Row { webhook: webhook.into(), phase, operation: operation.as_str(), rejected };
        let mut rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if rows.len() >= MOST_ROWS && !rows.contains_key(&row) {
            rows.clear();
        }
        rows.entry(row).or_default().note(&ANSWERS, took);
    }

    pub(super) fn rows(&self) -> Rows {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_bounded_however_many_webhooks_come_and_go() {
        let tally = Tally::default();
        for number in 0..3 * MOST_ROWS {
            let name = format!("{number}.example.com");
            let took = Duration::from_millis(10);
            tally.note(&name, Phase::Validating, Operation::Create, false, took);
            assert!(tally.rows().len() <= MOST_ROWS || number % 100 != 0);
        }
        assert!((1..=MOST_ROWS).contains(&tally.rows().len()));
    }
}
