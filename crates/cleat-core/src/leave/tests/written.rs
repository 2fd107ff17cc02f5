//! What is written down before it is forgotten, and what has to go first.

use std::collections::{BTreeMap, BTreeSet};
use std::format;
use std::string::{String, ToString as _};
use std::vec::Vec;

use cleat_api::leftoverrecord::{
    LeftObject, LeftoverRecord, LeftoverRecordSpec, Part, Stays, Untold,
};
use cleat_api::manifestwork::{BlockedObject, ManifestWork, ON_RECORD, Removal};
use cleat_api::policy::PolicySpec;
use serde_json::{Value, json};

use super::world::{Dice, NAME, World, at};
use crate::leave::agent::{
    self, Besides, Held, Source, besides, fitting, is_dropped, is_on_record,
};
use crate::leave::carried::{Carried, Kind};
use crate::leave::hub::{Observed, is_finishing, plan};
use crate::leave::record;
use crate::write::Write;

/// A world whose agent knows that it leaves.
fn told(strategy: &str) -> World {
    let mut world = World::new(strategy);
    world.hub(None, false, 99).unwrap();
    world.agent(true);
    world
}

fn on_record(world: &World) -> Vec<String> {
    let objects = world.records.values().flat_map(|one| one["spec"]["objects"].as_array().unwrap());
    objects.map(|one| one["name"].as_str().unwrap().to_string()).collect()
}

/// The conditions, when it has taken long and the agent still lives.
fn said_later(mut seen: Observed) -> String {
    seen.now = at(5000);
    seen.heartbeat.seen = Some(seen.now);
    seen.heartbeat.renewed = Some(seen.now);
    let status = crate::leave::report(&seen, &[]).status.unwrap();
    let Write::MergeStatus(patch) = status.write else { panic!() };
    patch["status"]["conditions"].to_string()
}

#[test]
fn what_a_work_keeps_that_was_deleted_before_is_on_record_before_it_is_let_go_of() {
    for strategy in ["Required", "Needless"] {
        let mut world = World::new(strategy);
        world.works.retain(|name, _| name == "other");
        world.things.retain(|(work, _), _| work == "other");
        let key = ("other".to_string(), "c".to_string());
        world.things.get_mut(&key).unwrap().kept = true;
        let work = world.works.get_mut("other").unwrap();
        work["metadata"]["deletionTimestamp"] = json!("1970-01-01T00:16:40Z");
        world.hub(None, false, 99).unwrap();
        world.agent(true);
        assert!(world.works.contains_key("other"), "its agent let go of it");
        assert_eq!(on_record(&world), [""; 0]);
        world.hub(None, false, 99).unwrap();
        assert_eq!(on_record(&world), ["c"]);
        world.agent(true);
        assert!(world.works.contains_key("other"), "nobody said that it is on record");
        for _ in 0..10 {
            world.hub(None, false, 99).unwrap();
            world.agent(true);
        }
        assert!(world.gone, "{strategy}");
        assert_eq!(on_record(&world), ["c"]);
    }
}

#[test]
fn a_receipt_is_for_what_was_told_and_for_nothing_else() {
    let mut world = told("Required");
    let work = world.works.get_mut("other").unwrap();
    work["metadata"]["deletionTimestamp"] = json!("1970-01-01T00:16:40Z");
    work["metadata"]["annotations"] = json!({ ON_RECORD: "of something else" });
    let left = json!({ "resource": "configmaps", "name": "c", "uid": "uid-c" });
    work["status"]["removal"] = json!({ "left": [left] });
    let receipts = |world: &World| -> Vec<Value> {
        let merges = plan(&world.observe(false)).into_iter().flatten();
        let merges = merges.filter_map(|action| match action.write {
            Write::Merge(patch) if action.target.id.name == "other" => Some(patch),
            _ => None,
        });
        merges.map(|patch| patch["metadata"]["annotations"][ON_RECORD].clone()).collect()
    };
    assert_eq!(receipts(&world), [] as [Value; 0], "it is not written down yet");
    world.hub(None, false, 99).unwrap();
    assert_eq!(on_record(&world), ["c"]);
    let [receipt] = receipts(&world).try_into().unwrap();
    assert!(receipt.is_string());
    let work = world.works.get_mut("other").unwrap();
    work["metadata"]["annotations"][ON_RECORD] = receipt;
    assert_eq!(receipts(&world), [] as [Value; 0]);
}

