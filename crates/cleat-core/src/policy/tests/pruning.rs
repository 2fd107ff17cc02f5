//! What policies take along when they go, or when something leaves them.

use alloc::string::ToString as _;
use alloc::vec;
use alloc::vec::Vec;

use cleat_api::configurationpolicy::FINALIZER;
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::policy::observed::*;
use crate::policy::{plan, reads, report};
use crate::work::trouble::{Trouble, TroubleKind};
use crate::write::{Plan, Write};

use super::site::*;

/// A deleted policy that lists some objects.
fn deleted(behavior: &str, action: &str, entries: Vec<Value>, objects: &[Value]) -> Observed {
    let mut spec = spec(action, "musthave", definition("a", "default"));
    spec["pruneObjectBehavior"] = json!(behavior);
    let mut seen = observed(spec, objects);
    let policy = policy(&mut seen);
    policy.deleting = true;
    policy.finalizers = vec!["other".into(), FINALIZER.into()];
    policy.status =
        serde_json::from_value(json!({ "compliant": "Compliant", "relatedObjects": entries }))
            .unwrap();
    answer(&mut seen, objects);
    seen
}

#[test]
fn a_deleted_policy_takes_along_what_it_says_and_no_more() {
    let live = || [pod("a", "default", "x"), pod("b", "default", "x")];
    let both = || vec![entry("a", true, "uid-a"), entry("b", false, "uid-b")];
    let release = vec![vec!["patch configurationpolicies".to_string()]];
    let delete = |count: usize| vec![vec!["delete pods".to_string(); count]];
    let cases = [
        ("created", deleted("DeleteIfCreated", "enforce", both(), &live()), delete(1)),
        ("all", deleted("DeleteAll", "enforce", both(), &live()), delete(2)),
        ("none", deleted("None", "enforce", both(), &live()), release.clone()),
        ("inform", deleted("DeleteAll", "inform", both(), &live()), release.clone()),
        ("gone", deleted("DeleteAll", "enforce", both(), &[]), release.clone()),
        (
            "somebody else's by now",
            deleted("DeleteIfCreated", "enforce", vec![entry("a", true, "old")], &live()),
            release.clone(),
        ),
        (
            "claimed, made by somebody else",
            deleted("DeleteIfCreated", "enforce", vec![entry("a", true, "")], &live()),
            release.clone(),
        ),
        (
            "the name for all",
            deleted("DeleteAll", "enforce", vec![entry("-", false, "")], &live()),
            release,
        ),
    ];
    for (what, seen, expected) in cases {
        assert_eq!(verbs(&plan(&seen)), expected, "{what}");
    }
    let seen = deleted("DeleteIfCreated", "enforce", both(), &live());
    let Write::Delete { uid, .. } = &plan(&seen)[0][0].write else { panic!() };
    assert_eq!(uid, "uid-a");
}

#[test]
fn a_stuck_deletion_says_what_is_left_and_why() {
    let mut going = pod("a", "default", "x");
    going["metadata"]["deletionTimestamp"] = json!("2023-11-14T22:13:00Z");
    going["metadata"]["finalizers"] = json!(["example.com/f"]);
    let objects = [going, pod("b", "default", "x")];
    let entries = vec![entry("a", true, "uid-a"), entry("b", true, "uid-b")];
    let mut seen = deleted("DeleteIfCreated", "enforce", entries, &objects);
    let denied = Trouble {
        message: "denied".into(),
        kind: TroubleKind::Refused,
        attempts: 3,
        retry_at: now().checked_add(SignedDuration::from_secs(1)).unwrap(),
    };
    seen.memory.troubles.insert(pod_id("b"), denied);
    assert_eq!(plan(&seen), Plan::new());
    let (state, reason, message) = told(&seen);
    assert_eq!(
        (state.as_str(), reason.as_str()),
        ("Terminating", "Error cleaning up child objects")
    );
    assert_eq!(
        message,
        "Failed to delete objects: /v1, Kind=Pod \"a\" in namespace default (waiting for finalizer example.com/f), /v1, Kind=Pod \"b\" in namespace default (denied)"
    );
    let kept = status(&report(&seen).publish).related_objects;
    assert_eq!(kept.len(), 2, "what is listed stays listed");
    seen.cluster.objects.insert(pod_id("a"), Seen::Unknown("it is dark".into()));
    seen.cluster.objects.insert(pod_id("b"), Seen::Absent);
    assert_eq!(plan(&seen), Plan::new(), "the finalizer stays while anything is unknown");
    assert!(told(&seen).2.contains("it cannot be seen: it is dark"));
}

