//! What would become of a policy's copies if the policy, or something that places it, were deleted or
//! were another.
//!
//! It is the planner's own decision about a world in which that has happened, so that a preview cannot
//! say anything but what the execution does.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString as _};

use serde_json::Value;

use super::bind::{Link, Placed};
use super::{
    Binding, Contents, Hold, Observed, PolicySet, Replica, Resolved, Source, Spread, Wanted,
    wanted as to_be,
};
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
        let prospect = match after.placed.get(cluster) {
            Some(how) => stays(cluster, before.placed.get(cluster), how, &after),
            None => goes(&after, &imagined, replica),
        };
        (replica.cluster.clone(), prospect)
    });
    outlook.collect()
}

/// Of a copy that nothing places there.
fn goes(spread: &Spread<'_>, seen: &Observed, replica: &Replica) -> Prospect {
    match spread.hold(seen, replica) {
        None | Some(Hold::Back(_) | Hold::Unnoticed(_)) => Prospect::Leaves,
        Some(Hold::Away) => {
            Prospect::LeavesLater("once the cluster can be reached again".to_string())
        }
        Some(Hold::Leaving) => {
            Prospect::Stays("the cluster leaves the fleet, which decides".to_string())
        }
        Some(Hold::Foreign) => {
            Prospect::Stays("the namespace is not that of a cluster".to_string())
        }
        Some(Hold::Unsure(why)) => {
            Prospect::Stays(format!("{why}; nothing is removed until that is known"))
        }
    }
}

/// What would become of the copy for one cluster in a world that is another.
#[derive(Clone, Debug, PartialEq)]
pub enum Proposed {
    /// The cluster gets this one.
    Arrives(Value),
    /// It says this from then on.
    Changes(Value),
    Unchanged,
    /// The cluster gets one, and what it would say is not known.
    ArrivesUnsure(String),
    /// What it would say is not known, or when.
    Unsure(String),
    /// Nothing places it there.
    Goes(Prospect),
}

/// The outlook for every copy that there is or would be, by cluster. `imagined` is the world in which
/// somebody has done what they think of.
pub fn proposal(imagined: &Observed) -> BTreeMap<String, Proposed> {
    let spread = Spread::of(imagined);
    let mut all = BTreeMap::new();
    if let Some(root) = spread.root {
        let mut contents = Contents::new(imagined, root);
        for (cluster, how) in &spread.placed {
            let replica = imagined.replicas.get(*cluster);
            let wanted = to_be(imagined, root, cluster, how, &mut contents);
            let object = wanted.as_ref().and_then(Wanted::object);
            let proposed = match (replica, wanted) {
                (Some(replica), _) if replica.deleting => {
                    Proposed::Unsure("it is being deleted, and is made anew when it is gone".into())
                }
                (Some(replica), Some(wanted)) if !wanted.differs(replica) => Proposed::Unchanged,
                (Some(_), Some(_)) => match object {
                    Some(object) => Proposed::Changes(object),
                    None => Proposed::Unsure(unsaid(imagined, cluster)),
                },
                (Some(_), None) => Proposed::Unsure(unsaid(imagined, cluster)),
                (None, _) => match (imagined.clusters.get(*cluster), object) {
                    (Some(known), Some(object)) if !known.deleting => Proposed::Arrives(object),
                    (Some(known), None) if !known.deleting => {
                        Proposed::ArrivesUnsure(unsaid(imagined, cluster))
                    }
                    // There is nobody to carry it out.
                    _ => continue,
                },
            };
            all.insert((*cluster).into(), proposed);
        }
    }
    let alive = imagined.replicas.values().filter(|replica| !replica.deleting);
    for replica in alive.filter(|replica| !spread.placed.contains_key(&*replica.cluster)) {
        let prospect = goes(&spread, imagined, replica);
        all.insert(replica.cluster.clone(), Proposed::Goes(prospect));
    }
    all
}

/// Why it is not known what a cluster's copy would say.
fn unsaid(seen: &Observed, cluster: &str) -> String {
    match seen.resolved.get(cluster) {
        Some(Resolved::Unknown(why)) => format!("the hub cannot resolve its templates: {why}"),
        Some(Resolved::Known { .. }) => "a decision that may enforce it is not known".into(),
        None => "the hub has yet to resolve its templates, or to know a decision".into(),
    }
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
