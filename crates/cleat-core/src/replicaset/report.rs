//! What users are told of a set, and when to look again.

use alloc::borrow::ToOwned as _;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use cleat_api::manifestworkreplicaset::{LONGEST_KEY, SET_LABEL, condition as api, reason};
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::assign::{Assigned, Hold};
use super::child::Child;
use super::condition::{self, Condition};
use super::{BATCH, Decided, Observed, Setback, Setbacks, intents, rollouts, some};
use crate::number::number;
use crate::placement::NOTICED;
use crate::rollout::{Rollout, Standing};
use crate::write::{Action, Outcome, Plan, Side, Write};

#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The write of the status, if it is to say something else.
    pub status: Option<Action>,
    /// Look again after this long, even if nothing changes.
    pub wake: Option<SignedDuration>,
    /// To be observed next time.
    pub setbacks: Setbacks,
}

/// `done`: what came of `plan`, which was made from `seen`.
pub fn report(seen: &Observed, plan: &Plan, done: &[Vec<Outcome>]) -> Verdict {
    let mut setbacks = setbacks(seen, plan, done);
    let (status, wake) = match (seen.set.deleting, seen.set.has_finalizer()) {
        (false, true) => standing(seen, &mut setbacks),
        // Nothing tells when works can be listed again.
        (true, true) => {
            (leaving(seen, done, &setbacks), seen.children.is_none().then_some(PATIENCE))
        }
        (_, false) => (None, None),
    };
    let cut = (intents(seen).len() > BATCH && !seen.set.deleting).then_some(RETRY);
    let retry = setbacks.values().map(Setback::pause).min();
    Verdict { status, wake: [wake, retry, cut].into_iter().flatten().min(), setbacks }
}

/// The shortest and the longest time between tries of what fails.
const RETRY: SignedDuration = SignedDuration::from_secs(1);
const RETRY_MOST: SignedDuration = SignedDuration::from_secs(60);
/// How long something may be unreadable or half written before anybody is told, or asks again.
const PATIENCE: SignedDuration = SignedDuration::from_secs(10);
/// How often a name may be met before it is certain that our own view is not just old.
const MET: u32 = 3;

impl Setback {
    fn pause(&self) -> SignedDuration {
        let doubled = 1_i32.checked_shl(self.attempts.saturating_sub(1).min(6)).unwrap_or(64);
        RETRY.saturating_mul(doubled).min(RETRY_MOST)
    }
}

fn setbacks(seen: &Observed, plan: &Plan, done: &[Vec<Outcome>]) -> Setbacks {
    let tried = plan.iter().flatten().map(|action| &action.target.id);
    let mut intended: BTreeSet<_> =
        tried.map(|id| (id.namespace.clone(), id.name.clone())).collect();
    if !seen.set.deleting {
        intended.extend(intents(seen).iter().map(|intent| intent.key(&seen.set)));
    }
    let mut setbacks = seen.setbacks.clone();
    setbacks.retain(|key, _| intended.contains(key));
    for (action, outcome) in plan.iter().flatten().zip(done.iter().flatten()) {
        let id = &action.target.id;
        let key = (id.namespace.clone(), id.name.clone());
        let before = seen.setbacks.get(&key);
        let attempts = before.map_or(0, |before| before.attempts).saturating_add(1);
        let message = match outcome {
            Outcome::Done(_) => None,
            Outcome::NotFound if matches!(action.write, Write::Delete { .. }) => None,
            Outcome::NotTried => continue,
            // Our view was old; there is nothing to tell.
            Outcome::Conflict(_) | Outcome::NotFound => Some(String::new()),
            Outcome::AlreadyExists if attempts < MET => Some(String::new()),
            Outcome::AlreadyExists => Some(format!(
                "a ManifestWork {} without the label {SET_LABEL}={} is in the way: \
                 delete it, or give it that label",
                id.name,
                seen.set.key()
            )),
            Outcome::NoSuchKind => Some("the hub does not serve ManifestWorks".to_owned()),
            Outcome::Refused(refusal) => Some(short(&refusal.message)),
            Outcome::Lost(message) => Some(short(message)),
        };
        match message {
            None => drop(setbacks.remove(&key)),
            Some(message) => {
                let since = before.map_or(seen.now, |before| before.since);
                setbacks.insert(key, Setback { attempts, message, since });
            }
        }
    }
    setbacks
}

fn short(message: &str) -> String {
    message.chars().take(200).collect()
}

