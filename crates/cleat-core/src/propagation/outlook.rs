//! What would become of a policy's copies if the policy, or something that places it, were deleted.
//!
//! It is the planner's own decision about a world in which that has happened, so that a preview cannot
//! say anything but what the execution does.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString as _};

use super::bind::{Link, Placed};
use super::{Binding, Hold, Observed, PolicySet, Source, Spread};
use crate::replicaset::Decided;

/// What somebody thinks of deleting, in the policy's namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The policy itself.
    Root,
    Binding(String),
    Placement(String),
}

impl Change {
    /// The policies that it may concern.
    pub fn concerns<'a>(
        &self,
        namespace: &str,
        bindings: impl Iterator<Item = &'a Binding>,
        sets: &BTreeMap<(String, String), PolicySet>,
    ) -> BTreeSet<String> {
        let concerned = bindings.filter(|binding| match self {
            Self::Root => false,
            Self::Binding(name) => binding.name == *name,
            Self::Placement(name) => binding.source == Some(Source::Placement(name.clone())),
        });
        let mut policies = BTreeSet::new();
        for binding in concerned {
            policies.extend(binding.policies.iter().cloned());
            for set in &binding.sets {
                let set = sets.get(&(namespace.into(), set.clone()));
                policies.extend(set.into_iter().flat_map(|set| set.policies.iter().cloned()));
            }
        }
        policies
    }
}

/// What would become of the copy for one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prospect {
    /// It is taken away.
    Leaves,
    /// It is taken away once the cluster can be reached again.
    LeavesLater(String),
    Stays(String),
}

/// The outlook for every copy that is not on its way out already, by cluster.
pub fn outlook(seen: &Observed, change: &Change) -> BTreeMap<String, Prospect> {
    let imagined = imagined(seen, change);
    let (before, after) = (Spread::of(seen), Spread::of(&imagined));
    let alive = imagined.replicas.values().filter(|replica| !replica.deleting);
    let outlook = alive.map(|replica| {
        let cluster = &*replica.cluster;
        let prospect = match (after.placed.get(cluster), after.hold(&imagined, replica)) {
            (Some(how), _) => stays(cluster, before.placed.get(cluster), how, &after),
            (None, None | Some(Hold::Back(_))) => Prospect::Leaves,
            (None, Some(Hold::Away)) => {
                Prospect::LeavesLater("once the cluster can be reached again".to_string())
            }
            (None, Some(Hold::Leaving)) => {
                Prospect::Stays("the cluster leaves the fleet, which decides".to_string())
            }
            (None, Some(Hold::Foreign)) => {
                Prospect::Stays("the namespace is not that of a cluster".to_string())
            }
            (None, Some(Hold::Unsure(why))) => {
                Prospect::Stays(format!("{why}; nothing is removed until that is known"))
            }
        };
        (replica.cluster.clone(), prospect)
    });
    outlook.collect()
}

fn imagined(seen: &Observed, change: &Change) -> Observed {
    let mut seen = seen.clone();
    match change {
        Change::Root => seen.root = None,
        Change::Binding(name) => seen.bindings.retain(|binding| binding.name != *name),
        Change::Placement(name) => {
            seen.decided.insert(Source::Placement(name.clone()), Decided::NoPlacement);
        }
    }
    seen
}

fn stays(
    cluster: &str,
    before: Option<&Placed<'_>>,
    how: &Placed<'_>,
    after: &Spread<'_>,
) -> Prospect {
    let places =
        |link: &&Link<'_>| !link.binding.restricted && link.selects().any(|one| one == cluster);
    let binding = after.links.0.iter().find(places).map(|link| &*link.binding.name);
    let binding = binding.unwrap_or_default();
    let enforced = before.is_some_and(|before| before.enforce.is_some());
    Prospect::Stays(match enforced && how.enforce.is_none() && !how.maybe_enforced {
        true => format!(
            "placementbinding {binding} places it there as well, but it would not be enforced any \
             more unless it says so itself"
        ),
        false => format!("placementbinding {binding} places it there as well"),
    })
}
