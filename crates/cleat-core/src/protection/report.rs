//! What a CriticalService's status says. The same facts give the same words, and several replicas
//! that know the same write the same.

use alloc::borrow::ToOwned as _;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use cleat_api::criticalservice::{
    CriterionState, CriterionStatus, CriticalService, CriticalServiceStatus, Denial, Phase,
    ProviderStatus, VERSION, condition, reason,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::decide::{Knowledge, Sight, Tally};
use super::latch;
use super::service::{Criterion, Service, namespace_id};
use crate::condition::{Said, Status, find, say};
use crate::id::Target;
use crate::write::{Action, Side, Write};

/// How many denials are remembered.
const DENIALS: usize = 10;
/// How often the same denial is told of anew.
const BETWEEN_DENIALS: SignedDuration = SignedDuration::from_secs(60);
/// How many objects are named.
const SAMPLES: usize = 5;

/// All that a report may look at.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// What caches know. An object that no cache sees is taken for absent here.
    pub known: Knowledge,
    pub probe: Probe,
    /// What was refused here lately, in no order.
    pub denials: Vec<Denial>,
    /// The way around, if it waits for itself.
    pub cycle: Vec<String>,
    /// Criteria about kinds that do not exist, perhaps because they are not written right.
    pub undefined: BTreeSet<Criterion>,
}

/// What a dry-run delete of the provider showed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Probe {
    /// None was made yet, or there is nothing to delete.
    #[default]
    NotMade,
    Refused,
    /// It would have passed, and we were asked.
    Seen,
    /// It would have passed, and nobody asked us.
    NotAsked,
    /// Whether it would have passed could not be told.
    Unknown(String),
    /// Its kind, or its place, is out of reach of any webhook.
    Unprotectable(String),
}

/// How one criterion stands, as far as caches know.
pub fn judge(criterion: &Criterion, known: &Knowledge) -> CriterionStatus {
    let mut status = CriterionStatus {
        kind: criterion.kind(),
        subject: criterion.to_string(),
        state: CriterionState::Satisfied,
        ..CriterionStatus::default()
    };
    let mut unknown = |why: &str| {
        status.state = CriterionState::Unknown;
        status.message = why.to_owned();
    };
    match criterion {
        Criterion::Unreadable(why) => unknown(why),
        Criterion::Object(id) => match known.objects.get(id) {
            Some(Sight::Present { .. }) => {
                status.state = CriterionState::Unsatisfied;
                status.count = 1;
            }
            Some(Sight::Unknown(why)) => unknown(why),
            Some(Sight::Absent) => {}
            Some(Sight::NotSeen | Sight::NotReady) | None => unknown("not read yet"),
        },
        Criterion::Finalizer { .. } | Criterion::Any { .. } => match known.tallies.get(criterion) {
            Some(Tally::Some { count, exact: _, samples }) => {
                status.state = CriterionState::Unsatisfied;
                status.count = i64::try_from(*count).unwrap_or(i64::MAX);
                status.samples = samples.iter().take(SAMPLES).cloned().collect();
            }
            Some(Tally::Unknown(why)) => unknown(why),
            Some(Tally::None) => {}
            Some(Tally::NotSeen | Tally::NotReady) | None => unknown("not read yet"),
        },
    }
    status
}

/// The status to write, if it is not what the server has.
pub fn report(object: &CriticalService, seen: &Seen, now: Timestamp) -> Option<Action> {
    let service = Service::read(object);
    let old = object.status.clone().unwrap_or_default();
    let mut new = old.clone();
    new.observed_generation = object.metadata.generation;
    new.criteria = service.criteria.iter().map(|one| judge(one, &seen.known)).collect();
    for (criterion, status) in service.criteria.iter().zip(&mut new.criteria) {
        if status.state == CriterionState::Satisfied && seen.undefined.contains(criterion) {
            status.message = "there is no such kind".to_owned();
        }
    }
    provider(&service, seen, &mut new);
    latched(&service, now, &mut new);
    new.denials = denials(&old.denials, &seen.denials);
    conditions(&service, seen, &mut new, object.metadata.generation, now);
    if new == old {
        return None;
    }
    let patch = json!({
        "metadata": {
            "uid": object.metadata.uid,
            "resourceVersion": object.metadata.resource_version,
        },
        "status": whole(&new),
    });
    let target = Target { version: VERSION.to_owned(), id: service.id() };
    Some(Action { side: Side::Cluster, target, write: Write::MergeStatus(patch) })
}