/// The status of a set that stays.
fn standing(seen: &Observed, setbacks: &mut Setbacks) -> (Option<Action>, Option<SignedDuration>) {
    let set = &seen.set;
    let mut told = Told::of(seen);
    if set.is_too_long() {
        let message = format!(
            "works bear the labels {} and the name of the placement, which may have {LONGEST_KEY} \
             characters: use a shorter name",
            set.key()
        );
        told.put(api::MANIFESTWORK_APPLIED, reason::INVALID_MANIFEST_WORK_NAME, message);
        return (told.write(), None);
    }
    let Some(assigned) = Assigned::of(seen) else { return (None, Some(RETRY_MOST)) };
    let rollouts = rollouts(seen, &assigned);
    let wake = rollouts.values().filter_map(|rollout| rollout.wake).min();
    let held = assigned.held(seen);
    let back = held.iter().filter_map(|(_, hold)| match hold {
        Hold::Back(until) => Some(*until),
        // What is decided may be what was: no event tells.
        Hold::Unnoticed => seen.now.checked_add(NOTICED).ok(),
        Hold::Away => None,
    });
    let wake = wake.into_iter().chain(back).min();
    let wake = wake.map(|at| at.duration_since(seen.now).max(RETRY));
    if !patient(seen, setbacks) {
        let sum = told.count(&assigned);
        let empty = told.verify(sum.desired, &held);
        told.roll_out(&rollouts);
        told.judge(sum, empty, setbacks);
    }
    (told.write(), wake)
}

/// Whether some decisions are half written or cannot be read, and not for long: then all stays as it
/// was told.
fn patient(seen: &Observed, setbacks: &mut Setbacks) -> bool {
    let mut patient = false;
    for reference in &seen.set.placements {
        match seen.placements.get(&reference.name) {
            None | Some(Decided::Unknown | Decided::Unsettled { .. }) => {}
            Some(Decided::NoPlacement | Decided::Undecided | Decided::Settled(_)) => continue,
        }
        let key = (String::new(), reference.name.clone());
        let before = seen.setbacks.get(&key);
        let since = before.map_or(seen.now, |before| before.since);
        let attempts = before.map_or(0, |before| before.attempts).saturating_add(1);
        patient |= seen.now.duration_since(since) < PATIENCE;
        setbacks.insert(key, Setback { attempts, message: String::new(), since });
    }
    patient
}

/// The status as it is being made.
struct Told<'a> {
    seen: &'a Observed,
    status: Value,
    conditions: Vec<Value>,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    total: usize,
    desired: usize,
    updated: usize,
    applied: usize,
    available: usize,
    progressing: usize,
    degraded: usize,
}

impl<'a> Told<'a> {
    fn of(seen: &'a Observed) -> Self {
        let mut status = seen.set.status.clone();
        if !status.is_object() {
            status = json!({});
        }
        let conditions = status.get("conditions").and_then(Value::as_array).cloned();
        Self { seen, status, conditions: conditions.unwrap_or_default() }
    }

    fn put(&mut self, kind: &'static str, reason: &'static str, message: String) {
        let condition = Condition { kind, reason, message };
        condition.put(&mut self.conditions, self.seen.set.generation, self.seen.now);
    }

    fn set(&mut self, key: &str, value: Value) {
        if let Some(status) = self.status.as_object_mut() {
            status.insert(key.to_owned(), value);
        }
    }

    fn write(mut self) -> Option<Action> {
        let conditions = Value::Array(core::mem::take(&mut self.conditions));
        self.set("conditions", conditions);
        let set = &self.seen.set;
        if self.status == set.status {
            return None;
        }
        let metadata = json!({ "uid": set.uid, "resourceVersion": set.resource_version });
        let patch = json!({ "metadata": metadata, "status": self.status });
        Some(Action { side: Side::Hub, target: set.target(), write: Write::MergeStatus(patch) })
    }

