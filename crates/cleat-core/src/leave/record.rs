//! Leftover records: written before anything is forgotten, in parts that a server can store.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use cleat_api::leftoverrecord::{
    self, LeftObject, LeftoverRecord, LeftoverRecordSpec, MOST_OBJECTS, Part, Reason, Stays, Untold,
};
use cleat_api::managedcluster::{
    CLUSTER_NAME_LABEL, HUB_HASH_CLAIM, ManagedCluster, RemoveStrategy,
};
use cleat_api::manifestwork::{BlockedObject, LEAVE_FINALIZER, Removal};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::condition::whole_seconds;
use crate::digest::digest;
use crate::id::{Id, Target};
use crate::registration::join;
use crate::write::{Action, Side, Write};

/// Where a record is on the hub.
pub fn target(name: String) -> Target {
    let id = Id {
        group: "cleat.dev".to_string(),
        resource: "leftoverrecords".to_string(),
        namespace: String::new(),
        name,
    };
    Target { version: "v1alpha1".to_string(), id }
}

/// An object that stands for something of the agent's, as far as its place goes.
pub(crate) fn part(Target { version, id }: Target, part: Part) -> LeftObject {
    let Id { group, resource, namespace, name } = id;
    let part = Some(part);
    LeftObject { group, version, resource, namespace, name, part, ..LeftObject::default() }
}

/// Which of `objects` no record has yet.
pub(crate) fn missing<'a>(
    records: &[LeftoverRecord],
    objects: impl Iterator<Item = &'a LeftObject>,
) -> Vec<&'a LeftObject> {
    let known: BTreeSet<_> = records.iter().flat_map(|one| &one.spec.objects).map(key).collect();
    let mut more = BTreeSet::new();
    objects.filter(|object| !known.contains(&key(object)) && more.insert(key(object))).collect()
}

/// Whether a record says that there was so much more of something than is listed.
pub(crate) fn says<'a>(
    records: impl IntoIterator<Item = &'a LeftoverRecord>,
    untold: &Untold,
) -> bool {
    let mut said = records.into_iter().flat_map(|one| &one.spec.untold);
    untold.count <= 0 || said.any(|one| is_same(one, untold) && one.count >= untold.count)
}

/// Whether both are about the same work, or the same policy.
fn is_same(one: &Untold, other: &Untold) -> bool {
    (&one.source, one.policy) == (&other.source, other.policy)
}

/// Which of `objects` a record has as going, or as less sure to stay than they say.
pub(crate) fn understated<'a>(
    records: &[LeftoverRecord],
    objects: impl Iterator<Item = &'a LeftObject>,
) -> Vec<&'a LeftObject> {
    let mut known: BTreeMap<[&str; 6], Option<Stays>> = BTreeMap::new();
    for object in records.iter().flat_map(|one| &one.spec.objects) {
        let stays = known.entry(place(object)).or_insert(object.stays);
        *stays = object.stays.min(*stays);
    }
    objects
        .filter(|object| known.get(&place(object)).is_some_and(|stays| *stays < object.stays))
        .collect()
}

/// Writes down that these stay, where it says otherwise.
pub(crate) fn raise(records: &[LeftoverRecord], objects: &[&LeftObject]) -> Vec<Action> {
    let mut said: BTreeMap<[&str; 6], &LeftObject> = BTreeMap::new();
    for &object in objects {
        let known = said.entry(place(object)).or_insert(object);
        if known.stays < object.stays {
            *known = object;
        }
    }
    let mut actions = Vec::new();
    for record in records {
        let raised = |object: &LeftObject| {
            let said = said.get(&place(object)).filter(|said| object.stays < said.stays)?;
            Some(LeftObject { stays: said.stays, why: said.why.clone(), ..object.clone() })
        };
        let own = &record.spec.objects;
        if !own.iter().any(|object| raised(object).is_some()) {
            continue;
        }
        let all: Vec<LeftObject> =
            own.iter().map(|object| raised(object).unwrap_or_else(|| object.clone())).collect();
        let metadata = &record.metadata;
        let patch = json!({
            "metadata": { "uid": metadata.uid, "resourceVersion": metadata.resource_version },
            "spec": { "objects": all },
        });
        let target = target(metadata.name.clone().unwrap_or_default());
        actions.push(Action { side: Side::Hub, target, write: Write::Merge(patch) });
    }
    actions
}