/// A merge patch that leaves nothing of the status before.
fn whole(status: &CriticalServiceStatus) -> Value {
    let mut patch = serde_json::to_value(status).unwrap_or_default();
    if let Some(fields) = patch.as_object_mut() {
        for field in ["observedGeneration", "provider", "latch"] {
            fields.entry(field).or_insert(Value::Null);
        }
        for field in ["criteria", "denials", "conditions"] {
            fields.entry(field).or_insert(json!([]));
        }
        if let Some(provider) = fields.get_mut("provider").and_then(Value::as_object_mut) {
            for field in ["uid", "replaced"] {
                provider.entry(field).or_insert(Value::Null);
            }
        }
        if let Some(latch) = fields.get_mut("latch").and_then(Value::as_object_mut) {
            latch.entry("late").or_insert(Value::Null);
            latch.entry("lateCount").or_insert(Value::Null);
        }
    }
    patch
}

fn provider(service: &Service, seen: &Seen, status: &mut CriticalServiceStatus) {
    let before = status.provider.clone().unwrap_or_default();
    let ProviderStatus { phase, uid, replaced } = before;
    let now = match seen.known.objects.get(&service.provider) {
        Some(Sight::Present { uid: live, .. }) if !service.means(live) => {
            ProviderStatus { phase: Phase::Replaced, uid, replaced }
        }
        Some(Sight::Present { uid: live, terminating }) => ProviderStatus {
            phase: match *terminating || is_around_going(service, &seen.known) {
                true => Phase::Terminating,
                false => Phase::Present,
            },
            replaced: if uid.is_empty() || uid == *live { replaced } else { uid },
            uid: live.clone(),
        },
        Some(Sight::Absent) if uid.is_empty() => ProviderStatus::default(),
        Some(Sight::Absent) => ProviderStatus { phase: Phase::Gone, uid, replaced },
        // What was last seen still stands.
        Some(Sight::NotSeen | Sight::NotReady | Sight::Unknown(_)) | None => {
            ProviderStatus { phase, uid, replaced }
        }
    };
    status.provider = Some(now);
}

/// Whether a provider that was there is gone, or about to be.
pub fn is_going(service: &Service, known: &Knowledge) -> bool {
    match known.objects.get(&service.provider) {
        Some(Sight::Absent) => !service.recorded.is_empty(),
        Some(Sight::Present { uid, terminating }) => {
            service.means(uid) && (*terminating || is_around_going(service, known))
        }
        Some(Sight::NotSeen | Sight::NotReady | Sight::Unknown(_)) | None => false,
    }
}

/// Whether the provider goes with its namespace or with the definition of its kind: what does the
/// provider's work may be gone long before the provider is.
fn is_around_going(service: &Service, known: &Knowledge) -> bool {
    let around = [service.provider_namespace(), service.provider_definition()];
    around
        .iter()
        .flatten()
        .any(|id| matches!(known.objects.get(id), Some(Sight::Present { terminating: true, .. })))
}

