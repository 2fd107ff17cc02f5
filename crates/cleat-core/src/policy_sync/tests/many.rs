//! Policies that made more than the hub can be told of.

use alloc::format;
use alloc::string::ToString as _;
use alloc::vec::Vec;

use cleat_api::leftoverrecord::Untold;
use cleat_api::managedcluster::RemoveStrategy::{Needless, Required};
use serde_json::{Value, json};

use super::stories::{has_made, leaves, sent};
use super::world::{World, template};
use crate::policy_sync::observed::Copy;
use crate::policy_sync::{Observed, stranded, to_be_seen_gone};

fn has_made_many(world: &mut World, count: usize) {
    let made = (0..count).map(|index| {
        let metadata = json!({ "name": format!("m{index}"), "namespace": "shop" });
        json!({
            "object": { "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata },
            "properties": { "createdByPolicy": true, "uid": format!("u{index}") },
        })
    });
    let made: Vec<Value> = made.collect();
    world.templates.get_mut("a").unwrap()["status"] = json!({ "relatedObjects": made });
}

#[test]
fn what_was_more_than_the_hub_can_be_told_was_dropped_without_a_word() {
    let mut world = sent([template("a", "DeleteIfCreated")].into());
    has_made_many(&mut world, 2510);
    world.settle();
    let told = World::status(&world.hub);
    assert_eq!((told.objects.len(), told.untold), (2500, 10));
    leaves(&mut world, Needless);
    world.settle();
    let told = World::status(&world.hub).removal.unwrap();
    assert_eq!((told.left.len(), told.untold), (2500, 10), "after its template as well");
    assert!(world.templates.is_empty());
    let record = Untold { source: "p".to_string(), policy: true, count: told.untold };
    assert!(!crate::leave::record::says([], &record));
}

/// Only so many can be noted, and only those are read once more.
#[test]
fn what_was_more_than_can_be_seen_gone_was_on_no_record() {
    let mut world = sent([template("a", "DeleteIfCreated"), template("b", "None")].into());
    has_made(&mut world, "b");
    world.settle();
    world.templates.get_mut("a").unwrap()["spec"]["remediationAction"] = json!("enforce");
    has_made_many(&mut world, 2510);
    world.sticky = true;
    leaves(&mut world, Required);
    world.settle();
    let told = World::status(&world.hub);
    let noted = told.objects.iter().filter(|one| one.stays.is_none()).count();
    assert_eq!(noted, 2500, "what stays takes no room");
    let removal = told.removal.unwrap();
    assert_eq!((removal.left.len(), removal.untold), (1, 10));
    // The templates are gone, and with them their word.
    world.templates.clear();
    world.sticky = false;
    let seen = world.observe();
    assert_eq!(to_be_seen_gone(&Observed { local: Copy::Absent, ..seen }).len(), 2500);
    world.settle();
    let told = World::status(&world.hub).removal;
    assert!(world.hub.is_none() || told.is_some_and(|told| told.untold == 10));
}

#[test]
fn what_is_stranded_is_told_whole_or_waits() {
    let mut world = sent([template("a", "DeleteIfCreated")].into());
    has_made_many(&mut world, 2510);
    world.settle();
    world.hub = None;
    world.leaving = Some(Needless);
    assert_eq!(stranded(&world.observe()).unwrap().len(), 2510);
}
