//! What several works hold, when their cluster leaves and is to be emptied. All of them go, in whatever
//! order.

use std::collections::BTreeMap;
use std::string::{String, ToString as _};
use std::vec;
use std::vec::Vec;

use cleat_api::leftoverrecord::LeftObject;
use cleat_api::managedcluster::RemoveStrategy;

use super::super::world::{World, id, keep_only, present};
use super::{act, deletes, settle};
use crate::work::observed::*;
use crate::work::{plan, retire, stranded};

const WORKS: [&str; 2] = ["one", "two"];

/// Two works with these objects, the first of which keeps what it is told to.
fn two(one: &[(usize, u8)], two: &[(usize, u8)], kept: Option<usize>) -> World {
    let mut world = World::default();
    for (name, objects) in WORKS.into_iter().zip([one, two]) {
        world.ask(name, objects);
        if let Some(kept) = kept.filter(|_| name == "one") {
            world.works.get_mut(name).unwrap().keep = keep_only(kept);
        }
        settle(&mut world, name);
    }
    // Their own word is not needed any more: it is in the ledgers.
    world.works.clear();
    world
}

fn look(world: &World, name: &'static str, told: &[LeftObject]) -> Observed {
    let mut seen = world.observe(name, || true);
    seen.leaving = Some(RemoveStrategy::Required);
    seen.told = told.to_vec();
    let others = WORKS.into_iter().filter(|other| *other != name);
    let kept = others.filter_map(|other| world.ledger(other)).flat_map(|book| retire::keeps(&book));
    seen.kept_elsewhere = Ok(kept.collect());
    seen.contents = world.contents(&seen);
    seen
}

/// One pass; what stays of it is heard at once.
fn pass(world: &mut World, name: &'static str, left: &mut BTreeMap<&str, Vec<LeftObject>>) {
    world.pass_time(|| true);
    if let Some(stays) = stranded(&look(world, name, &[])) {
        left.insert(name, stays);
    }
    let told = left.get(name).cloned().unwrap_or_default();
    let next = plan(&look(world, name, &told));
    act(world, name, &next);
}

/// Both go: one after the other, or taking turns. What was told to stay, by work.
fn leave(
    world: &mut World,
    order: [&'static str; 2],
    together: bool,
) -> Vec<(String, String, String)> {
    let mut left = BTreeMap::new();
    let passes = |name: &'static str| vec![name; 40];
    let turns: Vec<&'static str> = match together {
        true => order.repeat(40),
        false => order.into_iter().flat_map(passes).collect(),
    };
    for name in turns {
        pass(world, name, &mut left);
    }
    for name in WORKS {
        assert!(world.ledger(name).is_none(), "{name} never let go");
    }
    let all = left.into_values().flatten();
    all.map(|one| (one.source, one.name, one.why)).collect()
}

fn orders() -> impl Iterator<Item = ([&'static str; 2], bool)> {
    let both = [["one", "two"], ["two", "one"]];
    both.into_iter().flat_map(|order| [(order, false), (order, true)])
}

#[test]
fn what_two_works_held_was_on_record_as_left_though_it_went() {
    for (order, together) in orders() {
        let mut world = two(&[(0, 1)], &[(0, 1), (1, 1)], None);
        assert_eq!(present(&world.objects[&id(0)]).owners.len(), 2);
        assert_eq!(leave(&mut world, order, together), [], "{order:?}");
        assert!(world.objects.is_empty(), "{:?}", world.objects);
    }
}

#[test]
fn what_one_work_kept_went_with_another_that_did_not() {
    for (order, together) in orders() {
        let mut world = two(&[(0, 1)], &[(0, 1), (1, 1)], Some(0));
        assert_eq!(present(&world.objects[&id(0)]).owners.len(), 1, "what is kept bears no mark");
        let left = leave(&mut world, order, together);
        let a = |work: &str, why: &str| (work.to_string(), "a".to_string(), why.to_string());
        assert!(left.contains(&a("one", "kept by deleteOption")), "{order:?}: {left:?}");
        let others = ["another work keeps it", "it is without our mark"].map(|why| a("two", why));
        assert!(left.iter().any(|one| others.contains(one)), "{order:?}: {left:?}");
        assert_eq!(left.len(), 2);
        let there: Vec<_> = world.objects.keys().collect();
        assert_eq!(there, [&id(0)], "{order:?}");
        assert_eq!(present(&world.objects[&id(0)]).owners, []);
    }
}

#[test]
fn who_cannot_see_what_others_keep_deletes_nothing() {
    let world = two(&[(0, 1)], &[(1, 1)], None);
    let mut seen = look(&world, "one", &[]);
    seen.kept_elsewhere = Err("out of sight".to_string());
    assert_eq!(deletes(&plan(&seen)), Vec::<&crate::id::Id>::new());
    seen.kept_elsewhere = Ok(BTreeMap::new());
    assert_eq!(deletes(&plan(&seen)), [&id(0)]);
    // Another incarnation is another object.
    seen.kept_elsewhere = Ok([(id(0), "another".to_string())].into());
    assert_eq!(deletes(&plan(&seen)), [&id(0)]);
}

/// The other work deletes a definition when it is its last holder.
#[test]
fn a_definition_that_two_works_held_went_before_the_objects_of_the_first() {
    let mut world = two(&[(2, 1), (3, 1)], &[(3, 1)], None);
    world.guarded.insert(id(2));
    let mut left = BTreeMap::new();
    for name in WORKS.repeat(40) {
        pass(&mut world, name, &mut left);
    }
    assert!(world.objects.contains_key(&id(2)) && world.objects.contains_key(&id(3)));
    assert!(world.ledger("two").is_none(), "what is denied to one held up the other");
    world.guarded.clear();
    assert_eq!(leave(&mut world, WORKS, true), []);
    assert!(world.objects.is_empty(), "{:?}", world.objects);
}
