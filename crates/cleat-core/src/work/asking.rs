//! When a pass must not go by what was last heard of the cluster's own standing with its hub.

use super::observed::{Hub, Ledger};
use crate::leave::agent::Standing;

/// Whether the hub is asked whether and how the cluster leaves, before a pass that may let go of objects.
///
/// What is let go of cannot be brought back. One watch may be ahead of another, so a work that is to go
/// may be so because the cluster leaves; and how it leaves may have changed while nothing was heard.
pub fn must_ask(standing: &Standing, hub: &Hub, ledger: &Ledger) -> bool {
    let Ledger::Present(book) = ledger else { return false };
    match (standing, hub) {
        (Standing::Member, Hub::Work(work)) => work.deleting && !book.deleting,
        (Standing::Leaving(_), Hub::Work(work)) => work.deleting || book.deleting,
        (Standing::Leaving(_), Hub::Absent) => true,
        (Standing::Member, Hub::Absent) | (_, Hub::Unknown(_)) => false,
        (Standing::Unknown | Standing::Unrecognized(_), _) => false,
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;

    use cleat_api::managedcluster::RemoveStrategy::{Needless, Required};

    use super::*;
    use crate::work::observed::Book;
    use crate::work::tests::world::World;

    #[test]
    fn a_strategy_that_changed_while_nothing_was_heard_did_not_count() {
        let mut world = World::default();
        world.ask("one", &[(0, 1)]);
        let mut work = |deleting: bool| {
            world.works.get_mut("one").unwrap().deleting = deleting;
            world.observe("one", || true).hub
        };
        let (stays, goes) = (work(false), work(true));
        let book = |deleting| Ledger::Present(Book { deleting, ..Book::default() });
        let (open, closing) = (book(false), book(true));
        let away = Hub::Unknown("away".to_string());
        for strategy in [Required, Needless] {
            let leaving = Standing::Leaving(strategy);
            for (hub, ledger, expected) in [
                (&stays, &open, false),
                (&stays, &closing, true),
                (&goes, &open, true),
                (&goes, &closing, true),
                (&goes, &Ledger::Absent, false),
                (&Hub::Absent, &open, true),
                (&Hub::Absent, &closing, true),
                (&away, &closing, false),
            ] {
                assert_eq!(must_ask(&leaving, hub, ledger), expected, "{hub:?} {ledger:?}");
            }
        }
        // Whoever is a member goes on with what it has begun.
        let member = Standing::Member;
        let asks = [(&goes, &open), (&goes, &closing), (&stays, &open), (&Hub::Absent, &open)];
        let asks = asks.map(|(hub, ledger)| must_ask(&member, hub, ledger));
        assert_eq!(asks, [true, false, false, false]);
        // Who does nothing has nothing to ask.
        for standing in [Standing::Unknown, Standing::Unrecognized("other".to_string())] {
            assert!(!must_ask(&standing, &goes, &open));
        }
    }
}
