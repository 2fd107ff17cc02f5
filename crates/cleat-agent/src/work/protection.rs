//! Objects that a CriticalService keeps: tried again as soon as it changes, not when a pause ends.
//!
//! A CriticalService's status changes with everything that its criteria are about, so one watch of
//! those that refused something tells of all of it.

use std::collections::{BTreeMap, BTreeSet};

use cleat_api::criticalservice::VERSION;
use cleat_core::id::{Id, Target};
use cleat_core::work::observed::Observed;
use cleat_core::work::trouble::Trouble;
use cleat_runtime::mirror::Look;

use super::{Context, Key};

/// The CriticalServices that keep any of these.
pub(super) fn services(troubles: &BTreeMap<Id, Trouble>) -> BTreeSet<Target> {
    let protected = troubles.values().filter_map(Trouble::protected);
    protected
        .flat_map(|protected| protected.ids().collect::<Vec<_>>())
        .map(|id| Target { version: VERSION.to_owned(), id })
        .collect()
}

impl Context {
    /// Ends the pauses of what is kept by a CriticalService that changed, or went.
    pub(super) fn heed_protection(&self, key: &Key, seen: &mut Observed) {
        let now = seen.now;
        self.memory.with(key, |life| {
            let mut heard = BTreeMap::new();
            for (id, trouble) in &mut life.troubles {
                let Some(protected) = trouble.protected() else { continue };
                for service in protected.ids() {
                    let state = match self.mirror.look(&service) {
                        Look::Present(meta) => meta.resource_version.to_string(),
                        Look::Absent | Look::NoSuchKind => String::new(),
                        Look::Unknown(_) => continue,
                    };
                    let about = (id.clone(), service);
                    if life.protections.get(&about).is_some_and(|before| *before != state) {
                        trouble.retry_at = trouble.retry_at.min(now);
                        trouble.attempts = 0;
                    }
                    heard.insert(about, state);
                }
            }
            life.protections = heard;
            seen.troubles.clone_from(&life.troubles);
        });
    }
}
