//! One thing at a time: what is planned and what is said.

use std::format;
use std::string::{String, ToString as _};

use cleat_api::managedcluster::RemoveStrategy;
use cleat_api::policy::PolicySpec;
use serde_json::json;

use super::world::{NAME, OWN_ID, World, at};
use crate::condition::find;
use crate::lease::Sight;
use crate::leave::agent::{self, Held, Standing, standing};
use crate::leave::carried::Carried;
use crate::leave::hub::{Way, plan, way};
use crate::leave::{beyond, report};
use crate::policy_sync::HOLD;
use crate::registration::access::Part;
use crate::work::contents::Contents;
use crate::write::Write;

fn said(world: &World, kind: &str) -> (String, String, String) {
    let cluster = world.cluster();
    let conditions = cluster.status.unwrap_or_default().conditions;
    let found = find(&conditions, kind);
    found
        .map(|one| (one.status.clone(), one.reason.clone(), one.message.clone()))
        .unwrap_or_default()
}

/// Both halves until nothing changes.
fn settle(world: &mut World) {
    for _ in 0..40 {
        world.clock += 1;
        world.agent(true);
        world.hub(None, false, 99).unwrap();
    }
}

#[test]
fn what_is_said_beyond_what_works_tell_was_hidden() {
    let mut world = World::new("Required");
    let stuck = |name: &str| json!({ "object": name, "why": "held; and locked", "refused": true });
    for (work, blocked) in [("shop", json!([stuck("a"), stuck("b")])), ("other", json!([]))] {
        let removal = json!({ "blocked": blocked, "left": [], "remaining": [] });
        world.works.get_mut(work).unwrap()["status"]["removal"] = removal;
    }
    let carried = world.observe(false).carried.unwrap();
    let (a, b) = ("work shop: a (held; and locked)", "work shop: b (held; and locked)");
    let other = "work other: held by somebody/else; and again";
    assert_eq!(beyond(&format!("{a}; {b}"), &carried), None);
    assert_eq!(beyond(&format!("{a}; {b}; and 3 more"), &carried), None);
    for said in [format!("{other}; {a}; {b}"), format!("{a}; {other}; {b}; and 3 more")] {
        assert_eq!(beyond(&said, &carried).as_deref(), Some(other));
    }
    assert_eq!(beyond("a (held)", &carried).as_deref(), Some("a (held)"));
}

/// Declared destroyed, rebuilt, joined again; and then the old machine comes back.
#[test]
fn a_cluster_obeyed_another_that_had_got_its_name() {
    let world = World::new("Required");
    let claims = |id: &str| {
        json!([
            { "name": "id.k8s.io", "value": "anything" },
            { "name": "clusterid.cleat.dev", "value": id },
        ])
    };
    let leaving = Standing::Leaving(RemoveStrategy::Required);
    let said = "another cluster has the name c1 there; its id is other, and ours is id";
    // What it came with, and what its agent claims; how it is depends on whose cluster it is.
    let cases = [
        (json!({ "cleat.dev/cluster-id": OWN_ID }), json!([]), true),
        (json!({ "cleat.dev/cluster-id": OWN_ID }), claims("other"), true),
        (json!({ "cleat.dev/cluster-id": "other" }), json!([]), false),
        (json!({ "cleat.dev/cluster-id": "other" }), claims(OWN_ID), false),
        (json!({}), claims(OWN_ID), true),
        (json!({}), claims("other"), false),
        // Made in advance, and nobody has said anything yet; or only the cluster itself has.
        (json!({}), json!([]), true),
        (json!({}), json!([{ "name": "id.k8s.io", "value": "anything" }]), true),
    ];
    for (annotations, claims, ours) in cases {
        let mut cluster = world.cluster.clone();
        cluster["metadata"]["annotations"] = annotations;
        cluster["status"]["clusterClaims"] = claims;
        // Whose it is does not depend on what a later version may say.
        for strategy in ["Required", "SomethingNew"] {
            cluster["spec"]["removeStrategy"] = json!(strategy);
            match (standing(&cluster, OWN_ID), ours) {
                (Standing::Leaving(_), true) => {}
                (Standing::Unrecognized(why), false) => assert_eq!(why, said),
                (other, _) => panic!("{other:?} of {cluster}"),
            }
        }
    }
    // Who does not know what it is cannot tell.
    assert_eq!(standing(&world.cluster, ""), leaving);
}

