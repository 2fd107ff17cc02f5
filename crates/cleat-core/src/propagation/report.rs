//! What users are told of a root, and when to look again.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use alloc::{format, vec};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use super::bind::{Link, Source};
use super::content::Resolved;
use super::event::Event;
use super::replica::Replica;
use super::tell::{Said, Told};
use super::{Asked, BATCH, Hold, Observed, Root, Setback, Setbacks, Spread, intents, replica_name};
use crate::placement::NOTICED;
use crate::write::{Action, Outcome, Plan, Side, Write};

#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The write of the status, if it is to say something else.
    pub status: Option<Action>,
    /// Look again after this long, even if nothing changes.
    pub wake: Option<SignedDuration>,
    /// To be observed next time.
    pub setbacks: Setbacks,
    /// Since when something is not known that keeps a replica from going; to be observed next time.
    pub unsure_since: Option<Timestamp>,
    /// What is said of clusters, to be observed next time: with what came of the events.
    pub told: Told,
    pub events: Vec<Event>,
}

const RETRY: SignedDuration = SignedDuration::from_secs(1);
const RETRY_MOST: SignedDuration = SignedDuration::from_secs(60);
/// When to go on with what one pass had no room for.
const SOON: SignedDuration = SignedDuration::from_millis(20);
/// How often a name may be met before it is certain that our own view is not just old.
const MET: u32 = 3;
/// How long a replica may take to go before that is worth a warning.
const SLOW: SignedDuration = SignedDuration::from_secs(60);
/// How long something may be unknown before that is told: decisions are rewritten all the time.
const PATIENCE: SignedDuration = SignedDuration::from_secs(10);
/// When to ask again what could not be read.
const ASK_AGAIN: SignedDuration = SignedDuration::from_secs(5);
/// How much of a server's message is told.
const LONGEST: usize = 200;

/// How long to wait after so many failures.
pub(super) fn pause(attempts: u32) -> SignedDuration {
    let doubled = 1_i32.checked_shl(attempts.saturating_sub(1).min(6)).unwrap_or(64);
    RETRY.saturating_mul(doubled).min(RETRY_MOST)
}

/// `done`: what came of `plan`, which was made from `seen`.
pub fn report(seen: &Observed, plan: &Plan, done: &[Vec<Outcome>]) -> Verdict {
    let spread = Spread::of(seen);
    let rest = intents(seen, &spread);
    let setbacks = setbacks(seen, &rest, plan, done);
    let entries = entries(seen, &spread, &setbacks);
    let mut events = happened(seen, plan, done);
    let (told, mut warnings) = said(seen, &entries);
    events.append(&mut warnings);
    let status = seen.root.as_ref().and_then(|root| status(root, &spread, &entries));
    let cut = (rest.len() > BATCH).then_some(SOON);
    let retry = setbacks.values().map(|setback| pause(setback.attempts)).min();
    let unsure_since = unsure(seen, &spread).then(|| seen.unsure_since.unwrap_or(seen.now));
    let patience = unsure_since
        .map(|since| PATIENCE - seen.now.duration_since(since))
        .filter(|left| left.is_positive());
    let ask = (unsure_since.is_some() && seen.asked != Asked::NotYet).then_some(ASK_AGAIN);
    let wakes = [cut, retry, patience, ask, later(seen, &spread)];
    let wake = wakes.into_iter().flatten().min();
    Verdict { status, wake, setbacks, unsure_since, told, events }
}

/// Whether a replica stays because something is not known.
fn unsure(seen: &Observed, spread: &Spread<'_>) -> bool {
    let left = seen
        .replicas
        .values()
        .filter(|replica| !replica.deleting && !spread.placed.contains_key(&*replica.cluster));
    left.into_iter().any(|replica| {
        matches!(spread.hold(seen, replica), Some(Hold::Unsure(_) | Hold::Unnoticed(_)))
    })
}

/// When time alone changes what is to be done or said.
fn later(seen: &Observed, spread: &Spread<'_>) -> Option<SignedDuration> {
    let mut times = vec![];
    for replica in seen.replicas.values() {
        if let Some(since) = replica.deleting_since {
            times.push(SLOW - seen.now.duration_since(since));
        } else if !spread.placed.contains_key(&*replica.cluster) {
            match spread.hold(seen, replica) {
                Some(Hold::Back(until)) => times.push(until.duration_since(seen.now)),
                // What is decided may be what was: no event tells.
                Some(Hold::Unnoticed(_)) => times.push(NOTICED),
                _ => {}
            }
        }
    }
    if seen.resolved.values().any(|one| matches!(one, Resolved::Unknown(_))) {
        times.push(ASK_AGAIN);
    }
    times.into_iter().filter(|time| time.is_positive()).min()
}

