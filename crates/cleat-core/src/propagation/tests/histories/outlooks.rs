//! What a preview says of a policy's copies is what then happens, over random worlds.

use alloc::format;
use alloc::string::String;

use serde_json::Value;

use super::world::{Decision, Dice, Link, World};
use super::{SOUND, clusters_as, decided_as, pass, turn};
use crate::propagation::outlook::{Change, Proposed, Prospect, outlook, proposal};
use crate::propagation::tests::*;

type Fault = fn(&Observed) -> Observed;

/// Foresees one deletion in one world, lets it happen, and compares.
fn compare(seed: u64, fault: Fault) -> Result<(), String> {
    let mut dice = Dice(seed);
    let mut world = World::new();
    world.tell();
    for _ in 0..dice.roll(40) {
        world.now += 1;
        turn(&mut world, &mut dice);
        world.tell();
        pass(&mut world, SOUND, true, dice.roll(4));
    }
    // Whoever asks, and whoever takes away, asks the server first.
    world.tell();
    let seen = world.ask(world.view(), true);
    let change = match dice.roll(3) {
        0 => Change::Root,
        1 => Change::Binding("bind".into()),
        _ => Change::Placement("all".into()),
    };
    let foreseen = outlook(&fault(&seen), &change);
    let before = world.alive();
    match change {
        Change::Root => world.gone = true,
        Change::Binding(_) => world.bound = false,
        Change::Placement(_) => world.decide(Decision::NoPlacement),
    }
    for _ in 0..4 {
        world.now += 20;
        world.tell();
        world.look_again();
        pass(&mut world, SOUND, true, usize::MAX);
    }
    let after = world.alive();
    for (cluster, uid) in &before {
        let still = after.get(cluster) == Some(uid);
        let right = match foreseen.get(cluster) {
            Some(Prospect::Leaves) => !still,
            Some(Prospect::Stays(_) | Prospect::LeavesLater(_)) => still,
            None => false,
        };
        if !right {
            return Err(format!("{change:?}, {cluster}: {:?}", foreseen.get(cluster)));
        }
    }
    // Whoever is back by then loses it after all.
    for (cluster, prospect) in &foreseen {
        if let (Prospect::LeavesLater(_), false) = (prospect, world.disabled) {
            // It says so, and then the hub takes its taint off.
            world.link(cluster, Link::Back);
            world.link(cluster, Link::Back);
        }
    }
    for _ in 0..2 {
        world.now += 20;
        world.tell();
        world.look_again();
        pass(&mut world, SOUND, true, usize::MAX);
    }
    let after = world.alive();
    let later = foreseen.iter().filter(|(_, one)| matches!(one, Prospect::LeavesLater(_)));
    match later.into_iter().find(|(cluster, _)| after.contains_key(*cluster)) {
        Some((cluster, _)) => Err(format!("{cluster} is back and keeps its copy")),
        None => Ok(()),
    }
}

const WORLDS: u64 = 500;

#[test]
fn what_a_preview_says_of_copies_is_what_happens() {
    for seed in 0..WORLDS {
        if let Err(wrong) = compare(seed, Observed::clone) {
            panic!("seed {seed}: {wrong}");
        }
    }
    std::println!("worlds tried: {WORLDS}");
}

#[test]
fn every_wrong_preview_of_copies_is_found() {
    let faults: [(&str, Fault); 4] = [
        ("a cluster that leaves is like any other", |seen| {
            clusters_as(seen, |cluster| cluster.deleting = false)
        }),
        ("a cluster out of reach is like any other", |seen| {
            clusters_as(seen, |cluster| {
                (cluster.object, cluster.taints) = (serde_json::json!({}), vec![]);
            })
        }),
        ("what went with its definition was taken away", |seen| Observed {
            asked: Asked::NotYet,
            ..seen.clone()
        }),
        ("every namespace is that of a cluster", |seen| {
            let mut seen = seen.clone();
            for name in seen.replicas.keys() {
                let some = || Arc::new(Cluster { name: name.clone(), ..Cluster::default() });
                seen.clusters.entry(name.clone()).or_insert_with(some);
            }
            seen
        }),
    ];
    for (what, fault) in faults {
        let found = (0..WORLDS).find_map(|seed| compare(seed, fault).err());
        assert!(found.is_some(), "nobody noticed: {what}");
    }
}

