//! What becomes of policies, told one by one.

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use cleat_api::managedcluster::RemoveStrategy;
use cleat_api::manifestwork::{LEAVE_FINALIZER, ON_RECORD};
use serde_json::{Value, json};

use super::world::{CLUSTER, World, template};
use crate::leave::record::receipt;
use crate::policy_sync::{HOLD, plan};
use crate::write::Write;

fn spec(templates: Vec<Value>) -> Value {
    json!({ "disabled": false, "remediationAction": "enforce", "policy-templates": templates })
}

pub(super) fn sent(templates: Vec<Value>) -> World {
    let mut world = World::default();
    world.send(spec(templates));
    world.settle();
    world
}

#[test]
fn a_policy_becomes_a_copy_and_its_templates_objects() {
    let mut world = sent(vec![template("a", "None")]);
    let local = world.local.clone().unwrap();
    assert_eq!(local["spec"], world.hub.as_ref().unwrap()["spec"]);
    let made = world.templates["a"].clone();
    assert_eq!(made["spec"]["remediationAction"], "enforce");
    assert_eq!(made["metadata"]["ownerReferences"][0]["uid"], local["metadata"]["uid"]);
    let labels = &made["metadata"]["labels"];
    for label in
        ["policy.open-cluster-management.io/cluster-name", "cluster-name", "cluster-namespace"]
    {
        assert_eq!(labels[label], CLUSTER, "{label}");
    }
    assert_eq!(labels["policy.open-cluster-management.io/policy"], super::world::NAME);
    assert!(world.hub.as_ref().unwrap()["metadata"].get("finalizers").is_none());
    world.say("a", "Compliant; notification - all good");
    world.settle();
    for side in [&world.local, &world.hub] {
        let status = World::status(side);
        assert_eq!(status.compliant.as_deref(), Some("Compliant"));
        assert_eq!(status.details[0].history[0].message, "Compliant; notification - all good");
    }
}

#[test]
fn what_the_hub_encrypted_could_not_be_read_for_want_of_its_vector() {
    let mut world = World::default();
    world.send(spec(vec![template("a", "None")]));
    let vector = "policy.open-cluster-management.io/encryption-iv";
    world.hub.as_mut().unwrap()["metadata"]["annotations"] = json!({ vector: "SVY=" });
    world.settle();
    assert_eq!(world.templates["a"]["metadata"]["annotations"][vector], "SVY=");
}

#[test]
fn a_change_on_the_hub_reaches_the_template_and_local_meddling_is_undone() {
    let mut world = sent(vec![template("a", "None"), template("b", "None")]);
    world.send(json!({
        "disabled": false, "remediationAction": "inform", "policy-templates": [template("a", "None")],
    }));
    world.settle();
    assert_eq!(world.templates["a"]["spec"]["remediationAction"], "inform");
    assert!(!world.templates.contains_key("b"), "it left the policy");
    world.local.as_mut().unwrap()["spec"]["remediationAction"] = json!("enforce");
    world.templates.get_mut("a").unwrap()["spec"]["remediationAction"] = json!("enforce");
    world.settle();
    assert_eq!(world.templates["a"]["spec"]["remediationAction"], "inform");
}

#[test]
fn a_hub_that_cannot_be_seen_changes_nothing() {
    let mut world = sent(vec![template("a", "DeleteAll")]);
    world.hub = None;
    world.blind = true;
    assert_eq!(plan(&world.observe()), Vec::<Vec<_>>::new());
    world.blind = false;
    waits(&mut world);
    assert!(world.local.is_none());
}

/// Passes, and passes again when what vanished is not waited for any more.
fn waits(world: &mut World) {
    world.settle();
    world.advance(crate::policy_sync::adrift::PATIENCE);
    world.settle();
}

