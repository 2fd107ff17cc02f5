//! What templates made on the cluster, what stays of it when the cluster leaves, and what stands in
//! the way of their end: told to the hub, which writes down what is left before anything is forgotten.

use alloc::borrow::ToOwned;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use cleat_api::configurationpolicy::RelatedObject;
use cleat_api::leftoverrecord::{LeftObject, Part, Stays};
use cleat_api::managedcluster::RemoveStrategy;
use cleat_api::manifestwork::{BlockedObject, Removal, ResourceCount};
use cleat_api::policy::name::PARENT_POLICY;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use super::history::of_object;
use super::observed::{Copy, Made, Marked, Observed, Policy};
use super::plan::{hub_side, is_unwritten, target};
use crate::id::{Id, Target};
use crate::leave::ground::is_ground;
use crate::leave::record;
use crate::policy::observed::{Kind, KindName};
use crate::work::contents::HOLDS_FOREIGN;
use crate::write::{Action, Side, Write};

/// How many objects are told of one policy: the status that tells them has to be stored.
const MOST: usize = 2500;

/// Why something stays though the cluster is to be emptied.
const NOT_PRUNED: &str = "kept by pruneObjectBehavior None";
const ONLY_INFORMS: &str = "kept because its policy only informs";
const NEEDLESS: &str = "kept by removeStrategy Needless";

impl Marked {
    /// What an object says that is marked as a template of a policy. Kinds of others may say less.
    pub fn read(target: Target, kind: String, object: &Value) -> Self {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let behavior = text("/spec/pruneObjectBehavior").unwrap_or("None");
        let action = text("/spec/remediationAction").unwrap_or_default();
        let enforces = action.eq_ignore_ascii_case("enforce");
        let keeps = match behavior {
            "DeleteAll" | "DeleteIfCreated" if enforces => None,
            "DeleteAll" | "DeleteIfCreated" => Some(ONLY_INFORMS),
            _ => Some(NOT_PRUNED),
        };
        let all = object.pointer("/status/relatedObjects").and_then(Value::as_array);
        let all = all.into_iter().flatten();
        let all = all.filter_map(|one| serde_json::from_value::<RelatedObject>(one.clone()).ok());
        let everything = behavior == "DeleteAll" && enforces;
        let finalizers = object.pointer("/metadata/finalizers").and_then(Value::as_array);
        let finalizers = finalizers.into_iter().flatten().filter_map(Value::as_str);
        let deleting = text("/metadata/deletionTimestamp");
        let labels = object.pointer("/metadata/labels");
        let policy = labels.and_then(|labels| labels.get(PARENT_POLICY)).and_then(Value::as_str);
        let told = deleting.and(policy).map(|policy| of_object(policy, object));
        Self {
            told: told.unwrap_or_default(),
            uid: text("/metadata/uid").unwrap_or_default().to_owned(),
            resource_version: text("/metadata/resourceVersion").unwrap_or_default().to_owned(),
            deleting: deleting.is_some(),
            since: deleting.and_then(|time| time.parse().ok()),
            finalizers: finalizers.map(ToOwned::to_owned).collect(),
            prunes: behavior != "None",
            keeps,
            made: all.filter_map(|one| made(one, everything)).collect(),
            says: text("/status/compliancyDetails/0/conditions/0/message").map(ToOwned::to_owned),
            target,
            kind,
        }
    }
}

/// What a policy only found and changed was there before it, and is nobody's leftover; unless the
/// policy would have deleted that too.
fn made(entry: RelatedObject, everything: bool) -> Option<Made> {
    let known = entry.properties?;
    let ours = known.created_by_policy == Some(true);
    let metadata = entry.object.metadata;
    if !(ours || everything) || metadata.name.is_empty() || metadata.name == "-" {
        return None;
    }
    let kind = KindName { api_version: entry.object.api_version, kind: entry.object.kind };
    let kept = Some(entry.reason).filter(|reason| reason.starts_with(HOLDS_FOREIGN));
    Some(Made { kind, namespace: metadata.namespace, name: metadata.name, uid: known.uid, kept })
}

/// Which kinds have to be known to say what the templates made.
pub fn made_kinds(marked: &[Marked]) -> BTreeSet<KindName> {
    marked.iter().flat_map(|one| &one.made).map(|made| made.kind.clone()).collect()
}

