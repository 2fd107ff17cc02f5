//! What a preview says of a cluster that leaves is what its works then do, over random worlds of two
//! works and a namespace.

use std::collections::{BTreeMap, BTreeSet};
use std::string::String;
use std::vec::Vec;
use std::{format, println, vec};

use cleat_api::managedcluster::RemoveStrategy;
use cleat_api::manifestwork::{Keep, LEAVE_FINALIZER};

use super::histories::{end_both, past_of, rest};
use super::world::{WITH_NAMESPACE, World, id, keep_only, present};
use crate::id::Id;
use crate::work::along::take_along;
use crate::work::contents::judge;
use crate::work::leaving::{Inside, Outlooks, leaving};
use crate::work::observed::{Hub, Ledger, Observed};
use crate::work::outlook::{Change, Foreseen, Prospect, outlook};

/// A mistake somebody could make in a preview. Each must be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// Each work is asked as if the others stayed.
    EachAlone,
    DeleteOptionIgnored,
    RecordedUidIgnored,
    AdoptedForgotten,
    StrategyIgnored,
    /// Nobody looks into the namespace.
    ContentsIgnored,
    /// Nobody looks what the definition defines.
    InstancesIgnored,
    /// What a work leaves in the namespace of another goes with it.
    WhatOthersLeaveForgotten,
    /// What is in the namespace or of the definition of another work stays.
    WhatGoesAlongForgotten,
}

const FAULTS: [Fault; 9] = [
    Fault::EachAlone,
    Fault::DeleteOptionIgnored,
    Fault::RecordedUidIgnored,
    Fault::AdoptedForgotten,
    Fault::StrategyIgnored,
    Fault::ContentsIgnored,
    Fault::InstancesIgnored,
    Fault::WhatOthersLeaveForgotten,
    Fault::WhatGoesAlongForgotten,
];

fn foresee(fault: Fault, world: &World, strategy: RemoveStrategy) -> Outlooks {
    let mut all = ["one", "two"].map(|name| world.observe(name, || true)).to_vec();
    for seen in &mut all {
        match (fault, &mut seen.hub, &mut seen.ledger) {
            (Fault::DeleteOptionIgnored, Hub::Work(work), _) => work.keep = Ok(Keep::Nothing),
            (Fault::AdoptedForgotten, Hub::Work(work), _) => work.keep_adopted = false,
            (Fault::RecordedUidIgnored, _, Ledger::Present(book)) => {
                book.applied.values_mut().for_each(|applied| applied.uid.clear());
            }
            _ => {}
        }
    }
    let strategy = match fault {
        Fault::StrategyIgnored => RemoveStrategy::Required,
        _ => strategy,
    };
    let inside = |holder: usize| {
        let mut found = world.inside(&id(holder));
        match fault {
            Fault::ContentsIgnored if holder == 4 => found.clear(),
            Fault::InstancesIgnored if holder == 3 => found.clear(),
            Fault::WhatOthersLeaveForgotten => found.retain(|one| one.owners.is_empty()),
            _ => {}
        }
        (id(holder), found)
    };
    let found = [3, 4].map(inside);
    let alone = |mut seen: Observed| {
        let judged = found.iter().map(|(holder, found)| (holder.clone(), judge(found, "hub")));
        seen.contents = judged.collect();
        (seen.name.clone(), outlook(&seen, Change::Leaving(strategy)))
    };
    let inside: Inside =
        found.iter().map(|(holder, found)| (holder.clone(), Ok(found.clone()))).collect();
    match fault {
        Fault::EachAlone => {
            let mut all: Outlooks = all.into_iter().map(alone).collect();
            let mut each: Vec<&mut Foreseen> = all.values_mut().flatten().flatten().collect();
            take_along(&mut each, |_| false);
            all
        }
        Fault::WhatGoesAlongForgotten => all
            .into_iter()
            .map(|seen| {
                let name = seen.name.clone();
                let others = vec![seen];
                (name, leaving(others, strategy, &inside))
            })
            .filter_map(|(name, mut all)| Some((name.clone(), all.remove(&name)?)))
            .collect(),
        _ => leaving(all, strategy, &inside),
    }
}

fn incarnations(world: &World) -> BTreeMap<Id, String> {
    let objects = world.objects.iter().filter(|(id, _)| id.resource != "appliedmanifestworks");
    objects.map(|(id, object)| (id.clone(), present(object).uid)).collect()
}

/// Whether one work says to keep what another owns: the planner is not asked about that here.
fn is_disputed(world: &World) -> bool {
    let kept = |name: &'static str| -> BTreeMap<Id, bool> {
        let seen = world.observe(name, || true);
        let Ok(all) = outlook(&seen, Change::Deleted) else { return BTreeMap::new() };
        let there = all.into_iter().filter(|one| !one.uid.is_empty());
        there.map(|one| (one.id, one.prospect == Prospect::Orphan)).collect()
    };
    let (one, two) = (kept("one"), kept("two"));
    one.iter().any(|(id, kept)| two.get(id).is_some_and(|other| other != kept))
}

