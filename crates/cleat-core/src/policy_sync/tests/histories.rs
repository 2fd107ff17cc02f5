//! Random histories of one policy that a hub sends: edits, names given twice, templates that the hub
//! could not resolve, a hub that cannot be seen or loses the kind, crashes, templates that hang. A quiet
//! world ends as sent, and no template is taken away while anybody could still want it.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use cleat_api::policy::PolicySpec;
use cleat_api::policy::name::HUB_TEMPLATES_ERROR;
use serde_json::{Value, json};

use super::world::{World, template};
use crate::policy_sync::observed::{Copy, Defined, Observed};
use crate::policy_sync::{HOLD, plan, report};
use crate::write::{Action, Plan, Side, Write};

type Checked<T = ()> = Result<T, String>;

/// Ways to be wrong, each of which the histories must find out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    DoubtfulIsNone,
    TwiceIsOnce,
    NothingIsMarked,
    BlindIsGone,
    AcceptedIsGone,
    LeftIsGone,
    UnseenIsGone,
    PrunesNoMore,
    KindStands,
}

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % sides as u64) as usize
    }

    fn one_in(&mut self, sides: usize) -> bool {
        self.roll(sides) == 0
    }
}

const NAMES: [&str; 3] = ["a", "b", "c"];

fn one(dice: &mut Dice) -> Value {
    let mut one = template(NAMES[dice.roll(3)], ["DeleteAll", "None"][dice.roll(2)]);
    let metadata = &mut one["objectDefinition"]["metadata"];
    match dice.roll(10) {
        // What the hub could not resolve may be the name itself.
        0 => {
            metadata["name"] = json!("{{hub fromConfigMap \"\" \"m\" \"name\" hub}}");
            metadata["annotations"] = json!({ HUB_TEMPLATES_ERROR: "no such map" });
        }
        1 => metadata["annotations"] = json!({ HUB_TEMPLATES_ERROR: "no such map" }),
        2 => drop(metadata.as_object_mut().unwrap().remove("name")),
        _ => {}
    }
    one
}

fn spec(templates: Vec<Value>) -> Value {
    json!({ "disabled": false, "remediationAction": "enforce", "policy-templates": templates })
}

fn distinct(dice: &mut Dice) -> Value {
    let names = NAMES.iter().filter(|_| !dice.one_in(3)).collect::<Vec<_>>();
    let prunes = ["DeleteAll", "None"][dice.roll(2)];
    spec(names.into_iter().map(|name| template(name, prunes)).collect())
}

/// The names in a spec, if all of it makes sense.
fn sensible(spec: &PolicySpec) -> Option<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for template in &spec.policy_templates {
        let metadata = &template.object_definition["metadata"];
        if metadata.pointer("/annotations").is_some() {
            return None;
        }
        if !names.insert(metadata["name"].as_str()?.to_string()) {
            return None;
        }
    }
    Some(names)
}

/// What the faulty planner would have seen.
fn mistaken(fault: Fault, mut seen: Observed) -> Observed {
    if let (Fault::BlindIsGone, Copy::Unknown(_)) = (fault, &seen.replica) {
        seen.replica = Copy::Absent;
    }
    match fault {
        Fault::NothingIsMarked => seen.marked = Ok(Vec::new()),
        Fault::AcceptedIsGone => {
            seen.marked.iter_mut().for_each(|all| all.retain(|one| !one.deleting));
        }
        Fault::UnseenIsGone => seen.marked = Ok(seen.marked.unwrap_or_default()),
        Fault::PrunesNoMore => {
            seen.marked.iter_mut().flatten().for_each(|one| one.prunes = false);
            if let (Copy::Present(local), Copy::Present(hub)) = (&mut seen.local, &seen.replica) {
                local.spec = hub.spec.clone();
            }
        }
        Fault::KindStands => seen.defined = Defined::Stands,
        _ => {}
    }
    if let Copy::Present(local) = &mut seen.local {
        let templates = &mut local.spec.policy_templates;
        match fault {
            Fault::DoubtfulIsNone => templates.retain(|one| {
                let metadata = &one.object_definition["metadata"];
                metadata.pointer("/annotations").is_none() && metadata.get("name").is_some()
            }),
            Fault::TwiceIsOnce => {
                let mut names = BTreeSet::new();
                templates.retain(|one| {
                    names.insert(one.object_definition["metadata"]["name"].to_string())
                });
            }
            _ => {}
        }
    }
    seen
}

fn planned(fault: Fault, seen: &Observed) -> Plan {
    let mut steps = plan(&mistaken(fault, seen.clone()));
    if fault == Fault::LeftIsGone && steps.is_empty() {
        let mut other = seen.clone();
        let listed = |name: &String| {
            let spec = seen.local.policy().map(|local| &local.spec);
            spec.is_some_and(|spec| sensible(spec).is_none_or(|all| all.contains(name)))
        };
        other.marked.iter_mut().for_each(|all| all.retain(|one| listed(&one.target.id.name)));
        steps = plan(&other);
    }
    steps
}

