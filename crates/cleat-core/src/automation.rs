//! The story of one PolicyAutomation: jobs for the clusters on which its policy does not hold.
//!
//! What users may rely on:
//! - *Never twice by accident.* A job is written down in the automation's status, with its name and
//!   its targets, before it is made. Whoever goes on after a crash, a lost answer or a failed write
//!   makes the jobs that are written down and finds those that exist; it never decides them anew.
//! - `everyEvent`: one job for every time that a cluster becomes noncompliant. An event ends when the
//!   cluster complies or the policy does not concern it any more; that nobody knows how it stands
//!   ends nothing.
//! - `delayAfterRunSeconds`: a cluster that becomes noncompliant again earlier gets its job when they
//!   have passed, if it still does not comply, and no more than one.
//! - `once`: jobs for all that do not comply, then the mode is `disabled`. The annotation `rerun`
//!   does the same in any mode, also for nobody, and is then removed.
//! - Limits only delay: what waits is in the status, and runs unless it recovers first.
//! - A job is made for a cluster only while the cluster is not known to comply.
//!
//! Not decided here: what a job does, and what else becomes of it.

mod event;
mod guard;
mod job;
mod ledger;
mod policy;
mod report;
mod retry;
mod told;

use alloc::borrow::ToOwned as _;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use cleat_api::policyautomation::{
    EventHook, LAST_RUN, Mode, PendingJob, PolicyAutomation, PolicyAutomationStatus, RERUN,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Map, Value, json};

pub use self::job::{Job, Sighting, label_value, violation};
pub use self::policy::{Cluster, Compliance, Policy, Sight};
pub use self::report::{Setback, Verdict, judge, report};
pub use self::told::Told;
use crate::id::{Id, Target};
use crate::write::{Action, Plan, Side, Write};

/// Everything `plan` may look at.
#[derive(Clone, Debug)]
pub struct Observed {
    pub now: Timestamp,
    /// As a server just gave it, wherever a job is to be made: in an older state a job may be
    /// written down that was made and is gone again.
    pub automation: PolicyAutomation,
    pub policy: Sight,
    /// The jobs that are written down, asked for one by one, and the other jobs of the automation.
    pub jobs: BTreeMap<String, Sighting>,
    /// Clusters that were seen to comply at that version of the policy, whatever they do now. A
    /// queue hands over the last state; between two looks a cluster may have been well again.
    pub glimpses: BTreeMap<String, u64>,
    /// Clusters that have said themselves that they complied, which the policy may never show: a
    /// recovery that is short enough is over before anybody sums up.
    pub hints: BTreeSet<String>,
    /// What clusters themselves say, of those that [`asks`] names and that could be read.
    pub told: BTreeMap<String, Told>,
    pub context: Context,
    /// What went wrong last.
    pub setback: Option<Setback>,
}

/// What jobs are told beyond the names of clusters.
#[derive(Clone, Debug, PartialEq)]
pub enum Context {
    /// There is no job to be made.
    NotAsked,
    Unreadable(String),
    Read {
        /// The domain of the hub; empty where it has none.
        hub_cluster: String,
        /// By cluster, as [`violation`] makes them.
        violations: BTreeMap<String, Value>,
    },
}

/// How many jobs are made in one pass; the next goes on where this one ended.
const BATCH: usize = 32;

/// What should happen next: one step at most. An empty plan: nothing to do now.
pub fn plan(seen: &Observed) -> Plan {
    let Sight::Present(policy) = &seen.policy else { return vec![] };
    if seen.automation.metadata.deletion_timestamp.is_some() {
        return vec![];
    }
    if let Some(owners) = policy.owners_to_be(&seen.automation) {
        let patch = patch(&seen.automation, json!({ "ownerReferences": owners }), None);
        return vec![vec![write(&seen.automation, Write::Merge(patch))]];
    }
    if let Some(close) = close(seen) {
        return vec![vec![close]];
    }
    let status = status(&seen.automation);
    let next = advance(seen, policy);
    if next != status {
        return vec![vec![tell(&seen.automation, &status, &next)]];
    }
    let creates = creates(seen, policy, &status);
    if creates.is_empty() { vec![] } else { vec![creates] }
}

/// Names of the jobs of which must be known whether they exist.
pub fn unsettled(automation: &PolicyAutomation) -> Vec<String> {
    let pending = automation.status.iter().flat_map(|status| &status.pending_jobs);
    pending.map(|job| job.name.clone()).collect()
}

/// Clusters of which a job to be made wants to know the violation.
pub fn targets(automation: &PolicyAutomation) -> Vec<String> {
    let pending = automation.status.iter().flat_map(|status| &status.pending_jobs);
    let all: BTreeSet<_> = pending.flat_map(|job| job.clusters.keys()).collect();
    all.into_iter().cloned().collect()
}

