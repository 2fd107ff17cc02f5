//! Random histories of one policy: edits, crashes after every action, blind spots, slow and refused
//! deletions, a meddler, another policy about the same objects, changes of mind. A quiet world ends as asked, and nobody else's objects
//! are harmed on the way.

use alloc::format;
use alloc::string::ToString as _;
use alloc::vec::Vec;

use cleat_api::configurationpolicy::{PruneObjectBehavior, RecreateOption};

use super::chosen::Chosen;
use super::faults::Fault;
use super::world::{Answerable, BAD, Checked, Sight, World};
use crate::policy::memory::Memory;

const NAMES: [&str; 3] = ["a", "b", "c"];
const BEHAVIORS: [PruneObjectBehavior; 3] = [
    PruneObjectBehavior::DeleteIfCreated,
    PruneObjectBehavior::DeleteAll,
    PruneObjectBehavior::None,
];

/// A replayable stream of choices (SplitMix64): a failing seed is a failing test.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn roll(&mut self, sides: usize) -> usize {
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
    let flips = begin(&mut world, &mut dice);
    for turn in 0..40 {
        weather(&mut world, &mut dice);
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
        live(&mut world, &mut dice, flips && turn < 28)?;
        if world.gone {
            break;
        }
    }
    world.settle()?;
    if world.deleting && !world.gone {
        return Err("the policy never went".into());
    }
    Ok(())
}

/// A world in which a policy has lived for a while; in most it came to rest.
pub(super) fn with_a_past(world: &mut World, dice: &mut Dice) -> Checked {
    world.spec.prune_object_behavior = BEHAVIORS[[0, 0, 1, 2][dice.roll(4)]];
    let flips = begin(world, dice);
    for _ in 0..dice.roll(20) {
        weather(world, dice);
        live(world, dice, flips)?;
    }
    if dice.roll(3) > 0 {
        world.settle()?;
        if dice.roll(3) == 0 {
            // Somebody puts something of their own in the place of one of the objects.
            world.meddle(NAMES[dice.roll(3)], dice.roll(3) as u8);
        }
    }
    Ok(())
}

/// Whether the policy changes its mind about pruning.
fn begin(world: &mut World, dice: &mut Dice) -> bool {
    for name in NAMES {
        if dice.roll(3) > 0 {
            world.wanted.insert(name, dice.roll(3) as u8);
        }
        if dice.roll(4) == 0 {
            world.meddle(name, dice.roll(3) as u8);
        }
    }
    if dice.roll(2) == 0 {
        world.chosen = choose(dice);
    }
    dice.roll(3) == 0
}

fn weather(world: &mut World, dice: &mut Dice) {
    world.slow = dice.roll(3) == 0;
    world.guarded = dice.roll(5) == 0;
    world.unmakeable = dice.roll(6) == 0;
    world.tick(|| dice.roll(2) == 0);
}

/// One turn: an edit, a look, somebody's doing, and a pass that may die on the way.
fn live(world: &mut World, dice: &mut Dice, flips: bool) -> Checked {
    edit(world, dice, flips);
    let sight = Sight {
        objects: (0..3).map(|_| dice.roll(4) > 0).collect(),
        templates: dice.roll(6) > 0,
        lists: (dice.roll(5) > 0, dice.roll(5) > 0),
    };
    let mut seen = world.observe(&sight);
    world.ask(&mut seen);
    // Between the look and the act.
    match dice.roll(12) {
        0 => world.meddle(NAMES[dice.roll(3)], [0, 1, 2, BAD][dice.roll(4)]),
        1 => world.vanish(NAMES[dice.roll(3)]),
        2 => world.rival(NAMES[dice.roll(3)], dice.roll(3) as u8),
        3 => world.change(NAMES[dice.roll(3)], [0, 1, 2, BAD][dice.roll(4)]),
        4 => world.relabel(NAMES[dice.roll(3)]),
        _ => {}
    }
    if world.chosen.selected == Some(false) && dice.roll(3) == 0 {
        // Somebody puts right what must not be there.
        let bad = world.objects.iter().find(|(_, one)| one.labelled && one.content == BAD);
        if let Some(name) = bad.map(|(name, _)| name.clone()) {
            world.change(&name, dice.roll(3) as u8);
        }
    }
    if world.gone {
        return Ok(());
    }
    let survived = world.pass(&seen, [0, 1, 2, 3, 9][dice.roll(5)])?;
    if !survived || dice.roll(8) == 0 {
        world.memory = Memory::default();
    }
    Ok(())
}

/// Templates without names: none, one, or both.
fn choose(dice: &mut Dice) -> Chosen {
    let (must, content) = (dice.roll(2) == 0, dice.roll(3) as u8);
    Chosen {
        unnamed: (dice.roll(2) == 0).then_some((must, content)),
        selected: [None, Some(true), Some(false)][dice.roll(3)],
        first: dice.roll(2) == 0,
    }
}

pub(super) fn edit(world: &mut World, dice: &mut Dice, flips: bool) {
    if world.deleting {
        return;
    }
    match dice.roll(11) {
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
        7 if world.chosen != Chosen::default() => world.chosen = choose(dice),
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
        let matched = world.chosen.unnamed == Some((true, object.content))
            || (world.chosen.selected == Some(true) && object.labelled);
        if enforced && prunes && ours && !matched && !world.wanted.contains_key(name.as_str()) {
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
    if world.chosen != Chosen::default() {
        return match wanted.iter().find(|name| !listed.contains(name)) {
            Some(name) => Err(format!("{name} is wanted and not listed")),
            None => Ok(()),
        };
    }
    if listed != wanted {
        return Err(format!("{listed:?} are listed, {wanted:?} are wanted"));
    }
    Ok(())
}

#[test]
fn every_history_ends_well() {
    let failed = (0..300).filter_map(|seed| {
        let problem = history(Fault::None, seed).err()?;
        Some(format!("seed {seed}: {problem}"))
    });
    let failed: Vec<_> = failed.collect();
    assert!(failed.is_empty(), "{failed:#?}");
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
        Fault::AnyPolicyIsUs,
        Fault::BlindListIsEmpty,
        Fault::AnyVersion,
        Fault::UntriedCreation,
    ];
    let missed: Vec<Fault> = faults
        .into_iter()
        .filter(|fault| (0..1_000).all(|seed| history(*fault, seed).is_ok()))
        .collect();
    assert!(missed.is_empty(), "nobody noticed {missed:?}");
}