    fn count(&mut self, assigned: &Assigned<'_>) -> Counts {
        let mut sum = Counts::default();
        let mut summaries = Vec::new();
        for reference in &self.seen.set.placements {
            let name = &*reference.name;
            let mut counts = Counts::default();
            let decided = self.seen.placements.get(name);
            let groups = decided.map(Decided::groups).unwrap_or_default().len();
            if decided.is_some_and(Decided::is_settled) {
                for (_, child) in assigned.slots.iter().filter(|(slot, _)| slot.placement == name) {
                    counts.desired += 1;
                    child.iter().for_each(|child| counts.add(child, &self.seen.set.digest));
                }
            } else {
                let works = assigned.rest.iter().filter(|child| child.placement() == name);
                works.for_each(|child| counts.add(child, &self.seen.set.digest));
                counts.desired = counts.total;
            }
            let Counts { total, desired, .. } = counts;
            summaries.push(json!({
                "name": name,
                "availableDecisionGroups": format!("{groups} ({total} / {desired} clusters applied)"),
                "summary": counts.json(),
            }));
            sum.join(counts);
        }
        self.set("summary", sum.json());
        self.set("placementSummary", Value::Array(summaries));
        sum
    }

    /// Whether the placements validly chose nothing.
    fn verify(&mut self, desired: usize, held: &[(&Child, Hold)]) -> bool {
        let mut missing = Vec::new();
        let mut wrong = Vec::new();
        for reference in &self.seen.set.placements {
            let name = &reference.name;
            match self.seen.placements.get(name) {
                None | Some(Decided::Unknown) => {
                    wrong.push(format!("Placement {name} or its decisions could not be read"));
                }
                Some(Decided::NoPlacement) => missing.push(format!(
                    "Placement {name} is not there: create it, or take it out of placementRefs"
                )),
                Some(Decided::Undecided) => {
                    missing.push(format!("Placement {name} has not decided yet"));
                }
                Some(Decided::Unsettled { listed, chosen }) => {
                    let listed: usize = listed.iter().map(|group| group.clusters.len()).sum();
                    wrong.push(format!(
                        "Placement {name} says that it chose {chosen} clusters, its decisions list \
                         {listed}"
                    ));
                }
                Some(Decided::Settled(_)) => {}
            }
            if let Err(invalid) = &reference.strategy {
                wrong.push(format!("the rollout to Placement {name} cannot begin: {invalid}"));
            }
        }
        let unsure = !missing.is_empty() || !wrong.is_empty();
        let (reason, messages) = if missing.is_empty() {
            (reason::NOT_AS_EXPECTED, wrong)
        } else {
            missing.extend(wrong);
            (reason::PLACEMENT_DECISION_NOT_FOUND, missing)
        };
        if unsure {
            let kept = "until that is known, no work is deleted";
            let message = format!("{}; {kept}", some(messages.iter().map(|one| &**one)));
            self.put(api::PLACEMENT_VERIFIED, reason, message);
        } else if desired == 0 {
            let mut message = "the placements chose no cluster".to_owned();
            if !held.is_empty() {
                message.push_str(&format!("; {}", kept(held)));
            }
            self.put(api::PLACEMENT_VERIFIED, reason::PLACEMENT_DECISION_EMPTY, message);
        } else {
            let message = if held.is_empty() { String::new() } else { kept(held) };
            self.put(api::PLACEMENT_VERIFIED, reason::AS_EXPECTED, message);
        }
        !unsure && desired == 0
    }

    fn roll_out(&mut self, rollouts: &BTreeMap<&str, Rollout>) {
        let settled =
            |name: &String| self.seen.placements.get(name).is_some_and(Decided::is_settled);
        let known = self.seen.set.placements.iter().all(|reference| settled(&reference.name));
        // How far a rollout came does not change because its placement cannot be asked.
        if !known && condition::exists(&self.conditions, api::PLACEMENT_ROLLED_OUT) {
            return;
        }
        let count = |at: &[Standing]| -> usize {
            at.iter().flat_map(|at| rollouts.values().map(|all| all.count(*at))).sum()
        };
        let total: usize = rollouts.values().map(|all| all.standing.len()).sum();
        let done = count(&[Standing::Succeeded, Standing::Soaking]);
        if known && rollouts.len() == self.seen.set.placements.len() && done == total {
            let message = format!("{done} of {total} clusters have the current template");
            return self.put(api::PLACEMENT_ROLLED_OUT, reason::COMPLETE, message);
        }
        let mut message = format!(
            "{done} of {total} clusters succeeded, {} are under way, {} failed, {} wait",
            count(&[Standing::Due, Standing::Underway]),
            count(&[Standing::Failed, Standing::TimedOut]),
            count(&[Standing::Waiting]),
        );
        for (name, rollout) in rollouts {
            if let Some(stopped) = &rollout.stopped {
                let failed = some(stopped.failed.iter().map(|name| &**name));
                message.push_str(&format!(
                    "; the rollout to Placement {name} stopped, as more clusters failed than the {} \
                     that may: {failed}. Mend the template, or raise maxFailures",
                    stopped.allowed
                ));
            }
        }
        self.put(api::PLACEMENT_ROLLED_OUT, reason::PROGRESSING, message);
    }