#[test]
fn what_cannot_be_watched_was_waited_for_without_looking() {
    let mut going = pod("a", "default", "x");
    going["metadata"]["deletionTimestamp"] = json!("2023-11-14T22:13:00Z");
    going["metadata"]["finalizers"] = json!(["example.com/f"]);
    let entries = vec![entry("a", true, "uid-a")];
    let mut seen = deleted("DeleteIfCreated", "enforce", entries, &[going]);
    assert_eq!(report(&seen).wake, None, "a watch tells");
    let present = seen.cluster.objects.insert(pod_id("a"), Seen::Unwatchable).unwrap();
    assert!(matches!(reads(&seen).missing.pop_first(), Some(Read::Unwatched(_))));
    assert_eq!(plan(&seen), Plan::new());
    seen.cluster.unwatched.insert(pod_id("a"), present);
    assert_eq!(plan(&seen), Plan::new());
    assert!(told(&seen).2.contains("waiting for finalizer example.com/f"));
    assert_eq!(report(&seen).wake, now().checked_add(SignedDuration::from_secs(5)).ok());
    // And when it is gone, the policy goes.
    seen.cluster.unwatched.insert(pod_id("a"), Seen::Absent);
    assert!(matches!(plan(&seen)[0][0].write, Write::Merge(_)));
}

#[test]
fn whoever_leaves_lets_go_and_touches_nothing() {
    let mut seen = deleted(
        "DeleteAll",
        "enforce",
        vec![entry("a", true, "uid-a")],
        &[pod("a", "default", "x")],
    );
    seen.controller.departure = Departure::Leaving;
    let steps = plan(&seen);
    let Write::Merge(patch) = &steps[0][0].write else { panic!() };
    assert_eq!(patch["metadata"]["finalizers"], json!(["other"]));
    seen.controller.departure = Departure::Unknown("the deployment cannot be read".into());
    assert_eq!(plan(&seen), Plan::new());
    assert!(told(&seen).2.contains("whether they are to go is not certain"));
}

#[test]
fn the_finalizer_comes_first_and_goes_with_the_wish() {
    let mut spec = spec("inform", "musthave", definition("a", "default"));
    spec["pruneObjectBehavior"] = json!("DeleteIfCreated");
    let mut seen = observed(spec, &[]);
    assert_eq!(verbs(&plan(&seen)), [["patch configurationpolicies"]]);
    policy(&mut seen).finalizers = vec![FINALIZER.into()];
    assert_eq!(plan(&seen), Plan::new());
    policy(&mut seen).spec.prune_object_behavior =
        cleat_api::configurationpolicy::PruneObjectBehavior::None;
    assert_eq!(verbs(&plan(&seen)), [["patch configurationpolicies"]]);
}

/// A policy that wants `a` and used to have made `b`.
fn leaver(objects: &[Value]) -> Observed {
    let mut spec = spec("enforce", "musthave", definition("a", "default"));
    spec["pruneObjectBehavior"] = json!("DeleteIfCreated");
    let mut seen = observed(spec, objects);
    let policy = policy(&mut seen);
    policy.finalizers = vec![FINALIZER.into()];
    policy.status = serde_json::from_value(json!({
        "relatedObjects": [entry("a", true, "uid-a"), entry("b", true, "uid-b")],
    }))
    .unwrap();
    answer(&mut seen, objects);
    seen
}

#[test]
fn what_left_the_policy_is_pruned_only_if_that_is_certain() {
    let live = || [pod("a", "default", "nginx:1.7.9"), pod("b", "default", "x")];
    assert_eq!(verbs(&plan(&leaver(&live()))), [["delete pods"]]);

    let kept = |what: &str, change: fn(&mut Observed)| {
        let mut seen = leaver(&live());
        change(&mut seen);
        assert_eq!(plan(&seen), Plan::new(), "{what}");
        let listed = match &report(&seen).publish {
            steps if steps.is_empty() => policy(&mut seen).status.related_objects.clone(),
            steps => status(steps).related_objects,
        };
        assert!(listed.iter().any(|entry| entry.object.metadata.name == "b"), "{what}: forgotten");
    };
    kept("a read that failed", |seen| {
        drop(seen.cluster.objects.insert(pod_id("b"), Seen::Unknown("dark".into())));
    });
    kept("templates that failed", |seen| {
        seen.templates = Templates::Failed {
            reason: "Error processing template",
            message: "no".into(),
            passing: false,
        };
    });
    kept("an unknown kind", |seen| {
        for kind in seen.cluster.kinds.values_mut() {
            *kind = Kind::Unknown("dark".into());
        }
    });
    kept("a selector that cannot be read", |seen| {
        let Templates::Known(all) = &mut seen.templates else { panic!() };
        all[0].spec.object_definition = definition("a", "");
        policy(seen).spec.namespace_selector.include = vec!["[".into()];
    });
    kept("a selector that chooses nothing", |seen| {
        let Templates::Known(all) = &mut seen.templates else { panic!() };
        all[0].spec.object_definition = definition("a", "");
        policy(seen).spec.namespace_selector.include = vec!["nowhere".into()];
    });
    kept("a template that failed for one object", |seen| {
        let Templates::Known(all) = &mut seen.templates else { panic!() };
        let pick = Pick { namespace: "default".into(), name: "a".into() };
        let resolved = [(pick, Resolution::Failed { message: "no".into(), passing: false })].into();
        all[0].definition = Definition::Templated { name: false, namespace: false, resolved };
    });
    kept("a template without a kind", |seen| {
        drop(first(seen).spec.object_definition.as_object_mut().unwrap().remove("kind"));
    });
    kept("a kind that is gone", |seen| {
        seen.cluster.kinds.values_mut().for_each(|kind| *kind = Kind::Absent);
    });
    kept("a list of namespaces that failed", |seen| {
        first(seen).spec.object_definition = definition("a", "");
        policy(seen).spec.namespace_selector.include = vec!["default".into()];
        seen.cluster.namespaces = Some(Err("dark".into()));
    });
    kept("a selector of objects that cannot be read", |seen| {
        selecting(seen, json!({ "matchExpressions": [{ "key": "team", "operator": "Near" }] }));
    });
    kept("a list of selected objects that failed", |seen| {
        selecting(seen, json!({ "matchLabels": { "team": "a" } }));
        answer(seen, &[]);
        seen.cluster.lists.values_mut().for_each(|list| *list = Err("dark".into()));
    });
    kept("a name that is not that of the selected object", |seen| {
        selecting(seen, json!({ "matchLabels": { "team": "a" } }));
        let pick = Pick { namespace: "default".into(), name: "a".into() };
        let another =
            Resolution::Object { object: definition("x", "default"), read_secrets: false };
        first(seen).definition = Definition::Templated {
            name: true,
            namespace: false,
            resolved: [(pick, another)].into(),
        };
        answer(seen, &[pod("a", "default", "x")]);
    });
    kept("a namespace that is not the chosen one", |seen| {
        first(seen).spec.object_definition = definition("a", "{{ x }}");
        policy(seen).spec.namespace_selector.include = vec!["default".into()];
        let pick = Pick { namespace: "default".into(), name: "a".into() };
        let another = Resolution::Object { object: definition("a", "other"), read_secrets: false };
        first(seen).definition = Definition::Templated {
            name: false,
            namespace: true,
            resolved: [(pick, another)].into(),
        };
    });
    let mut blind = leaver(&live());
    blind.cluster.objects.insert(pod_id("a"), Seen::Unknown("dark".into()));
    let listed = status(&report(&blind).publish).related_objects;
    assert!(
        listed.iter().any(|one| one.object.metadata.name == "a"),
        "a failed read forgets nothing"
    );
}

