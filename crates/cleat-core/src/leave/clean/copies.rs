//! What stands for policies on a cluster whose record is worked off: their copies, what their templates
//! became, and what the agent made for them.
//!
//! The copy goes first and lets go of its templates, so that nobody makes them anew; a template goes
//! when everything it made is on record, as kept if it says so, and takes nothing with it; what it made
//! goes afterwards, as the record says. Whoever was not told by uid is known by what it bears.

use alloc::borrow::ToOwned as _;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use cleat_api::configurationpolicy::FINALIZER;
use cleat_api::leftoverrecord::{LeftObject, LeftoverRecord, Part};
use cleat_api::manifestwork::LEAVE_FINALIZER;
use cleat_api::policy::GROUP;
use cleat_api::policy::name::{CLUSTER_NAME, PARENT_POLICY, ROOT_POLICY};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{Fate, Look, Observed, deletion, id, owners};
use crate::leave::ground::{MADE_FOR, is_marked};
use crate::leave::record;
use crate::policy_sync::HOLD;
use crate::work::observed::Owner;
use crate::write::{Action, Propagation, Write};

/// The copies on record whose templates are looked for: by namespace and name.
pub fn copies_on_record(records: &[LeftoverRecord]) -> BTreeSet<(String, String)> {
    let all = records.iter().flat_map(|one| &one.spec.objects);
    let all = all.filter(|one| one.part == Some(Part::Copy));
    all.map(|one| (one.namespace.clone(), one.name.clone())).collect()
}

/// When it goes, before everything else.
pub(super) fn rank(part: Part) -> Option<u16> {
    match part {
        Part::Copy => Some(0),
        Part::Template => Some(1),
        Part::Key | Part::Place | Part::Agent => None,
    }
}

/// On a template that was made to take nothing with it: what becomes of what it made is on record, and
/// no more for the template to say.
const DISARMED: &str = "cleat.dev/disarmed";

/// How many ranks that are.
pub(super) const RANKS: u16 = 2;

/// Why it is not for this record to remove, if so; `known` says that its uid is the one on record.
pub(super) fn spared(
    seen: &Observed,
    object: &LeftObject,
    part: Part,
    live: &Value,
    known: bool,
) -> Option<Fate> {
    let stays = |why: &str| Some(Fate::Stays(why.to_string()));
    match part {
        Part::Copy if known || is_copy(seen, object, live) => None,
        Part::Copy => stays("it bears no mark of ours, or is younger than the record"),
        Part::Template => match owners(live).iter().find(|owner| is_policy(owner)) {
            Some(owner) if !is_by(seen, object, owner) => {
                Some(Fate::Stays(format!("policy {} holds it", owner.name)))
            }
            Some(_) => None,
            // Its copy is gone and let go of it, or somebody took the owner away.
            None if label(live, PARENT_POLICY) == Some(&*object.source) => None,
            None => stays("it bears no mark of ours any more"),
        },
        Part::Key | Part::Place if known => None,
        // One that was there before the agent is nobody's leftover: ours is not there.
        Part::Key | Part::Place if !is_marked(live) => Some(Fate::Gone),
        Part::Key | Part::Place if is_younger(seen, object, live) => {
            stays("it is younger than the record")
        }
        Part::Key | Part::Place => None,
        Part::Agent => stays(AGENTS),
    }
}

/// Whoever asks for it takes it away afterwards, in an order of its own.
const AGENTS: &str = "it is the agent's own";

/// Whether something came after the record that lists it by name. The cluster may have joined another
/// hub since, whose agent makes the same things with the same labels.
fn is_younger(seen: &Observed, object: &LeftObject, live: &Value) -> bool {
    let lists = |record: &&LeftoverRecord| {
        let mut all = record.spec.objects.iter();
        all.any(|one| one.part == object.part && id(one) == id(object))
    };
    let records = seen.records.iter().filter(lists);
    let written = records.filter_map(|one| Some(one.metadata.creation_timestamp.as_ref()?.0)).max();
    let made = live.pointer("/metadata/creationTimestamp").and_then(Value::as_str);
    let made = made.and_then(|made| made.parse::<Timestamp>().ok());
    written.is_some_and(|written| made.is_none_or(|made| made > written))
}

/// Whether something by the name of a copy is one. Where a cluster is a hub itself it has replicas of
/// its own, and those are held.
fn is_copy(seen: &Observed, object: &LeftObject, live: &Value) -> bool {
    let held = finalizers(live).iter().any(|one| *one == HOLD || *one == LEAVE_FINALIZER);
    !held
        && !is_younger(seen, object, live)
        && label(live, ROOT_POLICY) == Some(&*object.source)
        && label(live, CLUSTER_NAME) == Some(&*object.namespace)
}

fn is_policy(owner: &Owner) -> bool {
    owner.kind == "Policy" && owner.api_version.split('/').next() == Some(GROUP)
}

/// Whether the policy that owns a template is the one on record.
fn is_by(seen: &Observed, template: &LeftObject, owner: &Owner) -> bool {
    if owner.name != template.source {
        return false;
    }
    let recorded = seen.records.iter().flat_map(|one| &one.spec.objects);
    let copies: Vec<&LeftObject> = recorded
        .filter(|one| one.part == Some(Part::Copy) && one.source == template.source)
        .filter(|one| one.namespace == template.namespace)
        .collect();
    if copies.iter().any(|one| !one.uid.is_empty()) {
        return copies.iter().any(|one| one.uid == owner.uid);
    }
    let Some(copy) = copies.first() else { return false };
    match seen.live.get(&id(copy)) {
        Some(Look::Present(live)) => {
            let uid = live.pointer("/metadata/uid").and_then(Value::as_str);
            uid == Some(&*owner.uid) && is_copy(seen, copy, live)
        }
        Some(Look::Absent) => true,
        Some(Look::Unknown(_)) | None => false,
    }
}