fn latched(service: &Service, now: Timestamp, status: &mut CriticalServiceStatus) {
    let Some(ProviderStatus { phase, uid, .. }) = &status.provider else { return };
    match phase {
        Phase::Terminating | Phase::Gone => {
            if status.latch.as_ref().is_none_or(|latch| latch.uid != *uid) {
                status.latch = Some(latch::close(uid, now));
            }
        }
        // It is back, or another one is.
        Phase::Present | Phase::Waiting | Phase::Replaced => status.latch = None,
    }
    let Some(latch) = &mut status.latch else { return };
    let unmet = status.criteria.iter().filter(|one| one.state == CriterionState::Unsatisfied);
    latch.late_count = latch.late_count.max(unmet.map(|one| one.count.max(1)).sum());
    for (criterion, judged) in service.criteria.iter().zip(&status.criteria) {
        if judged.state != CriterionState::Unsatisfied {
            continue;
        }
        if judged.samples.is_empty() {
            latch.late.push(criterion.to_string());
        }
        latch.late.extend(judged.samples.iter().map(|sample| format!("{criterion}: {sample}")));
    }
    latch.late.sort();
    latch.late.dedup();
    latch.late.truncate(DENIALS);
}

/// The newest of both, one for each who asks the same again and again.
///
/// Many who ask again and again must not have the status written each time, be they more than are
/// told of: where there is no room for another, none is added until some time after the newest.
fn denials(written: &[Denial], fresh: &[Denial]) -> Vec<Denial> {
    let mut all = written.to_vec();
    let newest = written.iter().map(|one| one.time.0).max().filter(|_| written.len() >= DENIALS);
    let has_room = |denial: &Denial| {
        newest.is_none_or(|newest| denial.time.0.duration_since(newest) >= BETWEEN_DENIALS)
    };
    let mut fresh: Vec<&Denial> = fresh.iter().filter(|denial| has_room(denial)).collect();
    fresh.sort_by(|one, other| key(one).cmp(&key(other)));
    for denial in fresh {
        let same = |one: &Denial| {
            (&one.user, &one.operation, &one.object)
                == (&denial.user, &denial.operation, &denial.object)
        };
        let known = all
            .iter()
            .any(|one| same(one) && denial.time.0.duration_since(one.time.0) < BETWEEN_DENIALS);
        if !known {
            all.retain(|one| !same(one));
            all.push(denial.clone());
        }
    }
    all.sort_by(|one, other| key(other).cmp(&key(one)));
    all.truncate(DENIALS);
    all
}

fn key(denial: &Denial) -> (Timestamp, &str, &str, &str) {
    (denial.time.0, &denial.object, &denial.user, &denial.operation)
}

fn conditions(
    service: &Service,
    seen: &Seen,
    status: &mut CriticalServiceStatus,
    generation: Option<i64>,
    now: Timestamp,
) {
    let mut said = alloc::vec![effective(service, seen, status), needed(status)];
    let optional = [
        (condition::SELF_CONTAINED, self_contained(service, status)),
        (condition::CYCLIC, cyclic(seen)),
        (condition::STRANDED, stranded(status)),
    ];
    for (kind, found) in optional {
        match found {
            Some((reason, message)) => {
                said.push(Said { kind, status: Status::True, reason, message });
            }
            // What was never so needs no word.
            None if find(&status.conditions, kind).is_none() => {}
            None => status.conditions.retain(|condition| condition.type_ != kind),
        }
    }
    for said in said {
        say(&mut status.conditions, said, generation, now);
    }
    status.conditions.sort_by(|one, other| one.type_.cmp(&other.type_));
}

