//! Whatever mix of edits, crashes, blind spots, old views, failing agents and meddling came before,
//! a quiet world ends as asked; a deleted set leaves nothing of ours and nothing of others' harmed.

mod outlooks;
mod world;

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use cleat_api::manifestworkreplicaset::{PLACEMENT_LABEL, SET_LABEL};
use serde_json::{Value, json};

use self::world::{KEY, World, is_deleting, is_ours};
use super::*;

const CLUSTERS: [&str; 4] = ["c1", "c2", "c3", "c4"];

/// A replayable stream of choices (SplitMix64): a failing seed is a failing test.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % sides as u64) as usize
    }

    fn cluster(&mut self) -> String {
        CLUSTERS[self.roll(CLUSTERS.len())].to_string()
    }
}

type Planner = fn(&Observed) -> Plan;

/// One reconcile that dies after `budget` actions.
fn pass(world: &mut World, planner: Planner, look: &Observed, budget: usize) {
    let plan = planner(look);
    world.check_pace(look, &plan);
    let mut left = budget;
    for step in &plan {
        let mut failed = false;
        for action in step {
            if left == 0 || world.gone {
                return;
            }
            left -= 1;
            failed |= world.perform(look, action).is_err();
        }
        if failed {
            return;
        }
    }
}

/// What is decided is known, and nothing is out of reach or in the way.
fn calm(world: &mut World) {
    for placement in world.placements.values_mut() {
        (placement.exists, placement.decided) = (true, true);
        placement.chosen = placement.clusters.len();
    }
    world.away.clear();
    // The owner did what the status asked for: nothing is in the way any more.
    world.works.retain(|(_, name), work| is_ours(work) || name == "other");
}

fn settle(world: &mut World, planner: Planner) {
    calm(world);
    for _ in 0..60 {
        world.now += 1;
        let keys: Vec<_> = world.works.keys().cloned().collect();
        keys.iter().filter(|(_, name)| name != "other").for_each(|key| world.agent(key, 2));
        world.tell();
        let look = world.observe(|| true);
        if world.gone || planner(&look).is_empty() {
            return;
        }
        pass(world, planner, &look, usize::MAX);
    }
    world.complaints.push("did not settle".into());
}

/// What a quiet world must look like.
fn check_settled(world: &mut World) {
    let mut found: Vec<(String, String)> = vec![];
    let template = world.template();
    for ((cluster, name), work) in &world.works {
        if !is_ours(work) {
            continue;
        }
        let placement = work["metadata"]["labels"][PLACEMENT_LABEL].as_str().unwrap_or_default();
        if work["spec"] != template || work["metadata"]["labels"]["team"] != "blue" {
            world.complaints.push(format!("{cluster}/{name} is not as asked"));
        }
        found.push((placement.into(), cluster.clone()));
    }
    found.sort();
    let references = world.set["spec"]["placementRefs"].as_array().unwrap();
    let names = references.iter().filter_map(|one| one["name"].as_str());
    let mut wanted: Vec<(String, String)> = names
        .flat_map(|name| {
            let clusters = world.placements[name].clusters.iter();
            clusters.map(move |cluster| (name.to_string(), cluster.clone()))
        })
        .collect();
    wanted.sort();
    if found != wanted {
        world.complaints.push(format!("found {found:?}, wanted {wanted:?}"));
    }
}

fn turn(world: &mut World, dice: &mut Dice) {
    let placement = ["p1", "p2"][dice.roll(2)];
    let keys: Vec<_> = world.works.keys().filter(|(_, name)| name != "other").cloned().collect();
    let some = (!keys.is_empty()).then(|| keys[dice.roll(keys.len())].clone());
    let chosen = world.placements.get_mut(placement).unwrap();
    match dice.roll(18) {
        16 => drop(world.away.insert(dice.cluster())),
        17 => drop(world.away.remove(&dice.cluster())),
        0 | 1 => drop(chosen.clusters.insert(dice.cluster())),
        // Decisions are rewritten one after the other: what is missing may only be on its way.
        2 | 3 => drop(chosen.clusters.remove(&dice.cluster())),
        4 => chosen.exists = !chosen.exists,
        5 => chosen.decided = !chosen.decided,
        6 => chosen.chosen = chosen.clusters.len(),
        7 => world.edit("/spec/manifestWorkTemplate/workload/manifests/0", json!(dice.roll(3))),
        8 => {
            let strategy = world.set["spec"]["placementRefs"][0]["rolloutStrategy"].clone();
            let reference = |name: &str| json!({ "name": name, "rolloutStrategy": strategy });
            let references = match dice.roll(3) {
                0 => json!([reference("p1")]),
                1 => json!([reference("p2")]),
                _ => json!([reference("p1"), reference("p2")]),
            };
            world.edit("/spec/placementRefs", references);
        }
        9 | 10 => {
            let Some(key) = some else { return };
            let kind = dice.roll(4);
            let number = dice.roll(9);
            meddle(world, &key, kind, number);
        }
        _ => {
            let Some(key) = some else { return };
            let fortune = dice.roll(4);
            world.agent(&key, fortune);
        }
    }
}

