//! Which jobs there must be, from a history of compliance: an independent reading of the proposal.
//!
//! It counts violations. A violation of a cluster begins when it becomes noncompliant after it
//! complied (or was not concerned), and each is served by at most one job. Nothing in here knows how
//! the automation remembers anything.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use super::world::Made;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    NonCompliant,
    Compliant,
    Pending,
    Unknown,
    Gone,
}

#[derive(Clone, Debug)]
pub(super) enum Change {
    Stands(String, State),
    Mode(&'static str),
    Rerun,
    /// A policy that is disabled concerns nobody; enabled again, it must be told anew who stands how.
    Disable(bool),
}

struct Cluster {
    state: State,
    /// Which violation it is in, or was in last.
    violation: u32,
    /// Whether that violation lasts: nobody has seen the cluster comply since it began.
    lasts: bool,
    /// The last violation that had a job, and when that job began.
    served: u32,
    started: Option<i64>,
    /// Whether it had a job and has not, since then, complied with the delay over.
    held: bool,
}

pub(super) struct Oracle {
    clusters: BTreeMap<String, Cluster>,
    mode: &'static str,
    rerun: bool,
    disabled: bool,
    delay: i64,
}

impl Oracle {
    pub(super) fn new(mode: &'static str, delay: i64) -> Self {
        Self { clusters: BTreeMap::new(), mode, rerun: false, disabled: false, delay }
    }

    pub(super) fn mode(&self) -> &'static str {
        self.mode
    }

    pub(super) fn is_disabled(&self) -> bool {
        self.disabled
    }

    pub(super) fn change(&mut self, change: &Change, second: i64) {
        match change {
            Change::Mode(mode) => self.mode = mode,
            Change::Rerun => self.rerun = true,
            Change::Disable(disabled) => {
                self.disabled = *disabled;
                for cluster in self.clusters.values_mut() {
                    cluster.state = State::Gone;
                    cluster.lasts = false;
                }
            }
            Change::Stands(name, state) => {
                let cluster = self.clusters.entry(name.clone()).or_insert(Cluster {
                    state: State::Gone,
                    violation: 0,
                    lasts: false,
                    served: 0,
                    started: None,
                    held: false,
                });
                cluster.state = *state;
                match state {
                    State::NonCompliant if !cluster.lasts => {
                        cluster.lasts = true;
                        cluster.violation += 1;
                    }
                    State::NonCompliant | State::Pending | State::Unknown => {}
                    State::Compliant | State::Gone => cluster.lasts = false,
                }
            }
        }
        self.release(second);
    }

    /// The jobs of this moment.
    pub(super) fn jobs(&mut self, second: i64) -> Vec<Made> {
        let mut made = Vec::new();
        let noncompliant = |all: &BTreeMap<String, Cluster>| -> Vec<String> {
            let bad = all.iter().filter(|(_, one)| one.state == State::NonCompliant);
            bad.map(|(name, _)| name.clone()).collect()
        };
        if core::mem::take(&mut self.rerun) {
            let clusters = noncompliant(&self.clusters);
            if self.mode == "everyEvent" {
                self.serve(&clusters, second);
            }
            made.push(Made { second, why: "manual".into(), clusters });
        }
        match self.mode {
            "once" if !self.disabled => {
                let clusters = noncompliant(&self.clusters);
                if !clusters.is_empty() {
                    self.mode = "disabled";
                    made.push(Made { second, why: "once".into(), clusters });
                }
            }
            "everyEvent" if !self.disabled => {
                let due = self.clusters.iter().filter(|(_, one)| {
                    one.state == State::NonCompliant
                        && one.served < one.violation
                        && one.started.is_none_or(|started| second >= started + self.delay)
                });
                let clusters: Vec<String> = due.map(|(name, _)| name.clone()).collect();
                if !clusters.is_empty() {
                    self.serve(&clusters, second);
                    made.push(Made { second, why: "everyevent".into(), clusters });
                }
            }
            _ => {}
        }
        self.release(second);
        made
    }

    fn release(&mut self, second: i64) {
        for one in self.clusters.values_mut() {
            let passed = one.started.is_none_or(|started| second >= started + self.delay);
            one.held &= one.lasts || !passed;
        }
    }

    fn serve(&mut self, clusters: &[String], second: i64) {
        for name in clusters {
            let cluster = self.clusters.get_mut(name).unwrap();
            cluster.served = cluster.violation;
            cluster.started = Some(second);
            cluster.held = true;
        }
    }

    /// When a job becomes due by itself.
    pub(super) fn alarm(&self, second: i64) -> Option<i64> {
        let waits = self
            .clusters
            .values()
            .filter(|one| one.state == State::NonCompliant && one.served < one.violation);
        let ends = waits.filter_map(|one| one.started.map(|started| started + self.delay));
        ends.filter(|end| *end > second && self.mode == "everyEvent" && !self.disabled).min()
    }

    /// The clusters that the proposal wants in `clustersWithEvent`: those that had a job, until they
    /// comply and the delay has passed; without those of which nobody knows how they stand. Only for
    /// a mode that was never another.
    pub(super) fn entries(&self) -> Vec<String> {
        let held = self.clusters.iter().filter(|(name, one)| one.held && !self.is_unclear(name));
        held.map(|(name, _)| name.clone()).collect()
    }

    pub(super) fn is_unclear(&self, cluster: &str) -> bool {
        let state = self.clusters.get(cluster).map(|cluster| cluster.state);
        matches!(state, Some(State::Pending | State::Unknown))
    }
}