#[test]
fn the_cluster_is_told_before_anything_else_happens() {
    let mut world = World::new("Required");
    assert_eq!(plan(&world.observe(false)), crate::write::Plan::new());
    let leaving = Standing::Leaving(RemoveStrategy::Required);
    assert_eq!(
        standing(&world.cluster, OWN_ID),
        leaving,
        "works may go before the hub has announced it"
    );
    let mut other = world.cluster.clone();
    other["spec"]["removeStrategy"] = json!(null);
    assert_eq!(standing(&other, OWN_ID), Standing::Member, "a hub that does not know strategies");
    world.hub(None, false, 99).unwrap();
    let (status, reason, message) = said(&world, "Unjoining");
    assert_eq!((&*status, &*reason), ("True", "UnjoinCluster"));
    assert!(message.contains("waits for the cluster's agent"), "{message}");
    assert_eq!(way(&world.observe(false)), Way::Telling);
    assert_eq!(plan(&world.observe(false)), crate::write::Plan::new());
    world.agent(true);
    assert_eq!(way(&world.observe(false)), Way::WithAgent);
}

#[test]
fn required_removes_everything_in_order_and_then_the_place() {
    let mut world = World::new("Required");
    settle(&mut world);
    assert!(world.gone && world.things.is_empty() && world.records.is_empty());
    let last = world.deleted.last().map(String::as_str);
    assert_eq!(last, Some("shop"), "{:?}", world.deleted);
}

#[test]
fn needless_deletes_nothing_and_lists_everything() {
    let mut world = World::new("Needless");
    settle(&mut world);
    assert!(world.gone && world.deleted.is_empty());
    let record = world.records.values().next().unwrap();
    assert_eq!(record["spec"]["objects"].as_array().unwrap().len(), 4);
    assert_eq!(record["spec"]["reason"], "Needless");
    assert!(world.things.values().all(|thing| !thing.marked));
}

#[test]
fn a_denied_object_halts_it_by_name_and_it_goes_on_by_itself() {
    let mut world = World::new("Required");
    let key = ("shop".to_string(), "a".to_string());
    world.things.get_mut(&key).unwrap().guarded = true;
    settle(&mut world);
    assert!(!world.gone);
    let (status, reason, message) = said(&world, "UnjoinFailed");
    assert_eq!((&*status, &*reason), ("True", "ResourcesRemain"));
    assert_eq!(message, "work shop: a (denied)");
    assert!(world.things.contains_key(&("base".to_string(), "shop".to_string())));
    world.things.get_mut(&key).unwrap().guarded = false;
    settle(&mut world);
    assert!(world.gone && world.things.is_empty());
}

#[test]
fn an_unreachable_cluster_blocks_required_and_says_since_when() {
    let mut world = World::new("Required");
    world.alive = false;
    world.clock += 200;
    settle(&mut world);
    let (status, reason, message) = said(&world, "UnjoinFailed");
    assert_eq!((&*status, &*reason), ("True", "ClusterUnreachable"));
    assert!(message.contains("since 1970-01-01T00:16:40Z"), "{message}");
    assert!(message.contains("`cleat unjoin c1 --cluster-destroyed`"), "{message}");
    assert_eq!(said(&world, "ManagedClusterConditionAvailable").0, "Unknown");
    assert_eq!(world.works.len(), 3);
    // It flaps: back for a moment, which is enough to be told.
    world.alive = true;
    settle(&mut world);
    assert!(world.gone && world.things.is_empty());
}

#[test]
fn a_declared_end_is_written_down_with_every_uid() {
    let mut world = World::new("Required");
    world.alive = false;
    world.cluster["metadata"]["annotations"]["cleat.dev/cluster-destroyed"] = json!(NAME);
    settle(&mut world);
    assert!(world.gone);
    let record = world.records.values().next().unwrap();
    assert_eq!(record["spec"]["reason"], "ClusterDestroyed");
    assert_eq!(record["spec"]["clusterID"], "id");
    let objects = record["spec"]["objects"].as_array().unwrap();
    assert_eq!(objects.len(), 4);
    assert!(objects.iter().all(|one| one["uid"].is_string() && one["source"].is_string()));
}

#[test]
fn another_clusters_name_declares_nothing() {
    let mut world = World::new("Required");
    world.cluster["metadata"]["annotations"]["cleat.dev/cluster-destroyed"] = json!("c2");
    world.hub(None, false, 99).unwrap();
    assert_eq!(way(&world.observe(false)), Way::Telling);
}

