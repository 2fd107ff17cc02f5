//! What a preview of a changed set says of its works is what the change does, over random worlds.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use serde_json::{Value, json};

use super::super::outlook::{Foreseen, Prospect, outlook};
use super::super::*;
use super::world::{World, is_deleting, is_ours};
use super::{Dice, beginning, calm, pass, settle, turn};

/// A mistake somebody could make in a preview. Each must be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    DecisionsIgnored,
    WorksIgnored,
    TemplateTakenForNew,
}

fn foresee(fault: Fault, mut seen: Observed) -> Vec<Foreseen> {
    match fault {
        Fault::None => {}
        Fault::DecisionsIgnored => {
            seen.placements.values_mut().for_each(|decided| *decided = Decided::Unknown);
        }
        Fault::WorksIgnored => seen.children = Some(vec![]),
        Fault::TemplateTakenForNew => seen.set.digest = "another".into(),
    }
    outlook(&seen).unwrap()
}

fn propose(world: &mut World, dice: &mut Dice) {
    for _ in 0..=dice.roll(3) {
        let placement = ["p1", "p2"][dice.roll(2)];
        let cluster = dice.cluster();
        let chosen = world.placements.get_mut(placement).unwrap();
        match dice.roll(5) {
            0 => drop(chosen.clusters.insert(cluster)),
            1 => drop(chosen.clusters.remove(&cluster)),
            2 => world.edit("/spec/manifestWorkTemplate/workload/manifests/0", json!(dice.roll(3))),
            3 => {
                let strategy = world.set["spec"]["placementRefs"][0]["rolloutStrategy"].clone();
                let reference = json!([{ "name": placement, "rolloutStrategy": strategy }]);
                world.edit("/spec/placementRefs", reference);
            }
            _ => {}
        }
    }
}

type Key = (String, String);

fn ours(world: &World) -> BTreeMap<Key, Value> {
    let ours = world.works.iter().filter(|(_, work)| is_ours(work));
    ours.map(|(key, work)| (key.clone(), work.clone())).collect()
}

fn compare(seed: u64, fault: Fault) -> Result<(), String> {
    let mut dice = Dice(seed);
    let mut world = beginning(&mut dice);
    world.tell();
    for _ in 0..30 {
        world.now += 1;
        if dice.roll(3) == 0 {
            world.tell();
        }
        let look = world.observe(|| dice.roll(8) > 0);
        turn(&mut world, &mut dice);
        let budget = dice.roll(6);
        pass(&mut world, plan, &look, budget);
    }
    propose(&mut world, &mut dice);
    calm(&mut world);
    world.tell();
    let foreseen = foresee(fault, world.observe(|| true));
    let before = ours(&world);
    settle(&mut world, plan);
    let after = ours(&world);
    let template = world.template();
    let said = |work: &Value| (work["metadata"].clone(), work["spec"].clone());
    let uid = |work: Option<&Value>| work.map(|work| work["metadata"]["uid"].clone());
    for one in &foreseen {
        let key = (one.cluster.clone(), one.name.clone());
        let (old, new) = (before.get(&key), after.get(&key));
        let same_one = old.is_some() && uid(old) == uid(new);
        let right = match &one.prospect {
            Prospect::Create(_) => old.is_none() && new.is_some_and(|new| new["spec"] == template),
            Prospect::Change(given) => {
                let labels = new.map(|new| new["metadata"]["labels"].clone());
                same_one && old.map(said) != new.map(said) && labels == Some(json!(given.labels))
            }
            Prospect::Unchanged => same_one && old.map(said) == new.map(said),
            Prospect::Delete | Prospect::DeleteLater(_) => old.is_some() && new.is_none(),
            // Nothing but what is on its way out stays undecided in a calm world.
            Prospect::Stays(_) => old.is_some_and(is_deleting) && !same_one,
        };
        if !right {
            return Err(format!("{one:?}; before: {old:?}; after: {new:?}"));
        }
    }
    let told = |key: &Key| foreseen.iter().any(|one| (&one.cluster, &one.name) == (&key.0, &key.1));
    match before.keys().chain(after.keys()).find(|key| !told(key)) {
        Some(key) => Err(format!("{key:?} was not foreseen")),
        None => Ok(()),
    }
}

const WORLDS: u64 = 500;

#[test]
fn what_a_preview_of_a_set_says_is_what_happens() {
    for seed in 0..WORLDS {
        if let Err(wrong) = compare(seed, Fault::None) {
            panic!("seed {seed}: {wrong}");
        }
    }
}

#[test]
fn every_wrong_preview_of_a_set_is_found() {
    for fault in [Fault::DecisionsIgnored, Fault::WorksIgnored, Fault::TemplateTakenForNew] {
        let found = (0..WORLDS).any(|seed| compare(seed, fault).is_err());
        assert!(found, "{fault:?} would go unnoticed");
    }
}

#[test]
fn what_is_not_known_takes_nothing_away_and_says_so() {
    let mut dice = Dice(1);
    let mut world = beginning(&mut dice);
    settle(&mut world, plan);
    for placement in world.placements.values_mut() {
        placement.exists = false;
    }
    let foreseen = outlook(&world.observe(|| true)).unwrap();
    let stays = |prospect: &Prospect| match prospect {
        Prospect::Stays(why) => why.contains("while it is not known what p1, p2 decided"),
        _ => false,
    };
    assert!(foreseen.iter().all(|one| stays(&one.prospect)), "{foreseen:?}");
    let unlisted = Observed { children: None, ..world.observe(|| true) };
    assert_eq!(outlook(&unlisted), Err("its works could not be listed".to_string()));
}