#[test]
fn what_had_left_the_manifests_was_on_no_record() {
    let world = World::new("Required");
    let mut work = world.works["other"].clone();
    let held = json!({ "version": "v1", "resource": "secrets", "name": "held", "uid": "uid-held" });
    work["status"]["retiring"] = json!([held]);
    let work: ManifestWork = serde_json::from_value(work).unwrap();
    let objects = Carried::work(&work).objects;
    let known: Vec<_> = objects.iter().map(|one| (&*one.name, &*one.source)).collect();
    assert_eq!(known, [("c", "other"), ("held", "other")]);
}

#[test]
fn what_had_left_the_manifests_and_was_declared_to_stay_since_was_to_go() {
    let world = World::new("Required");
    let mut work = world.works["other"].clone();
    let held = |name: &str| json!({ "resource": "secrets", "name": name, "uid": "u" });
    let mut theirs = held("theirs");
    theirs["stays"] = json!("NotOurs");
    work["status"]["retiring"] = json!([held("goes"), held("rescued"), theirs]);
    let stays = |work: &Value| -> Vec<(String, Option<Stays>)> {
        let work: ManifestWork = serde_json::from_value(work.clone()).unwrap();
        let objects = Carried::work(&work).objects.into_iter();
        let secrets = objects.filter(|one| one.resource == "secrets");
        secrets.map(|one| (one.name, one.stays)).collect()
    };
    let all = |goes, rescued| {
        let all = [("goes", goes), ("rescued", rescued), ("theirs", Some(Stays::NotOurs))];
        all.map(|(name, stays)| (name.to_string(), stays))
    };
    assert_eq!(stays(&work), all(None, None));
    work["spec"]["deleteOption"] = json!({
        "propagationPolicy": "SelectivelyOrphan",
        "selectivelyOrphans": { "orphaningRules": [
            { "group": "", "resource": "secrets", "namespace": "", "name": "rescued" },
        ] },
    });
    assert_eq!(stays(&work), all(None, Some(Stays::Declared)));
    work["spec"]["deleteOption"] = json!({ "propagationPolicy": "Orphan" });
    assert_eq!(stays(&work), all(Some(Stays::Declared), Some(Stays::Declared)));
}

#[test]
fn what_the_agent_itself_leaves_is_written_down_before_the_end() {
    let mut world = told("Required");
    world.works.clear();
    world.things.clear();
    world.agent(true);
    assert!(is_finishing(&world.observe(false)));
    let left = json!({ "resource": "namespaces", "name": NAME, "uid": "uid-n" });
    world.cluster["status"]["left"] = json!([left]);
    assert!(!is_finishing(&world.observe(false)), "it would be forgotten");
    world.hub(None, false, 99).unwrap();
    assert_eq!(on_record(&world), [NAME]);
    assert!(is_finishing(&world.observe(false)));
}

#[test]
fn add_ons_go_when_works_are_held_and_works_when_add_ons_are_gone() {
    let mut world = told("Required");
    let add_on = |deleting: bool| {
        let mut metadata = json!({ "name": "logs", "namespace": NAME, "uid": "u" });
        if deleting {
            metadata["deletionTimestamp"] = json!("1970-01-01T00:16:40Z");
            metadata["finalizers"] = json!(["logs.example/pre-delete"]);
        }
        Carried::bare(Kind::AddOn, &serde_json::from_value(metadata).unwrap())
    };
    let deleted = |world: &World, deleting: bool| -> Vec<String> {
        let mut seen = world.observe(false);
        seen.carried.as_mut().unwrap().push(add_on(deleting));
        let all = plan(&seen).into_iter().flatten();
        let deletes = all.filter(|one| matches!(one.write, Write::Delete { .. }));
        deletes.map(|one| one.target.id.name).collect()
    };
    assert_eq!(deleted(&world, false), [""; 0], "works are not held yet");
    world.hub(None, false, 99).unwrap();
    assert_eq!(deleted(&world, false), ["logs"]);
    assert_eq!(deleted(&world, true), [""; 0]);
    let mut seen = world.observe(false);
    seen.carried.as_mut().unwrap().push(add_on(true));
    let said = said_later(seen);
    assert!(said.contains("add-on logs: held by logs.example/pre-delete"), "{said}");
    assert!(said.contains("1 add-on"), "{said}");
}