#[test]
fn a_policy_that_prunes_is_held_on_the_hub_until_its_templates_are_gone() {
    let mut world = sent(vec![template("a", "DeleteIfCreated")]);
    assert_eq!(world.hub.as_ref().unwrap()["metadata"]["finalizers"], json!([HOLD]));
    world.sticky = true;
    world.recall();
    world.settle();
    assert!(world.local.is_some() && world.hub.is_some(), "went while a template was there");
    // What hangs is told to the hub.
    world.say("a", "Terminating; violation - Failed to delete objects: x");
    world.settle();
    let told = World::status(&world.hub);
    assert_eq!(told.compliant.as_deref(), Some("NonCompliant"));
    assert!(told.details[0].history[0].message.starts_with("Terminating; "));
    world.templates.clear();
    world.settle();
    assert!(world.local.is_none() && world.hub.is_none());
}

/// A hub that was restored from an older copy of itself, or a human who took the hold off.
#[test]
fn what_vanished_from_the_hub_though_it_was_held_is_waited_for() {
    let mut world = sent(vec![template("a", "DeleteIfCreated")]);
    let (hub, local) = (world.hub.take(), world.local.clone());
    world.settle();
    assert_eq!(world.local, local, "removed, and pruned, at once");
    let verdict = crate::policy_sync::report(&world.observe());
    assert!(verdict.wake.is_some_and(|wake| wake > world.now()));
    let warnings = |world: &World| {
        let of = world.events.iter().filter(|event| event["reason"] == "PolicySpecSync");
        of.map(|event| event["message"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let expected = "Policy root.p is gone from the hub, which did not let go of it; it is removed in 5 minutes unless it is back";
    assert_eq!(warnings(&world), [expected]);
    // It is back, as it was.
    world.hub = hub;
    waits(&mut world);
    assert_eq!(world.local, local);
    // It is not.
    world.hub = None;
    waits(&mut world);
    assert!(world.local.is_none());
    assert_eq!(warnings(&world), [expected, expected]);
}

#[test]
fn what_takes_nothing_with_it_goes_at_once() {
    let mut world = sent(vec![template("a", "None")]);
    world.hub = None;
    world.settle();
    assert!(world.local.is_none());
}

#[test]
fn policies_that_went_with_their_definition_are_let_go_of_and_prune_nothing() {
    for (prune, held) in [("DeleteAll", true), ("None", false)] {
        let mut world = sent(vec![template("a", prune)]);
        let (template, local) = (world.templates["a"].clone(), world.local.clone().unwrap());
        world.lose();
        assert_eq!(world.hub.is_some(), held);
        world.settle();
        assert!(world.hub.is_none(), "the definition cannot go");
        // It is back, without any policy.
        world.undefined = false;
        waits(&mut world);
        assert_eq!(world.templates["a"], template, "{prune}");
        let kept = world.local.clone().unwrap();
        assert_eq!(kept["metadata"]["uid"], local["metadata"]["uid"]);
        assert_eq!(kept["metadata"]["annotations"][crate::policy_sync::adrift::ADRIFT], "true");
        // The hub sends it again, and lets go of it.
        world.send(spec(vec![super::world::template("a", prune)]));
        world.settle();
        let back = world.local.clone().unwrap();
        assert_eq!(back["metadata"]["annotations"], json!({}));
        assert_eq!(world.templates["a"], template, "{prune}");
        world.recall();
        world.settle();
        assert!(world.hub.is_none() && world.local.is_none(), "{prune}");
    }
}

#[test]
fn a_hub_that_does_not_say_whether_it_has_policies_takes_nothing_away() {
    let mut world = sent(vec![template("a", "DeleteAll")]);
    world.recall();
    let defined = crate::policy_sync::observed::Defined::Unknown("forbidden".into());
    let seen = crate::policy_sync::Observed { defined, ..world.observe() };
    assert_eq!(plan(&seen), crate::write::Plan::new());
    assert!(crate::policy_sync::report(&seen).wake.is_some());
}

/// Between the two, the policy could go, and the copy would prune as it was told before.
#[test]
fn the_hub_is_held_until_the_templates_were_told_not_to_prune() {
    let mut world = sent(vec![template("a", "DeleteAll")]);
    world.send(spec(vec![template("a", "None")]));
    for _ in 0..20 {
        for action in plan(&world.observe()).iter().flatten() {
            world.perform(action);
        }
        let held = world.hub.as_ref().unwrap()["metadata"]["finalizers"] == json!([HOLD]);
        let prunes = world.templates["a"]["spec"]["pruneObjectBehavior"] == "DeleteAll";
        assert!(held || !prunes, "let go of while a template prunes");
    }
    assert_eq!(world.hub.as_ref().unwrap()["metadata"]["finalizers"], json!([]));
}

#[test]
fn what_was_done_for_a_policy_is_said() {
    let mut world = World::default();
    world.send(spec(vec![template("a", "None")]));
    let mut said = Vec::new();
    for turn in 0..12 {
        let seen = world.observe();
        let steps = plan(&seen);
        let outcomes: Vec<Vec<_>> = steps
            .iter()
            .map(|step| step.iter().map(|action| world.perform(action)).collect())
            .collect();
        for action in crate::policy_sync::announce(&seen, &steps, &outcomes).iter().flatten() {
            let Write::Create(event) = &action.write else { panic!("{action:?}") };
            assert_eq!(event["involvedObject"]["kind"], "Policy");
            assert!(event["involvedObject"]["uid"].is_string());
            said.push([event["reason"].clone(), event["message"].clone()]);
        }
        match turn {
            4 => world.send(spec(vec![template("a", "DeleteAll")])),
            8 => world.recall(),
            _ => {}
        }
        world.advance(jiff::SignedDuration::from_secs(1));
    }
    let expected = [
        ["PolicySpecSync", "Policy root.p was synchronized to cluster namespace c1"],
        ["PolicyTemplateSync", "Policy template a created successfully"],
        ["PolicySpecSync", "Policy root.p was updated in cluster namespace c1"],
        ["PolicyTemplateSync", "Policy template a was updated successfully"],
        ["PolicySpecSync", "Policy root.p was removed from cluster namespace c1"],
    ];
    assert_eq!(said, expected.map(|one| one.map(|text| json!(text))));
}

/// The template has made a map of its own name.
pub(super) fn has_made(world: &mut World, template: &str) {
    world.templates.get_mut(template).unwrap()["status"] = json!({ "relatedObjects": [
        {
            "object": {
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": { "name": template, "namespace": "shop" },
            },
            "properties": { "createdByPolicy": true, "uid": format!("uid-{template}") },
        },
        {
            "object": { "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "found" } },
            "properties": { "createdByPolicy": false, "uid": "uid-found" },
        },
    ] });
}

/// As the hub holds policies of a cluster that leaves, before it deletes them.
pub(super) fn leaves(world: &mut World, strategy: RemoveStrategy) {
    world.leaving = Some(strategy);
    world.hub.as_mut().unwrap()["metadata"]["finalizers"] = json!([LEAVE_FINALIZER, HOLD]);
    world.settle();
    world.recall();
}

pub(super) fn left(world: &World) -> Vec<(String, String)> {
    let left = World::status(&world.hub).removal.unwrap_or_default().left;
    left.into_iter().map(|one| (one.uid, one.why)).collect()
}

#[test]
fn the_hub_knows_what_a_policy_made_before_the_cluster_is_lost() {
    let mut world = sent(vec![template("a", "DeleteIfCreated"), template("b", "None")]);
    has_made(&mut world, "a");
    has_made(&mut world, "b");
    world.settle();
    let objects = World::status(&world.hub).objects;
    let known: Vec<_> = objects.iter().map(|one| (&*one.uid, &*one.why)).collect();
    assert_eq!(known, [("uid-a", ""), ("uid-b", "kept by pruneObjectBehavior None")]);
    assert_eq!(World::status(&world.local).objects, []);
}

#[test]
fn a_template_is_deleted_from_a_cluster_that_keeps_everything_only_when_it_prunes_no_more() {
    let mut world = sent(vec![template("a", "DeleteAll"), template("b", "None")]);
    has_made(&mut world, "a");
    has_made(&mut world, "b");
    world.sticky = true;
    leaves(&mut world, RemoveStrategy::Needless);
    for _ in 0..20 {
        for action in plan(&world.observe()).iter().flatten() {
            if matches!(action.write, Write::Delete { .. }) && action.target.id.name == "a" {
                assert_eq!(world.templates["a"]["spec"]["pruneObjectBehavior"], "None");
                assert_eq!(left(&world).len(), 3, "deleted before it was told");
            }
            world.perform(action);
        }
    }
    assert!(world.templates["a"]["metadata"].get("deletionTimestamp").is_some());
    let expected = [
        ("uid-found".into(), "kept by removeStrategy Needless".into()),
        ("uid-a".into(), "kept by removeStrategy Needless".into()),
        ("uid-b".into(), "kept by pruneObjectBehavior None".into()),
    ];
    assert_eq!(left(&world), expected);
    world.templates.clear();
    world.settle();
    assert!(world.local.is_none(), "its copy stays");
    assert_eq!(left(&world), expected, "what stays is known to the end");
    let held = &world.hub.as_ref().unwrap()["metadata"]["finalizers"];
    assert_eq!(*held, json!([LEAVE_FINALIZER]), "the hub lets go when it has written it down");
}

#[test]
fn what_stands_in_the_way_of_a_leave_is_told_and_what_is_pruned_is_not_left() {
    let mut world = sent(vec![template("a", "DeleteIfCreated"), template("b", "None")]);
    has_made(&mut world, "a");
    has_made(&mut world, "b");
    world.sticky = true;
    leaves(&mut world, RemoveStrategy::Required);
    world.settle();
    assert_eq!(world.templates["a"]["spec"]["pruneObjectBehavior"], "DeleteIfCreated");
    let says = json!([{ "conditions": [{ "message": "Failed to delete objects: x" }] }]);
    world.templates.get_mut("a").unwrap()["status"]["compliancyDetails"] = says;
    world.settle();
    assert_eq!(left(&world), [("uid-b".into(), "kept by pruneObjectBehavior None".into())]);
    let removal = World::status(&world.hub).removal.unwrap();
    assert_eq!(removal.remaining[0].count, 2);
    let blocked: Vec<_> = removal.blocked.iter().map(|one| (&*one.object, &*one.why)).collect();
    let expected = [
        ("configurationpolicies c1/a", "Failed to delete objects: x"),
        ("configurationpolicies c1/b", "terminating"),
    ];
    assert_eq!(blocked, expected);
    assert!(removal.blocked.iter().all(|one| one.since.is_some()));
    // From now on nothing more is to go.
    world.leaving = Some(RemoveStrategy::Needless);
    world.settle();
    let kept: Vec<_> = left(&world).into_iter().map(|(uid, _)| uid).collect();
    assert_eq!(kept, ["uid-a", "uid-b"]);
}

#[test]
fn a_hub_that_does_not_say_whether_the_cluster_leaves_takes_nothing_away() {
    let mut world = sent(vec![template("a", "DeleteAll")]);
    has_made(&mut world, "a");
    world.recall();
    let blind = Err(String::from("it does not know this cluster"));
    let seen = crate::policy_sync::Observed { leaving: blind, ..world.observe() };
    assert_eq!(plan(&seen), crate::write::Plan::new());
    assert!(crate::policy_sync::report(&seen).wake.is_some());
    let seen = crate::policy_sync::Observed { marked: Err(String::new()), ..world.observe() };
    assert_eq!(plan(&seen), crate::write::Plan::new());
}

fn waiting(ignore: bool) -> Value {
    let mut one = template("a", "DeleteAll");
    one["ignorePending"] = json!(ignore);
    one["extraDependencies"] = json!([{
        "apiVersion": "policy.open-cluster-management.io/v1", "kind": "ConfigurationPolicy",
        "name": "base", "compliance": "Compliant",
    }]);
    one
}

#[test]
fn a_template_waits_for_what_it_depends_on() {
    for (ignore, state, suffix) in
        [(false, "Pending", ""), (true, "Compliant", " but ignorePending is true")]
    {
        let mut world = sent(vec![waiting(ignore)]);
        assert!(world.templates.is_empty());
        let status = World::status(&world.hub);
        assert_eq!(status.compliant.as_deref(), Some(state));
        let said = &status.details[0].history[0].message;
        let expected = alloc::format!(
            "{state}; Dependencies were not satisfied: 1 is still pending (ConfigurationPolicy base){suffix}"
        );
        assert_eq!(*said, expected);
        world.states.insert("base".into(), Some("Compliant".into()));
        world.settle();
        assert!(world.templates.contains_key("a"));
    }
}

#[test]
fn a_dependency_that_goes_pending_takes_nothing_away() {
    let mut world = World::default();
    world.states.insert("base".into(), Some("Compliant".into()));
    world.send(spec(vec![waiting(false)]));
    world.settle();
    let uid = world.templates["a"]["metadata"]["uid"].clone();
    world.states.insert("base".into(), Some("NonCompliant".into()));
    world.settle();
    let kept = &world.templates["a"];
    assert_eq!(kept["metadata"]["uid"], uid, "it was deleted, and pruned");
    assert_eq!(
        kept["spec"]["evaluationInterval"],
        json!({ "compliant": "never", "noncompliant": "never" })
    );
    assert_eq!(kept["spec"]["pruneObjectBehavior"], "DeleteAll");
    let mark = "policy.open-cluster-management.io/stopped";
    assert_eq!(kept["metadata"]["annotations"][mark], "true");
    assert_eq!(World::status(&world.hub).compliant.as_deref(), Some("Pending"));
    world.states.insert("base".into(), Some("Compliant".into()));
    world.settle();
    assert!(world.templates["a"]["spec"].get("evaluationInterval").is_none());
    assert!(world.templates["a"]["metadata"]["annotations"].get(mark).is_none());
    assert_eq!(world.templates["a"]["metadata"]["uid"], uid);
}

#[test]
fn a_template_the_hub_could_not_resolve_is_stopped_and_not_taken_away() {
    let mut world = sent(vec![template("a", "DeleteAll")]);
    let uid = world.templates["a"]["metadata"]["uid"].clone();
    let mut broken = template("a", "DeleteAll");
    broken["objectDefinition"]["metadata"]["annotations"] =
        json!({ "policy.open-cluster-management.io/hub-templates-error": "no such map" });
    world.send(spec(vec![broken]));
    world.settle();
    assert_eq!(world.templates["a"]["metadata"]["uid"], uid);
    let status = World::status(&world.hub);
    assert_eq!(status.details[0].history[0].message, "NonCompliant; template-error; no such map");
}

/// The name itself is what the hub could not resolve: the template that is there is not in the policy
/// any more, as far as one can see.
#[test]
fn a_template_whose_name_the_hub_could_not_resolve_takes_no_other_away() {
    let mut world = sent(vec![template("web-c1", "DeleteAll")]);
    let uid = world.templates["web-c1"]["metadata"]["uid"].clone();
    let mut broken = template("web-{{hub .ManagedClusterName hub}}", "DeleteAll");
    broken["objectDefinition"]["metadata"]["annotations"] =
        json!({ "policy.open-cluster-management.io/hub-templates-error": "no such map" });
    world.send(spec(vec![broken]));
    world.settle();
    assert_eq!(world.templates["web-c1"]["metadata"]["uid"], uid, "deleted, and pruned");
    world.send(spec(vec![template("web-c2", "DeleteAll")]));
    world.settle();
    assert_eq!(world.templates.keys().collect::<Vec<_>>(), ["web-c2"]);
}

#[test]
fn a_name_given_twice_or_not_at_all_takes_no_template_away() {
    let both = vec![template("a", "DeleteAll"), template("b", "DeleteAll")];
    let mut nameless = template("b", "DeleteAll");
    nameless["objectDefinition"]["metadata"] = json!({});
    for second in [template("a", "DeleteAll"), nameless] {
        let mut world = sent(both.clone());
        world.send(spec(vec![template("a", "DeleteAll"), second]));
        world.settle();
        assert!(world.templates.contains_key("b"), "deleted by a slip of the pen, and pruned");
    }
}

#[test]
fn a_template_that_left_and_hangs_is_shown_on_the_hub_which_is_held_meanwhile() {
    let mut world = sent(vec![template("a", "DeleteAll"), template("b", "None")]);
    world.say("a", "Compliant; notification - x");
    world.say("b", "Compliant; notification - y");
    world.settle();
    world.sticky = true;
    world.send(spec(vec![template("b", "None")]));
    world.settle();
    world.templates.get_mut("a").unwrap()["status"] = json!({ "history": [{
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "message": "Terminating; violation - Failed to delete objects: x",
    }] });
    world.settle();
    let told = World::status(&world.hub);
    assert_eq!(told.compliant.as_deref(), Some("NonCompliant"));
    assert_eq!(told.details[1].template_meta.name, "a");
    assert!(told.details[1].history[0].message.starts_with("Terminating; "));
    assert_eq!(world.hub.as_ref().unwrap()["metadata"]["finalizers"], json!([HOLD]));
    world.templates.remove("a");
    world.settle();
    assert_eq!(world.hub.as_ref().unwrap()["metadata"]["finalizers"], json!([]));
    assert_eq!(World::status(&world.hub).compliant.as_deref(), Some("Compliant"));
}

#[test]
fn what_hangs_is_told_to_the_hub_though_somebody_took_the_copy_away() {
    let mut world = sent(vec![template("a", "DeleteAll")]);
    world.sticky = true;
    world.recall();
    world.settle();
    world.local = None;
    world.events.clear();
    world.templates.get_mut("a").unwrap()["status"] = json!({ "history": [{
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "message": "Terminating; violation - Failed to delete objects: x",
    }] });
    world.settle();
    let told = World::status(&world.hub);
    assert_eq!(told.compliant.as_deref(), Some("NonCompliant"));
    assert!(told.details[0].history[0].message.starts_with("Terminating; "));
}

#[test]
fn templates_that_cannot_be_seen_are_looked_for_again() {
    let mut world = sent(vec![template("a", "None"), template("b", "DeleteAll")]);
    world.unmarked = true;
    world.send(spec(vec![template("a", "None")]));
    world.settle();
    let verdict = crate::policy_sync::report(&world.observe());
    assert!(verdict.wake.is_some(), "it goes on enforcing until something else happens");
    assert_eq!(world.hub.as_ref().unwrap()["metadata"]["finalizers"], json!([HOLD]));
    world.unmarked = false;
    world.settle();
    assert!(!world.templates.contains_key("b"));
}

#[test]
fn names_that_are_taken_or_given_twice_are_complained_about() {
    let world = sent(vec![template("a", "None"), template("a", "None")]);
    let said: Vec<String> = World::status(&world.hub)
        .details
        .iter()
        .map(|detail| detail.history[0].message.clone())
        .collect();
    let expected =
        "NonCompliant; template-error; All policy-template names must be unique within a policy";
    assert_eq!(said, [expected, expected]);
    let mut world = World::default();
    world.templates.insert("a".into(), json!({
        "kind": "ConfigurationPolicy", "metadata": { "name": "a", "uid": "x", "resourceVersion": "1" },
    }));
    world.send(spec(vec![template("a", "None")]));
    world.local = None;
    let taken = world.templates["a"].clone();
    for _ in 0..4 {
        world.advance(jiff::SignedDuration::from_secs(1));
        let seen = crate::policy_sync::Observed { marked: Ok(Vec::new()), ..world.observe() };
        let mut steps = plan(&seen);
        if steps.is_empty() {
            steps = crate::policy_sync::report(&seen).publish;
        }
        for action in steps.iter().flatten() {
            world.perform(action);
        }
    }
    assert_eq!(world.templates["a"], taken);
    let said = &World::status(&world.hub).details[0].history[0].message;
    assert!(said.ends_with("name: a already exists outside of a Policy"), "{said}");
}

#[test]
fn a_template_that_is_of_no_kind_is_complained_about_by_its_place() {
    let mut kindless = template("b", "None");
    kindless["objectDefinition"].as_object_mut().unwrap().remove("kind");
    let mut world = sent(vec![template("a", "None")]);
    world.send(spec(vec![template("a", "None"), kindless]));
    world.settle();
    let details = World::status(&world.hub).details;
    assert_eq!(details[1].template_meta.name, "template-1");
    let said = &details[1].history[0].message;
    let expected = "NonCompliant; template-error; Failed to decode policy template with err: \
                    Object 'Kind' is missing in '{";
    assert!(said.starts_with(expected), "{said}");
    assert!(world.templates.contains_key("a"), "what is not understood takes nothing away");
}

#[test]
fn an_object_that_may_not_be_read_is_told_of_and_goes_on() {
    let mut world = sent(vec![template("a", "None")]);
    let before = world.templates["a"].clone();
    for _ in 0..4 {
        world.advance(jiff::SignedDuration::from_secs(1));
        let mut seen = world.observe();
        seen.live.values_mut().for_each(|live| {
            *live = crate::policy_sync::observed::Live::Refused("no rights".into());
        });
        assert_eq!(plan(&seen), crate::write::Plan::new());
        let verdict = crate::policy_sync::report(&seen);
        assert!(verdict.wake.is_some());
        for action in verdict.publish.iter().flatten() {
            world.perform(action);
        }
    }
    let history = &World::status(&world.hub).details[0].history;
    assert_eq!(
        history[0].message,
        "NonCompliant; template-error; Failed to get the object in the policy template: no rights"
    );
    assert!(history.iter().skip(1).all(|one| !one.message.contains("no rights")), "told once");
    assert_eq!(world.templates["a"], before);
}

#[test]
fn a_template_that_was_in_trouble_is_asked_to_speak_again() {
    let mut world = sent(vec![template("a", "None")]);
    world.templates.get_mut("a").unwrap()["status"] = json!({ "compliant": "Compliant" });
    world.say("a", "NonCompliant; template-error; Failed to create policy template: x");
    world.settle();
    assert!(world.templates["a"]["status"].get("compliant").is_none());
}

#[test]
fn history_outlives_events() {
    let mut world = sent(vec![template("a", "None")]);
    world.say("a", "NonCompliant; violation - x");
    world.settle();
    world.say("a", "Compliant; notification - y");
    world.settle();
    world.events.clear();
    world.settle();
    let history = &World::status(&world.hub).details[0].history;
    let said: Vec<&str> = history.iter().map(|one| one.message.as_str()).collect();
    assert_eq!(said, ["Compliant; notification - y", "NonCompliant; violation - x"]);
}

#[test]
fn a_policy_that_was_deleted_before_the_leave_waited_for_its_record_without_a_word() {
    let mut world = sent(vec![template("a", "DeleteIfCreated"), template("b", "None")]);
    has_made(&mut world, "a");
    has_made(&mut world, "b");
    world.settle();
    world.leaving = Some(RemoveStrategy::Required);
    world.recall();
    world.settle();
    assert!(world.templates.is_empty() && world.local.is_none());
    let removal = World::status(&world.hub).removal.unwrap();
    assert_eq!(left(&world), [("uid-b".into(), "kept by pruneObjectBehavior None".into())]);
    let blocked: Vec<_> = removal.blocked.iter().map(|one| &*one.object).collect();
    assert_eq!(blocked, ["what stays of it"]);
    assert!(removal.blocked[0].since.is_some());
    world.advance(jiff::SignedDuration::from_secs(60));
    world.settle();
    assert_eq!(
        World::status(&world.hub).removal,
        Some(removal.clone()),
        "it is told over and over"
    );
    let hub = world.hub.as_mut().unwrap();
    hub["metadata"]["annotations"][ON_RECORD] = json!(receipt(&removal.left));
    world.settle();
    assert!(world.hub.is_none(), "it is on record");
}
