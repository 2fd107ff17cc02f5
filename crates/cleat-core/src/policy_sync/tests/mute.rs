//! Policies that cannot say what stays of them when their cluster leaves: they let go of nothing, and
//! say why and what to do.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString as _};
use alloc::vec;
use alloc::vec::Vec;

use cleat_api::managedcluster::RemoveStrategy::Required;
use cleat_api::manifestwork::BlockedObject;
use serde_json::json;

use super::stories::{has_made, leaves, sent};
use super::world::{World, template};
use crate::leave::agent::unsaid;
use crate::policy::observed::Kind;
use crate::policy_sync::observed::Copy;
use crate::policy_sync::{Observed, is_over, mute, plan, report, unsettled};
use crate::work::trouble::{Trouble, TroubleKind};
use crate::write::{Plan, Write};

/// A policy on a cluster that leaves, which has not let go of anything yet.
fn leaving() -> World {
    let mut world = sent(vec![template("a", "DeleteIfCreated")]);
    has_made(&mut world, "a");
    leaves(&mut world, Required);
    world
}

/// What the hub is told to stand in the way, when nothing can be done.
fn blocked(seen: &Observed) -> Vec<BlockedObject> {
    assert_eq!(plan(seen), Plan::new());
    let all = report(seen).publish.into_iter().flatten();
    let mut removals = all.filter_map(|action| match action.write {
        Write::MergeStatus(patch) => patch.pointer("/status/removal/blocked").cloned(),
        _ => None,
    });
    let told = removals.next_back().expect("nobody is told");
    serde_json::from_value(told).unwrap()
}

fn why(seen: &Observed) -> String {
    let blocked = blocked(seen);
    let [one] = blocked.as_slice() else { panic!("{blocked:?}") };
    assert_eq!(one.object, "an account of what stays of it");
    assert!(one.since.is_some() && !one.refused);
    one.why.clone()
}

#[test]
fn a_policy_that_could_not_say_what_stays_hung_a_leave_without_a_word() {
    let world = leaving();
    let unseen = Observed { marked: Err("they are hidden".into()), ..world.observe() };
    assert_eq!(why(&unseen), "it cannot be told: they are hidden");
    let unread = Observed { local: Copy::Unknown("dark".into()), ..world.observe() };
    assert_eq!(why(&unread), "it cannot be told: its copy on the cluster cannot be read (dark)");
    let mut stale = world.observe();
    stale.resources.values_mut().for_each(|kind| *kind = Kind::Unknown("v1 is stale".into()));
    assert_eq!(
        why(&stale),
        "it cannot be told: configurationpolicies c1/a made ConfigMap a, and how v1 is served cannot \
         be seen (v1 is stale): `kubectl get apiservices` there shows what does not answer"
    );
}

#[test]
fn what_a_template_listed_and_nobody_could_read_was_forgotten() {
    let mut world = leaving();
    let listed = json!([{ "object": { "kind": ["ConfigMap"] } }]);
    world.templates.get_mut("a").unwrap()["status"]["relatedObjects"] = listed;
    let why = why(&world.observe());
    let begin =
        "it cannot be told: configurationpolicies c1/a: its status.relatedObjects cannot be";
    assert!(why.starts_with(begin), "{why}");
    // Once it can be read everything goes on.
    has_made(&mut world, "a");
    world.settle();
    assert!(world.templates.is_empty() && world.local.is_none());
}

#[test]
fn what_was_said_before_is_not_taken_back_by_one_who_cannot_see() {
    let mut world = sent(vec![template("a", "DeleteIfCreated"), template("b", "None")]);
    has_made(&mut world, "a");
    has_made(&mut world, "b");
    world.sticky = true;
    leaves(&mut world, Required);
    world.settle();
    let told = World::status(&world.hub).removal.unwrap();
    assert_eq!(told.left.len(), 1);
    world.unmarked = true;
    world.settle();
    let now = World::status(&world.hub).removal.unwrap();
    assert_eq!((now.left, now.remaining), (told.left, told.remaining));
    assert_eq!(now.blocked.len(), 1);
    let since = now.blocked[0].since.clone();
    world.seconds += 100;
    world.settle();
    assert_eq!(World::status(&world.hub).removal.unwrap().blocked[0].since, since);
}

#[test]
fn a_template_that_is_refused_to_go_is_named() {
    let mut world = leaving();
    world.sticky = true;
    let mut seen = world.observe();
    let id = seen.marked.as_ref().unwrap()[0].target.id.clone();
    let trouble = Trouble {
        message: "not while orders are open".to_string(),
        kind: TroubleKind::Refused,
        attempts: 1,
        retry_at: seen.now + jiff::SignedDuration::from_secs(9),
    };
    seen.troubles = BTreeMap::from([(id, trouble)]);
    // What stays is told first.
    for action in plan(&seen).iter().flatten() {
        world.perform(action);
    }
    let blocked = World::status(&world.hub).removal.unwrap().blocked;
    let named: Vec<_> = blocked.iter().map(|one| (&*one.object, &*one.why, one.refused)).collect();
    assert_eq!(named, [("configurationpolicies c1/a", "not while orders are open", true)]);
}

#[test]
fn a_policy_that_the_hub_has_lost_says_so_through_the_cluster() {
    let mut world = leaving();
    world.hub = None;
    world.unmarked = true;
    let what = unsettled(&world.observe()).unwrap();
    let said = unsaid(&BTreeMap::from([("root.p".to_string(), what)])).unwrap();
    assert_eq!(
        said,
        "; policy root.p cannot say what stays of it: configurationpolicies were not read yet"
    );
    assert_eq!(unsaid(&BTreeMap::new()), None);
    world.leaving = None;
    assert_eq!(mute(&world.observe()), None, "who stays has nothing to say");
    let many = (0..7).map(|index| (index.to_string(), String::new())).collect();
    assert!(unsaid(&many).unwrap().ends_with("; and 2 more"));
}

#[test]
fn a_policy_that_neither_side_had_was_said_to_be_mute_for_ever() {
    let mut world = leaving();
    world.hub = None;
    let gone = Observed { local: Copy::Absent, ..world.observe() };
    let unseen = Observed { marked: Err("they are hidden".into()), ..gone.clone() };
    assert!(mute(&unseen).is_some() && !is_over(&unseen), "it is to be looked at again");
    assert!(report(&unseen).wake.is_some());
    let seen = Observed { marked: Ok([].into()), ..gone };
    assert!(mute(&seen).is_none() && is_over(&seen));
    assert!(!is_over(&world.observe()), "its copy is there");
}