#[test]
fn a_work_that_only_another_held_waited_for_a_receipt_that_nobody_wrote() {
    let mut world = told("Required");
    world.works.retain(|name, _| name == "other");
    let work = world.works.get_mut("other").unwrap();
    work["metadata"]["deletionTimestamp"] = json!("1970-01-01T00:16:40Z");
    work["metadata"]["finalizers"] = json!(["example.com/x"]);
    let left = json!({ "resource": "configmaps", "name": "c", "uid": "uid-c" });
    work["status"]["removal"] = json!({ "left": [left] });
    world.hub(None, false, 99).unwrap();
    assert_eq!(on_record(&world), ["c"]);
    world.hub(None, false, 99).unwrap();
    assert!(world.works["other"]["metadata"]["annotations"][ON_RECORD].is_string());
    // And somebody is told who holds it.
    let said = said_later(world.observe(false));
    assert!(said.contains("work other: held by example.com/x"), "{said}");
}

#[test]
fn a_hub_that_drops_what_it_is_told_was_told_for_ever() {
    let left = serde_json::from_value(json!({ "resource": "namespaces", "name": NAME })).unwrap();
    let held = Held { left: [left].into(), ..Held::default() };
    let kept = json!({ "status": { "left": [{ "resource": "namespaces", "name": NAME }] } });
    assert!(!is_dropped(&held, &kept));
    assert!(!is_dropped(&held, &Value::Null), "it did not say");
    assert!(!is_dropped(&Held::default(), &json!({ "status": {} })), "nothing was told");
    assert!(is_dropped(&held, &json!({ "status": { "conditions": [] } })));
}

#[test]
fn what_was_told_of_lost_works_stays_told_and_what_is_there_now_replaces_it() {
    let object = |name: &str, source: &str, unmarked: bool| LeftObject {
        resource: "configmaps".to_string(),
        name: name.to_string(),
        source: source.to_string(),
        unmarked,
        ..LeftObject::default()
    };
    let ground =
        LeftObject { resource: "namespaces".to_string(), ..object(NAME, "policies", true) };
    // A policy and a work may have one name, and a work that of the ground.
    let told = [
        object("a", "gone", false),
        object("b", "same", false),
        object("c", "same", true),
        object("d", "policies", false),
        ground,
    ];
    let names =
        |left: &[LeftObject]| -> Vec<String> { left.iter().map(|one| one.name.clone()).collect() };
    let nothing = BTreeSet::new();
    let none = besides(&told, &nothing, &BTreeMap::new());
    assert_eq!((names(&none.left), none.untold), (names(&told[..4]), 0));
    let now = Vec::from([object("e", "same", true)]);
    let stranded = BTreeMap::from([(Source::Policy("same".to_string()), now)]);
    assert_eq!(names(&besides(&told, &nothing, &stranded).left), ["a", "b", "d", "e"]);
    // What is on record stays told while there is room, and is not told anew.
    let on_record = BTreeSet::from([object("a", "gone", false), object("e", "same", true)]);
    assert_eq!(names(&besides(&told, &on_record, &stranded).left), ["a", "b", "d"]);
}

/// So many objects of a work that the hub has lost.
fn lost(work: &str, count: usize) -> (Source, Vec<LeftObject>) {
    let objects = (0..count).map(|index| LeftObject {
        resource: "configmaps".to_string(),
        name: format!("{work}-{index}"),
        uid: format!("uid-{work}-{index}"),
        source: work.to_string(),
        ..LeftObject::default()
    });
    (Source::Work(work.to_string()), objects.collect())
}

