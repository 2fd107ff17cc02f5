//! What users are told of an automation, and when to look again.

use alloc::borrow::ToOwned as _;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use cleat_api::policyautomation::{PolicyAutomationStatus, RecentJob, condition as kind};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::job::Sighting;
use super::policy::{Policy, Sight};
use super::{Context, EVERY_EVENT, Observed, event, guard, job, ledger, retry, status, tell};
use crate::condition::{self, Said, Status};
use crate::write::{Action, Outcome, Plan, Write};

/// What went wrong, and when to try again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setback {
    pub attempts: u32,
    pub reason: &'static str,
    pub message: String,
    pub retry_at: Timestamp,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The write of the conditions, if they are to say something else.
    pub status: Option<Action>,
    /// Look again after this long, even if nothing changes.
    pub wake: Option<SignedDuration>,
}

mod reason {
    pub(super) const CREATED: &str = "Created";
    pub(super) const REFUSED: &str = "Refused";
    pub(super) const UNREACHABLE: &str = "Unreachable";
    pub(super) const NAME_TAKEN: &str = "NameTaken";
    pub(super) const UNREADABLE: &str = "Unreadable";
    pub(super) const OLD_DEFINITION: &str = "OldDefinition";
    pub(super) const POLICY_NOT_FOUND: &str = "PolicyNotFound";
    pub(super) const SUCCESSFUL: &str = "Successful";
    pub(super) const FAILED: &str = "Failed";
    pub(super) const JOBS_PER_MINUTE: &str = "JobsPerMinute";
    pub(super) const NOTHING_WAITS: &str = "NothingWaits";
}

/// The shortest and the longest time between tries of what fails.
const RETRY: SignedDuration = SignedDuration::from_secs(1);
const RETRY_MOST: SignedDuration = SignedDuration::from_secs(60);

