//! Random lives of a placement: clusters, sets and bindings that come and go, definitions that take
//! them along, old views, servers that do not answer, crashes. No cluster leaves the decisions
//! unless somebody said so, and in the end they list what is chosen. Plans with one thing wrong are
//! found out.

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use alloc::{format, vec};
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::*;
use crate::write::{Action, Plan, Write};

const CLUSTERS: usize = 6;

/// A replayable stream of choices (SplitMix64): a failing seed is a failing test.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % sides as u64) as usize
    }
}

/// What a definition took along: bindings, sets, clusters.
const KINDS: usize = 3;

#[derive(Clone)]
struct World {
    now: i64,
    /// By group: how many to a group make decisions move.
    per_group: usize,
    spec_broken: bool,
    /// By cluster: whether it fits.
    clusters: BTreeMap<String, bool>,
    bound: bool,
    set: bool,
    set_broken: bool,
    /// Since when each kind is defined; none while it is not.
    defined: [Option<i64>; KINDS],
    decisions: BTreeMap<String, Value>,
    told: Option<Observed>,
    complaints: Vec<String>,
    revision: i64,
}

fn name(index: usize) -> String {
    format!("c{index}")
}

impl World {
    fn new() -> Self {
        Self {
            now: 1000,
            per_group: 2,
            spec_broken: false,
            clusters: (0..4).map(|index| (name(index), true)).collect(),
            bound: true,
            set: true,
            set_broken: false,
            defined: [Some(1); KINDS],
            decisions: BTreeMap::new(),
            told: None,
            complaints: vec![],
            revision: 1,
        }
    }

    fn look(&self) -> Observed {
        let strategy = json!({ "groupStrategy": { "clustersPerDecisionGroup": self.per_group } });
        let selector = json!({ "requiredClusterSelector": {
            "labelSelector": { "matchLabels": { "fits": "yes" } } } });
        let mut spec = json!({ "decisionStrategy": strategy, "predicates": [selector] });
        if self.spec_broken {
            spec["numberOfClusters"] = "many".into();
        }
        let fits = |fits: bool| json!({ "fits": if fits { "yes" } else { "no" } });
        let clusters = self.clusters.iter().map(|(name, one)| plain(name, fits(*one))).collect();
        let mut seen = seen(spec, clusters);
        seen.now = Timestamp::from_second(self.now).unwrap();
        seen.defined = Defined::Unasked;
        match (self.bound, self.set) {
            (true, true) if self.set_broken => {
                let mut set = ManagedClusterSet::clone(&seen.bound[0]);
                set.spec.cluster_selector.selector_type =
                    cleat_api::managedclusterset::SelectorType::Unknown;
                seen.bound = vec![Arc::new(set)];
            }
            (true, true) => {}
            (true, false) => (seen.bound, seen.lost) = (vec![], vec!["all".into()]),
            (false, _) => seen.bound.clear(),
        }
        let read = |object: &Value| {
            let metadata = serde_json::from_value(object["metadata"].clone()).unwrap();
            Arc::new(Decision::read(&metadata, object))
        };
        seen.decisions = self.decisions.values().map(read).collect();
        seen
    }

    fn tell(&mut self) {
        self.told = Some(self.look());
    }

    /// What a server says when it is asked. Decisions are what the watch told.
    fn ask(&self, view: &Observed) -> Observed {
        let names = ["bindings", "sets", "clusters"];
        let mut seen = self.look();
        seen.decisions.clone_from(&view.decisions);
        let gone = self.defined.iter().position(Option::is_none);
        seen.defined = match (gone, self.defined) {
            (None, [Some(bindings), Some(sets), Some(clusters)]) => since(bindings, sets, clusters),
            (gone, _) => Defined::Gone(names[gone.unwrap_or_default()].into()),
        };
        seen
    }

    /// The definition of a kind goes with all its objects, and may return without them.
    fn undefine(&mut self, kind: usize) {
        self.now += 2;
        self.defined[kind] = None;
        match kind {
            0 => self.bound = false,
            1 => self.set = false,
            _ => self.clusters.clear(),
        }
    }

    fn listed(&self) -> BTreeSet<String> {
        let lists = self.decisions.values().filter_map(|one| one["status"]["decisions"].as_array());
        lists.flatten().map(|one| one["clusterName"].as_str().unwrap().to_string()).collect()
    }