#[test]
fn needless_does_not_wait_for_a_silent_cluster_and_says_that_marks_stay() {
    let mut world = World::new("Needless");
    world.alive = false;
    world.clock += 200;
    settle(&mut world);
    assert!(world.gone && world.deleted.is_empty());
    let record = world.records.values().next().unwrap();
    assert_eq!(record["spec"]["reason"], "Unreachable");
    assert!(world.things.values().all(|thing| thing.marked));
}

#[test]
fn a_strategy_that_changes_counts_for_what_is_not_done() {
    let mut world = World::new("Required");
    let key = ("shop".to_string(), "a".to_string());
    world.things.get_mut(&key).unwrap().guarded = true;
    settle(&mut world);
    let gone = world.deleted.clone();
    assert!(!gone.is_empty() && !world.gone);
    world.cluster["spec"]["removeStrategy"] = json!("Needless");
    settle(&mut world);
    assert!(world.gone);
    assert_eq!(world.deleted, gone);
    assert_eq!(world.things.len(), 2, "what was denied, and what it stands on");
    let written = world.records.values().next().unwrap().to_string();
    assert!(world.things.values().all(|thing| written.contains(&thing.uid)));
}

#[test]
fn what_a_work_keeps_is_listed_and_no_failure() {
    let mut world = World::new("Required");
    world.things.get_mut(&("other".to_string(), "c".to_string())).unwrap().kept = true;
    settle(&mut world);
    assert!(world.gone);
    assert_eq!(said(&world, "UnjoinFailed").0, "");
    let record = world.records.values().next().unwrap();
    assert_eq!(record["spec"]["reason"], "Kept");
    assert_eq!(record["spec"]["objects"][0]["source"], "other");
}

#[test]
fn what_somebody_else_deleted_already_is_written_down_all_the_same() {
    let mut world = World::new("Needless");
    world.works.get_mut("other").unwrap()["metadata"]["deletionTimestamp"] =
        json!("1970-01-01T00:20:00Z");
    // Nothing can hold it any more, so it is on record before its agent ends it.
    while !world.gone {
        world.hub(None, false, 99).unwrap();
        world.agent(true);
        let written = world.records.values().any(|one| one.to_string().contains("uid-c"));
        assert!(written || world.works.contains_key("other"));
        world.clock += 1;
        assert!(world.clock < 2000, "it never ends");
    }
    assert!(world.records.values().any(|one| one.to_string().contains("uid-c")));
}

#[test]
fn nothing_is_done_or_forgotten_while_the_hub_cannot_look() {
    let mut world = World::new("Needless");
    world.hub(None, false, 99).unwrap();
    world.agent(true);
    let seen = world.observe(true);
    assert_eq!(plan(&seen), crate::write::Plan::new());
    let verdict = report(&seen, &[]);
    let Some(Write::MergeStatus(patch)) = verdict.status.map(|one| one.write) else { panic!() };
    assert!(patch.to_string().contains("cannot be listed: blind"), "{patch}");
}

#[test]
fn a_cluster_named_like_a_namespace_that_cannot_go_leaves_it() {
    let mut world = World::new("Required");
    world.works.clear();
    world.things.clear();
    world.hub(None, false, 99).unwrap();
    world.agent(true);
    let mut seen = world.observe(false);
    seen.cluster.metadata.name = Some("default".into());
    let deletes = plan(&seen).into_iter().flatten();
    let namespaces = deletes.filter(|action| action.target == Part::Namespace.target("default"));
    assert_eq!(namespaces.count(), 0);
}

#[test]
fn a_namespace_with_somebodys_things_does_not_go_with_its_cluster() {
    use crate::id::Id;
    use crate::registration::place::{KEPT, is_labelled};
    let mut world = World::new("Required");
    let theirs = Id { resource: "pods".to_string(), name: "p".to_string(), ..Id::default() };
    world.contents = Contents::Foreign([theirs].into());
    settle(&mut world);
    assert!(world.gone);
    let namespace = world.parts.remove(&Part::Namespace).expect("it stays");
    assert!(world.parts.is_empty(), "the rest is gone: {:?}", world.parts.keys());
    assert!(!is_labelled(&namespace, NAME) && namespace["metadata"]["deletionTimestamp"].is_null());
    let why = namespace["metadata"]["annotations"][KEPT].as_str().unwrap();
    assert_eq!(why, "the cluster c1 has left; it holds what is not ours: pods p");
}

