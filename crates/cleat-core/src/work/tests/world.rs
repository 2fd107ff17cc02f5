//! A hub and a cluster of a few maps: two works over four objects, and everything that can go wrong
//! between a look and a write. Faults are values, so that a check which never fails can be told from
//! one that has nothing to find.

use std::collections::{BTreeMap, BTreeSet};
use std::string::{String, ToString};
use std::sync::Arc;
use std::vec::Vec;
use std::{format, vec};

use cleat_api::managedcluster::RemoveStrategy;
use cleat_api::manifestwork::{Keep, ManifestWorkStatus, OrphanRule, Removal};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::{Value, json};

use crate::id::{Id, Target};
use crate::work::WORK_FINALIZER;
use crate::work::contents::{Contents, Found, judge};
use crate::work::observed::*;
use crate::work::ownership::{LEDGER_KIND, kept_by_name, ledger_target};
use crate::work::repair::Repairs;
use crate::work::retire::{holders_due, is_held, is_inside, keeps};
use crate::work::trouble::Trouble;
use crate::write::{Action, Outcome, Refusal, Side, Write};

const KINDS: [(&str, &str, &str, &str); 5] = [
    ("", "ConfigMap", "configmaps", "a"),
    ("", "ConfigMap", "configmaps", "b"),
    ("example.com", "Widget", "widgets", "w"),
    (
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        "widgets.example.com",
    ),
    ("", "Namespace", "namespaces", "n"),
];

/// Most worlds know nothing of the namespace.
pub(crate) const WITHOUT_NAMESPACE: usize = 4;
pub(crate) const WITH_NAMESPACE: usize = 5;

pub(crate) fn id(index: usize) -> Id {
    let (group, _, resource, name) = KINDS[index];
    let wide = matches!(resource, "customresourcedefinitions" | "namespaces");
    let namespace = if wide { "" } else { "n" };
    Id {
        group: group.into(),
        resource: resource.into(),
        namespace: namespace.into(),
        name: name.into(),
    }
}

fn api_version(index: usize) -> String {
    match KINDS[index].0 {
        "" => "v1".into(),
        group => format!("{group}/v1"),
    }
}

pub(crate) fn manifest(index: usize, content: u8) -> Value {
    let id = id(index);
    json!({
        "apiVersion": api_version(index),
        "kind": KINDS[index].1,
        "metadata": { "name": id.name, "namespace": id.namespace },
        "data": { "content": content.to_string() },
    })
}

/// A replayable stream of choices (SplitMix64): a failing seed is a failing test.
pub(crate) struct Dice(pub u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % sides as u64) as usize
    }
}

/// A work on the hub.
#[derive(Clone)]
pub(crate) struct HubWork {
    pub(crate) uid: String,
    pub(crate) version: u64,
    pub(crate) generation: i64,
    pub(crate) finalizers: Vec<String>,
    pub(crate) deleting: bool,
    pub(crate) wanted: BTreeMap<usize, u8>,
    /// Kinds the cluster cannot map at the moment.
    pub(crate) unmapped: BTreeSet<usize>,
    /// A manifest nobody can read.
    pub(crate) garbled: bool,
    pub(crate) keep: Keep,
    pub(crate) keep_adopted: bool,
    /// What it said when its deletion began, where it says something else since.
    pub(crate) decided: Option<Keep>,
    pub(crate) complete: bool,
    /// What the hub was told to stay.
    pub(crate) removal: Option<Removal>,
}

#[derive(Default)]
pub(crate) struct World {
    pub(crate) works: BTreeMap<&'static str, HubWork>,
    pub(crate) objects: BTreeMap<Id, Value>,
    /// Deletes of these are refused by a webhook.
    pub(crate) guarded: BTreeSet<Id>,
    /// Changes of these are.
    pub(crate) frozen: BTreeSet<Id>,
    pub(crate) troubles: BTreeMap<&'static str, BTreeMap<Id, Trouble>>,
    pub(crate) repairs: BTreeMap<(&'static str, Id), Repairs>,
    pub(crate) clock: i64,
    /// Objects of a definition go with it, and nobody can make others before it is back; and so they
    /// do with their namespace.
    pub(crate) cascades: bool,
    /// The cluster leaves its hub in this way.
    pub(crate) leaving: Option<RemoveStrategy>,
    undefined: bool,
    last: u64,
}

/// What broke a promise.
pub(crate) type Broken = String;

impl World {
    pub(crate) fn fresh(&mut self) -> String {
        self.last += 1;
        self.last.to_string()
    }

