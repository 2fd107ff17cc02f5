//! The tricky cases, by their numbers in docs/protection.md.

use alloc::sync::Arc;
use std::borrow::ToOwned as _;
use std::collections::BTreeSet;
use std::format;
use std::string::{String, ToString as _};
use std::vec;
use std::vec::Vec;

use cleat_api::criticalservice::{CriterionType, CriticalService, DEFINITION, Latch};
use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;

use super::*;
use crate::protection::cycles::cycles;
use crate::protection::rules::{Place, configuration};
use crate::protection::{Question, Whereabouts, concerned, namespace_id, whereabouts};

#[test]
fn case_01_a_namespace_stays_while_its_provider_is_needed() {
    let namespace = request("DELETE", &namespace_id("web"), "n");
    let mut known = satisfied(service());
    known.tallies.insert(finalizer(), some(2));
    let message = denied(&namespace, &known);
    assert!(message.contains("2 cools.my.group with finalizer my.group/clean remain"), "{message}");
    // Nobody needs it.
    allowed(&namespace, &satisfied(service()));
    // The provider is not there, so the namespace holds nothing.
    known.objects.insert(provider(), Sight::Absent);
    allowed(&namespace, &known);
    // Whether it is there must be proven.
    known.objects.insert(provider(), Sight::NotSeen);
    let open = Decision::Prove(BTreeSet::from([Question::Object(provider())]));
    assert_eq!(decided(&namespace, &known), open);
    // So must that the one there is another, or going: it may be what a cache remembers.
    known.objects_proven.clear();
    let going = Sight::Present { uid: "u0".into(), terminating: true };
    known.objects.insert(provider(), going);
    assert_eq!(decided(&namespace, &known), open);
    known.services = satisfied(Service { pin: "u2".into(), ..service() }).services;
    known.objects.insert(provider(), present("u1"));
    assert_eq!(decided(&namespace, &known), open);
    // Another namespace is nobody's business.
    allowed(&request("DELETE", &namespace_id("other"), "n"), &known);
}

#[test]
fn case_01_inside_a_terminating_namespace_everything_passes_with_a_warning() {
    let mut known = satisfied(service());
    known.tallies.insert(finalizer(), some(2));
    let delete = request("DELETE", &provider(), "u1");
    denied(&delete, &known);
    let going = Sight::Present { uid: "n".into(), terminating: true };
    known.objects.insert(namespace_id("web"), going);
    let open = Decision::Prove(BTreeSet::from([Question::Object(namespace_id("web"))]));
    assert_eq!(decided(&delete, &known), open);
    known.objects_proven.insert(namespace_id("web"));
    let warnings = allowed(&delete, &known);
    assert!(warnings[0].contains("namespace is already being deleted"), "{warnings:?}");
}

#[test]
fn case_03_a_namespace_that_holds_its_own_consumers_is_told_how_to_go() {
    let mut known = satisfied(service());
    let inside = Tally::Some { count: 1, exact: true, samples: vec!["web/one".into()] };
    known.tallies.insert(finalizer(), inside);
    let message = denied(&request("DELETE", &namespace_id("web"), "n"), &known);
    assert!(message.contains("in this very namespace"), "{message}");
}

#[test]
fn case_04_a_critical_service_stays_while_its_provider_is_there_by_uid() {
    let itself = request("DELETE", &service().id(), "cs");
    let known = satisfied(service());
    let message = denied(&itself, &known);
    assert!(message.contains("its provider deployments.apps web/server remains"), "{message}");
    assert!(message.contains("spec.onDelete to Release"), "{message}");
    // (a) it was released
    allowed(&itself, &satisfied(Service { releases: true, ..service() }));
    // (b) the provider was made anew
    let mut anew = satisfied(service());
    anew.objects.insert(provider(), present("u2"));
    allowed(&itself, &anew);
    anew.services_proven = false;
    assert_eq!(decided(&itself, &anew), Decision::Prove(BTreeSet::from([Question::Services])));
    // It is gone.
    anew.services_proven = true;
    anew.objects.insert(provider(), Sight::Absent);
    allowed(&itself, &anew);
    // One that was never seen and is there now is protected.
    denied(&itself, &satisfied(Service { recorded: String::new(), ..service() }));
    // One that is going and was released protects nothing.
    let released = Service { releases: true, terminating: true, ..service() };
    let mut known = satisfied(released);
    known.tallies.insert(finalizer(), some(1));
    allowed(&request("DELETE", &provider(), "u1"), &known);
}

