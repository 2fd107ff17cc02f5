//! A hub small enough to hold in one hand: a policy, what places it, clusters and their copies.
//!
//! It complains instead of panicking, so that planted faults can be seen to be noticed.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use cleat_api::managedcluster::taint;
use serde_json::{Value, json};

use super::super::*;

const FINALIZER: &str = "policy.open-cluster-management.io/removal-on-cluster";

/// A replayable stream of choices (SplitMix64): a failing seed is a failing test.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % sides as u64) as usize
    }

    pub(super) fn cluster(&mut self) -> String {
        name(self.roll(5))
    }
}

pub(super) fn name(index: usize) -> String {
    format!("c{index}")
}

#[derive(Clone, Debug)]
pub(super) enum Decision {
    Settled(Vec<String>),
    /// One of the ways not to know.
    Blind(usize),
    NoPlacement,
}

/// How a cluster is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    Back,
    /// It says that it is back. The hub has not taken the taint off.
    Tainted,
    Away,
    Leaving,
    None,
}

#[derive(Clone)]
pub(super) struct World {
    pub(super) now: i64,
    pub(super) severity: i64,
    pub(super) disabled: bool,
    /// The root is gone.
    pub(super) gone: bool,
    pub(super) decision: Decision,
    /// The clusters that were not out of reach for all that was known when it was decided.
    known: Vec<String>,
    pub(super) bound: bool,
    /// Whether bindings and placements went with their definition, and since when that is there.
    lost: [Option<i64>; 2],
    links: BTreeMap<String, (Link, i64)>,
    replicas: BTreeMap<String, Value>,
    pub(super) unsure_since: Option<Timestamp>,
    told: Option<Observed>,
    /// What the hub has seen since it runs.
    sightings: Sightings,
    pub(super) complaints: Vec<String>,
    revision: i64,
    moments: i64,
}

/// How many seconds the clocks of clusters are behind.
const SLOW: [i64; 5] = [0, 15, 3_600, 0, 10];

impl World {
    pub(super) fn new() -> Self {
        Self {
            now: 1_000_000,
            severity: 0,
            disabled: false,
            gone: false,
            decision: Decision::Settled(vec![name(0), name(1)]),
            known: (0..5).map(name).collect(),
            bound: true,
            lost: [None; 2],
            links: (0..5).map(|index| (name(index), (Link::Back, 1))).collect(),
            replicas: BTreeMap::new(),
            unsure_since: None,
            told: None,
            sightings: Sightings {
                since: Timestamp::from_second(1_000_000).unwrap(),
                away: BTreeMap::new(),
                looked: [("all".into(), Timestamp::from_second(1_000_000).ok())].into(),
            },
            complaints: vec![],
            revision: 1,
            moments: 0,
        }
    }

    /// Another one each time.
    fn moment(&mut self) -> Timestamp {
        self.moments += 1;
        Timestamp::new(self.now, i32::try_from(self.moments).unwrap()).unwrap()
    }

    /// The hub decides, from what it was told of clusters. None: it cannot.
    pub(super) fn decide(&mut self, decision: Decision) {
        let settled = matches!(decision, Decision::Settled(_));
        if let Decision::NoPlacement = decision {
            self.sightings.looked.clear();
        }
        self.decision = decision;
        if settled {
            // What was no cluster was not out of reach.
            let away = |name: &String| {
                let told = self.told.as_ref().and_then(|told| told.clusters.get(name));
                told.is_some_and(|cluster| cluster.is_away())
            };
            self.known = self.links.keys().filter(|name| !away(name)).cloned().collect();
            let moment = self.moment();
            self.sightings.looked.insert("all".into(), Some(moment));
        }
    }

    /// The hub looks at the placement again, and finds it decided as it should be.
    pub(super) fn look_again(&mut self) {
        let decision = core::mem::replace(&mut self.decision, Decision::NoPlacement);
        self.decide(decision);
    }

    /// The hub begins anew, and remembers nothing.
    pub(super) fn restart(&mut self) {
        let is_there = !matches!(self.decision, Decision::NoPlacement);
        let looked = is_there.then(|| ("all".into(), None)).into_iter().collect();
        self.sightings = Sightings { since: self.moment(), away: BTreeMap::new(), looked };
        self.tell();
    }