#[test]
fn a_namespace_that_is_not_the_clusters_is_not_touched() {
    let mut world = World::new("Required");
    for part in [Part::Namespace, Part::Work, Part::Registration, Part::Lease] {
        world.parts.remove(&part);
    }
    // Somebody deleted it with everything in it, and made another.
    world.works.clear();
    world.things.clear();
    let theirs = json!({ "metadata": { "name": NAME, "uid": "theirs" } });
    world.parts.insert(Part::Namespace, theirs.clone());
    world.contents = Contents::Foreign([].into());
    settle(&mut world);
    assert!(world.gone);
    assert_eq!(world.parts, [(Part::Namespace, theirs)].into());
}

#[test]
fn a_namespace_nobody_could_look_into_stays_and_so_does_the_cluster() {
    let mut world = World::new("Required");
    world.contents = Contents::Unknown("blind".to_string());
    settle(&mut world);
    assert!(!world.gone);
    assert!(world.parts[&Part::Namespace]["metadata"]["deletionTimestamp"].is_null());
    assert_eq!(world.parts.len(), Part::ALL.len());
}

#[test]
fn a_cluster_that_was_silent_stays_so_when_the_hub_starts_again() {
    let mut world = World::new("Required");
    world.alive = false;
    world.clock += 200;
    settle(&mut world);
    let before = said(&world, "UnjoinFailed");
    // The new hub finds an old renewal, and knows of it only that it was there.
    world.sight = Sight::Found;
    world.beat = world.clock;
    settle(&mut world);
    assert_eq!(said(&world, "UnjoinFailed").0, before.0);
    assert_eq!(said(&world, "UnjoinFailed").1, "ClusterUnreachable");
}

#[test]
fn a_denied_cluster_gets_back_what_it_takes_to_leave() {
    use crate::registration::access::Standing;
    for strategy in ["Required", "Needless"] {
        let mut world = World::new(strategy);
        world.cluster["spec"]["hubAcceptsClient"] = json!(false);
        world.parts.remove(&Part::Work);
        world.parts.remove(&Part::Registration);
        world.parts.insert(Part::Role, Part::Role.wanted(NAME, Standing::Denied));
        // It could not renew its lease since it was denied, long ago.
        world.clock += 1000;
        world.hub(None, false, 99).unwrap();
        world.hub(None, false, 99).unwrap();
        let rules = world.parts[&Part::Role]["rules"].to_string();
        assert!(rules.contains("managedclusters/status") && !rules.contains("renew"), "{rules}");
        assert!(world.parts.contains_key(&Part::Work), "{strategy}");
        settle(&mut world);
        assert!(world.gone, "{strategy}");
        assert!(world.things.values().all(|thing| !thing.marked), "its agent did its part");
    }
}

#[test]
fn a_cluster_declared_destroyed_gets_no_rights_back() {
    let mut world = World::new("Required");
    world.cluster["spec"]["hubAcceptsClient"] = json!(false);
    world.parts.remove(&Part::Work);
    world.cluster["metadata"]["annotations"]["cleat.dev/cluster-destroyed"] = json!(NAME);
    world.hub(None, false, 99).unwrap();
    for _ in 0..20 {
        world.hub(None, false, 99).unwrap();
        assert!(!world.parts.contains_key(&Part::Work));
    }
    assert!(world.gone);
}

#[test]
fn rights_that_somebody_took_from_a_leaving_cluster_come_back() {
    let mut world = World::new("Required");
    world.hub(None, false, 99).unwrap();
    world.parts.remove(&Part::Work);
    world.parts.remove(&Part::RoleBinding);
    settle(&mut world);
    assert!(world.gone && world.things.is_empty());
}

#[test]
fn a_namespace_on_the_hub_that_something_holds_is_told() {
    let mut world = World::new("Required");
    world.stuck = true;
    settle(&mut world);
    let namespace = world.parts.get_mut(&Part::Namespace).expect("it is held");
    namespace["status"]["conditions"] = json!([
        { "type": "NamespaceDeletionContentFailure", "status": "False", "message": "all is well" },
        { "type": "NamespaceFinalizersRemaining", "status": "True", "message": "x in 1 instances" },
    ]);
    settle(&mut world);
    let (status, reason, message) = said(&world, "UnjoinFailed");
    assert_eq!((&*status, &*reason), ("True", "ResourcesRemain"));
    assert_eq!(message, "namespaces c1 is still there: x in 1 instances");
}