/// Everything a template made that is there. `None`: it cannot be told.
fn made_by(marked: &Marked, resources: &BTreeMap<KindName, Kind>) -> Option<Vec<LeftObject>> {
    let mut all = Vec::new();
    for made in &marked.made {
        let served = match resources.get(&made.kind)? {
            Kind::Served(served) => served,
            // Nothing can be there.
            Kind::Absent => continue,
            Kind::Unknown(_) => return None,
        };
        let namespace = if served.namespaced { made.namespace.as_str() } else { "" };
        all.push(LeftObject {
            group: served.group.clone(),
            version: served.version.clone(),
            resource: served.resource.clone(),
            namespace: namespace.to_owned(),
            name: made.name.clone(),
            uid: made.uid.clone(),
            why: made.kept.clone().unwrap_or_default(),
            unmarked: true,
            ..LeftObject::default()
        });
    }
    Some(all)
}

/// Everything the templates made that is there, with the template that did. `None`: it cannot be told.
fn everything(seen: &Observed) -> Option<Vec<(&Marked, LeftObject)>> {
    let mut all = Vec::new();
    for marked in seen.marked.as_ref()? {
        let made = made_by(marked, &seen.resources)?.into_iter();
        all.extend(made.map(|object| (marked, object)));
    }
    Some(all)
}

/// What a template made, and whether it stays when the template is deleted. `None`: it cannot be told.
pub fn listed(marked: &Marked, resources: &BTreeMap<KindName, Kind>) -> Option<Vec<LeftObject>> {
    let all = made_by(marked, resources)?.into_iter();
    Some(all.map(|object| declared(marked, object)).collect())
}

fn declared(marked: &Marked, object: LeftObject) -> LeftObject {
    let why = marked.keeps.unwrap_or_default().to_owned();
    let stays = marked.keeps.map(|_| Stays::Declared);
    LeftObject { why, stays, ..object }
}

/// What the templates made, for the hub to know in case the cluster is lost.
pub(crate) fn objects(seen: &Observed) -> Option<Vec<LeftObject>> {
    let all = everything(seen)?.into_iter().map(|(marked, object)| declared(marked, object));
    let all: BTreeSet<LeftObject> = all.collect();
    Some(all.into_iter().take(MOST).collect())
}

/// What stands for the policy on the cluster, for the same case: its copy, and what its templates
/// became. `None`: it cannot be told.
pub(crate) fn copies(seen: &Observed) -> Option<Vec<LeftObject>> {
    let local = match &seen.local {
        Copy::Unknown(_) => return None,
        Copy::Present(local) if !seen.place.own_hub => Some(local),
        Copy::Present(_) | Copy::Absent => None,
    };
    let copy = local.map(|local| part(target(seen, Side::Cluster), &local.uid, Part::Copy));
    let templates = seen.marked.as_ref()?.iter();
    let templates = templates.map(|one| part(one.target.clone(), &one.uid, Part::Template));
    let all: BTreeSet<LeftObject> = copy.into_iter().chain(templates).collect();
    Some(all.into_iter().take(MOST).collect())
}

fn part(Target { version, id }: Target, uid: &str, part: Part) -> LeftObject {
    let Id { group, resource, namespace, name } = id;
    LeftObject {
        group,
        version,
        resource,
        namespace,
        name,
        uid: uid.to_owned(),
        part: Some(part),
        ..LeftObject::default()
    }
}

fn key(object: &LeftObject) -> [String; 5] {
    let LeftObject { group, resource, namespace, name, uid, .. } = object;
    [group, resource, namespace, name, uid].map(Clone::clone)
}

/// What stays of what the templates made. `None`: it cannot be told.
///
/// What was told of templates that are gone is as they left it; what becomes of the others may still
/// change with the strategy.
fn staying<'a>(
    seen: &Observed,
    strategy: RemoveStrategy,
    told: impl Iterator<Item = &'a LeftObject>,
) -> Option<Vec<LeftObject>> {
    let mut left: BTreeMap<[String; 5], LeftObject> =
        told.map(|object| (key(object), object.clone())).collect();
    for (marked, object) in everything(seen)? {
        let (why, stays) = match (strategy, marked.keeps) {
            (_, Some(why)) => (why.to_owned(), Stays::Declared),
            (RemoveStrategy::Needless, None) => (NEEDLESS.to_owned(), Stays::Declared),
            (RemoveStrategy::Required, None) if object.why.is_empty() => {
                left.remove(&key(&object));
                continue;
            }
            (RemoveStrategy::Required, None) => (object.why.clone(), Stays::NotOurs),
        };
        // Who is let go of does not prune any more; why it stays was said before.
        let entry = left.entry(key(&object));
        entry.or_insert_with(|| LeftObject { why, stays: Some(stays), ..object });
    }
    let left: BTreeSet<LeftObject> = left.into_values().collect();
    Some(left.into_iter().take(MOST).collect())
}