fn setbacks(
    seen: &Observed,
    intents: &[super::Intent<'_>],
    plan: &Plan,
    done: &[Vec<Outcome>],
) -> Setbacks {
    let intended: BTreeSet<&str> = intents.iter().map(super::Intent::cluster).collect();
    let mut setbacks = seen.setbacks.clone();
    setbacks.retain(|cluster, _| intended.contains(&**cluster));
    for (action, outcome) in plan.iter().flatten().zip(done.iter().flatten()) {
        let cluster = &action.target.id.namespace;
        let before = seen.setbacks.get(cluster).map_or(0, |before| before.attempts);
        let attempts = before.saturating_add(1);
        let message = match outcome {
            Outcome::Done(_) => None,
            Outcome::NotFound if matches!(action.write, Write::Delete { .. }) => None,
            Outcome::NotTried => continue,
            // Our view was old; there is nothing to tell.
            Outcome::Conflict(_) | Outcome::NotFound => Some(String::new()),
            Outcome::AlreadyExists if attempts < MET => Some(String::new()),
            Outcome::AlreadyExists => Some(format!(
                "Policy {cluster}/{} is in the way, for it is not a copy of this policy: delete it",
                action.target.id.name
            )),
            Outcome::NoSuchKind => Some("the hub does not serve policies".to_string()),
            Outcome::Refused(refusal) => Some(refusal.message.chars().take(LONGEST).collect()),
            Outcome::Lost(message) => Some(message.chars().take(LONGEST).collect()),
        };
        match message {
            None => drop(setbacks.remove(cluster)),
            Some(message) => {
                setbacks.insert(cluster.clone(), Setback { attempts, message });
            }
        }
    }
    setbacks
}

/// What is said of one cluster.
#[derive(Default)]
struct Entry {
    compliant: Option<String>,
    remaining: Vec<String>,
    message: Option<String>,
    /// It is not chosen any more, and what it says does not count.
    held: bool,
    /// The message is worth an event.
    warn: bool,
}

fn entries<'a>(
    seen: &'a Observed,
    spread: &Spread<'a>,
    setbacks: &Setbacks,
) -> BTreeMap<&'a str, Entry> {
    let mut entries: BTreeMap<&str, Entry> = BTreeMap::new();
    if spread.root.is_some() {
        for link in &spread.links.0 {
            for cluster in link.decided() {
                entries.entry(cluster).or_default();
            }
        }
        for (cluster, entry) in &mut entries {
            chosen(seen, spread, cluster, entry, setbacks);
        }
    }
    for (cluster, replica) in &seen.replicas {
        if replica.deleting {
            leaving(seen, replica, entries.entry(cluster).or_default());
        } else if !spread.placed.contains_key(&**cluster) {
            let Some(hold) = spread.hold(seen, replica) else {
                if let Some(setback) = setbacks.get(cluster).filter(|one| !one.message.is_empty()) {
                    let entry = entries.entry(cluster).or_default();
                    entry.compliant.clone_from(&replica.compliant);
                    entry.message = Some(format!("cannot be removed: {}", setback.message));
                    entry.warn = true;
                }
                continue;
            };
            held(seen, replica, &hold, &mut entries);
        }
    }
    entries
}

fn chosen(
    seen: &Observed,
    spread: &Spread<'_>,
    cluster: &str,
    entry: &mut Entry,
    setbacks: &Setbacks,
) {
    if !spread.placed.contains_key(cluster) {
        return;
    }
    let replica = seen.replicas.get(cluster);
    entry.compliant = replica.and_then(|replica| replica.compliant.clone());
    if spread.links.0.iter().any(|link| link.excludes(cluster)) {
        let placing = spread.links.0.iter().filter(|link| !link.binding.restricted);
        let others = placing.filter(|link| link.selects().any(|name| name == cluster));
        entry.remaining = others.map(|link| link.binding.name.clone()).collect();
        entry.remaining.dedup();
    }
    if let Some(setback) = setbacks.get(cluster).filter(|one| !one.message.is_empty()) {
        entry.message = Some(format!("cannot be written: {}", setback.message));
        entry.warn = true;
    } else if replica.is_none() && !seen.clusters.contains_key(cluster) {
        entry.message = Some(format!("there is no ManagedCluster {cluster}"));
    }
    if let Some(said) = replica.filter(|one| !one.deleting).and_then(|one| one.said.as_ref()) {
        entry.message = Some(format!("a template is held by the cluster: {said}"));
        entry.warn = true;
    }
    if let Some(Resolved::Unknown(why) | Resolved::Known { problem: Some(why), .. }) =
        seen.resolved.get(cluster)
    {
        let why: String = why.chars().take(LONGEST).collect();
        entry.message = Some(format!("Failed to resolve templates: {why}"));
        entry.warn = true;
    }
}

