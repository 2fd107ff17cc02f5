//! Finishing later what a cluster kept: leftover records are worked off on the cluster itself.
//!
//! Only the incarnation that is on record, or in a ledger of ours, is ever deleted, and only while
//! it bears our mark; what policies made never had one. What was declared to be kept, what another
//! ledger, a policy of today or one that stays on the cluster holds (`holders`), what somebody made
//! anew and what nobody knows the uid of stays, and is said to; our marks come off it before the
//! ledgers go, because the collector deletes what only a ledger owns. What stands for policies goes
//! before what they made (`copies`).

mod choose;
mod copies;
mod holders;
mod report;
mod whose;

use alloc::borrow::ToOwned as _;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use cleat_api::appliedmanifestwork::{AppliedManifestWork, Origin};
use cleat_api::leftoverrecord::{LeftObject, LeftoverRecord, Part, Stays};
use cleat_api::managedcluster::RemoveStrategy;
use serde_json::{Value, json};

pub use self::choose::{Chosen, Refusal, choose, ledgers};
pub use self::copies::copies_on_record;
pub use self::holders::{Holder, Holders};
pub use self::report::{Report, report, said, to_do};
pub use self::whose::{Lodging, agent_is_ours};
use crate::id::{Id, Target};
use crate::protection::denial::Protected;
use crate::work::contents::Contents;
use crate::work::kind_order::removal_rank;
use crate::work::ledger::LEDGER_FINALIZER;
use crate::work::observed::Owner;
use crate::work::ownership::ledger_named;
use crate::work::retire::{is_awaited, is_holder, is_inside};
use crate::write::{Action, Plan, Propagation, Side, Write};

/// What becomes of one object.
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

impl Fate {
    /// Whether nothing more has to become of the object itself.
    pub fn is_settled(&self) -> bool {
        matches!(self, Self::Gone | Self::Stays(_))
    }
}

/// What a look at one object found.
#[derive(Clone, Debug, PartialEq)]
pub enum Look {
    Absent,
    Present(Value),
    Unknown(String),
}

/// What a cluster holds of what is on record.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    pub records: Vec<LeftoverRecord>,
    /// Also what was declared to be kept is to go.
    pub include_kept: bool,
    /// The ledgers of these records' works, as [`ledgers`] chose them: marks that point to them are
    /// ours.
    pub ledgers: Vec<AppliedManifestWork>,
    /// The policies that the hub has for this very cluster now, because it joined again, and what
    /// each lists as its own.
    pub policies: BTreeMap<String, Vec<LeftObject>>,
    /// By object. One that is missing here was not looked at.
    pub live: BTreeMap<Id, Look>,
    /// What the namespaces and definitions hold whose turn it is.
    pub contents: BTreeMap<Id, Contents>,
    /// The templates of the policies on record, found by their marks ([`copies_on_record`]).
    pub found: Vec<LeftObject>,
    /// What each template lists as made by it, or why that cannot be told.
    pub made: BTreeMap<Id, Result<Vec<LeftObject>, String>>,
    /// All policies on the cluster, and what they are about.
    pub holders: Holders,
    /// What servers said to what was tried last.
    pub refused: BTreeMap<Id, String>,
}

pub fn id(object: &LeftObject) -> Id {
    Id {
        group: object.group.clone(),
        resource: object.resource.clone(),
        namespace: object.namespace.clone(),
        name: object.name.clone(),
    }
}

/// Everything that is on record or in a ledger of ours, once, in the order of removal: what needs
/// others first.
pub fn objects(seen: &Observed) -> Vec<LeftObject> {
    let mut all: BTreeMap<(u16, Id, String), LeftObject> = BTreeMap::new();
    let recorded = seen.records.iter().flat_map(|one| &one.spec.objects);
    for object in recorded.cloned().chain(unrecorded(seen)).chain(seen.found.iter().cloned()) {
        let object = informed(seen, object);
        let key = (rank(&object), id(&object), object.uid.clone());
        match all.get_mut(&key) {
            // Two works had it; it goes only if neither says that it stays.
            Some(known) if known.stays >= object.stays => {}
            Some(known) => *known = object,
            None => {
                all.insert(key, object);
            }
        }
    }
    all.into_values().collect()
}