#[test]
fn case_05_a_pinned_provider_is_one_incarnation() {
    let mut known = satisfied(Service { pin: "u1".into(), ..service() });
    known.tallies.insert(finalizer(), some(1));
    denied(&request("DELETE", &provider(), "u1"), &known);
    allowed(&request("DELETE", &provider(), "u2"), &known);
}

#[test]
fn case_06_unknown_is_never_satisfied() {
    let delete = request("DELETE", &provider(), "u1");
    let mut known = satisfied(service());
    known.tallies.insert(finalizer(), Tally::Unknown("DiscoveryFailed: group my.group".into()));
    let message = denied(&delete, &known);
    assert!(message.contains("cannot be told: DiscoveryFailed: group my.group"), "{message}");
    let mut known = satisfied(service());
    known.objects.insert(definition(), Sight::Unknown("timed out".into()));
    denied(&delete, &known);
    let unreadable = Criterion::Unreadable("a later version's".into());
    denied(&delete, &satisfied(Service { criteria: vec![unreadable], ..service() }));
}

#[test]
fn case_09_what_caches_do_not_see_must_be_proven() {
    let delete = request("DELETE", &provider(), "u1");
    let mut known = satisfied(service());
    known.tallies.insert(finalizer(), Tally::NotSeen);
    known.objects.remove(&definition());
    let open = [Question::Object(definition()), Question::Tally(finalizer())];
    assert_eq!(decided(&delete, &known), Decision::Prove(BTreeSet::from(open)));
    // One that stands against it is enough to refuse, whatever else is not known.
    known.objects.insert(definition(), present("d"));
    denied(&delete, &known);
}

pub(super) fn latched(expires: SignedDuration) -> Service {
    let at = |time| Time(time);
    let latch = Latch {
        uid: "u1".into(),
        since: at(now()),
        expires: at(now().checked_add(expires).unwrap()),
        late: vec![],
        late_count: 0,
    };
    Service { latch: Some(latch), ..service() }
}

pub(super) fn consumer(finalizers: &[&str]) -> Request {
    let mut review = review("CREATE", &id("my.group", "cools", "a", "new"), "");
    review["object"]["metadata"]["finalizers"] = json!(finalizers);
    Request::read(&review).unwrap()
}

#[test]
fn case_10_nobody_comes_to_need_a_provider_that_is_going() {
    let known = satisfied(latched(SignedDuration::from_secs(60)));
    let message = denied(&consumer(&["my.group/clean"]), &known);
    assert!(message.contains("would need deployments.apps web/server"), "{message}");
    allowed(&consumer(&["another/one"]), &known);
    allowed(&consumer(&["my.group/clean"]), &satisfied(service()));
    // Taking a finalizer off is never refused.
    let mut update = review("UPDATE", &id("my.group", "cools", "a", "new"), "u");
    update["oldObject"]["metadata"]["finalizers"] = json!(["my.group/clean", "x"]);
    update["object"]["metadata"]["finalizers"] = json!(["my.group/clean"]);
    allowed(&Request::read(&update).unwrap(), &known);
    update["oldObject"]["metadata"]["finalizers"] = json!([]);
    denied(&Request::read(&update).unwrap(), &known);
    let made = request("CREATE", &definition(), "");
    denied(&made, &known);
}

#[test]
fn case_12_scaling_to_zero_is_guarded_where_asked_for() {
    let mut scale = review("UPDATE", &provider(), "u1");
    scale["subResource"] = json!("scale");
    scale["oldObject"]["spec"] = json!({ "replicas": 3 });
    scale["object"]["spec"] = json!({});
    let to_zero = Request::read(&scale).unwrap();
    let mut known = satisfied(Service { guards_scale: true, ..service() });
    known.tallies.insert(finalizer(), some(1));
    denied(&to_zero, &known);
    scale["object"]["spec"] = json!({ "replicas": 1 });
    allowed(&Request::read(&scale).unwrap(), &known);
    let mut unguarded = satisfied(service());
    unguarded.tallies.insert(finalizer(), some(1));
    allowed(&to_zero, &unguarded);
    allowed(&to_zero, &satisfied(Service { guards_scale: true, ..service() }));
}

