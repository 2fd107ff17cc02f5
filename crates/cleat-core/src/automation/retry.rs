//! Jobs that failed, made again where the automation asks for it.
//!
//! For whom is written down when the failure is seen, since the job itself may be gone when it is
//! time. Who recovers, or gets another job, is struck off.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;

use cleat_api::policyautomation::{Mode, PendingJob, PolicyAutomationStatus, RecentJob};
use jiff::{SignedDuration, Timestamp};

use super::ledger::{self, time};
use super::policy::{Policy, Standing};
use super::{EVERY_EVENT, Observed, guard, job};

const DEFAULT_DELAY: i64 = 60;

/// Strikes off whom a failed job does not concern any more.
pub(super) fn look(next: &mut PolicyAutomationStatus, policy: &Policy) {
    let before = next.clone();
    let promised = ledger::promised(next);
    for failed in &mut next.recent_jobs {
        let now = failed.clone();
        let other = failed.policy_uid.as_ref().is_some_and(|uid| *uid != policy.uid);
        if let Some(left) = &mut failed.retry_clusters {
            left.retain(|name| {
                let unclear = policy.standing(name) == Standing::Unclear;
                // A job that is written down for it may be the one in the place of this.
                let stays = unclear || promised.contains(name);
                !other && (stays || ledger::still_concerns(&before, policy, &now, name))
            });
        }
    }
}

/// Writes down at most `slots` jobs in the place of failed ones, and says how many.
pub(super) fn order(
    next: &mut PolicyAutomationStatus,
    seen: &Observed,
    policy: &Policy,
    slots: usize,
) -> usize {
    let failed = next.recent_jobs.clone();
    let mut ordered = 0_usize;
    for failed in failed.iter().rev() {
        if due(seen, policy, failed).is_none_or(|at| seen.now < at) {
            continue;
        }
        let promised = ledger::promised(next);
        let mut clusters = concerned(next, seen, policy, failed);
        clusters.retain(|name, _| !promised.contains(name));
        for chunk in guard::chunks(&seen.automation.spec, clusters) {
            if ordered >= slots {
                return ordered;
            }
            let job = PendingJob {
                mode: failed.mode.clone(),
                retry_of: Some(failed.name.clone()),
                attempt: Some(failed.attempt.unwrap_or_default().saturating_add(1)),
                ..PendingJob::default()
            };
            ledger::add(next, seen, policy, job, chunk);
            ordered = ordered.saturating_add(1);
        }
    }
    ordered
}

/// When a failed job is to be made again; never, if it is not.
fn due(seen: &Observed, policy: &Policy, failed: &RecentJob) -> Option<Timestamp> {
    let retry = seen.automation.spec.retry.as_ref()?;
    let wanted = failed.mode != EVERY_EVENT || seen.armed(policy, Mode::EveryEvent);
    let again = failed.attempt.unwrap_or_default() < retry.limit;
    let left = failed.retry_clusters.as_ref().is_some_and(|left| !left.is_empty());
    if !job::is_failed(failed.result.as_deref()) || policy.disabled || !wanted || !again || !left {
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
    let left = failed.retry_clusters.iter().flatten();
    let left = left.filter(|name| ledger::still_concerns(status, policy, failed, name));
    let event = |name: &String| {
        let entry = status.clusters_with_event.get(name);
        entry.and_then(|entry| time(&entry.event_time)).unwrap_or(seen.now)
    };
    left.map(|name| (name.clone(), event(name))).collect()
}

/// The clusters for which a failed job should have been made again by now.
pub(super) fn overdue(
    status: &PolicyAutomationStatus,
    seen: &Observed,
    policy: &Policy,
) -> BTreeSet<String> {
    let failed = status.recent_jobs.iter();
    let failed = failed.filter(|failed| due(seen, policy, failed).is_some_and(|at| at <= seen.now));
    failed.flat_map(|failed| concerned(status, seen, policy, failed).into_keys()).collect()
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
