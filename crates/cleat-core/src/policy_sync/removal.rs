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
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::gone;
use super::history::of_object;
use super::observed::{Copy, Made, Marked, Observed, Policy};
use super::plan::{hub_side, is_unwritten, target};
use crate::id::{Id, Target};
use crate::leave::ground::is_ground;
use crate::leave::record;
use crate::policy::observed::{Kind, KindName};
use crate::work::contents::HOLDS_FOREIGN;
use crate::work::trouble::TroubleKind;
use crate::write::{Action, Side, Write};

/// How many objects are told of one policy: the status that tells them has to be stored.
pub(super) const MOST: usize = 2500;

/// What is waited for while nobody can say what stays: another wait than that for the hub to write it
/// down, and since another moment.
const UNSAID: &str = "an account of what stays of it";

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
            made: all_made(object.pointer("/status/relatedObjects"), everything),
            says: text("/status/compliancyDetails/0/conditions/0/message").map(ToOwned::to_owned),
            target,
            kind,
        }
    }
}

/// What a template lists as its own. One entry that cannot be read may be about anything.
fn all_made(listed: Option<&Value>, everything: bool) -> Result<Vec<Made>, String> {
    let listed = listed.map(<Option<Vec<RelatedObject>>>::deserialize).transpose();
    let listed = listed.map_err(|error| {
        format!("its status.relatedObjects cannot be read ({error}): repair it")
    })?;
    let listed = listed.flatten().unwrap_or_default().into_iter();
    Ok(listed.filter_map(|one| made(one, everything)).collect())
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
    let all = marked.iter().flat_map(|one| &one.made).flatten();
    all.map(|made| made.kind.clone()).collect()
}

