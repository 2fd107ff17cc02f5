//! What is said of a cluster that is leaving: how far it got, and what stands in the way.
//!
//! The same numbers serve `kubectl`, the web and `cleat unjoin`. What stands in the way is found in
//! `obstacle`.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use cleat_api::managedcluster::{LEASE, RemoveStrategy, condition as kind, reason};
use jiff::SignedDuration;
use serde_json::json;

use super::carried::Carried;
use super::hub::{Observed, Way, way};
use super::{finish, obstacle};
use crate::condition::{self, Said, Status};
use crate::lease::Pulse;
use crate::number::number;
use crate::registration::hub::{failure, target};
use crate::write::{Action, Outcome, Side, Write};

/// How long to wait before trying again what did not work.
const AGAIN: SignedDuration = SignedDuration::from_secs(5);
/// How many kinds are named.
const KINDS: usize = 10;

/// What the cluster is told, and when to look again by itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// A patch of its status, if something changed.
    pub status: Option<Action>,
    pub wake: Option<SignedDuration>,
}

/// `done` is what came of the plan for the same observation.
pub fn report(seen: &Observed, done: &[Vec<Outcome>]) -> Verdict {
    let settled = done.iter().flatten().all(|one| matches!(one, Outcome::Done(_)));
    let retry = (!settled).then_some(AGAIN);
    if !seen.has_finalizer() {
        return Verdict { status: None, wake: None };
    }
    let failures: Vec<String> = done.iter().flatten().filter_map(failure).collect();
    let before = seen.status().conditions;
    let mut conditions = before.clone();
    let generation = seen.cluster.metadata.generation;
    let mut say = |said| condition::say(&mut conditions, said, generation, seen.now);
    if seen.pulse() == Pulse::Stopped && condition::find(&before, kind::AVAILABLE).is_some() {
        say(silent(seen));
    }
    say(Said {
        kind: kind::UNJOINING,
        status: Status::True,
        reason: reason::UNJOIN_CLUSTER,
        message: progress(seen),
    });
    if let Some(said) = obstacle::said(seen, &failures) {
        say(said);
    }
    if let Some(said) = deleting(seen) {
        say(said);
    }
    let status = (conditions != before).then(|| {
        let metadata = &seen.cluster.metadata;
        let patch = json!({
            "metadata": { "uid": metadata.uid, "resourceVersion": metadata.resource_version },
            "status": { "conditions": conditions },
        });
        let write = Write::MergeStatus(patch);
        Action { side: Side::Hub, target: target(seen.name()), write }
    });
    let until = match seen.pulse() {
        Pulse::Beating { until } => Some(until.duration_since(seen.now)),
        Pulse::None | Pulse::Stopped => None,
    };
    let patience = carried(seen)
        .iter()
        .flat_map(|one| &one.blocked)
        .filter_map(|one| one.since.as_ref()?.0.checked_add(obstacle::PATIENCE).ok())
        .filter(|end| *end > seen.now)
        .map(|end| end.duration_since(seen.now));
    let doubt = condition::find(&conditions, kind::UNJOIN_FAILED)
        .filter(|one| one.status == "Unknown")
        .map(|_| AGAIN);
    let wake = patience.chain(until).chain(retry).chain(doubt).min();
    Verdict { status, wake }
}

pub(super) fn carried(seen: &Observed) -> &[Carried] {
    seen.carried.as_deref().unwrap_or_default()
}

fn silent(seen: &Observed) -> Said {
    Said {
        kind: kind::AVAILABLE,
        status: Status::Unknown,
        reason: reason::LEASE_UPDATE_STOPPED,
        message: format!(
            "The agent has stopped to renew its lease {}/{LEASE}: look whether it runs and reaches \
             the hub.",
            seen.name(),
        ),
    }
}

/// OCM's own condition of a cluster that goes.
fn deleting(seen: &Observed) -> Option<Said> {
    let (status, reason, message) = match &seen.carried {
        Err(why) => (
            Status::False,
            reason::DELETING_ERROR,
            format!("What was carried to {} cannot be listed: {why}", seen.name()),
        ),
        Ok(all) if all.is_empty() => {
            (Status::True, reason::NO_RESOURCE, "No works are left.".to_string())
        }
        Ok(all) => (
            Status::False,
            reason::RESOURCE_REMAINING,
            format!("{} in the namespace {}.", left(all), seen.name()),
        ),
    };
    Some(Said { kind: kind::DELETING, status, reason, message })
}

/// `3 works and 1 policy are left`.
fn left(all: &[Carried]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for one in all {
        *counts.entry(one.kind.as_str()).or_default() += 1;
    }
    let plural = |(kind, count): (&str, usize)| match (kind, count) {
        ("policy", count) => number(count, "policy", "policies"),
        (kind, count) => number(count, kind, &format!("{kind}s")),
    };
    let parts: Vec<String> = counts.into_iter().rev().map(plural).collect();
    let verb = if all.len() == 1 { "is" } else { "are" };
    format!("{} {verb} left", parts.join(" and "))
}

/// How far it got, in numbers.
fn progress(seen: &Observed) -> String {
    let strategy = seen.strategy().as_str();
    let all = carried(seen);
    match way(seen) {
        Way::Telling => format!("{strategy}: waits for the cluster's agent to hear of it."),
        Way::WithoutAgent(_) if !all.is_empty() => {
            format!("{strategy}: goes on without the cluster; {}.", left(all))
        }
        _ if all.is_empty() && (seen.is_released() || way(seen) != Way::WithAgent) => {
            match finish::why_kept(seen) {
                Some(why) => format!(
                    "{strategy}: nothing is left; its place on the hub goes, but the namespace {} \
                     stays: {why}.",
                    seen.name()
                ),
                None => format!("{strategy}: nothing is left; its place on the hub goes."),
            }
        }
        _ if all.is_empty() => {
            format!("{strategy}: waits for the cluster's agent to say that nothing is left.")
        }
        _ => {
            let counts = counts(all);
            let objects: i64 = counts.values().sum();
            if objects == 0 {
                return format!("{strategy}: {}.", left(all));
            }
            let mut kinds: Vec<String> =
                counts.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
            let more = kinds.len().saturating_sub(KINDS);
            kinds.truncate(KINDS);
            if more > 0 {
                kinds.push(format!("{more} more kinds"));
            }
            let to_do = match seen.strategy() {
                RemoveStrategy::Required => "to be removed",
                RemoveStrategy::Needless => "to be released",
            };
            format!("{strategy}: {}; {objects} objects {to_do}: {}.", left(all), kinds.join(", "))
        }
    }
}

/// How many objects of each resource have yet to go. Before the agent has counted, what is believed
/// to be there counts.
pub fn counts(all: &[Carried]) -> BTreeMap<String, i64> {
    let mut counts: BTreeMap<String, i64> = BTreeMap::new();
    for one in all {
        if one.deleting
            && let Some(remaining) = &one.remaining
        {
            for count in remaining {
                *counts.entry(count.resource.clone()).or_default() += count.count;
            }
        } else if !one.deleting || one.is_with_agent() {
            for object in &one.objects {
                let resource = match object.group.as_str() {
                    "" => object.resource.clone(),
                    group => format!("{}.{group}", object.resource),
                };
                *counts.entry(resource).or_default() += 1;
            }
        }
    }
    counts
}
