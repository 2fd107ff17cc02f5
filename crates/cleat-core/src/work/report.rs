//! What the hub is told about a work, and when to look again.
//!
//! Types, reasons and messages are those that users and tools of OCM know; where more is said, it
//! follows the known text. Nothing here depends on the order of events: the same observation gives
//! the same words, and times change only when what they stand for does.

mod deleting;
mod removal;
mod removed;

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use cleat_api::manifestwork::{
    ManifestCondition, ManifestResourceMeta, ManifestResourceStatus, ManifestWorkStatus,
    StatusFeedback, condition as kinds, reason,
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde_json::{Map, json};

use super::contents::Contents;
use super::converge::{self, Need, Stuck};
use super::observed::{
    Book, Feedback, Hub, Ledger, Observed, Permission, Place, Seen, Wanted, Work,
};
use super::plan::work_target;
use super::rules;
use super::trouble::{Trouble, TroubleKind};
use crate::id::Id;
use crate::protection::denial::PROTECTED_BY;
use crate::write::{Action, Side, Write};
pub use removal::stranded;
pub(crate) use removal::{is_stranded_told, tell_left};

/// How long a refused executor is left before it is asked about again.
const DENIED_PAUSE: SignedDuration = SignedDuration::from_secs(60);
/// How long until a cluster that could not answer is asked again, where no watch will tell.
const UNKNOWN_PAUSE: SignedDuration = SignedDuration::from_secs(5);
/// A kind may come to be served without a definition that is watched.
const NO_KIND_PAUSE: SignedDuration = SignedDuration::from_secs(60);

/// What to tell and when to look again.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The status to write, if it is not what the hub has.
    pub publish: Option<Action>,
    /// `None`: when something changes.
    pub wake: Option<Timestamp>,
}

/// What to say about what was seen, once there is nothing more to do about it now.
pub fn report(seen: &Observed) -> Verdict {
    let publish = match &seen.hub {
        Hub::Work(work) => publish(seen, work),
        Hub::Absent | Hub::Unknown(_) => None,
    };
    Verdict { publish, wake: wake(seen) }
}

fn publish(seen: &Observed, work: &Work) -> Option<Action> {
    // A work that never got our finalizer was never touched.
    if !work.has_finalizer() {
        return None;
    }
    // A new agent has nothing to say before it has looked at everything once.
    if seen.live.values().any(|live| matches!(live, Seen::NotYet)) {
        return None;
    }
    let status = if work.deleting { deleting::status(seen, work)? } else { status(seen, work)? };
    if status == work.status {
        return None;
    }
    // A work may have a thousand manifests, so what stays as it is is not sent again.
    let mut changes = Map::new();
    if status.conditions != work.status.conditions {
        changes.insert("conditions".into(), json!(status.conditions));
    }
    if status.resource_status != work.status.resource_status {
        // Written out even if it is empty: what a patch leaves out stays.
        let manifests = &status.resource_status.manifests;
        changes.insert("resourceStatus".into(), json!({ "manifests": manifests }));
    }
    if status.removal != work.status.removal {
        changes.insert("removal".into(), json!(status.removal));
    }
    if status.retiring != work.status.retiring {
        changes.insert("retiring".into(), json!(status.retiring));
    }
    if status.untold != work.status.untold {
        changes.insert("untold".into(), json!(status.untold));
    }
    let patch = json!({
        "metadata": { "uid": work.uid, "resourceVersion": work.resource_version },
        "status": changes,
    });
    let write = Write::MergeStatus(patch);
    Some(Action { side: Side::Hub, target: work_target(seen, work), write })
}

