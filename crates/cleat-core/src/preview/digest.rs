//! Which plan somebody agreed to, and whether it is still the one that would be carried out.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use cleat_api::removalpreview::{PreviewedObject, RemovalPreviewStatus};
use serde_json::{Value, json};

use crate::digest::digest;

/// One cluster's part of a plan. Without an answer the cluster's part is unknown.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    pub cluster: String,
    pub answer: Option<RemovalPreviewStatus>,
}

/// Stands for everything in a plan that matters: what is to be done, which incarnations go or stay, and
/// how much goes along with them that nobody listed. Obstacles do not count: they end by themselves.
///
/// `subject` tells apart what happens to do the same: a plan is good for what it was made of only.
pub fn plan_hash(subject: &str, parts: &[Part]) -> String {
    let parts: BTreeMap<&str, Value> =
        parts.iter().map(|part| (part.cluster.as_str(), weight(part))).collect();
    let mut hash = digest(&json!([subject, parts]));
    hash.truncate(16);
    hash
}

fn weight(part: &Part) -> Value {
    let Some(answer) = &part.answer else { return json!("unknown") };
    json!({
        "problems": answer.problems,
        "more": answer.more,
        "objects": answer.objects.iter().map(|one| json!([
            one.verdict, one.group, one.resource, one.namespace, one.name, one.uid, one.takes_along,
        ])).collect::<Vec<Value>>(),
    })
}

/// What is different now, one line each, at most `most` of them.
pub fn changes(before: &[Part], now: &[Part], most: usize) -> Vec<String> {
    let (before, now) = (by_object(before), by_object(now));
    let mut changes = Vec::new();
    for (key, one) in &now {
        match before.get(key) {
            None => changes.push(format!("{key}: new: {}", told(one))),
            Some(old) if told(old) != told(one) => {
                changes.push(format!("{key}: was: {}; now: {}", told(old), told(one)));
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

#[derive(Clone, Copy)]
enum Entry<'a> {
    Object(&'a PreviewedObject),
    Silence,
}

fn by_object(parts: &[Part]) -> BTreeMap<String, Entry<'_>> {
    let mut all = BTreeMap::new();
    for part in parts {
        let Some(answer) = &part.answer else {
            all.insert(part.cluster.clone(), Entry::Silence);
            continue;
        };
        for one in &answer.objects {
            let kind = if one.group.is_empty() {
                one.resource.clone()
            } else {
                format!("{}.{}", one.resource, one.group)
            };
            let key = format!("{}: {kind} {}/{}", part.cluster, one.namespace, one.name);
            all.insert(key, Entry::Object(one));
        }
    }
    all
}

fn told(entry: &Entry<'_>) -> String {
    match entry {
        Entry::Silence => "no answer".into(),
        Entry::Object(one) if one.takes_along > 0 => {
            format!("{} uid {} with {} more", one.verdict.as_str(), one.uid, one.takes_along)
        }
        Entry::Object(one) => format!("{} uid {}", one.verdict.as_str(), one.uid),
    }
}