/// Everything a template made that is there, or why that cannot be told and what to do about it.
fn made_by(
    marked: &Marked,
    resources: &BTreeMap<KindName, Kind>,
) -> Result<Vec<LeftObject>, String> {
    let Id { resource, namespace, name, .. } = &marked.target.id;
    let template = format!("{resource} {namespace}/{name}");
    let mut all = Vec::new();
    for made in marked.made.as_ref().map_err(|why| format!("{template}: {why}"))? {
        let KindName { api_version, kind } = &made.kind;
        let made_one = format!("{template} made {kind} {}", made.name);
        let served = match resources.get(&made.kind) {
            Some(Kind::Served(served)) => served,
            // Nothing can be there.
            Some(Kind::Absent) => continue,
            Some(Kind::Unknown(why)) => {
                return Err(format!(
                    "{made_one}, and how {api_version} is served cannot be seen ({why}): \
                     `kubectl get apiservices` there shows what does not answer"
                ));
            }
            None => {
                return Err(format!("{made_one}, and nobody looked how {api_version} is served"));
            }
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
    Ok(all)
}

/// Everything the templates made that is there, with the template that did; or why that cannot be told.
fn everything(seen: &Observed) -> Result<Vec<(&Marked, LeftObject)>, String> {
    let mut all = Vec::new();
    for marked in seen.marked.as_ref().map_err(Clone::clone)? {
        let made = made_by(marked, &seen.resources)?.into_iter();
        all.extend(made.map(|object| (marked, object)));
    }
    Ok(all)
}

/// What a template made, and whether it stays when the template is deleted; or why that cannot be told.
pub fn listed(
    marked: &Marked,
    resources: &BTreeMap<KindName, Kind>,
) -> Result<Vec<LeftObject>, String> {
    let all = made_by(marked, resources)?.into_iter();
    Ok(all.map(|object| declared(marked, object)).collect())
}

fn declared(marked: &Marked, object: LeftObject) -> LeftObject {
    let why = marked.keeps.unwrap_or_default().to_owned();
    let stays = marked.keeps.map(|_| Stays::Declared);
    LeftObject { why, stays, ..object }
}

/// What the templates made, and whether each object stays; or why that cannot be told.
pub(super) fn everything_declared(seen: &Observed) -> Result<BTreeSet<LeftObject>, String> {
    let all = everything(seen)?.into_iter();
    Ok(all.map(|(marked, object)| declared(marked, object)).collect())
}

/// What the hub is to know of a policy in case the cluster is lost.
pub(crate) struct There {
    /// What the templates made.
    pub(crate) objects: Vec<LeftObject>,
    /// What stands for the policy: its copy, and what its templates became.
    pub(crate) copies: Vec<LeftObject>,
    /// How many of both there was no room for.
    pub(crate) untold: i64,
}

/// `None`: not all of it can be told.
pub(crate) fn there(seen: &Observed) -> Option<There> {
    let (objects, more) = bounded(everything_declared(seen).ok()?);
    let (copies, more_copies) = bounded(copies(seen)?);
    Some(There { objects, copies, untold: more.saturating_add(more_copies) })
}

/// As many as can be stored, and how many more there are.
fn bounded(all: BTreeSet<LeftObject>) -> (Vec<LeftObject>, i64) {
    let more = i64::try_from(all.len().saturating_sub(MOST)).unwrap_or(i64::MAX);
    (all.into_iter().take(MOST).collect(), more)
}

/// `None`: it cannot be told.
fn copies(seen: &Observed) -> Option<BTreeSet<LeftObject>> {
    let local = match &seen.local {
        Copy::Unknown(_) => return None,
        Copy::Present(local) if !seen.place.own_hub => Some(local),
        Copy::Present(_) | Copy::Absent => None,
    };
    let copy = local.map(|local| part(target(seen, Side::Cluster), &local.uid, Part::Copy));
    let templates = seen.marked.as_ref().ok()?.iter();
    let templates = templates.map(|one| part(one.target.clone(), &one.uid, Part::Template));
    Some(copy.into_iter().chain(templates).collect())
}

fn part(target: Target, uid: &str, part: Part) -> LeftObject {
    LeftObject { uid: uid.to_owned(), ..record::part(target, part) }
}

pub(super) fn key(object: &LeftObject) -> [String; 5] {
    let LeftObject { group, resource, namespace, name, uid, .. } = object;
    [group, resource, namespace, name, uid].map(Clone::clone)
}

/// What stays of what the templates made, or why that cannot be told.
///
/// What was told of templates that are gone is as they left it; what becomes of the others may still
/// change with the strategy.
fn staying<'a>(
    seen: &Observed,
    strategy: RemoveStrategy,
    told: impl Iterator<Item = &'a LeftObject>,
) -> Result<BTreeSet<LeftObject>, String> {
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
    // What was to be pruned, is there without its template, and now stays after all.
    if strategy == RemoveStrategy::Needless {
        // What cannot be seen may be there.
        let (still, believed) = match &seen.still {
            Ok(still) => (still.clone(), false),
            Err(_) => (gone::to_be_seen_gone(seen), true),
        };
        for object in still {
            let (why, stays) = (NEEDLESS.to_owned(), Some(Stays::Declared));
            left.insert(key(&object), LeftObject { why, stays, believed, ..object });
        }
    }
    Ok(left.into_values().collect())
}

/// Why nobody can say what stays of a policy whose cluster leaves, if so: nothing is let go of then.
pub fn mute(seen: &Observed) -> Option<String> {
    let Ok(Some(_)) = &seen.leaving else { return None };
    match (&seen.replica, &seen.local) {
        (Copy::Unknown(why), _) => Some(format!("the hub's policy cannot be read ({why})")),
        (_, Copy::Unknown(why)) => Some(format!("its copy on the cluster cannot be read ({why})")),
        (Copy::Present(replica), _) if !replica.deleting => None,
        (Copy::Present(_) | Copy::Absent, _) => everything(seen).err(),
    }
}

/// What a policy of a leaving cluster says of itself that nobody else can say for it, if something is in
/// its way.
pub fn unsettled(seen: &Observed) -> Option<String> {
    let why = mute(seen).map(|why| format!("cannot say what stays of it: {why}"));
    why.or_else(|| gone::awaits(seen))
}

/// Whether neither side has the policy, so that nobody has to look again before something changes. Who
/// cannot say what stays of it looks again: nobody tells when it can.
pub fn is_over(seen: &Observed) -> bool {
    matches!((&seen.replica, &seen.local), (Copy::Absent, Copy::Absent)) && mute(seen).is_none()
}

/// What stays of a policy that the hub does not have any more, while its cluster leaves: there is no
/// status of a replica to tell it in, so the cluster's own has to. `None`: it is not so, or it cannot be
/// told.
pub fn stranded(seen: &Observed) -> Option<Vec<LeftObject>> {
    let strategy = seen.leaving.as_ref().ok().copied().flatten()?;
    let Copy::Absent = seen.replica else { return None };
    let left = staying(seen, strategy, heard(seen)).ok()?.into_iter();
    Some(left.map(|object| LeftObject { source: seen.name.clone(), ..object }).collect())
}

/// What the hub has heard to stay of this policy.
pub(super) fn heard(seen: &Observed) -> impl Iterator<Item = &LeftObject> {
    let ours = |one: &&LeftObject| one.unmarked && one.source == seen.name && !is_ground(one);
    seen.heard.iter().filter(ours)
}

/// Whether the hub has yet to hear what is stranded; until then nothing is let go of here.
pub fn is_untold(seen: &Observed) -> bool {
    let leaves = matches!(seen.leaving, Ok(Some(_))) && matches!(seen.replica, Copy::Absent);
    let told = || stranded(seen).is_some_and(|left| record::are_told(&seen.heard, &left));
    leaves && !told()
}

/// What the hub is to know of a policy that is taken away because its cluster leaves. `None`: it does
/// not. Who cannot say what stays says why, and whatever was said before.
pub(crate) fn removal(seen: &Observed, replica: &Policy) -> Option<Removal> {
    let strategy = seen.leaving.as_ref().ok().copied().flatten()?;
    let before = replica.status.removal.as_ref();
    let marked = seen.marked.as_deref().unwrap_or_default();
    let mut remaining: BTreeMap<String, i64> = BTreeMap::new();
    for Marked { target: Target { id, .. }, .. } in marked {
        *remaining.entry(format!("{}.{}", id.resource, id.group)).or_default() += 1;
    }
    let remaining = remaining.into_iter();
    let mut remaining: Vec<ResourceCount> =
        remaining.map(|(resource, count)| ResourceCount { resource, count }).collect();
    let mut blocked = blocked(seen, marked, before);
    let gone = matches!(seen.local, Copy::Absent) || seen.place.own_hub;
    if seen.marked.is_ok() && marked.is_empty() && gone && replica.deleting && is_unwritten(replica)
    {
        blocked.push(record::awaited(before, seen.now));
    }
    blocked.extend(gone::blocked(seen, before));
    let told = before.map(|before| before.left.as_slice()).unwrap_or_default();
    let unsaid = mute(seen);
    let earlier = before.map(|before| before.untold).unwrap_or_default();
    let (left, untold) = match staying(seen, strategy, told.iter()) {
        Ok(left) if unsaid.is_none() => {
            let (left, more) = bounded(left);
            let more = more.saturating_add(gone::unnoted(seen, replica));
            // Nobody lists any more what a template listed that is gone.
            let all_list = !marked.is_empty() && marked.iter().all(|one| !one.deleting);
            (left, if all_list { more } else { more.max(earlier) })
        }
        _ => (told.to_vec(), earlier),
    };
    if let Some(why) = unsaid {
        let why = format!("it cannot be told: {why}");
        blocked.push(record::waits(UNSAID, why, before, seen.now));
        if seen.marked.is_err() {
            remaining = before.map(|before| before.remaining.clone()).unwrap_or_default();
        }
    }
    Some(Removal { remaining, blocked, left, untold })
}

/// What is refused to go, or on its way out and not gone. How long is too long, the hub decides.
fn blocked(seen: &Observed, marked: &[Marked], before: Option<&Removal>) -> Vec<BlockedObject> {
    let named = |id: &Id| format!("{} {}/{}", id.resource, id.namespace, id.name);
    let refused = |id: &Id| {
        let trouble = seen.troubles.get(id).filter(|one| one.kind != TroubleKind::Stale)?;
        let block = record::waits(&named(id), trouble.message.clone(), before, seen.now);
        Some(BlockedObject { refused: trouble.kind == TroubleKind::Refused, ..block })
    };
    let templates = marked.iter().filter_map(|one| {
        if !one.deleting {
            return refused(&one.target.id);
        }
        let said = one.says.clone().filter(|said| !said.is_empty());
        let why = said.unwrap_or_else(|| held_by(&one.finalizers));
        let object = named(&one.target.id);
        Some(BlockedObject { object, why, refused: false, since: one.since.map(Time) })
    });
    let local = seen.local.policy().filter(|_| !seen.place.own_hub);
    let local = local.and_then(|local| {
        let id = target(seen, Side::Cluster).id;
        if !local.deleting {
            return refused(&id);
        }
        let (why, since) = (held_by(&local.finalizers), deleted_at(&local.object).map(Time));
        Some(BlockedObject { object: named(&id), why, refused: false, since })
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
    if known.is_some_and(|known| (&known.left, known.untold) == (&removal.left, removal.untold)) {
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