/// The status of a work that is to be there. `None` while nothing can be said.
fn status(seen: &Observed, work: &Work) -> Option<ManifestWorkStatus> {
    // What was applied, and that it is complete, stands for good.
    let complete = work.is_complete();
    if let Some(why) = ledger_problem(seen).filter(|_| !complete) {
        return Some(unrecorded(seen, work, &why));
    }
    let Ledger::Present(book) = &seen.ledger else { return None };
    let now = seen.now;
    let needs = converge::needs(seen, work, book);
    let manifests: Vec<ManifestCondition> = seen
        .wanted
        .iter()
        .enumerate()
        .map(|(ordinal, wanted)| {
            let need = needs.iter().find(|(_, of, _)| core::ptr::eq(*of, wanted));
            let applied = manifest_applied(seen, wanted, need.map(|(_, _, need)| need));
            manifest(seen, work, ordinal, wanted, applied.filter(|_| !complete))
        })
        .collect();
    let mut conditions =
        Conditions { old: &work.status.conditions, now, generation: work.generation };
    let mut told = Vec::new();
    told.extend(conditions.set(available(&manifests)));
    if !complete {
        told.extend(applied(&manifests, work.generation).and_then(|found| conditions.set(found)));
        for finding in rules::aggregate(&manifests) {
            let found = Found::from(finding);
            told.extend(conditions.set(unless_unapplied(found, &manifests, work.generation)));
        }
        told.extend(removed::held(seen, book).and_then(|found| conditions.set(found)));
    }
    // What others say about the work is theirs; what rules said of an older work is stale.
    let told_types: Vec<String> = told.iter().map(|condition| condition.type_.clone()).collect();
    let kept = work.status.conditions.iter().filter(|condition| {
        !told_types.contains(&condition.type_)
            && (complete || condition.reason != reason::CONDITION_RULES_AGGREGATED)
            && condition.type_ != kinds::DELETING
            && condition.type_ != kinds::REMOVED
    });
    let mut conditions: Vec<Condition> = kept.cloned().chain(told).collect();
    conditions.sort_by(|a, b| a.type_.cmp(&b.type_));
    let resource_status = ManifestResourceStatus { manifests };
    let (retiring, untold) = removal::retiring(seen, book);
    Some(ManifestWorkStatus {
        conditions,
        resource_status,
        removal: work.status.removal.clone(),
        retiring,
        untold,
    })
}

/// Why nothing can be written down, without which nothing is touched.
fn ledger_problem(seen: &Observed) -> Option<String> {
    let id = super::ownership::ledger_target(&seen.agent.hub_hash, &seen.name).id;
    let trouble = seen.troubles.get(&id).filter(|trouble| trouble.kind != TroubleKind::Stale);
    match (&seen.ledger, trouble) {
        (Ledger::Unknown(why), _) => Some(format!("its AppliedManifestWork cannot be seen: {why}")),
        (_, Some(trouble)) => {
            Some(format!("its AppliedManifestWork cannot be written: {}", trouble.message))
        }
        _ => None,
    }
}

/// All that was said before, but for whether the work is applied.
fn unrecorded(seen: &Observed, work: &Work, why: &str) -> ManifestWorkStatus {
    let old = &work.status.conditions;
    let mut conditions = Conditions { old, now: seen.now, generation: work.generation };
    let message = format!("Failed to apply manifest work: {why}");
    let found = Found::new(kinds::APPLIED, "False", reason::APPLIED_MANIFEST_WORK_FAILED, message);
    let others = old.iter().filter(|condition| condition.type_ != kinds::APPLIED);
    let mut conditions: Vec<Condition> = others.cloned().chain(conditions.set(found)).collect();
    conditions.sort_by(|a, b| a.type_.cmp(&b.type_));
    ManifestWorkStatus { conditions, ..work.status.clone() }
}

/// A condition before it is compared with the one that is there.
pub(crate) struct Found {
    pub(crate) type_: String,
    pub(crate) status: &'static str,
    pub(crate) reason: String,
    pub(crate) message: String,
}

impl Found {
    pub(crate) fn new(
        type_: &str,
        status: &'static str,
        reason: &str,
        message: impl Into<String>,
    ) -> Self {
        Self { type_: type_.into(), status, reason: reason.into(), message: message.into() }
    }
}

