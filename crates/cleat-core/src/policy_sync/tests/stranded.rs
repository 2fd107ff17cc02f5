//! Policies that the hub lost before their cluster began to leave it, and what it knows of one when the
//! cluster is lost.

use alloc::string::{String, ToString as _};
use alloc::vec;
use alloc::vec::Vec;

use cleat_api::leftoverrecord::Part;
use cleat_api::managedcluster::RemoveStrategy::{self, Needless, Required};

use super::stories::{has_made, sent};
use super::world::{CLUSTER, NAME, World, template};
use crate::policy_sync::{
    Observed, is_forgotten, is_untold, plan, report, stranded, to_be_seen_gone, unsettled,
};
use crate::write::Write;

/// A policy that is gone from the hub, though it was held there, on a cluster that leaves.
fn lost(strategy: RemoveStrategy) -> World {
    let mut world = sent(vec![template("a", "DeleteIfCreated"), template("b", "None")]);
    has_made(&mut world, "a");
    has_made(&mut world, "b");
    world.settle();
    world.hub = None;
    world.leaving = Some(strategy);
    world
}

fn names(world: &World) -> Vec<String> {
    let left = stranded(&world.observe()).unwrap();
    assert!(left.iter().all(|one| one.source == NAME && one.unmarked), "{left:?}");
    left.into_iter().map(|one| one.uid).collect()
}

#[test]
fn what_a_policy_left_that_the_hub_had_lost_was_on_no_record() {
    for (strategy, stays) in [(Needless, vec!["uid-a", "uid-b"]), (Required, vec!["uid-b"])] {
        let mut world = lost(strategy);
        world.settle();
        assert_eq!(names(&world), stays);
        assert!(is_untold(&world.observe()));
        assert!(world.local.is_some(), "its copy went before anybody was told");
        assert_eq!(world.templates["a"]["spec"]["pruneObjectBehavior"], "DeleteIfCreated");
        world.heard = stranded(&world.observe()).unwrap();
        world.settle();
        assert!(world.local.is_none(), "{strategy:?}");
        // The collector takes the templates; what was told of them stays told.
        world.templates.clear();
        assert_eq!(names(&world), stays);
        assert!(!is_untold(&world.observe()));
    }
}

/// One of which everything was told that stays, and whose templates are gone.
fn without_templates() -> World {
    let mut world = lost(Required);
    let enforced = world.templates.get_mut("a").unwrap();
    enforced["spec"]["remediationAction"] = "enforce".into();
    world.heard = stranded(&world.observe()).unwrap();
    world.sticky = true;
    world.settle();
    assert!(world.templates.values().all(|one| one["metadata"]["deletionTimestamp"].is_string()));
    assert!(world.local.is_some(), "it goes after its templates");
    world.templates.clear();
    world
}

#[test]
fn what_a_lost_policy_was_to_prune_was_not_looked_at_again() {
    let mut world = without_templates();
    let due = to_be_seen_gone(&world.observe());
    assert_eq!(due.iter().map(|one| &*one.uid).collect::<Vec<_>>(), ["uid-a"]);
    for still in [Ok(due.clone()), Err("no answer".to_string())] {
        let seen = Observed { still, ..world.observe() };
        assert_eq!(plan(&seen), crate::write::Plan::new(), "its copy went");
        assert!(report(&seen).wake.is_some(), "no watch tells of it");
        let said = unsettled(&seen).unwrap();
        let expected = match seen.still {
            Ok(_) => "waits for configmaps shop/a: it is there though its template is gone",
            Err(_) => "waits for what it made, which has to be seen gone: no answer",
        };
        assert!(said.starts_with(expected), "{said}");
    }
    // Whoever lets it stay after all is told of it first.
    world.leaving = Some(Needless);
    let seen = Observed { still: Ok(due), ..world.observe() };
    let left = stranded(&seen).unwrap();
    assert!(left.iter().any(|one| one.uid == "uid-a") && is_untold(&seen), "{left:?}");
    world.heard = left;
    world.settle();
    assert!(world.local.is_none());
    // And what is gone holds nothing up.
    let mut world = without_templates();
    world.settle();
    assert!(world.local.is_none());
}

#[test]
fn a_cluster_that_does_not_store_what_is_noted_in_a_copy_leaves_all_the_same() {
    let mut world = lost(Required);
    world.heard = stranded(&world.observe()).unwrap();
    let mut seen = world.observe();
    let note = plan(&seen).into_iter().flatten().next().unwrap();
    let mut answer = world.local.clone().unwrap();
    answer["status"].as_object_mut().unwrap().remove("objects");
    assert!(is_forgotten(&note.write, &answer));
    answer["status"]["objects"] = serde_json::json!([{ "resource": "configmaps", "name": "a" }]);
    assert!(!is_forgotten(&note.write, &answer));
    seen.place.forgets = true;
    let next = plan(&seen).into_iter().flatten();
    assert!(next.into_iter().all(|one| matches!(one.write, Write::Delete { .. })));
}

#[test]
fn what_was_told_to_stay_and_goes_after_all_is_taken_back() {
    let mut world = lost(Needless);
    world.heard = stranded(&world.observe()).unwrap();
    world.leaving = Some(Required);
    assert_eq!(names(&world), ["uid-b".to_string()]);
    // What else was told is not this policy's to take back, nor to wait for.
    for one in &mut world.heard {
        one.source = "root.other".to_string();
    }
    assert_eq!(names(&world), ["uid-b".to_string()]);
    assert!(is_untold(&world.observe()));
}

#[test]
fn who_cannot_say_what_stays_lets_go_of_nothing() {
    let mut world = lost(Required);
    world.unmarked = true;
    assert_eq!(stranded(&world.observe()), None);
    assert!(is_untold(&world.observe()));
    assert_eq!(plan(&world.observe()), crate::write::Plan::new());
    // A cluster that stays tells nobody.
    world.leaving = None;
    assert!(!is_untold(&world.observe()));
}

#[test]
fn the_hub_knows_what_stands_for_a_policy_before_the_cluster_is_lost() {
    let world = sent(vec![template("a", "None"), template("b", "DeleteAll")]);
    let uid = |object: &serde_json::Value| object["metadata"]["uid"].as_str().unwrap().to_string();
    let copies = World::status(&world.hub).copies;
    let told: Vec<_> = copies.iter().map(|one| (&*one.name, &*one.uid, one.part)).collect();
    let (a, b) = (uid(&world.templates["a"]), uid(&world.templates["b"]));
    let copy = uid(world.local.as_ref().unwrap());
    assert_eq!(
        told,
        [
            ("a", &*a, Some(Part::Template)),
            ("b", &*b, Some(Part::Template)),
            (NAME, &*copy, Some(Part::Copy)),
        ]
    );
    assert!(copies.iter().all(|one| one.namespace == CLUSTER));
    assert_eq!(World::status(&world.local).copies, []);
}
