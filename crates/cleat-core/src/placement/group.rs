//! The chosen clusters, divided into groups.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use alloc::{format, vec};

use cleat_api::placement::{DecisionStrategy, GroupClusterSelector};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::Misconfigured;
use super::cluster::Cluster;
use super::filter::{claims_fit, requirement};
use crate::selector::selects;

/// Clusters that are dealt with together; its place in the list is its index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// Empty for those made of the rest.
    pub name: String,
    /// In order.
    pub clusters: Vec<String>,
}

/// There is at least one group, perhaps of no cluster.
pub(super) fn divide(
    strategy: Option<&DecisionStrategy>,
    chosen: &[&Arc<Cluster>],
) -> Result<Vec<Group>, Misconfigured> {
    let strategy = strategy.and_then(|strategy| strategy.group_strategy.as_ref());
    let size = match strategy {
        Some(strategy) => size(&strategy.clusters_per_decision_group, chosen.len())?,
        None => chosen.len(),
    };
    let size = size.max(1);
    let mut rest: Vec<&Arc<Cluster>> = chosen.to_vec();
    rest.sort_by(|one, other| one.name.cmp(&other.name));
    let mut groups = vec![];
    for named in strategy.into_iter().flat_map(|strategy| &strategy.decision_groups) {
        check(&named.group_cluster_selector)?;
        let fits = |cluster: &&Arc<Cluster>| is_in(&named.group_cluster_selector, cluster);
        let (inside, outside): (Vec<_>, Vec<_>) = rest.into_iter().partition(fits);
        rest = outside;
        split(&named.group_name, &inside, size, &mut groups);
    }
    split("", &rest, size, &mut groups);
    if groups.is_empty() {
        groups.push(Group::default());
    }
    Ok(groups)
}

fn split(name: &str, clusters: &[&Arc<Cluster>], size: usize, groups: &mut Vec<Group>) {
    for part in clusters.chunks(size) {
        let clusters = part.iter().map(|cluster| cluster.name.clone()).collect();
        groups.push(Group { name: name.into(), clusters });
    }
}

fn check(selector: &GroupClusterSelector) -> Result<(), Misconfigured> {
    let labels = selector.label_selector.iter();
    let labels = labels.flat_map(|one| one.match_expressions.iter().flatten());
    let claims = selector.claim_selector.iter().flat_map(|one| &one.match_expressions);
    labels.chain(claims).try_for_each(requirement)
}

fn is_in(selector: &GroupClusterSelector, cluster: &Cluster) -> bool {
    let labels = selector.label_selector.as_ref();
    labels.is_none_or(|labels| selects(labels, &cluster.labels))
        && selector.claim_selector.as_ref().is_none_or(|claims| claims_fit(claims, cluster))
}

/// Shares are rounded up.
fn size(size: &IntOrString, chosen: usize) -> Result<usize, Misconfigured> {
    let wrong = || Misconfigured(format!("clustersPerDecisionGroup {size:?} is not a size"));
    match size {
        IntOrString::Int(count) => {
            usize::try_from(*count).ok().filter(|count| *count > 0).ok_or_else(wrong)
        }
        IntOrString::String(text) => match text.strip_suffix('%') {
            Some(share) => {
                let share: usize = share.parse().map_err(|_| wrong())?;
                if !(1..=100).contains(&share) {
                    return Err(wrong());
                }
                Ok(chosen.saturating_mul(share).div_ceil(100))
            }
            None => text.parse().ok().filter(|count| *count > 0).ok_or_else(wrong),
        },
    }
}
