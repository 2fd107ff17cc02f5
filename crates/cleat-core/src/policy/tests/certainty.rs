//! What must be certain before anything is deleted, told by what once went wrong.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use cleat_api::configurationpolicy::FINALIZER;
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::site::{
    answer, definition, entry, now, observed, pod, pod_id, policy, spec, status, told, verbs,
};
use crate::policy::observed::*;
use crate::policy::{plan, report};
use crate::write::{Plan, Write};

/// A policy that prunes all, has one template, and lists these.
fn pruning(mut spec: Value, listed: Vec<Value>, objects: &[Value]) -> Observed {
    spec["pruneObjectBehavior"] = json!("DeleteAll");
    let mut seen = observed(spec, objects);
    let policy = policy(&mut seen);
    policy.finalizers = vec![FINALIZER.into()];
    policy.status = serde_json::from_value(json!({ "relatedObjects": listed })).unwrap();
    answer(&mut seen, objects);
    seen
}

fn listed(seen: &Observed) -> Vec<String> {
    let all = status(&report(seen).publish).related_objects;
    all.into_iter().map(|entry| entry.object.metadata.name).collect()
}

fn unlisted(name: &str) -> Value {
    let mut entry = entry(name, false, "");
    entry.as_object_mut().unwrap().remove("properties");
    entry
}

#[test]
fn a_list_that_failed_prunes_nothing_that_an_unnamed_template_matched() {
    let live = [pod("a", "default", "nginx:1.7.9")];
    let template = spec("enforce", "musthave", definition("", "default"));
    let mut seen = pruning(template, vec![entry("a", false, "uid-a")], &live);
    assert_eq!(plan(&seen), Plan::new());
    for list in seen.cluster.lists.values_mut() {
        *list = Err("the watch broke".into());
    }
    assert_eq!(plan(&seen), Plan::new(), "it deletes everything that matched");
    assert_eq!(listed(&seen), ["a"], "and nothing is forgotten");
    assert!(told(&seen).2.ends_with("the watch broke"));
}

#[test]
fn an_object_that_stopped_matching_an_unnamed_template_has_not_left() {
    let template = || spec("enforce", "musthave", definition("", "default"));
    let changed = [pod("a", "default", "nginx:2")];
    let seen = pruning(template(), vec![entry("a", false, "uid-a")], &changed);
    assert_eq!(plan(&seen), Plan::new());
    // What the policy itself made goes when it leaves.
    let made = pruning(template(), vec![entry("a", true, "uid-a")], &changed);
    assert_eq!(verbs(&plan(&made)), [["delete pods"]]);
}

fn team(image: &str) -> Value {
    let mut spec = spec("enforce", "mustnothave", definition("", "default"));
    spec["object-templates"][0]["objectDefinition"]["spec"]["containers"][0]["image"] =
        json!(image);
    spec["object-templates"][0]["objectSelector"] = json!({ "matchLabels": {} });
    spec
}

#[test]
fn of_selected_objects_only_the_unwanted_go_though_all_were_listed() {
    let live = [pod("bad", "default", "x"), pod("good", "default", "nginx:1.7.9")];
    let both = || vec![unlisted("bad"), unlisted("good")];
    let seen = pruning(team("x"), both(), &live);
    let deleted: Vec<String> = deletions(&plan(&seen)).into_iter().map(|(name, _)| name).collect();
    assert_eq!(deleted, ["bad"]);

    let fine = [pod("a", "default", "nginx:1.7.9"), pod("good", "default", "nginx:1.7.9")];
    let mut blind = pruning(team("x"), vec![unlisted("a"), unlisted("good")], &fine);
    blind.cluster.objects.insert(pod_id("a"), Seen::Unknown("timed out".into()));
    assert_eq!(plan(&blind), Plan::new(), "one failed read deletes the others");
    assert_eq!(listed(&blind), ["a", "good"]);
}

fn deletions(plan: &Plan) -> Vec<(String, Option<String>)> {
    let all = plan.iter().flatten().filter_map(|action| match &action.write {
        Write::Delete { resource_version, .. } => {
            Some((action.target.id.name.clone(), resource_version.clone()))
        }
        _ => None,
    });
    all.collect()
}

#[test]
fn what_is_unwanted_for_its_content_is_deleted_only_with_that_content() {
    let seen = pruning(team("x"), vec![], &[pod("bad", "default", "x")]);
    assert_eq!(deletions(&plan(&seen)), [(String::from("bad"), Some(String::from("5")))]);
}

#[test]
fn what_was_listed_as_missing_is_not_taken_along_by_a_deleted_policy() {
    let mut entry = unlisted("good");
    entry["reason"] = json!("Resource not found as expected");
    let mut seen = pruning(team("x"), vec![entry], &[pod("good", "default", "nginx:1.7.9")]);
    policy(&mut seen).deleting = true;
    assert_eq!(verbs(&plan(&seen)), [["patch configurationpolicies"]]);
}

