//! What went wrong elsewhere, or here once: hazards of the agent that users know (H1 to H10), facts
//! about it that surprised them, and threads in which they said so. Each test is named after it.

mod deletion;
mod shared;
pub(super) mod told;

use std::format;
use std::vec;
use std::vec::Vec;

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::world::{World, id, keep_only, manifest, present};
use crate::id::Id;
use crate::work::observed::*;
use crate::work::ownership::origin;
use crate::work::plan;
use crate::work::trouble::{Trouble, TroubleKind};
use crate::work::wanted::{Asked, Mapping, place};
use crate::write::{Plan, Write};

/// One pass: what was planned, now done.
fn turn(world: &mut World, name: &'static str) -> Plan {
    world.pass_time(|| true);
    let seen = world.observe(name, || true);
    let plan = plan(&seen);
    act(world, name, &plan);
    plan
}

/// Does a plan; a failed step stops the ones after it.
fn act(world: &mut World, name: &'static str, plan: &Plan) {
    for step in plan {
        let outcomes: Vec<_> =
            step.iter().map(|action| world.perform(name, action).unwrap()).collect();
        if !outcomes.iter().all(crate::write::Outcome::is_done) {
            return;
        }
    }
}

/// Passes until there is nothing to do.
fn settle(world: &mut World, name: &'static str) {
    for _ in 0..60 {
        if turn(world, name).is_empty() {
            return;
        }
    }
    panic!("it does not settle: {:?}", plan(&world.observe(name, || true)));
}

fn settled(wanted: &[(usize, u8)]) -> World {
    let mut world = World::default();
    world.ask("one", wanted);
    settle(&mut world, "one");
    world
}

fn change<T>(world: &mut World, how: impl FnOnce(&mut super::world::HubWork) -> T) {
    let work = world.works.get_mut("one").unwrap();
    how(work);
    work.version += 1;
    work.generation += 1;
}

fn deletes(plan: &Plan) -> Vec<&Id> {
    let writes = plan.iter().flatten().filter(|a| matches!(a.write, Write::Delete { .. }));
    writes.map(|a| &a.target.id).filter(|id| id.resource != "appliedmanifestworks").collect()
}

fn wanted_mut(seen: &mut Observed, index: usize) -> &mut Wanted {
    let id = id(index);
    seen.wanted.iter_mut().find(|wanted| wanted.place.id() == Some(&id)).unwrap()
}

fn work_mut(seen: &mut Observed) -> &mut Work {
    match &mut seen.hub {
        Hub::Work(work) => work,
        other => panic!("{other:?}"),
    }
}

fn book_mut(seen: &mut Observed) -> &mut Book {
    match &mut seen.ledger {
        Ledger::Present(book) => book,
        other => panic!("{other:?}"),
    }
}

#[test]
fn h3_an_unknown_kind_kept_the_others_from_being_recorded() {
    let mut world = World::default();
    world.ask("one", &[(0, 1), (2, 1)]);
    change(&mut world, |work| work.unmapped = [2].into());
    settle(&mut world, "one");
    let book = world.ledger("one").unwrap();
    assert!(book.recorded_uid(&id(0)).is_some());
}

#[test]
fn h3_an_unknown_kind_kept_the_others_from_leaving() {
    let mut world = settled(&[(0, 1), (1, 1), (2, 1)]);
    change(&mut world, |work| {
        work.unmapped = [2].into();
        work.wanted.remove(&0);
    });
    settle(&mut world, "one");
    assert!(!world.objects.contains_key(&id(0)));
    assert!(world.objects.contains_key(&id(1)));
}

#[test]
fn h3_a_kind_unknown_for_a_moment_was_taken_for_removed() {
    let mut world = settled(&[(0, 1), (2, 1)]);
    change(&mut world, |work| work.unmapped = [2].into());
    settle(&mut world, "one");
    assert!(world.objects.contains_key(&id(2)));
}

#[test]
fn what_a_protected_object_of_a_work_waits_for_does_not_wait_for_it() {
    let mut world = settled(&[(0, 1), (2, 1)]);
    change(&mut world, |work| work.deleting = true);
    let mut seen = world.observe("one", || true);
    book_mut(&mut seen).deleting = true;
    assert_eq!(deletes(&plan(&seen)), [&id(2)]);
    let trouble = Trouble {
        message: format!("ProtectedBy CriticalService x: {} remains. Delete it first.", id(0)),
        kind: TroubleKind::Refused,
        attempts: 1,
        retry_at: seen.now.checked_add(SignedDuration::from_secs(1)).unwrap(),
    };
    seen.troubles.insert(id(2), trouble);
    assert_eq!(deletes(&plan(&seen)), [&id(0)]);
}