#[test]
fn more_than_the_hub_can_be_told_at_once_of_what_it_lost_held_a_cluster_for_ever() {
    for seed in 0..200 {
        let mut dice = Dice(seed);
        let mut world = told("Needless");
        world.works.clear();
        world.things.clear();
        let mut held = BTreeMap::from([lost("big", 20), lost("bigger", 35), lost("small", 2)]);
        let all: Vec<String> = held.values().flatten().map(|one| one.uid.clone()).collect();
        // What an agent knows that dies now and then.
        let (mut on_record, mut stranded) = (BTreeSet::new(), BTreeMap::new());
        let mut rounds = 0;
        while !world.gone {
            rounds += 1;
            assert!(rounds < 200, "it never left: {} are held", held.len());
            if rounds < 40 && dice.roll(6) == 0 {
                (on_record, stranded) = (BTreeSet::new(), BTreeMap::new());
            }
            let cluster = world.cluster();
            let told = cluster.status.clone().unwrap_or_default().left;
            if is_on_record(&cluster) {
                on_record.extend(told.iter().cloned());
            }
            stranded.extend(held.clone());
            let heard: Vec<LeftObject> = told.iter().chain(&on_record).cloned().collect();
            held.retain(|_, left| !record::are_told(&heard, left));
            let Besides { left, untold } = fitting(&told, &on_record, &stranded, 30);
            assert!(left.len() <= 30 && untold <= 57, "{} and {untold}", left.len());
            let named = record_of(&world);
            let lost = told.iter().find(|one| !left.contains(one) && !named.contains(&one.uid));
            assert_eq!(lost, None, "it is told no more, and is nowhere");
            let what = (!held.is_empty()).then(|| "ledgers".to_string());
            let report = Held { what, left, ..Held::default() };
            if dice.roll(4) > 0
                && let Some(action) = agent::report(&cluster, &report, at(1000))
            {
                world.write(&action);
            }
            world.hub(None, false, dice.roll(4)).unwrap();
        }
        let named = record_of(&world);
        assert_eq!(all.iter().find(|uid| !named.contains(*uid)), None, "seed {seed}");
        assert_eq!(named.len(), all.len(), "seed {seed}");
    }
}

/// The uids of everything on record.
fn record_of(world: &World) -> BTreeSet<String> {
    let objects = world.records.values().flat_map(|one| one["spec"]["objects"].as_array().unwrap());
    objects.map(|one| one["uid"].as_str().unwrap().to_string()).collect()
}

#[test]
fn a_hub_that_is_older_than_the_agent_never_makes_room_and_that_is_said() {
    let stranded = BTreeMap::from([lost("big", 2000), lost("bigger", 3500)]);
    let Besides { left, untold } = besides(&[], &BTreeSet::new(), &stranded);
    assert_eq!((left.len(), untold), (3000, 2500));
    // Whoever was told of it may have let go of it.
    let again = besides(&left, &BTreeSet::new(), &BTreeMap::from([lost("alone", 9)]));
    assert_eq!((again.left == left, again.untold), (true, 9));
    let said = agent::waiting(untold).unwrap();
    assert!(said.contains("2500 objects that stay are told when the hub has written"), "{said}");
    assert_eq!(agent::waiting(0), None);
}

#[test]
fn what_the_cluster_itself_tells_is_on_record_before_it_may_go() {
    let mut world = told("Needless");
    world.works.clear();
    world.things.clear();
    world.agent(true);
    let left = json!({ "resource": "configmaps", "name": "c", "uid": "uid-c", "source": "lost" });
    world.cluster["status"]["left"] = json!([left]);
    assert!(!is_finishing(&world.observe(false)));
    world.hub(None, false, 99).unwrap();
    assert_eq!(on_record(&world), ["c"]);
    assert!(is_finishing(&world.observe(false)));
}