fn first(seen: &mut Observed) -> &mut Template {
    let Templates::Known(all) = &mut seen.templates else { panic!() };
    &mut all[0]
}

/// The template chooses its objects.
fn selecting(seen: &mut Observed, selector: Value) {
    let template = &mut first(seen).spec;
    template.object_definition = definition("", "default");
    template.object_selector = Some(serde_json::from_value(selector).unwrap());
}

#[test]
fn a_namespace_waits_for_what_else_the_policy_takes_along() {
    let live = [pod("a", "default", "x")];
    let mut space = entry("default", true, "uid-default");
    space["object"] =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "default" } });
    let entries = vec![entry("a", true, "uid-a"), space];
    let mut seen = with_namespace(deleted("DeleteIfCreated", "enforce", entries, &live));
    assert_eq!(verbs(&plan(&seen)), [["delete pods"]]);
    seen.cluster.objects.insert(pod_id("a"), Seen::Absent);
    assert_eq!(verbs(&plan(&seen)), [["delete namespaces"]]);
}

#[test]
fn a_prune_that_fails_is_kept_tried_again_and_told() {
    let live = [pod("a", "default", "nginx:1.7.9"), pod("b", "default", "x")];
    let mut seen = leaver(&live);
    let retry_at = now().checked_add(SignedDuration::from_secs(1)).unwrap();
    let denied =
        Trouble { message: "denied".into(), kind: TroubleKind::Refused, attempts: 1, retry_at };
    seen.memory.troubles.insert(pod_id("b"), denied);
    assert_eq!(plan(&seen), Plan::new());
    let verdict = report(&seen);
    assert_eq!(verdict.wake, Some(retry_at));
    let told = status(&verdict.publish);
    assert_eq!(told.compliant.as_deref(), Some("NonCompliant"));
    let message = told.compliancy_details[1].conditions[0].message.clone().unwrap();
    assert_eq!(
        message,
        "Failed to delete objects: /v1, Kind=Pod \"b\" in namespace default (denied)"
    );
    assert_eq!(told.related_objects[1].reason, "Error cleaning up child objects");
    seen.now = retry_at;
    assert_eq!(verbs(&plan(&seen)), [["delete pods"]]);
}

#[test]
fn another_version_of_the_kind_is_the_same_object() {
    let live = [pod("a", "default", "nginx:1.7.9")];
    let mut seen = leaver(&live);
    let listed = &mut policy(&mut seen).status.related_objects;
    listed.truncate(1);
    listed[0].object.api_version = "v1beta1".into();
    assert_eq!(plan(&seen), Plan::new());
    let listed = status(&report(&seen).publish).related_objects;
    let known = listed[0].properties.clone().unwrap();
    assert_eq!((listed.len(), listed[0].object.api_version.as_str()), (1, "v1"));
    assert_eq!((known.created_by_policy, known.uid.as_str()), (Some(true), "uid-a"));
}
