//! A hub small enough to hold in one hand: a set, its placements, and works with agents.
//!
//! It keeps objects as a server does and performs the real writes, so that what planners read and
//! write is tested on the way. It complains instead of panicking, so that planted faults can be
//! seen to be noticed.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use cleat_api::manifestworkreplicaset::{FINALIZER, PLACEMENT_LABEL, SET_LABEL};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::super::*;

pub(super) const KEY: &str = "apps.web";

/// A placement and its decisions, by group.
#[derive(Clone, Default)]
pub(super) struct Placement {
    pub(super) exists: bool,
    pub(super) decided: bool,
    pub(super) clusters: BTreeSet<String>,
    /// What its status claims.
    pub(super) chosen: usize,
}

pub(super) struct World {
    pub(super) now: i64,
    pub(super) set: Value,
    pub(super) gone: bool,
    pub(super) works: BTreeMap<(String, String), Value>,
    pub(super) placements: BTreeMap<String, Placement>,
    /// Clusters that nobody reaches.
    pub(super) away: BTreeSet<String>,
    /// What a watch has told of the works so far.
    pub(super) view: Vec<Arc<Child>>,
    /// A whole number of clusters at once, where the strategy has one.
    pub(super) at_once: Option<usize>,
    pub(super) complaints: Vec<String>,
    uids: u64,
}

pub(super) enum Missed {
    Conflict,
    AlreadyExists,
}

pub(super) fn is_ours(work: &Value) -> bool {
    work.pointer("/metadata/labels").and_then(|all| all.get(SET_LABEL)).is_some_and(|at| at == KEY)
}

pub(super) fn is_deleting(object: &Value) -> bool {
    object.pointer("/metadata/deletionTimestamp").is_some()
}

fn group_of(cluster: &str) -> &'static str {
    if cluster < "c3" { "0" } else { "1" }
}

impl World {
    pub(super) fn new(strategy: Value, at_once: Option<usize>, cascade: &str) -> Self {
        let reference = |name: &str| json!({ "name": name, "rolloutStrategy": strategy });
        let set = json!({
            "metadata": {
                "namespace": "apps", "name": "web", "uid": "set", "resourceVersion": "1",
                "generation": 1, "labels": { "team": "blue" },
            },
            "spec": {
                "manifestWorkTemplate": { "workload": { "manifests": [0] } },
                "placementRefs": [reference("p1"), reference("p2")],
                "cascadeDeletionPolicy": cascade,
            },
        });
        Self {
            now: 1_800_000_000,
            set,
            gone: false,
            works: BTreeMap::new(),
            placements: BTreeMap::new(),
            away: BTreeSet::new(),
            view: vec![],
            at_once,
            complaints: vec![],
            uids: 0,
        }
    }

    pub(super) fn template(&self) -> Value {
        self.set.pointer("/spec/manifestWorkTemplate").unwrap().clone()
    }

    pub(super) fn deleting(&self) -> bool {
        is_deleting(&self.set)
    }

    pub(super) fn uid(&mut self) -> String {
        self.uids += 1;
        self.uids.to_string()
    }

    /// The watch catches up.
    pub(super) fn tell(&mut self) {
        self.view = self.works.values().filter(|work| is_ours(work)).map(child).collect();
    }

    fn clusters(&self) -> BTreeMap<String, Arc<Cluster>> {
        let cluster = |name: &str| {
            let status = if self.away.contains(name) { "Unknown" } else { "True" };
            let object = json!({ "metadata": { "name": name }, "status": { "conditions": [{
                "type": "ManagedClusterConditionAvailable", "status": status,
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }] } });
            (name.to_string(), Arc::new(Cluster::read(&metadata(&object), &object)))
        };
        super::CLUSTERS.iter().map(|name| cluster(name)).collect()
    }

    pub(super) fn observe(&self, mut can_see: impl FnMut() -> bool) -> Observed {
        let set = Set::read(&metadata(&self.set), &self.set);
        let placements = self.placements.iter().map(|(name, placement)| {
            let decided = if can_see() { placement.decided() } else { Decided::Unknown };
            (name.clone(), decided)
        });
        let live = || self.works.values().filter(|work| is_ours(work)).map(child).collect();
        let placements = placements.collect();
        let children = can_see().then(|| if set.deleting { live() } else { self.view.clone() });
        let now = Timestamp::from_second(self.now).unwrap();
        let clusters = self.clusters();
        let (undefined, setbacks) = (false, Setbacks::new());
        let sightings = Sightings::default();
        Observed { now, set, placements, children, clusters, sightings, undefined, setbacks }
    }

