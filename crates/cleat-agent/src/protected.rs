//! Objects that a CriticalService keeps: tried again as soon as it changes, not when a pause ends.
//!
//! A CriticalService's status changes with everything that its criteria are about, so one watch of
//! those that refused something tells of all of it.

use std::collections::{BTreeMap, BTreeSet};

use cleat_api::criticalservice::VERSION;
use cleat_core::id::{Id, Target};
use cleat_core::work::trouble::Trouble;
use cleat_runtime::mirror::{Look, Mirror};
use jiff::Timestamp;

/// The CriticalServices that keep any of these.
pub(crate) fn services(troubles: &BTreeMap<Id, Trouble>) -> BTreeSet<Target> {
    let protected = troubles.values().filter_map(Trouble::protected);
    protected
        .flat_map(|protected| protected.ids().collect::<Vec<_>>())
        .map(|id| Target { version: VERSION.to_owned(), id })
        .collect()
}

/// The CriticalServices that keep objects, as they were when they were last heard of, by object and
/// service.
#[derive(Debug, Default)]
pub(crate) struct Heard(BTreeMap<(Id, Id), String>);

impl Heard {
    /// Ends the pauses of what is kept by a CriticalService that changed, or went.
    pub(crate) fn heed(
        &mut self,
        mirror: &Mirror,
        troubles: &mut BTreeMap<Id, Trouble>,
        now: Timestamp,
    ) {
        let mut heard = BTreeMap::new();
        for (id, trouble) in troubles {
            let Some(protected) = trouble.protected() else { continue };
            for service in protected.ids() {
                let state = match mirror.look(&service) {
                    Look::Present(meta) => meta.resource_version.to_string(),
                    Look::Absent | Look::NoSuchKind => String::new(),
                    Look::Unknown(_) => continue,
                };
                let about = (id.clone(), service);
                if self.0.get(&about).is_some_and(|before| *before != state) {
                    trouble.retry_at = trouble.retry_at.min(now);
                    trouble.attempts = 0;
                }
                heard.insert(about, state);
            }
        }
        self.0 = heard;
    }
}
