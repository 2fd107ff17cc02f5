//! What a preview says is what the execution does, over random worlds.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use std::println;

use cleat_api::configurationpolicy::{FINALIZER, PruneObjectBehavior};
use cleat_api::managedcluster::RemoveStrategy;
use serde_json::json;

use super::faults::Fault as Planted;
use super::histories::{Dice, with_a_past};
use super::site::{definition, entry, observed, pod, policy, spec, with_namespace};
use super::space::{SPACE, target_of};
use super::world::{Answerable, Checked, Sight, World};
use crate::policy::departure::{of_leave, together};
use crate::policy::observed::{Departure, Observed, Owner, Policy, Subject};
use crate::policy::outlook::{imagined, outlook, reads};
use crate::policy::spare::{judge, judge_ahead};
use crate::work::contents::Contents;
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
    /// The cluster leaves as if its policy were only deleted.
    LeaveIgnored,
    StrategyIgnored,
    ContentsIgnored,
    /// What the policy takes along itself keeps its namespace.
    OwnContentsCount,
}

const FAULTS: [Fault; 11] = [
    Fault::EverythingIsPruned,
    Fault::NothingIsPruned,
    Fault::OriginIgnored,
    Fault::UidIgnored,
    Fault::RemediationIgnored,
    Fault::FinalizerIgnored,
    Fault::DepartureIgnored,
    Fault::LeaveIgnored,
    Fault::StrategyIgnored,
    Fault::ContentsIgnored,
    Fault::OwnContentsCount,
];

/// What a leave would mean for the policy, which the hub sent.
fn departure(policy: &Policy, change: Change) -> Departure {
    let Change::Leaving(strategy) = change else { return Departure::Staying };
    let [api_version, kind, name, uid] =
        ["policy.open-cluster-management.io/v1", "Policy", "o", "u"].map(String::from);
    let owner = Some(Owner { api_version, kind, name, uid });
    let sent = Policy { owner, ..policy.clone() };
    of_leave(&sent, &policy.namespace, strategy)
}

fn contents(fault: Fault, world: &World, seen: &Observed, policy: &Policy) -> Contents {
    match fault {
        Fault::ContentsIgnored => Contents::Ours,
        Fault::OwnContentsCount => {
            let nothing = Policy { status: Default::default(), ..policy.clone() };
            judge(world.inside(), &nothing, &[])
        }
        _ => judge_ahead(world.inside(), seen, &[], &BTreeSet::new()),
    }
}

fn foresee(fault: Fault, world: &World, change: Change) -> Vec<Foreseen> {
    let change = match (fault, change) {
        (Fault::LeaveIgnored, _) => Change::Deleted,
        (Fault::StrategyIgnored, Change::Leaving(_)) => Change::Leaving(RemoveStrategy::Required),
        _ => change,
    };
    let mut seen = imagined(world.observe(&Sight::all()));
    if let Subject::Policy(policy) = &seen.policy {
        let departures = [seen.controller.departure.clone(), departure(policy, change)];
        seen.controller.departure = together(departures);
        let inside = contents(fault, world, &seen, policy);
        seen.cluster.contents.insert(target_of(SPACE).id, inside);
    }
    let Subject::Policy(policy) = &mut seen.policy else { return Vec::new() };
    let known = policy.status.related_objects.iter_mut();
    let known = known.filter_map(|entry| entry.properties.as_mut());
    match fault {
        Fault::None
        | Fault::LeaveIgnored
        | Fault::StrategyIgnored
        | Fault::ContentsIgnored
        | Fault::OwnContentsCount => {}
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
    outlook(&seen, change).unwrap()
}

const CHANGES: [Change; 5] = [
    Change::Deleted,
    Change::Deleted,
    Change::Leaving(RemoveStrategy::Required),
    Change::Leaving(RemoveStrategy::Required),
    Change::Leaving(RemoveStrategy::Needless),
];

/// The policy is deleted, because somebody does that or because its cluster leaves.
fn end(world: &mut World, change: Change) -> Checked {
    match change {
        Change::Deleted => {}
        Change::Leaving(RemoveStrategy::Required) => world.emptying = true,
        Change::Leaving(RemoveStrategy::Needless) => {
            // It is told not to prune, and deleted when nothing holds it any more.
            world.spec.prune_object_behavior = PruneObjectBehavior::None;
            world.edited();
            if world.finalizer {
                let seen = world.observe(&Sight::all());
                world.pass(&seen, 1)?;
            }
        }
    }
    world.deleting = true;
    world.edited();
    world.gone = !world.finalizer;
    world.settle()
}

fn incarnations(world: &World) -> BTreeMap<String, String> {
    world.objects.iter().map(|(name, one)| (name.clone(), format!("u{}", one.uid))).collect()
}

/// Foresees the end of the policy in one world, lets it happen, and compares; whether there was anything
/// to compare.
fn compare(seed: u64, fault: Fault) -> Result<bool, String> {
    let mut world = World::new(Planted::None, PruneObjectBehavior::None);
    let mut dice = Dice(seed);
    with_a_past(&mut world, &mut dice)?;
    if world.gone {
        return Ok(false);
    }
    if dice.roll(4) == 0 {
        // Somebody changes the policy, and nobody has looked at it since.
        world.spec.prune_object_behavior =
            [PruneObjectBehavior::DeleteIfCreated, PruneObjectBehavior::DeleteAll][dice.roll(2)];
        world.edited();
    }
    world.leaving = dice.roll(6) == 0;
    if dice.roll(2) == 0 {
        let made = [Answerable::Policy, Answerable::Policy, Answerable::Others];
        world.lists_space(made[dice.roll(3)]);
    }
    if dice.roll(3) == 0 {
        world.meddle("theirs", 0);
    }
    let change = CHANGES[dice.roll(CHANGES.len())];
    let foreseen = foresee(fault, &world, change);
    let before = incarnations(&world);
    let dying: BTreeSet<String> = {
        let dying = world.objects.iter().filter(|(_, one)| one.dying.is_some());
        dying.map(|(name, _)| name.clone()).collect()
    };
    end(&mut world, change)?;
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
    // What goes with its namespace is counted there. A cluster that leaves takes nothing along so.
    let goes = |one: &Foreseen| one.id.name == SPACE && one.prospect == Prospect::Delete;
    let along = change == Change::Deleted && foreseen.iter().any(goes);
    for (name, uid) in before.iter().filter(|(name, _)| !listed.contains(name)) {
        if after.get(name) != Some(uid) && !dying.contains(name) && !along {
            return Err(format!("{name} was not foreseen, and is gone"));
        }
    }
    Ok(true)
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
