//! The status as a ledger: what is decided is written here first, and struck off when it was seen.

use alloc::borrow::ToOwned as _;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use cleat_api::policyautomation::{
    ClusterEvent, EventHook, Mode, PendingJob, PolicyAutomationSpec, PolicyAutomationStatus,
    RecentJob, SinceRun, WaitingCluster,
};
use jiff::{SignedDuration, Timestamp};

use super::job::{self, Job, Sighting};
use super::policy::{Policy, Standing};
use super::{EVERY_EVENT, MANUAL, ONCE, Observed, event, guard, is_closed, is_last};

/// How many jobs that ended well, and how many that did not, are remembered; how many there may be of
/// which more is to come; and how many clusters of each are named.
const REMEMBERED: usize = 20;
const UNDER_WAY: usize = 500;
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
    seen: &Observed,
    policy: &Policy,
    mode: &str,
    chunks: Vec<BTreeMap<String, Timestamp>>,
) {
    for chunk in chunks {
        let job = PendingJob { mode: mode.to_owned(), ..PendingJob::default() };
        add(next, seen, policy, job, chunk);
    }
}

pub(super) fn add(
    next: &mut PolicyAutomationStatus,
    seen: &Observed,
    policy: &Policy,
    mut job: PendingJob,
    clusters: BTreeMap<String, Timestamp>,
) {
    let said = |name: &String| Some((name.clone(), seen.told.get(name)?.newest.to_string()));
    job.said_times = clusters.keys().filter_map(said).collect();
    job.policy_uid = Some(policy.uid.clone());
    let number = next.jobs_decided.unwrap_or_default().saturating_add(1);
    next.jobs_decided = Some(number);
    job.clusters = clusters.into_iter().map(|(name, at)| (name, stamp(at))).collect();
    job.name = job::name(&seen.automation, number, &job);
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
                enter(next, seen, policy, pending, found);
                false
            }
            Sighting::Absent if is_called_off(seen, policy, pending) => false,
            Sighting::Absent => shed(next, policy, pending),
            Sighting::NotServed | Sighting::Foreign | Sighting::Unknown => true,
        };
        if !keep {
            next.pending_jobs.retain(|job| job.name != pending.name);
        }
    }
}

/// A job that is not there yet loses the targets that recovered, and nothing else: whatever a server
/// said, a try to make it may still be under way, so its name stays, and under another one its
/// clusters might get a second job. Says whether anything is left of it.
fn shed(next: &mut PolicyAutomationStatus, policy: &Policy, pending: &PendingJob) -> bool {
    let before = pending.clusters.len();
    let mut left = pending.clone();
    left.clusters.retain(|name, _| !policy.is_well(name));
    left.said_times.retain(|name, _| left.clusters.contains_key(name));
    // A rerun that a user asked for ends with a job, be it for nobody.
    let stays = !left.clusters.is_empty()
        || before == 0
        || (left.mode == MANUAL && left.retry_of.is_none() && is_last(next, pending));
    if stays && let Some(job) = next.pending_jobs.iter_mut().find(|job| job.name == left.name) {
        *job = left;
    }
    stays
}