    pub(super) fn perform(&mut self, look: &Observed, action: &Action) -> Result<(), Missed> {
        let id = &action.target.id;
        if id.resource == "manifestworkreplicasets" {
            return self.finalize(&action.write);
        }
        let key = (id.namespace.clone(), id.name.clone());
        match &action.write {
            Write::Create(object) => self.create(key, object),
            Write::Merge(patch) => self.merge(&key, patch),
            Write::Delete { uid, .. } => self.delete(look, &key, uid),
            other => {
                self.complaints.push(format!("unexpected {other:?}"));
                Ok(())
            }
        }
    }

    fn finalize(&mut self, write: &Write) -> Result<(), Missed> {
        let Write::Merge(patch) = write else { return Err(Missed::Conflict) };
        for key in ["uid", "resourceVersion"] {
            if patch["metadata"][key] != self.set["metadata"][key] {
                return Err(Missed::Conflict);
            }
        }
        let left = patch["metadata"]["finalizers"].as_array().unwrap().clone();
        if self.deleting() && left.is_empty() {
            let foreground = self.set["spec"]["cascadeDeletionPolicy"] == "Foreground";
            let stays = |work: &&Value| is_ours(work) && (foreground || !is_deleting(work));
            if self.works.values().any(|work| stays(&work)) {
                self.complaints.push("let go while works remain".into());
            }
            self.gone = true;
        }
        self.set["metadata"]["finalizers"] = Value::Array(left);
        self.touch();
        Ok(())
    }

    fn touch(&mut self) {
        let version = self.uid();
        self.set["metadata"]["resourceVersion"] = json!(format!("v{version}"));
    }

    /// An edit of the set by its owner.
    pub(super) fn edit(&mut self, pointer: &str, value: Value) {
        *self.set.pointer_mut(pointer).unwrap() = value;
        self.set["metadata"]["generation"] =
            json!(self.set["metadata"]["generation"].as_i64().unwrap() + 1);
        self.touch();
    }

