//! Single looks and what follows from them.

use std::vec;
use std::vec::Vec;

use super::world::{World, id};
use crate::work::observed::{Ledger, Seen};
use crate::work::plan;
use crate::work::report;
use crate::write::{Side, Write};

fn settled(name: &'static str, wanted: &[(usize, u8)]) -> World {
    let mut world = World::default();
    world.ask(name, wanted);
    for _ in 0..10 {
        world.pass_time(|| true);
        for step in plan(&world.observe(name, || true)) {
            for action in step {
                world.perform(name, &action).unwrap();
            }
        }
    }
    world
}

#[test]
fn a_new_work_is_held_on_the_hub_before_anything_is_written_down() {
    let mut world = World::default();
    world.ask("one", &[(0, 1)]);
    let plan = plan(&world.observe("one", || true));
    let sides: Vec<Vec<Side>> =
        plan.iter().map(|step| step.iter().map(|action| action.side).collect()).collect();
    assert_eq!(sides, [[Side::Hub], [Side::Cluster]]);
    assert!(matches!(&plan[0][0].write, Write::Merge(_)), "the finalizer");
    assert_eq!(plan[1][0].target.id.resource, "appliedmanifestworks");
}

#[test]
fn nothing_is_done_when_nothing_changed() {
    let world = settled("one", &[(0, 1), (1, 1), (2, 1), (3, 1)]);
    assert_eq!(plan(&world.observe("one", || true)), vec![] as crate::write::Plan);
}

#[test]
fn what_cannot_be_seen_holds_the_work() {
    let mut world = settled("one", &[(0, 1)]);
    world.works.get_mut("one").unwrap().deleting = true;
    for step in plan(&world.observe("one", || true)) {
        for action in step {
            world.perform("one", &action).unwrap();
        }
    }
    let mut seen = world.observe("one", || true);
    seen.live.insert(id(0), Seen::Unknown("forbidden".into()));
    assert_eq!(plan(&seen), vec![] as crate::write::Plan);
    assert!(report(&seen).wake.is_some());
}

#[test]
fn an_empty_list_of_manifests_takes_nothing_away() {
    let world = settled("one", &[(0, 1)]);
    let mut seen = world.observe("one", || true);
    seen.wanted.clear();
    assert_eq!(plan(&seen), vec![] as crate::write::Plan);
}

#[test]
fn kinds_come_in_order_and_go_in_reverse() {
    let mut world = World::default();
    world.ask("one", &[(0, 1), (2, 1), (3, 1)]);
    let mut made = vec![];
    let mut gone = vec![];
    for turn in 0..30 {
        if turn == 15 {
            world.works.get_mut("one").unwrap().deleting = true;
        }
        world.pass_time(|| true);
        for step in plan(&world.observe("one", || true)) {
            for action in step {
                let ledger = action.target.id.resource == "appliedmanifestworks";
                match action.write {
                    Write::Create(_) if !ledger => made.push(action.target.id.resource.clone()),
                    Write::Delete { .. } if !ledger => gone.push(action.target.id.resource.clone()),
                    _ => {}
                }
                world.perform("one", &action).unwrap();
            }
        }
    }
    assert_eq!(made, ["customresourcedefinitions", "configmaps", "widgets"]);
    assert_eq!(gone, ["widgets", "configmaps", "customresourcedefinitions"]);
    assert!(!world.works.contains_key("one"));
}

#[test]
fn a_ledger_that_cannot_be_read_stops_everything() {
    let world = settled("one", &[(0, 1)]);
    let mut seen = world.observe("one", || true);
    seen.ledger = Ledger::Unknown("forbidden".into());
    assert_eq!(plan(&seen), vec![] as crate::write::Plan);
}