    /// Why a cluster must stay listed, judged without the planner.
    fn must_stay(&self, cluster: &str, created: i64) -> Option<&'static str> {
        let lost = |kind: usize| self.defined[kind].is_none_or(|since| since > created);
        if self.defined.contains(&None) {
            return Some("while a definition is gone");
        }
        match (self.bound, self.set) {
            _ if self.spec_broken => Some("for a spec that cannot be read"),
            (false, _) => lost(0).then_some("for want of bindings that went with their kind"),
            (true, false) => lost(1).then_some("for want of sets that went with their kind"),
            (true, true) if self.set_broken => Some("for a set that cannot be read"),
            (true, true) => match self.clusters.get(cluster) {
                Some(true) => Some("which is chosen"),
                Some(false) => None,
                None => lost(2).then_some("which went with its kind"),
            },
        }
    }

    fn perform(&mut self, action: &Action) {
        let before = self.listed();
        // When the decisions that list a cluster were made.
        let mut made: BTreeMap<String, i64> = BTreeMap::new();
        for decision in self.decisions.values() {
            let created = decision["metadata"]["creationTimestamp"].as_str().unwrap();
            let created: Timestamp = created.parse().unwrap();
            for one in decision["status"]["decisions"].as_array().into_iter().flatten() {
                let name = one["clusterName"].as_str().unwrap().to_string();
                let at = made.entry(name).or_insert(i64::MAX);
                *at = created.as_second().min(*at);
            }
        }
        self.write(action);
        let after = self.listed();
        for cluster in before.difference(&after) {
            if let Some(why) = self.must_stay(cluster, made[cluster]) {
                self.complaints.push(format!("took {cluster} out, {why}"));
            }
        }
    }

    fn write(&mut self, action: &Action) {
        self.revision += 1;
        let revision = self.revision.to_string();
        let key = &action.target.id.name;
        let found = self.decisions.get_mut(key);
        let current = |object: &Value, patch: &Value| {
            ["uid", "resourceVersion"].iter().all(|key| object["metadata"][*key] == patch[*key])
        };
        match (&action.write, found) {
            (Write::Create(object), None) => {
                let mut object = object.clone();
                object["metadata"]["uid"] = format!("uid-{revision}").into();
                object["metadata"]["resourceVersion"] = revision.into();
                object["metadata"]["creationTimestamp"] = at(self.now).into();
                self.decisions.insert(key.clone(), object);
            }
            (Write::Merge(patch), Some(object)) if current(object, &patch["metadata"]) => {
                for field in ["labels", "ownerReferences"] {
                    object["metadata"][field] = patch["metadata"][field].clone();
                }
                object["metadata"]["resourceVersion"] = revision.into();
            }
            (Write::MergeStatus(patch), Some(object)) if current(object, &patch["metadata"]) => {
                object["status"] = patch["status"].clone();
                object["metadata"]["resourceVersion"] = revision.into();
            }
            (Write::Delete { uid, resource_version, .. }, Some(object)) => {
                let patch = json!({ "uid": uid, "resourceVersion": resource_version });
                if current(object, &patch) {
                    self.decisions.remove(key);
                }
            }
            _ => {}
        }
    }
}

type Planner = fn(&Observed, &Selection) -> Plan;

#[derive(Clone, Copy)]
struct Controller {
    plan: Planner,
    asks: bool,
    /// What a placement that cannot be understood chooses.
    broken: Option<fn() -> Selection>,
}

const SOUND: Controller = Controller { plan, asks: true, broken: None };

fn pass(world: &mut World, controller: Controller, answers: bool, budget: usize) {
    let mut seen = world.told.clone().unwrap();
    seen.now = Timestamp::from_second(world.now).unwrap();
    let settle = |seen: &Observed| {
        let chosen = choose(seen, &words);
        chosen.or_else(|why| controller.broken.map(|make| make()).ok_or(why))
    };
    let Ok(mut selection) = settle(&seen) else { return };
    if !taken_out(&seen, &selection).is_empty() && controller.asks && answers {
        seen = world.ask(&seen);
        let Ok(again) = settle(&seen) else { return };
        selection = again;
    }
    let plan = (controller.plan)(&seen, &selection);
    let _ = report(&seen, Ok(&selection), &plan, &[]);
    for action in plan.iter().flatten().take(budget) {
        world.perform(action);
    }
}

fn turn(world: &mut World, dice: &mut Dice) {
    let cluster = name(dice.roll(CLUSTERS));
    let whole = world.defined.iter().all(Option::is_some);
    match dice.roll(16) {
        0..3 if world.defined[2].is_some() => drop(world.clusters.insert(cluster, true)),
        3 if world.defined[2].is_some() => drop(world.clusters.insert(cluster, false)),
        4 => drop(world.clusters.remove(&cluster)),
        5 | 6 => world.per_group = 1 + dice.roll(4),
        7 => world.spec_broken = !world.spec_broken,
        8 if world.defined[0].is_some() => world.bound = !world.bound,
        9 if world.defined[1].is_some() => world.set = !world.set,
        10 => world.set_broken = !world.set_broken,
        11 if whole => world.undefine(dice.roll(KINDS)),
        12 | 13 => {
            for kind in 0..KINDS {
                world.defined[kind] = world.defined[kind].or(Some(world.now));
            }
        }
        _ => world.now += 5,
    }
}