    pub(super) fn delete_set(&mut self) {
        if self.set.pointer("/metadata/finalizers/0").is_none() {
            self.gone = true;
        }
        self.set["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        self.touch();
    }

    fn create(&mut self, key: (String, String), object: &Value) -> Result<(), Missed> {
        if self.set["metadata"]["finalizers"] != json!([FINALIZER]) {
            self.complaints.push("made a work without holding the set".into());
        }
        if self.works.contains_key(&key) {
            return Err(Missed::AlreadyExists);
        }
        let label = |work: &Value| work["metadata"]["labels"][PLACEMENT_LABEL].clone();
        let mut others = self.works.iter().filter(|((cluster, _), work)| {
            *cluster == key.0 && is_ours(work) && !is_deleting(work)
        });
        if others.any(|(_, work)| label(work) == label(object)) {
            self.complaints.push(format!("a second work for {}", key.0));
        }
        let mut work = object.clone();
        self.born(&mut work);
        self.works.insert(key, work);
        Ok(())
    }

    pub(super) fn born(&mut self, work: &mut Value) {
        work["metadata"]["uid"] = json!(self.uid());
        work["metadata"]["generation"] = json!(1);
        let time = Timestamp::from_second(self.now).unwrap();
        work["metadata"]["creationTimestamp"] = json!(time.to_string());
    }

    fn merge(&mut self, key: &(String, String), patch: &Value) -> Result<(), Missed> {
        let Some(work) = self.works.get_mut(key) else { return Err(Missed::Conflict) };
        if patch["metadata"]["uid"] != work["metadata"]["uid"] {
            return Err(Missed::Conflict);
        }
        if !is_ours(work) {
            self.complaints.push(format!("changed {key:?}, which is not ours"));
        }
        let spec = work["spec"].clone();
        super::super::template::tests::merge(work, patch);
        if work["spec"] != spec {
            work["metadata"]["generation"] =
                json!(work["metadata"]["generation"].as_i64().unwrap() + 1);
        }
        Ok(())
    }

    fn delete(&mut self, look: &Observed, key: &(String, String), uid: &str) -> Result<(), Missed> {
        let Some(work) = self.works.get_mut(key) else { return Ok(()) };
        // A request without a uid deletes whatever is there.
        if !uid.is_empty() && work["metadata"]["uid"] != uid {
            return Err(Missed::Conflict);
        }
        if !is_ours(work) {
            self.complaints.push(format!("deleted {key:?}, which is not ours"));
        }
        work["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        if look.set.deleting {
            return Ok(());
        }
        let placements = look.set.placements.iter().map(|one| look.placements.get(&one.name));
        let mut wanted = false;
        for decided in placements {
            match decided {
                Some(Decided::Settled(groups)) => {
                    wanted |= groups.iter().any(|group| group.clusters.contains(&key.0));
                }
                _ => self.complaints.push(format!("deleted {key:?} without knowing")),
            }
        }
        let child = look
            .children
            .iter()
            .flatten()
            .find(|one| (&one.cluster, &one.name) == (&key.0, &key.1));
        let asked = child.is_some_and(|child| {
            let mut names = look.set.placements.iter().map(|one| &one.name);
            names.any(|name| {
                *name == child.placement() || child::name(&look.set, name) == child.name
            })
        });
        let away = look.clusters.get(&key.0).is_some_and(|cluster| cluster.is_away());
        if asked && !wanted && away {
            self.complaints.push(format!("deleted {key:?} for being out of reach"));
        }
        let holds = |child: &&Arc<Child>| {
            child.cluster == key.0 && child.name != key.1 && !child.deleting && child.is_applied()
        };
        if wanted && !look.children.iter().flatten().any(|child| holds(&child)) {
            self.complaints.push(format!("left a gap on {}", key.0));
        }
        Ok(())
    }

    /// No more clusters at once than may, by what was known when it was decided.
    pub(super) fn check_pace(&mut self, look: &Observed, plan: &Plan) {
        let Some(at_once) = self.at_once else { return };
        for placement in ["p1", "p2"] {
            let new = plan.iter().flatten().filter(|action| {
                let (Write::Create(object) | Write::Merge(object)) = &action.write else {
                    return false;
                };
                let metadata = &object["metadata"];
                metadata["annotations"].get(TEMPLATE_SINCE).is_some()
                    && metadata["labels"][PLACEMENT_LABEL] == placement
            });
            let new = new.count();
            let busy = look.children.iter().flatten().filter(|child| {
                let wanted = look.placements.get(placement).map(Decided::groups);
                let mut wanted = wanted.unwrap_or_default().iter();
                let current = child.spec == look.set.digest && !child.deleting;
                let done = child.progressing.is_some_and(|told| {
                    told.status == Truth::False && told.generation == child.generation
                });
                wanted.any(|group| group.clusters.contains(&child.cluster))
                    && child.placement() == placement
                    && current
                    && !done
            });
            let busy = busy.count();
            if new > 0 && new + busy > at_once {
                self.complaints.push(format!("{new} more clusters while {busy} are busy"));
            }
        }
    }

    /// The agent of one work takes a step; `fortune` says how it fares.
    pub(super) fn agent(&mut self, key: &(String, String), fortune: usize) {
        let Some(work) = self.works.get_mut(key) else { return };
        if is_deleting(work) {
            self.works.remove(key);
            return;
        }
        let generation = work["metadata"]["generation"].clone();
        let (progressing, degraded) = match fortune {
            0 => ("True", "False"),
            1 => ("True", "True"),
            _ => ("False", "False"),
        };
        let told = |kind: &str, status: &str| {
            json!({
                "type": kind, "status": status, "observedGeneration": generation,
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            })
        };
        work["status"]["conditions"] = json!([
            told("Applied", "True"),
            told("Available", "True"),
            told("Progressing", progressing),
            told("Degraded", degraded),
        ]);
    }
}

impl Placement {
    fn decided(&self) -> Decided {
        let placement = json!({ "status": { "numberOfSelectedClusters": self.chosen } });
        let none = metadata(&json!({}));
        let mut decisions = vec![];
        for group in ["0", "1"] {
            let label = "cluster.open-cluster-management.io/decision-group-index";
            let clusters = self.clusters.iter().filter(|name| group_of(name) == group);
            let list: Vec<Value> = clusters.map(|name| json!({ "clusterName": name })).collect();
            let labels = json!({ "metadata": { "labels": { label: group } } });
            decisions.push((metadata(&labels), json!({ "status": { "decisions": list } })));
        }
        if !self.decided {
            decisions.clear();
        }
        let decisions = decisions.iter().map(|(metadata, data)| (metadata, data));
        Decided::read(self.exists.then_some((&none, &placement)), decisions)
    }
}

fn metadata(object: &Value) -> k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
    serde_json::from_value(object.get("metadata").cloned().unwrap_or_default()).unwrap_or_default()
}

fn child(work: &Value) -> Arc<Child> {
    Arc::new(Child::read(&metadata(work), work))
}