    pub(super) fn link(&mut self, cluster: &str, link: Link) {
        let now = self.now;
        let Some(at) = self.links.get_mut(cluster).filter(|at| at.0 != link) else { return };
        *at = match (at.0, link) {
            (Link::Away, Link::Back) => (Link::Tainted, now),
            (Link::Tainted, Link::Back) => (Link::Back, at.1),
            _ => (link, now),
        };
    }

    /// The definition of bindings, or of placements, goes with all its objects, and returns.
    pub(super) fn undefine(&mut self, bindings: bool) {
        self.now += 2;
        match bindings {
            true if self.bound => (self.bound, self.lost[0]) = (false, Some(self.now)),
            false if !matches!(self.decision, Decision::NoPlacement) => {
                self.lost[1] = Some(self.now);
                self.decide(Decision::NoPlacement);
            }
            _ => {}
        }
        self.now += 2;
    }

    fn root(&self) -> Value {
        let mut spec = spec();
        spec["disabled"] = json!(self.disabled);
        spec["policy-templates"][0]["objectDefinition"]["spec"]["severity"] = json!(self.severity);
        spec
    }

    fn look(&self) -> Observed {
        let mut seen = seen();
        seen.now = Timestamp::from_second(self.now).unwrap();
        seen.root = (!self.gone).then(|| root_with(self.root(), Value::Null));
        seen.bindings.truncate(usize::from(self.bound));
        let clusters = self.links.iter().filter(|(_, (link, _))| *link != Link::None);
        seen.clusters = clusters
            .map(|(name, (link, since))| match link {
                Link::Leaving => {
                    let object = json!({ "metadata": {
                        "name": name, "deletionTimestamp": at(*since), "finalizers": ["x"],
                    } });
                    (name.clone(), Arc::new(Cluster::read(&metadata(&object), &object)))
                }
                Link::Away => cluster(name, Some(("Unknown", *since))),
                Link::Tainted | Link::Back | Link::None => {
                    let behind = name.get(1..).and_then(|index| index.parse::<usize>().ok());
                    let since = since - SLOW[behind.unwrap()];
                    let (name, mut cluster) = cluster(name, Some(("True", since.max(0))));
                    if *link == Link::Tainted {
                        let taint = json!({ "key": taint::UNREACHABLE, "effect": "NoSelect" });
                        let taint = serde_json::from_value(taint).unwrap();
                        Arc::make_mut(&mut cluster).taints.push(taint);
                    }
                    (name, cluster)
                }
            })
            .collect();
        let replicas = self.replicas.iter().filter(|(_, object)| is_ours(object));
        let read = |object: &Value| Arc::new(Replica::read(&metadata(object), object));
        seen.replicas = replicas.map(|(name, object)| (name.clone(), read(object))).collect();
        match &self.decision {
            Decision::Settled(names) => {
                let names: Vec<&str> = names.iter().map(|one| &**one).collect();
                decide(&mut seen, "all", settled(&names));
            }
            Decision::NoPlacement => decide(&mut seen, "all", Decided::NoPlacement),
            Decision::Blind(0) => decide(&mut seen, "all", Decided::Unknown),
            Decision::Blind(1) => decide(&mut seen, "all", Decided::Undecided),
            Decision::Blind(2) => {
                let listed = vec![Group::default()];
                decide(&mut seen, "all", Decided::Unsettled { listed, chosen: 3 });
            }
            Decision::Blind(_) => seen.decided.clear(),
        }
        seen
    }

    /// The watches catch up.
    pub(super) fn tell(&mut self) {
        let new = self.look();
        let before = self.told.as_ref().map(|told| &told.clusters);
        let was_away = |name: &String| {
            before.is_some_and(|all| all.get(name).is_some_and(|cluster| cluster.is_away()))
        };
        let away = |(name, cluster): &(&String, &Arc<Cluster>)| cluster.is_away() || was_away(name);
        let seen: Vec<String> =
            new.clusters.iter().filter(away).map(|(name, _)| name.clone()).collect();
        let moment = self.moment();
        self.sightings.away.extend(seen.into_iter().map(|name| (name, moment)));
        self.told = Some(new);
    }

