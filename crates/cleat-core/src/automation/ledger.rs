//! The status as a ledger: what is decided is written here first, and struck off when it was seen.

use alloc::borrow::ToOwned as _;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use cleat_api::policyautomation::{
    ClusterEvent, EventHook, Mode, PendingJob, PolicyAutomation, PolicyAutomationStatus, RecentJob,
    SinceRun, WaitingCluster,
};
use jiff::{SignedDuration, Timestamp};

use super::job::{self, Job, Sighting};
use super::policy::{Policy, Standing};
use super::{EVERY_EVENT, MANUAL, ONCE, Observed, guard, is_closed, is_last};

/// How many jobs are remembered, and how many clusters of each are named.
const REMEMBERED: usize = 20;
const NAMED: usize = 10;

/// How long a job may be missing from what a watch told before it counts as deleted.
const GONE: SignedDuration = SignedDuration::from_secs(60);

pub(super) fn time(text: &str) -> Option<Timestamp> {
    text.parse().ok()
}

/// Whole seconds, as Kubernetes writes times.
pub(super) fn stamp(at: Timestamp) -> String {
    Timestamp::from_second(at.as_second()).unwrap_or(at).to_string()
}

/// The clusters that jobs which are written down will have.
pub(super) fn promised(status: &PolicyAutomationStatus) -> BTreeSet<String> {
    status.pending_jobs.iter().flat_map(|job| job.clusters.keys().cloned()).collect()
}

/// Writes down one job for each of `chunks`.
pub(super) fn order(
    next: &mut PolicyAutomationStatus,
    automation: &PolicyAutomation,
    mode: &str,
    chunks: Vec<BTreeMap<String, Timestamp>>,
) {
    for chunk in chunks {
        let job = PendingJob { mode: mode.to_owned(), ..PendingJob::default() };
        add(next, automation, job, chunk);
    }
}

pub(super) fn add(
    next: &mut PolicyAutomationStatus,
    automation: &PolicyAutomation,
    mut job: PendingJob,
    clusters: BTreeMap<String, Timestamp>,
) {
    let number = next.jobs_decided.unwrap_or_default().saturating_add(1);
    next.jobs_decided = Some(number);
    job.clusters = clusters.into_iter().map(|(name, at)| (name, stamp(at))).collect();
    job.name = job::name(automation, number, &job);
    next.waiting_clusters.retain(|name, _| !job.clusters.contains_key(name));
    next.pending_jobs.push(job);
}

/// Strikes off the jobs that exist, and those that nobody wants any more and that do not.
pub(super) fn settle(next: &mut PolicyAutomationStatus, seen: &Observed, policy: &Policy) {
    let before = next.pending_jobs.clone();
    for pending in &before {
        let keep = match seen.sighting(&pending.name) {
            Sighting::Present(_) if is_last(next, pending) && !is_closed(seen, pending) => true,
            Sighting::Present(found) => {
                enter(next, seen, pending, found);
                false
            }
            Sighting::Absent if is_called_off(seen, policy, pending) => false,
            // A run that a user asked for is carried out as it was decided, however late.
            Sighting::Absent if pending.mode == EVERY_EVENT && is_refused(seen, pending) => {
                hand_back(next, pending);
                false
            }
            Sighting::Absent => true,
            Sighting::Unknown => true,
        };
        if !keep {
            next.pending_jobs.retain(|job| job.name != pending.name);
        }
    }
}

fn is_refused(seen: &Observed, pending: &PendingJob) -> bool {
    seen.setback.as_ref().is_some_and(|setback| setback.refused.contains(&pending.name))
}

/// The server said that it was not made, so it may be decided anew; the events stay known.
fn hand_back(next: &mut PolicyAutomationStatus, pending: &PendingJob) {
    if pending.retry_of.is_none() {
        for (cluster, event_time) in &pending.clusters {
            let event_time = event_time.clone();
            next.waiting_clusters.insert(cluster.clone(), WaitingCluster { event_time });
        }
    }
}

/// Whether nobody wants a job any more that was decided on and not made.
fn is_called_off(seen: &Observed, policy: &Policy, pending: &PendingJob) -> bool {
    let spec = &seen.automation.spec;
    if pending.retry_of.is_some() {
        return policy.disabled || spec.retry.is_none();
    }
    match &*pending.mode {
        MANUAL => !seen.rerun(),
        mode => {
            let wanted = if mode == ONCE { Mode::Once } else { Mode::EveryEvent };
            spec.mode != wanted || spec.event_hook != EventHook::NonCompliant || policy.disabled
        }
    }
}