/// What ledgers list and no record does: what had left the manifests and was not gone yet, or what
/// the hub was not told of any more.
fn unrecorded(seen: &Observed) -> Vec<LeftObject> {
    let on_record: BTreeSet<(Id, &str)> = seen
        .records
        .iter()
        .flat_map(|one| &one.spec.objects)
        .map(|object| (id(object), object.source.as_str()))
        .collect();
    let needless =
        seen.records.iter().any(|one| one.spec.remove_strategy == RemoveStrategy::Needless);
    let mut found = Vec::new();
    for ledger in &seen.ledgers {
        let source = ledger.spec.manifest_work_name.as_str();
        for id in listed(ledger) {
            if on_record.contains(&(id.clone(), source)) {
                continue;
            }
            let Id { group, resource, namespace, name } = id;
            found.push(LeftObject {
                group,
                resource,
                namespace,
                name,
                source: source.to_owned(),
                stays: needless.then_some(Stays::Declared),
                ..LeftObject::default()
            });
        }
    }
    found
}

/// Everything a ledger names.
fn listed(ledger: &AppliedManifestWork) -> BTreeSet<Id> {
    let claims = ledger.spec.claims.iter().flat_map(|one| {
        one.all_names().map(|name| Id {
            group: one.group.clone(),
            resource: one.resource.clone(),
            namespace: one.namespace.clone(),
            name: name.to_owned(),
        })
    });
    let status = ledger.status.iter().flat_map(|status| &status.applied_resources);
    let applied = status.map(|one| Id {
        group: one.group.clone(),
        resource: one.resource.clone(),
        namespace: one.namespace.clone(),
        name: one.name.clone(),
    });
    claims.chain(applied).collect()
}

/// With what its work's ledger knows better than the hub: the uid, and what the work said to keep
/// when it was last applied.
fn informed(seen: &Observed, mut object: LeftObject) -> LeftObject {
    // A work may have the name of a policy.
    if object.part.is_some() || object.unmarked {
        return object;
    }
    let ledger = seen.ledgers.iter().find(|ledger| ledger.spec.manifest_work_name == object.source);
    let is = |group: &str, resource: &str, namespace: &str, name: &str| {
        (group, resource, namespace, name)
            == (&object.group, &object.resource, &object.namespace, &object.name)
    };
    let claim = ledger.and_then(|ledger| {
        let mut claims = ledger.spec.claims.iter();
        claims.find(|one| {
            one.all_names().any(|name| is(&one.group, &one.resource, &one.namespace, name))
        })
    });
    let applied = ledger.and_then(|ledger| {
        let mut all = ledger.status.iter().flat_map(|status| &status.applied_resources);
        all.find(|one| is(&one.group, &one.resource, &one.namespace, &one.name))
    });
    let (uid, stays) = (applied.map(|one| one.uid.clone()), object.stays);
    let created = claim.is_some_and(|claim| claim.origin == Origin::Created);
    object.stays = match (stays, claim.is_some_and(|claim| claim.kept)) {
        (Some(Stays::NotOurs), _) => stays,
        (_, true) => Some(Stays::Declared),
        (Some(Stays::IfAdopted), false) if created => None,
        (Some(Stays::IfAdopted | Stays::Declared), false) => Some(Stays::Declared),
        (None, false) => None,
    };
    if object.uid.is_empty() {
        object.uid = uid.unwrap_or_default();
    }
    object
}

/// What becomes of everything, in the order of removal.
pub fn fates(seen: &Observed) -> Vec<(LeftObject, Fate)> {
    let mut all: Vec<(LeftObject, Fate)> = objects(seen)
        .into_iter()
        .map(|object| {
            let fate = fate(seen, &object);
            (object, fate)
        })
        .collect();
    // Of several incarnations on record all but the one that is there are gone.
    let here: BTreeSet<Id> = all
        .iter()
        .filter(|(object, _)| live_uid(seen, &id(object)) == Some(object.uid.as_str()))
        .map(|(object, _)| id(object))
        .collect();
    for (object, fate) in &mut all {
        let id = id(object);
        if here.contains(&id) && live_uid(seen, &id) != Some(object.uid.as_str()) {
            *fate = Fate::Gone;
        }
    }
    holders::spare(seen, &mut all);
    for (object, fate) in &mut all {
        if *fate == Fate::Delete && is_worked_off(seen, object) {
            *fate = Fate::Stays("it stayed when its record was worked off".to_string());
        }
    }
    let staying: Vec<Id> = all
        .iter()
        .filter(|(_, fate)| matches!(fate, Fate::Stays(_)))
        .map(|(object, _)| id(object))
        .collect();
    for (object, fate) in &mut all {
        let holder = id(object);
        if *fate == Fate::Delete
            && let Some(inside) = staying.iter().find(|id| is_inside(&holder, id))
        {
            *fate = Fate::Stays(format!("it holds what stays: {inside}"));
        }
        if *fate == Fate::Delete && is_holder(&holder) {
            *fate = by_contents(seen.contents.get(&holder));
        }
    }
    all
}