/// Somebody with rights and ideas.
fn meddle(world: &mut World, key: &(String, String), kind: usize, number: usize) {
    let uid = world.uid();
    let Some(work) = world.works.get_mut(key).filter(|work| is_ours(work)) else { return };
    match kind {
        0 => {
            work["spec"]["workload"]["manifests"] = json!([format!("by hand {number}")]);
            work["spec"]["executor"] = json!({ "subject": number });
            let generation = work["metadata"]["generation"].as_i64().unwrap();
            work["metadata"]["generation"] = json!(generation + 1);
        }
        1 => drop(work["metadata"]["labels"].as_object_mut().unwrap().remove(PLACEMENT_LABEL)),
        2 => work["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"),
        // Another one under the same name, which is nobody's but theirs.
        _ => *work = json!({ "metadata": { "uid": uid, "generation": 1 }, "spec": {} }),
    }
}

/// A hub on which a set has just been made, among works of others and of an earlier controller.
fn beginning(dice: &mut Dice) -> World {
    let cascade = ["Background", "Foreground"][dice.roll(2)];
    let mut world = match dice.roll(3) {
        0 => World::new(json!({ "type": "All" }), None, cascade),
        1 => {
            let strategy = json!({ "type": "Progressive", "progressive": { "maxConcurrency": 1 } });
            World::new(strategy, Some(1), cascade)
        }
        _ => World::new(json!({ "type": "ProgressivePerGroup" }), None, cascade),
    };
    for name in ["p1", "p2"] {
        let clusters = [dice.cluster(), dice.cluster()].into();
        let placement = world::Placement { exists: true, decided: true, clusters, chosen: 0 };
        world.placements.insert(name.into(), placement);
    }
    for cluster in CLUSTERS {
        let mut others = json!({ "metadata": {}, "spec": { "theirs": true } });
        world.born(&mut others);
        world.works.insert((cluster.into(), "other".into()), others);
        if dice.roll(2) == 0 {
            // As OCM would have made it.
            let labels = json!({ SET_LABEL: KEY, PLACEMENT_LABEL: "p1" });
            let metadata = json!({ "namespace": cluster, "name": "webx7k2p", "labels": labels });
            let mut work = json!({ "metadata": metadata, "spec": { "old": {} } });
            world.born(&mut work);
            world.works.insert((cluster.into(), "webx7k2p".into()), work);
        }
    }
    world
}

fn history(seed: u64, planner: Planner) -> Result<(), String> {
    let mut dice = Dice(seed);
    let mut world = beginning(&mut dice);
    let others: Vec<Value> =
        CLUSTERS.iter().map(|at| world.works[&(at.to_string(), "other".into())].clone()).collect();
    // A controller begins with a list.
    world.tell();
    for step in 0..60 {
        world.now += 1;
        if step == 50 {
            world.delete_set();
        }
        // A watch may lag behind, but never for ever.
        if dice.roll(3) == 0 {
            world.tell();
        }
        let look = world.observe(|| dice.roll(8) > 0);
        turn(&mut world, &mut dice);
        if step == 49 {
            settle(&mut world, planner);
            check_settled(&mut world);
        } else if !world.gone {
            pass(&mut world, planner, &look, dice.roll(6));
        }
        if let Some(complaint) = world.complaints.first() {
            return Err(format!("step {step}: {complaint}"));
        }
    }
    settle(&mut world, planner);
    if !world.gone {
        world.complaints.push("never let go".into());
    }
    if world.works.values().any(|work| is_ours(work) && !is_deleting(work)) {
        world.complaints.push("left something behind".into());
    }
    let left: Vec<Value> =
        CLUSTERS.iter().map(|at| world.works[&(at.to_string(), "other".into())].clone()).collect();
    if left != others {
        world.complaints.push("harmed what is not ours".into());
    }
    world.complaints.first().map_or(Ok(()), |complaint| Err(complaint.clone()))
}

#[test]
fn every_history_ends_well() {
    for seed in 0..400 {
        if let Err(complaint) = history(seed, plan) {
            panic!("seed {seed}: {complaint}");
        }
    }
}