#[test]
fn h6_labels_of_a_work_stayed_as_they_were_first() {
    let world = settled(&[(0, 1)]);
    let mut seen = world.observe("one", || true);
    work_mut(&mut seen).labels = [("new".into(), "1".into())].into();
    book_mut(&mut seen).labels = [("old".into(), "1".into())].into();
    let plan = plan(&seen);
    let Write::Merge(patch) = &plan[0][0].write else { panic!("{plan:?}") };
    assert_eq!(patch["metadata"]["labels"], json!({ "new": "1", "old": null }));
}

#[test]
fn h8_what_was_there_before_looked_like_what_the_work_made() {
    let mut world = World::default();
    world.meddle(0, 7, false);
    world.ask("one", &[(0, 1), (1, 1)]);
    settle(&mut world, "one");
    let book = world.ledger("one").unwrap();
    assert_eq!(book.origin(&id(0)), Some(Origin::Adopted));
    assert_eq!(book.origin(&id(1)), Some(Origin::Created));
}

#[test]
fn h10_two_works_rewrote_one_object_in_turns() {
    let mut world = settled(&[(0, 1)]);
    world.ask("two", &[(0, 2)]);
    settle(&mut world, "two");
    for name in ["one", "two", "one", "two"] {
        assert_eq!(turn(&mut world, name), vec![] as Plan);
    }
    assert_eq!(world.objects[&id(0)]["data"]["content"], "1");
}

#[test]
fn h10_the_second_work_never_had_its_turn() {
    let mut world = settled(&[(0, 1), (1, 1)]);
    world.ask("two", &[(0, 2)]);
    settle(&mut world, "two");
    change(&mut world, |work| work.wanted.remove(&0));
    settle(&mut world, "one");
    settle(&mut world, "two");
    assert_eq!(world.objects[&id(0)]["data"]["content"], "2");
}

#[test]
fn fact_9_a_frozen_work_was_changed_and_pruned() {
    let mut world = settled(&[(0, 1), (1, 1)]);
    change(&mut world, |work| work.wanted = [(0, 2)].into());
    let mut seen = world.observe("one", || true);
    work_mut(&mut seen).status.conditions = vec![told::condition("Complete", "True", 1)];
    assert_eq!(plan(&seen), vec![] as Plan);
}

#[test]
fn a_complete_manifest_was_applied_again() {
    let mut world = settled(&[(0, 1), (1, 1)]);
    change(&mut world, |work| work.wanted = [(0, 2), (1, 2)].into());
    let mut seen = world.observe("one", || true);
    wanted_mut(&mut seen, 0).complete = true;
    let plan = plan(&seen);
    let touched: Vec<&Id> = plan.iter().flatten().map(|action| &action.target.id).collect();
    assert_eq!(touched, [&id(1)]);
}

#[test]
fn a_hub_out_of_reach_was_taken_for_one_without_works() {
    let world = settled(&[(0, 1)]);
    let mut seen = world.observe("one", || true);
    seen.hub = Hub::Unknown("connection refused".into());
    seen.agent.eviction_grace = Some(jiff::SignedDuration::ZERO);
    assert_eq!(plan(&seen), vec![] as Plan);
}

#[test]
fn owner_references_of_a_manifest_reached_the_cluster() {
    let mut world = World::default();
    world.ask("one", &[(0, 1)]);
    let mut seen = loop {
        let plan = plan(&world.observe("one", || true));
        let creates =
            |a: &crate::write::Action| matches!(a.write, Write::Create(_)) && a.target.id == id(0);
        if plan.iter().flatten().any(creates) {
            break world.observe("one", || true);
        }
        act(&mut world, "one", &plan);
    };
    let mut foreign = manifest(0, 1);
    foreign["metadata"]["uid"] = "somebody".into();
    foreign["metadata"]["ownerReferences"] =
        json!([{ "apiVersion": "v1", "kind": "Node", "name": "n", "uid": "n" }]);
    wanted_mut(&mut seen, 0).manifest = foreign.into();
    let plan = plan(&seen);
    let Write::Create(body) = &plan[0][0].write else { panic!("{plan:?}") };
    let owners = body["metadata"]["ownerReferences"].as_array().unwrap();
    assert_eq!((owners.len(), &owners[0]["kind"]), (1, &json!("AppliedManifestWork")));
    assert_eq!(body["metadata"]["uid"], Value::Null);
}