/// Whether only records that were worked off know of an object. What stayed then stayed for a reason,
/// which nobody may remember: who looks at such a record again does not want it gone.
fn is_worked_off(seen: &Observed, object: &LeftObject) -> bool {
    let is_done = report::is_settled;
    let knows = |one: &LeftoverRecord| {
        one.spec.objects.iter().any(|it| (id(it), &it.uid) == (id(object), &object.uid))
    };
    let mut open = seen.records.iter().filter(|one| !is_done(one)).peekable();
    let none_is_open = open.peek().is_none();
    let on_record = seen.records.iter().any(knows);
    !seen.include_kept && (none_is_open || (on_record && !open.any(knows)))
}

fn live_uid<'a>(seen: &'a Observed, id: &Id) -> Option<&'a str> {
    match seen.live.get(id) {
        Some(Look::Present(live)) => live.pointer("/metadata/uid").and_then(Value::as_str),
        _ => None,
    }
}

fn fate(seen: &Observed, object: &LeftObject) -> Fate {
    let id = id(object);
    let live = match seen.live.get(&id) {
        Some(Look::Present(live)) => live,
        Some(Look::Absent) => return Fate::Gone,
        Some(Look::Unknown(why)) => return Fate::Unknown(format!("it cannot be seen: {why}")),
        None => return Fate::Unknown("it was not looked at".to_string()),
    };
    let text = |pointer: &str| live.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let stays = |why: &str| Fate::Stays(why.to_string());
    let known = !object.uid.is_empty();
    if known && object.uid != text("/metadata/uid") {
        return stays("somebody made it anew");
    }
    match object.part {
        // What nobody told of may bear the mark of a work's ledger.
        None if !(known
            || object.believed && owners(live).iter().any(|one| is_ours(seen, one))) =>
        {
            return stays("nobody knows which incarnation was ours");
        }
        None => {}
        Some(part) => {
            if let Some(fate) = copies::spared(seen, object, part, live, known) {
                return fate;
            }
        }
    }
    let declared = match object.stays {
        Some(Stays::NotOurs) if object.why.is_empty() => return stays("it is not ours"),
        Some(Stays::NotOurs) => return stays(&object.why),
        Some(Stays::Declared | Stays::IfAdopted) => true,
        None => false,
    };
    let owners = owners(live);
    if let Some(other) = owners.iter().find(|one| one.is_ledger() && !is_ours(seen, one)) {
        return Fate::Stays(format!("{} holds it", other.name));
    }
    if let Some(policy) = policy_of_today(seen, object) {
        return Fate::Stays(format!("policy {policy} holds it"));
    }
    if declared && !seen.include_kept {
        return match object.why.as_str() {
            why if why.starts_with("kept by ") => stays(why),
            _ => stays("it was declared to be kept"),
        };
    }
    let marked = object.part.is_some() || owners.iter().any(|one| is_ours(seen, one));
    if !declared && !object.unmarked && !marked {
        return stays("it bears no mark of ours any more");
    }
    if object.part == Some(Part::Template) {
        match copies::unwritten(seen, object) {
            Err(why) => return Fate::Unknown(why),
            Ok(made) if !made.is_empty() => {
                let why = "the record, which has yet to list what it made";
                return Fate::Going(vec![why.to_string()]);
            }
            Ok(_) => {}
        }
    }
    if !text("/metadata/deletionTimestamp").is_empty() {
        let finalizers = live.pointer("/metadata/finalizers").and_then(Value::as_array);
        let finalizers = finalizers.into_iter().flatten().filter_map(Value::as_str);
        return Fate::Going(finalizers.map(ToString::to_string).collect());
    }
    Fate::Delete
}