fn history(seed: u64, controller: Controller) -> Result<(), String> {
    let mut dice = Dice(seed);
    let mut world = World::new();
    world.tell();
    for step in 0..60 {
        world.now += 1;
        turn(&mut world, &mut dice);
        if dice.roll(3) > 0 {
            world.tell();
        }
        let answers = dice.roll(6) > 0;
        pass(&mut world, controller, answers, dice.roll(4));
        if let Some(complaint) = world.complaints.first() {
            return Err(format!("step {step}: {complaint}"));
        }
    }
    // Everything is made anew.
    (world.spec_broken, world.set_broken) = (false, false);
    (world.bound, world.set, world.defined) = (true, true, [Some(1); KINDS]);
    world.clusters = (0..CLUSTERS).map(|index| (name(index), index % 2 == 0)).collect();
    for _ in 0..20 {
        world.tell();
        pass(&mut world, controller, true, usize::MAX);
        if let Some(complaint) = world.complaints.first() {
            return Err(format!("in the end: {complaint}"));
        }
    }
    let wanted: BTreeSet<String> = [0, 2, 4].map(name).into();
    let counts: usize = world
        .decisions
        .values()
        .filter_map(|one| one["status"]["decisions"].as_array())
        .map(Vec::len)
        .sum();
    if world.listed() != wanted || counts != wanted.len() {
        return Err(format!("in the end {:?} are listed, {counts} in all", world.listed()));
    }
    Ok(())
}

#[test]
fn every_history_ends_well() {
    for seed in 0..400 {
        if let Err(complaint) = history(seed, SOUND) {
            panic!("seed {seed}: {complaint}");
        }
    }
}

fn defined_as(seen: &Observed, change: impl Fn(&Defined) -> bool) -> Observed {
    let mut seen = seen.clone();
    if change(&seen.defined) {
        seen.defined = since(0, 0, 0);
    }
    seen
}

fn nobody() -> Selection {
    Selection { groups: vec![Group::default()], ..Selection::default() }
}

fn planning(plan: Planner) -> Controller {
    Controller { plan, ..SOUND }
}

/// Controllers with one thing wrong each.
fn faults() -> Vec<(&'static str, Controller)> {
    [
        (
            "takes out what a watch says, without asking",
            Controller {
                plan: |seen, selection| plan(&defined_as(seen, |_| true), selection),
                asks: false,
                broken: None,
            },
        ),
        (
            "a server that does not answer agrees",
            planning(|seen, selection| {
                plan(&defined_as(seen, |one| *one == Defined::Unasked), selection)
            }),
        ),
        (
            "a definition that is gone is no matter",
            planning(|seen, selection| {
                plan(&defined_as(seen, |one| matches!(one, Defined::Gone(_))), selection)
            }),
        ),
        (
            "what went with its definition was taken away",
            planning(|seen, selection| {
                plan(&defined_as(seen, |one| matches!(one, Defined::Since { .. })), selection)
            }),
        ),
        ("who cannot be understood chooses nobody", Controller { broken: Some(nobody), ..SOUND }),
        (
            "decisions are written in one go",
            planning(|seen, selection| {
                let mut plan = plan(seen, selection);
                let chosen = super::super::decision::slices(&seen.wish, selection);
                for action in plan.iter_mut().flatten() {
                    let slice = chosen.iter().find(|slice| slice.name == action.target.id.name);
                    if let (Write::MergeStatus(patch), Some(slice)) = (&mut action.write, slice) {
                        let names = slice.clusters.iter();
                        let list: Vec<Value> =
                            names.map(|name| json!({ "clusterName": name })).collect();
                        patch["status"]["decisions"] = list.into();
                    }
                }
                plan
            }),
        ),
        (
            "what is not needed goes first",
            planning(|seen, selection| {
                let wanted = super::super::decision::slices(&seen.wish, selection);
                let spare = seen
                    .decisions
                    .iter()
                    .filter(|one| wanted.iter().all(|slice| slice.name != one.name));
                let mut fake = seen.clone();
                fake.decisions = spare.cloned().collect();
                let deletes = plan(&fake, &Selection::default());
                match deletes.is_empty() {
                    true => plan(seen, selection),
                    false => deletes,
                }
            }),
        ),
        (
            "decisions never shrink",
            planning(|seen, selection| {
                let mut plan = plan(seen, selection);
                for step in &mut plan {
                    step.retain(|action| !matches!(action.write, Write::Delete { .. }));
                }
                plan
            }),
        ),
    ]
    .into()
}

#[test]
fn every_planted_fault_is_noticed() {
    for (fault, controller) in faults() {
        let noticed =
            (0..400).find_map(|seed| history(seed, controller).err().map(|why| (seed, why)));
        let Some((seed, why)) = noticed else { panic!("nobody noticed that {fault}") };
        std::println!("{fault}: noticed by seed {seed}, {why}");
    }
}
