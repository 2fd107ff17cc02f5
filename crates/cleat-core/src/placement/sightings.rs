//! Whether a cluster that was away counts as back, for those who take from clusters that are not
//! chosen: who decides has to notice first that it is there again.
//!
//! The cluster's own word for when it came back is not enough. Its clock may be slow, and the taint
//! that kept it from being chosen goes later, when the hub takes it off. So the hub remembers what
//! it saw, by its own clock.

use alloc::collections::BTreeMap;
use alloc::string::String;

use jiff::{SignedDuration, Timestamp};

use super::Cluster;

/// What a hub has seen of clusters and of its own deciding since it runs, by its own clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sightings {
    /// Since when it looks.
    pub since: Timestamp,
    /// When a cluster was last seen away. One that was not since then is not here.
    pub away: BTreeMap<String, Timestamp>,
    /// The placements of one namespace that the hub itself decides: when the last look began that
    /// found all decisions to be as they should. None: none did yet.
    pub looked: BTreeMap<String, Option<Timestamp>>,
}

/// Who has seen nothing, and decides nothing, relies on what clusters say.
impl Default for Sightings {
    fn default() -> Self {
        Self { since: Timestamp::MIN, away: BTreeMap::new(), looked: BTreeMap::new() }
    }
}

/// Why it does not count yet that a cluster is not chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Early<'a> {
    /// It has just come back, and counts as back from then on.
    Back(Timestamp),
    /// This placement was not decided since.
    Unnoticed(&'a str),
}

/// How long a cluster must have been back: others may decide, by what comes after its return.
const BACK: SignedDuration = SignedDuration::from_secs(10);

/// When to look again whether a placement was decided. Nothing is asked of a server for it.
pub const NOTICED: SignedDuration = SignedDuration::from_secs(1);

impl Sightings {
    /// `placements`: whose choice is to count; None is one that is no Placement.
    pub fn early<'a>(
        &self,
        now: Timestamp,
        cluster: &Cluster,
        placements: impl Iterator<Item = Option<&'a str>> + Clone,
    ) -> Option<Early<'a>> {
        let away = self.away.get(&cluster.name);
        let told = cluster.available_since();
        let looked = |placement: &'a str| self.looked.get(placement);
        // Others may have been about to notice when this process began.
        let others = placements.clone().any(|one| one.and_then(looked).is_none());
        let began = (others && told.is_some()).then_some(self.since);
        let last = [away.copied(), told, began].into_iter().flatten().max();
        let until = last.and_then(|last| last.checked_add(BACK).ok());
        if let Some(until) = until.filter(|until| *until > now) {
            return Some(Early::Back(until));
        }
        let unnoticed = |placement: &&'a str| {
            looked(placement).is_some_and(|began| began.is_none() || began.as_ref() < away)
        };
        placements.flatten().find(unnoticed).map(Early::Unnoticed)
    }
}