impl From<super::observed::Finding> for Found {
    fn from(finding: super::observed::Finding) -> Self {
        Self::new(&finding.condition, finding.status, finding.reason, finding.message)
    }
}

/// Sets conditions beside those that are there.
pub(crate) struct Conditions<'a> {
    pub(crate) old: &'a [Condition],
    pub(crate) now: Timestamp,
    pub(crate) generation: i64,
}

impl Conditions<'_> {
    /// The time is that of the last change of status, or of the work itself.
    pub(crate) fn set(&mut self, found: Found) -> Option<Condition> {
        let Found { type_, status, reason, message } = found;
        let before = self.old.iter().find(|condition| condition.type_ == type_);
        let same = before.filter(|before| {
            before.status == status && before.observed_generation == Some(self.generation)
        });
        let time = same
            .map_or_else(|| whole_seconds(self.now), |before| before.last_transition_time.clone());
        Some(Condition {
            type_,
            status: status.into(),
            reason,
            message,
            last_transition_time: time,
            observed_generation: Some(self.generation),
        })
    }
}

/// Kubernetes' times have whole seconds; finer ones would differ from what comes back.
fn whole_seconds(now: Timestamp) -> Time {
    Time(Timestamp::from_second(now.as_second()).unwrap_or(now))
}

fn manifest(
    seen: &Observed,
    work: &Work,
    ordinal: usize,
    wanted: &Wanted,
    applied: Option<Found>,
) -> ManifestCondition {
    let mut resource_meta = meta(ordinal, wanted);
    let before = before(&work.status, &resource_meta);
    resource_meta.uid = uid(seen, wanted, before);
    let none = Vec::new();
    let old = before.map_or(&none, |before| &before.conditions);
    let mut conditions = Conditions { old, now: seen.now, generation: work.generation };
    let mut told = Vec::new();
    match applied {
        Some(found) => told.extend(conditions.set(found)),
        // Not settled yet: what was said last stands, even if it was about an older work.
        None => told.extend(old.iter().find(|c| c.type_ == kinds::APPLIED).cloned()),
    }
    told.extend(conditions.set(manifest_available(seen, wanted)));
    let feedback_before =
        || before.map(|before| before.status_feedback.clone()).unwrap_or_default();
    let status_feedback = match &wanted.judged.feedback {
        Feedback::NoRules => {
            let none = Found::new(
                kinds::STATUS_FEEDBACK_SYNCED,
                "True",
                reason::NO_STATUS_FEEDBACK_SYNCED,
                "",
            );
            told.extend(conditions.set(none));
            StatusFeedback::default()
        }
        Feedback::Unread => {
            told.extend(old.iter().find(|c| c.type_ == kinds::STATUS_FEEDBACK_SYNCED).cloned());
            feedback_before()
        }
        Feedback::Values { values, problem } => {
            let found = match problem {
                None => Found::new(
                    kinds::STATUS_FEEDBACK_SYNCED,
                    "True",
                    reason::STATUS_FEEDBACK_SYNCED,
                    "",
                ),
                Some(problem) => Found::new(
                    kinds::STATUS_FEEDBACK_SYNCED,
                    "False",
                    reason::STATUS_FEEDBACK_SYNC_FAILED,
                    format!("Sync status feedback failed with error {problem}"),
                ),
            };
            told.extend(conditions.set(found));
            StatusFeedback { values: values.clone() }
        }
    };
    let judged = wanted.judged.conditions.iter().cloned().map(Found::from);
    told.extend(judged.filter_map(|found| conditions.set(found)));
    if matches!(wanted.judged.feedback, Feedback::Unread) {
        let rules = old.iter().filter(|c| {
            c.reason.starts_with(reason::CONDITION_RULE_PREFIX)
                && c.observed_generation == Some(work.generation)
                && !told.iter().any(|t: &Condition| t.type_ == c.type_)
        });
        let rules: Vec<Condition> = rules.cloned().collect();
        told.extend(rules);
    }
    told.sort_by(|a, b| a.type_.cmp(&b.type_));
    ManifestCondition { resource_meta, status_feedback, conditions: told }
}