#[test]
fn copies_of_policies_were_on_no_record_of_a_lost_cluster() {
    let believed = |annotations: Value, finalizers: Value, status: Value| {
        let metadata = json!({
            "name": "root.p", "namespace": NAME, "uid": "u", "annotations": annotations,
            "finalizers": finalizers,
        });
        let metadata = serde_json::from_value(metadata).unwrap();
        let status = serde_json::from_value(status).unwrap();
        let policy = Carried::policy(&metadata, Some(&PolicySpec::default()), status);
        let copies = policy.copies.into_iter();
        copies.map(|one| (one.part.unwrap(), one.name, one.uid)).collect::<Vec<_>>()
    };
    let part = |part: Part, name: &str, uid: &str| (part, name.to_string(), uid.to_string());
    let place = part(Part::Place, NAME, "");
    // No agent ever took it up.
    assert_eq!(believed(json!({}), json!([]), json!({})), []);
    // An agent that tells nothing of it, but has it.
    let by_name = [part(Part::Copy, "root.p", ""), place.clone()];
    assert_eq!(believed(json!({}), json!([crate::policy_sync::HOLD]), json!({})), by_name);
    assert_eq!(believed(json!({}), json!([]), json!({ "compliant": "Compliant" })), by_name);
    let copies = json!([
        { "resource": "configurationpolicies", "name": "t", "uid": "u-t", "part": "Template" },
        { "resource": "policies", "name": "root.p", "uid": "u-p", "part": "Copy" },
    ]);
    let encrypted = json!({ "policy.open-cluster-management.io/encryption-iv": "x" });
    assert_eq!(
        believed(encrypted, json!([]), json!({ "copies": copies })),
        [
            part(Part::Template, "t", "u-t"),
            part(Part::Copy, "root.p", "u-p"),
            place,
            part(Part::Key, "policy-encryption-key", ""),
        ]
    );
}

#[test]
fn a_policy_whose_status_could_not_be_read_counted_as_holding_nothing() {
    let told = |status: Option<Value>| crate::leave::carried::told("root.p", status.as_ref());
    for nothing in [None, Some(Value::Null), Some(json!({}))] {
        assert!(told(nothing).unwrap().objects.is_empty());
    }
    let made = json!({ "objects": [{ "resource": "configmaps", "name": "m", "uid": "u" }] });
    assert_eq!(told(Some(made)).unwrap().objects.len(), 1);
    for unread in [json!({ "objects": "many" }), json!({ "objects": [{ "name": 1 }] }), json!(1)] {
        let said = told(Some(unread)).unwrap_err();
        assert!(said.starts_with("the status of policy root.p cannot be read: "), "{said}");
    }
}

#[test]
fn what_a_policy_said_to_keep_since_its_agent_was_heard_was_to_go_with_the_record() {
    let template = |name: &str, prune: Value, action: &str| {
        let wanted = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": name, "namespace": "shop" },
        });
        json!({ "objectDefinition": { "kind": "ConfigurationPolicy", "spec": {
            "remediationAction": action, "pruneObjectBehavior": prune,
            "object-templates": [{ "complianceType": "musthave", "objectDefinition": wanted }],
        } } })
    };
    let kept = |spec: Option<PolicySpec>| -> String {
        let metadata = json!({ "name": "root.p", "namespace": NAME, "uid": "u" });
        let metadata = serde_json::from_value(metadata).unwrap();
        let made = |name| json!({ "resource": "configmaps", "namespace": "shop", "name": name, "uid": "u" });
        let status = json!({ "objects": [made("a"), made("b")] });
        let status = serde_json::from_value(status).unwrap();
        let objects = Carried::policy(&metadata, spec.as_ref(), status).objects.into_iter();
        let kept = objects.filter(|one| one.stays == Some(Stays::Declared));
        kept.map(|one| one.name).collect()
    };
    let prunes = |name: &str| template(name, json!("DeleteIfCreated"), "enforce");
    let keeps = |name: &str| template(name, json!("None"), "enforce");
    let silent = |name: &str| template(name, Value::Null, "enforce");
    let informs = |name: &str| template(name, json!("DeleteAll"), "inform");
    let never = |name: &str| template(name, json!("DeleteAll"), "InformOnly");
    for (action, templates, expected) in [
        (None, json!([]), ""),
        (None, json!([prunes("a"), prunes("b")]), ""),
        (None, json!([keeps("a"), prunes("b")]), "a"),
        (None, json!([silent("a"), prunes("b")]), "a"),
        (None, json!([informs("a"), prunes("b")]), "a"),
        (Some("enforce"), json!([informs("a"), prunes("b")]), ""),
        (Some("enforce"), json!([never("a"), prunes("b")]), "a"),
        (Some("inform"), json!([prunes("a"), prunes("b")]), "ab"),
        // Nobody knows which of them made what none names.
        (None, json!([prunes("{{ some }}"), prunes("b")]), ""),
        (None, json!([keeps("{{ some }}"), prunes("b")]), "a"),
        (None, json!([prunes("{{ some }}"), keeps("b")]), "ab"),
    ] {
        let spec = json!({
            "disabled": false, "remediationAction": action, "policy-templates": templates,
        });
        let spec = serde_json::from_value(spec).unwrap();
        assert_eq!(kept(Some(spec)), expected, "{action:?} {templates}");
    }
    assert_eq!(kept(None), "ab", "it cannot be read");
}

