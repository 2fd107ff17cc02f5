//! Which plan somebody agreed to, and whether it is still the one that would be carried out.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use core::fmt;

use cleat_api::leftoverrecord::LeftObject;
use cleat_api::removalpreview::{PreviewedObject, RemovalPreviewStatus};
use serde_json::{Value, json};

use crate::digest::digest;

/// One cluster's part of a plan. Without an answer the cluster's part is unknown.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    pub cluster: String,
    pub answer: Option<RemovalPreviewStatus>,
    /// Of a cluster that did not answer: what the hub believes to be there.
    pub believed: Believed,
}

/// What the hub believes to be on a cluster, short enough to be written on a question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Believed {
    count: usize,
    digest: String,
}

impl Believed {
    pub fn of(objects: &[LeftObject]) -> Self {
        let mut all: Vec<Value> = objects
            .iter()
            .map(|one| {
                json!([one.group, one.resource, one.namespace, one.name, one.uid, one.stays])
            })
            .collect();
        all.sort_by_key(|one| one.to_string());
        Self { count: all.len(), digest: digest(&Value::Array(all)).chars().take(16).collect() }
    }

    /// From how it is written.
    pub fn parse(text: &str) -> Option<Self> {
        let (count, digest) = text.split_once(' ')?;
        Some(Self { count: count.parse().ok()?, digest: digest.to_string() })
    }
}

impl fmt::Display for Believed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.count, self.digest)
    }
}

/// Stands for everything in a plan that matters: what is to be done, which incarnations go or stay, and
/// which go along with them that nobody listed; of clusters that did not answer, that they did not,
/// and what the hub believes to be there. Obstacles do not count: they end by themselves.
///
/// `subject` tells apart what happens to do the same: a plan is good for what it was made of only.
pub fn plan_hash(subject: &str, parts: &[Part]) -> String {
    let parts: BTreeMap<&str, Value> =
        parts.iter().map(|part| (part.cluster.as_str(), of_cluster(part))).collect();
    let mut hash = digest(&json!([subject, parts]));
    hash.truncate(16);
    hash
}

fn of_cluster(part: &Part) -> Value {
    let Some(answer) = &part.answer else { return json!(["unknown", part.believed.to_string()]) };
    json!({
        "problems": answer.problems,
        "more": answer.more,
        "digest": answer.digest,
        "objects": rows(&answer.objects),
    })
}

/// Stands for what would become of all these objects.
pub(super) fn weight(objects: &[PreviewedObject]) -> String {
    digest(&rows(objects)).chars().take(16).collect()
}

/// Stands for which objects go along; empty if none does.
pub(super) fn incarnations(mut uids: Vec<&str>) -> String {
    if uids.is_empty() {
        return String::new();
    }
    uids.sort_unstable();
    digest(&json!(uids)).chars().take(16).collect()
}

/// What matters of objects.
fn rows(objects: &[PreviewedObject]) -> Value {
    let row = |one: &PreviewedObject| {
        json!([
            one.verdict,
            one.group,
            one.resource,
            one.namespace,
            one.name,
            one.uid,
            one.takes_along,
            one.along_digest,
        ])
    };
    objects.iter().map(row).collect()
}

/// What is different now, one line each, at most `most` of them.
pub fn changes(before: &[Part], now: &[Part], most: usize) -> Vec<String> {
    let mut changes = spoken(before, now);
    let (before, now) = (by_object(before), by_object(now));
    for (key, all) in &now {
        match before.get(key) {
            None => changes.push(format!("{key}: new: {}", told(all))),
            Some(old) if told(old) != told(all) => {
                changes.push(format!("{key}: was: {}; now: {}", told(old), told(all)));
            }
            Some(old) if along(old) != along(all) => {
                let (old, now) = (effects(old), effects(all));
                changes.push(format!("{key}: takes others along: was: {old}; now: {now}"));
            }
            Some(_) => {}
        }
    }
    for (key, old) in before.iter().filter(|(key, _)| !now.contains_key(*key)) {
        changes.push(format!("{key}: was: {}; now: not there", told(old)));
    }
    changes.sort();
    let more = changes.len().saturating_sub(most);
    changes.truncate(most);
    if more > 0 {
        changes.push(format!("and {more} more"));
    }
    changes
}

/// Which clusters have begun or ceased to answer, are believed to have something else by now, or tell
/// more or less than before.
fn spoken(before: &[Part], now: &[Part]) -> Vec<String> {
    let mut changes = Vec::new();
    for one in now {
        let Some(old) = before.iter().find(|old| old.cluster == one.cluster) else { continue };
        let cluster = &one.cluster;
        match (&old.answer, &one.answer) {
            (None, Some(_)) => {
                changes.push(format!("{cluster}: did not answer then, and does now"))
            }
            (Some(_), None) => changes.push(format!("{cluster}: answered then, and does not now")),
            (None, None) if old.believed != one.believed => {
                let (then, now) = (old.believed.count, one.believed.count);
                changes.push(format!(
                    "{cluster}: does not answer, and the hub believes other objects to be there: \
                     {then} then, {now} now"
                ));
            }
            (None, None) => {}
            (Some(then), Some(now)) => changes.extend(untold(cluster, then, now)),
        }
    }
    changes
}

/// What a cluster could not tell, or did not list.
fn untold(cluster: &str, then: &RemovalPreviewStatus, now: &RemovalPreviewStatus) -> Vec<String> {
    let new = now.problems.iter().filter(|problem| !then.problems.contains(problem));
    let mut changes: Vec<String> =
        new.map(|problem| format!("{cluster}: unknown now: {problem}")).collect();
    let old = then.problems.iter().filter(|problem| !now.problems.contains(problem));
    changes.extend(old.map(|problem| format!("{cluster}: no more unknown: {problem}")));
    if then.more != now.more {
        let (then, now) = (then.more, now.more);
        changes.push(format!("{cluster}: more objects than are listed: {then} then, {now} now"));
    } else if then.digest != now.digest {
        changes.push(format!("{cluster}: of all its objects, listed or not, some are others now"));
    }
    changes
}

/// What is said of each object, by each that says something of it.
fn by_object(parts: &[Part]) -> BTreeMap<String, Vec<&PreviewedObject>> {
    let mut all: BTreeMap<String, Vec<&PreviewedObject>> = BTreeMap::new();
    for part in parts {
        for one in part.answer.iter().flat_map(|answer| &answer.objects) {
            let kind = if one.group.is_empty() {
                one.resource.clone()
            } else {
                format!("{}.{}", one.resource, one.group)
            };
            let key = format!("{}: {kind} {}/{}", part.cluster, one.namespace, one.name);
            all.entry(key).or_default().push(one);
        }
    }
    all
}

/// Which objects go along, by each that says something of an object.
fn along<'a>(all: &[&'a PreviewedObject]) -> Vec<&'a str> {
    all.iter().map(|one| one.along_digest.as_str()).collect()
}

fn effects(all: &[&PreviewedObject]) -> String {
    let each = all.iter().flat_map(|one| &one.effects).map(|effect| effect.as_str());
    each.collect::<Vec<_>>().join(", ")
}

fn told(all: &[&PreviewedObject]) -> String {
    let one = |one: &&PreviewedObject| {
        let along = match one.takes_along {
            along if along > 0 => format!(" with {along} more"),
            _ => String::new(),
        };
        format!("{} uid {}{along}", one.verdict.as_str(), one.uid)
    };
    match all {
        [single] => one(single),
        several => {
            let each = several.iter().map(|told| format!("{} by {}", one(told), told.source));
            each.collect::<Vec<_>>().join(", ")
        }
    }
}
