//! When what a CriticalService refused is tried again: as soon as that may let it go.

use alloc::collections::BTreeMap;
use alloc::string::String;

use jiff::Timestamp;

use super::Standing;
use crate::id::Id;
use crate::work::trouble::Trouble;

/// The CriticalServices that keep objects, as they were when they were last heard of.
#[derive(Clone, Debug, Default)]
pub struct Heard(pub BTreeMap<Id, Last>);

#[derive(Clone, Debug)]
pub enum Last {
    There { revision: String, standing: Standing },
    Gone,
}

impl Last {
    fn standing(&self) -> Option<&Standing> {
        match self {
            Self::There { standing, .. } => Some(standing),
            Self::Gone => None,
        }
    }
}

impl Heard {
    /// Ends the pauses of what is kept by a CriticalService that may let it go by now.
    pub fn heed(&mut self, heard: Self, troubles: &mut BTreeMap<Id, Trouble>, now: Timestamp) {
        for trouble in troubles.values_mut() {
            let Some(protected) = trouble.protected() else { continue };
            let lets_go = protected.ids().any(|service| {
                let before = self.0.get(&service).and_then(Last::standing);
                match (before, heard.0.get(&service)) {
                    (Some(before), Some(last)) => before.may_have_let_go(last.standing()),
                    (None, _) | (_, None) => false,
                }
            });
            if lets_go {
                trouble.retry_at = trouble.retry_at.min(now);
                trouble.attempts = 0;
            }
        }
        *self = heard;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::trouble::TroubleKind;
    use alloc::borrow::ToOwned as _;
    use alloc::string::ToString as _;
    use serde_json::{Value, json};

    fn second(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn refused(message: &str) -> Trouble {
        let (message, kind) = (message.to_owned(), TroubleKind::Refused);
        Trouble { message, kind, attempts: 8, retry_at: second(10) }
    }

    /// The CriticalService x, by the state of its criterion and how many stand against it.
    fn heard(state: &str, count: u32) -> Heard {
        let object: Value = json!({ "status": { "criteria": [
            { "subject": "pods", "state": state, "count": count },
        ] } });
        let (revision, standing) = (count.to_string(), Standing::read(&object));
        let protected = refused(KEPT).protected().unwrap();
        let there = Last::There { revision, standing };
        Heard(protected.ids().map(|id| (id, there.clone())).collect())
    }

    const KEPT: &str = "ProtectedBy CriticalService x: 2 pods remain. Delete these first.";

    /// When it is tried again what x keeps, and what somebody else refused.
    fn retries(before: &Heard, now: Heard) -> (i64, i64) {
        let named = |name: &str| Id { name: name.to_owned(), ..Id::default() };
        let (kept, other) = (named("kept"), named("other"));
        let mut troubles = BTreeMap::from([
            (kept.clone(), refused(KEPT)),
            (other.clone(), refused("admission webhook \"w\" denied the request: no")),
        ]);
        before.clone().heed(now, &mut troubles, second(5));
        (troubles[&kept].retry_at.as_second(), troubles[&other].retry_at.as_second())
    }

    #[test]
    fn what_is_kept_is_tried_again_when_its_critical_service_may_let_it_go() {
        let needed = heard("Unsatisfied", 2);
        assert_eq!(retries(&needed, heard("Satisfied", 0)), (5, 10));
        let gone = Heard(needed.0.keys().map(|id| (id.clone(), Last::Gone)).collect());
        assert_eq!(retries(&needed, gone), (5, 10));
    }

    #[test]
    fn every_consumer_that_went_had_all_that_wait_ask_again() {
        let needed = heard("Unsatisfied", 2);
        assert_eq!(retries(&needed, heard("Unsatisfied", 1)), (10, 10));
        assert_eq!(retries(&needed, Heard::default()), (10, 10));
        assert_eq!(retries(&Heard::default(), needed), (10, 10));
    }
}