/// A replica that is being deleted: whoever holds it, or its cluster, has something to do first.
fn leaving(seen: &Observed, replica: &Replica, entry: &mut Entry) {
    entry.compliant.clone_from(&replica.compliant);
    let slow = replica.deleting_since.is_some_and(|since| seen.now.duration_since(since) >= SLOW);
    entry.warn = slow || replica.said.is_some();
    entry.message = Some(match (&replica.said, slow) {
        (Some(said), _) => format!("being removed, and held by the cluster: {said}"),
        (None, false) => "being removed".to_string(),
        (None, true) => format!(
            "being removed for more than {} s: look at Policy {} on the cluster, and at the \
             finalizers of Policy {}/{} here",
            SLOW.as_secs(),
            replica.name,
            replica.cluster,
            replica.name
        ),
    });
}

fn held<'a>(
    seen: &'a Observed,
    replica: &'a Replica,
    hold: &Hold,
    entries: &mut BTreeMap<&'a str, Entry>,
) {
    let message = match hold {
        Hold::Foreign => return,
        Hold::Unsure(why) | Hold::Unnoticed(why) => {
            let since = seen.unsure_since.unwrap_or(seen.now);
            let long = seen.now.duration_since(since) >= PATIENCE;
            long.then(|| format!("held: {why}; nothing is removed until that is known"))
        }
        Hold::Away => Some(format!(
            "held: the cluster is unreachable and no longer chosen; the policy is removed when it \
             is back, unless it is chosen again, or when somebody deletes Policy {}/{}",
            replica.cluster,
            replica_name(&seen.key)
        )),
        Hold::Back(_) => Some(
            "held: the cluster, or the hub, has just come back; the policy is removed unless the \
             cluster is chosen again"
                .to_string(),
        ),
        Hold::Leaving => Some("held: the cluster leaves the fleet".to_string()),
    };
    let entry = entries.entry(&replica.cluster).or_default();
    let unsure = matches!(hold, Hold::Unsure(_) | Hold::Unnoticed(_));
    entry.warn = matches!(hold, Hold::Away) || (unsure && message.is_some());
    // What is not known to be chosen no more counts as before.
    entry.held = !unsure;
    // Of a cluster out of reach nobody knows.
    entry.compliant = if entry.held { None } else { replica.compliant.clone() };
    entry.message = message;
}

fn status(root: &Root, spread: &Spread<'_>, entries: &BTreeMap<&str, Entry>) -> Option<Action> {
    let placed = spread.links.placed();
    let listed = |link: &&Link<'_>| {
        !link.binding.restricted || link.selects().any(|cluster| placed.contains_key(cluster))
    };
    let placement: Vec<Value> = spread.links.0.iter().filter(listed).map(way).collect();
    let clusters: Vec<Value> = entries.iter().map(|(name, entry)| stands(name, entry)).collect();
    let compliant = together(entries.values().filter(|one| !one.held).map(|one| &one.compliant));
    let mut told = Map::new();
    let mut put = |key: &str, value: Option<Value>| {
        told.insert(key.to_string(), value.unwrap_or_default());
    };
    put("placement", (!placement.is_empty()).then_some(Value::Array(placement)));
    put("status", (!clusters.is_empty()).then_some(Value::Array(clusters)));
    put("compliant", compliant.filter(|_| root.is_spread()).map(Value::from));
    let same = told.iter().all(|(key, value)| match root.status.get(key) {
        Some(before) => before == value,
        None => value.is_null(),
    });
    if same {
        return None;
    }
    let metadata = json!({ "uid": root.uid, "resourceVersion": root.resource_version });
    let patch = json!({ "metadata": metadata, "status": told });
    Some(Action { side: Side::Hub, target: root.target(), write: Write::MergeStatus(patch) })
}

fn way(link: &Link<'_>) -> Value {
    let mut told = Map::new();
    told.insert("placementBinding".to_string(), link.binding.name.clone().into());
    let (field, name) = match link.source {
        Source::Placement(name) => ("placement", name),
        Source::Rule(name) => ("placementRule", name),
    };
    told.insert(field.to_string(), name.clone().into());
    if let Some(set) = link.set {
        told.insert("policySet".to_string(), set.into());
    }
    let left_out: BTreeSet<&str> = link.decided().filter(|name| link.excludes(name)).collect();
    if !left_out.is_empty() {
        let names = left_out.iter().map(|name| json!({ "clusterName": name })).collect();
        told.insert("exclusions".to_string(), Value::Array(names));
    }
    Value::Object(told)
}