/// What was told about this manifest last: at the same place, or elsewhere in the list.
fn before<'a>(
    status: &'a ManifestWorkStatus,
    meta: &ManifestResourceMeta,
) -> Option<&'a ManifestCondition> {
    let manifests = &status.resource_status.manifests;
    // Whichever incarnation it was told about.
    let same = |candidate: &ManifestCondition, ordinal| {
        let told = candidate.resource_meta.clone();
        ManifestResourceMeta { ordinal, uid: meta.uid.clone(), ..told } == *meta
    };
    let anywhere = |candidate: &&ManifestCondition| same(candidate, meta.ordinal);
    let here = |candidate: &&ManifestCondition| same(candidate, candidate.resource_meta.ordinal);
    manifests.iter().find(here).or_else(|| manifests.iter().find(anywhere))
}

/// Which incarnation is ours, so that the hub knows what it would leave behind on a cluster that
/// does not come back. What cannot be seen now is as it was.
fn uid(seen: &Observed, wanted: &Wanted, before: Option<&ManifestCondition>) -> String {
    let Ledger::Present(book) = &seen.ledger else { return String::new() };
    let Some(id) = wanted.place.id().filter(|id| book.origin(id).is_some()) else {
        return String::new();
    };
    match seen.live.get(id) {
        Some(Seen::Present(present)) => present.uid.clone(),
        Some(Seen::Absent) => String::new(),
        Some(Seen::NotYet | Seen::Unknown(_)) | None => {
            before.map(|before| before.resource_meta.uid.clone()).unwrap_or_default()
        }
    }
}

fn meta(ordinal: usize, wanted: &Wanted) -> ManifestResourceMeta {
    let ordinal = i32::try_from(ordinal).unwrap_or(i32::MAX);
    let (own_group, own_version) =
        wanted.api_version.rsplit_once('/').unwrap_or(("", &wanted.api_version));
    let kind = wanted.kind.clone();
    match &wanted.place {
        Place::At(target) => {
            let Id { group, resource, namespace, name } = target.id.clone();
            let version = target.version.clone();
            let uid = String::new();
            ManifestResourceMeta { ordinal, group, version, kind, resource, name, namespace, uid }
        }
        Place::Nowhere { namespace, name, .. } | Place::Unknown { namespace, name, .. } => {
            ManifestResourceMeta {
                ordinal,
                group: own_group.into(),
                version: own_version.into(),
                kind,
                resource: String::new(),
                name: name.clone(),
                namespace: namespace.clone(),
                uid: String::new(),
            }
        }
        Place::Malformed(_) => ManifestResourceMeta { ordinal, ..ManifestResourceMeta::default() },
    }
}