fn effective(service: &Service, seen: &Seen, status: &CriticalServiceStatus) -> Said {
    let says = |status, reason, message: String| Said {
        kind: condition::EFFECTIVE,
        status,
        reason,
        message,
    };
    let phase = status.provider.as_ref().map(|provider| provider.phase).unwrap_or_default();
    let provider = &service.provider;
    match (&seen.probe, phase) {
        (Probe::Unprotectable(why), _) => says(
            Status::False,
            reason::UNPROTECTABLE,
            format!("{provider} cannot be protected: {why}"),
        ),
        (_, Phase::Waiting) => {
            says(Status::Unknown, reason::WAITING, format!("{provider} was not seen yet"))
        }
        (_, Phase::Gone) => says(Status::Unknown, reason::WAITING, format!("{provider} is gone")),
        (_, Phase::Terminating) => {
            says(Status::Unknown, reason::WAITING, format!("{provider} is being deleted"))
        }
        (_, Phase::Replaced) => says(
            Status::Unknown,
            reason::WAITING,
            format!("{provider} is another incarnation than the one that is pinned"),
        ),
        (Probe::Refused, Phase::Present) => says(
            Status::True,
            reason::REFUSED_IN_DRY_RUN,
            format!("a dry-run delete of {provider} was refused"),
        ),
        (Probe::Seen, Phase::Present) => says(
            Status::True,
            reason::SEEN_IN_DRY_RUN,
            format!("a dry-run delete of {provider} was asked about; it may go now"),
        ),
        (Probe::NotAsked, Phase::Present) => says(
            Status::False,
            reason::NOT_ASKED,
            format!(
                "a dry-run delete of {provider} passed without a question; see the \
                 ValidatingWebhookConfiguration"
            ),
        ),
        (Probe::Unknown(why), Phase::Present) => says(
            Status::Unknown,
            reason::CANNOT_TELL,
            format!("a dry-run delete of {provider} could not be made: {why}"),
        ),
        (Probe::NotMade, Phase::Present) => says(
            Status::Unknown,
            reason::WAITING,
            format!("no dry-run delete of {provider} was made yet"),
        ),
    }
}

fn needed(status: &CriticalServiceStatus) -> Said {
    let mut unmet = Vec::new();
    for one in &status.criteria {
        match one.state {
            CriterionState::Satisfied => {}
            CriterionState::Unsatisfied => unmet.push(format!("{} {}", one.count, one.subject)),
            CriterionState::Unknown => {
                unmet.push(format!("{} cannot be told: {}", one.subject, one.message));
            }
        }
    }
    let kind = condition::NEEDED;
    if unmet.is_empty() {
        let message = "all criteria are satisfied".to_string();
        return Said { kind, status: Status::False, reason: reason::CRITERIA_SATISFIED, message };
    }
    let message = unmet.join("; ");
    Said { kind, status: Status::True, reason: reason::CRITERIA_UNSATISFIED, message }
}

fn self_contained(
    service: &Service,
    status: &CriticalServiceStatus,
) -> Option<(&'static str, String)> {
    let namespace = &service.provider.namespace;
    if namespace.is_empty() {
        return None;
    }
    let inside = format!("{namespace}/");
    let named = service.criteria.iter().any(|criterion| match criterion {
        Criterion::Object(id) => id.namespace == *namespace || *id == namespace_id(namespace),
        _ => false,
    });
    let found = status.criteria.iter().flat_map(|one| &one.samples);
    let found = found.filter(|sample| sample.starts_with(&inside)).count() > 0;
    (named || found).then(|| {
        let message = format!(
            "namespace {namespace} holds the provider and some of what needs it: delete those by \
             themselves before the namespace, or move the provider into a namespace of its own"
        );
        (reason::SAME_NAMESPACE, message)
    })
}

fn cyclic(seen: &Seen) -> Option<(&'static str, String)> {
    if seen.cycle.is_empty() {
        return None;
    }
    let way = seen.cycle.join(" waits for ");
    let first = seen.cycle.first().map(String::as_str).unwrap_or_default();
    let message = format!(
        "{way} waits for {first}: none of their providers can ever go; take a criterion away, or \
         set spec.onDelete to Release and delete one"
    );
    Some((reason::WAITS_FOR_ITSELF, message))
}

fn stranded(status: &CriticalServiceStatus) -> Option<(&'static str, String)> {
    let latch = status.latch.as_ref().filter(|latch| !latch.late.is_empty())?;
    let still = status.criteria.iter().any(|one| one.state == CriterionState::Unsatisfied);
    still.then(|| {
        let late = latch.late.join("; ");
        let named = i64::try_from(latch.late.len()).unwrap_or(i64::MAX);
        let late = match latch.late_count.saturating_sub(named) {
            more @ 1.. => format!("{late}; and {more} more"),
            _ => late,
        };
        let message = format!(
            "these came when the provider was already let go: {late}; bring the provider back, or \
             take their finalizers off by hand"
        );
        (reason::CAME_TOO_LATE, message)
    })
}