    /// What watches have told, at this moment.
    pub(super) fn view(&self) -> Observed {
        let mut seen = self.told.clone().unwrap();
        seen.now = Timestamp::from_second(self.now).unwrap();
        seen.unsure_since = self.unsure_since;
        seen.sightings = self.sightings.clone();
        let away = seen.clusters.values().filter(|cluster| cluster.is_away());
        seen.sightings.away.extend(away.map(|cluster| (cluster.name.clone(), seen.now)));
        seen
    }

    /// What a server says when it is asked. Copies are what the watch told.
    pub(super) fn ask(&self, view: Observed, answers: bool) -> Observed {
        if !answers {
            return Observed { asked: Asked::Failed("the server did not say".into()), ..view };
        }
        let [bindings, placements] =
            self.lost.map(|since| Timestamp::from_second(since.unwrap_or(1)).unwrap());
        let asked = Asked::Since { bindings, sets: Timestamp::MIN, placements, rules: None };
        let Observed { replicas, unsure_since, sightings, .. } = view;
        Observed { asked, replicas, unsure_since, sightings, ..self.look() }
    }

    pub(super) fn perform(&mut self, action: &Action) {
        let cluster = action.target.id.namespace.clone();
        self.revision += 1;
        let (fresh, created) = (self.revision.to_string(), at(self.now));
        match &action.write {
            Write::Create(object) => {
                if self.links[&cluster].0 == Link::None && self.told_none(&cluster) {
                    self.complaints.push(format!("made a copy for {cluster}, which is none"));
                }
                if self.replicas.contains_key(&cluster) {
                    return;
                }
                let mut object = object.clone();
                object["metadata"]["uid"] = json!(format!("uid-{fresh}"));
                object["metadata"]["resourceVersion"] = fresh.into();
                object["metadata"]["creationTimestamp"] = created.into();
                // The agent holds what prunes.
                object["metadata"]["finalizers"] = json!([FINALIZER]);
                self.replicas.insert(cluster, object);
            }
            Write::Replace(object) => {
                let Some(found) = self.replicas.get_mut(&cluster) else { return };
                for key in ["uid", "resourceVersion"] {
                    if found["metadata"][key] != object["metadata"][key] {
                        return;
                    }
                }
                let mut object = object.clone();
                if object["metadata"]["finalizers"] != found["metadata"]["finalizers"] {
                    self.complaints.push(format!("let go of {cluster}'s copy"));
                }
                object["metadata"]["creationTimestamp"] =
                    found["metadata"]["creationTimestamp"].clone();
                object["metadata"]["resourceVersion"] = fresh.into();
                *found = object;
            }
            Write::Delete { uid, resource_version, .. } => {
                let Some(found) = self.replicas.get(&cluster) else { return };
                let same = |key: &str, wanted: &str| found["metadata"][key] == wanted;
                if !uid.is_empty() && !same("uid", uid) {
                    return;
                }
                if resource_version.as_ref().is_some_and(|one| !same("resourceVersion", one)) {
                    return;
                }
                if !is_ours(found) {
                    self.complaints.push(format!("deleted what is not ours at {cluster}"));
                }
                if let Some(why) = self.must_stay(&cluster) {
                    self.complaints.push(format!("deleted the copy of {cluster}, {why}"));
                }
                if let Some(found) = self.replicas.get_mut(&cluster) {
                    found["metadata"]["deletionTimestamp"] = at(self.now).into();
                }
            }
            other => self.complaints.push(format!("{other:?}")),
        }
    }

    fn told_none(&self, cluster: &str) -> bool {
        self.told.as_ref().is_some_and(|told| !told.clusters.contains_key(cluster))
    }

