//! Limits against floods: how many clusters a job may have, and how many jobs a minute.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use cleat_api::policyautomation::{PolicyAutomationSpec, RecentJob};
use jiff::{SignedDuration, Timestamp};

use super::ledger::time;

/// A minute, and the second that the times of jobs may have lost.
const WINDOW: SignedDuration = SignedDuration::from_secs(61);

/// How many jobs may be made now; none if nothing limits them.
pub(super) fn slots(
    spec: &PolicyAutomationSpec,
    recent: &[RecentJob],
    now: Timestamp,
) -> Option<usize> {
    let most = per_minute(spec)?;
    Some(most.saturating_sub(ends(recent, now).len()))
}

/// When the next job may be made, if none may now.
pub(super) fn opens(
    spec: &PolicyAutomationSpec,
    recent: &[RecentJob],
    now: Timestamp,
) -> Option<Timestamp> {
    let most = per_minute(spec)?;
    let ends = ends(recent, now);
    // As soon as so many have passed that one is free.
    ends.len().checked_sub(most).and_then(|over| ends.get(over).copied())
}

/// How many jobs may be made in a minute.
pub(super) fn per_minute(spec: &PolicyAutomationSpec) -> Option<usize> {
    let most = spec.max_jobs_per_minute?;
    Some(usize::try_from(most).unwrap_or(1).max(1))
}

/// Whether a job counts for the limit.
pub(super) fn counts(spec: &PolicyAutomationSpec, job: &RecentJob, now: Timestamp) -> bool {
    per_minute(spec).is_some() && end(job).is_some_and(|end| end > now)
}

fn end(job: &RecentJob) -> Option<Timestamp> {
    time(&job.automation_start_time)?.checked_add(WINDOW).ok()
}

/// When each of the jobs that count stops to count, the first one first.
fn ends(recent: &[RecentJob], now: Timestamp) -> Vec<Timestamp> {
    let ends = recent.iter().filter_map(|job| end(job).filter(|end| *end > now));
    let mut ends: Vec<Timestamp> = ends.collect();
    ends.sort();
    ends
}

/// The clusters, in jobs of at most so many: those that wait longest first.
pub(super) fn chunks(
    spec: &PolicyAutomationSpec,
    clusters: BTreeMap<String, Timestamp>,
) -> Vec<BTreeMap<String, Timestamp>> {
    let most = spec.max_clusters_per_job.and_then(|most| usize::try_from(most).ok());
    let most = most.unwrap_or(usize::MAX).max(1);
    let mut all: Vec<(String, Timestamp)> = clusters.into_iter().collect();
    all.sort_by(|(one, at), (other, then)| (at.as_second(), one).cmp(&(then.as_second(), other)));
    all.chunks(most).map(|some| some.iter().cloned().collect()).collect()
}