/// Whether a work brings what the other one's objects need, and so goes after it.
fn waits(world: &World, name: &str) -> bool {
    let other = if name == "one" { "two" } else { "one" };
    let (Some(own), Some(other)) = (world.ledger(name), world.ledger(other)) else { return false };
    let has = |index: usize| own.ids().contains(&id(index));
    let needs = |holder: usize| {
        let mut all = other.ids().into_iter();
        match holder {
            3 => all.any(|one| *one == id(2)),
            _ => all.any(|one| one.namespace == "n"),
        }
    };
    [3, 4].into_iter().any(|holder| has(holder) && needs(holder))
}

/// How often a world had something to say, by what was foreseen.
type Tally = BTreeMap<(&'static str, Prospect), usize>;

/// Foresees the leave of one world's cluster, lets it happen, and compares; whether there was anything to
/// compare.
fn compare(seed: u64, fault: Fault, tally: &mut Tally) -> Result<bool, String> {
    let one = [(0, 1), (1, 1), (2, 1), (3, 1), (4, 1)];
    let (mut world, mut dice) = past_of(seed, &one, &[(0, 1), (2, 1)]);
    // An object that its work has just ceased to keep bears no mark yet, so that a namespace may be taken
    // to hold what is not ours: who is first decides, and nobody is asked to foresee that.
    rest(&mut world);
    let strategy = match dice.roll(4) {
        0 => RemoveStrategy::Needless,
        _ => RemoveStrategy::Required,
    };
    for work in world.works.values_mut() {
        if work.finalizers.is_empty() {
            // Nothing was touched yet, and the hub just drops it.
            return Ok(false);
        }
        // What is to stay since a moment ago bears its mark still.
        if work.keep == Keep::Nothing && !work.keep_adopted {
            match dice.roll(6) {
                0 => work.keep = Keep::Everything,
                1 | 2 => work.keep = keep_only(dice.roll(WITH_NAMESPACE)),
                3 => work.keep_adopted = true,
                _ => {}
            }
        }
        work.version += 1;
        work.generation += 1;
    }
    if strategy == RemoveStrategy::Required && is_disputed(&world) {
        return Ok(false);
    }
    let waiting = ["one", "two"].map(|name| waits(&world, name));
    world.cascades = true;
    let outlooks = foresee(fault, &world, strategy);
    let foreseen: Vec<Foreseen> =
        outlooks.into_values().flat_map(|outlook| outlook.unwrap()).collect();
    let before = incarnations(&world);
    let marked: BTreeSet<Id> = foreseen.iter().map(|one| one.id.clone()).collect();
    world.leaving = Some(strategy);
    for work in world.works.values_mut() {
        // The hub holds what it has yet to write down.
        work.finalizers.push(LEAVE_FINALIZER.into());
        work.version += 1;
    }
    let first = match waiting {
        [true, false] => Some("two"),
        [false, true] => Some("one"),
        _ => None,
    };
    end_both(&mut world, first, dice.roll(2) == 0);
    let after = incarnations(&world);
    for one in &foreseen {
        *tally.entry((strategy.as_str(), one.prospect)).or_default() += 1;
        let still = after.get(&one.id).is_some_and(|uid| *uid == one.uid);
        let right = match one.prospect {
            Prospect::Delete => !still,
            Prospect::Gone => !before.contains_key(&one.id),
            Prospect::Orphan | Prospect::Keep | Prospect::StripMarks => still,
            // Whose it is depends on who is first, or it is in a namespace of which that is so.
            Prospect::Unknown => one.why.contains("depends on work") || one.id == id(4),
            other => panic!("{other:?} is no way to end"),
        };
        if !right {
            return Err(format!("{strategy:?}: {one:?}; still there: {still}"));
        }
    }
    for (one, uid) in before.iter().filter(|(id, _)| !marked.contains(id)) {
        // What nobody lists is nobody's of ours, and keeps its definition and its namespace.
        if after.get(one) != Some(uid) {
            return Err(format!("{one} was not foreseen, and is gone"));
        }
    }
    Ok(true)
}

const WORLDS: u64 = 2_500;

#[test]
fn what_a_preview_says_of_a_leave_is_what_happens() {
    let (mut tally, mut compared) = (Tally::new(), 0);
    for seed in 0..WORLDS {
        match compare(seed, Fault::None, &mut tally) {
            Ok(something) => compared += u64::from(something),
            Err(wrong) => panic!("seed {seed}: {wrong}"),
        }
    }
    println!("worlds compared: {compared} of {WORLDS}, objects: {tally:?}");
    assert!(compared > WORLDS / 2, "{compared}");
    for prospect in [Prospect::Delete, Prospect::Orphan, Prospect::Keep] {
        assert!(tally.get(&("Required", prospect)).is_some_and(|count| *count > 100), "{tally:?}");
    }
}

#[test]
fn every_wrong_preview_of_a_leave_is_found() {
    let mut missed = Vec::new();
    for fault in FAULTS {
        let tally = &mut Tally::new();
        let found = (0..WORLDS)
            .find_map(|seed| compare(seed, fault, tally).err().map(|wrong| (seed, wrong)));
        match found {
            Some((seed, wrong)) => println!("{fault:?}: seed {seed}: {wrong}"),
            None => missed.push(fault),
        }
    }
    assert_eq!(missed, [], "these mistakes would go unnoticed");
}

/// Two works hold one map. Each of them was asked as if the other stayed.
#[test]
fn an_object_of_two_works_was_shown_as_kept_though_the_leave_deletes_it() {
    let (world, outlooks) = shared(|_| {});
    let told = |name: &str| {
        let all = outlooks[name].as_ref().unwrap();
        all.iter().map(|one| one.prospect).collect::<Vec<_>>()
    };
    assert_eq!((told("one"), told("two")), (vec![Prospect::Delete], vec![Prospect::Delete]));
    // Of a work that is deleted while the other stays it is still true.
    let seen = world.observe("one", || true);
    assert_eq!(outlook(&seen, Change::Deleted).unwrap()[0].prospect, Prospect::Keep);
}

#[test]
fn what_one_of_two_works_keeps_stays() {
    let (_, outlooks) = shared(|world| {
        world.works.get_mut("two").unwrap().keep = Keep::Everything;
    });
    let told = |name: &str| &outlooks[name].as_ref().unwrap()[0];
    assert_eq!(told("two").prospect, Prospect::Orphan);
    assert_eq!(told("one").prospect, Prospect::Keep);
    assert_eq!(told("one").why, "it is declared to stay by work two");
    // Whose field that is the words say.
    assert_eq!(told("one").decided_by, "spec.deleteOption");
}

/// What a work leaves in the namespace of another keeps that one.
#[test]
fn a_namespace_was_to_go_with_what_another_work_leaves_in_it() {
    let mut world = World::default();
    world.ask("one", &[(4, 1)]);
    world.ask("two", &[(0, 1)]);
    rest(&mut world);
    let leave = |world: &World| foresee(Fault::None, world, RemoveStrategy::Required);
    let prospect = |all: &Outlooks| all["one"].as_ref().unwrap()[0].prospect;
    assert_eq!(prospect(&leave(&world)), Prospect::Delete);
    world.works.get_mut("two").unwrap().keep = Keep::Everything;
    let outlooks = leave(&world);
    assert_eq!(prospect(&outlooks), Prospect::Keep);
    assert_eq!(outlooks["two"].as_ref().unwrap()[0].prospect, Prospect::Orphan);
}

/// One work keeps a widget and goes first; another brings the definition of widgets.
#[test]
fn what_one_work_kept_went_with_the_definition_of_another() {
    let mut world = World::default();
    world.ask("one", &[(3, 1)]);
    world.ask("two", &[(2, 1)]);
    rest(&mut world);
    let all = foresee(Fault::None, &world, RemoveStrategy::Required);
    assert_eq!(all["one"].as_ref().unwrap()[0].prospect, Prospect::Delete, "nobody keeps it");
    let two = world.works.get_mut("two").unwrap();
    two.keep = Keep::Everything;
    two.version += 1;
    let told = kept_and_foreseen(&mut world, "two");
    assert_eq!(told, "it holds what is not ours");
}

#[test]
fn what_somebody_had_made_of_a_definition_went_with_it() {
    let mut world = World::default();
    world.ask("one", &[(3, 1)]);
    world.ask("two", &[(0, 1)]);
    rest(&mut world);
    world.meddle(2, 7, false);
    let told = kept_and_foreseen(&mut world, "one");
    assert_eq!(told, "it holds what is not ours");
}

/// Lets the cluster leave, looks that the definition and its widget stay as it was foreseen, and says why.
fn kept_and_foreseen(world: &mut World, first: &'static str) -> String {
    let all = foresee(Fault::None, world, RemoveStrategy::Required);
    let definition = all["one"].as_ref().unwrap()[0].clone();
    assert_eq!((&definition.id, definition.prospect), (&id(3), Prospect::Keep));
    world.leaving = Some(RemoveStrategy::Required);
    world.cascades = true;
    for work in world.works.values_mut() {
        work.finalizers.push(LEAVE_FINALIZER.into());
        work.version += 1;
    }
    let before = incarnations(world);
    end_both(world, Some(first), true);
    let after = incarnations(world);
    for index in [2, 3] {
        assert_eq!(before.get(&id(index)), after.get(&id(index)), "{} is gone", id(index));
    }
    definition.why
}

/// Two works that hold one map.
fn shared(change: impl Fn(&mut World)) -> (World, Outlooks) {
    let mut world = World::default();
    world.ask("one", &[(0, 1)]);
    world.ask("two", &[(0, 1)]);
    rest(&mut world);
    change(&mut world);
    let outlooks = foresee(Fault::None, &world, RemoveStrategy::Required);
    (world, outlooks)
}
