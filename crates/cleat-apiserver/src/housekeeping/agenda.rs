//! Which chores are due, and when. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use tokio::time::Instant;

use super::Chore;

/// After a start there may be one chore per object, and few are done at a time: what is next must be
/// found without a look at all the others.
#[derive(Default)]
pub(super) struct Agenda {
    due: BTreeMap<Arc<Chore>, Due>,
    by_time: BTreeMap<Instant, BTreeSet<Arc<Chore>>>,
}

#[derive(Clone, Copy)]
struct Due {
    at: Instant,
    tries: u32,
}

impl Agenda {
    /// As soon as it can be. A chore that is in line keeps its place: one that is named again and
    /// again would otherwise never be next.
    pub(super) fn soon(&mut self, chore: Chore, now: Instant) {
        let before = self.forget(&chore);
        let at = before.map_or(now, |due| due.at.min(now));
        self.note(chore, Due { at, tries: 0 });
    }

    /// Not before `at`, unless it is due anyway.
    pub(super) fn later(&mut self, chore: Chore, at: Instant, tries: u32) {
        if !self.due.contains_key(&chore) {
            self.note(chore, Due { at, tries });
        }
    }

    /// At most `room` chores that are due and not running, the longest due first, and how often each
    /// was tried.
    pub(super) fn take(
        &mut self,
        now: Instant,
        room: usize,
        running: &BTreeSet<Chore>,
    ) -> Vec<(Chore, u32)> {
        let ready: Vec<Arc<Chore>> = self
            .by_time
            .range(..=now)
            .flat_map(|(_, chores)| chores)
            .filter(|chore| !running.contains(&***chore))
            .take(room)
            .cloned()
            .collect();
        ready
            .into_iter()
            .filter_map(|chore| {
                let due = self.forget(&chore)?;
                Some((Arc::unwrap_or_clone(chore), due.tries))
            })
            .collect()
    }

    /// When the first of those is due that are not due yet.
    pub(super) fn next(&self, now: Instant) -> Option<Instant> {
        self.by_time.range((Bound::Excluded(now), Bound::Unbounded)).next().map(|(at, _)| *at)
    }

    fn note(&mut self, chore: Chore, due: Due) {
        let chore = Arc::new(chore);
        self.by_time.entry(due.at).or_default().insert(Arc::clone(&chore));
        self.due.insert(chore, due);
    }

    fn forget(&mut self, chore: &Chore) -> Option<Due> {
        let due = self.due.remove(chore)?;
        if let Some(chores) = self.by_time.get_mut(&due.at) {
            chores.remove(chore);
            if chores.is_empty() {
                self.by_time.remove(&due.at);
            }
        }
        Some(due)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    fn chore(number: usize) -> Chore {
        Chore::Namespace(format!("n{number:06}"))
    }

    #[test]
    fn who_is_longest_due_is_first_and_who_is_named_again_keeps_their_place() {
        let (begun, second) = (Instant::now(), Duration::from_secs(1));
        let (mut agenda, nobody) = (Agenda::default(), BTreeSet::new());
        agenda.soon(chore(2), begun);
        agenda.soon(chore(1), begun + second);
        agenda.later(chore(3), begun + 9 * second, 4);
        agenda.soon(chore(2), begun + 2 * second);
        agenda.later(chore(1), begun + 8 * second, 7);
        let now = begun + 3 * second;
        assert_eq!(agenda.next(now), Some(begun + 9 * second));
        let running = BTreeSet::from([chore(2)]);
        assert_eq!(agenda.take(now, 5, &running), [(chore(1), 0)]);
        assert_eq!(agenda.take(now, 5, &nobody), [(chore(2), 0)]);
        assert_eq!(agenda.take(now, 5, &nobody), []);
        assert_eq!(agenda.take(now + 9 * second, 5, &nobody), [(chore(3), 4)]);
        assert_eq!(agenda.next(now), None);
    }

    #[test]
    fn a_start_with_many_objects_looked_at_all_chores_for_every_eight() {
        let (now, nobody) = (Instant::now(), BTreeSet::new());
        let mut agenda = Agenda::default();
        (0..100_000).for_each(|number| agenda.soon(chore(number), now));
        let mut done = 0;
        // A hundred thousand times a hundred thousand would not end.
        while let taken @ 1.. = agenda.take(now, 1, &nobody).len() {
            done += taken;
        }
        assert_eq!(done, 100_000);
    }

    proptest! {
        /// Everything named is done once, whatever the order, and both ways to look agree.
        #[test]
        fn nothing_is_lost(steps in proptest::collection::vec((0..6_usize, 0..9_u64, 0..3), 0..60)) {
            let begun = Instant::now();
            let (mut agenda, nobody) = (Agenda::default(), BTreeSet::new());
            let mut named = BTreeSet::new();
            for (number, seconds, step) in steps {
                let at = begun + Duration::from_secs(seconds);
                match step {
                    0 => agenda.soon(chore(number), at),
                    1 => agenda.later(chore(number), at, 1),
                    _ => {
                        for (chore, _) in agenda.take(at, 2, &nobody) {
                            prop_assert!(named.remove(&chore));
                        }
                        continue;
                    }
                }
                named.insert(chore(number));
            }
            let all: usize = agenda.by_time.values().map(BTreeSet::len).sum();
            prop_assert_eq!(all, agenda.due.len());
            let rest = agenda.take(begun + Duration::from_secs(99), usize::MAX, &nobody);
            let rest: BTreeSet<Chore> = rest.into_iter().map(|(chore, _)| chore).collect();
            prop_assert_eq!(rest, named);
            prop_assert!(agenda.by_time.is_empty());
        }
    }
}