/// What becomes of a namespace or a definition, as far as what it holds decides.
fn by_contents(contents: Option<&Contents>) -> Fate {
    match contents {
        Some(Contents::Ours) => Fate::Delete,
        Some(Contents::Waiting(what)) => Fate::Going([format!("what it holds: {what}")].into()),
        Some(foreign @ Contents::Foreign(_)) => Fate::Stays(foreign.why_kept().unwrap_or_default()),
        Some(Contents::Unknown(why)) => Fate::Unknown(why.clone()),
        None => Fate::Unknown("what it holds was not looked at".to_string()),
    }
}

/// The policy of today that holds an object. One that finds what it wants made does not list it: what
/// came of a policy that is there again is its own, whether it has looked yet or not.
fn policy_of_today<'a>(seen: &'a Observed, object: &LeftObject) -> Option<&'a str> {
    let (object_id, mut policies) = (id(object), seen.policies.iter());
    let holder = policies.find(|(name, listed)| match object.part {
        Some(Part::Key | Part::Place) => true,
        Some(Part::Agent) => false,
        Some(Part::Copy | Part::Template) => object.source == **name,
        None => {
            (object.unmarked && object.source == **name)
                || listed.iter().any(|one| id(one) == object_id)
        }
    });
    holder.map(|(name, _)| name.as_str())
}

/// The namespaces and definitions whose turn it is, so that somebody has to look into them.
pub fn holders_due(seen: &Observed) -> Vec<Id> {
    let fates = fates(seen);
    let due = Due::now(seen, &fates);
    let open = fates.iter().filter(|(_, fate)| !fate.is_settled());
    let open = open.filter(|(object, _)| is_holder(&id(object)) && due.is(object));
    open.map(|(object, _)| id(object)).collect()
}

/// What may go now: the rank whose turn it is, and what a protected object waits for. Such an object
/// keeps its place in the order, but what it waits for must not wait for it.
struct Due<'a> {
    turn: Option<u16>,
    protected: BTreeMap<&'a Id, Protected>,
}

impl<'a> Due<'a> {
    fn now(seen: &'a Observed, fates: &[(LeftObject, Fate)]) -> Self {
        let open: BTreeSet<Id> = fates
            .iter()
            .filter(|(_, fate)| *fate == Fate::Delete)
            .map(|(object, _)| id(object))
            .collect();
        let refused = seen.refused.iter().filter(|(id, _)| open.contains(*id));
        let protected = refused.filter_map(|(id, said)| Some((id, Protected::parse(said)?)));
        Self { turn: turn(fates), protected: protected.collect() }
    }

    fn is(&self, object: &LeftObject) -> bool {
        Some(rank(object)) == self.turn || is_awaited(&self.protected, &id(object))
    }
}

fn rank(object: &LeftObject) -> u16 {
    let first = object.part.and_then(copies::rank);
    first.unwrap_or_else(|| copies::RANKS + removal_rank(&object.group, &object.resource))
}

fn turn(fates: &[(LeftObject, Fate)]) -> Option<u16> {
    fates.iter().filter(|(_, fate)| !fate.is_settled()).map(|(object, _)| rank(object)).min()
}

fn is_ours(seen: &Observed, owner: &Owner) -> bool {
    owner.is_ledger()
        && seen.ledgers.iter().any(|ledger| ledger.metadata.name.as_ref() == Some(&owner.name))
}

fn owners(live: &Value) -> Vec<Owner> {
    let all = live.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let read = all.into_iter().flatten().map(|owner| {
        let text = |field: &str| owner.get(field).and_then(Value::as_str).unwrap_or_default();
        Owner {
            api_version: text("apiVersion").to_owned(),
            kind: text("kind").to_owned(),
            name: text("name").to_owned(),
            uid: text("uid").to_owned(),
            controller: owner.get("controller").and_then(Value::as_bool),
            block_owner_deletion: owner.get("blockOwnerDeletion").and_then(Value::as_bool),
        }
    });
    read.collect()
}