#[test]
fn cases_13_14_15_dry_runs_orphans_and_haste_change_no_decision() {
    let mut known = satisfied(service());
    known.tallies.insert(finalizer(), some(1));
    let mut delete = review("DELETE", &provider(), "u1");
    let plain = denied(&Request::read(&delete).unwrap(), &known);
    delete["dryRun"] = json!(true);
    assert_eq!(denied(&Request::read(&delete).unwrap(), &known), plain);
    delete["options"] = json!({ "gracePeriodSeconds": 0 });
    assert_eq!(denied(&Request::read(&delete).unwrap(), &known), plain);
    delete["options"] = json!({ "propagationPolicy": "Orphan" });
    assert_eq!(denied(&Request::read(&delete).unwrap(), &known), plain);
    let warnings = allowed(&Request::read(&delete).unwrap(), &satisfied(service()));
    assert!(warnings[0].contains("Orphan"), "{warnings:?}");
}

#[test]
fn case_16_a_denial_is_a_403_with_a_cause_for_each_unmet_criterion() {
    let mut known = satisfied(service());
    known.tallies.insert(finalizer(), some(7));
    known.objects.insert(definition(), present("d"));
    let Decision::Deny(denial) = decided(&request("DELETE", &provider(), "u1"), &known) else {
        panic!("it passed");
    };
    let status = denial.status();
    assert_eq!((&status["code"], &status["reason"]), (&json!(403), &json!("Forbidden")));
    let causes = status["details"]["causes"].as_array().unwrap();
    let reasons: Vec<_> = causes.iter().map(|cause| cause["reason"].as_str().unwrap()).collect();
    assert_eq!(reasons, ["FinalizerRemains", "ResourceRemains"]);
    assert_eq!(causes[0]["field"], "criticalservices/for-server");
    assert!(status["details"]["retryAfterSeconds"].is_number());
}

#[test]
fn case_17_rules_name_the_very_objects_and_exempt_our_own_namespace() {
    let place = Place { own_namespace: Some("cleat".into()), ..Place::default() };
    let none = configuration(&[], &place, now());
    assert_eq!(none.webhooks, Some(vec![]));
    let made = configuration(&[Arc::new(service())], &place, now()).webhooks.unwrap();
    let names: Vec<&str> = made.iter().map(|hook| hook.name.split('.').next().unwrap()).collect();
    assert_eq!(names, ["provider-0", "holds-providers-0", "itself-0", "definition"]);
    for hook in &made {
        assert_eq!(hook.failure_policy.as_deref(), Some("Fail"));
        assert_eq!(hook.side_effects, "None");
        let rules = hook.rules.as_ref().unwrap();
        let wide = |all: &Option<Vec<String>>| all.iter().flatten().any(|one| one == "*");
        assert!(!rules.iter().any(|rule| wide(&rule.api_groups) || wide(&rule.resources)));
        assert!(rules.iter().all(|rule| rule.operations == Some(vec!["DELETE".to_owned()])));
        let selector = serde_json::to_value(&hook.namespace_selector).unwrap();
        assert_eq!(selector["matchExpressions"][0]["values"], json!(["cleat"]));
        assert_eq!(selector["matchExpressions"][0]["operator"], "NotIn");
    }
    let condition = &made[0].match_conditions.as_ref().unwrap()[0].expression;
    assert!(condition.ends_with("in ['web/server']"), "{condition}");
    // Those of other operations come with what asks for them, and go with it.
    let more = Service { guards_scale: true, ..latched(SignedDuration::from_secs(9)) };
    let made = configuration(&[Arc::new(more)], &place, now()).webhooks.unwrap();
    let names: Vec<&str> = made.iter().map(|hook| hook.name.split('.').next().unwrap()).collect();
    let expected = [
        "provider-0",
        "scale-0",
        "holds-providers-0",
        "itself-0",
        "definition",
        "latch-0",
        "latch-1",
    ];
    assert_eq!(names, expected);
}

