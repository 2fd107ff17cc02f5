//! Jobs that failed, made again where the automation asks for it.

use alloc::collections::BTreeMap;
use alloc::string::String;

use cleat_api::policyautomation::{Mode, PendingJob, PolicyAutomationStatus, RecentJob};
use jiff::{SignedDuration, Timestamp};

use super::job::{self, Sighting};
use super::ledger::{self, time};
use super::policy::Policy;
use super::{EVERY_EVENT, Observed};

const DEFAULT_DELAY: i64 = 60;

/// Writes down at most `slots` jobs in the place of failed ones, and says how many.
pub(super) fn order(
    next: &mut PolicyAutomationStatus,
    seen: &Observed,
    policy: &Policy,
    slots: usize,
) -> usize {
    let failed = next.recent_jobs.clone();
    let mut ordered = 0;
    for failed in failed.iter().rev() {
        if ordered >= slots || due(seen, policy, failed).is_none_or(|at| seen.now < at) {
            continue;
        }
        let clusters = concerned(next, seen, policy, failed);
        if clusters.is_empty() {
            continue;
        }
        let job = PendingJob {
            mode: failed.mode.clone(),
            retry_of: Some(failed.name.clone()),
            attempt: Some(failed.attempt.unwrap_or_default().saturating_add(1)),
            ..PendingJob::default()
        };
        ledger::add(next, &seen.automation, job, clusters);
        ordered += 1;
    }
    ordered
}

/// When a failed job is to be made again; never, if it is not.
fn due(seen: &Observed, policy: &Policy, failed: &RecentJob) -> Option<Timestamp> {
    let retry = seen.automation.spec.retry.as_ref()?;
    let wanted = failed.mode != EVERY_EVENT || seen.armed(policy, Mode::EveryEvent);
    let again = failed.attempt.unwrap_or_default() < retry.limit;
    if !job::is_failed(failed.result.as_deref())
        || failed.retried_as.is_some()
        || policy.disabled
        || !wanted
        || !again
    {
        return None;
    }
    let ended = failed.finished_time.as_deref().and_then(time);
    let ended = ended.or_else(|| time(&failed.automation_start_time))?;
    let delay = retry.delay_seconds.unwrap_or(DEFAULT_DELAY).clamp(0, 100 * 366 * 86_400);
    ended.checked_add(SignedDuration::from_secs(delay)).ok()
}

/// Those of its clusters that still want it, with the times of their events.
fn concerned(
    status: &PolicyAutomationStatus,
    seen: &Observed,
    policy: &Policy,
    failed: &RecentJob,
) -> BTreeMap<String, Timestamp> {
    let Some(Sighting::Present(job)) = seen.jobs.get(&failed.name) else { return BTreeMap::new() };
    let targets = job.targets.iter();
    let targets = targets.filter(|name| ledger::still_concerns(status, policy, failed, name));
    let event = |name: &String| {
        let entry = status.clusters_with_event.get(name);
        entry.and_then(|entry| time(&entry.event_time)).unwrap_or(seen.now)
    };
    targets.map(|name| (name.clone(), event(name))).collect()
}

/// When the next failed job is to be made again.
pub(super) fn wake(
    status: &PolicyAutomationStatus,
    seen: &Observed,
    policy: &Policy,
) -> Option<Timestamp> {
    let due = status.recent_jobs.iter().filter_map(|failed| due(seen, policy, failed));
    due.filter(|at| *at > seen.now).min()
}