#[test]
fn an_agent_that_lives_and_never_answers_is_told() {
    let mut world = World::new("Required");
    for _ in 0..29 {
        world.clock += 1;
        world.beat = world.clock;
        world.hub(None, false, 99).unwrap();
    }
    assert_eq!(said(&world, "UnjoinFailed").0, "", "it may take a moment");
    for _ in 0..5 {
        world.clock += 1;
        world.beat = world.clock;
        world.hub(None, false, 99).unwrap();
    }
    let (status, reason, message) = said(&world, "UnjoinFailed");
    assert_eq!((&*status, &*reason), ("True", "AgentDoesNotAnswer"));
    assert!(message.contains("does not know how to leave"), "{message}");
    settle(&mut world);
    assert!(world.gone, "it goes on when the agent answers");
}

#[test]
fn what_an_agent_still_holds_when_no_work_is_left_is_told() {
    let mut world = World::new("Required");
    let key = ("other".to_string(), "c".to_string());
    world.works.remove("other");
    world.things.get_mut(&key).unwrap().guarded = true;
    settle(&mut world);
    let (status, reason, message) = said(&world, "UnjoinFailed");
    assert_eq!((&*status, &*reason), ("True", "ResourcesRemain"));
    assert_eq!(message, "The cluster's agent says: Not everything is removed: things.");
}

#[test]
fn an_answer_that_was_lost_once_is_no_failure() {
    use crate::write::Outcome;
    let mut world = World::new("Required");
    world.hub(None, false, 99).unwrap();
    world.agent(true);
    let lost = [std::vec![Outcome::Lost("no answer".to_string())]];
    let tell = |world: &mut World, done: &[std::vec::Vec<Outcome>]| {
        let verdict = report(&world.observe(false), done);
        if let Some(Write::MergeStatus(patch)) = verdict.status.map(|one| one.write) {
            world.cluster["status"]["conditions"] = patch["status"]["conditions"].clone();
        }
        said(world, "UnjoinFailed").0
    };
    assert_eq!(tell(&mut world, &lost), "Unknown");
    world.clock += 5;
    assert_eq!(tell(&mut world, &[]), "False");
    assert_eq!(tell(&mut world, &lost), "Unknown");
    world.clock += 10;
    assert_eq!(tell(&mut world, &lost), "True", "now it is one");
    world.clock += 1;
    assert_eq!(tell(&mut world, &lost), "True");
    assert_eq!(tell(&mut world, &[]), "False");
}

#[test]
fn what_cannot_be_seen_for_a_moment_takes_back_nothing_that_was_said() {
    let mut world = World::new("Required");
    let key = ("shop".to_string(), "a".to_string());
    world.things.get_mut(&key).unwrap().guarded = true;
    settle(&mut world);
    let before = said(&world, "UnjoinFailed");
    assert_eq!(before.2, "work shop: a (denied)");
    for _ in 0..5 {
        world.clock += 5;
        world.hub(None, true, 99).unwrap();
        assert_eq!(said(&world, "UnjoinFailed"), before);
    }
}

#[test]
fn an_agent_that_never_said_it_joined_is_waited_for_all_the_same() {
    let mut world = World::new("Required");
    let conditions = world.cluster["status"]["conditions"].as_array_mut().unwrap();
    conditions.retain(|one| one["type"] != "ManagedClusterJoined");
    world.hub(None, false, 99).unwrap();
    let mut seen = world.observe(false);
    assert_eq!(way(&seen), Way::Telling, "it renews a lease, and holds works");
    seen.heartbeat = Default::default();
    assert_eq!(way(&seen), Way::Telling, "it holds works");
    seen.carried = Err("blind".to_string());
    assert_eq!(way(&seen), Way::Telling, "nobody knows");
    seen.carried = Ok(std::vec![]);
    assert!(matches!(way(&seen), Way::WithoutAgent(_)), "nobody was ever there");
}

#[test]
fn what_the_agent_has_not_counted_yet_counts_as_believed() {
    use crate::leave::counts;
    let mut world = World::new("Required");
    world.hub(None, false, 99).unwrap();
    let all =
        |world: &World| -> i64 { counts(&world.observe(false).carried.unwrap()).values().sum() };
    assert_eq!(all(&world), 4);
    for work in world.works.values_mut() {
        work["metadata"]["deletionTimestamp"] = json!("1970-01-01T00:20:00Z");
    }
    assert_eq!(all(&world), 4, "nothing is gone because it was asked to go");
    world.works.get_mut("other").unwrap()["status"]["removal"] = json!({ "remaining": [] });
    assert_eq!(all(&world), 3);
}