/// Whether a copy says what was foreseen.
fn says(foreseen: &Value, copy: Option<&Value>) -> bool {
    let fields = ["/spec", "/metadata/labels", "/metadata/annotations"];
    copy.is_some_and(|copy| {
        fields.into_iter().all(|field| copy.pointer(field) == foreseen.pointer(field))
    })
}

/// Foresees one change in one world, lets it happen, and compares.
fn compare_change(seed: u64, fault: Fault) -> Result<(), String> {
    let mut dice = Dice(seed);
    let mut world = World::new();
    world.tell();
    for _ in 0..dice.roll(40) {
        world.now += 1;
        turn(&mut world, &mut dice);
        world.tell();
        pass(&mut world, SOUND, true, dice.roll(4));
    }
    match dice.roll(5) {
        0 | 1 => {
            let count = dice.roll(4);
            let chosen = (0..count).map(|_| dice.cluster()).collect();
            world.decide(Decision::Settled(chosen));
        }
        2 => world.severity += 1,
        3 => world.disabled = !world.disabled,
        _ => world.bound = true,
    }
    world.tell();
    let foreseen = proposal(&fault(&world.ask(world.view(), true)));
    let (before, alive) = (world.copies(), world.alive());
    for _ in 0..4 {
        world.now += 20;
        world.tell();
        world.look_again();
        pass(&mut world, SOUND, true, usize::MAX);
    }
    let (after, left) = (world.copies(), world.alive());
    for (cluster, one) in &foreseen {
        let (old, new) = (before.get(cluster), after.get(cluster));
        let still = alive.contains_key(cluster) && alive.get(cluster) == left.get(cluster);
        let right = match one {
            // What is not ours stays in its way.
            Proposed::Arrives(copy) if left.contains_key(cluster) => says(copy, new),
            Proposed::Arrives(_) | Proposed::ArrivesUnsure(_) => old.is_some(),
            Proposed::Changes(copy) => still && old != new && says(copy, new),
            Proposed::Unchanged => old == new,
            Proposed::Unsure(_) => true,
            Proposed::Goes(Prospect::Leaves) => !still,
            Proposed::Goes(_) => still,
        };
        if !right {
            return Err(format!("{cluster}: {one:?}; before: {old:?}; after: {new:?}"));
        }
    }
    let mut all = before.keys().chain(after.keys());
    let same = |at: &String| before.get(at) == after.get(at);
    match all.find(|at| !foreseen.contains_key(*at) && !same(at)) {
        Some(cluster) => Err(format!("what happened to {cluster} was not foreseen")),
        None => Ok(()),
    }
}

#[test]
fn what_a_preview_says_of_a_change_is_what_happens() {
    for seed in 0..WORLDS {
        if let Err(wrong) = compare_change(seed, Observed::clone) {
            panic!("seed {seed}: {wrong}");
        }
    }
}

#[test]
fn every_wrong_preview_of_a_change_is_found() {
    let faults: [(&str, Fault); 3] = [
        ("decisions are not looked at", |seen| decided_as(seen, |_| Some(Decided::Unknown))),
        ("a cluster out of reach is like any other", |seen| {
            clusters_as(seen, |cluster| {
                (cluster.object, cluster.taints) = (serde_json::json!({}), vec![]);
            })
        }),
        ("copies are not compared", |seen| Observed { replicas: BTreeMap::new(), ..seen.clone() }),
    ];
    for (what, fault) in faults {
        let found = (0..WORLDS).find_map(|seed| compare_change(seed, fault).err());
        assert!(found.is_some(), "nobody noticed: {what}");
    }
}

#[test]
fn a_policy_stays_where_another_binding_places_it() {
    let mut seen = seen();
    seen.bindings.push(binding("other", "some", serde_json::json!({})));
    decide(&mut seen, "some", settled(&["b"]));
    settle(&mut seen);
    let stays = "placementbinding other places it there as well";
    for change in [Change::Binding("bind".into()), Change::Placement("all".into())] {
        let foreseen = outlook(&seen, &change);
        assert_eq!(foreseen["a"], Prospect::Leaves);
        assert_eq!(foreseen["b"], Prospect::Stays(stays.into()));
    }
    let sets = BTreeMap::new();
    let bindings: Vec<Arc<Binding>> = seen.bindings.clone();
    let all = || bindings.iter().map(|one| &**one);
    let change = Change::Placement("some".into());
    assert_eq!(change.concerns("team", all(), &sets), ["p".into()].into());
    let change = Change::Placement("none".into());
    assert_eq!(change.concerns("team", all(), &sets), [].into());
}
