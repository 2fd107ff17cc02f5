//! What policies say and do, row by row, in the words that users and tools of OCM know.

use alloc::format;
use alloc::string::ToString as _;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::policy::memory::Deed;
use crate::policy::observed::*;
use crate::policy::{looks_by_itself, plan, reads, report};
use crate::work::trouble::{Trouble, TroubleKind};
use crate::write::{Plan, Write};

use super::site::*;

#[test]
fn what_is_said_of_one_object() {
    let exact = || pod("a", "default", "nginx:1.7.9");
    let other = || pod("a", "default", "nginx:2");
    let named = || definition("a", "default");
    let unnamed = || definition("", "default");
    type Case<'a> = (&'a str, Value, Vec<Value>, &'a str, &'a str, &'a str);
    let cases: Vec<Case<'_>> = vec![
        (
            "found",
            spec("inform", "musthave", named()),
            vec![exact()],
            "Compliant",
            "K8s `must have` object already exists",
            "pods [a] found as specified in namespace default",
        ),
        (
            "missing",
            spec("inform", "musthave", named()),
            vec![],
            "NonCompliant",
            "K8s does not have a `must have` object",
            "pods [a] not found in namespace default",
        ),
        (
            "different",
            spec("inform", "musthave", named()),
            vec![other()],
            "NonCompliant",
            "K8s does not have a `must have` object",
            "pods [a] found but not as specified in namespace default",
        ),
        (
            "unwanted",
            spec("inform", "mustnothave", named()),
            vec![other()],
            "NonCompliant",
            "K8s has a `must not have` object",
            "pods [a] found in namespace default",
        ),
        (
            "rightly missing",
            spec("enforce", "mustnothave", named()),
            vec![],
            "Compliant",
            "K8s `must not have` object already missing",
            "pods [a] missing as expected in namespace default",
        ),
        (
            "unnamed, one matches",
            spec("enforce", "musthave", unnamed()),
            vec![exact(), pod("b", "default", "x")],
            "Compliant",
            "K8s `must have` object already exists",
            "pods [a] found as specified in namespace default",
        ),
        (
            "unnamed, none matches",
            spec("enforce", "musthave", unnamed()),
            vec![other()],
            "NonCompliant",
            "K8s does not have a `must have` object",
            "pods found but not as specified in namespace default",
        ),
        (
            "unnamed, none there",
            spec("enforce", "musthave", unnamed()),
            vec![],
            "NonCompliant",
            "K8s does not have a `must have` object",
            "pods not found in namespace default",
        ),
        (
            "unnamed, unwanted",
            spec("enforce", "mustnothave", unnamed()),
            vec![exact(), pod("b", "default", "nginx:1.7.9")],
            "NonCompliant",
            "K8s has a `must not have` object",
            "pods [a, b] found in namespace default",
        ),
        (
            "unnamed, rightly missing",
            spec("enforce", "mustnothave", unnamed()),
            vec![other()],
            "Compliant",
            "K8s `must not have` object already missing",
            "pods missing as expected in namespace default",
        ),
        (
            "nothing to check",
            json!({ "remediationAction": "inform", "object-templates": [] }),
            vec![],
            "Compliant",
            "No object templates",
            "p contains no object templates to check, and thus has no violations",
        ),
        (
            "no action",
            json!({ "remediationAction": "", "object-templates": [] }),
            vec![],
            "NonCompliant",
            "Invalid spec",
            "Policy does not have a RemediationAction specified",
        ),
        (
            "no kind",
            spec("inform", "musthave", json!({ "apiVersion": "v1" })),
            vec![],
            "NonCompliant",
            "K8s decode object definition error",
            "The kind and apiVersion fields are required on the object template at index 0 in policy p",
        ),
        (
            "unknown kind",
            spec(
                "inform",
                "musthave",
                json!({ "apiVersion": "x/v1", "kind": "Y", "metadata": { "name": "y" } }),
            ),
            vec![],
            "NonCompliant",
            "K8s error",
            "couldn't find mapping resource with kind Y in API version x/v1, please check if you have CRD deployed",
        ),
        (
            "no namespace",
            spec("inform", "musthave", definition("a", "")),
            vec![],
            "NonCompliant",
            "K8s missing namespace",
            "namespaced object a of kind Pod has no namespace specified from the policy namespaceSelector nor the object metadata",
        ),
        (
            "no namespace, no name",
            spec("inform", "musthave", definition("", "")),
            vec![],
            "NonCompliant",
            "K8s missing namespace",
            "namespaced object of kind Pod has no namespace specified from the policy namespaceSelector nor the object metadata",
        ),
        (
            "bad label",
            spec(
                "inform",
                "musthave",
                json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "a", "namespace": "default", "labels": { "x": 1 } } }),
            ),
            vec![exact()],
            "NonCompliant",
            "K8s update template error",
            "invalid label, error: contains non-string value in the map under key \"x\": 1 is of the type int64, expected string",
        ),
    ];
    for (what, spec, objects, state, reason, message) in cases {
        let seen = observed(spec, &objects);
        let expected = (state.to_string(), reason.to_string(), message.to_string());
        assert_eq!(told(&seen), expected, "{what}");
        assert_eq!(plan(&seen), Plan::new(), "{what}");
    }
}