fn with_placements(seen: &Observed, change: impl Fn(&Decided) -> Decided) -> Observed {
    let placements = seen.placements.iter().map(|(name, at)| (name.clone(), change(at)));
    Observed { placements: placements.collect(), ..seen.clone() }
}

fn with_writes(mut plan: Plan, change: impl Fn(&mut Write)) -> Plan {
    plan.iter_mut().flatten().for_each(|action| change(&mut action.write));
    plan
}

fn without(mut plan: Plan, drops: impl Fn(&Action) -> bool) -> Plan {
    plan.iter_mut().for_each(|step| step.retain(|action| !drops(action)));
    plan.retain(|step| !step.is_empty());
    plan
}

fn is_about_the_set(action: &Action) -> bool {
    action.target.id.resource == "manifestworkreplicasets"
}

/// Plans with one thing wrong each.
const FAULTS: [(&str, Planner); 16] = [
    ("clusters out of reach lose their works", |seen| {
        plan(&Observed { clusters: BTreeMap::new(), ..seen.clone() })
    }),
    ("a placement that vanished counts as empty", |seen| {
        plan(&with_placements(seen, |at| match at {
            Decided::NoPlacement => Decided::Settled(vec![]),
            other => other.clone(),
        }))
    }),
    ("a placement that has not decided counts as empty", |seen| {
        plan(&with_placements(seen, |at| match at {
            Decided::Undecided => Decided::Settled(vec![]),
            other => other.clone(),
        }))
    }),
    ("a placement that cannot be read counts as empty", |seen| {
        plan(&with_placements(seen, |at| match at {
            Decided::Unknown => Decided::Settled(vec![]),
            other => other.clone(),
        }))
    }),
    ("half written decisions count as whole", |seen| {
        plan(&with_placements(seen, |at| match at {
            Decided::Unsettled { listed, .. } => Decided::Settled(listed.clone()),
            other => other.clone(),
        }))
    }),
    ("works that cannot be listed count as none", |seen| {
        let children = Some(seen.children.clone().unwrap_or_default());
        plan(&Observed { children, ..seen.clone() })
    }),
    ("works get new names each time", |seen| {
        let mut plan = plan(seen);
        for action in plan.iter_mut().flatten() {
            if matches!(action.write, Write::Create(_)) {
                action.target.id.name = format!("web{}", seen.now.as_second());
            }
        }
        plan
    }),
    ("deletes whatever has the name", |seen| {
        with_writes(plan(seen), |write| {
            if let Write::Delete { uid, .. } = write {
                uid.clear();
            }
        })
    }),
    ("foreground lets go like background", |seen| {
        let mut seen = seen.clone();
        seen.set.cascade = Cascade::Background;
        plan(&seen)
    }),
    ("lets go before it deletes", |seen| {
        let mut plan = plan(seen);
        plan.reverse();
        plan
    }),
    ("clusters that leave keep their works", |seen| {
        let deleting = seen.set.deleting;
        without(plan(seen), |action| !deleting && matches!(action.write, Write::Delete { .. }))
    }),
    ("everybody at once, whatever the strategy", |seen| {
        let mut seen = seen.clone();
        for reference in &mut seen.set.placements {
            reference.strategy = Ok(rollout::Strategy::default());
        }
        plan(&seen)
    }),
    ("changes by hand stay", |seen| {
        without(plan(seen), |action| match &action.write {
            Write::Merge(patch) => {
                patch["metadata"]["annotations"].get(TEMPLATE_SINCE).is_none()
                    && patch.get("spec").is_some()
            }
            _ => false,
        })
    }),
    ("what is replaced goes before its replacement is applied", |seen| {
        let mut seen = seen.clone();
        for child in seen.children.iter_mut().flatten() {
            let mut hasty = Child::clone(child);
            hasty.applied =
                Some(Told { status: Truth::True, generation: hasty.generation, since: None });
            *child = Arc::new(hasty);
        }
        plan(&seen)
    }),
    ("works are made before the set is held", |seen| {
        let mut held = seen.clone();
        held.set.finalizers = vec![FINALIZER.into()];
        plan(&held)
    }),
    ("the finalizer stays for ever", |seen| {
        without(plan(seen), |action| seen.set.deleting && is_about_the_set(action))
    }),
];

#[test]
fn every_planted_fault_is_noticed() {
    for (fault, planner) in FAULTS {
        let noticed = (0..400).find_map(|seed| history(seed, planner).err().map(|why| (seed, why)));
        let Some((seed, why)) = noticed else { panic!("nobody noticed that {fault}") };
        std::println!("{fault}: noticed by seed {seed}, {why}");
    }
}