    fn judge(&mut self, sum: Counts, empty: bool, setbacks: &Setbacks) {
        let Counts { total, desired, available, progressing, degraded, .. } = sum;
        let failing = failing(setbacks);
        let counted = || format!("{available} of {total} works are available, {degraded} degraded");
        let (reason, message) = if let Some((at, why)) = failing.first() {
            let mut message = format!("{at} cannot be written: {why}");
            if failing.len() > 1 {
                message.push_str(&format!("; so it is with {} more works", failing.len() - 1));
            }
            (reason::NOT_AS_EXPECTED, message)
        } else if total == 0 && empty {
            (reason::PLACEMENT_DECISION_EMPTY, String::new())
        } else if total == 0 {
            (reason::NOT_AS_EXPECTED, format!("0 of {desired} works exist"))
        } else if available == total && progressing == 0 && degraded == 0 {
            (reason::AS_EXPECTED, String::new())
        } else if progressing > 0 && degraded == 0 {
            (reason::PROCESSING, format!("{progressing} of {total} works are progressing"))
        } else {
            (reason::NOT_AS_EXPECTED, counted())
        };
        self.put(api::MANIFESTWORK_APPLIED, reason, message);
    }
}

/// What is said of works that stay on clusters nobody reaches.
fn kept(held: &[(&Child, Hold)]) -> String {
    let names: Vec<String> =
        held.iter().map(|(child, _)| format!("{}/{}", child.cluster, child.name)).collect();
    format!(
        "held, as the cluster is not chosen any more and is unreachable, or has just come back: {}; \
         each goes when its cluster is back, unless it is chosen again, or when somebody deletes it",
        some(names.iter().map(|name| &**name))
    )
}

/// What failed with something to tell, as `cluster/work` and why.
fn failing(setbacks: &Setbacks) -> Vec<(String, &str)> {
    let told = setbacks.iter().filter(|(_, setback)| !setback.message.is_empty());
    told.map(|((cluster, name), why)| (format!("{cluster}/{name}"), &*why.message)).collect()
}

impl Counts {
    fn add(&mut self, child: &Child, digest: &str) {
        if child.deleting {
            return;
        }
        self.total += 1;
        self.updated += usize::from(child.spec == digest);
        self.applied += usize::from(Child::says(child.applied));
        self.available += usize::from(Child::says(child.available));
        self.progressing += usize::from(Child::says(child.progressing));
        self.degraded += usize::from(Child::says(child.degraded));
    }

    fn join(&mut self, other: Self) {
        let Self { total, desired, updated, applied, available, progressing, degraded } = other;
        self.total += total;
        self.desired += desired;
        self.updated += updated;
        self.applied += applied;
        self.available += available;
        self.progressing += progressing;
        self.degraded += degraded;
    }

    fn json(self) -> Value {
        let Self { total, desired, updated, applied, available, progressing, degraded } = self;
        json!({
            "total": total, "desiredTotal": desired, "updated": updated, "applied": applied,
            "available": available, "progressing": progressing, "degraded": degraded,
        })
    }
}

/// The status of a set that waits for its works to go.
fn leaving(seen: &Observed, done: &[Vec<Outcome>], setbacks: &Setbacks) -> Option<Action> {
    let let_go = done.last().is_some_and(|step| step.iter().all(Outcome::is_done));
    let mut told = Told::of(seen);
    let children = seen.children.as_ref()?;
    if children.is_empty() || (let_go && seen.set.cascade == super::Cascade::Background) {
        return None;
    }
    let names: Vec<String> =
        children.iter().map(|child| format!("{}/{}", child.cluster, child.name)).collect();
    let names = some(names.iter().map(|name| &**name));
    let verb = if children.len() == 1 { "remains" } else { "remain" };
    let works = number(children.len(), "work", "works");
    let mut message = format!("{works} {verb}: {names}");
    match failing(setbacks).first() {
        Some((at, why)) => message.push_str(&format!("; {at} cannot be deleted: {why}")),
        None => message.push_str("; each goes once its cluster's agent removed what it applied"),
    }
    told.put(condition::DELETING, condition::WAITING, message);
    told.write()
}
