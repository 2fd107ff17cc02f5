//! What a preview of a changed work says is what the change does, over random worlds.

use std::collections::BTreeMap;
use std::string::String;
use std::vec::Vec;
use std::{format, println};

use cleat_api::manifestwork::Keep;
use serde_json::{Value, json};

use super::histories::{go_on_alone, rest, with_a_past};
use super::world::{Dice, HubWork, WITHOUT_NAMESPACE, World, id, keep_only, present};
use crate::id::{Id, Target};
use crate::work::observed::{Hub, Ledger, Observed, Place, Present, Seen};
use crate::work::outlook::{Foreseen, Prospect};
use crate::work::proposal::{Proposed, proposal};

/// A mistake somebody could make in a preview. Each must be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    DeleteOptionIgnored,
    AdoptedForgotten,
    OtherHoldersIgnored,
    RecordedUidIgnored,
    LedgerIgnored,
    EndsIgnored,
    UnmappedManifestsDropped,
    GarbledManifestsDropped,
    WhatGoesAlongForgotten,
}

const FAULTS: [Fault; 9] = [
    Fault::DeleteOptionIgnored,
    Fault::AdoptedForgotten,
    Fault::OtherHoldersIgnored,
    Fault::RecordedUidIgnored,
    Fault::LedgerIgnored,
    Fault::EndsIgnored,
    Fault::UnmappedManifestsDropped,
    Fault::GarbledManifestsDropped,
    Fault::WhatGoesAlongForgotten,
];

fn foresee(fault: Fault, mut seen: Observed) -> Vec<Foreseen> {
    let own = seen.ledger_name();
    let live = |seen: &mut Observed, how: &dyn Fn(&mut Present)| {
        for live in seen.live.values_mut() {
            if let Seen::Present(present) = live {
                how(present);
            }
        }
    };
    match (fault, &mut seen.hub, &mut seen.ledger) {
        (Fault::DeleteOptionIgnored, Hub::Work(work), _) => work.keep = Ok(Keep::Nothing),
        (Fault::AdoptedForgotten, Hub::Work(work), _) => work.keep_adopted = false,
        (Fault::RecordedUidIgnored, _, Ledger::Present(book)) => {
            book.applied.values_mut().for_each(|applied| applied.uid.clear());
        }
        (Fault::LedgerIgnored, _, ledger) => *ledger = Ledger::Absent,
        _ => {}
    }
    match fault {
        Fault::OtherHoldersIgnored => {
            live(&mut seen, &|present| present.owners.retain(|owner| owner.name == own));
        }
        Fault::EndsIgnored => live(&mut seen, &|present| present.terminating = None),
        Fault::UnmappedManifestsDropped => {
            seen.wanted.retain(|wanted| !matches!(wanted.place, Place::Unknown { .. }));
        }
        Fault::GarbledManifestsDropped => {
            seen.wanted.retain(|wanted| !matches!(wanted.place, Place::Malformed(_)));
        }
        _ => {}
    }
    if fault == Fault::WhatGoesAlongForgotten {
        return alone(&seen);
    }
    let proposal = proposal(&seen).unwrap();
    proposal.objects.into_iter().map(|one| one.foreseen).collect()
}

/// What would become of each object if nothing else were there.
fn alone(seen: &Observed) -> Vec<Foreseen> {
    let all = proposal(seen).unwrap().objects.into_iter();
    let with = |one: Proposed| {
        let mut seen = seen.clone();
        if one.foreseen.id != id(3) {
            seen.wanted.retain(|wanted| wanted.place.id() != Some(&id(3)));
            seen.live.remove(&id(3));
            if let Ledger::Present(book) = &mut seen.ledger {
                book.claims.remove(&id(3));
                book.applied.remove(&id(3));
            }
        }
        let by_itself = proposal(&seen).unwrap().objects.into_iter();
        let mut by_itself = by_itself.filter(|other| other.foreseen.id == one.foreseen.id);
        by_itself.next().unwrap_or(one).foreseen
    };
    all.map(with).collect()
}