#[test]
fn a_look_that_is_not_allowed_any_more_takes_back_no_release() {
    use crate::leave::agent::Held;
    let mut world = World::new("Required");
    world.works.clear();
    world.things.clear();
    world.hub(None, false, 99).unwrap();
    world.agent(true);
    let blind = Held { unknown: Some("forbidden".to_string()), ..Held::default() };
    let told = |world: &World, held: &Held| {
        crate::leave::agent::report(&world.cluster(), held, at(world.clock)).is_some()
    };
    assert!(!told(&world, &blind));
    assert!(told(&world, &Held { what: Some("1 works".to_string()), ..Held::default() }));
    world.cluster["spec"]["removeStrategy"] = json!("Needless");
    assert!(told(&world, &blind), "of that strategy nothing was said");
}

#[test]
fn large_records_come_in_parts() {
    use crate::leave::record::{append, leave, missing};
    let objects: std::vec::Vec<cleat_api::leftoverrecord::LeftObject> = (0..2500)
        .map(|index| cleat_api::leftoverrecord::LeftObject {
            resource: "configmaps".to_string(),
            name: index.to_string(),
            ..Default::default()
        })
        .collect();
    let world = World::new("Needless");
    let more = missing(&[], objects.iter());
    let leave = leave(&world.cluster(), cleat_api::leftoverrecord::Reason::Needless);
    let actions = append(&leave, &[], &more);
    let counts: std::vec::Vec<_> = actions
        .iter()
        .map(|action| match &action.write {
            Write::Create(object) => object["spec"]["count"].as_i64().unwrap(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(counts, [1000, 1000, 500]);
    let _ = at(0);
}

#[test]
fn a_policy_of_a_lost_cluster_is_let_go_of_when_what_it_made_is_written_down() {
    let mut world = World::new("Required");
    world.hub(None, false, 99).unwrap();
    world.cluster["metadata"]["annotations"]["cleat.dev/cluster-destroyed"] = json!(NAME);
    let mut seen = world.observe(false);
    let metadata = json!({
        "name": "p", "namespace": NAME, "uid": "u", "resourceVersion": "1",
        "deletionTimestamp": "1970-01-01T00:16:40Z", "finalizers": [HOLD],
    });
    let made = json!({ "objects": [
        { "version": "v1", "resource": "configmaps", "name": "m", "uid": "uid-m" },
    ] });
    let metadata = serde_json::from_value(metadata).unwrap();
    let spec = PolicySpec::default();
    let policy = Carried::policy(&metadata, Some(&spec), serde_json::from_value(made).unwrap());
    seen.carried = Ok([policy].into());
    let [step] = plan(&seen).try_into().unwrap();
    let Write::Create(record) = &step[0].write else { panic!("it is forgotten: {step:?}") };
    assert_eq!(record["spec"]["objects"][0]["uid"], "uid-m");
    assert_eq!(record["spec"]["objects"][0]["source"], "p");
    seen.records = Ok([serde_json::from_value(record.clone()).unwrap()].into());
    let [step] = plan(&seen).try_into().unwrap();
    let Write::Merge(patch) = &step[0].write else { panic!("{step:?}") };
    assert_eq!(patch["metadata"]["finalizers"], json!([]));
}

#[test]
fn an_agent_that_lost_its_rights_with_the_namespace_took_back_that_all_is_released() {
    let mut world = World::new("Required");
    let said = |status: &str| {
        json!([{
            "type": "ResourcesReleased", "status": status, "reason": "Required", "message": "m",
            "lastTransitionTime": "1970-01-01T00:16:40Z",
        }])
    };
    let blind = Held { unknown: Some("forbidden".to_string()), ..Held::default() };
    let holds = Held { what: Some("1 works".to_string()), ..Held::default() };
    world.cluster["status"]["conditions"] = said("True");
    let now = at(2000);
    assert_eq!(agent::report(&world.cluster(), &blind, now), None);
    assert!(agent::report(&world.cluster(), &holds, now).is_some(), "something came since");
    world.cluster["spec"]["removeStrategy"] = json!("Needless");
    assert!(agent::report(&world.cluster(), &blind, now).is_some(), "it was another strategy");
    world.cluster["spec"]["removeStrategy"] = json!("Required");
    world.cluster["status"]["conditions"] = said("False");
    assert!(agent::report(&world.cluster(), &blind, now).is_some());
}