#[test]
fn selectors_choose_namespaces_and_say_what_is_wrong_with_them() {
    let with = |selector: Value| {
        let mut spec = spec("inform", "musthave", definition("a", ""));
        spec["namespaceSelector"] = selector;
        observed(spec, &[])
    };
    let message = |seen: &Observed| told(seen).2;
    assert_eq!(
        message(&with(json!({ "include": ["*"] }))),
        "pods [a] not found in namespaces: default, other"
    );
    assert_eq!(
        message(&with(json!({ "include": ["["] }))),
        "Error filtering namespaces with provided namespaceSelector: error parsing 'include' pattern '[': syntax error in pattern"
    );
    let mut blind = with(json!({ "include": ["*"] }));
    blind.cluster.namespaces = Some(Err("it is dark".into()));
    assert_eq!(told(&blind).1, "namespaceSelector error");
}

#[test]
fn what_cannot_be_read_is_said_and_changes_nothing() {
    let mut seen = observed(spec("enforce", "musthave", definition("a", "default")), &[]);
    seen.cluster.objects.insert(pod_id("a"), Seen::Unknown("the server is busy".into()));
    assert_eq!(plan(&seen), Plan::new());
    let (state, reason, message) = told(&seen);
    assert_eq!((state.as_str(), reason.as_str()), ("NonCompliant", "api error"));
    assert_eq!(
        message,
        "Error retrieving an object for object-template at index [0]: the server is busy"
    );
    seen.cluster.objects.insert(pod_id("a"), Seen::Unwatchable);
    assert_eq!(
        told(&seen).2,
        "Error with object-template at index [0], it may require evaluationInterval to be set: watch not supported on this resource"
    );
    assert!(report(&seen).wake.is_none());
}

#[test]
fn what_looks_by_itself_needs_no_watch() {
    let mut seen = observed(spec("enforce", "musthave", definition("a", "default")), &[]);
    let policy = policy(&mut seen);
    assert!(!looks_by_itself(policy));
    policy.spec.evaluation_interval.noncompliant = Some("10s".into());
    assert!(looks_by_itself(policy));
    // It holds, and is to be watched from then on.
    policy.status.compliant = Some("Compliant".into());
    assert!(!looks_by_itself(policy));
    policy.spec.evaluation_interval.compliant = Some("never".into());
    assert!(looks_by_itself(policy));
    policy.deleting = true;
    assert!(!looks_by_itself(policy));
}

#[test]
fn a_missing_object_is_told_claimed_and_made() {
    let mut seen = observed(spec("enforce", "musthave", definition("a", "default")), &[]);
    policy(&mut seen).owner = Some(Owner {
        api_version: "policy.open-cluster-management.io/v1".into(),
        kind: "Policy".into(),
        name: "ns.root".into(),
        uid: "owner-uid".into(),
    });
    let steps = plan(&seen);
    assert_eq!(
        verbs(&steps),
        [
            vec!["create events"],
            vec!["status configurationpolicies"],
            vec!["create events", "create events"],
            vec!["create pods"],
        ]
    );
    let Write::Create(event) = &steps[0][0].write else { panic!() };
    assert_eq!(
        event["message"],
        "NonCompliant; violation - pods [a] not found in namespace default"
    );
    assert_eq!(event["reason"], "policy: managed/p");
    assert_eq!(event["metadata"]["name"], format!("ns.root.{:x}", now().as_nanosecond()));
    assert_eq!(
        (&event["type"], &event["action"]),
        (&json!("Warning"), &json!("ComplianceStateUpdate"))
    );
    assert_eq!(event["involvedObject"]["uid"], "owner-uid");
    let claimed = status(&steps);
    let properties = claimed.related_objects[0].properties.clone().unwrap();
    assert_eq!((properties.created_by_policy, properties.uid.as_str()), (Some(true), ""));
    assert_eq!(claimed.last_evaluated, None, "an evaluation that is not finished is due again");

    policy(&mut seen).status = claimed;
    let present = Present {
        object: Arc::new(pod("a", "default", "nginx:1.7.9")),
        writers: vec!["policy-uid".into()],
    };
    seen.cluster.objects.insert(pod_id("a"), Seen::Present(present));
    seen.memory.deeds.insert(pod_id("a"), Deed::Created);
    assert_eq!(plan(&seen), Plan::new());
    let (state, reason, message) = told(&seen);
    assert_eq!((state.as_str(), reason.as_str()), ("Compliant", "K8s creation success"));
    assert_eq!(message, "pods [a] was created successfully in namespace default");
    let made = status(&report(&seen).publish);
    let properties = made.related_objects[0].properties.clone().unwrap();
    assert_eq!((properties.created_by_policy, properties.uid.as_str()), (Some(true), "uid-a"));
    assert_eq!(made.history.len(), 2);

    policy(&mut seen).status = made;
    seen.memory.deeds.clear();
    assert_eq!(told(&seen).2, "pods [a] found as specified in namespace default");
    policy(&mut seen).status = status(&report(&seen).publish);
    assert_eq!(report(&seen).publish, Plan::new(), "nothing new, nothing written");
}

