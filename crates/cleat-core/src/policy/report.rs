//! What users are told about a policy, and when to look again.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use cleat_api::configurationpolicy::{ConfigurationPolicyStatus, reason};
use jiff::{SignedDuration, Timestamp};

use super::compare::diff::RecordDiff;
use super::evaluate::{self, Again, Evaluation};
use super::finding::{Finding, State, never_again};
use super::interval::{self, Due, Interval};
use super::observed::{Departure, Observed, Policy, Subject};
use super::plan::{due, fates_of_all};
use super::prune::{self, Fate, Fates};
use super::reader::Reader;
use super::spare;
use super::status::{detail, overall, publish, state_of, whole_seconds_text};
use crate::write::Plan;

/// How long until something that could not be read is read again, where no watch will tell.
const UNKNOWN_PAUSE: SignedDuration = SignedDuration::from_secs(5);
/// How soon to look whether the hub has heard what stays.
const HEARD_PAUSE: SignedDuration = SignedDuration::from_secs(1);
/// A kind may come to be served without a definition that is watched.
const NO_KIND_PAUSE: SignedDuration = SignedDuration::from_secs(10);
/// A server that refuses an update may change its mind, without telling.
const REFUSED_PAUSE: SignedDuration = SignedDuration::from_secs(60);

/// What to tell and when to look again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// Telling the owner, then the status, then telling everyone; empty if nothing is new.
    pub publish: Plan,
    /// `None`: when something changes.
    pub wake: Option<Timestamp>,
    /// Differences that the policy wants in the log.
    pub log: Vec<String>,
}

/// What to say about what was seen, once there is nothing more to do about it now.
///
/// An observation that lacks something says nothing.
pub fn report(seen: &Observed) -> Verdict {
    let Subject::Policy(policy) = &seen.policy else { return Verdict::default() };
    if seen.controller.departure == Departure::Leaving {
        return Verdict::default();
    }
    if policy.deleting {
        return leaving(seen, policy);
    }
    match due(seen, policy) {
        Due::At(time) => {
            return Verdict { wake: earliest([Some(time), retry(seen)]), ..Verdict::default() };
        }
        Due::Never => return Verdict { wake: retry(seen), ..Verdict::default() },
        Due::Now => {}
    }
    let mut reader = Reader::new(&seen.cluster);
    let Some(evaluation) = evaluate::evaluate(seen, policy, &mut reader) else {
        return Verdict::default();
    };
    let status = status(seen, policy, &evaluation, Progress::Finished);
    let wake = wake(seen, policy, &evaluation, &status);
    let log = evaluation.judged.iter().filter_map(|one| one.diff.as_ref());
    let log = log.filter(|diff| diff.record == RecordDiff::Log);
    let log = log.map(|diff| format!("Logging the diff:\n{}", diff.full)).collect();
    Verdict { publish: publish(seen, policy, status), wake, log }
}

/// How far an evaluation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// What is wrong will be put right next.
    Begun,
    Finished,
}

/// The status that an evaluation amounts to.
pub(crate) fn status(
    seen: &Observed,
    policy: &Policy,
    evaluation: &Evaluation,
    progress: Progress,
) -> ConfigurationPolicyStatus {
    let old = &policy.status;
    let mut findings = evaluation.findings.clone();
    findings.extend(stuck(seen, &evaluation.leaving));
    let state = findings.iter().map(|finding| finding.state).max().unwrap_or(State::Compliant);
    let interval = interval::interval(&policy.spec.evaluation_interval, state);
    if progress == Progress::Finished && interval == Interval::Never {
        let worst = findings.iter_mut().filter(|finding| finding.state == state);
        worst.for_each(|finding| finding.message.push_str(&never_again(state)));
    }
    let details = findings.iter().enumerate();
    let details: Vec<_> = details
        .map(|(index, finding)| detail(old.compliancy_details.get(index), finding, seen.now))
        .collect();
    let mut next = ConfigurationPolicyStatus {
        compliant: overall(policy, &details),
        compliancy_details: details,
        last_evaluated: old.last_evaluated.clone(),
        last_evaluated_generation: old.last_evaluated_generation,
        related_objects: evaluation.related.clone(),
        history: old.history.clone(),
    };
    // An evaluation that is not finished is due again, whatever happens to us in between.
    if progress == Progress::Finished {
        next.last_evaluated_generation = Some(policy.generation);
        // Where every change is watched, the time alone is no news.
        let timed = matches!(interval, Interval::Every(_) | Interval::Unreadable);
        if next != *old || timed || old.last_evaluated.is_none() {
            next.last_evaluated = Some(whole_seconds_text(seen.now));
        }
    }
    next
}

