//! What policies made is seen gone by asking the server before they are let go of.

use alloc::string::ToString as _;
use alloc::vec;
use alloc::vec::Vec;

use cleat_api::leftoverrecord::LeftObject;
use cleat_api::managedcluster::RemoveStrategy::{Needless, Required};

use super::stories::{has_made, leaves, left, sent};
use super::world::{World, template};
use crate::policy_sync::{HOLD, Observed, plan, report, to_be_seen_gone};
use crate::write::{Plan, Write};

/// A policy on a cluster that is emptied, of which neither copy nor template is left.
fn bare() -> World {
    let mut world = sent(vec![template("a", "DeleteAll"), template("b", "None")]);
    has_made(&mut world, "b");
    world.settle();
    world.templates.get_mut("a").unwrap()["spec"]["remediationAction"] = "enforce".into();
    // The hub has not heard of this yet.
    has_made(&mut world, "a");
    world.sticky = true;
    leaves(&mut world, Required);
    world.settle();
    world.templates.clear();
    for _ in 0..9 {
        let steps = plan(&world.observe());
        let ends = |write: &Write| matches!(write, Write::Merge(_));
        if steps.iter().flatten().any(|action| ends(&action.write)) {
            break;
        }
        steps.iter().flatten().for_each(|action| drop(world.perform(action)));
    }
    assert!(world.local.is_none() && world.hub.is_some());
    world
}

fn uids(all: &[LeftObject]) -> Vec<&str> {
    all.iter().map(|one| one.uid.as_str()).collect()
}

#[test]
fn what_a_policy_was_to_prune_was_not_looked_at_again() {
    let world = bare();
    let due = to_be_seen_gone(&world.observe());
    assert_eq!(uids(&due), ["uid-found", "uid-a"], "what stays is not waited for");
    assert!(!plan(&world.observe()).is_empty(), "all of it is gone");
    for still in [Ok(due[..1].to_vec()), Err("no answer".to_string())] {
        let seen = Observed { still, ..world.observe() };
        assert_eq!(plan(&seen), Plan::new());
        let verdict = report(&seen);
        assert!(verdict.wake.is_some(), "no watch tells of it");
        let said = alloc::format!("{:?}", verdict.publish);
        let expected = match seen.still {
            Ok(_) => "it is there though its template is gone",
            Err(_) => "no answer",
        };
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn what_was_still_there_and_stays_after_all_is_told() {
    let mut world = bare();
    let mut still = to_be_seen_gone(&world.observe());
    still.retain(|one| one.uid == "uid-a");
    world.leaving = Some(Needless);
    let seen = Observed { still: Ok(still), ..world.observe() };
    for action in plan(&seen).iter().flatten() {
        world.perform(action);
    }
    let kept = "kept by removeStrategy Needless";
    let left = left(&world);
    assert!(left.contains(&("uid-a".into(), kept.into())), "{left:?}");
    assert!(!uids(&to_be_seen_gone(&world.observe())).contains(&"uid-a"));
}

#[test]
fn a_policy_that_was_to_stay_after_all_hung_on_what_could_not_be_seen() {
    let mut world = bare();
    world.leaving = Some(Needless);
    for _ in 0..2 {
        let seen = Observed { still: Err("no answer".to_string()), ..world.observe() };
        for action in plan(&seen).iter().flatten() {
            world.perform(action);
        }
    }
    let told = World::status(&world.hub).removal.unwrap().left;
    assert!(told.iter().any(|one| one.uid == "uid-a" && one.believed), "{told:?}");
    let held = &world.hub.unwrap()["metadata"]["finalizers"];
    assert!(!held.to_string().contains(HOLD), "{held}");
}
