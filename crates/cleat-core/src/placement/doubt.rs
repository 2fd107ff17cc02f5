//! Whether clusters may be taken out of decisions: not because what chose them vanished along with
//! the definition of its kind.
//!
//! A definition that returns has none of its objects. They count as lost, not as taken away, for as
//! long as the decision they led to is older than the definition.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;

use jiff::Timestamp;

use super::{Observed, Selection};

/// What is known of the definitions of the kinds that a choice depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Defined {
    /// Nobody asked, or nobody answered.
    #[default]
    Unasked,
    /// This one is going or gone.
    Gone(String),
    /// Since when there are those of the kinds.
    Since { bindings: Timestamp, sets: Timestamp, clusters: Timestamp },
}

/// Why no cluster may be taken out of a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Doubt {
    /// Something has yet to be asked.
    Unasked,
    /// It stays so until somebody does something about it.
    Lasting(String),
}

/// The clusters that are listed and are not chosen any more.
pub fn taken_out<'a>(seen: &'a Observed, selection: &Selection) -> BTreeSet<&'a str> {
    let chosen: BTreeSet<&str> = selection.clusters().collect();
    let listed = seen.decisions.iter().flat_map(|decision| decision.clusters());
    listed.filter(|cluster| !chosen.contains(cluster)).collect()
}

pub(super) fn doubt(seen: &Observed, selection: &Selection) -> Option<Doubt> {
    let taken = taken_out(seen, selection);
    if taken.is_empty() {
        return None;
    }
    let (bindings, sets, clusters) = match &seen.defined {
        Defined::Unasked => return Some(Doubt::Unasked),
        Defined::Gone(name) => {
            let text = format!("the definition {name} is going or gone, and its objects with it");
            return Some(Doubt::Lasting(text));
        }
        Defined::Since { bindings, sets, clusters } => (*bindings, *sets, *clusters),
    };
    let of = |cluster: &str| {
        let mut with = seen.decisions.iter().filter(|one| one.clusters().any(|it| it == cluster));
        with.next().map(|decision| (&*decision.name, decision.created))
    };
    for cluster in taken {
        let Some((decision, created)) = of(cluster) else { continue };
        let younger = |since: Timestamp| created.is_none_or(|created| since > created);
        let lost = |what: String| {
            Some(Doubt::Lasting(format!(
                "{what}, and the definition of that kind is younger than PlacementDecision \
                 {decision}: make it anew, or delete that decision if {cluster} is to go"
            )))
        };
        if seen.bound.is_empty() && seen.lost.is_empty() && younger(bindings) {
            let namespace = &seen.wish.namespace;
            return lost(format!("there is no ManagedClusterSetBinding in {namespace}"));
        }
        if let Some(set) = seen.lost.first().filter(|_| younger(sets)) {
            return lost(format!("there is no ManagedClusterSet {set}"));
        }
        if !seen.clusters.iter().any(|one| one.name == cluster) && younger(clusters) {
            return lost(format!("there is no ManagedCluster {cluster}"));
        }
    }
    None
}