#[test]
fn a_policy_of_which_the_agent_never_said_a_word_is_named_with_what_the_agent_says() {
    let mut world = told("Required");
    let conditions = world.cluster["status"]["conditions"].as_array_mut().unwrap();
    let released = conditions.iter_mut().find(|one| one["type"] == "ResourcesReleased").unwrap();
    released["message"] = json!("Not everything is removed: 1 policy; policy p cannot say.");
    let mut seen = world.observe(false);
    let metadata = serde_json::from_value(json!({
        "name": "p", "namespace": NAME, "uid": "u",
        "finalizers": [crate::policy_sync::HOLD], "deletionTimestamp": "1970-01-01T00:20:00Z",
    }));
    let mut policy = Carried::bare(Kind::Policy, &metadata.unwrap());
    seen.carried = Ok(std::vec![policy.clone()]);
    let said = said_later(seen.clone());
    let expected = "policy p: its agent has not said what stays of it. It says: Not everything is \
                    removed: 1 policy; policy p cannot say.";
    assert!(said.contains(expected), "{said}");
    // One that counts what has yet to go is at work.
    policy.remaining = Some(Vec::new());
    seen.carried = Ok(std::vec![policy]);
    assert!(!said_later(seen).contains("has not said what stays"));
}

#[test]
fn that_there_was_more_than_could_be_told_is_on_record_before_it_is_let_go_of() {
    let mut world = told("Required");
    for _ in 0..4 {
        world.hub(None, false, 99).unwrap();
    }
    world.agent(true);
    // The last it says of one of them: nothing is listed, and something stays.
    let work = world.works.get_mut("other").unwrap();
    work["metadata"]["deletionTimestamp"] = json!("1970-01-01T00:20:00Z");
    work["metadata"]["finalizers"] = json!([cleat_api::manifestwork::LEAVE_FINALIZER]);
    work["status"]["removal"] = json!({ "untold": 7 });
    let untold = |world: &World| -> Vec<Value> {
        world.records.values().map(|one| one["spec"]["untold"].clone()).collect()
    };
    assert_eq!(untold(&world), [] as [Value; 0]);
    world.hub(None, false, 99).unwrap();
    assert_eq!(untold(&world), [json!([{ "source": "other", "count": 7 }])]);
    assert!(world.works.contains_key("other"), "it was let go of before that");
    world.hub(None, false, 99).unwrap();
    assert!(!world.works.contains_key("other"));
    assert_eq!(untold(&world).len(), 1, "once is enough");
}

#[test]
fn a_record_of_a_lost_cluster_says_when_its_agent_was_heard() {
    let mut world = told("Required");
    world.cluster["metadata"]["annotations"]["cleat.dev/cluster-destroyed"] = json!(NAME);
    for work in world.works.values_mut() {
        work["status"]["untold"] = json!(3);
    }
    world.hub(None, false, 99).unwrap();
    let record = world.records.values().next().unwrap().clone();
    assert_eq!(record["spec"]["agentLastHeard"], "1970-01-01T00:16:40Z");
    assert_eq!(record["spec"]["untold"].as_array().unwrap().len(), 3);
    for _ in 0..9 {
        world.hub(None, false, 99).unwrap();
    }
    assert!(world.gone);
    assert_eq!(
        world.records.values().next().unwrap()["spec"]["objects"],
        record["spec"]["objects"]
    );
}