/// What somebody thinks of making of a work.
fn propose(work: &mut HubWork, dice: &mut Dice) {
    for _ in 0..=dice.roll(3) {
        let index = dice.roll(WITHOUT_NAMESPACE);
        let content = u8::try_from(dice.roll(3)).unwrap();
        match dice.roll(8) {
            0..=2 if work.wanted.len() > 1 => drop(work.wanted.remove(&index)),
            3 | 4 => drop(work.wanted.insert(index, content)),
            5 => work.keep = Keep::Nothing,
            6 => work.keep = keep_only(index),
            7 => work.keep_adopted = !work.keep_adopted,
            _ => {}
        }
    }
    work.version += 1;
    work.generation += 1;
}

/// Everything but ledgers.
fn objects(world: &World) -> BTreeMap<Id, Value> {
    let objects = world.objects.iter().filter(|(id, _)| id.resource != "appliedmanifestworks");
    objects.map(|(id, object)| (id.clone(), object.clone())).collect()
}

fn has(world: &World, id: &Id) -> bool {
    world.ledger("one").is_some_and(|book| book.ids().contains(id))
}

/// Foresees a change of the first work in one world, lets it happen, and compares.
fn compare(seed: u64, fault: Fault) -> Result<(), String> {
    let (mut world, mut dice) = with_a_past(seed);
    // A third of the worlds are looked at while something is still under way.
    if dice.roll(3) > 0 {
        rest(&mut world);
    }
    if dice.roll(3) == 0 {
        let index = dice.roll(WITHOUT_NAMESPACE);
        world.meddle(index, 1, dice.roll(2) == 0);
    }
    world.cascades = true;
    propose(world.works.get_mut("one").unwrap(), &mut dice);
    let foreseen = foresee(fault, world.observe("one", || true));
    let before = objects(&world);
    let had: Vec<bool> = foreseen.iter().map(|one| has(&world, &one.id)).collect();
    // Only the first work is at work from here on.
    go_on_alone(&mut world, "one");
    let after = objects(&world);
    let uid = |object: Option<&Value>| object.map(|object| present(object).uid);
    for (one, had) in foreseen.iter().zip(had) {
        let (old, new) = (before.get(&one.id), after.get(&one.id));
        let same_one = old.is_some() && uid(old) == uid(new);
        let held =
            new.is_some_and(|new| present(new).owners.iter().any(|owner| owner.name == "hub-one"));
        let right = match one.prospect {
            Prospect::Delete => old.is_some() && !same_one,
            Prospect::Recreate => old.is_some() && new.is_some() && !same_one,
            Prospect::Create => old.is_none() && new.is_some(),
            Prospect::Change => same_one && old != new,
            Prospect::Adopt => same_one && !had && has(&world, &one.id),
            Prospect::Orphan => same_one && !held && !has(&world, &one.id),
            Prospect::Keep => same_one,
            Prospect::Gone => old.is_none() && new.is_none(),
            Prospect::Stuck | Prospect::Unchanged | Prospect::Unknown => old == new,
            Prospect::StripMarks => false,
        };
        if !right {
            return Err(format!("{one:?}; before: {old:?}; after: {new:?}"));
        }
    }
    let goes = |one: &&Foreseen| matches!(one.prospect, Prospect::Delete | Prospect::Recreate);
    let undefined = foreseen.iter().filter(goes).any(|one| one.id == id(3));
    for (one, old) in before.iter().filter(|(id, _)| !foreseen.iter().any(|one| one.id == **id)) {
        let going = present(old).terminating.is_some();
        // What nobody lists goes with its definition, and is counted there.
        let along = undefined && *one == id(2);
        if !going && !along && after.get(one) != Some(old) {
            return Err(format!("{one} was not foreseen, and is not as it was"));
        }
    }
    match after
        .keys()
        .find(|id| !before.contains_key(*id) && !foreseen.iter().any(|one| one.id == **id))
    {
        Some(id) => Err(format!("{id} was not foreseen, and was made")),
        None => Ok(()),
    }
}

const WORLDS: u64 = 2_500;

#[test]
fn what_a_preview_of_a_change_says_is_what_happens() {
    for seed in 0..WORLDS {
        if let Err(wrong) = compare(seed, Fault::None) {
            panic!("seed {seed}: {wrong}");
        }
    }
    println!("worlds tried: {WORLDS}");
}

