//! What policies say and do, row by row, in the words that users and tools of OCM know.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use cleat_api::configurationpolicy::{
    ConfigurationPolicySpec, ConfigurationPolicyStatus, FINALIZER,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::id::Id;
use crate::policy::memory::{Deed, Memory};
use crate::policy::observed::*;
use crate::policy::{Tried, plan, reads, report};
use crate::work::trouble::{Trouble, TroubleKind};
use crate::write::{Plan, Write};

fn say(template: &str, data: &Value) -> Result<String, String> {
    match template {
        "bad" => Err("template: tmpl:1: unexpected".into()),
        _ => {
            Ok(template.replace("{{ .DefaultMessage }}", data["DefaultMessage"].as_str().unwrap()))
        }
    }
}

pub(super) fn now() -> Timestamp {
    Timestamp::from_second(1_700_000_000).unwrap()
}

fn pods() -> Served {
    Served { group: "".into(), version: "v1".into(), resource: "pods".into(), namespaced: true }
}

pub(super) fn pod_id(name: &str) -> Id {
    pods().target("default", name).id
}

/// A policy as its YAML would be, and a cluster that answers every question.
pub(super) fn observed(spec: Value, objects: &[Value]) -> Observed {
    let spec: ConfigurationPolicySpec = serde_json::from_value(spec).unwrap();
    let templates = spec.object_templates.clone().unwrap_or_default();
    let templates =
        templates.into_iter().map(|spec| Template { spec, definition: Definition::Plain });
    let mut cluster = Cluster::default();
    let kinds = [("v1", "Pod", pods())];
    for (api_version, kind, served) in kinds {
        let name = KindName { api_version: api_version.into(), kind: kind.into() };
        cluster.kinds.insert(name, Kind::Served(served));
    }
    let namespace =
        |name: &str| Namespace { name: name.into(), labels: [].into(), terminating: false };
    cluster.namespaces = Some(Ok(vec![namespace("default"), namespace("other")]));
    let policy = Policy {
        namespace: "managed".into(),
        name: "p".into(),
        uid: "policy-uid".into(),
        resource_version: "1".into(),
        generation: 1,
        finalizers: vec![],
        deleting: false,
        stopped: false,
        owner: None,
        spec,
        status: ConfigurationPolicyStatus::default(),
    };
    let mut seen = Observed {
        now: now(),
        controller: Controller {
            departure: Departure::Staying,
            terminating_namespaces: TerminatingNamespaces::Included,
            instance: "pod".into(),
            say,
        },
        policy: Subject::Policy(Box::new(policy)),
        templates: Templates::Known(templates.collect()),
        cluster,
        memory: Memory::default(),
    };
    for object in objects {
        let metadata = &object["metadata"];
        let target = pods().target(
            metadata["namespace"].as_str().unwrap_or_default(),
            metadata["name"].as_str().unwrap(),
        );
        let present = Present { object: Arc::new(object.clone()), writers: vec![] };
        seen.cluster.objects.insert(target.id, Seen::Present(present));
    }
    answer(&mut seen, objects);
    seen
}

/// Answers whatever is asked: absent is what is not among the objects, and updates are accepted.
pub(super) fn answer(seen: &mut Observed, objects: &[Value]) {
    for _ in 0..5 {
        let asked = reads(seen);
        for read in asked.missing {
            match read {
                Read::Kind(name) => drop(seen.cluster.kinds.insert(name, Kind::Absent)),
                Read::Object(target) => drop(seen.cluster.objects.insert(target.id, Seen::Absent)),
                Read::List(of) => {
                    let here =
                        |object: &&Value| object["metadata"]["namespace"] == json!(of.namespace);
                    let all =
                        objects.iter().filter(here).map(|one| Arc::new(one.clone())).collect();
                    seen.cluster.lists.insert(of, Ok(all));
                }
                Read::Namespaces | Read::Resolution { .. } => {}
            }
        }
        for question in asked.questions {
            let answer = TrialAnswer::Accepted(question.object.clone());
            let trial = Trial { asked: question.object, answer };
            match question.of {
                Tried::Update => seen.cluster.trials.insert(question.target.id, trial),
                Tried::Creation => seen.cluster.creations.insert(question.target.id, trial),
            };
        }
    }
}

pub(super) fn policy(seen: &mut Observed) -> &mut Policy {
    match &mut seen.policy {
        Subject::Policy(policy) => policy,
        _ => panic!("there is no policy"),
    }
}

/// State, reason and message of the first template, as a status would show them.
pub(super) fn told(seen: &Observed) -> (String, String, String) {
    let status = status(&report(seen).publish);
    let condition = &status.compliancy_details[0].conditions[0];
    (
        status.compliant.clone().unwrap_or_default(),
        condition.reason.clone().unwrap_or_default(),
        condition.message.clone().unwrap_or_default(),
    )
}

pub(super) fn status(plan: &Plan) -> ConfigurationPolicyStatus {
    let patch = plan.iter().flatten().find_map(|action| match &action.write {
        Write::MergeStatus(patch) => Some(patch["status"].clone()),
        _ => None,
    });
    let fields = patch.expect("a status is written").as_object().unwrap().clone();
    let fields = fields.into_iter().filter(|(_, value)| !value.is_null()).collect();
    serde_json::from_value(Value::Object(fields)).unwrap()
}

pub(super) fn verbs(plan: &Plan) -> Vec<Vec<String>> {
    let verb = |write: &Write| match write {
        Write::Create(_) => "create",
        Write::Replace(_) => "replace",
        Write::Delete { .. } => "delete",
        Write::Merge(_) => "patch",
        Write::MergeStatus(_) => "status",
        _ => "other",
    };
    let step = |step: &Vec<crate::write::Action>| {
        step.iter().map(|one| format!("{} {}", verb(&one.write), one.target.id.resource)).collect()
    };
    plan.iter().map(step).collect()
}

pub(super) fn pod(name: &str, namespace: &str, image: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "namespace": namespace, "uid": format!("uid-{name}"), "resourceVersion": "5" },
        "spec": { "containers": [{ "name": "nginx", "image": image }] },
    })
}

pub(super) fn definition(name: &str, namespace: &str) -> Value {
    let mut pod = pod(name, namespace, "nginx:1.7.9");
    let metadata = pod["metadata"].as_object_mut().unwrap();
    for field in ["uid", "resourceVersion"] {
        metadata.remove(field);
    }
    metadata.retain(|_, value| value != "");
    pod
}

pub(super) fn spec(action: &str, compliance: &str, definition: Value) -> Value {
    json!({
        "remediationAction": action,
        "object-templates": [{ "complianceType": compliance, "objectDefinition": definition }],
    })
}

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

pub(super) fn entry(name: &str, created: bool, uid: &str) -> Value {
    json!({
        "object": { "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name, "namespace": "default" } },
        "compliant": "Compliant",
        "reason": "Resource found as expected",
        "properties": { "createdByPolicy": created, "uid": uid },
    })
}

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
    let mut blind = leaver(&live());
    blind.cluster.objects.insert(pod_id("a"), Seen::Unknown("dark".into()));
    let listed = status(&report(&blind).publish).related_objects;
    assert!(
        listed.iter().any(|one| one.object.metadata.name == "a"),
        "a failed read forgets nothing"
    );
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
