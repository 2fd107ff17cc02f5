//! A hub and a cluster of a few maps: works over objects, an agent that follows what it last heard,
//! and everything that can go wrong between a look and a write. Faults are values, so that a check
//! that never fails can be told from one that has nothing to find.

use std::collections::BTreeMap;
use std::string::{String, ToString as _};
use std::vec::Vec;
use std::{format, vec};

use cleat_api::managedcluster::{FINALIZER, ManagedCluster, RemoveStrategy};
use cleat_api::manifestwork::{LEAVE_FINALIZER, ManifestWork, ON_RECORD};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::lease::{Heartbeat, Sight};
use crate::leave::agent::{self, Held, Standing};
use crate::leave::carried::Carried;
use crate::leave::hub::{Observed, Way, plan, way};
use crate::leave::record::is_receipted;
use crate::leave::{Verdict, report};
use crate::registration::access::Part;
use crate::registration::hub::Seen;
use crate::work::WORK_FINALIZER;
use crate::work::contents::Contents;
use crate::write::{Action, Outcome, Refusal, Write};

pub(super) const NAME: &str = "c1";
pub(super) const OWN_ID: &str = "id";

/// What broke a promise.
pub(super) type Broken = String;

/// A replayable stream of choices (SplitMix64): a failing seed is a failing test.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % sides as u64) as usize
    }
}

/// A mistake in the hub's look, which some promise must notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// A failed list counts as an empty one.
    BlindIsEmpty,
    /// A silent cluster counts as destroyed.
    SilentIsDestroyed,
    /// Everything counts as written down.
    AllRecorded,
    /// The agent counts as done.
    Released,
    /// The agent counts as told.
    Told,
    /// Nothing needs anything.
    NoOrder,
}

#[derive(Clone, Debug)]
pub(super) struct Thing {
    pub(super) uid: String,
    pub(super) marked: bool,
    pub(super) kept: bool,
    pub(super) guarded: bool,
}

pub(super) struct World {
    pub(super) cluster: Value,
    pub(super) gone: bool,
    pub(super) parts: BTreeMap<Part, Value>,
    pub(super) works: BTreeMap<String, Value>,
    pub(super) records: BTreeMap<String, Value>,
    /// By work and name.
    pub(super) things: BTreeMap<(String, String), Thing>,
    /// What the agent heard last of its cluster.
    pub(super) heard: Standing,
    pub(super) alive: bool,
    pub(super) clock: i64,
    pub(super) beat: i64,
    pub(super) sight: Sight,
    /// What the cluster's namespace on the hub holds besides.
    pub(super) contents: Contents,
    /// Something holds the namespace when it goes.
    pub(super) stuck: bool,
    pub(super) deleted: Vec<String>,
    version: u64,
}