#[test]
fn an_object_that_another_policy_made_is_not_taken_for_ours() {
    let mut spec = spec("enforce", "musthave", definition("a", "default"));
    spec["pruneObjectBehavior"] = json!("DeleteIfCreated");
    let mut seen = observed(spec, &[]);
    policy(&mut seen).finalizers = vec![FINALIZER.into()];
    // Both wrote down that they will make it; the other one did.
    policy(&mut seen).status = status(&plan(&seen));
    let theirs = |writers: Vec<String>| {
        Seen::Present(Present { object: Arc::new(pod("a", "default", "nginx:1.7.9")), writers })
    };
    seen.cluster.objects.insert(pod_id("a"), theirs(vec!["other-policy".into()]));
    let known = status(&report(&seen).publish).related_objects[0].properties.clone().unwrap();
    assert_eq!((known.created_by_policy, known.uid.as_str()), (Some(false), "uid-a"));
    let claimed = seen.clone();
    policy(&mut seen).deleting = true;
    assert_eq!(verbs(&plan(&seen)), [["patch configurationpolicies"]], "theirs is deleted");
    let mut ours = claimed;
    ours.cluster.objects.insert(pod_id("a"), theirs(vec!["policy-uid".into()]));
    policy(&mut ours).deleting = true;
    assert_eq!(verbs(&plan(&ours)), [["delete pods"]]);
}

#[test]
fn a_failed_read_forgets_nothing_though_the_version_of_the_kind_changed() {
    let live = [pod("a", "default", "nginx:1.7.9")];
    let mut old = entry("a", true, "uid-a");
    old["object"]["apiVersion"] = json!("v1beta1");
    let template = spec("enforce", "musthave", definition("a", "default"));
    let mut seen = pruning(template, vec![old], &live);
    seen.cluster.objects.insert(pod_id("a"), Seen::Unknown("timed out".into()));
    let kept = status(&report(&seen).publish).related_objects;
    let known = kept[0].properties.clone().unwrap();
    assert_eq!((known.created_by_policy, known.uid.as_str()), (Some(true), "uid-a"));
}

#[test]
fn a_template_that_only_looks_does_not_make_forget_who_made_an_object() {
    let live = [pod("a", "default", "nginx:1.7.9"), pod("b", "default", "nginx:1.7.9")];
    let both = spec("enforce", "musthave", definition("a", "default"));
    let unnamed = spec("enforce", "musthave", definition("", "default"));
    for order in [[0, 1], [1, 0]] {
        let all = [both["object-templates"][0].clone(), unnamed["object-templates"][0].clone()];
        let mut spec = both.clone();
        spec["object-templates"] = json!([all[order[0]], all[order[1]]]);
        let seen = pruning(spec, vec![entry("a", true, "uid-a")], &live);
        let known = status(&report(&seen).publish).related_objects[0].properties.clone().unwrap();
        assert_eq!((known.created_by_policy, known.uid.as_str()), (Some(true), "uid-a"));
    }
}

#[test]
fn what_failed_without_anybody_telling_when_it_is_over_is_tried_again() {
    let after = |seconds: i64| Some(now().checked_add(SignedDuration::from_secs(seconds)).unwrap());
    let drifted = [pod("a", "default", "nginx:2")];
    let tried = |answer: TrialAnswer| {
        let mut seen = observed(spec("enforce", "musthave", definition("a", "default")), &drifted);
        seen.cluster.trials.get_mut(&pod_id("a")).unwrap().answer = answer;
        report(&seen).wake
    };
    assert_eq!(tried(TrialAnswer::Failed("webhook timed out".into())), after(5));
    assert_eq!(tried(TrialAnswer::Refused("denied".into())), after(60));
    assert_eq!(tried(TrialAnswer::Refused("strict decoding error: x".into())), None);

    let templated = |passing: bool| {
        let mut seen = observed(spec("enforce", "musthave", definition("a", "default")), &drifted);
        let Templates::Known(all) = &mut seen.templates else { panic!() };
        let pick = Pick { namespace: "default".into(), name: "a".into() };
        let failed = Resolution::Failed { message: "no".into(), passing };
        let resolved = [(pick, failed)].into();
        all[0].definition = Definition::Templated { name: false, namespace: false, resolved };
        report(&seen).wake
    };
    assert_eq!((templated(true), templated(false)), (after(5), None));

    let whole = |passing: bool| {
        let mut seen = observed(spec("enforce", "musthave", definition("a", "default")), &[]);
        let reason = "Template encryption configuration error";
        seen.templates = Templates::Failed { reason, message: "no".into(), passing };
        report(&seen).wake
    };
    assert_eq!((whole(true), whole(false)), (after(5), None));
}

#[test]
fn an_object_is_thrown_away_only_if_the_one_to_replace_it_would_be_taken() {
    let live = [pod("a", "default", "nginx:2")];
    for option in ["IfRequired", "Always"] {
        let mut template = spec("enforce", "musthave", definition("a", "default"));
        template["object-templates"][0]["recreateOption"] = json!(option);
        let mut seen = observed(template, &live);
        let invalid = || TrialAnswer::Invalid("spec is wrong".into());
        seen.cluster.trials.get_mut(&pod_id("a")).unwrap().answer = invalid();
        answer(&mut seen, &live);
        assert_eq!(deletions(&plan(&seen)).len(), 1, "{option}");
        let creation = seen.cluster.creations.get_mut(&pod_id("a")).unwrap();
        assert_eq!(creation.asked["metadata"]["name"], Value::Null);
        creation.answer = invalid();
        assert_eq!(plan(&seen), Plan::new(), "{option}: it is deleted for good");
        let said = "pods [a] in namespace default cannot be recreated, it would be refused with the error `spec is wrong`";
        assert_eq!(told(&seen).2, said);
    }
}