/// What stays of a policy that the hub does not have any more, while its cluster leaves: there is no
/// status of a replica to tell it in, so the cluster's own has to. `None`: it is not so, or it cannot be
/// told.
pub fn stranded(seen: &Observed) -> Option<Vec<LeftObject>> {
    let strategy = seen.leaving.as_ref().ok().copied().flatten()?;
    let Copy::Absent = seen.replica else { return None };
    let ours = |one: &&LeftObject| one.unmarked && one.source == seen.name && !is_ground(one);
    let left = staying(seen, strategy, seen.heard.iter().filter(ours))?.into_iter();
    Some(left.map(|object| LeftObject { source: seen.name.clone(), ..object }).collect())
}

/// Whether the hub has yet to hear what is stranded; until then nothing is let go of here.
pub fn is_untold(seen: &Observed) -> bool {
    let leaves = matches!(seen.leaving, Ok(Some(_))) && matches!(seen.replica, Copy::Absent);
    let told = || stranded(seen).is_some_and(|left| record::are_told(&seen.heard, &left));
    leaves && !told()
}

/// What the hub is to know of a policy that is taken away because its cluster leaves. `None`: it does
/// not, or it cannot be told.
pub(crate) fn removal(seen: &Observed, replica: &Policy) -> Option<Removal> {
    let strategy = seen.leaving.as_ref().ok().copied().flatten()?;
    let marked = seen.marked.as_ref()?;
    let told = replica.status.removal.iter().flat_map(|removal| &removal.left);
    let left = staying(seen, strategy, told)?;
    let mut remaining: BTreeMap<String, i64> = BTreeMap::new();
    for Marked { target: Target { id, .. }, .. } in marked {
        *remaining.entry(format!("{}.{}", id.resource, id.group)).or_default() += 1;
    }
    let remaining = remaining.into_iter();
    let mut blocked = blocked(seen, marked);
    let gone = matches!(seen.local, Copy::Absent) || seen.place.own_hub;
    if marked.is_empty() && gone && replica.deleting && is_unwritten(replica) {
        blocked.push(record::awaited(replica.status.removal.as_ref(), seen.now));
    }
    Some(Removal {
        remaining: remaining.map(|(resource, count)| ResourceCount { resource, count }).collect(),
        blocked,
        left,
    })
}

/// What is on its way out and not gone. How long is too long, the hub decides.
fn blocked(seen: &Observed, marked: &[Marked]) -> Vec<BlockedObject> {
    let named = |id: &Id| format!("{} {}/{}", id.resource, id.namespace, id.name);
    let templates = marked.iter().filter(|one| one.deleting).map(|one| {
        let said = one.says.clone().filter(|said| !said.is_empty());
        let why = said.unwrap_or_else(|| held_by(&one.finalizers));
        BlockedObject {
            object: named(&one.target.id),
            why,
            refused: false,
            since: one.since.map(Time),
        }
    });
    let local = seen.local.policy().filter(|local| local.deleting && !seen.place.own_hub);
    let local = local.map(|local| BlockedObject {
        object: named(&target(seen, Side::Cluster).id),
        why: held_by(&local.finalizers),
        refused: false,
        since: deleted_at(&local.object).map(Time),
    });
    templates.chain(local).collect()
}

fn held_by(finalizers: &[String]) -> String {
    match finalizers {
        [] => "terminating".to_owned(),
        held => format!("held by {}", held.join(", ")),
    }
}

fn deleted_at(object: &Value) -> Option<Timestamp> {
    object.pointer("/metadata/deletionTimestamp")?.as_str()?.parse().ok()
}

/// Tells the hub what stays, if it does not know.
pub(crate) fn tell(seen: &Observed, replica: &Policy, removal: &Removal) -> Option<Action> {
    let known = replica.status.removal.as_ref();
    if known.is_some_and(|known| known.left == removal.left) {
        return None;
    }
    let patch = json!({
        "metadata": { "uid": replica.uid, "resourceVersion": replica.resource_version },
        "status": { "removal": removal },
    });
    let side = hub_side(seen);
    Some(Action { side, target: target(seen, side), write: Write::MergeStatus(patch) })
}

/// Templates that would take something with them, made not to. Whoever looks after them, lets go of
/// them then and touches nothing.
pub(crate) fn release(marked: &[Marked]) -> Vec<Action> {
    let going = marked.iter().filter(|one| one.prunes);
    let release = |one: &Marked| {
        let patch = json!({
            "metadata": { "uid": one.uid, "resourceVersion": one.resource_version },
            "spec": { "pruneObjectBehavior": "None" },
        });
        let (target, write) = (one.target.clone(), Write::Merge(patch));
        Action { side: Side::Cluster, target, write }
    };
    going.map(release).collect()
}
