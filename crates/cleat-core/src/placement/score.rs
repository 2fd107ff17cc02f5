//! Which clusters go first.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString as _};
use alloc::sync::Arc;
use alloc::vec::Vec;
use alloc::{format, vec};

use cleat_api::placement::{
    AddOnScore, PrioritizerMode, PrioritizerPolicy, ScoreCoordinate, ScoreCoordinateType,
};
use jiff::Timestamp;

use super::cluster::Cluster;
use super::{Misconfigured, Observed};
use crate::registration::quantity;

const MOST: i64 = 100;

/// One thing that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Prioritizer {
    Balance,
    Steady,
    /// The allocatable resource of this name.
    Allocatable(&'static str),
    AddOn(AddOnScore),
}

/// What counts, and how much.
pub(super) fn weights(
    policy: Option<&PrioritizerPolicy>,
) -> Result<Vec<(Prioritizer, i64)>, Misconfigured> {
    let mode = policy.map_or(PrioritizerMode::Additive, |policy| policy.mode);
    let mut all = match mode {
        PrioritizerMode::Additive => vec![(Prioritizer::Balance, 1), (Prioritizer::Steady, 1)],
        PrioritizerMode::Exact => vec![],
        PrioritizerMode::Unknown => {
            return Err(Misconfigured("the mode of the prioritizer policy is not known".into()));
        }
    };
    for config in policy.into_iter().flat_map(|policy| &policy.configurations) {
        let prioritizer = read(&config.score_coordinate)?;
        let weight = i64::from(config.weight);
        match all.iter_mut().find(|(one, _)| *one == prioritizer) {
            Some((_, before)) => *before = weight,
            None => all.push((prioritizer, weight)),
        }
    }
    all.retain(|(_, weight)| *weight != 0);
    Ok(all)
}

fn read(coordinate: &ScoreCoordinate) -> Result<Prioritizer, Misconfigured> {
    match (coordinate.type_, coordinate.built_in.as_str(), &coordinate.add_on) {
        (ScoreCoordinateType::BuiltIn, "Balance", _) => Ok(Prioritizer::Balance),
        (ScoreCoordinateType::BuiltIn, "Steady", _) => Ok(Prioritizer::Steady),
        (ScoreCoordinateType::BuiltIn, "ResourceAllocatableCPU", _) => {
            Ok(Prioritizer::Allocatable("cpu"))
        }
        (ScoreCoordinateType::BuiltIn, "ResourceAllocatableMemory", _) => {
            Ok(Prioritizer::Allocatable("memory"))
        }
        (ScoreCoordinateType::AddOn, _, Some(score)) => Ok(Prioritizer::AddOn(score.clone())),
        (ScoreCoordinateType::AddOn, _, None) => {
            Err(Misconfigured("a score coordinate of type AddOn must say which addOn".into()))
        }
        (ScoreCoordinateType::BuiltIn, name, _) => {
            let name: String = name.chars().take(63).collect();
            Err(Misconfigured(format!("incorrect builtin prioritizer: {name}")))
        }
        (ScoreCoordinateType::Unknown, ..) => {
            Err(Misconfigured("the type of a score coordinate is not known".into()))
        }
    }
}

/// Scores of clusters, and until when they hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Scored {
    pub(super) sums: BTreeMap<String, i64>,
    pub(super) until: Option<Timestamp>,
}

pub(super) fn score(
    seen: &Observed,
    clusters: &[&Arc<Cluster>],
    decided: &BTreeSet<&str>,
    weights: &[(Prioritizer, i64)],
) -> Scored {
    let mut scored = Scored::default();
    for cluster in clusters {
        scored.sums.insert(cluster.name.clone(), 0);
    }
    for (prioritizer, weight) in weights {
        let range = Range::of(prioritizer, seen, clusters);
        for cluster in clusters {
            let value = match prioritizer {
                Prioritizer::Balance => range.balance(count(seen, cluster)),
                Prioritizer::Steady => i64::from(decided.contains(&*cluster.name)) * MOST,
                Prioritizer::Allocatable(resource) => {
                    amount(cluster, resource).map_or(0, |amount| range.share(amount))
                }
                Prioritizer::AddOn(score) => {
                    let (value, until) = add_on(seen, score, &cluster.name);
                    scored.until = [scored.until, until].into_iter().flatten().min();
                    value
                }
            };
            if let Some(sum) = scored.sums.get_mut(&cluster.name) {
                *sum = sum.saturating_add(weight.saturating_mul(value));
            }
        }
    }
    scored
}

/// The least and the most that any of the clusters has.
struct Range {
    least: i128,
    most: i128,
}

impl Range {
    fn of(prioritizer: &Prioritizer, seen: &Observed, clusters: &[&Arc<Cluster>]) -> Self {
        let values: Vec<i128> = match prioritizer {
            Prioritizer::Balance => clusters.iter().map(|one| count(seen, one)).collect(),
            Prioritizer::Allocatable(resource) => {
                clusters.iter().filter_map(|one| amount(one, resource)).collect()
            }
            Prioritizer::Steady | Prioritizer::AddOn(_) => vec![],
        };
        let least = values.iter().copied().min().unwrap_or_default();
        Self { least, most: values.into_iter().max().unwrap_or_default() }
    }

    /// From 100, for a cluster nobody else chose, to -100 for the one chosen most.
    fn balance(&self, count: i128) -> i64 {
        if self.most == 0 {
            return MOST;
        }
        let most = i128::from(MOST);
        let half = (most * self.most - 2 * most * count) / (2 * self.most);
        i64::try_from(2 * half).unwrap_or_default()
    }

    /// From -100, for the cluster that has least, to 100.
    fn share(&self, value: i128) -> i64 {
        let (over, range) =
            (value.saturating_sub(self.least), self.most.saturating_sub(self.least));
        if range == 0 {
            return MOST;
        }
        let most = i128::from(MOST);
        let points = over.saturating_mul(2 * most).saturating_sub(range.saturating_mul(most));
        i64::try_from(points / range).unwrap_or(MOST).clamp(-MOST, MOST)
    }
}

/// How many other placements chose the cluster.
fn count(seen: &Observed, cluster: &Cluster) -> i128 {
    let count = seen.elsewhere.get(&cluster.name).copied().unwrap_or_default();
    i128::from(u32::try_from(count).unwrap_or(u32::MAX))
}

fn amount(cluster: &Cluster, resource: &str) -> Option<i128> {
    let (amount, _) = quantity::parse(cluster.allocatable.get(resource)?)?;
    (amount >= 0).then_some(amount)
}

fn add_on(seen: &Observed, score: &AddOnScore, cluster: &str) -> (i64, Option<Timestamp>) {
    let key = (cluster.to_string(), score.resource_name.clone());
    let Some(scores) = seen.scores.get(&key) else { return (0, None) };
    if scores.valid_until.is_some_and(|until| until <= seen.now) {
        return (0, None);
    }
    (scores.values.get(&score.score_name).copied().unwrap_or_default(), scores.valid_until)
}