#[test]
fn a_thousand_providers_are_split_into_conditions_of_bounded_length() {
    let services: Vec<_> = (0..1000)
        .map(|number| {
            let provider = Id { name: format!("server-{number}"), ..provider() };
            Arc::new(Service { name: format!("s{number}"), provider, ..service() })
        })
        .collect();
    let made = configuration(&services, &Place::default(), now()).webhooks.unwrap();
    assert_eq!(made.len(), 4 + 1 + 4 + 1);
    for condition in made.iter().filter_map(|hook| hook.match_conditions.as_ref()).flatten() {
        assert!(condition.expression.len() < 90_000);
    }
}

#[test]
fn case_18_the_definition_of_critical_services_is_guarded() {
    let ours = id(
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        "",
        "criticalservices.protection.open-cluster-management.io",
    );
    let delete = request("DELETE", &ours, "d");
    let message = denied(&delete, &satisfied(service()));
    assert!(message.contains("for-server"), "{message}");
    let nothing = Knowledge { services_proven: true, ..Knowledge::default() };
    allowed(&delete, &nothing);
    let unproven = Knowledge::default();
    assert_eq!(decided(&delete, &unproven), Decision::Prove(BTreeSet::from([Question::Services])));
}

#[test]
fn case_20_nobody_is_exempt_and_controllers_are_spoken_to_as_such() {
    let mut known = satisfied(service());
    known.tallies.insert(finalizer(), some(1));
    let mut delete = review("DELETE", &provider(), "u1");
    for user in ["system:admin", "system:serviceaccount:kube-system:generic-garbage-collector"] {
        delete["userInfo"]["username"] = json!(user);
        let message = denied(&Request::read(&delete).unwrap(), &known);
        assert_eq!(message.contains("garbage collector repeats"), user.ends_with("collector"));
    }
}

#[test]
fn case_21_one_of_a_collection_is_judged_by_its_own_name() {
    let mut known = satisfied(service());
    known.tallies.insert(finalizer(), some(1));
    let mut delete = review("DELETE", &provider(), "u1");
    delete.as_object_mut().unwrap().remove("name");
    let message = denied(&Request::read(&delete).unwrap(), &known);
    assert!(message.contains("collection"), "{message}");
}

#[test]
fn case_22_a_latch_opens_by_itself() {
    let known = satisfied(latched(SignedDuration::from_secs(-1)));
    allowed(&consumer(&["my.group/clean"]), &known);
}

#[test]
fn case_23_services_that_wait_for_each_other_are_found() {
    let of = |name: &str, provider: &Id, waits: Vec<Id>| {
        let criteria = waits.into_iter().map(Criterion::Object).collect();
        let (name, provider) = (name.to_string(), provider.clone());
        Arc::new(Service { name, provider, criteria, ..Service::default() })
    };
    let [a, b, c] = ["a", "b", "c"].map(|name| id("apps", "deployments", name, name));
    let all = [
        of("a", &a, vec![b.clone()]),
        of("b", &b, vec![namespace_id("a")]),
        of("c", &c, vec![a.clone()]),
        of("d", &id("", "services", "d", "d"), vec![super::super::service::service_id("d")]),
    ];
    let found = cycles(&all);
    let names: Vec<&str> = found.keys().map(String::as_str).collect();
    assert_eq!(names, ["a", "b", "d"]);
    assert_eq!(found["a"], ["a", "b"]);
    assert_eq!(found["d"], ["d"]);
}