    pub(crate) fn ask(&mut self, name: &'static str, wanted: &[(usize, u8)]) {
        let uid = format!("work-{}", self.fresh());
        self.works.insert(
            name,
            HubWork {
                uid,
                version: 1,
                generation: 1,
                finalizers: vec![],
                deleting: false,
                wanted: wanted.iter().copied().collect(),
                unmapped: BTreeSet::new(),
                garbled: false,
                keep: Keep::Nothing,
                keep_adopted: false,
                decided: None,
                complete: false,
                removal: None,
            },
        );
    }

    /// Somebody else makes an object, in place of whatever was there.
    pub(crate) fn meddle(&mut self, index: usize, content: u8, copied_marks: bool) {
        let mut object = manifest(index, content);
        let old = self.objects.get(&id(index)).cloned().unwrap_or_default();
        let metadata = &mut object["metadata"];
        metadata["uid"] = self.fresh().into();
        metadata["resourceVersion"] = self.fresh().into();
        metadata["labels"] = json!({ "made-by": "somebody" });
        if copied_marks && old["metadata"]["ownerReferences"].is_array() {
            metadata["ownerReferences"] = old["metadata"]["ownerReferences"].clone();
        }
        self.objects.insert(id(index), object);
    }

    /// Objects that were accepted for deletion go when whatever held them lets go; ledgers that are
    /// gone take with them, through the collector, what bears their mark alone.
    pub(crate) fn pass_time(&mut self, mut lets_go: impl FnMut() -> bool) {
        self.clock += 1;
        let (defined, spaced) =
            (self.objects.contains_key(&id(3)), self.objects.contains_key(&id(4)));
        self.objects.retain(|id, object| {
            let dying = object["metadata"]["deletionTimestamp"].is_string();
            let ledger = id.resource == "appliedmanifestworks";
            let held = ledger && !finalizers(object).is_empty();
            !(dying && !held && lets_go())
        });
        let ledgers: BTreeSet<String> = self
            .objects
            .iter()
            .filter(|(id, _)| id.resource == "appliedmanifestworks")
            .filter_map(|(_, object)| object["metadata"]["uid"].as_str().map(ToString::to_string))
            .collect();
        self.objects.retain(|_, object| {
            let owners =
                object["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
            owners.is_empty()
                || owners.iter().any(|owner| ledgers.contains(owner["uid"].as_str().unwrap()))
        });
        let there = self.objects.contains_key(&id(3));
        if self.cascades && defined && !there {
            self.objects.remove(&id(2));
            self.undefined = true;
        }
        if self.cascades && spaced && !self.objects.contains_key(&id(4)) {
            self.objects.retain(|one, _| one.namespace.is_empty());
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::from_second(self.clock * 20).unwrap()
    }

    pub(crate) fn observe(
        &self,
        name: &'static str,
        mut can_see: impl FnMut() -> bool,
    ) -> Observed {
        let agent = Agent { hub_hash: "hub".into(), id: "agent".into(), eviction_grace: None };
        let hub = match self.works.get(name) {
            _ if !can_see() => Hub::Unknown("the hub is out of sight".into()),
            None => Hub::Absent,
            Some(work) => Hub::Work(Work {
                namespace: "cluster1".into(),
                uid: work.uid.clone(),
                resource_version: work.version.to_string(),
                generation: work.generation,
                labels: BTreeMap::new(),
                finalizers: work.finalizers.clone(),
                deleting: work.deleting,
                keep: Ok(work.keep.clone()),
                keep_adopted: work.keep_adopted,
                on_record: None,
                read_only: ReadOnly::default(),
                status: ManifestWorkStatus {
                    conditions: work.complete.then(complete).into_iter().collect(),
                    removal: work.removal.clone(),
                    ..ManifestWorkStatus::default()
                },
            }),
        };
        let ledger = match self.objects.get(&ledger_target("hub", name).id) {
            _ if !can_see() => Ledger::Unknown("out of sight".into()),
            None => Ledger::Absent,
            Some(object) => Ledger::Present(book(object)),
        };
        let mut wanted: Vec<Wanted> = self.works.get(name).into_iter().flat_map(wanted).collect();
        for one in wanted.iter_mut().filter(|one| self.undefined && one.place.id() == Some(&id(2)))
        {
            let Id { group, resource: _, namespace, name } = id(2);
            one.place = Place::Nowhere { group, namespace, name, message: "no such kind".into() };
        }
        let mut ids: BTreeSet<Id> = wanted.iter().filter_map(|w| w.place.id().cloned()).collect();
        if let Ledger::Present(book) = &ledger {
            ids.extend(book.ids().into_iter().cloned());
            let named = hub.work().into_iter().flat_map(kept_by_name);
            ids.extend(named.filter(|id| is_held(book, id)));
        }
        let live = ids.iter().map(|id| {
            let seen = match self.objects.get(id) {
                _ if !can_see() => Seen::Unknown("out of sight".into()),
                None => Seen::Absent,
                Some(object) => Seen::Present(present(object)),
            };
            (id.clone(), seen)
        });
        let mut seen = Observed {
            now: self.now(),
            agent,
            name: name.into(),
            hub,
            ledger,
            wanted,
            live: live.collect(),
            versions: ids.iter().map(|id| (id.clone(), "v1".to_string())).collect(),
            pauses: self
                .repairs
                .iter()
                .filter(|((of, _), _)| *of == name)
                .filter_map(|((_, id), repairs)| Some((id.clone(), repairs.not_before()?)))
                .collect(),
            quarrels: self
                .repairs
                .iter()
                .filter(|((of, _), _)| *of == name)
                .filter_map(|((_, id), repairs)| Some((id.clone(), repairs.quarrel_until()?)))
                .collect(),
            troubles: self.troubles.get(name).cloned().unwrap_or_default(),
            leaving: self.leaving,
            contents: BTreeMap::new(),
            told: vec![],
            kept_elsewhere: Ok(self.kept_elsewhere(name)),
        };
        seen.contents = self.contents(&seen);
        seen
    }

    /// What the namespace and the definition hold, when it is their turn.
    pub(crate) fn contents(&self, seen: &Observed) -> BTreeMap<Id, Contents> {
        let Ledger::Present(book) = &seen.ledger else { return BTreeMap::new() };
        let is_let_go = |one: &Id| {
            !self.objects.get(one).is_some_and(|object| present(object).is_held_by(book))
        };
        let due = holders_due(seen, book, is_let_go).into_iter();
        let there = due.filter(|one| self.objects.contains_key(*one));
        there.map(|one| (one.clone(), judge(&self.inside(one), "hub"))).collect()
    }

    /// Everything in the namespace, or of the definition.
    pub(crate) fn inside(&self, holder: &Id) -> Vec<Found> {
        let inside = self.objects.iter().filter(|(one, _)| is_inside(holder, one));
        let found = inside.map(|(one, object)| {
            let Present { uid, terminating, owners, .. } = present(object);
            let terminating = terminating.is_some();
            Found {
                id: one.clone(),
                uid,
                terminating,
                owners,
                account: None,
                above: BTreeMap::new(),
                labels: BTreeMap::new(),
                finalizers: vec![],
            }
        });
        found.collect()
    }

    /// What the ledgers of the other works keep, where the cluster is to be emptied.
    fn kept_elsewhere(&self, name: &str) -> BTreeMap<Id, String> {
        if self.leaving != Some(RemoveStrategy::Required) {
            return BTreeMap::new();
        }
        let own = ledger_target("hub", name).id;
        let ledgers = self
            .objects
            .iter()
            .filter(|(id, _)| id.resource == "appliedmanifestworks" && id.name != own.name);
        ledgers.flat_map(|(_, object)| keeps(&book(object))).collect()
    }

    /// Performs one action as an API server would, and says if a promise was broken by it.
    pub(crate) fn perform(
        &mut self,
        name: &'static str,
        action: &Action,
    ) -> Result<Outcome, Broken> {
        let outcome = match action.side {
            Side::Hub => self.on_hub(name, action)?,
            Side::Cluster => self.on_cluster(name, action)?,
        };
        let now = self.now();
        if outcome.is_done() && matches!(action.write, Write::Replace(_)) {
            let key = (name, action.target.id.clone());
            let repairs = Repairs::after(self.repairs.get(&key).copied(), now);
            self.repairs.insert(key, repairs);
        }
        let troubles = self.troubles.entry(name).or_default();
        let about = Trouble::about(action);
        match Trouble::after(troubles.get(&about), &action.write, &outcome, now) {
            Some(trouble) => drop(troubles.insert(about, trouble)),
            None => drop(troubles.remove(&about)),
        }
        Ok(outcome)
    }

    fn on_hub(&mut self, name: &'static str, action: &Action) -> Result<Outcome, Broken> {
        let (Write::Merge(patch) | Write::MergeStatus(patch)) = &action.write else {
            return Err(format!("{action:?} on the hub"));
        };
        let ledger_there = self.objects.contains_key(&ledger_target("hub", name).id);
        let Some(work) = self.works.get_mut(name) else { return Ok(Outcome::NotFound) };
        if patch["metadata"]["resourceVersion"] != work.version.to_string().as_str() {
            return Ok(Outcome::Conflict("stale".into()));
        }
        work.version += 1;
        if let Write::MergeStatus(patch) = &action.write {
            work.removal = serde_json::from_value(patch["status"]["removal"].clone()).unwrap();
            return Ok(Outcome::Done(Value::Null));
        }
        work.finalizers = finalizers(patch);
        if work.deleting && !work.finalizers.iter().any(|f| f == WORK_FINALIZER) {
            if ledger_there {
                return Err(format!("{name} let go while its ledger is still there"));
            }
            self.works.remove(name);
        }
        Ok(Outcome::Done(Value::Null))
    }

    fn on_cluster(&mut self, name: &'static str, action: &Action) -> Result<Outcome, Broken> {
        let id = &action.target.id;
        let is_ledger = id.resource == "appliedmanifestworks";
        if !is_ledger {
            self.check_written_down(name, action)?;
        }
        let current = self.objects.get(id).cloned();
        let changes = matches!(action.write, Write::Replace(_) | Write::Merge(_));
        if changes && self.frozen.contains(id) {
            return Ok(refused());
        }
        match &action.write {
            Write::Create(object) => {
                if current.is_some() {
                    return Ok(Outcome::AlreadyExists);
                }
                if self.undefined && *id == super::world::id(2) {
                    return Ok(Outcome::NoSuchKind);
                }
                self.undefined &= *id != super::world::id(3);
                let mut object = object.clone();
                object["metadata"]["uid"] = self.fresh().into();
                object["metadata"]["resourceVersion"] = self.fresh().into();
                self.objects.insert(id.clone(), object.clone());
                Ok(Outcome::Done(object))
            }
            Write::Replace(object) => {
                let Some(current) = current else { return Ok(Outcome::NotFound) };
                if object["metadata"]["resourceVersion"] != current["metadata"]["resourceVersion"] {
                    return Ok(Outcome::Conflict("stale".into()));
                }
                let mut object = object.clone();
                object["metadata"]["resourceVersion"] = self.fresh().into();
                self.objects.insert(id.clone(), object.clone());
                Ok(Outcome::Done(object))
            }
            Write::Merge(patch) | Write::MergeStatus(patch) => {
                let Some(mut current) = current else { return Ok(Outcome::NotFound) };
                for field in ["uid", "resourceVersion"] {
                    if patch["metadata"][field] != current["metadata"][field] {
                        return Ok(Outcome::Conflict("stale".into()));
                    }
                }
                merge(&mut current, patch);
                current["metadata"]["resourceVersion"] = self.fresh().into();
                if is_ledger
                    && current["metadata"]["deletionTimestamp"].is_string()
                    && finalizers(&current).is_empty()
                {
                    self.check_closed(&current)?;
                    self.objects.remove(id);
                } else {
                    self.objects.insert(id.clone(), current.clone());
                }
                Ok(Outcome::Done(current))
            }
            Write::Delete { uid, resource_version, .. } => {
                let Some(mut current) = current else { return Ok(Outcome::NotFound) };
                let stale_uid = !uid.is_empty() && current["metadata"]["uid"] != uid.as_str();
                let stale = resource_version
                    .as_deref()
                    .is_some_and(|v| current["metadata"]["resourceVersion"] != v);
                if stale_uid || stale {
                    return Ok(Outcome::Conflict("stale".into()));
                }
                if self.guarded.contains(id) {
                    return Ok(refused());
                }
                if !is_ledger {
                    self.check_may_delete(name, id, &current)?;
                }
                current["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
                current["metadata"]["resourceVersion"] = self.fresh().into();
                self.objects.insert(id.clone(), current.clone());
                Ok(Outcome::Done(current))
            }
            other => Err(format!("no work asks for {other:?}")),
        }
    }

    pub(crate) fn ledger(&self, name: &str) -> Option<Book> {
        self.objects.get(&ledger_target("hub", name).id).map(book)
    }

    fn check_written_down(&self, name: &str, action: &Action) -> Result<(), Broken> {
        let id = &action.target.id;
        let Some(book) = self.ledger(name) else {
            return Err(format!("{id} touched without a ledger"));
        };
        if !book.ids().contains(id) {
            return Err(format!("{id} touched before it was written down"));
        }
        Ok(())
    }

    fn check_may_delete(&self, name: &str, id: &Id, object: &Value) -> Result<(), Broken> {
        let Some(book) = self.ledger(name) else {
            return Err(format!("{id} deleted without a ledger"));
        };
        let present = present(object);
        let recorded = book.recorded_uid(id) == Some(present.uid.as_str());
        let ours = present.is_held_by(&book) || (recorded && book.is_kept(id));
        if !ours {
            return Err(format!("{id} was not ours to delete"));
        }
        if present.owners.iter().any(|owner| owner.kind == LEDGER_KIND && owner.uid != book.uid) {
            return Err(format!("{id} was deleted under another work"));
        }
        let recorded = book.recorded_uid(id);
        let wanted = self.works.get(name).is_some_and(|work| {
            !work.deleting && work.wanted.keys().any(|i| crate::work::tests::world::id(*i) == *id)
        });
        if !wanted && recorded.is_some_and(|uid| uid != present.uid) {
            return Err(format!("{id} was made anew by somebody else, and deleted"));
        }
        if let Some(work) = self.works.get(name).filter(|work| work.deleting)
            && work.decided.as_ref().unwrap_or(&work.keep).keeps(
                &id.group,
                &id.resource,
                &id.namespace,
                &id.name,
            )
        {
            return Err(format!("{id} was to be kept"));
        }
        let definition = super::world::id(3);
        let widget = super::world::id(2);
        if *id == definition && book.ids().contains(&widget) && !wanted {
            let still = self.objects.get(&widget).is_some_and(|object| {
                self.works.get(name).is_some_and(|w| w.deleting)
                    && self::present(object).is_held_by(&book)
            });
            if still {
                return Err("a definition went before its objects".into());
            }
        }
        Ok(())
    }

    fn check_closed(&self, ledger: &Value) -> Result<(), Broken> {
        let book = book(ledger);
        let left = self.objects.iter().find(|(_, object)| present(object).is_held_by(&book));
        match left {
            Some((id, _)) => Err(format!("{id} still bears the mark of a ledger that was closed")),
            None => Ok(()),
        }
    }
}

fn refused() -> Outcome {
    let message = "admission webhook \"guard\" denied the request: not yet".into();
    Outcome::Refused(Refusal { code: 403, reason: "Forbidden".into(), message })
}

fn complete() -> Condition {
    super::regressions::told::condition("Complete", "True", 1)
}

fn wanted(work: &HubWork) -> Vec<Wanted> {
    let mut all: Vec<Wanted> = work
        .wanted
        .iter()
        .map(|(index, content)| {
            let id = id(*index);
            let place = if work.unmapped.contains(index) {
                Place::Unknown {
                    group: id.group,
                    namespace: id.namespace,
                    name: id.name,
                    message: "discovery failed".into(),
                }
            } else {
                Place::At(Target { version: "v1".into(), id })
            };
            Wanted {
                place,
                api_version: api_version(*index),
                kind: KINDS[*index].1.into(),
                manifest: Arc::new(manifest(*index, *content)),
                strategy: Strategy::Update,
                digest: u64::from(*content),
                previous: Previous::Same,
                complete: false,
                permission: Permission::Granted,
                judged: Judged::default(),
            }
        })
        .collect();
    if work.garbled {
        let mut last = all.pop().unwrap_or_else(|| panic!("a garbled work has a manifest"));
        last.place = Place::Malformed("not an object".into());
        all.push(last);
    }
    all
}

fn finalizers(object: &Value) -> Vec<String> {
    let list = object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    list.iter().filter_map(|f| f.as_str().map(ToString::to_string)).collect()
}

pub(crate) fn present(object: &Value) -> Present {
    let metadata = &object["metadata"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    let owners = metadata["ownerReferences"].as_array().cloned().unwrap_or_default();
    Present {
        uid: text(&metadata["uid"]),
        resource_version: text(&metadata["resourceVersion"]),
        terminating: metadata["deletionTimestamp"].is_string().then(|| finalizers(object)),
        owners: owners
            .iter()
            .map(|owner| Owner {
                api_version: text(&owner["apiVersion"]),
                kind: text(&owner["kind"]),
                name: text(&owner["name"]),
                uid: text(&owner["uid"]),
                controller: None,
                block_owner_deletion: None,
            })
            .collect(),
        content: Content::Read(Arc::new(object.clone())),
    }
}

fn book(object: &Value) -> Book {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    let id = |entry: &Value| Id {
        group: text(&entry["group"]),
        resource: text(&entry["resource"]),
        namespace: text(&entry["namespace"]),
        name: text(&entry["name"]),
    };
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    Book {
        uid: text(&object["metadata"]["uid"]),
        resource_version: text(&object["metadata"]["resourceVersion"]),
        deleting: object["metadata"]["deletionTimestamp"].is_string(),
        finalizers: finalizers(object),
        labels: BTreeMap::new(),
        hub_hash: text(&object["spec"]["hubHash"]),
        work_name: text(&object["spec"]["manifestWorkName"]),
        agent_id: text(&object["spec"]["agentID"]),
        claims: list(&object["spec"]["claims"])
            .iter()
            .flat_map(|entry| {
                let origin =
                    if entry["origin"] == "Adopted" { Origin::Adopted } else { Origin::Created };
                let claim = Claim { origin, kept: entry["kept"] == true };
                let names = list(&entry["names"]).into_iter();
                names.map(move |name| (Id { name: text(&name), ..id(entry) }, claim))
            })
            .collect(),
        applied: list(&object["status"]["appliedResources"])
            .iter()
            .map(|entry| {
                (id(entry), Applied { version: text(&entry["version"]), uid: text(&entry["uid"]) })
            })
            .collect(),
        eviction_start: None,
        made: BTreeMap::new(),
    }
}

fn merge(target: &mut Value, patch: &Value) {
    let (Some(patch), true) = (patch.as_object(), target.is_object()) else {
        *target = patch.clone();
        return;
    };
    for (key, value) in patch {
        if value.is_null() {
            target.as_object_mut().unwrap().remove(key);
        } else {
            merge(&mut target[key], value);
        }
    }
}

/// What a rule that keeps one object says.
pub(crate) fn keep_only(index: usize) -> Keep {
    let Id { group, resource, namespace, name } = id(index);
    Keep::Listed(vec![OrphanRule { group, resource, namespace, name }])
}