/// A job that exists: its clusters have had their run.
fn enter(next: &mut PolicyAutomationStatus, seen: &Observed, pending: &PendingJob, found: &Job) {
    let start = found.created;
    let spec = &seen.automation.spec;
    let counts = match &*pending.mode {
        EVERY_EVENT => true,
        MANUAL => spec.mode == Mode::EveryEvent,
        _ => false,
    };
    for (cluster, event) in pending.clusters.iter().filter(|_| counts) {
        let before = next.clusters_with_event.get(cluster);
        // A rerun is no event: the one that goes on keeps its time.
        let before = before.filter(|before| {
            pending.mode == MANUAL && before.since_run != Some(SinceRun::Recovered)
        });
        let event = before.map_or(event, |before| &before.event_time);
        // Two clocks may disagree, but no job is made for what has not happened yet.
        let event = time(event).unwrap_or(start).min(start);
        let entry = ClusterEvent {
            automation_start_time: stamp(start),
            event_time: stamp(event),
            since_run: None,
        };
        next.clusters_with_event.insert(cluster.clone(), entry);
        next.waiting_clusters.remove(cluster);
    }
    if let Some(failed) = &pending.retry_of {
        let failed = next.recent_jobs.iter_mut().find(|job| job.name == *failed);
        if let Some(failed) = failed {
            failed.retried_as = Some(pending.name.clone());
        }
    }
    let recent = RecentJob {
        name: pending.name.clone(),
        mode: pending.mode.clone(),
        automation_start_time: stamp(start),
        cluster_count: i64::try_from(pending.clusters.len()).unwrap_or(i64::MAX),
        clusters: pending.clusters.keys().take(NAMED).cloned().collect(),
        attempt: pending.attempt,
        ..RecentJob::default()
    };
    next.recent_jobs.insert(0, recent);
    let remembered = guard::per_minute(spec).unwrap_or_default().max(REMEMBERED);
    next.recent_jobs.truncate(remembered);
}

/// What became of the jobs made lately.
pub(super) fn follow(next: &mut PolicyAutomationStatus, seen: &Observed) {
    for recent in &mut next.recent_jobs {
        match seen.jobs.get(&recent.name) {
            Some(Sighting::Present(job)) => {
                let Job { result, finished, url, message, .. } = job;
                recent.result = result.clone().or(recent.result.take());
                recent.finished_time = finished.map(stamp).or(recent.finished_time.take());
                recent.url = url.clone().or(recent.url.take());
                recent.message = message.clone();
            }
            Some(Sighting::Absent) if !job::is_final(recent.result.as_deref()) => {
                let start = time(&recent.automation_start_time);
                if start.is_none_or(|start| seen.now.duration_since(start) > GONE) {
                    recent.result = Some(job::DELETED.to_string());
                }
            }
            Some(Sighting::Absent | Sighting::Unknown) | None => {}
        }
    }
}

/// What is due and not written down waits; who recovers waits no more.
pub(super) fn wait(
    next: &mut PolicyAutomationStatus,
    policy: &Policy,
    mut due: BTreeMap<String, Timestamp>,
) {
    let promised = promised(next);
    let before = core::mem::take(&mut next.waiting_clusters);
    for (name, kept) in &before {
        if policy.standing(name) == Standing::Unclear
            && let Some(at) = time(&kept.event_time)
        {
            due.entry(name.clone()).or_insert(at);
        }
    }
    let waiting = due.into_iter().filter(|(name, _)| !promised.contains(name));
    next.waiting_clusters = waiting
        .map(|(name, at)| {
            let event_time = match before.get(&name) {
                Some(kept) if time(&kept.event_time) == Some(at) => kept.event_time.clone(),
                _ => stamp(at),
            };
            (name, WaitingCluster { event_time })
        })
        .collect();
}

/// Whether a cluster still wants what a job that failed was to do.
pub(super) fn still_concerns(
    status: &PolicyAutomationStatus,
    policy: &Policy,
    failed: &RecentJob,
    cluster: &str,
) -> bool {
    let violated = policy.standing(cluster) == Standing::Violated;
    // Whoever got a later job is that one's concern.
    let entry = status.clusters_with_event.get(cluster);
    let same = |entry: &ClusterEvent| entry.automation_start_time == failed.automation_start_time;
    violated && (failed.mode != EVERY_EVENT || entry.is_some_and(same))
}
