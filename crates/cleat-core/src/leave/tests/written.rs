//! What is written down before it is forgotten, and what has to go first.

use std::collections::BTreeMap;
use std::string::{String, ToString as _};
use std::vec::Vec;

use cleat_api::leftoverrecord::{LeftObject, Part, Stays};
use cleat_api::manifestwork::{ManifestWork, ON_RECORD};
use cleat_api::policy::PolicySpec;
use serde_json::{Value, json};

use super::world::{NAME, World};
use crate::leave::agent::{Besides, Held, Source, besides, is_dropped};
use crate::leave::carried::{Carried, Kind};
use crate::leave::hub::{Observed, is_finishing, plan};
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
    seen.now = super::world::at(5000);
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
    let none = besides(&told, &BTreeMap::new());
    assert_eq!((names(&none.left), none.untold), (names(&told[..4]), 0));
    let now = Vec::from([object("e", "same", true)]);
    let stranded = BTreeMap::from([(Source::Policy("same".to_string()), now)]);
    assert_eq!(names(&besides(&told, &stranded).left), ["a", "b", "d", "e"]);
    // What there is no room for is not told by halves.
    let many = |work: &str, count: usize| {
        let objects = (0..count).map(|index| object(&index.to_string(), work, false));
        (Source::Work(work.to_string()), objects.collect::<Vec<_>>())
    };
    let stranded = BTreeMap::from([many("big", 2000), many("bigger", 2500), many("small", 2)]);
    let Besides { left, untold } = besides(&[], &stranded);
    assert_eq!((left.len(), untold), (2002, 1));
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