/// `None` while it is being worked on.
fn manifest_applied(seen: &Observed, wanted: &Wanted, need: Option<&Need>) -> Option<Found> {
    let failed = |why: &str| {
        let message = format!("Failed to apply manifest: {why}");
        Some(Found::new(kinds::APPLIED, "False", reason::APPLIED_MANIFEST_FAILED, message))
    };
    match &wanted.place {
        Place::Nowhere { message, .. } | Place::Unknown { message, .. } => return failed(message),
        Place::Malformed(message) => return failed(message),
        Place::At(_) => {}
    }
    let trouble = wanted.place.id().and_then(|id| seen.troubles.get(id));
    let refused = |trouble: &Trouble| match trouble.protected() {
        Some(_) => {
            let message = format!("Failed to apply manifest: {}", deleting::said(trouble));
            Some(Found::new(kinds::APPLIED, "False", PROTECTED_BY, message))
        }
        None => failed(&trouble.message),
    };
    let Some(need) = need else {
        return failed("an earlier manifest of the work asks for the same object");
    };
    let quarrel = wanted.place.id().and_then(|id| seen.quarrels.get(id));
    if let (Need::Nothing | Need::Later | Need::Touch { .. }, Some(_), None) =
        (need, quarrel.filter(|until| **until > seen.now), trouble)
    {
        return failed(
            "somebody else keeps changing it; it is put right again and again, ever more rarely",
        );
    }
    match need {
        Need::Nothing => Some(Found::new(
            kinds::APPLIED,
            "True",
            reason::APPLIED_MANIFEST_COMPLETE,
            "Apply manifest complete",
        )),
        Need::Stuck(Stuck::IgnoreFields(why)) => Some(Found::new(
            kinds::APPLIED,
            "False",
            reason::APPLIED_MANIFEST_SSA_IGNORE_FIELD_ERROR,
            format!("Failed to process ignoreFields: {why}"),
        )),
        Need::Stuck(Stuck::Failed(why) | Stuck::Denied(why) | Stuck::Unknown(why)) => failed(why),
        Need::Later | Need::Touch { .. } => match trouble {
            Some(trouble) if trouble.kind != TroubleKind::Stale => refused(trouble),
            _ => None,
        },
    }
}

fn manifest_available(seen: &Observed, wanted: &Wanted) -> Found {
    let Some(id) = wanted.place.id() else {
        let message = "Resource meta is incomplete";
        return Found::new(kinds::AVAILABLE, "Unknown", reason::INCOMPLETE_RESOURCE_META, message);
    };
    match seen.live.get(id) {
        Some(Seen::Present(_)) => Found::new(
            kinds::AVAILABLE,
            "True",
            reason::RESOURCE_AVAILABLE,
            "Resource is available",
        ),
        Some(Seen::Absent) => {
            let message = "Resource is not available";
            Found::new(kinds::AVAILABLE, "False", reason::RESOURCE_NOT_AVAILABLE, message)
        }
        Some(Seen::Unknown(why)) => {
            let message = format!("Failed to fetch resource: {why}");
            Found::new(kinds::AVAILABLE, "Unknown", reason::FETCHING_RESOURCE_FAILED, message)
        }
        Some(Seen::NotYet) | None => {
            let message = "Failed to fetch resource: it was not looked at";
            Found::new(kinds::AVAILABLE, "Unknown", reason::FETCHING_RESOURCE_FAILED, message)
        }
    }
}

/// Completeness is for good: nothing is applied any more, and a time to live begins. So a work is not
/// complete by some of its manifests while others were never applied, of which no rule can say anything.
fn unless_unapplied(found: Found, manifests: &[ManifestCondition], generation: i64) -> Found {
    let is_applied = |manifest: &&ManifestCondition| {
        applied_now(manifest, generation).is_some_and(|status| status == "True")
    };
    let unapplied = manifests.len() - manifests.iter().filter(is_applied).count();
    if found.type_ != kinds::COMPLETE || found.status != "True" || unapplied == 0 {
        return found;
    }
    let message = match unapplied {
        1 => "1 manifest is not applied".to_string(),
        many => format!("{many} manifests are not applied"),
    };
    Found { status: "Unknown", message, ..found }
}

fn status_of<'a>(manifest: &'a ManifestCondition, type_: &str) -> Option<&'a str> {
    let mut conditions = manifest.conditions.iter();
    conditions.find(|condition| condition.type_ == type_).map(|condition| condition.status.as_str())
}

/// Whether a manifest is applied as it is asked for now. `None` while that was never tried.
fn applied_now(manifest: &ManifestCondition, generation: i64) -> Option<&str> {
    let mut conditions = manifest.conditions.iter();
    let applied = conditions.find(|condition| condition.type_ == kinds::APPLIED)?;
    let current = applied.observed_generation == Some(generation);
    current.then_some(applied.status.as_str())
}