/// Whether an action may be, given what is really there.
fn check(world: &World, seen: &Observed, action: &Action) -> Checked {
    let going =
        world.hub.as_ref().is_none_or(|hub| hub["metadata"].get("deletionTimestamp").is_some());
    let recalled = going && !world.lost;
    let name = &action.target.id.name;
    match (&action.write, action.target.id.resource.as_str(), action.side) {
        (Write::Delete { .. }, "policies", _) if !recalled => {
            Err("the copy was deleted though the hub wants it".into())
        }
        (Write::Delete { .. }, "configurationpolicies", _) if !recalled => {
            let local = seen.local.policy().ok_or("removes templates without a policy")?;
            match sensible(&local.spec) {
                None => Err(format!("{name} removed while not all names are certain")),
                Some(names) if names.contains(name) => {
                    Err(format!("{name} is wanted, and removed"))
                }
                Some(_) => Ok(()),
            }
        }
        (Write::Merge(patch), "policies", Side::Hub) => {
            let holds = patch["metadata"]["finalizers"]
                .as_array()
                .is_some_and(|all| all.iter().any(|one| one == HOLD));
            let mut all = world.templates.values();
            let left = all.find(|one| one["spec"]["pruneObjectBehavior"] == "DeleteAll");
            match left.filter(|_| !holds && !world.lost) {
                Some(left) => {
                    Err(format!("the hub let go while {} was there", left["metadata"]["name"]))
                }
                None => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// What the cluster does by itself: templates go with the policy that owns them.
fn collect(world: &mut World) {
    if world.local.is_some() {
        return;
    }
    match world.sticky {
        false => world.templates.clear(),
        true => {
            for one in world.templates.values_mut() {
                one["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            }
        }
    }
}

fn pass(world: &mut World, fault: Fault, mut budget: usize) -> Checked {
    world.miss();
    let seen = world.observe();
    let mut steps = planned(fault, &seen);
    if steps.is_empty() {
        steps = report(&seen).publish;
        world.vanished.iter_mut().for_each(|vanished| vanished.told = true);
    }
    for action in steps.iter().flatten() {
        if budget == 0 {
            return Ok(());
        }
        budget -= 1;
        check(world, &seen, action)?;
        world.perform(action);
        collect(world);
    }
    Ok(())
}

fn release(world: &mut World) {
    world.templates.retain(|_, one| one["metadata"].get("deletionTimestamp").is_none());
}

fn settle(world: &mut World, fault: Fault) -> Checked {
    (world.blind, world.unmarked) = (false, false);
    world.sticky = false;
    for _ in 0..40 {
        world.seconds += 10;
        release(world);
        collect(world);
        let seen = world.observe();
        if planned(fault, &seen).is_empty() && report(&seen).publish.is_empty() {
            return Ok(());
        }
        pass(world, fault, usize::MAX)?;
    }
    Err(format!("did not settle: {:?}", planned(fault, &world.observe())))
}

/// The hub loses the kind of policies, gets it back, and is given the policy again.
fn undefine(world: &mut World, dice: &mut Dice, fault: Fault) -> Checked {
    world.lose();
    for turn in 0..10 {
        world.seconds += 1;
        world.blind = turn < 5 && dice.one_in(5);
        pass(world, fault, if turn < 5 { dice.roll(3) } else { 9 })?;
    }
    if world.hub.is_some() {
        return Err("the definition cannot go".into());
    }
    world.undefined = false;
    for _ in 0..dice.roll(4) {
        world.seconds += 200;
        pass(world, fault, 9)?;
    }
    world.send(distinct(dice));
    Ok(())
}

fn history(fault: Fault, seed: u64) -> Checked {
    let mut dice = Dice(seed);
    let mut world = World::default();
    world.send(distinct(&mut dice));
    for _ in 0..30 {
        world.seconds += 1;
        match dice.roll(6) {
            0 => {
                let sent = (0..1 + dice.roll(3)).map(|_| one(&mut dice)).collect();
                world.send(spec(sent));
            }
            1 => world.send(distinct(&mut dice)),
            // A human takes the copy away.
            2 if dice.one_in(3) => world.local = None,
            3 if dice.one_in(4) => undefine(&mut world, &mut dice, fault)?,
            _ => {}
        }
        world.blind = dice.one_in(5);
        world.unmarked = dice.one_in(6);
        world.sticky = dice.one_in(2);
        if dice.one_in(3) {
            release(&mut world);
        }
        collect(&mut world);
        pass(&mut world, fault, [0, 1, 2, 9][dice.roll(4)])?;
    }
    let last = distinct(&mut dice);
    world.send(last.clone());
    settle(&mut world, fault)?;
    let names: Vec<&str> = world.templates.keys().map(String::as_str).collect();
    let spec: PolicySpec = serde_json::from_value(last).unwrap();
    let wanted = sensible(&spec).unwrap();
    if !wanted.iter().map(String::as_str).eq(names.iter().copied()) {
        return Err(format!("{names:?} are there, {wanted:?} were sent"));
    }
    world.sticky = dice.one_in(2);
    world.recall();
    for _ in 0..4 {
        world.seconds += 1;
        pass(&mut world, fault, [1, 9][dice.roll(2)])?;
    }
    settle(&mut world, fault)?;
    match (&world.hub, &world.local, world.templates.is_empty()) {
        (None, None, true) => Ok(()),
        _ => Err("something was left behind".into()),
    }
}

#[test]
fn every_history_ends_well() {
    let failed = (0..400).filter_map(|seed| {
        let problem = history(Fault::None, seed).err()?;
        Some(format!("seed {seed}: {problem}"))
    });
    let failed: Vec<_> = failed.collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn every_planted_fault_is_found() {
    let faults = [
        Fault::DoubtfulIsNone,
        Fault::TwiceIsOnce,
        Fault::NothingIsMarked,
        Fault::BlindIsGone,
        Fault::AcceptedIsGone,
        Fault::LeftIsGone,
        Fault::UnseenIsGone,
        Fault::PrunesNoMore,
        Fault::KindStands,
    ];
    let missed = faults.into_iter();
    let missed = missed.filter(|fault| (0..1_000).all(|seed| history(*fault, seed).is_ok()));
    let missed: Vec<Fault> = missed.collect();
    assert!(missed.is_empty(), "nobody noticed {missed:?}");
}
