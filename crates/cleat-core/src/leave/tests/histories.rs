//! Random histories: strategies that change, agents that die and return, refusals, crashes after any
//! action, blind looks, declarations. Whatever happens, the cluster leaves in the end, and everything
//! it still holds is on record.

use std::format;
use std::string::{String, ToString as _};
use std::vec::Vec;

use serde_json::json;

use super::world::{Broken, Dice, Fault, World};

/// One history; `Err` says which promise was broken.
fn history(seed: u64, fault: Option<Fault>) -> Result<(), Broken> {
    let mut dice = Dice(seed);
    let mut strategy = if dice.roll(2) == 0 { "Needless" } else { "Required" };
    let fixed = dice.roll(2) == 0;
    let mut world = match dice.roll(2) {
        0 => World::new(strategy),
        _ => World::sharing(strategy),
    };
    for thing in world.things.values_mut() {
        thing.kept = dice.roll(4) == 0;
    }
    for _ in 0..60 {
        world.clock += 3;
        match dice.roll(12) {
            0 => {
                let keys: Vec<_> = world.things.keys().cloned().collect();
                if !keys.is_empty() {
                    let key = &keys[dice.roll(keys.len())];
                    world.things.get_mut(key).unwrap().guarded = dice.roll(2) == 0;
                }
            }
            1 if !fixed && !world.gone => {
                strategy = if strategy == "Needless" { "Required" } else { "Needless" };
                world.cluster["spec"]["removeStrategy"] = json!(strategy);
            }
            2 => world.alive = !world.alive,
            3 if dice.roll(6) == 0 => {
                let annotations = &mut world.cluster["metadata"]["annotations"];
                annotations["cleat.dev/cluster-destroyed"] = json!("c1");
            }
            4 => world.clock += 100,
            5 | 6 => world.agent(dice.roll(3) > 0),
            7 => {
                world.hub(fault, true, 99)?;
            }
            _ => {
                let most = dice.roll(6);
                world.hub(fault, false, most)?;
            }
        }
        check(&world, strategy, fixed)?;
    }
    for thing in world.things.values_mut() {
        thing.guarded = false;
    }
    world.alive = true;
    for _ in 0..60 {
        world.clock += 1;
        world.agent(true);
        world.hub(fault, false, 99)?;
        check(&world, strategy, fixed)?;
    }
    if !world.gone {
        return Err(format!("it never left: {}", world.cluster["status"]));
    }
    Ok(())
}

fn check(world: &World, strategy: &str, fixed: bool) -> Result<(), Broken> {
    if fixed && strategy == "Needless" && !world.deleted.is_empty() {
        return Err(format!("{:?} were deleted", world.deleted));
    }
    if world.gone {
        for ((work, name), thing) in &world.things {
            let written = |record: &serde_json::Value| record.to_string().contains(&thing.uid);
            if !world.records.values().any(written) {
                return Err(format!("{work}/{name} is left and nobody wrote it down"));
            }
        }
    }
    Ok(())
}

#[test]
fn whatever_happens_it_leaves_and_nothing_is_forgotten() {
    for seed in 0..500 {
        if let Err(broken) = history(seed, None) {
            panic!("seed {seed}: {broken}");
        }
    }
}

#[test]
fn every_planted_fault_is_found() {
    let faults = [
        Fault::BlindIsEmpty,
        Fault::SilentIsDestroyed,
        Fault::AllRecorded,
        Fault::Released,
        Fault::Told,
        Fault::NoOrder,
    ];
    let missed: Vec<String> = faults
        .into_iter()
        .filter(|fault| (0..2000).all(|seed| history(seed, Some(*fault)).is_ok()))
        .map(|fault| format!("{fault:?}").to_string())
        .collect();
    assert!(missed.is_empty(), "{missed:?}");
}