/// What should happen next. An empty plan: nothing can, or nothing is left.
///
/// Each plan is made from a fresh look, so the ledgers go only when our marks were seen off all that
/// stays.
pub fn plan(seen: &Observed) -> Plan {
    let fates = fates(seen);
    let mut unmark = Vec::new();
    let mut delete = Vec::new();
    let due = Due::now(seen, &fates);
    for (object, fate) in &fates {
        let id = id(object);
        let Some(Look::Present(live)) = seen.live.get(&id) else { continue };
        let action = match (fate, object.part) {
            (Fate::Stays(_), Some(Part::Key | Part::Place)) => {
                let write = copies::unlabelled(seen, object, live).or_else(|| unmarked(seen, live));
                write.map(|write| (&mut unmark, write))
            }
            (Fate::Stays(_), _) => unmarked(seen, live).map(|write| (&mut unmark, write)),
            (Fate::Delete, _) if due.is(object) => {
                let write = match object.part {
                    Some(part) => copies::removed(part, live),
                    None => deletion(live, Propagation::Background),
                };
                write.map(|write| (&mut delete, write))
            }
            // Whoever would let go of it is not there, or not allowed to.
            (Fate::Going(_), Some(Part::Template))
                if copies::unwritten(seen, object).is_ok_and(|made| made.is_empty()) =>
            {
                copies::disarmed(live).map(|write| (&mut delete, write))
            }
            (Fate::Delete | Fate::Gone | Fate::Going(_) | Fate::Unknown(_), _) => None,
        };
        if let Some((actions, write)) = action {
            let version = version(live).to_owned();
            let target = Target { version, id };
            actions.push(Action { side: Side::Cluster, target, write });
        }
    }
    if due.turn.is_none() && unmark.is_empty() {
        return only(seen.ledgers.iter().filter_map(close).collect());
    }
    // What cannot be unmarked stands in nobody's way but the ledger's.
    only([copies::write_down(seen, &fates), unmark, delete].concat())
}

fn only(step: Vec<Action>) -> Plan {
    if step.is_empty() { vec![] } else { vec![step] }
}

fn version(live: &Value) -> &str {
    let api_version = live.get("apiVersion").and_then(Value::as_str).unwrap_or("v1");
    api_version.rsplit_once('/').map_or(api_version, |(_, version)| version)
}

/// Takes our marks off an object that stays, if it has any.
fn unmarked(seen: &Observed, live: &Value) -> Option<Write> {
    let owners = owners(live);
    let others: Vec<&Owner> = owners.iter().filter(|owner| !is_ours(seen, owner)).collect();
    if others.len() == owners.len() {
        return None;
    }
    let references: Vec<Value> = others.into_iter().map(Owner::to_json).collect();
    Some(Write::Merge(json!({ "metadata": {
        "uid": live.pointer("/metadata/uid")?,
        "resourceVersion": live.pointer("/metadata/resourceVersion")?,
        "ownerReferences": references,
    }})))
}

fn deletion(live: &Value, propagation: Propagation) -> Option<Write> {
    let text = |pointer: &str| live.pointer(pointer).and_then(Value::as_str);
    Some(Write::Delete {
        uid: text("/metadata/uid")?.to_string(),
        // Somebody may be taking hold of the object at this moment; then it must not go.
        resource_version: Some(text("/metadata/resourceVersion")?.to_string()),
        propagation,
    })
}

/// The next step of letting a ledger go: it is marked as going, with the word that whatever it may
/// still own stays, and then loses our finalizer. Others' finalizers are theirs to remove.
fn close(ledger: &AppliedManifestWork) -> Option<Action> {
    let metadata = &ledger.metadata;
    let finalizers = metadata.finalizers.iter().flatten();
    let others: Vec<&String> = finalizers.clone().filter(|one| *one != LEDGER_FINALIZER).collect();
    let write = match &metadata.deletion_timestamp {
        None => Write::Delete {
            uid: metadata.uid.clone()?,
            resource_version: metadata.resource_version.clone(),
            propagation: Propagation::Orphan,
        },
        Some(_) if others.len() == finalizers.count() => return None,
        Some(_) => Write::Merge(json!({ "metadata": {
            "uid": metadata.uid,
            "resourceVersion": metadata.resource_version,
            "finalizers": others,
        }})),
    };
    let target = ledger_named(metadata.name.clone()?);
    Some(Action { side: Side::Cluster, target, write })
}

#[cfg(test)]
mod tests;