#[test]
fn failures_are_said_in_the_known_words() {
    let trouble = || Trouble {
        message: "denied".into(),
        kind: TroubleKind::Refused,
        attempts: 1,
        retry_at: now().checked_add(SignedDuration::from_secs(1)).unwrap(),
    };
    let other = || pod("a", "default", "nginx:2");
    let mut always = spec("enforce", "musthave", definition("a", "default"));
    always["object-templates"][0]["recreateOption"] = json!("Always");
    let plain = || spec("enforce", "musthave", definition("a", "default"));
    let cases = [
        (
            plain(),
            vec![],
            "K8s creation error",
            "pods [a] in namespace default is missing, and cannot be created, reason: `denied`",
        ),
        (
            spec("enforce", "mustnothave", definition("a", "default")),
            vec![other()],
            "K8s deletion error",
            "pods [a] in namespace default exists, and cannot be deleted, reason: `denied`",
        ),
        (
            plain(),
            vec![other()],
            "K8s update template error",
            "pods [a] in namespace default failed to update with the error `denied`",
        ),
        (
            always,
            vec![other()],
            "K8s update template error",
            "pods [a] in namespace default failed to delete when recreating with the error denied",
        ),
    ];
    for (spec, objects, reason, message) in cases {
        let mut seen = observed(spec, &objects);
        seen.memory.troubles.insert(pod_id("a"), trouble());
        assert_eq!(plan(&seen), Plan::new(), "it waits: {message}");
        assert_eq!(
            told(&seen),
            ("NonCompliant".to_string(), reason.to_string(), message.to_string())
        );
        assert_eq!(report(&seen).wake, Some(trouble().retry_at));
    }
}

#[test]
fn what_the_server_says_of_an_update_decides() {
    let live = pod("a", "default", "nginx:2");
    let answered = |action: &str, recreate: &str, answer: TrialAnswer| {
        let mut spec = spec(action, "musthave", definition("a", "default"));
        spec["object-templates"][0]["recreateOption"] = json!(recreate);
        let mut seen = observed(spec, core::slice::from_ref(&live));
        for trial in seen.cluster.trials.values_mut() {
            trial.answer = answer.clone();
        }
        self::answer(&mut seen, core::slice::from_ref(&live));
        seen
    };
    let same = answered("enforce", "None", TrialAnswer::Accepted(Arc::new(live.clone())));
    assert_eq!(told(&same).0, "Compliant");
    let known = status(&report(&same).publish).related_objects[0].properties.clone().unwrap();
    assert!(known.matches_after_dry_run && known.diff.is_empty());
    let invalid = || TrialAnswer::Invalid("field is immutable".into());
    assert_eq!(
        told(&answered("enforce", "None", invalid())).2,
        "pods [a] in namespace default cannot be updated, likely due to immutable fields not matching, you may set spec[\"object-templates\"][].recreateOption to recreate the object"
    );
    assert_eq!(
        told(&answered("inform", "None", invalid())).2,
        "pods [a] found but not as specified in namespace default"
    );
    let steps = plan(&answered("enforce", "IfRequired", invalid()));
    assert_eq!(verbs(&steps).last().unwrap(), &["delete pods"]);
    let claim = status(&steps).related_objects[0].properties.clone().unwrap();
    assert_eq!(
        (claim.created_by_policy, claim.uid.as_str()),
        (Some(false), ""),
        "it was not ours and will not be"
    );
    let failed = |why: &str| told(&answered("inform", "None", TrialAnswer::Refused(why.into()))).2;
    assert_eq!(
        failed("boom"),
        "Error issuing a dry run update request for the object `a`, the error is `boom`"
    );
    assert_eq!(
        failed("strict decoding error: x"),
        "Error validating the object a, the error is `strict decoding error: x`"
    );
    assert_eq!(
        told(&answered("inform", "None", TrialAnswer::NotFound)).2,
        "`Pod` is not present and must be created"
    );
    let steps = plan(&observed(spec("enforce", "musthave", definition("a", "default")), &[live]));
    assert_eq!(verbs(&steps).last().unwrap(), &["replace pods"]);
}

