//! What a placement decided, and how far that can be relied on.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use cleat_api::placement::{GROUP_INDEX_LABEL, GROUP_NAME_LABEL, SCHEDULING_DISABLED};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use crate::rollout::Group;

/// The clusters of a placement. Only `Settled` says which clusters are *not* chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decided {
    /// It could not be read.
    Unknown,
    /// There is no placement of that name, or it is being deleted.
    NoPlacement,
    /// There is a placement, and no decision of it, or one that was made and not filled in yet. (A
    /// decision for no cluster is an empty decision, not a missing one.)
    Undecided,
    /// The placement says that it chose more clusters than its decisions list: they are being
    /// rewritten.
    Unsettled {
        listed: Vec<Group>,
        chosen: usize,
    },
    Settled(Vec<Group>),
}

impl Decided {
    /// `decisions`: those with the placement's label, in its namespace.
    pub fn read<'a>(
        placement: Option<(&ObjectMeta, &Value)>,
        decisions: impl IntoIterator<Item = (&'a ObjectMeta, &'a Value)>,
    ) -> Self {
        let Some((metadata, data)) =
            placement.filter(|(metadata, _)| metadata.deletion_timestamp.is_none())
        else {
            return Self::NoPlacement;
        };
        let mut decided = false;
        let mut filled = true;
        let mut groups: BTreeMap<(i64, String), Group> = BTreeMap::new();
        for (metadata, data) in decisions {
            decided = true;
            let label = |key: &str| metadata.labels.as_ref().and_then(|labels| labels.get(key));
            let name = label(GROUP_NAME_LABEL).cloned().unwrap_or_default();
            let index =
                label(GROUP_INDEX_LABEL).and_then(|text| text.parse().ok()).unwrap_or_default();
            let group = groups.entry((index, name.clone())).or_default();
            (group.name, group.index) = (name, index);
            let list = data.get("status").and_then(|status| status.get("decisions")?.as_array());
            filled &= list.is_some();
            let clusters = list.into_iter().flatten();
            let clusters = clusters.filter_map(|one| one.get("clusterName")?.as_str());
            group.clusters.extend(clusters.filter(|name| !name.is_empty()).map(String::from));
        }
        if !decided {
            return Self::Undecided;
        }
        let groups: Vec<Group> = groups.into_values().collect();
        let listed: usize = groups.iter().map(|group| group.clusters.len()).sum();
        let annotations = metadata.annotations.as_ref();
        let elsewhere = annotations.and_then(|all| all.get(SCHEDULING_DISABLED));
        let chosen = data.get("status").and_then(|status| status.get("numberOfSelectedClusters"));
        let chosen = chosen.and_then(Value::as_u64).and_then(|count| usize::try_from(count).ok());
        match chosen {
            // A scheduler that chose nothing need not fill in the decision, but it says so.
            None if !filled => Self::Undecided,
            Some(chosen) if chosen > listed && elsewhere.is_none_or(|value| value != "true") => {
                Self::Unsettled { listed: groups, chosen }
            }
            _ => Self::Settled(groups),
        }
    }

    /// Whether it says which clusters are *not* chosen. That there is no placement says so of all.
    pub fn is_certain(&self) -> bool {
        match self {
            Self::Settled(_) | Self::NoPlacement => true,
            Self::Unknown | Self::Undecided | Self::Unsettled { .. } => false,
        }
    }

    /// The clusters it lists, also while it is being rewritten.
    pub fn clusters(&self) -> impl Iterator<Item = &str> {
        let groups = match self {
            Self::Settled(groups) | Self::Unsettled { listed: groups, .. } => groups.as_slice(),
            Self::Unknown | Self::NoPlacement | Self::Undecided => &[],
        };
        groups.iter().flat_map(|group| group.clusters.iter().map(String::as_str))
    }

    pub(super) fn groups(&self) -> &[Group] {
        match self {
            Self::Settled(groups) => groups,
            Self::Unknown | Self::NoPlacement | Self::Undecided | Self::Unsettled { .. } => &[],
        }
    }

    pub(super) fn is_settled(&self) -> bool {
        matches!(self, Self::Settled(_))
    }
}