#[test]
fn what_is_going_already_is_not_held_up() {
    let mut delete = review("DELETE", &provider(), "u1");
    delete["oldObject"]["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let mut known = satisfied(service());
    known.tallies.insert(finalizer(), some(1));
    assert_eq!(allowed(&Request::read(&delete).unwrap(), &known), [""; 0]);
}

#[test]
fn a_review_without_the_old_object_is_not_understood() {
    let mut delete = review("DELETE", &provider(), "u1");
    delete["oldObject"] = Value::Null;
    assert_eq!(Request::read(&delete), None);
    assert_eq!(Request::read(&json!(null)), None);
    assert_eq!(Request::read(&json!({ "operation": "CONNECT" })), None);
}

#[test]
fn a_critical_service_is_read_as_written() {
    let object: CriticalService = serde_json::from_value(json!({
        "metadata": { "name": "for-server", "uid": "cs" },
        "spec": {
            "provider": { "group": "apps", "resource": "deployments", "namespace": "web",
                          "name": "server" },
            "criteria": [
                { "type": "Finalizer", "finalizer": { "group": "my.group", "resource": "cools",
                  "finalizerName": "my.group/clean" } },
                { "type": "SpecificResource", "specificResource": {
                  "group": "apiextensions.k8s.io", "resource": "customresourcedefinitions",
                  "name": "cools.my.group" } },
                { "type": "AnyInstance", "anyInstance": { "resource": "pods" } },
                { "type": "Later", "later": {} },
            ],
            "onDelete": "Release",
            "guard": ["ScaleToZero"],
        },
        "status": { "provider": { "phase": "Present", "uid": "u1" } },
    }))
    .unwrap();
    let read = Service::read(&object);
    assert_eq!((read.provider.clone(), &*read.recorded), (provider(), "u1"));
    assert!(read.releases && read.guards_scale && !read.terminating);
    assert_eq!(read.criteria[..2], service().criteria);
    let any = Criterion::Any { group: String::new(), resource: "pods".into() };
    assert_eq!(read.criteria[2], any);
    assert_eq!(read.criteria[3].kind(), CriterionType::Unknown);
}

#[test]
fn whoever_is_concerned_is_where_services_are_looked_for() {
    let about = |name: &str, provider: Id| {
        Arc::new(Service { name: name.into(), provider, ..latched(SignedDuration::from_secs(60)) })
    };
    let pod = id("", "pods", "web", "server");
    let all = [
        about("for-server", provider()),
        about("for-pod", pod.clone()),
        about("for-engine", id("my.group", "engines", "web", "engine")),
        about("for-namespace", namespace_id("web")),
        about("for-service", service().id()),
        about("for-definition", definition()),
        about("elsewhere", id("apps", "deployments", "other", "another")),
    ];
    let mut evict = review("CREATE", &pod, "");
    evict["subResource"] = json!("eviction");
    let engines = id("apiextensions.k8s.io", "customresourcedefinitions", "", "engines.my.group");
    let ours = Id { name: DEFINITION.to_owned(), ..engines.clone() };
    let mut found = BTreeSet::new();
    for request in [
        Request::read(&evict).unwrap(),
        consumer(&["my.group/clean"]),
        request("DELETE", &provider(), "u1"),
        request("DELETE", &pod, "u1"),
        request("DELETE", &namespace_id("web"), "u1"),
        request("DELETE", &service().id(), "u1"),
        request("DELETE", &definition(), "u1"),
        request("DELETE", &engines, "u1"),
        request("DELETE", &ours, "u1"),
    ] {
        let places = whereabouts(&request);
        let is_near = |one: &&Arc<Service>| match &places {
            Some(places) => places.iter().any(|place| place.has(one)),
            None => true,
        };
        let near: Vec<Arc<Service>> = all.iter().filter(is_near).cloned().collect();
        let names = |services: &[Arc<Service>]| -> Vec<String> {
            let concerned = concerned(&request, services, now());
            concerned.iter().map(|(service, _)| service.name.clone()).collect()
        };
        assert_eq!(names(&near), names(&all), "{request:?}");
        assert!(!names(&all).is_empty(), "{request:?}");
        found.extend(places.into_iter().flatten().map(|place| place.field_selector()));
    }
    let expected = ["metadata.name=for-server", "spec.provider.name=cools.my.group"];
    assert!(found.contains(expected[0]) && !found.contains(expected[1]), "{found:?}");
    assert!(found.contains("spec.provider.namespace=web"), "{found:?}");
    let odd = Whereabouts::Named("a=b,c\\d".to_owned()).field_selector();
    assert_eq!(odd, "metadata.name=a\\=b\\,c\\\\d");
}