#[test]
fn an_object_on_its_way_out_is_not_gone() {
    let mut going = pod("a", "default", "nginx:2");
    going["metadata"]["deletionTimestamp"] = json!("2023-11-14T22:13:00Z");
    going["metadata"]["finalizers"] = json!(["example.com/f"]);
    let seen = observed(spec("enforce", "mustnothave", definition("a", "default")), &[going]);
    assert_eq!(plan(&seen), Plan::new());
    assert_eq!(told(&seen).0, "NonCompliant", "upstream says Compliant here");
}

#[test]
fn intervals_say_when_to_look_again() {
    let at = |seconds: i64| now().checked_add(SignedDuration::from_secs(seconds)).unwrap();
    let evaluated = |interval: Value| {
        let mut spec = spec("inform", "musthave", definition("a", "default"));
        spec["evaluationInterval"] = interval;
        let mut seen = observed(spec, &[]);
        policy(&mut seen).status = status(&report(&seen).publish);
        seen
    };
    let never = evaluated(json!({ "noncompliant": "never" }));
    let Subject::Policy(told) = &never.policy else { panic!() };
    assert_eq!(
        told.status.compliancy_details[0].conditions[0].message.as_deref(),
        Some(
            "pods [a] not found in namespace default. This policy will not be evaluated again due to spec.evaluationInterval.noncompliant being set to \"never\"."
        )
    );
    assert_eq!(report(&never), crate::policy::Verdict::default());
    let mut changed = never;
    policy(&mut changed).generation = 2;
    assert!(!report(&changed).publish.is_empty());
    let mut stopped = changed;
    policy(&mut stopped).stopped = true;
    assert_eq!(report(&stopped), crate::policy::Verdict::default(), "not even once more");
    assert!(reads(&stopped).all.is_empty());
    let hourly = evaluated(json!({ "noncompliant": "1h" }));
    assert_eq!(report(&hourly).wake, Some(at(3600)));
    assert!(reads(&hourly).all.is_empty(), "nothing is looked at meanwhile");
    let mut later = hourly;
    later.now = at(3600);
    assert!(!report(&later).publish.is_empty());
    let watching = evaluated(json!({}));
    assert_eq!(report(&watching), crate::policy::Verdict::default());
}

#[test]
fn a_custom_message_takes_the_place_of_the_usual() {
    let with = |template: &str| {
        let mut spec = spec("inform", "musthave", definition("a", "default"));
        spec["customMessage"] = json!({ "noncompliant": template });
        status(&report(&observed(spec, &[])).publish).history[0].message.clone()
    };
    let usual = "NonCompliant; violation - pods [a] not found in namespace default";
    assert_eq!(with("call me"), "NonCompliant; call me");
    assert_eq!(with("{{ .DefaultMessage }}!"), format!("{usual}!"));
    assert_eq!(
        with("bad"),
        format!("{usual} (failure processing the custom message: template: tmpl:1: unexpected)")
    );
}

#[test]
fn a_custom_message_sees_the_labels_and_annotations_of_its_policy() {
    let mut spec = spec("inform", "musthave", definition("a", "default"));
    spec["customMessage"] = json!({ "noncompliant": "x" });
    let mut seen = observed(spec, &[]);
    policy(&mut seen).labels = [("team".into(), "web".into())].into();
    policy(&mut seen).annotations = [("owner".into(), "ada".into())].into();
    seen.controller.say = |_, data| {
        let metadata = &data["Policy"]["metadata"];
        Ok(format!("{} {}", metadata["labels"]["team"], metadata["annotations"]["owner"]))
    };
    let said = status(&report(&seen).publish).history[0].message.clone();
    assert_eq!(said, "NonCompliant; \"web\" \"ada\"");
}

#[test]
fn a_selector_of_objects_narrows_what_must_not_be_there() {
    let selected = |objects: &[Value]| {
        let mut spec = spec("enforce", "mustnothave", definition("", "default"));
        spec["object-templates"][0]["objectSelector"] = json!({ "matchLabels": {} });
        observed(spec, objects)
    };
    let some = selected(&[pod("a", "default", "nginx:1.7.9"), pod("b", "default", "x")]);
    assert_eq!(verbs(&plan(&some)).last().unwrap(), &["delete pods"]);
    let none = selected(&[pod("b", "default", "x")]);
    assert_eq!(plan(&none), Plan::new());
    assert_eq!(told(&none).2, "pods missing as expected in namespace default");
    let listed = status(&report(&none).publish).related_objects;
    assert_eq!(listed[0].object.metadata.name, "b", "as shipped");
    assert_eq!(
        told(&selected(&[])).2,
        "No objects of kind Pod were matched from the policy objectSelector"
    );
}
