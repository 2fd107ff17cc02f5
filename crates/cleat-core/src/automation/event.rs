//! When a cluster's event begins, when it is over, and when it gets its job.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;

use cleat_api::policyautomation::{
    ClusterEvent, Mode, PolicyAutomationSpec, PolicyAutomationStatus, SinceRun,
};
use jiff::{SignedDuration, Timestamp};

use super::ledger::{stamp, time};
use super::policy::{Policy, Standing};
use super::{Observed, ledger};

/// Brings the entries up to date, and gives the clusters that are due for a job, each with the time
/// of its event.
pub(super) fn look(
    next: &mut PolicyAutomationStatus,
    seen: &Observed,
    policy: &Policy,
) -> BTreeMap<String, Timestamp> {
    let delay = delay(&seen.automation.spec);
    let armed = seen.armed(policy, Mode::EveryEvent);
    let version = next.observed_policy.as_ref().and_then(|at| at.resource_version.parse().ok());
    let glimpsed = |cluster: &str| {
        let at = seen.glimpses.get(cluster);
        at.is_some_and(|at| version.is_none_or(|version: u64| *at > version))
    };
    let said = core::mem::take(&mut next.said_times);
    // What was seen of it, corrected by what it says itself: a recovery that nobody saw counts, and
    // one that was seen late, and of which it had told before its job was decided on, does not.
    let recovered = |cluster: &str, entry: &ClusterEvent, standing: Standing| {
        let glimpsed = glimpsed(cluster);
        let said = said.get(cluster).and_then(|said| time(said));
        match (seen.told.get(cluster), said) {
            (Some(told), Some(said)) if !is_again(entry) => {
                let well = told.well && standing == Standing::Unclear;
                let spoke = !told.is_silent_since(said);
                told.recovered_since(said) || ((glimpsed || well) && spoke)
            }
            _ => glimpsed,
        }
    };
    // The policy may show a recovery only after the violation that followed it has had its job.
    let persists = |cluster: &str| {
        let said = said.get(cluster).and_then(|said| time(said));
        let told = seen.told.get(cluster).zip(said);
        told.is_some_and(|(told, said)| told.persists_since(said))
    };
    let began = |cluster: &str| {
        let began = seen.told.get(cluster).and_then(|told| told.began);
        began.unwrap_or(seen.now).min(seen.now)
    };
    let promised: BTreeSet<String> = ledger::promised(next);
    let mut due = BTreeMap::new();

    let entries = core::mem::take(&mut next.clusters_with_event);
    for (cluster, entry) in entries {
        if promised.contains(&cluster) {
            next.clusters_with_event.insert(cluster, entry);
            continue;
        }
        let standing = policy.standing(&cluster);
        if policy.complies(&cluster) && persists(&cluster) {
            next.clusters_with_event.insert(cluster, entry);
            continue;
        }
        let (recovered, began) = (recovered(&cluster, &entry, standing), began(&cluster));
        match consider(&entry, standing, recovered, began, seen.now, delay) {
            Fate::Keep(entry) => drop(next.clusters_with_event.insert(cluster, entry)),
            Fate::Drop => {}
            Fate::Due(event) => {
                let since_run = Some(SinceRun::Violated);
                let entry = ClusterEvent { event_time: stamp(event), since_run, ..entry };
                next.clusters_with_event.insert(cluster.clone(), entry);
                due.insert(cluster, event);
            }
        }
    }

    next.said_times = said;
    next.said_times.retain(|name, _| next.clusters_with_event.contains_key(name));

    for cluster in policy.noncompliant() {
        if promised.contains(cluster)
            || next.clusters_with_event.contains_key(cluster)
            || policy.standing(cluster) != Standing::Violated
        {
            continue;
        }
        let before = next.waiting_clusters.get(cluster).filter(|_| !glimpsed(cluster));
        let event =
            before.and_then(|before| time(&before.event_time)).unwrap_or_else(|| began(cluster));
        due.insert(cluster.into(), event);
    }
    // Under another mode an event may begin and end, but starts nothing.
    if armed { due } else { BTreeMap::new() }
}

enum Fate {
    Keep(ClusterEvent),
    Drop,
    Due(Timestamp),
}

fn consider(
    entry: &ClusterEvent,
    standing: Standing,
    glimpsed: bool,
    began: Timestamp,
    now: Timestamp,
    delay: SignedDuration,
) -> Fate {
    let free = end(entry, delay).is_none_or(|end| now >= end);
    let was_again = is_again(entry);
    let recovered = glimpsed || entry.since_run == Some(SinceRun::Recovered);
    match standing {
        Standing::Unclear if !recovered => Fate::Keep(entry.clone()),
        Standing::Violated if !glimpsed && !was_again => Fate::Keep(entry.clone()),
        Standing::Violated => {
            // The event goes on, or it is another one.
            let goes_on = !glimpsed && entry.since_run != Some(SinceRun::Recovered);
            let event = time(&entry.event_time).filter(|_| goes_on).unwrap_or(began);
            if free {
                return Fate::Due(event);
            }
            let since_run = Some(SinceRun::Violated);
            Fate::Keep(ClusterEvent { event_time: stamp(event), since_run, ..entry.clone() })
        }
        Standing::Over | Standing::Unclear if free => Fate::Drop,
        Standing::Over | Standing::Unclear => {
            Fate::Keep(ClusterEvent { since_run: Some(SinceRun::Recovered), ..entry.clone() })
        }
    }
}

/// Whether the cluster complied at some time since the job was made. An entry that says nothing of it
/// is judged by its times, which is how it was written before.
pub(super) fn is_again(entry: &ClusterEvent) -> bool {
    let newer = || match (time(&entry.event_time), time(&entry.automation_start_time)) {
        (Some(event), Some(start)) => event > start,
        _ => false,
    };
    entry.since_run.is_some() || newer()
}

/// When the delay after its job has passed. None: long ago.
fn end(entry: &ClusterEvent, delay: SignedDuration) -> Option<Timestamp> {
    let start = time(&entry.automation_start_time)?;
    start.checked_add(delay).ok()
}

/// When to look at the entry again, though nothing changed.
pub(super) fn wake(
    entry: &ClusterEvent,
    spec: &PolicyAutomationSpec,
    now: Timestamp,
) -> Option<Timestamp> {
    entry.since_run?;
    end(entry, delay(spec)).filter(|end| *end > now)
}

fn delay(spec: &PolicyAutomationSpec) -> SignedDuration {
    let seconds = spec.delay_after_run_seconds.unwrap_or_default().max(0);
    // A century is as good as never, and does not overflow a clock.
    SignedDuration::from_secs(seconds.min(100 * 366 * 86_400))
}