/// Works by name, and their objects.
type Works = [(&'static str, &'static [&'static str]); 3];

/// One brings a namespace, one lives in it, one is by itself.
const WORKS: Works = [
    ("base", &["namespaces shop"]),
    ("shop", &["configmaps shop/a", "configmaps shop/b"]),
    ("other", &["configmaps else/c"]),
];

/// The same, where two bring one more namespace and live in it.
const SHARING: Works = [
    ("base", &["namespaces shop"]),
    ("shop", &["configmaps shop/a", "configmaps shop/b", "namespaces more", "configmaps more/d"]),
    ("other", &["configmaps else/c", "namespaces more", "configmaps more/e"]),
];

pub(super) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn merge(target: &mut Value, patch: &Value) {
    let (Value::Object(fields), true) = (patch, target.is_object()) else {
        *target = patch.clone();
        return;
    };
    for (key, value) in fields {
        if value.is_null() {
            target.as_object_mut().unwrap().remove(key);
        } else if value.is_object() && target[key].is_object() {
            merge(&mut target[key], value);
        } else {
            target[key] = value.clone();
        }
    }
}

fn finalizers(object: &Value) -> Vec<String> {
    let all = object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    all.iter().map(|one| one.as_str().unwrap().to_string()).collect()
}

impl World {
    pub(super) fn new(strategy: &str) -> Self {
        Self::with(strategy, WORKS)
    }

    /// One in which works share ground.
    pub(super) fn sharing(strategy: &str) -> Self {
        Self::with(strategy, SHARING)
    }

    fn with(strategy: &str, works: Works) -> Self {
        let condition = |kind: &str| {
            json!({
                "type": kind, "status": "True", "reason": "R", "message": "",
                "lastTransitionTime": "1970-01-01T00:16:40Z",
            })
        };
        let cluster = json!({
            "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
            "metadata": {
                "name": NAME, "uid": "cluster-uid", "resourceVersion": "1", "generation": 1,
                "finalizers": [FINALIZER], "deletionTimestamp": "1970-01-01T00:16:40Z",
                "annotations": { "cleat.dev/cluster-id": OWN_ID },
            },
            "spec": {
                "hubAcceptsClient": true, "removeStrategy": strategy, "leaseDurationSeconds": 10,
            },
            "status": { "conditions": [
                condition("ManagedClusterJoined"), condition("ManagedClusterConditionAvailable"),
            ] },
        });
        let parts = Part::ALL.map(|part| {
            let mut object = part.wanted(NAME, crate::registration::access::Standing::Accepted);
            object["metadata"]["uid"] = json!(format!("{part:?}"));
            (part, object)
        });
        let mut world = Self {
            cluster,
            gone: false,
            parts: parts.into(),
            works: BTreeMap::new(),
            records: BTreeMap::new(),
            things: BTreeMap::new(),
            heard: Standing::Member,
            alive: true,
            clock: 1000,
            beat: 1000,
            sight: Sight::Watched,
            contents: Contents::Ours,
            stuck: false,
            deleted: vec![],
            version: 1,
        };
        for (work, objects) in works {
            let mut manifests = vec![];
            for (ordinal, object) in objects.iter().enumerate() {
                let (resource, name) = object.split_once(' ').unwrap();
                let (namespace, name) = name.split_once('/').unwrap_or(("", name));
                let uid = format!("uid-{name}");
                manifests.push(json!({
                    "resourceMeta": {
                        "ordinal": ordinal, "version": "v1", "resource": resource, "name": name,
                        "namespace": namespace, "uid": uid,
                    },
                    "conditions": [],
                }));
                let thing = Thing { uid, marked: true, kept: false, guarded: false };
                world.things.insert((work.to_string(), name.to_string()), thing);
            }
            world.works.insert(
                work.to_string(),
                json!({
                    "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
                    "metadata": {
                        "name": work, "namespace": NAME, "uid": format!("uid-of-{work}"),
                        "resourceVersion": "1", "finalizers": [WORK_FINALIZER],
                    },
                    "spec": { "workload": { "manifests": [] } },
                    "status": { "conditions": [], "resourceStatus": { "manifests": manifests } },
                }),
            );
        }
        world
    }

    pub(super) fn cluster(&self) -> ManagedCluster {
        serde_json::from_value(self.cluster.clone()).unwrap()
    }

    pub(super) fn observe(&self, blind: bool) -> Observed {
        let seen = |part: Part| self.parts.get(&part).cloned().map_or(Seen::Absent, Seen::Present);
        let works = self.works.values().map(|work| {
            let work: ManifestWork = serde_json::from_value(work.clone()).unwrap();
            Carried::work(&work)
        });
        let records = self.records.values().map(|one| serde_json::from_value(one.clone()).unwrap());
        Observed {
            cluster: self.cluster(),
            parts: Part::ALL.into_iter().map(|part| (part, seen(part))).collect(),
            contents: Some(self.contents.clone()),
            carried: if blind { Err("blind".to_string()) } else { Ok(works.collect()) },
            records: Ok(records.collect()),
            heartbeat: Heartbeat {
                renewed: Some(at(self.beat)),
                seen: Some(at(self.beat)),
                sight: self.sight,
            },
            now: at(self.clock),
        }
    }

    /// The hub looks, acts (up to `most` actions, then it crashes) and tells.
    pub(super) fn hub(
        &mut self,
        fault: Option<Fault>,
        blind: bool,
        most: usize,
    ) -> Result<bool, Broken> {
        if self.gone {
            return Ok(false);
        }
        let truth = self.observe(blind);
        let seen = mistaken(truth.clone(), fault);
        let mut done: Vec<Vec<Outcome>> = vec![];
        let mut left = most;
        let mut acted = false;
        for step in plan(&seen) {
            let mut outcomes = vec![];
            for action in &step {
                if left == 0 {
                    return Ok(true);
                }
                left -= 1;
                acted = true;
                outcomes.push(self.perform(action)?);
            }
            let stop = outcomes.iter().any(|one| !one.is_done());
            done.push(outcomes);
            if stop {
                break;
            }
        }
        if self.gone {
            return Ok(true);
        }
        let Verdict { status, .. } = report(&seen, &done);
        if let Some(status) = status {
            self.perform(&status)?;
            return Ok(true);
        }
        Ok(acted)
    }

    /// Somebody writes; what meets a change is lost.
    pub(super) fn write(&mut self, action: &Action) {
        self.perform(action).unwrap();
    }

    fn perform(&mut self, action: &Action) -> Result<Outcome, Broken> {
        let id = &action.target.id;
        let part = Part::ALL.into_iter().find(|part| part.target(NAME) == action.target);
        match id.resource.as_str() {
            "managedclusters" => self.write_cluster(&action.write),
            "manifestworks" => self.write_work(&id.name, &action.write),
            "leftoverrecords" => Ok(self.write_record(&id.name, &action.write)),
            _ => self.write_part(part.unwrap(), &action.write),
        }
    }

    fn write_cluster(&mut self, write: &Write) -> Result<Outcome, Broken> {
        let (Write::Merge(patch) | Write::MergeStatus(patch)) = write else {
            return Err(format!("{write:?} of the cluster"));
        };
        if patch["metadata"]["resourceVersion"] != self.cluster["metadata"]["resourceVersion"] {
            return Ok(Outcome::Conflict("it changed".to_string()));
        }
        merge(&mut self.cluster, patch);
        self.version += 1;
        self.cluster["metadata"]["resourceVersion"] = json!(self.version.to_string());
        if finalizers(&self.cluster).is_empty() {
            let kept = |part: &Part| *part == Part::Namespace && self.contents != Contents::Ours;
            let held: Vec<_> = self.parts.keys().filter(|part| !kept(part)).collect();
            if !held.is_empty() || !self.works.is_empty() {
                return Err(format!("the cluster went before {held:?} and its works"));
            }
            self.gone = true;
        }
        Ok(Outcome::Done(Value::Null))
    }

    fn write_work(&mut self, name: &str, write: &Write) -> Result<Outcome, Broken> {
        let truth = self.observe(false);
        let without = matches!(way(&truth), Way::WithoutAgent(_));
        let Some(work) = self.works.get(name).cloned() else { return Ok(Outcome::NotFound) };
        match write {
            Write::Delete { .. } => {
                if !without && self.heard != Standing::Leaving(truth.strategy()) && self.is_new() {
                    return Err(format!("{name} was deleted before the agent heard"));
                }
                let needs = name == "base" && self.works.contains_key("shop");
                if needs && !without {
                    return Err("the namespace went before what is in it".to_string());
                }
                let work = self.works.get_mut(name).unwrap();
                work["metadata"]["deletionTimestamp"] = json!("1970-01-01T00:20:00Z");
            }
            Write::Merge(patch) => {
                let before = finalizers(&work);
                let work = self.works.get_mut(name).unwrap();
                merge(work, patch);
                let after = finalizers(work);
                let lost =
                    |one: &str| before.iter().any(|f| f == one) && !after.iter().any(|f| f == one);
                let things = self.things.iter().filter(|((of, _), _)| of == name);
                let unwritten = things.map(|(_, thing)| thing.uid.clone()).find(|uid| {
                    !self.records.values().any(|record| record.to_string().contains(uid.as_str()))
                });
                if lost(WORK_FINALIZER) && !without {
                    return Err(format!("{name} was taken from its agent"));
                }
                if (lost(WORK_FINALIZER) || lost(LEAVE_FINALIZER))
                    && let Some(uid) = unwritten
                {
                    return Err(format!("{name} was forgotten, and {uid} is nowhere"));
                }
            }
            other => return Err(format!("{other:?} of a work")),
        }
        self.reap(name);
        Ok(Outcome::Done(Value::Null))
    }

    /// Whether the strategy that the agent follows never was the one that counts.
    fn is_new(&self) -> bool {
        !matches!(self.heard, Standing::Leaving(_))
    }

    fn reap(&mut self, name: &str) {
        let ended = self.works.get(name).is_some_and(|work| {
            work["metadata"]["deletionTimestamp"].is_string() && finalizers(work).is_empty()
        });
        if ended {
            self.works.remove(name);
        }
    }

    fn write_record(&mut self, name: &str, write: &Write) -> Outcome {
        match write {
            Write::Create(_) if self.records.contains_key(name) => return Outcome::AlreadyExists,
            Write::Create(object) => {
                self.version += 1;
                let mut object = object.clone();
                object["metadata"]["resourceVersion"] = json!(self.version.to_string());
                self.records.insert(name.to_string(), object);
            }
            Write::Merge(patch) => {
                let Some(record) = self.records.get_mut(name) else { return Outcome::NotFound };
                let version = &patch["metadata"]["resourceVersion"];
                if *version != record["metadata"]["resourceVersion"] {
                    return Outcome::Conflict("it changed".to_string());
                }
                merge(record, patch);
                self.version += 1;
                record["metadata"]["resourceVersion"] = json!(self.version.to_string());
            }
            _ => return refused("not that"),
        }
        Outcome::Done(Value::Null)
    }

    fn write_part(&mut self, part: Part, write: &Write) -> Result<Outcome, Broken> {
        if let Write::Apply { object, .. } = write {
            let mut object = object.clone();
            object["metadata"]["uid"] = json!(format!("{part:?}"));
            self.parts.insert(part, object);
            return Ok(Outcome::Done(Value::Null));
        }
        if !self.works.is_empty() {
            return Err(format!("{part:?} was touched while there are works"));
        }
        let truth = self.observe(false);
        let without = matches!(way(&truth), Way::WithoutAgent(_));
        let marked = self.things.values().any(|thing| thing.marked);
        if marked && !without {
            return Err(format!("{part:?} was touched while the agent holds something"));
        }
        let going = |part: &Value| part["metadata"]["deletionTimestamp"].is_string();
        let namespace = self.parts.get(&Part::Namespace);
        let open = self.contents == Contents::Ours && !namespace.is_none_or(going);
        if part == Part::Work && open {
            return Err("the right to look after works went while more could come".to_string());
        }
        match write {
            Write::Merge(patch) => merge(self.parts.get_mut(&part).unwrap(), patch),
            Write::Delete { .. } if part == Part::Namespace && self.contents != Contents::Ours => {
                return Err(format!("the namespace went with {:?}", self.contents));
            }
            Write::Delete { .. } if part == Part::Namespace => {
                let now = json!(at(self.clock).to_string());
                self.parts.get_mut(&part).unwrap()["metadata"]["deletionTimestamp"] = now;
            }
            Write::Delete { .. } => {
                if !finalizers(&self.parts[&part]).is_empty() {
                    return Ok(refused("held"));
                }
                let inner = [Part::Work, Part::Registration, Part::Lease];
                if part == Part::Role && inner.iter().any(|one| self.parts.contains_key(one)) {
                    return Err("access went before the rest".to_string());
                }
                self.parts.remove(&part);
            }
            other => return Err(format!("{other:?} of {part:?}")),
        }
        // The namespace takes along what nothing holds.
        if self.parts.get(&Part::Namespace).is_some_and(going) {
            for inner in [Part::Work, Part::Registration, Part::Lease] {
                if self.parts.get(&inner).is_some_and(|one| finalizers(one).is_empty()) {
                    self.parts.remove(&inner);
                }
            }
            if !self.parts.contains_key(&Part::Work) && !self.stuck {
                self.parts.remove(&Part::Namespace);
            }
        }
        Ok(Outcome::Done(Value::Null))
    }

    /// The agent does what it can by what it heard; `hears`: it hears first.
    pub(super) fn agent(&mut self, hears: bool) {
        if !self.alive || self.gone {
            return;
        }
        let allowed = self.parts.contains_key(&Part::Work) || self.works.is_empty();
        if !allowed {
            return;
        }
        self.beat = self.clock;
        if hears {
            self.heard = agent::standing(&self.cluster, OWN_ID);
        }
        let names: Vec<String> = self.works.keys().cloned().collect();
        for name in names {
            let work = self.works.get_mut(&name).unwrap();
            let deleting = work["metadata"]["deletionTimestamp"].is_string();
            if !deleting || !finalizers(work).iter().any(|one| one == WORK_FINALIZER) {
                continue;
            }
            // Before it takes anything away on a work's account it asks the hub.
            if self.heard == Standing::Member {
                self.heard = agent::standing(&self.cluster, OWN_ID);
            }
            let needless = self.heard == Standing::Leaving(RemoveStrategy::Needless);
            let of_work = |(of, _): &(String, String)| *of == name;
            let keys: Vec<_> = self.things.keys().filter(|key| of_work(key)).cloned().collect();
            for key in &keys {
                let thing = self.things.get_mut(key).unwrap();
                if needless || thing.kept {
                    thing.marked = false;
                } else if thing.marked && !thing.guarded {
                    self.let_go(key);
                }
            }
            let work = self.works.get_mut(&name).unwrap();
            let blocked: Vec<Value> = keys
                .iter()
                .filter_map(|key| self.things.get(key).map(|thing| (key, thing)))
                .filter(|(_, thing)| thing.marked)
                .map(|(key, _)| json!({ "object": key.1, "why": "denied", "refused": true }))
                .collect();
            let settled = blocked.is_empty();
            let left: Vec<Value> = keys
                .iter()
                .filter_map(|key| self.things.get(key).map(|thing| (key, thing)))
                .map(|(key, thing)| {
                    json!({ "resource": "things", "name": key.1, "uid": thing.uid, "why": "kept" })
                })
                .collect();
            let left = if settled { left } else { vec![] };
            work["status"]["removal"] =
                json!({ "blocked": blocked, "left": left, "remaining": [] });
            // What stays of a work that the hub could not hold is on record before it is let go of.
            let removal = serde_json::from_value(work["status"]["removal"].clone()).unwrap();
            let on_record = work["metadata"]["annotations"][ON_RECORD].as_str();
            let leaves = matches!(self.heard, Standing::Leaving(_));
            let written = is_receipted(&finalizers(work), Some(&removal), on_record);
            if settled && (written || !leaves) {
                let others: Vec<String> =
                    finalizers(work).into_iter().filter(|one| one != WORK_FINALIZER).collect();
                work["metadata"]["finalizers"] = json!(others);
                self.reap(&name);
            }
        }
        // A ledger whose work the hub does not have any more goes too.
        if let Standing::Leaving(strategy) = self.heard {
            let stranded = |key: &&(String, String)| !self.works.contains_key(&key.0);
            let keys: Vec<_> = self.things.keys().filter(stranded).cloned().collect();
            for key in &keys {
                let Some(thing) = self.things.get_mut(key).filter(|thing| thing.marked) else {
                    continue;
                };
                if strategy == RemoveStrategy::Needless || thing.kept {
                    thing.marked = false;
                } else if !thing.guarded {
                    self.let_go(key);
                }
            }
        }
        let held = self.things.values().filter(|thing| thing.marked).count();
        let with_us = self
            .works
            .values()
            .filter(|work| finalizers(work).iter().any(|one| one == WORK_FINALIZER));
        let what = (held + with_us.count() > 0).then(|| "things".to_string());
        let cluster = self.cluster();
        let same = agent::standing(&self.cluster, OWN_ID) == self.heard;
        let held = Held { what, ..Held::default() };
        if let Some(action) = agent::report(&cluster, &held, at(self.clock))
            && same
        {
            self.perform(&action).unwrap();
        }
    }
}

impl World {
    /// A work lets go of an object: the last that holds it takes it away.
    fn let_go(&mut self, key: &(String, String)) {
        let Some(thing) = self.things.remove(key) else { return };
        let is_it = |other: &&Thing| other.uid == thing.uid;
        if self.things.values().filter(is_it).any(|other| other.marked) {
            return;
        }
        self.things.retain(|_, other| other.uid != thing.uid);
        self.deleted.push(key.1.clone());
    }
}

fn refused(message: &str) -> Outcome {
    Outcome::Refused(Refusal {
        code: 403,
        reason: "Forbidden".to_string(),
        message: message.to_string(),
    })
}

fn mistaken(mut seen: Observed, fault: Option<Fault>) -> Observed {
    let set = |seen: &mut Observed, status: &str| {
        let reason = seen.strategy().as_str();
        let conditions = &mut seen.cluster.status.as_mut().unwrap().conditions;
        conditions.retain(|one| one.type_ != "ResourcesReleased");
        conditions.push(
            serde_json::from_value(json!({
                "type": "ResourcesReleased", "status": status, "reason": reason, "message": "",
                "lastTransitionTime": "1970-01-01T00:16:40Z",
            }))
            .unwrap(),
        );
    };
    match fault {
        Some(Fault::BlindIsEmpty) if seen.carried.is_err() => seen.carried = Ok(vec![]),
        Some(Fault::SilentIsDestroyed) if seen.pulse() == crate::lease::Pulse::Stopped => {
            let annotations = seen.cluster.metadata.annotations.as_mut().unwrap();
            annotations.insert("cleat.dev/cluster-destroyed".into(), NAME.into());
        }
        Some(Fault::Told) if !seen.is_told() => set(&mut seen, "False"),
        None | Some(Fault::BlindIsEmpty | Fault::SilentIsDestroyed | Fault::Told) => {}
        Some(Fault::AllRecorded) => {
            let all = seen.carried.clone().unwrap_or_default();
            let mut objects = vec![];
            for one in all {
                objects.extend(one.left);
                objects.extend(one.objects);
            }
            let mut record = cleat_api::leftoverrecord::LeftoverRecord::default();
            record.spec.objects = objects;
            seen.records = Ok(vec![record]);
        }
        Some(Fault::Released) => set(&mut seen, "True"),
        Some(Fault::NoOrder) => {
            for one in seen.carried.iter_mut().flatten() {
                for object in &mut one.objects {
                    object.namespace.clear();
                }
            }
        }
    }
    seen
}
