//! How a change spreads over the clusters of a placement: which may have it now, which wait, and
//! when to look again.
//!
//! A cluster is judged only by how it fares with the change at hand. A new change starts every
//! cluster over, so a rollout that stopped at failures goes on when its template is mended.
//!
//! A cluster that does not answer cannot hold a rollout for ever: the deadline runs from the moment
//! it was given the change, not from the first sign of life.
//!
//! Not decided here: what the change is, and how it gets to a cluster.

mod strategy;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use jiff::Timestamp;

pub use self::strategy::{Amount, Invalid, Kind, Pick, Strategy};

/// Clusters that a placement decided on together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// Empty for a group without a name.
    pub name: String,
    pub index: i64,
    pub clusters: BTreeSet<String>,
}

/// How one cluster fares with the change. `since` is when it came to that, where it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It was not given the change.
    Pending,
    /// It was given the change, and has not said that it applied it.
    Applying {
        since: Option<Timestamp>,
    },
    Progressing {
        since: Option<Timestamp>,
    },
    Failed {
        since: Option<Timestamp>,
    },
    Succeeded {
        since: Option<Timestamp>,
    },
}

/// Where one cluster stands in the rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Its turn has not come.
    Waiting,
    /// It may have the change now.
    Due,
    /// It has the change and is at it.
    Underway,
    /// It succeeded, but not yet for long enough to count.
    Soaking,
    Failed,
    /// It did not succeed before its deadline.
    TimedOut,
    Succeeded,
}

impl Standing {
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Failed | Self::TimedOut)
    }
}

/// What a rollout allows at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rollout {
    /// Every cluster of every group.
    pub standing: BTreeMap<String, Standing>,
    /// Why no further cluster gets the change.
    pub stopped: Option<Stopped>,
    /// When a standing changes by the passing of time alone.
    pub wake: Option<Timestamp>,
}

/// More clusters failed than may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stopped {
    pub failed: BTreeSet<String>,
    pub allowed: usize,
}

impl Rollout {
    /// The clusters that may have the change now.
    pub fn due(&self) -> impl Iterator<Item = &str> {
        self.standing.iter().filter(|(_, at)| **at == Standing::Due).map(|(name, _)| &**name)
    }

    pub fn count(&self, standing: Standing) -> usize {
        self.standing.values().filter(|at| **at == standing).count()
    }
}

/// Where a rollout stands. A cluster of which `progress` says nothing was not given the change.
pub fn advance(
    strategy: &Strategy,
    groups: &[Group],
    progress: &BTreeMap<String, Progress>,
    now: Timestamp,
) -> Rollout {
    let mut rollout = Rollout::default();
    for cluster in groups.iter().flat_map(|group| &group.clusters) {
        let progress = progress.get(cluster).copied().unwrap_or(Progress::Pending);
        let (standing, wake) = strategy.judge(progress, now);
        rollout.standing.insert(cluster.clone(), standing);
        rollout.wake = [rollout.wake, wake].into_iter().flatten().min();
    }
    match &strategy.kind {
        Kind::All => {
            let all: Vec<&Group> = groups.iter().collect();
            let everybody = members(&all).len();
            rollout.admit(&all, everybody, everybody);
        }
        Kind::Progressive { at_once, mandatory } => {
            let (first, rest) = split(groups, mandatory);
            if rollout.group_by_group(&first, Amount::NONE) {
                let clusters = members(&rest).len();
                let total = rollout.standing.len();
                let at_once = at_once.map_or(clusters, |amount| amount.of(clusters));
                // None at all would be a rollout that never moves; it means no limit.
                let at_once = if at_once == 0 { clusters } else { at_once };
                rollout.admit(&rest, at_once, strategy.max_failures.of(total));
            }
        }
        Kind::ProgressivePerGroup { mandatory } => {
            let (first, rest) = split(groups, mandatory);
            if rollout.group_by_group(&first, Amount::NONE) {
                rollout.group_by_group(&rest, strategy.max_failures);
            }
        }
    }
    rollout
}

/// The mandatory groups and the others, each in the order of their index.
fn split<'a>(groups: &'a [Group], mandatory: &[Pick]) -> (Vec<&'a Group>, Vec<&'a Group>) {
    let mut ordered: Vec<&Group> = groups.iter().collect();
    ordered.sort_by(|a, b| (a.index, &a.name).cmp(&(b.index, &b.name)));
    ordered.into_iter().partition(|group| mandatory.iter().any(|pick| pick.is(group)))
}

fn members<'a>(groups: &[&'a Group]) -> BTreeSet<&'a str> {
    groups.iter().flat_map(|group| &group.clusters).map(|name| &**name).collect()
}

impl Rollout {
    /// Each group once all of those before it are through. Whether all of them are.
    fn group_by_group(&mut self, groups: &[&Group], max_failures: Amount) -> bool {
        for group in groups {
            let size = group.clusters.len();
            if !self.admit(&[group], size, max_failures.of(size)) {
                return false;
            }
        }
        true
    }

    /// Lets in as many of these clusters as there is room for. Whether they are through: every one
    /// succeeded, or is among the failures that are allowed.
    fn admit(&mut self, groups: &[&Group], at_once: usize, allowed: usize) -> bool {
        let clusters = members(groups);
        let failed: BTreeSet<String> = clusters
            .iter()
            .filter(|name| self.standing.get(**name).is_some_and(|at| at.is_failure()))
            .map(|name| String::from(*name))
            .collect();
        if failed.len() > allowed {
            self.stopped = Some(Stopped { failed, allowed });
            return false;
        }
        // Who failed keeps its place until the deadline says that nothing more is to be expected.
        let busy =
            |at: Standing| matches!(at, Standing::Underway | Standing::Soaking | Standing::Failed);
        let taken = clusters.iter().filter_map(|name| self.standing.get(*name));
        let mut room = at_once.saturating_sub(taken.filter(|at| busy(**at)).count());
        let mut through = true;
        for name in clusters {
            let Some(standing) = self.standing.get_mut(name) else { continue };
            if *standing == Standing::Waiting && room > 0 {
                *standing = Standing::Due;
                room -= 1;
            }
            through &= *standing == Standing::Succeeded || standing.is_failure();
        }
        through
    }
}

#[cfg(test)]
mod tests;
