//! What binds a policy to clusters.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use alloc::{format, vec};
use core::fmt;

use cleat_api::placementbinding::RESTRICTED;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use super::Observed;
use crate::replicaset::Decided;

/// Who decides for which clusters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    Placement(String),
    /// What placements were called before.
    Rule(String),
}

impl Source {
    pub fn name(&self) -> &str {
        match self {
            Self::Placement(name) | Self::Rule(name) => name,
        }
    }

    /// The clusters of a placement rule, which lists them itself. None: there is none.
    pub fn of_rule(rule: Option<(&ObjectMeta, &Value)>) -> Decided {
        let Some((metadata, data)) = rule else { return Decided::NoPlacement };
        if metadata.deletion_timestamp.is_some() {
            return Decided::NoPlacement;
        }
        let Some(status) = data.get("status").and_then(Value::as_object) else {
            return Decided::Undecided;
        };
        // The kind leaves out a list that is empty.
        let list = match status.get("decisions") {
            None | Some(Value::Null) => [].as_slice(),
            Some(Value::Array(list)) => list,
            Some(_) => return Decided::Unknown,
        };
        let names = list.iter().filter_map(|one| one.get("clusterName")?.as_str());
        let clusters = names.filter(|name| !name.is_empty()).map(String::from).collect();
        Decided::Settled(vec![crate::rollout::Group { clusters, ..Default::default() }])
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Placement(name) => write!(f, "Placement {name}"),
            Self::Rule(name) => write!(f, "PlacementRule {name}"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    pub namespace: String,
    pub name: String,
    /// None of a kind nobody knows.
    pub source: Option<Source>,
    pub policies: BTreeSet<String>,
    pub sets: BTreeSet<String>,
    /// How it spells that policies are to enforce, if it does.
    pub enforce: Option<String>,
    /// It only overrides, where others place.
    pub restricted: bool,
}

impl Binding {
    /// `data`: the object without its metadata.
    pub fn read(metadata: &ObjectMeta, data: &Value) -> Self {
        let text = |value: &Value, field: &str| {
            value.get(field).and_then(Value::as_str).map(String::from).unwrap_or_default()
        };
        let reference = data.get("placementRef").cloned().unwrap_or_default();
        let source = match &*text(&reference, "kind") {
            "Placement" => Some(Source::Placement(text(&reference, "name"))),
            "PlacementRule" => Some(Source::Rule(text(&reference, "name"))),
            _ => None,
        };
        let subjects = data.get("subjects").and_then(Value::as_array);
        let named = |kind: &str| {
            let subjects = subjects.into_iter().flatten();
            let of_kind = subjects.filter(|one| text(one, "kind") == kind);
            of_kind.map(|one| text(one, "name")).collect::<BTreeSet<String>>()
        };
        let enforce = data.pointer("/bindingOverrides/remediationAction").and_then(Value::as_str);
        Self {
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
            source,
            policies: named("Policy"),
            sets: named("PolicySet"),
            enforce: enforce.filter(|one| one.eq_ignore_ascii_case("enforce")).map(String::from),
            restricted: text(data, "subFilter") == RESTRICTED,
        }
    }
}

/// One way in which a binding reaches a policy.
pub(super) struct Link<'a> {
    pub(super) binding: &'a Binding,
    pub(super) source: &'a Source,
    /// The set through which it does.
    pub(super) set: Option<&'a str>,
    /// Clusters that the set leaves out for this policy.
    pub(super) excluded: Option<&'a BTreeSet<String>>,
    /// None: nobody looked.
    decided: Option<&'a Decided>,
}

impl<'a> Link<'a> {
    /// The clusters that were decided, left out or not.
    pub(super) fn decided(&self) -> impl Iterator<Item = &'a str> {
        self.decided.into_iter().flat_map(Decided::clusters)
    }

    pub(super) fn excludes(&self, cluster: &str) -> bool {
        self.excluded.is_some_and(|names| names.contains(cluster))
    }

    pub(super) fn selects(&self) -> impl Iterator<Item = &'a str> {
        let excluded = self.excluded;
        self.decided().filter(move |name| !excluded.is_some_and(|all| all.contains(*name)))
    }

    fn is_certain(&self) -> bool {
        self.decided.is_some_and(Decided::is_certain)
    }
}

/// How a cluster gets a policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Placed<'a> {
    pub(super) enforce: Option<&'a str>,
    /// Some override is not known to be for this cluster, nor not to be.
    pub(super) maybe_enforced: bool,
}

/// All ways, in the order in which they are told.
pub(super) struct Links<'a>(pub(super) Vec<Link<'a>>);

impl<'a> Links<'a> {
    pub(super) fn of(seen: &'a Observed) -> Self {
        let (namespace, policy) = (&seen.key.0, &seen.key.1);
        let mut links = vec![];
        for binding in &seen.bindings {
            let Some(source) = &binding.source else { continue };
            let decided = seen.decided.get(source);
            if binding.policies.contains(policy) {
                links.push(Link { binding, source, set: None, excluded: None, decided });
            }
            for name in &binding.sets {
                let key = (namespace.clone(), name.clone());
                let Some(set) = seen.sets.get(&key) else { continue };
                if set.policies.contains(policy) {
                    let excluded = set.exclusions.get(policy);
                    links.push(Link { binding, source, set: Some(name), excluded, decided });
                }
            }
        }
        let told = |link: &Link<'a>| (&*link.binding.name, link.source, link.set);
        links.sort_by(|one, other| told(one).cmp(&told(other)));
        Self(links)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Why it is not known of every cluster whether it was chosen, if it is not.
    pub(super) fn doubt(&self) -> Option<String> {
        let mut placing = self.0.iter().filter(|link| !link.binding.restricted);
        let unsure = placing.find(|link| !link.is_certain())?;
        Some(format!("{} has not decided, is being rewritten or cannot be read", unsure.source))
    }

    /// Placements and rules that place it and are not there.
    pub(super) fn missing(&self) -> impl Iterator<Item = &'a Source> {
        let placing = self.0.iter().filter(|link| !link.binding.restricted);
        placing
            .filter(|link| matches!(link.decided, Some(Decided::NoPlacement)))
            .map(|link| link.source)
    }

    /// The placements that place it; None for what places it and is no Placement.
    pub(super) fn placements(&self) -> impl Iterator<Item = Option<&'a str>> + Clone {
        let placing = self.0.iter().filter(|link| !link.binding.restricted);
        placing.map(|link| match link.source {
            Source::Placement(name) => Some(&**name),
            Source::Rule(_) => None,
        })
    }

    pub(super) fn placed(&self) -> BTreeMap<&'a str, Placed<'a>> {
        let maybe_enforced =
            self.0.iter().any(|link| link.binding.enforce.is_some() && !link.is_certain());
        let mut placed: BTreeMap<&str, Placed<'_>> = BTreeMap::new();
        for link in self.0.iter().filter(|link| !link.binding.restricted) {
            for cluster in link.selects() {
                placed.insert(cluster, Placed { enforce: None, maybe_enforced });
            }
        }
        for link in &self.0 {
            let Some(enforce) = &link.binding.enforce else { continue };
            for cluster in link.selects() {
                if let Some(how) = placed.get_mut(cluster) {
                    how.enforce = Some(enforce);
                }
            }
        }
        placed
    }
}
