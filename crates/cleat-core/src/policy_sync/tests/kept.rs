//! What templates had to keep though they prune.

use cleat_api::leftoverrecord::Stays;
use cleat_api::managedcluster::RemoveStrategy;
use serde_json::json;

use super::stories::{has_made, leaves, left, sent};
use super::world::{World, template};

#[test]
fn what_a_template_had_to_keep_was_on_no_record() {
    let mut world = sent([template("a", "DeleteIfCreated")].into());
    has_made(&mut world, "a");
    world.sticky = true;
    leaves(&mut world, RemoveStrategy::Required);
    world.settle();
    assert!(left(&world).is_empty());
    let why = "it holds what is not ours: configmaps shop/theirs";
    world.templates.get_mut("a").unwrap()["status"]["relatedObjects"][0]["reason"] = json!(why);
    world.settle();
    assert_eq!(left(&world), [("uid-a".into(), why.into())]);
    let told = World::status(&world.hub).removal.unwrap().left;
    assert_eq!(told[0].stays, Some(Stays::NotOurs));
    world.templates.clear();
    world.settle();
    assert!(world.local.is_none());
    assert_eq!(left(&world), [("uid-a".into(), why.into())], "what stays is known to the end");
}