    /// Why a cluster's copy must not be deleted now, judged without the planner.
    fn must_stay(&self, cluster: &str) -> Option<&'static str> {
        let (link, _) = self.links[cluster];
        match link {
            Link::None => return Some("which is no cluster"),
            Link::Leaving => return Some("which leaves"),
            Link::Away | Link::Tainted | Link::Back => {}
        }
        if self.disabled || self.gone {
            return None;
        }
        if !self.bound {
            return self.is_lost(0, cluster).then_some("whose binding went with its definition");
        }
        match &self.decision {
            Decision::Settled(chosen) if chosen.iter().any(|one| one == cluster) => {
                return Some("which is chosen");
            }
            Decision::Settled(_) => {}
            Decision::Blind(_) => return Some("of which nobody knows whether it is chosen"),
            Decision::NoPlacement if self.is_lost(1, cluster) => {
                return Some("whose placement went with its definition");
            }
            Decision::NoPlacement => {}
        }
        match link {
            Link::Away | Link::Tainted => Some("which is out of reach"),
            // Who decided for others may have done so for that.
            _ if matches!(self.decision, Decision::Settled(_))
                && !self.known.iter().any(|one| one == cluster) =>
            {
                Some("which is back, as nobody knew who decided")
            }
            _ => None,
        }
    }

    fn is_lost(&self, kind: usize, cluster: &str) -> bool {
        let created = self.replicas[cluster]["metadata"]["creationTimestamp"].as_str();
        let created: Timestamp = created.unwrap_or_default().parse().unwrap();
        self.lost[kind].is_some_and(|since| created.as_second() < since)
    }

    /// Somebody with rights and ideas.
    pub(super) fn meddle(&mut self, cluster: &str, how: usize) {
        self.revision += 1;
        let revision = self.revision.to_string();
        let Some(found) = self.replicas.get_mut(cluster) else { return };
        match how {
            0 => found["spec"]["remediationAction"] = "enforce".into(),
            1 => found["metadata"]["deletionTimestamp"] = at(self.now).into(),
            // Another one of that name, which is theirs.
            2 => {
                found["metadata"]["labels"] = json!({});
                found["metadata"]["uid"] = json!(format!("uid-{revision}"));
            }
            _ => found["metadata"]["finalizers"] = json!(["theirs"]),
        }
        self.replicas.get_mut(cluster).unwrap()["metadata"]["resourceVersion"] = revision.into();
    }

    /// Whatever is there under the name of a copy, by cluster.
    pub(super) fn copies(&self) -> BTreeMap<String, Value> {
        self.replicas.clone()
    }

    /// Which incarnations there are that nobody has deleted, by cluster.
    pub(super) fn alive(&self) -> BTreeMap<String, Value> {
        let alive = self.replicas.iter().filter(|(_, object)| {
            is_ours(object) && object.pointer("/metadata/deletionTimestamp").is_none()
        });
        alive.map(|(name, object)| (name.clone(), object["metadata"]["uid"].clone())).collect()
    }

    /// The agent lets go of what is being deleted.
    pub(super) fn agent(&mut self, cluster: &str) {
        let found = self.replicas.get(cluster);
        if found.is_some_and(|one| one.pointer("/metadata/deletionTimestamp").is_some()) {
            self.replicas.remove(cluster);
        }
    }

    /// All clusters are there and have been for a while, and everything that went is made anew.
    pub(super) fn quiet(&mut self) {
        self.links.values_mut().for_each(|at| *at = (Link::Back, 1));
        self.replicas.retain(|_, object| is_ours(object));
        (self.bound, self.disabled, self.lost) = (true, false, [None; 2]);
        self.tell();
        self.decide(Decision::Settled(vec![name(1), name(3)]));
    }

    pub(super) fn check_end(&self) -> Result<(), String> {
        let found: Vec<&str> = self.replicas.keys().map(|one| &**one).collect();
        if found != ["c1", "c3"] {
            return Err(format!("in the end there are copies for {found:?}"));
        }
        let mut wanted = self.root();
        wanted["disabled"] = json!(false);
        for object in self.replicas.values() {
            if object["spec"] != wanted {
                return Err("in the end a copy is not like its root".to_owned());
            }
        }
        Ok(())
    }
}

fn is_ours(object: &Value) -> bool {
    let label = object.pointer("/metadata/labels/policy.open-cluster-management.io~1root-policy");
    label.is_some_and(|label| label == "team.p")
}