/// Whether all of `objects` are among those that were told.
pub(crate) fn are_told(told: &[LeftObject], objects: &[LeftObject]) -> bool {
    let known: BTreeSet<_> = told.iter().map(key).collect();
    objects.iter().all(|object| known.contains(&key(object)))
}

/// The same object of the same work or policy, whatever was said of it. Another incarnation is another,
/// and so is what a policy made that has the name of a work.
pub(super) fn key(object: &LeftObject) -> [&str; 7] {
    let LeftObject { group, version: _, resource, namespace, name, uid, source, unmarked, .. } =
        object;
    let whose = if *unmarked { "policy" } else { "work" };
    [group, resource, namespace, name, uid, source, whose]
}

/// The same whichever incarnation: what is declared to stay is named, and a template that is about to
/// make something does not know its uid.
fn place(object: &LeftObject) -> [&str; 6] {
    let [group, resource, namespace, name, _, source, whose] = key(object);
    [group, resource, namespace, name, source, whose]
}

/// What the hub puts on a work or policy that it could not hold, once everything of `left` is written
/// down; and for what its agent waits.
pub(crate) fn receipt(left: &[LeftObject]) -> String {
    let ids = left.iter().map(|LeftObject { group, resource, namespace, name, uid, .. }| {
        json!([group, resource, namespace, name, uid])
    });
    digest(&ids.collect())
}

/// The same of everything that a cluster itself tells, whosever it was: what the hub puts on the cluster
/// once all of it is written down, so that it need not be told any longer.
pub(crate) fn receipt_of_all(left: &[LeftObject]) -> String {
    digest(&left.iter().map(|object| json!(key(object))).collect())
}

/// Whether what stays of something may be forgotten on the cluster: it is held until it is written
/// down, nothing stays, or the hub says that it is written down.
pub(crate) fn is_receipted(
    finalizers: &[String],
    removal: Option<&Removal>,
    on_record: Option<&str>,
) -> bool {
    let left = removal.map(|removal| removal.left.as_slice()).unwrap_or_default();
    let held = finalizers.iter().any(|one| one == LEAVE_FINALIZER);
    held || left.is_empty() || on_record == Some(receipt(left).as_str())
}

/// What an agent says while it waits for that; `before` is what it said last.
pub(crate) fn awaited(before: Option<&Removal>, now: Timestamp) -> BlockedObject {
    let why = "the hub has yet to write it down; a hub that is older than the agent never does";
    waits("what stays of it", why.to_string(), before, now)
}

/// That something is waited for, since it was first said to be.
pub(crate) fn waits(
    object: &str,
    why: String,
    before: Option<&Removal>,
    now: Timestamp,
) -> BlockedObject {
    let mut earlier = before.into_iter().flat_map(|removal| &removal.blocked);
    let earlier = earlier.find(|one| one.object == object).and_then(|one| one.since.clone());
    let since = Some(earlier.unwrap_or_else(|| whole_seconds(now)));
    BlockedObject { object: object.to_string(), why, refused: false, since }
}

/// What all records of a leave say.
pub(crate) fn leave(cluster: &ManagedCluster, reason: Reason) -> LeftoverRecordSpec {
    let metadata = &cluster.metadata;
    LeftoverRecordSpec {
        cluster: metadata.name.clone().unwrap_or_default(),
        cluster_id: join::id(cluster).unwrap_or_default().to_string(),
        cluster_uid: metadata.uid.clone().unwrap_or_default(),
        hub_hash: hub_hash(cluster).to_string(),
        remove_strategy: cluster.spec.remove_strategy,
        reason,
        ..LeftoverRecordSpec::default()
    }
}

/// A cluster of which nothing was to be removed has declared it of everything, but for what stands for
/// policies: that is ours as ledgers are, and nobody's to keep.
fn declared(strategy: RemoveStrategy, object: LeftObject) -> LeftObject {
    let keeps = strategy == RemoveStrategy::Needless
        && matches!(object.part, None | Some(Part::Place))
        && matches!(object.stays, None | Some(Stays::IfAdopted));
    if keeps { LeftObject { stays: Some(Stays::Declared), ..object } } else { object }
}

