//! Policies that made more than the hub can be told of.

use alloc::format;
use alloc::string::ToString as _;
use alloc::vec::Vec;

use cleat_api::leftoverrecord::Untold;
use cleat_api::managedcluster::RemoveStrategy::Needless;
use serde_json::{Value, json};

use super::stories::{leaves, sent};
use super::world::{World, template};
use crate::policy_sync::stranded;

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
    let record = Untold { source: "p".to_string(), count: told.untold };
    assert!(!crate::leave::record::says([], &record));
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
