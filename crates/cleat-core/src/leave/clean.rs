//! Finishing later what a cluster kept: a leftover record is worked off on the cluster itself.
//!
//! Only the incarnation that is on record is ever deleted. What another ledger holds, what somebody
//! made anew and what nobody knows the uid of stays, and is said to.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use cleat_api::leftoverrecord::{LeftObject, LeftoverRecord};
use serde_json::Value;

use crate::id::{Id, Target};
use crate::registration::hub::Seen;
use crate::work::contents::{Contents, is_namespace};
use crate::work::kind_order::removal_rank;
use crate::work::observed::Owner;
use crate::work::ownership::{GROUP, LEDGER_KIND};
use crate::write::{Action, Outcome, Propagation, Side, Write};

/// What becomes of one object of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    Gone,
    /// It stays, and why.
    Stays(String),
    Delete,
    /// Accepted for deletion and not gone, with what holds it.
    Going(Vec<String>),
    Unknown(String),
}

/// What a cluster holds of a record.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// By object. One that is missing here was not looked at.
    pub live: BTreeMap<Id, Seen>,
    /// What the namespaces among them hold.
    pub contents: BTreeMap<Id, Contents>,
    /// What the ledgers on the cluster say of objects whose uid the record does not have.
    pub uids: BTreeMap<Id, String>,
    /// The ledgers of this record's works, by name: marks that point to them are ours.
    pub ledgers: Vec<String>,
}

pub fn id(object: &LeftObject) -> Id {
    Id {
        group: object.group.clone(),
        resource: object.resource.clone(),
        namespace: object.namespace.clone(),
        name: object.name.clone(),
    }
}

pub fn target(object: &LeftObject) -> Target {
    let version = match object.version.as_str() {
        "" => "v1".to_string(),
        version => version.to_string(),
    };
    Target { version, id: id(object) }
}

pub fn fate(seen: &Observed, object: &LeftObject) -> Fate {
    let id = id(object);
    let live = match seen.live.get(&id) {
        Some(Seen::Present(live)) => live,
        Some(Seen::Absent) => return Fate::Gone,
        Some(Seen::Unknown) | None => return Fate::Unknown("it cannot be seen".to_string()),
    };
    let text = |pointer: &str| live.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let known = match object.uid.as_str() {
        "" => seen.uids.get(&id).map(String::as_str),
        uid => Some(uid),
    };
    match known {
        None => return Fate::Stays("nobody knows which incarnation was ours".to_string()),
        Some(uid) if uid != text("/metadata/uid") => {
            return Fate::Stays("somebody made it anew".to_string());
        }
        Some(_) => {}
    }
    if let Some(other) = owners(live).find(|owner| !seen.ledgers.contains(&owner.name)) {
        return Fate::Stays(format!("{} holds it", other.name));
    }
    if !text("/metadata/deletionTimestamp").is_empty() {
        let finalizers = live.pointer("/metadata/finalizers").and_then(Value::as_array);
        let finalizers = finalizers.into_iter().flatten().filter_map(Value::as_str);
        return Fate::Going(finalizers.map(ToString::to_string).collect());
    }
    if is_namespace(&id) {
        return match seen.contents.get(&id) {
            Some(Contents::Ours) => Fate::Delete,
            Some(Contents::Waiting(what)) => Fate::Going([format!("what it holds: {what}")].into()),
            Some(foreign @ Contents::Foreign(_)) => {
                Fate::Stays(foreign.why_kept().unwrap_or_default())
            }
            Some(Contents::Unknown(why)) => Fate::Unknown(why.clone()),
            None => Fate::Unknown("what it holds was not looked at".to_string()),
        };
    }
    Fate::Delete
}

/// The ledgers that hold an object.
fn owners(live: &Value) -> impl Iterator<Item = Owner> + '_ {
    let all = live.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    all.into_iter().flatten().filter_map(|owner| {
        let text = |field: &str| owner.get(field).and_then(Value::as_str).map(ToString::to_string);
        let found = Owner {
            api_version: text("apiVersion")?,
            kind: text("kind")?,
            name: text("name")?,
            uid: text("uid")?,
            controller: None,
            block_owner_deletion: None,
        };
        let ledger = found.kind == LEDGER_KIND && found.api_version.starts_with(GROUP);
        ledger.then_some(found)
    })
}

/// Everything in a record that is to go, in the order of removal: what needs others first.
pub fn objects(records: &[LeftoverRecord]) -> Vec<&LeftObject> {
    let mut all: Vec<&LeftObject> = records.iter().flat_map(|one| &one.spec.objects).collect();
    all.sort_by(|one, other| {
        let key = |object: &LeftObject| (removal_rank(&object.group, &object.resource), id(object));
        key(one).cmp(&key(other))
    });
    all.dedup_by(|one, other| id(one) == id(other) && one.uid == other.uid);
    all
}

/// The deletes whose turn it is: those of the first rank with anything left.
pub fn plan(seen: &Observed, all: &[&LeftObject]) -> Vec<Action> {
    let rank = |object: &LeftObject| removal_rank(&object.group, &object.resource);
    let left = |object: &&&LeftObject| {
        matches!(fate(seen, object), Fate::Delete | Fate::Going(_) | Fate::Unknown(_))
    };
    let Some(turn) = all.iter().filter(left).map(|object| rank(object)).min() else {
        return Vec::new();
    };
    let mut actions = Vec::new();
    for object in all.iter().filter(|object| rank(object) == turn) {
        let Some(Seen::Present(live)) = seen.live.get(&id(object)) else { continue };
        let text = |pointer: &str| live.pointer(pointer).and_then(Value::as_str);
        let (Fate::Delete, Some(uid)) = (fate(seen, object), text("/metadata/uid")) else {
            continue;
        };
        let write = Write::Delete {
            uid: uid.to_string(),
            resource_version: text("/metadata/resourceVersion").map(ToString::to_string),
            propagation: Propagation::Background,
        };
        actions.push(Action { side: Side::Cluster, target: target(object), write });
    }
    actions
}

/// What a refused delete means to people.
pub fn refusal(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Refused(refusal) => Some(refusal.message.clone()),
        Outcome::Lost(message) => Some(message.clone()),
        _ => None,
    }
}