/// Clusters of which must be known what they themselves say. `anew`: nobody has listened so far, so
/// that recoveries may have gone unheard.
pub fn asks(seen: &Observed, anew: bool) -> Vec<String> {
    let Sight::Present(policy) = &seen.policy else { return vec![] };
    let status = status(&seen.automation);
    let promised = ledger::promised(&status);
    let free = status.pending_jobs.is_empty() && !seen.paused();
    let free = free
        && guard::slots(&seen.automation.spec, &status.recent_jobs, seen.now)
            .is_none_or(|slots| slots > 0);
    let asked = policy.clusters.iter().filter(|(name, cluster)| {
        if promised.contains(*name) {
            return false;
        }
        let unheard = anew || seen.hints.contains(*name);
        let entry = status.clusters_with_event.get(*name);
        match cluster.compliance {
            Compliance::NonCompliant => {
                let listens =
                    unheard || seen.glimpses.contains_key(*name) || (free && seen.rerun());
                match entry {
                    Some(entry) => listens || entry.since_run.is_some(),
                    None => listens || free || !status.waiting_clusters.contains_key(*name),
                }
            }
            // It may have complied before it became unclear how it stands.
            Compliance::Unclear => unheard && entry.is_some(),
            // Or have had a job for what came after it complied.
            Compliance::Compliant => entry.is_some_and(|entry| entry.since_run.is_none()),
        }
    });
    asked.map(|(name, _)| name.clone()).collect()
}

pub(crate) fn status(automation: &PolicyAutomation) -> PolicyAutomationStatus {
    automation.status.clone().unwrap_or_default()
}

/// The words for why a job runs, as they are written down.
const ONCE: &str = "once";
const EVERY_EVENT: &str = "everyEvent";
const MANUAL: &str = "manual";

impl Observed {
    fn sighting(&self, job: &str) -> &Sighting {
        self.jobs.get(job).unwrap_or(&Sighting::Unknown)
    }

    fn annotation(&self, key: &str) -> Option<&str> {
        let annotations = self.automation.metadata.annotations.as_ref()?;
        annotations.get(key).map(String::as_str)
    }

    fn rerun(&self) -> bool {
        self.annotation(RERUN) == Some("true")
    }

    /// Whether events start jobs.
    fn armed(&self, policy: &Policy, mode: Mode) -> bool {
        let spec = &self.automation.spec;
        spec.mode == mode && spec.event_hook == EventHook::NonCompliant && !policy.disabled
    }

    fn paused(&self) -> bool {
        self.setback.as_ref().is_some_and(|setback| self.now < setback.retry_at)
    }
}

/// A run that was asked for has ended, and the wish is still there: both go in one write. The last
/// job stays written down until that is done.
fn close(seen: &Observed) -> Option<Action> {
    let status = seen.automation.status.as_ref()?;
    let job = status.pending_jobs.iter().find(|job| is_last(status, job))?;
    if !matches!(seen.sighting(&job.name), Sighting::Present(_)) || is_closed(seen, job) {
        return None;
    }
    let (annotations, spec) = match &*job.mode {
        ONCE => (json!({ LAST_RUN: job.name }), Some(("spec", json!({ "mode": "disabled" })))),
        _ => (json!({ LAST_RUN: job.name, RERUN: null }), None),
    };
    let patch = patch(&seen.automation, json!({ "annotations": annotations }), spec);
    Some(write(&seen.automation, Write::Merge(patch)))
}

/// Whether it is the last of the jobs that a user asked for at once.
fn is_last(status: &PolicyAutomationStatus, job: &PendingJob) -> bool {
    let asked = |job: &&PendingJob| job.mode != EVERY_EVENT && job.retry_of.is_none();
    asked(&job) && status.pending_jobs.iter().filter(asked).count() == 1
}

/// Whether nothing in the automation asks for this run any more.
fn is_closed(seen: &Observed, job: &PendingJob) -> bool {
    let wish = match &*job.mode {
        ONCE => seen.automation.spec.mode == Mode::Once,
        _ => seen.rerun(),
    };
    seen.annotation(LAST_RUN) == Some(&job.name) || !wish
}

/// The status as it should be now.
fn advance(seen: &Observed, policy: &Policy) -> PolicyAutomationStatus {
    let mut next = status(&seen.automation);
    if next.observed_policy.as_ref().is_some_and(|before| before.uid != policy.uid) {
        next.clusters_with_event.clear();
        next.said_times.clear();
        next.waiting_clusters.clear();
        next.observed_policy = None;
    }
    ledger::settle(&mut next, seen, policy);
    ledger::follow(&mut next, seen);
    let mut due = event::look(&mut next, seen, policy);
    retry::look(&mut next, policy);
    if next.pending_jobs.is_empty() && !seen.paused() {
        order(&mut next, seen, policy, &mut due);
    }
    ledger::wait(&mut next, policy, due);
    ledger::forget(&mut next, &seen.automation.spec, seen.now);
    // While a job is written down, what was glimpsed since it was decided still counts.
    let before = seen.automation.status.as_ref();
    if before.is_none_or(|before| before.pending_jobs.is_empty())
        && before.cloned().unwrap_or_default() != next
    {
        next.observed_policy = Some(policy.observed());
    }
    next
}