fn stands(cluster: &str, entry: &Entry) -> Value {
    let mut told = Map::new();
    told.insert("clustername".to_string(), cluster.into());
    told.insert("clusternamespace".to_string(), cluster.into());
    if let Some(compliant) = &entry.compliant {
        told.insert("compliant".to_string(), compliant.clone().into());
    }
    if !entry.remaining.is_empty() {
        let bindings = entry.remaining.iter().map(|name| json!({ "placementBinding": name }));
        told.insert("remainingBindings".to_string(), Value::Array(bindings.collect()));
    }
    if let Some(message) = &entry.message {
        told.insert("message".to_string(), message.clone().into());
    }
    Value::Object(told)
}

/// One bad one makes all bad, then one that waits, then one of which nothing is known.
pub(super) fn together<'a>(
    all: impl IntoIterator<Item = &'a Option<String>>,
) -> Option<&'static str> {
    let (mut any, mut pending, mut unknown) = (false, false, false);
    for one in all {
        any = true;
        match one.as_deref() {
            Some("NonCompliant") => return Some("NonCompliant"),
            Some("Pending") => pending = true,
            Some("Compliant") => {}
            _ => unknown = true,
        }
    }
    match (any, pending, unknown) {
        (false, ..) | (true, false, true) => None,
        (true, true, _) => Some("Pending"),
        (true, false, false) => Some("Compliant"),
    }
}

/// What the root's status says in a field that is a list.
fn shown<'a>(seen: &'a Observed, field: &str) -> Option<&'a Vec<Value>> {
    seen.root.as_ref()?.status.get(field)?.as_array()
}

fn happened(seen: &Observed, plan: &Plan, done: &[Vec<Outcome>]) -> Vec<Event> {
    let what = format!("Policy {}/{}", seen.key.0, seen.key.1);
    let mut events = vec![];
    let mut removed = false;
    for (action, outcome) in plan.iter().flatten().zip(done.iter().flatten()) {
        if !outcome.is_done() {
            continue;
        }
        let cluster = &action.target.id.namespace;
        match action.write {
            Write::Create(_) => {
                events.push(Event::normal(format!("{what} was propagated to cluster {cluster}")));
            }
            Write::Replace(_) => {
                events.push(Event::normal(format!("{what} was updated for cluster {cluster}")));
            }
            Write::Delete { .. } => removed = true,
            _ => {}
        }
    }
    if removed && seen.root.as_ref().is_some_and(|root| root.disabled) {
        let once = Event::normal(format!("{what} was disabled"));
        if shown(seen, "status").is_some_and(|clusters| !clusters.is_empty()) {
            events.push(once);
        }
    }
    events
}

/// What is said of clusters, and of the policy itself, and the events of those that are owed one.
fn said(seen: &Observed, entries: &BTreeMap<&str, Entry>) -> (Told, Vec<Event>) {
    let what = format!("Policy {}/{}", seen.key.0, seen.key.1);
    let (mut told, mut events) = (Told::new(), vec![]);
    for (cluster, entry) in entries {
        let Some(message) = &entry.message else { continue };
        let before = shown(seen, "status")
            .into_iter()
            .flatten()
            .find(|one| one.get("clustername").and_then(Value::as_str) == Some(cluster));
        let before = before.and_then(|one| one.get("message")?.as_str());
        let there = before == Some(message);
        let said = Said::next(seen.told.get(*cluster), message, entry.warn, there);
        let owed = matches!(said, Said::Owed { .. });
        told.insert(cluster.to_string(), said);
        if !owed {
            continue;
        }
        let text = match message.strip_prefix("Failed to resolve templates: ") {
            Some(why) => format!("Failed to resolve templates for cluster {cluster}: {why}"),
            None => format!("{what} on cluster {cluster}: {message}"),
        };
        events.push(Event::warning(text, Some(cluster.to_string())));
    }
    if let Some(root) = seen.root.as_ref().filter(|root| root.is_too_long()) {
        let text =
            "the combined length of the policy namespace and name cannot exceed 62 characters";
        let text = format!("{what} goes nowhere: {text}");
        let said = Said::next(seen.told.get(""), &text, true, !root.status.is_null());
        if matches!(said, Said::Owed { .. }) {
            events.push(Event::warning(text, None));
        }
        told.insert(String::new(), said);
    }
    (told, events)
}