/// What to remember of a step that was tried, or of a look that found nothing to do. `done`: what
/// came of `plan`, which was made from `seen`.
pub fn judge(seen: &Observed, plan: &Plan, done: &[Vec<Outcome>]) -> Option<Setback> {
    let mut trouble: Option<(&'static str, String)> = None;
    let mut created = false;
    for (action, outcome) in plan.iter().flatten().zip(done.iter().flatten()) {
        let creates = matches!(action.write, Write::Create(_));
        let what = match (creates, outcome) {
            (true, Outcome::Done(_) | Outcome::AlreadyExists) => {
                created = true;
                continue;
            }
            (false, Outcome::Done(after)) if forgets(action, after) => Some((
                reason::OLD_DEFINITION,
                "the hub's definition of PolicyAutomation is not Cleat's, so nothing can be \
                 written down; `cleat hub --define` brings it up to date"
                    .to_owned(),
            )),
            // Whoever was faster: the next look shows what is there now.
            (
                _,
                Outcome::Done(_) | Outcome::Conflict(_) | Outcome::NotFound | Outcome::NotTried,
            )
            | (false, Outcome::AlreadyExists) => continue,
            (true, Outcome::NoSuchKind) => {
                let message = "the hub does not serve AnsibleJobs; `cleat init` or the automation \
                               platform's operator gives it the definition";
                Some((reason::REFUSED, message.to_owned()))
            }
            (false, Outcome::NoSuchKind) => None,
            (_, Outcome::Refused(refusal)) => Some((reason::REFUSED, short(&refusal.message))),
            (_, Outcome::Lost(message)) => Some((reason::UNREACHABLE, short(message))),
        };
        trouble = trouble.or(what);
    }
    let Some((reason, message)) = trouble else {
        // A write that went well ends no trouble with jobs: only a job does, or that none is due.
        let status = status(&seen.automation);
        let waits = !status.pending_jobs.is_empty() || !status.waiting_clusters.is_empty();
        let over = |before: &Setback| {
            created || (plan.is_empty() && !waits && before.reason != reason::OLD_DEFINITION)
        };
        return seen.setback.clone().filter(|before| !over(before));
    };
    let attempts = seen.setback.as_ref().map_or(0, |before| before.attempts).saturating_add(1);
    let doubled = 1_i32.checked_shl(attempts.saturating_sub(1).min(6)).unwrap_or(64);
    let pause = RETRY.saturating_mul(doubled).min(RETRY_MOST);
    let retry_at = seen.now.checked_add(pause).unwrap_or(seen.now);
    Some(Setback { attempts, reason, message, retry_at })
}

/// Whether a server took a status and kept nothing of the jobs that were written down in it.
fn forgets(action: &Action, after: &Value) -> bool {
    let jobs = |object: &Value| {
        let jobs = object.pointer("/status/pendingJobs").and_then(Value::as_array);
        jobs.is_some_and(|jobs| !jobs.is_empty())
    };
    matches!(&action.write, Write::MergeStatus(patch) if jobs(patch) && !jobs(after))
}

fn short(message: &str) -> String {
    message.chars().take(200).collect()
}

/// After the last step: what to say, and when to look again.
pub fn report(seen: &Observed) -> Verdict {
    let before = status(&seen.automation);
    let mut after = before.clone();
    let generation = seen.automation.metadata.generation;
    for said in [made(seen, &before), succeed(seen, &before), held_back(seen, &before)] {
        let Some(said) = said else { continue };
        // What is well need not be said of an automation that had no trouble and no job.
        condition::say(&mut after.conditions, said, generation, seen.now);
    }
    let status = (after != before).then(|| tell(&seen.automation, &before, &after));
    let status = status.filter(|_| seen.automation.metadata.deletion_timestamp.is_none());
    Verdict { status, wake: wake(seen, &before) }
}

fn said(kind: &'static str, well: bool, reason: &'static str, message: String) -> Option<Said> {
    let status = if well { Status::True } else { Status::False };
    Some(Said { kind, status, reason, message })
}

fn made(seen: &Observed, status: &PolicyAutomationStatus) -> Option<Said> {
    let automation = &seen.automation;
    let policy = &automation.spec.policy_ref;
    if seen.policy == Sight::Absent {
        let message = format!(
            "there is no Policy {policy} in namespace {}: create it, or change policyRef",
            automation.metadata.namespace.as_deref().unwrap_or_default()
        );
        return said(kind::JOBS_CREATED, false, reason::POLICY_NOT_FOUND, message);
    }
    if let Some(setback) = &seen.setback {
        let message = setback.message.clone();
        return said(kind::JOBS_CREATED, false, setback.reason, message);
    }
    let foreign = status.pending_jobs.iter();
    let foreign = foreign.filter(|job| *seen.sighting(&job.name) == Sighting::Foreign);
    if let Some(job) = foreign.map(|job| &job.name).min() {
        let message = format!(
            "an AnsibleJob {}/{job} is in the way that is not this automation's: delete it, or give \
             it this automation as its owner; until then no job is made",
            automation.metadata.namespace.as_deref().unwrap_or_default()
        );
        return said(kind::JOBS_CREATED, false, reason::NAME_TAKEN, message);
    }
    if let (Context::Unreadable(message), false) = (&seen.context, status.pending_jobs.is_empty()) {
        return said(kind::JOBS_CREATED, false, reason::UNREADABLE, short(message));
    }
    let spoken = condition::find(&status.conditions, kind::JOBS_CREATED).is_some();
    let any = !status.recent_jobs.is_empty() || spoken;
    any.then(|| said(kind::JOBS_CREATED, true, reason::CREATED, String::new())).flatten()
}

fn succeed(seen: &Observed, status: &PolicyAutomationStatus) -> Option<Said> {
    let ended = |job: &&RecentJob| {
        let result = job.result.as_deref();
        job::is_failed(result) || result == Some("successful")
    };
    // What failed for clusters that still wait for help is not covered by what went well elsewhere.
    let open = status.recent_jobs.iter().find(|job| is_open(seen, status, job));
    let over = |job: &RecentJob| job.finished_time.clone().unwrap_or_default();
    let mut last = status.recent_jobs.iter().filter(ended);
    // Of those that ended in the same second, the one that was made last.
    let last = last
        .next()
        .map(|first| last.fold(first, |last, job| if over(job) > over(last) { job } else { last }));
    let last = open.or(last)?;
    if !job::is_failed(last.result.as_deref()) {
        return said(kind::JOBS_SUCCEED, true, reason::SUCCESSFUL, String::new());
    }
    let namespace = seen.automation.metadata.namespace.as_deref().unwrap_or_default();
    let mut message = format!("AnsibleJob {namespace}/{} failed", last.name);
    if let Some(why) = &last.message {
        message.push_str(&format!(": {}", short(why)));
    }
    match (&last.retried_as, &last.url) {
        (Some(again), _) => message.push_str(&format!("; it was made again as {again}")),
        (None, Some(url)) => message.push_str(&format!("; see {url}")),
        (None, None) => message
            .push_str(&format!("; see kubectl -n {namespace} describe ansiblejob {}", last.name)),
    }
    said(kind::JOBS_SUCCEED, false, reason::FAILED, message)
}

/// Whether a job failed, nothing took its place, and a cluster still is as it was.
fn is_open(seen: &Observed, status: &PolicyAutomationStatus, job: &RecentJob) -> bool {
    let Sight::Present(policy) = &seen.policy else { return false };
    let concerns = |name: &String| ledger::still_concerns(status, policy, job, name);
    job::is_failed(job.result.as_deref())
        && job.retried_as.is_none()
        && job.mode == EVERY_EVENT
        && job.clusters.iter().any(concerns)
}

fn held_back(seen: &Observed, status: &PolicyAutomationStatus) -> Option<Said> {
    let most = guard::per_minute(&seen.automation.spec);
    let spoken = condition::find(&status.conditions, kind::HELD_BACK).is_some();
    let held = held(seen, status);
    if most.is_none() && !spoken {
        return None;
    }
    if held.is_empty() || most.is_none() {
        return said(kind::HELD_BACK, false, reason::NOTHING_WAITS, String::new());
    }
    let names: Vec<&str> = held.iter().take(3).map(|name| &**name).collect();
    let more = held.len() - names.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let message = format!(
        "{} clusters wait for jobs, as maxJobsPerMinute is {}: {}{more}",
        held.len(),
        most.unwrap_or_default(),
        names.join(", ")
    );
    said(kind::HELD_BACK, true, reason::JOBS_PER_MINUTE, message)
}

/// The clusters that would have a job, were it not for the limit.
fn held(seen: &Observed, status: &PolicyAutomationStatus) -> BTreeSet<String> {
    let slots = guard::slots(&seen.automation.spec, &status.recent_jobs, seen.now);
    if slots != Some(0) {
        return BTreeSet::new();
    }
    let absent = |name: &str| matches!(seen.jobs.get(name), Some(Sighting::Absent));
    let pending = status.pending_jobs.iter().filter(|job| absent(&job.name));
    let pending = pending.flat_map(|job| job.clusters.keys().cloned());
    let again = match &seen.policy {
        Sight::Present(policy) => retry::overdue(status, seen, policy),
        Sight::Unknown | Sight::Absent => BTreeSet::new(),
    };
    status.waiting_clusters.keys().cloned().chain(pending).chain(again).collect()
}

fn wake(seen: &Observed, status: &PolicyAutomationStatus) -> Option<SignedDuration> {
    let now = seen.now;
    let spec = &seen.automation.spec;
    let entries = status.clusters_with_event.values();
    let ends = entries.filter_map(|entry| event::wake(entry, spec, now)).min();
    let policy = match &seen.policy {
        Sight::Present(policy) => Some(policy),
        Sight::Unknown | Sight::Absent => None,
    };
    let again = policy.and_then(|policy: &Policy| retry::wake(status, seen, policy));
    let waits = !held(seen, status).is_empty() || !status.pending_jobs.is_empty();
    let opens = guard::opens(spec, &status.recent_jobs, now).filter(|_| waits);
    let setback = seen.setback.as_ref().map(|setback| setback.retry_at);
    let gone = ledger::wake(status, seen);
    let at = [ends, again, opens, setback, gone].into_iter().flatten().min();
    let unread = seen.policy == Sight::Unknown
        || matches!(seen.context, Context::Unreadable(_))
        || status
            .pending_jobs
            .iter()
            .any(|job| matches!(seen.sighting(&job.name), Sighting::Unknown | Sighting::Foreign));
    let unread = unread.then_some(RETRY_MOST / 6);
    let at = at.map(|at| at.duration_since(now).max(SignedDuration::from_millis(1)));
    [at, unread].into_iter().flatten().min()
}