/// Whether nobody wants a job any more that was decided on and not made.
fn is_called_off(seen: &Observed, policy: &Policy, pending: &PendingJob) -> bool {
    let spec = &seen.automation.spec;
    if pending.policy_uid.as_ref().is_some_and(|uid| *uid != policy.uid) {
        return true;
    }
    if pending.retry_of.is_some() {
        let armed = pending.mode != EVERY_EVENT || seen.armed(policy, Mode::EveryEvent);
        return policy.disabled || spec.retry.is_none() || !armed;
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
fn enter(
    next: &mut PolicyAutomationStatus,
    seen: &Observed,
    policy: &Policy,
    pending: &PendingJob,
    found: &Job,
) {
    let start = found.created;
    let spec = &seen.automation.spec;
    let counts = match &*pending.mode {
        EVERY_EVENT => true,
        MANUAL => spec.mode == Mode::EveryEvent,
        _ => false,
    };
    // What was run for another policy says nothing of this one.
    let counts = counts && pending.policy_uid.as_ref().is_none_or(|uid| *uid == policy.uid);
    for (cluster, event) in pending.clusters.iter().filter(|_| counts) {
        let before = next.clusters_with_event.get(cluster);
        let said_time = pending.said_times.get(cluster).cloned();
        // A job in the place of another one is for the same violation.
        if pending.retry_of.is_none() || said_time.is_some() {
            next.said_times.remove(cluster);
        }
        next.said_times.extend(said_time.map(|said| (cluster.clone(), said)));
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
            if let Some(left) = &mut failed.retry_clusters {
                left.retain(|name| !found.targets.contains(name));
            }
        }
    }
    let recent = RecentJob {
        name: pending.name.clone(),
        mode: pending.mode.clone(),
        automation_start_time: stamp(start),
        cluster_count: i64::try_from(pending.clusters.len()).unwrap_or(i64::MAX),
        clusters: pending.clusters.keys().take(NAMED).cloned().collect(),
        attempt: pending.attempt,
        policy_uid: pending.policy_uid.clone(),
        ..RecentJob::default()
    };
    next.recent_jobs.insert(0, recent);
}

/// Of the jobs that ended, only some are remembered, those that failed apart from the others: a
/// failure is not covered by what went well since. What still counts for a limit is kept.
pub(super) fn forget(
    next: &mut PolicyAutomationStatus,
    spec: &PolicyAutomationSpec,
    now: Timestamp,
) {
    let (mut well, mut ill, mut more) = (0_usize, 0_usize, 0_usize);
    next.recent_jobs.retain(|job| {
        let result = job.result.as_deref();
        let again = job.retry_clusters.as_ref().is_some_and(|left| !left.is_empty());
        let (count, most) = if again || !job::is_final(result) {
            (&mut more, UNDER_WAY)
        } else if job::is_failed(result) {
            (&mut ill, REMEMBERED)
        } else {
            (&mut well, REMEMBERED)
        };
        *count += 1;
        *count <= most || guard::counts(spec, job, now)
    });
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
                // The job may be gone when it is to be made again.
                if job::is_failed(recent.result.as_deref())
                    && recent.retry_clusters.is_none()
                    && recent.retried_as.is_none()
                    && seen.automation.spec.retry.is_some()
                {
                    recent.retry_clusters = Some(job.targets.clone());
                }
            }
            Some(Sighting::Absent) if !job::is_final(recent.result.as_deref()) => {
                let start = time(&recent.automation_start_time);
                if start.is_none_or(|start| seen.now.duration_since(start) > GONE) {
                    recent.result = Some(job::DELETED.to_string());
                }
            }
            Some(
                Sighting::Absent | Sighting::NotServed | Sighting::Foreign | Sighting::Unknown,
            )
            | None => {}
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
    // Nor is another violation that of the failed job.
    let same = |entry: &ClusterEvent| {
        entry.automation_start_time == failed.automation_start_time && !event::is_again(entry)
    };
    violated && (failed.mode != EVERY_EVENT || entry.is_some_and(same))
}

/// When a job that is missing counts as deleted.
pub(super) fn wake(status: &PolicyAutomationStatus, seen: &Observed) -> Option<Timestamp> {
    let missing = status.recent_jobs.iter().filter(|recent| {
        !job::is_final(recent.result.as_deref())
            && matches!(seen.jobs.get(&recent.name), Some(Sighting::Absent))
    });
    let ends = missing.filter_map(|recent| {
        let later = GONE.saturating_add(SignedDuration::from_secs(1));
        time(&recent.automation_start_time)?.checked_add(later).ok()
    });
    ends.filter(|end| *end > seen.now).min()
}