/// What a template lists as its own and no record has, or one has as going though the template says to
/// keep it; or why that is not known.
pub(super) fn unwritten<'a>(
    seen: &'a Observed,
    template: &LeftObject,
) -> Result<Vec<&'a LeftObject>, String> {
    match seen.made.get(&id(template)) {
        Some(Ok(made)) => {
            let mut unwritten = record::missing(&seen.records, made.iter());
            if !is_disarmed(seen, template) {
                unwritten.extend(record::understated(&seen.records, made.iter()));
            }
            Ok(unwritten)
        }
        Some(Err(why)) => Err(format!("what it made cannot be told: {why}")),
        None => Err("what it made was not looked at".to_string()),
    }
}

/// Whether what a template says of what it made is only what we made of it.
fn is_disarmed(seen: &Observed, template: &LeftObject) -> bool {
    let Some(Look::Present(live)) = seen.live.get(&id(template)) else { return false };
    let annotations = live.pointer("/metadata/annotations");
    annotations.is_some_and(|all| all.get(DISARMED).is_some())
}

/// Writes down what templates made that are to go, and what they say to keep of it, where nobody had
/// told the hub.
pub(super) fn write_down(seen: &Observed, fates: &[(LeftObject, Fate)]) -> Vec<Action> {
    // By the leave whose record lists the policy.
    let mut more: BTreeMap<&str, BTreeSet<&LeftObject>> = BTreeMap::new();
    for (template, fate) in fates {
        if template.part != Some(Part::Template) || fate.is_settled() {
            continue;
        }
        let lists = |record: &&LeftoverRecord| {
            let mut objects = record.spec.objects.iter();
            objects.any(|one| one.part.is_some() && one.source == template.source)
        };
        let (Some(record), Ok(made)) = (seen.records.iter().find(lists), unwritten(seen, template))
        else {
            continue;
        };
        more.entry(&record.spec.cluster_uid).or_default().extend(made);
    }
    // One after the other: both write the same records.
    let said: Vec<&LeftObject> = more.values().flatten().copied().collect();
    let mut actions = record::raise(&seen.records, &said);
    if !actions.is_empty() {
        return actions;
    }
    for (uid, objects) in more {
        let parts = seen.records.iter().filter(|one| one.spec.cluster_uid == uid);
        let parts: Vec<&LeftoverRecord> = parts.collect();
        let objects: Vec<&LeftObject> = objects.into_iter().collect();
        if let Some(first) = parts.first() {
            actions.extend(record::append(&first.spec, &parts, &objects));
        }
    }
    actions
}

/// Takes something away that is to go.
pub(super) fn removed(part: Part, live: &Value) -> Option<Write> {
    match part {
        // Nobody looks after the templates of a copy that is going, and the collector spares them.
        Part::Copy => deletion(live, Propagation::Orphan),
        Part::Template => disarmed(live).or_else(|| deletion(live, Propagation::Background)),
        Part::Key | Part::Place => deletion(live, Propagation::Background),
        Part::Agent => None,
    }
}

/// A template made to take nothing with it. `None`: it takes nothing.
pub(super) fn disarmed(live: &Value) -> Option<Write> {
    let behavior = live.pointer("/spec/pruneObjectBehavior").and_then(Value::as_str);
    let prunes = behavior.is_some_and(|behavior| behavior != "None");
    let finalizers = finalizers(live);
    let others: Vec<&str> = finalizers.iter().copied().filter(|one| *one != FINALIZER).collect();
    let held = others.len() < finalizers.len();
    if !prunes && !held {
        return None;
    }
    let mut metadata = Map::new();
    for field in ["uid", "resourceVersion"] {
        let value = live.pointer("/metadata").and_then(|own| own.get(field))?;
        metadata.insert(field.to_owned(), value.clone());
    }
    metadata.insert("annotations".to_owned(), json!({ DISARMED: "" }));
    if held {
        metadata.insert("finalizers".to_owned(), json!(others));
    }
    let mut patch = Map::new();
    patch.insert("metadata".to_owned(), Value::Object(metadata));
    if prunes {
        patch.insert("spec".to_owned(), json!({ "pruneObjectBehavior": "None" }));
    }
    Some(Write::Merge(Value::Object(patch)))
}

/// Takes our label off what stays, unless it is another's, or policies of today need it.
pub(super) fn unlabelled(seen: &Observed, object: &LeftObject, live: &Value) -> Option<Write> {
    let others = object.uid.is_empty() && is_younger(seen, object, live);
    if !is_marked(live) || others || !seen.policies.is_empty() {
        return None;
    }
    Some(Write::Merge(json!({ "metadata": {
        "uid": live.pointer("/metadata/uid")?,
        "resourceVersion": live.pointer("/metadata/resourceVersion")?,
        "labels": { MADE_FOR: null },
    }})))
}

fn label<'a>(live: &'a Value, name: &str) -> Option<&'a str> {
    live.pointer("/metadata/labels")?.get(name)?.as_str()
}

fn finalizers(live: &Value) -> Vec<&str> {
    let all = live.pointer("/metadata/finalizers").and_then(Value::as_array);
    all.into_iter().flatten().filter_map(Value::as_str).collect()
}