#[test]
fn every_wrong_preview_of_a_change_is_found() {
    let mut missed = Vec::new();
    for fault in FAULTS {
        match (0..WORLDS).find_map(|seed| compare(seed, fault).err().map(|wrong| (seed, wrong))) {
            Some((seed, wrong)) => println!("{fault:?}: seed {seed}: {wrong}"),
            None => missed.push(fault),
        }
    }
    assert_eq!(missed, [], "these mistakes would go unnoticed");
}

/// The one object that a settled world and a change to it are about.
fn of(world: &World, index: usize) -> Proposed {
    let all = proposal(&world.observe("one", || true)).unwrap().objects;
    all.into_iter().find(|one| one.foreseen.id == id(index)).unwrap()
}

fn settled() -> World {
    let mut world = World::default();
    world.ask("one", &[(0, 1), (1, 1)]);
    go_on_alone(&mut world, "one");
    world
}

#[test]
fn each_object_is_told_with_the_field_that_decides() {
    let mut world = settled();
    world.meddle(2, 1, false);
    let work = world.works.get_mut("one").unwrap();
    work.wanted = [(1, 2), (2, 1), (3, 1)].into();
    for (index, prospect, why) in [
        (0, Prospect::Delete, "no manifest asks for it any more"),
        (1, Prospect::Change, "it is not as its manifest says"),
        (2, Prospect::Adopt, "it was there before, is taken over as it is"),
        (3, Prospect::Create, "there is nothing of that name yet"),
    ] {
        let Proposed { foreseen, write } = of(&world, index);
        assert_eq!((foreseen.prospect, &*foreseen.why), (prospect, why));
        assert_eq!(foreseen.decided_by, "spec.workload.manifests");
        assert_eq!(write.is_some(), prospect != Prospect::Delete);
    }
    world.works.get_mut("one").unwrap().keep = Keep::Everything;
    let Proposed { foreseen, .. } = of(&world, 0);
    assert_eq!((foreseen.prospect, foreseen.decided_by), (Prospect::Orphan, "spec.deleteOption"));
}

#[test]
fn what_a_work_cannot_do_now_is_no_preview() {
    let mut world = settled();
    world.works.get_mut("one").unwrap().deleting = true;
    let why = proposal(&world.observe("one", || true)).unwrap_err();
    assert!(why.contains("it is being deleted"), "{why}");
    let mut seen = settled().observe("one", || true);
    seen.leaving = Some(cleat_api::managedcluster::RemoveStrategy::Needless);
    assert_eq!(proposal(&seen), Err("the cluster leaves, and gets nothing new".into()));
    seen.ledger = Ledger::Unknown("out of sight".into());
    assert!(proposal(&seen).unwrap_err().contains("out of sight"));
}

#[test]
fn an_object_whose_definition_comes_along_is_made() {
    let mut seen = settled().observe("one", || true);
    let mut widget = seen.wanted[0].clone();
    widget.api_version = "example.com/v1".into();
    widget.kind = "Gadget".into();
    widget.place = Place::Nowhere {
        group: "example.com".into(),
        namespace: "n".into(),
        name: "g".into(),
        message: "no such kind".into(),
    };
    let mut definition = widget.clone();
    seen.wanted.push(widget);
    let stuck = |seen: &Observed| -> Vec<Foreseen> {
        let all = proposal(seen).unwrap().objects.into_iter().map(|one| one.foreseen);
        all.filter(|one| one.id.name == "g").collect()
    };
    let alone = stuck(&seen);
    assert_eq!((alone[0].prospect, &*alone[0].why), (Prospect::Stuck, "no such kind"));

    definition.kind = "CustomResourceDefinition".into();
    definition.manifest = std::sync::Arc::new(json!({ "spec": {
        "group": "example.com", "scope": "Namespaced",
        "names": { "kind": "Gadget", "plural": "gadgets" },
        "versions": [{ "name": "v1", "served": true }],
    }}));
    let name = "gadgets.example.com".into();
    let resource = "customresourcedefinitions".into();
    let id = Id { group: "apiextensions.k8s.io".into(), resource, name, ..Id::default() };
    seen.live.insert(id.clone(), Seen::Absent);
    definition.place = Place::At(Target { version: "v1".into(), id });
    seen.wanted.push(definition);
    let made = stuck(&seen);
    assert_eq!((made[0].prospect, &*made[0].id.resource), (Prospect::Create, "gadgets"));
}