#[test]
fn a_mark_of_an_earlier_ledger_stayed_beside_the_new_one() {
    let mut world = settled(&[(0, 1)]);
    world.objects.get_mut(&id(0)).unwrap()["metadata"]["ownerReferences"][0]["uid"] = "old".into();
    let plan = plan(&world.observe("one", || true));
    act(&mut world, "one", &plan);
    let owners = present(&world.objects[&id(0)]).owners;
    let book = world.ledger("one").unwrap();
    assert_eq!(owners.iter().map(|o| &o.uid).collect::<Vec<_>>(), [&book.uid]);
}

#[test]
fn a_newer_version_of_a_manifest_deleted_its_object() {
    let world = settled(&[(0, 1)]);
    let mut seen = world.observe("one", || true);
    if let Place::At(target) = &mut seen.wanted[0].place {
        target.version = "v2".into();
    }
    seen.versions.insert(id(0), "v2".into());
    let plan = plan(&seen);
    assert_eq!(deletes(&plan), [] as [&Id; 0]);
    let Write::MergeStatus(patch) = &plan[0][0].write else { panic!("{plan:?}") };
    assert_eq!(patch["status"]["appliedResources"][0]["version"], "v2");
}

#[test]
fn ocm_632_quick_changes_left_objects_behind() {
    let mut world = World::default();
    world.ask("one", &[(0, 1)]);
    for wanted in [vec![(0, 1), (1, 1)], vec![(2, 1)], vec![(1, 2), (3, 1)], vec![(0, 3)]] {
        // The agent gets one pass, or part of one, between two changes.
        let plan = plan(&world.observe("one", || true));
        change(&mut world, |work| work.wanted = wanted.into_iter().collect());
        act(&mut world, "one", &plan);
    }
    settle(&mut world, "one");
    let there: Vec<&Id> =
        world.objects.keys().filter(|id| id.resource != "appliedmanifestworks").collect();
    assert_eq!(there, [&id(0)]);
}

#[test]
fn a_cluster_scoped_manifest_with_a_namespace_was_never_found_again() {
    let asked = Asked {
        api_version: "example.com/v1".into(),
        kind: "Widget".into(),
        namespace: "n".into(),
        name: "w".into(),
    };
    let mapping = Mapping::Mapped {
        group: "example.com".into(),
        version: "v1".into(),
        resource: "widgets".into(),
        namespaced: false,
    };
    assert_eq!(place(&asked, mapping).id().unwrap().namespace, "");
}

#[test]
fn a_rule_that_keeps_one_object_kept_its_neighbour() {
    let mut world = settled(&[(0, 1), (1, 1)]);
    change(&mut world, |work| {
        work.keep = keep_only(0);
        work.wanted = [(2, 1)].into();
    });
    settle(&mut world, "one");
    assert!(world.objects.contains_key(&id(0)));
    assert!(!world.objects.contains_key(&id(1)));
}

#[test]
fn a_quarrel_over_an_object_held_its_deletion_back() {
    let mut world = settled(&[(0, 1), (1, 1)]);
    change(&mut world, |work| work.wanted.remove(&0));
    let mut seen = world.observe("one", || true);
    let later = seen.now.checked_add(jiff::SignedDuration::from_mins(5)).unwrap();
    seen.pauses.insert(id(0), later);
    assert_eq!(deletes(&plan(&seen)), [&id(0)]);
}

#[test]
fn taking_hold_waited_for_agreement_about_the_content() {
    let mut world = settled(&[(0, 1)]);
    world.ask("two", &[(0, 2)]);
    settle(&mut world, "two");
    change(&mut world, |work| work.deleting = true);
    settle(&mut world, "one");
    // Without the mark that the second work set at once, the object would be gone.
    assert!(world.objects.contains_key(&id(0)));
    assert!(!world.works.contains_key("one"));
}

#[test]
fn what_a_work_made_to_stay_was_taken_for_somebody_elses() {
    let map = id(0);
    let claim = Claim { origin: Origin::Created, kept: true };
    let mut book = Book { claims: [(map.clone(), claim)].into(), ..Book::default() };
    let unmarked = Present {
        uid: "u1".into(),
        resource_version: "1".into(),
        terminating: None,
        owners: vec![],
        content: Content::Unread,
    };
    assert_eq!(origin(&book, &map, &unmarked), Origin::Adopted, "nobody knows who made it");
    book.made.insert(map.clone(), "u1".into());
    assert_eq!(origin(&book, &map, &unmarked), Origin::Created);
    book.made.insert(map.clone(), "u0".into());
    assert_eq!(origin(&book, &map, &unmarked), Origin::Adopted, "ours was another one");
}