#[test]
fn a_hub_with_an_older_definition_wrote_for_ever_when_an_agent_was_last_heard() {
    let mut world = World::new("Required");
    world.alive = false;
    world.cluster["metadata"]["annotations"]["cleat.dev/cluster-destroyed"] = json!(NAME);
    for _ in 0..20 {
        world.hub(None, false, 99).unwrap();
        for record in world.records.values_mut() {
            record["spec"].as_object_mut().unwrap().remove("agentLastHeard");
        }
    }
    assert!(world.gone);
}

#[test]
fn a_receipt_was_given_before_it_was_on_record_how_much_more_there_was() {
    let mut world = told("Required");
    let work = world.works.get_mut("other").unwrap();
    work["metadata"]["deletionTimestamp"] = json!("1970-01-01T00:16:40Z");
    let left = json!({ "resource": "configmaps", "name": "c", "uid": "uid-c" });
    work["status"]["removal"] = json!({ "left": [left], "untold": 7 });
    let is_receipted = |world: &World| {
        let plan = plan(&world.observe(false));
        plan.iter().flatten().any(|action| match &action.write {
            Write::Merge(patch) => patch["metadata"]["annotations"][ON_RECORD].is_string(),
            _ => false,
        })
    };
    world.hub(None, false, 99).unwrap();
    assert_eq!(on_record(&world), ["c"]);
    assert!(is_receipted(&world));
    for record in world.records.values_mut() {
        record["spec"].as_object_mut().unwrap().remove("untold");
    }
    assert!(!is_receipted(&world));
}

#[test]
fn a_work_and_a_policy_of_one_name_counted_as_each_other_on_the_record() {
    let object = |unmarked: bool| LeftObject {
        resource: "configmaps".to_string(),
        name: "m".to_string(),
        uid: "uid-m".to_string(),
        source: "same".to_string(),
        unmarked,
        ..LeftObject::default()
    };
    let (of_work, of_policy) = (object(false), object(true));
    let untold = |policy: bool, count: i64| Untold { source: "same".to_string(), policy, count };
    let mut one = LeftoverRecord::default();
    one.spec.objects = [of_work.clone()].into();
    one.spec.untold = [untold(false, 7)].into();
    let records = [one];
    // What both tell of.
    let both = [of_work.clone(), of_policy.clone()];
    assert_eq!(record::missing(&records, both.iter()), [&of_policy]);
    assert!(!record::are_told(&both[..1], &both[1..]));
    assert_ne!(record::receipt_of_all(&both[..1]), record::receipt_of_all(&both[1..]));
    // How much more there is of each.
    assert!(record::says(&records, &untold(false, 7)));
    assert!(!record::says(&records, &untold(true, 1)));
    let leave = LeftoverRecordSpec { untold: [untold(true, 1)].into(), ..Default::default() };
    let actions = record::append(&leave, &records.iter().collect::<Vec<_>>(), &[]);
    let [Write::Merge(patch)] = &*actions.into_iter().map(|one| one.write).collect::<Vec<_>>()
    else {
        panic!()
    };
    let written = json!([
        { "source": "same", "count": 7 }, { "source": "same", "policy": true, "count": 1 },
    ]);
    assert_eq!(patch["spec"]["untold"], written);
    // What one declares to stay says nothing of the other's.
    let kept = LeftObject { stays: Some(Stays::Declared), ..of_policy };
    assert_eq!(record::understated(&records, [&kept].into_iter()), [&kept; 0]);
}

#[test]
fn a_wait_for_the_hub_had_begun_when_nobody_could_say_what_stays() {
    let mute = record::waits("an account of what stays of it", "dark".to_string(), None, at(1000));
    let before = Removal { blocked: [mute].into(), ..Removal::default() };
    let since = |block: BlockedObject| block.since.unwrap().0;
    assert_eq!(since(record::awaited(Some(&before), at(2000))), at(2000));
    let before =
        Removal { blocked: [record::awaited(None, at(2000))].into(), ..Removal::default() };
    assert_eq!(since(record::awaited(Some(&before), at(3000))), at(2000));
}
