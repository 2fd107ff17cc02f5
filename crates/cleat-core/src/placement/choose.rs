//! From all clusters to the chosen ones: sets, predicates, taints, scores, number, groups.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use alloc::{format, vec};

use cleat_api::managedclusterset::SelectorType;
use jiff::Timestamp;

use super::cluster::Cluster;
use super::filter::{self, Tainted};
use super::group::{self, Group};
use super::score;
use super::{Holds, Observed};
use crate::clusterset;

/// Why a placement cannot choose, whatever clusters there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misconfigured(pub String);

/// What a placement chose, and how it came to that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// How many sets are bound to the namespace.
    pub bound: usize,
    /// The sets it may choose from.
    pub sets: Vec<String>,
    /// How many clusters those have.
    pub available: usize,
    /// How many of them fit.
    pub feasible: usize,
    /// How many more were asked for than fit.
    pub missing: usize,
    pub groups: Vec<Group>,
    /// The scores of those that fit.
    pub scores: BTreeMap<String, i64>,
    /// When the answer may be another although nothing changes.
    pub until: Option<Timestamp>,
}

impl Selection {
    pub fn clusters(&self) -> impl Iterator<Item = &str> {
        self.groups.iter().flat_map(|group| group.clusters.iter().map(String::as_str))
    }

    pub fn len(&self) -> usize {
        self.groups.iter().map(|group| group.clusters.len()).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A label's value, which the name becomes on decisions, has no more characters.
const LONGEST_LABEL: usize = 63;

pub fn choose(seen: &Observed, holds: Holds<'_>) -> Result<Selection, Misconfigured> {
    let spec = seen.wish.spec.as_ref();
    let spec = spec.map_err(|why| Misconfigured(format!("the spec cannot be read: {why}")))?;
    if seen.wish.name.len() > LONGEST_LABEL {
        return Err(Misconfigured(format!(
            "decisions bear the name of their placement as a label, which may have {LONGEST_LABEL} \
             characters: use a shorter name"
        )));
    }
    filter::check(&spec.predicates)?;
    let weights = score::weights(spec.prioritizer_policy.as_ref())?;

    let wanted = |name: &String| spec.cluster_sets.is_empty() || spec.cluster_sets.contains(name);
    let mut sets = vec![];
    for set in &seen.bound {
        let name = set.metadata.name.clone().unwrap_or_default();
        if !wanted(&name) {
            continue;
        }
        // Not to understand which clusters it has is not to know that it has none.
        if set.spec.cluster_selector.selector_type == SelectorType::Unknown {
            return Err(Misconfigured(format!(
                "which clusters the ManagedClusterSet {name} has cannot be read from its spec"
            )));
        }
        sets.push((name, set));
    }
    sets.sort_by(|one, other| one.0.cmp(&other.0));
    let in_sets = |cluster: &Cluster| {
        sets.iter().any(|(_, set)| clusterset::contains(set, &cluster.labels)) && !cluster.deleting
    };
    let available: Vec<&Arc<Cluster>> =
        seen.clusters.iter().filter(|cluster| in_sets(cluster)).collect();

    let decided: BTreeSet<&str> =
        seen.decisions.iter().flat_map(|decision| decision.clusters()).collect();
    let mut until: Option<Timestamp> = None;
    let mut feasible: Vec<&Arc<Cluster>> = vec![];
    for cluster in &available {
        if !filter::fits(&spec.predicates, cluster, holds)? {
            continue;
        }
        let already = decided.contains(&*cluster.name);
        if let Tainted::In(end) = filter::taints(cluster, &spec.tolerations, already, seen.now) {
            until = [until, end].into_iter().flatten().min();
            feasible.push(*cluster);
        }
    }

    let scored = score::score(seen, &feasible, &decided, &weights);
    until = [until, scored.until].into_iter().flatten().min();
    let points = |cluster: &Cluster| scored.sums.get(&cluster.name).copied().unwrap_or_default();
    let mut ranked = feasible.clone();
    ranked.sort_by(|one, other| {
        points(other).cmp(&points(one)).then_with(|| one.name.cmp(&other.name))
    });
    let asked = spec.number_of_clusters.map(|count| usize::try_from(count).unwrap_or_default());
    let chosen = asked.unwrap_or(ranked.len()).min(ranked.len());
    let missing = asked.map_or(0, |asked| asked.saturating_sub(ranked.len()));
    ranked.truncate(chosen);

    Ok(Selection {
        bound: seen.bound.len(),
        sets: sets.into_iter().map(|(name, _)| name).collect(),
        available: available.len(),
        feasible: feasible.len(),
        missing,
        groups: group::divide(spec.decision_strategy.as_ref(), &ranked)?,
        scores: scored.sums,
        until,
    })
}
