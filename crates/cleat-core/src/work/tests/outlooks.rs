//! What a preview says is what the execution does, over random worlds.

use std::collections::{BTreeMap, BTreeSet};
use std::string::String;
use std::vec::Vec;
use std::{format, println};

use cleat_api::manifestwork::Keep;

use super::histories::{rest, with_a_past};
use super::world::{World, id, keep_only, present};
use crate::id::Id;
use crate::work::observed::{Hub, Ledger, Observed, Seen};
use crate::work::outlook::{Change, Foreseen, Prospect, outlook};

/// A mistake somebody could make in a preview. Each must be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    DeleteOptionIgnored,
    OtherHoldersIgnored,
    RecordedUidIgnored,
    AdoptedForgotten,
    WhatWasKeptForgotten,
}

const FAULTS: [Fault; 5] = [
    Fault::DeleteOptionIgnored,
    Fault::OtherHoldersIgnored,
    Fault::RecordedUidIgnored,
    Fault::AdoptedForgotten,
    Fault::WhatWasKeptForgotten,
];

fn foresee(fault: Fault, mut seen: Observed) -> Vec<Foreseen> {
    let own = seen.ledger_name();
    match (fault, &mut seen.hub, &mut seen.ledger) {
        (Fault::DeleteOptionIgnored, Hub::Work(work), _) => work.keep = Ok(Keep::Nothing),
        (Fault::AdoptedForgotten, Hub::Work(work), _) => work.keep_adopted = false,
        (Fault::RecordedUidIgnored, _, Ledger::Present(book)) => {
            book.applied.values_mut().for_each(|applied| applied.uid.clear());
        }
        (Fault::WhatWasKeptForgotten, _, Ledger::Present(book)) => {
            book.claims.values_mut().for_each(|claim| claim.kept = false);
        }
        (Fault::OtherHoldersIgnored, ..) => {
            for live in seen.live.values_mut() {
                if let Seen::Present(present) = live {
                    present.owners.retain(|owner| owner.name == own);
                }
            }
        }
        _ => {}
    }
    outlook(&seen, Change::Deleted).unwrap()
}

fn incarnations(world: &World) -> BTreeMap<Id, String> {
    let objects = world.objects.iter().filter(|(id, _)| id.resource != "appliedmanifestworks");
    objects.map(|(id, object)| (id.clone(), present(object).uid)).collect()
}

/// Foresees the end of the first work in one world, lets it happen, and compares; whether there was
/// anything to compare.
fn compare(seed: u64, fault: Fault) -> Result<bool, String> {
    let (mut world, mut dice) = with_a_past(seed);
    // A third of the worlds are looked at while something is still under way.
    if dice.roll(3) > 0 {
        rest(&mut world);
    }
    let Some(work) = world.works.get_mut("one") else { return Ok(false) };
    if work.finalizers.is_empty() {
        // Nothing was touched yet, and the hub just drops it.
        return Ok(false);
    }
    match dice.roll(4) {
        0 => work.keep = Keep::Everything,
        1 => work.keep = keep_only(dice.roll(4)),
        2 => work.keep_adopted = true,
        _ => {}
    }
    work.version += 1;
    work.generation += 1;
    world.cascades = true;
    // Only the first work is at work from here on.
    let foreseen = foresee(fault, world.observe("one", || true));
    let before = incarnations(&world);
    let marked: BTreeSet<Id> = foreseen.iter().map(|one| one.id.clone()).collect();
    let work = world.works.get_mut("one").unwrap();
    work.deleting = true;
    work.version += 1;
    super::histories::end_alone(&mut world, "one");
    let after = incarnations(&world);
    for one in &foreseen {
        let still = after.get(&one.id).is_some_and(|uid| *uid == one.uid);
        let right = match one.prospect {
            Prospect::Delete => !still,
            Prospect::Gone => !before.contains_key(&one.id),
            Prospect::Orphan | Prospect::Keep | Prospect::StripMarks => still,
            Prospect::Unknown => false,
            other => panic!("{other:?} is no way to end"),
        };
        if !right {
            return Err(format!("{one:?}; still there: {still}"));
        }
    }
    let undefined = foreseen.iter().any(|one| one.id == id(3) && one.prospect == Prospect::Delete);
    for (one, uid) in before.iter().filter(|(id, _)| !marked.contains(id)) {
        // What nobody lists goes with its definition, and is counted there.
        let along = undefined && *one == id(2);
        if !along && after.get(one) != Some(uid) {
            return Err(format!("{one} was not foreseen, and is gone"));
        }
    }
    Ok(true)
}

const WORLDS: u64 = 2_500;

#[test]
fn what_a_preview_says_is_what_happens() {
    let mut compared = 0;
    for seed in 0..WORLDS {
        match compare(seed, Fault::None) {
            Ok(something) => compared += u64::from(something),
            Err(wrong) => panic!("seed {seed}: {wrong}"),
        }
    }
    println!("worlds compared: {compared} of {WORLDS}");
    assert!(compared > WORLDS * 9 / 10, "{compared}");
}

#[test]
fn every_wrong_preview_is_found() {
    let mut missed = Vec::new();
    for fault in FAULTS {
        match (0..WORLDS).find_map(|seed| compare(seed, fault).err().map(|wrong| (seed, wrong))) {
            Some((seed, wrong)) => println!("{fault:?}: seed {seed}: {wrong}"),
            None => missed.push(fault),
        }
    }
    assert_eq!(missed, [], "these mistakes would go unnoticed");
}
