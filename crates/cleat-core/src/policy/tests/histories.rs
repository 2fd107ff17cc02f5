//! Random histories of one policy: edits, crashes after every action, blind spots, slow and refused
//! deletions, a meddler, changes of mind. A quiet world ends as asked, and nobody else's objects
//! are harmed on the way.

use alloc::format;
use alloc::string::ToString as _;
use alloc::vec::Vec;

use cleat_api::configurationpolicy::{PruneObjectBehavior, RecreateOption};

use super::world::{Answerable, Checked, Fault, Sight, World};
use crate::policy::memory::Memory;

const NAMES: [&str; 3] = ["a", "b", "c"];
const BEHAVIORS: [PruneObjectBehavior; 3] = [
    PruneObjectBehavior::DeleteIfCreated,
    PruneObjectBehavior::DeleteAll,
    PruneObjectBehavior::None,
];

/// A replayable stream of choices (SplitMix64): a failing seed is a failing test.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % sides as u64) as usize
    }
}

fn history(fault: Fault, seed: u64) -> Checked {
    let mut dice = Dice(seed);
    // Most histories keep the careful behaviour, so that what is ours and what is not matters.
    let behavior = BEHAVIORS[[0, 0, 1, 2][dice.roll(4)]];
    let mut world = World::new(fault, behavior);
    for name in NAMES {
        if dice.roll(3) > 0 {
            world.wanted.insert(name, dice.roll(3) as u8);
        }
        if dice.roll(4) == 0 {
            world.meddle(name, dice.roll(3) as u8);
        }
    }
    let flips = dice.roll(3) == 0;
    for turn in 0..40 {
        world.slow = dice.roll(3) == 0;
        world.guarded = dice.roll(5) == 0;
        world.tick(|| dice.roll(2) == 0);
        if turn == 28 {
            world.settle()?;
            settled(&world)?;
        }
        if turn == 30 {
            world.deleting = true;
            world.edited();
            world.gone = !world.finalizer;
            if world.gone {
                return Ok(());
            }
            world.leaving = dice.roll(6) == 0;
        }
        edit(&mut world, &mut dice, flips && turn < 28);
        let sight = Sight {
            objects: (0..3).map(|_| dice.roll(4) > 0).collect(),
            templates: dice.roll(6) > 0,
        };
        let mut seen = world.observe(&sight);
        world.ask(&mut seen);
        // Between the look and the act.
        match dice.roll(8) {
            0 => world.meddle(NAMES[dice.roll(3)], dice.roll(3) as u8),
            1 => world.vanish(NAMES[dice.roll(3)]),
            _ => {}
        }
        if world.gone {
            break;
        }
        let survived = world.pass(&seen, [0, 1, 2, 3, 9][dice.roll(5)])?;
        if !survived || dice.roll(8) == 0 {
            world.memory = Memory::default();
        }
    }
    world.settle()?;
    if world.deleting && !world.gone {
        return Err("the policy never went".into());
    }
    Ok(())
}

fn edit(world: &mut World, dice: &mut Dice, flips: bool) {
    if world.deleting {
        return;
    }
    match dice.roll(10) {
        0 => drop(world.wanted.remove(NAMES[dice.roll(3)])),
        1 | 2 => drop(world.wanted.insert(NAMES[dice.roll(3)], dice.roll(3) as u8)),
        3 => {
            world.recreate =
                [RecreateOption::None, RecreateOption::IfRequired, RecreateOption::Always]
                    [dice.roll(3)]
        }
        4 => world.immutable = dice.roll(2) == 0,
        5 if flips => world.spec.prune_object_behavior = BEHAVIORS[dice.roll(3)],
        6 if flips => {
            world.spec.remediation_action = ["inform", "enforce"][dice.roll(2)].to_string();
        }
        _ => return,
    }
    world.edited();
}

/// What must hold of a quiet world with a policy in it.
fn settled(world: &World) -> Checked {
    let enforced = world.spec.remediation_action == "enforce";
    let prunes = world.spec.prune_object_behavior != PruneObjectBehavior::None;
    for (name, content) in &world.wanted {
        let stuck = world.immutable && world.recreate == RecreateOption::None;
        match world.objects.get(*name) {
            None if enforced => return Err(format!("{name} is wanted and was not made")),
            Some(object) if enforced && !stuck && object.content != *content => {
                return Err(format!("{name} is not as wanted"));
            }
            _ => {}
        }
    }
    for (name, object) in &world.objects {
        let ours = object.answerable == Answerable::Policy;
        if enforced && prunes && ours && !world.wanted.contains_key(name.as_str()) {
            return Err(format!("{name} left the policy and was left behind"));
        }
    }
    let listed: Vec<&str> = world
        .status
        .related_objects
        .iter()
        .map(|entry| entry.object.metadata.name.as_str())
        .collect();
    let wanted: Vec<&str> = world.wanted.keys().copied().collect();
    if listed != wanted {
        return Err(format!("{listed:?} are listed, {wanted:?} are wanted"));
    }
    Ok(())
}

#[test]
fn every_history_ends_well() {
    for seed in 0..300 {
        if let Err(problem) = history(Fault::None, seed) {
            panic!("seed {seed}: {problem}");
        }
    }
}

#[test]
fn every_planted_fault_is_found() {
    let faults = [
        Fault::UnknownIsAbsent,
        Fault::UnknownTemplatesAreNone,
        Fault::UnclaimedCreation,
        Fault::AnyIncarnation,
        Fault::AcceptedIsGone,
        Fault::ForgottenLeavers,
        Fault::NoFinalizer,
        Fault::RefusedIsSettled,
        Fault::EveryClaimIsOurs,
        Fault::NoClaimIsOurs,
        Fault::StaleUidIsOurs,
        Fault::InformPrunes,
        Fault::LeavingPrunes,
        Fault::RecreatedIsOurs,
        Fault::NonePrunes,
    ];
    let missed: Vec<Fault> = faults
        .into_iter()
        .filter(|fault| (0..1_000).all(|seed| history(*fault, seed).is_ok()))
        .collect();
    assert!(missed.is_empty(), "nobody noticed {missed:?}");
}