/// Writes down the jobs that are due.
fn order(
    next: &mut PolicyAutomationStatus,
    seen: &Observed,
    policy: &Policy,
    due: &mut BTreeMap<String, Timestamp>,
) {
    let spec = &seen.automation.spec;
    let slots = guard::slots(spec, &next.recent_jobs, seen.now).unwrap_or(usize::MAX);
    let every = || policy.noncompliant().map(|name| (name.to_owned(), seen.now)).collect();
    if seen.rerun() {
        let mut chunks = guard::chunks(spec, every());
        if chunks.is_empty() {
            chunks.push(BTreeMap::new());
        }
        return ledger::order(next, seen, policy, MANUAL, chunks);
    }
    if seen.armed(policy, Mode::Once) {
        return ledger::order(next, seen, policy, ONCE, guard::chunks(spec, every()));
    }
    let retried = retry::order(next, seen, policy, slots);
    if seen.armed(policy, Mode::EveryEvent) {
        // Whoever gets a job in the place of another gets no second one.
        let promised = ledger::promised(next);
        due.retain(|name, _| !promised.contains(name));
        let mut chunks = guard::chunks(spec, due.clone());
        chunks.truncate(slots.saturating_sub(retried));
        ledger::order(next, seen, policy, EVERY_EVENT, chunks);
    }
}

/// Makes the jobs that are written down and not there.
fn creates(seen: &Observed, policy: &Policy, status: &PolicyAutomationStatus) -> Vec<Action> {
    if seen.paused() {
        return vec![];
    }
    let slots = guard::slots(&seen.automation.spec, &status.recent_jobs, seen.now);
    let pending = status.pending_jobs.iter();
    // What may exist counts as if it did.
    let unknown = pending.clone().filter(|job| *seen.sighting(&job.name) == Sighting::Unknown);
    let slots = slots.map_or(BATCH, |slots| slots.saturating_sub(unknown.count())).min(BATCH);
    let absent = pending
        .filter(|job| matches!(seen.sighting(&job.name), Sighting::Absent | Sighting::NotServed));
    let absent = absent.take(slots);
    absent.filter_map(|pending| job::create(seen, policy, pending)).collect()
}

fn target(automation: &PolicyAutomation) -> Target {
    let id = Id {
        group: cleat_api::policy::GROUP.into(),
        resource: "policyautomations".into(),
        namespace: automation.metadata.namespace.clone().unwrap_or_default(),
        name: automation.metadata.name.clone().unwrap_or_default(),
    };
    Target { version: "v1beta1".into(), id }
}

fn write(automation: &PolicyAutomation, write: Write) -> Action {
    Action { side: Side::Hub, target: target(automation), write }
}

/// A change of the automation in the state in which it was seen, and in no other.
fn patch(automation: &PolicyAutomation, metadata: Value, part: Option<(&str, Value)>) -> Value {
    let mut metadata = match metadata {
        Value::Object(metadata) => metadata,
        _ => Map::new(),
    };
    let ObjectMeta { uid, resource_version, .. } = &automation.metadata;
    metadata.insert("uid".into(), json!(uid));
    metadata.insert("resourceVersion".into(), json!(resource_version));
    let mut patch = Map::new();
    patch.insert("metadata".into(), Value::Object(metadata));
    if let Some((key, part)) = part {
        patch.insert(key.into(), part);
    }
    Value::Object(patch)
}

/// The write that turns one status into another.
fn tell(
    automation: &PolicyAutomation,
    before: &PolicyAutomationStatus,
    after: &PolicyAutomationStatus,
) -> Action {
    let [before, after] =
        [before, after].map(|status| serde_json::to_value(status).unwrap_or_default());
    let patch = patch(automation, json!({}), Some(("status", difference(&before, &after))));
    write(automation, Write::MergeStatus(patch))
}

/// The merge patch that makes `after` of `before`.
fn difference(before: &Value, after: &Value) -> Value {
    let (Value::Object(before), Value::Object(after)) = (before, after) else {
        return after.clone();
    };
    let mut patch = Map::new();
    for (key, _) in before.iter().filter(|(key, _)| !after.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, value) in after {
        match before.get(key) {
            Some(same) if same == value => {}
            Some(old) => drop(patch.insert(key.clone(), difference(old, value))),
            None => drop(patch.insert(key.clone(), value.clone())),
        }
    }
    Value::Object(patch)
}

#[cfg(test)]
mod tests;
