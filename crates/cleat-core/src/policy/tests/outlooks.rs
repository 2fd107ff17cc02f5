//! What a preview says is what the execution does, over random worlds.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use std::println;

use cleat_api::configurationpolicy::{FINALIZER, PruneObjectBehavior};
use serde_json::json;

use super::faults::Fault as Planted;
use super::histories::{Dice, with_a_past};
use super::site::{definition, entry, observed, pod, policy, spec, with_namespace};
use super::world::{Sight, World};
use crate::policy::observed::{Departure, Observed, Subject};
use crate::policy::outlook::{imagined, outlook, reads};
use crate::work::outlook::{Change, Foreseen, Prospect};

/// A mistake somebody could make in a preview. Each must be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    EverythingIsPruned,
    NothingIsPruned,
    OriginIgnored,
    UidIgnored,
    RemediationIgnored,
    FinalizerIgnored,
    DepartureIgnored,
}

const FAULTS: [Fault; 7] = [
    Fault::EverythingIsPruned,
    Fault::NothingIsPruned,
    Fault::OriginIgnored,
    Fault::UidIgnored,
    Fault::RemediationIgnored,
    Fault::FinalizerIgnored,
    Fault::DepartureIgnored,
];

fn foresee(fault: Fault, seen: Observed) -> Vec<Foreseen> {
    let mut seen = imagined(seen);
    let Subject::Policy(policy) = &mut seen.policy else { return Vec::new() };
    let known = policy.status.related_objects.iter_mut();
    let known = known.filter_map(|entry| entry.properties.as_mut());
    match fault {
        Fault::None => {}
        Fault::EverythingIsPruned => {
            policy.spec.prune_object_behavior = PruneObjectBehavior::DeleteAll;
        }
        Fault::NothingIsPruned => policy.spec.prune_object_behavior = PruneObjectBehavior::None,
        Fault::OriginIgnored => known.for_each(|known| known.created_by_policy = Some(true)),
        Fault::UidIgnored => known.for_each(|known| known.uid.clear()),
        Fault::RemediationIgnored => policy.spec.remediation_action = "enforce".into(),
        Fault::FinalizerIgnored => policy.finalizers = alloc::vec![FINALIZER.into()],
        Fault::DepartureIgnored => seen.controller.departure = Departure::Staying,
    }
    assert_eq!(reads(&seen), BTreeSet::new());
    outlook(&seen, Change::Deleted).unwrap()
}

fn incarnations(world: &World) -> BTreeMap<String, String> {
    world.objects.iter().map(|(name, one)| (name.clone(), format!("u{}", one.uid))).collect()
}

/// Foresees the end of the policy in one world, lets it happen, and compares.
fn compare(seed: u64, fault: Fault) -> Result<(), String> {
    let mut world = World::new(Planted::None, PruneObjectBehavior::None);
    let mut dice = Dice(seed);
    with_a_past(&mut world, &mut dice)?;
    if world.gone {
        return Ok(());
    }
    if dice.roll(4) == 0 {
        // Somebody changes the policy, and nobody has looked at it since.
        world.spec.prune_object_behavior =
            [PruneObjectBehavior::DeleteIfCreated, PruneObjectBehavior::DeleteAll][dice.roll(2)];
        world.edited();
    }
    world.leaving = dice.roll(6) == 0;
    let foreseen = foresee(fault, world.observe(&Sight::all()));
    let before = incarnations(&world);
    let dying: BTreeSet<String> = {
        let dying = world.objects.iter().filter(|(_, one)| one.dying.is_some());
        dying.map(|(name, _)| name.clone()).collect()
    };
    world.deleting = true;
    world.edited();
    world.gone = !world.finalizer;
    world.settle()?;
    // What was on its way out before goes whether or not there is a policy.
    world.tick(|| true);
    let after = incarnations(&world);
    for one in &foreseen {
        let still = after.get(&one.id.name).is_some_and(|uid| *uid == one.uid);
        let right = match one.prospect {
            Prospect::Delete => !still,
            Prospect::Gone => !before.contains_key(&one.id.name),
            Prospect::Keep => still,
            _ => false,
        };
        if !right {
            return Err(format!("{one:?}; still there: {still}"));
        }
    }
    let listed: BTreeSet<&String> = foreseen.iter().map(|one| &one.id.name).collect();
    for (name, uid) in before.iter().filter(|(name, _)| !listed.contains(name)) {
        if after.get(name) != Some(uid) && !dying.contains(name) {
            return Err(format!("{name} was not foreseen, and is gone"));
        }
    }
    Ok(())
}

#[test]
fn an_object_listed_as_kept_went_with_its_namespace() {
    let goes = "namespaces default goes, and takes it along";
    for (behavior, made, (holder, inside, why)) in [
        ("DeleteIfCreated", true, (Prospect::Delete, Prospect::Delete, goes)),
        ("DeleteIfCreated", false, (Prospect::Keep, Prospect::Keep, "its policy did not make it")),
        ("None", true, (Prospect::Keep, Prospect::Keep, "its policy deletes nothing")),
    ] {
        let pods = [pod("a", "default", "x")];
        let mut spec = spec("enforce", "musthave", definition("a", "default"));
        spec["pruneObjectBehavior"] = json!(behavior);
        let mut seen = with_namespace(observed(spec, &pods));
        let mut namespace = entry("default", made, "uid-default");
        namespace["object"] =
            json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "default" } });
        let entries = json!([namespace, entry("a", false, "uid-a")]);
        let policy = policy(&mut seen);
        policy.finalizers = alloc::vec![FINALIZER.into()];
        policy.status =
            serde_json::from_value(json!({ "compliant": "Compliant", "relatedObjects": entries }))
                .unwrap();
        let all = outlook(&imagined(seen), Change::Deleted).unwrap();
        let told: Vec<(&str, Prospect)> =
            all.iter().map(|one| (&*one.id.resource, one.prospect)).collect();
        assert_eq!(told, [("namespaces", holder), ("pods", inside)], "{behavior} {made}");
        assert_eq!(all[1].why, why, "{behavior} {made}");
    }
}

const WORLDS: u64 = 2_500;

#[test]
fn what_a_preview_says_is_what_happens() {
    for seed in 0..WORLDS {
        if let Err(wrong) = compare(seed, Fault::None) {
            panic!("seed {seed}: {wrong}");
        }
    }
    println!("worlds tried: {WORLDS}");
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
