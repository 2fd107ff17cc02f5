//! Objects that a CriticalService keeps: tried again as soon as it may let them go, not when a pause
//! ends.
//!
//! A CriticalService's status changes with everything that its criteria are about, so one watch of
//! those that refused something tells of all of it. Most of these changes mean nothing to whoever
//! waits; those that do are told apart by [`Standing`], for which a changed one is read.

use std::collections::{BTreeMap, BTreeSet};

use cleat_api::criticalservice::VERSION;
use cleat_core::id::{Id, Target};
use cleat_core::protection::{Heard, Last, Standing};
use cleat_core::work::trouble::Trouble;
use cleat_core::write::Side;
use cleat_runtime::execute::{Executor, Read};
use cleat_runtime::mirror::{Look, Mirror};

/// The CriticalServices that keep any of these.
pub(crate) fn services(troubles: &BTreeMap<Id, Trouble>) -> BTreeSet<Target> {
    let protected = troubles.values().filter_map(Trouble::protected);
    protected
        .flat_map(|protected| protected.ids().collect::<Vec<_>>())
        .map(|id| Target { version: VERSION.to_owned(), id })
        .collect()
}

/// How these CriticalServices are now. What is not known of one now was last heard before.
pub(crate) async fn anew(
    heard: &Heard,
    services: &BTreeSet<Target>,
    mirror: &Mirror,
    executor: &Executor,
) -> Heard {
    let mut anew = BTreeMap::new();
    for target in services {
        let before = heard.0.get(&target.id);
        let now = match mirror.look(&target.id) {
            Look::Absent | Look::NoSuchKind => Some(Last::Gone),
            Look::Unknown(_) => before.cloned(),
            Look::Present(meta) => match before {
                Some(Last::There { revision, .. }) if **revision == *meta.resource_version => {
                    before.cloned()
                }
                _ => match executor.read(Side::Cluster, target).await {
                    Read::Present(object) => {
                        let revision = meta.resource_version.to_string();
                        Some(Last::There { revision, standing: Standing::read(&object) })
                    }
                    Read::Absent | Read::NoSuchKind => Some(Last::Gone),
                    Read::Unknown { .. } => before.cloned(),
                },
            },
        };
        anew.extend(now.map(|now| (target.id.clone(), now)));
    }
    Heard(anew)
}