/// Writes `more` down, behind what the records of one leave have already; and what `leave` says and none
/// of them does. The rest of `leave` is what all of them say.
pub(crate) fn append(
    leave: &LeftoverRecordSpec,
    records: &[&LeftoverRecord],
    more: &[&LeftObject],
) -> Vec<Action> {
    let (strategy, reason) = (leave.remove_strategy, leave.reason);
    let more: Vec<LeftObject> =
        more.iter().map(|object| declared(strategy, (*object).clone())).collect();
    let last = records.iter().max_by_key(|record| record.spec.part);
    let room = last.map_or(0, |last| MOST_OBJECTS.saturating_sub(last.spec.objects.len()));
    let (first, rest) = more.split_at(room.min(more.len()));
    let mut actions = Vec::new();
    // Once is enough: it is the moment from which on nobody knows. A hub with an older definition does
    // not store it; that the reason is on record says that it was written.
    let known = records.iter().find_map(|one| one.spec.agent_last_heard.clone());
    let new = records.iter().all(|one| one.spec.reason < reason);
    let heard = leave.agent_last_heard.clone().filter(|_| known.is_none() && new);
    let untold = leave.untold.iter().filter(|one| !says(records.iter().copied(), one));
    let untold: Vec<Untold> = untold.cloned().collect();
    let news = heard.is_some() || !untold.is_empty();
    if let Some(last) = last
        && (!first.is_empty() || news)
    {
        let objects: Vec<&LeftObject> = last.spec.objects.iter().chain(first).collect();
        let mut spec = json!({
            "objects": objects, "count": objects.len(),
            // A force later on is the graver reason.
            "reason": reason.max(last.spec.reason),
            "removeStrategy": strategy,
        });
        let before = last.spec.untold.iter();
        let before = before.filter(|one| untold.iter().all(|new| !is_same(new, one)));
        let all: Vec<&Untold> = before.chain(&untold).collect();
        if let Some(spec) = spec.as_object_mut().filter(|_| news) {
            spec.insert("untold".to_string(), json!(all));
            spec.extend(heard.iter().map(|at| ("agentLastHeard".to_string(), json!(at))));
        }
        let patch = json!({
            "metadata": {
                "uid": last.metadata.uid, "resourceVersion": last.metadata.resource_version,
            },
            "spec": spec,
        });
        let name = last.metadata.name.clone().unwrap_or_default();
        actions.push(Action { side: Side::Hub, target: target(name), write: Write::Merge(patch) });
    }
    let next = last.map_or(0, |last| usize::try_from(last.spec.part).unwrap_or(0) + 1);
    let (name, uid) = (leave.cluster.as_str(), leave.cluster_uid.as_str());
    let mut chunks: Vec<&[LeftObject]> = rest.chunks(MOST_OBJECTS).collect();
    if chunks.is_empty() && last.is_none() && !untold.is_empty() {
        chunks.push(&[]);
    }
    for (index, objects) in chunks.into_iter().enumerate() {
        let part = next + index;
        let record = leftoverrecord::name(name, uid, part);
        let mut object = json!({
            "apiVersion": "cleat.dev/v1alpha1",
            "kind": "LeftoverRecord",
            "metadata": { "name": record, "labels": { CLUSTER_NAME_LABEL: name } },
            "spec": {
                "cluster": name,
                "clusterID": leave.cluster_id,
                "clusterUID": uid,
                "hubHash": leave.hub_hash,
                "removeStrategy": strategy,
                "reason": reason,
                "part": part,
                "count": objects.len(),
                "objects": objects,
            },
        });
        if let Some(Value::Object(spec)) = object.get_mut("spec") {
            let heard = heard.iter().chain(&known);
            spec.extend(heard.map(|at| ("agentLastHeard".to_string(), json!(at))));
            if part == 0 && !untold.is_empty() {
                spec.insert("untold".to_string(), json!(untold));
            }
        }
        actions.push(Action {
            side: Side::Hub,
            target: target(record),
            write: Write::Create(object),
        });
    }
    actions
}

/// After what the cluster's agent names its ledgers, if it told.
fn hub_hash(cluster: &ManagedCluster) -> &str {
    claim(cluster, HUB_HASH_CLAIM).unwrap_or_default()
}

/// What the cluster's agent told of itself under a name.
pub(super) fn claim<'a>(cluster: &'a ManagedCluster, name: &str) -> Option<&'a str> {
    let claims = cluster.status.iter().flat_map(|status| &status.cluster_claims);
    let told = claims.into_iter().find(|claim| claim.name == name);
    told.map(|claim| claim.value.as_str())
}