/// `None` for a work without manifests, and while some were never tried as they are asked for now.
fn applied(manifests: &[ManifestCondition], generation: i64) -> Option<Found> {
    let statuses: Vec<Option<&str>> =
        manifests.iter().map(|manifest| applied_now(manifest, generation)).collect();
    if statuses.contains(&Some("False")) {
        let message = "Failed to apply manifest work";
        let reason = reason::APPLIED_MANIFEST_WORK_FAILED;
        return Some(Found::new(kinds::APPLIED, "False", reason, message));
    }
    if statuses.is_empty() || statuses.contains(&None) {
        return None;
    }
    let message = "Apply manifest work complete";
    Some(Found::new(kinds::APPLIED, "True", reason::APPLIED_MANIFEST_WORK_COMPLETE, message))
}

fn available(manifests: &[ManifestCondition]) -> Found {
    let total = manifests.len();
    let count = |status| {
        manifests
            .iter()
            .filter(|manifest| status_of(manifest, kinds::AVAILABLE) == Some(status))
            .count()
    };
    let (missing, unknown) = (count("False"), count("Unknown"));
    let (status, reason, message) = if total == 0 {
        (
            "Unknown",
            reason::RESOURCES_STATUS_UNKNOWN,
            "cannot get any available resource ".to_string(),
        )
    } else if missing > 0 {
        let message = format!("{missing} of {total} resources are not available");
        ("False", reason::RESOURCES_NOT_AVAILABLE, message)
    } else if unknown > 0 {
        let message = format!("{unknown} of {total} resources have unknown status");
        ("Unknown", reason::RESOURCES_STATUS_UNKNOWN, message)
    } else {
        ("True", reason::RESOURCES_AVAILABLE, "All resources are available".to_string())
    };
    Found::new(kinds::AVAILABLE, status, reason, message)
}

/// The first moment at which looking again may help, though nothing was seen to change.
fn wake(seen: &Observed) -> Option<Timestamp> {
    let mut times: Vec<Timestamp> = Vec::new();
    let later = |pause: SignedDuration| seen.now.checked_add(pause).unwrap_or(seen.now);
    // With nothing to do now, a trouble whose time has come is over: somebody else saw to it.
    let retries = seen.troubles.values().map(|trouble| trouble.retry_at);
    times.extend(retries.filter(|time| *time > seen.now));
    let quarrels = seen.pauses.values().chain(seen.quarrels.values());
    times.extend(quarrels.filter(|time| **time > seen.now));
    for wanted in &seen.wanted {
        match (&wanted.place, &wanted.permission) {
            (Place::Nowhere { .. }, _) => times.push(later(NO_KIND_PAUSE)),
            (Place::Unknown { .. }, _) | (_, Permission::Unknown(_)) => {
                times.push(later(UNKNOWN_PAUSE))
            }
            (_, Permission::Denied(_)) => times.push(later(DENIED_PAUSE)),
            _ => {}
        }
    }
    // A ledger or a work that is not there is not told of when its kind can be seen at last.
    let blind = matches!(seen.ledger, Ledger::Unknown(_) | Ledger::NotYet)
        || matches!(seen.hub, Hub::Unknown(_));
    let unseen = |live: &Seen| matches!(live, Seen::Unknown(_) | Seen::NotYet);
    if blind || seen.live.values().any(unseen) {
        times.push(later(UNKNOWN_PAUSE));
    }
    // Nobody watches what a namespace holds besides ours.
    let unclear = |held: &Contents| matches!(held, Contents::Unknown(_) | Contents::Waiting(_));
    if seen.contents.values().any(unclear) {
        times.push(later(UNKNOWN_PAUSE));
    }
    if let (Hub::Absent, Ledger::Present(Book { eviction_start: Some(start), deleting: false, .. })) =
        (&seen.hub, &seen.ledger)
        && let Some(end) = seen.agent.eviction_grace.and_then(|grace| start.checked_add(grace).ok())
    {
        times.push(end);
    }
    times.into_iter().min()
}