/// What is said of objects that left and do not go.
fn stuck(seen: &Observed, leaving: &Fates) -> Option<Finding> {
    let stuck = prune::stuck(leaving, &seen.memory, seen.now);
    if stuck.is_empty() {
        return None;
    }
    let message = prune::message(&prune::remaining(&stuck, &seen.memory));
    Some(Finding::new(State::NonCompliant, reason::CLEANUP_ERROR, message))
}

/// What a deleted policy says: what is left, and what each waits for.
fn leaving(seen: &Observed, policy: &Policy) -> Verdict {
    if !policy.has_finalizer() {
        return Verdict::default();
    }
    let unsure = match &seen.controller.departure {
        Departure::Unknown(why) => {
            Some(format!("Failed to delete objects: whether they are to go is not certain: {why}"))
        }
        Departure::Staying | Departure::Emptying | Departure::Leaving => None,
    };
    let mut reader = Reader::new(&seen.cluster);
    let fates = fates_of_all(seen, policy, &mut reader);
    if fates.values().any(|fate| *fate == Fate::Unread) && unsure.is_none() {
        return Verdict::default();
    }
    let remaining = prune::remaining(&fates, &seen.memory);
    if remaining.is_empty() && unsure.is_none() {
        return Verdict::default();
    }
    let message = unsure.clone().unwrap_or_else(|| prune::message(&remaining));
    let finding = Finding::new(State::Terminating, reason::CLEANUP_ERROR, message);
    let old = &policy.status;
    let details = vec![detail(old.compliancy_details.first(), &finding, seen.now)];
    let status = ConfigurationPolicyStatus {
        compliant: overall(policy, &details),
        compliancy_details: details,
        related_objects: spare::listed(policy, &fates),
        ..old.clone()
    };
    let unclear = |fate: &Fate| matches!(fate, Fate::Unknown(_) | Fate::Held { .. });
    let blind = unsure.is_some() || fates.values().any(unclear) || goes_unwatched(seen, &fates);
    let look = blind.then(|| later(seen, UNKNOWN_PAUSE));
    let kept = fates.values().any(|fate| matches!(fate, Fate::Kept { .. }));
    let heard = kept.then(|| later(seen, HEARD_PAUSE));
    Verdict {
        publish: publish(seen, policy, status),
        wake: earliest([look, heard, retry(seen)]),
        log: Vec::new(),
    }
}

/// The first moment at which looking again may help, though nothing was seen to change.
fn wake(
    seen: &Observed,
    policy: &Policy,
    evaluation: &Evaluation,
    status: &ConfigurationPolicyStatus,
) -> Option<Timestamp> {
    let state = state_of(status);
    let spec = &policy.spec.evaluation_interval;
    let reasons: BTreeSet<&str> =
        evaluation.findings.iter().flat_map(|finding| finding.reason.split("; ")).collect();
    let watching = interval::interval(spec, state) == Interval::Watch;
    let no_kind = watching && reasons.contains(reason::KIND_ERROR);
    let blind =
        [reason::API_ERROR, reason::OBJECT_SELECTOR_ERROR, reason::NAMESPACE_SELECTOR_ERROR]
            .iter()
            .any(|reason| reasons.contains(reason))
            || evaluation.again == Again::Soon
            || evaluation.leaving.values().any(|fate| matches!(fate, Fate::Unknown(_)))
            || goes_unwatched(seen, &evaluation.leaving);
    let refused = watching && evaluation.again == Again::Later;
    let patience = evaluation.leaving.values().filter_map(prune::patience).min();
    // An entry that has news but no last word yet is looked at again at once.
    let unsaid = evaluation.related.iter().any(|entry| {
        [reason::CREATED, reason::CREATED_STATUS_UNCHECKED, reason::UPDATED, reason::DELETED]
            .contains(&entry.reason.as_str())
    });
    earliest([
        interval::next(spec, state, seen.now),
        no_kind.then(|| later(seen, NO_KIND_PAUSE)),
        blind.then(|| later(seen, UNKNOWN_PAUSE)),
        refused.then(|| later(seen, REFUSED_PAUSE)),
        patience.filter(|time| *time > seen.now),
        (watching && unsaid).then_some(seen.now),
        retry(seen),
    ])
}

/// Whether something is on its way out, and nobody will tell when it is gone.
fn goes_unwatched(seen: &Observed, fates: &Fates) -> bool {
    fates.values().any(|fate| match fate {
        Fate::Terminating { target, .. } => seen.cluster.unwatched.contains_key(&target.id),
        _ => false,
    })
}

fn retry(seen: &Observed) -> Option<Timestamp> {
    seen.memory.troubles.values().map(|trouble| trouble.retry_at).min()
}

fn later(seen: &Observed, pause: SignedDuration) -> Timestamp {
    seen.now.checked_add(pause).unwrap_or(seen.now)
}

fn earliest<const N: usize>(times: [Option<Timestamp>; N]) -> Option<Timestamp> {
    times.into_iter().flatten().min()
}
