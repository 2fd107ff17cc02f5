//! What once went wrong, one test for each.

use alloc::sync::Arc;
use std::collections::BTreeSet;
use std::string::{String, ToString};
use std::vec;
use std::vec::Vec;

use cleat_api::criticalservice::{Denial, Phase};
use jiff::SignedDuration;
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{ValidatingWebhook, WebhookClientConfig};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;

use super::cases::{consumer, latched};
use super::told::{after, condition, seen};
use super::*;
use crate::protection::cycles::cycles;
use crate::protection::denial::Protected;
use crate::protection::rules::{self, Place, configuration};
use crate::protection::{Question, Seen, bundle, lenient, namespace_id};

fn asked(questions: impl IntoIterator<Item = Question>) -> Decision {
    Decision::Prove(questions.into_iter().collect::<BTreeSet<_>>())
}

#[test]
fn a_criterion_that_came_just_now_was_not_heeded() {
    let unproven = Knowledge { services_proven: false, ..satisfied(service()) };
    for id in [provider(), namespace_id("web")] {
        let delete = request("DELETE", &id, "u1");
        assert_eq!(decided(&delete, &unproven), asked([Question::Services]));
        // It costs no round of its own.
        let mut open = unproven.clone();
        open.tallies.remove(&finalizer());
        let both = [Question::Services, Question::Tally(finalizer())];
        assert_eq!(decided(&delete, &open), asked(both));
        allowed(&delete, &satisfied(service()));
    }
}

#[test]
fn a_critical_service_went_because_a_cache_remembered_the_provider_before() {
    let itself = request("DELETE", &service().id(), "cs");
    // Another replica has the new incarnation on record; the cache has the old one.
    let mut known = satisfied(Service { recorded: "u2".into(), ..service() });
    known.objects_proven.clear();
    assert_eq!(decided(&itself, &known), asked([Question::Object(provider())]));
    let mut known = satisfied(Service { pin: "u2".into(), ..service() });
    known.objects_proven.clear();
    assert_eq!(decided(&itself, &known), asked([Question::Object(provider())]));
    known.objects.insert(provider(), present("u2"));
    known.objects_proven.insert(provider());
    denied(&itself, &known);
}

/// A provider that is itself a custom resource.
fn custom() -> Service {
    let provider = id("my.group", "engines", "web", "server");
    Service { provider, criteria: vec![finalizer()], ..service() }
}

fn definition_of_custom() -> Id {
    id("apiextensions.k8s.io", "customresourcedefinitions", "", "engines.my.group")
}

#[test]
fn a_provider_was_lost_with_the_definition_of_its_kind() {
    let delete = request("DELETE", &definition_of_custom(), "d");
    let mut known = satisfied(custom());
    known.objects.insert(custom().provider, present("u1"));
    allowed(&delete, &known);
    known.tallies.insert(finalizer(), some(1));
    denied(&delete, &known);
    known.objects.insert(custom().provider, Sight::NotSeen);
    assert_eq!(decided(&delete, &known), asked([Question::Object(custom().provider)]));
    let made = configuration(&[Arc::new(custom())], &Place::default(), now()).webhooks.unwrap();
    let hook = made.iter().find(|hook| hook.name.starts_with("defines-providers-0.")).unwrap();
    let condition = &hook.match_conditions.as_ref().unwrap()[0].expression;
    assert_eq!(condition, "oldObject.metadata.name in ['engines.my.group']");
}

#[test]
fn a_definition_that_is_a_criterion_of_its_own_provider_would_hold_both_for_ever() {
    let criteria = vec![finalizer(), Criterion::Object(definition_of_custom())];
    let both = Service { criteria, ..custom() };
    let mut known = satisfied(both.clone());
    known.objects.insert(both.provider.clone(), present("u1"));
    known.objects.insert(definition_of_custom(), present("d"));
    let delete = request("DELETE", &definition_of_custom(), "d");
    allowed(&delete, &known);
    known.tallies.insert(finalizer(), some(1));
    denied(&delete, &known);
    assert!(cycles(&[Arc::new(both)]).is_empty());
}

#[test]
fn a_pod_was_lost_by_its_eviction() {
    let pod = id("", "pods", "web", "server");
    let service = Service { provider: pod.clone(), pin: "u1".into(), ..service() };
    let mut evict = review("CREATE", &pod, "");
    evict["subResource"] = json!("eviction");
    let mut known = satisfied(service.clone());
    known.tallies.insert(finalizer(), some(1));
    denied(&Request::read(&evict).unwrap(), &known);
    evict["object"]["deleteOptions"] = json!({ "preconditions": { "uid": "u2" } });
    allowed(&Request::read(&evict).unwrap(), &known);
    evict["subResource"] = json!("binding");
    allowed(&Request::read(&evict).unwrap(), &known);
    let made = configuration(&[Arc::new(service)], &Place::default(), now()).webhooks.unwrap();
    let hook = made.iter().find(|hook| hook.name.starts_with("evicted-0.")).unwrap();
    let rule = &hook.rules.as_ref().unwrap()[0];
    assert_eq!(rule.resources, Some(vec!["pods/eviction".to_string()]));
    assert_eq!(rule.operations, Some(vec!["CREATE".to_string()]));
}

#[test]
fn the_latch_stayed_open_while_the_namespace_of_the_provider_went() {
    let there = after(None, &seen(present("u1"), Tally::None), 10);
    let mut going = seen(present("u1"), Tally::None);
    let terminating = Sight::Present { uid: "n".into(), terminating: true };
    going.known.objects.insert(namespace_id("web"), terminating);
    let told = after(Some(there.clone()), &going, 20);
    assert_eq!(told.provider.as_ref().unwrap().phase, Phase::Terminating);
    assert_eq!(told.latch.as_ref().unwrap().uid, "u1");
    assert_eq!(condition(&told, "Effective"), "Unknown Waiting");
    // Another namespace of that name.
    going.known.objects.insert(namespace_id("web"), present("m"));
    assert!(after(Some(told), &going, 30).latch.is_none());
}

#[test]
fn only_the_first_who_came_too_late_was_on_record() {
    let gone = after(None, &seen(present("u1"), Tally::None), 10);
    let gone = after(Some(gone), &seen(Sight::Absent, Tally::None), 20);
    let late = |count: usize, names: &[&str]| {
        let samples = names.iter().map(ToString::to_string).collect();
        seen(Sight::Absent, Tally::Some { count, exact: true, samples })
    };
    let told = after(Some(gone), &late(7, &["a/1", "a/2", "a/3", "a/4", "a/5"]), 30);
    let latch = told.latch.clone().unwrap();
    assert_eq!((latch.late.len(), latch.late_count), (5, 7));
    let stranded = told.conditions.iter().find(|one| one.type_ == "Stranded").unwrap();
    assert!(stranded.message.contains("; and 2 more; bring"), "{}", stranded.message);
    // Those who were there stay on record when others are seen.
    let told = after(Some(told), &late(2, &["a/6", "a/7"]), 40);
    let latch = told.latch.unwrap();
    assert_eq!((latch.late.len(), latch.late_count), (7, 7));
}

#[test]
fn a_denial_left_out_what_no_cache_could_tell() {
    let delete = request("DELETE", &provider(), "u1");
    let mut known = satisfied(service());
    known.objects.insert(definition(), present("d"));
    known.tallies.insert(finalizer(), Tally::NotReady);
    assert_eq!(decided(&delete, &known), asked([Question::Tally(finalizer())]));
    let one = Tally::Some { count: 1, exact: false, samples: vec!["a/one".into()] };
    known.tallies.insert(finalizer(), one);
    let message = denied(&delete, &known);
    assert!(message.contains("at least 1 cools.my.group with finalizer"), "{message}");
    assert!(message.contains("remains (a/one, …); customresourcedefinitions."), "{message}");
    let understood = crate::protection::denial::Protected::parse(&message).unwrap();
    assert_eq!(understood.awaited.len(), 2);
}

#[test]
fn a_replica_that_had_not_heard_of_the_latch_let_consumers_in() {
    let create = consumer(&["my.group/clean"]);
    let lagging = Knowledge { services_proven: false, ..satisfied(service()) };
    assert_eq!(decided(&create, &lagging), asked([Question::Services]));
    denied(&create, &satisfied(latched(SignedDuration::from_secs(60))));
}

#[test]
fn one_odd_group_kept_all_others_from_being_told() {
    let place = Place::default();
    let plain = Arc::new(service());
    for group in ["apps/v1", "*", "Apps", ".x", "a..b"] {
        let provider = Id { group: group.into(), ..provider() };
        let criteria = vec![Criterion::Any { group: group.into(), resource: "things".into() }];
        let odd = Service {
            name: "odd".into(),
            provider,
            criteria,
            ..latched(SignedDuration::from_hours(1))
        };
        assert!(rules::unfit(&odd).is_some(), "{group}");
        let both = [Arc::new(odd), Arc::clone(&plain)];
        let made = configuration(&both, &place, now()).webhooks.unwrap();
        let alone = configuration(&both[1..], &place, now()).webhooks.unwrap();
        let names = |hooks: &[ValidatingWebhook]| -> Vec<String> {
            hooks.iter().map(|hook| hook.name.clone()).collect()
        };
        assert_eq!(names(&made), names(&alone));
    }
    // Names of any length and kind are told.
    let long: String = core::iter::repeat_n('x', 250).collect();
    let provider = id(&long, &long, "web", "it's\n");
    let made = configuration(&[Arc::new(Service { provider, ..service() })], &place, now());
    let hook = &made.webhooks.unwrap()[0];
    assert!(hook.name.len() <= 253, "{}", hook.name);
    let condition = &hook.match_conditions.as_ref().unwrap()[0].expression;
    assert!(condition.ends_with(r"in ['web/it\'s\u000a']"), "{condition}");
}

fn believing(authorities: &str) -> ValidatingWebhook {
    let client_config = WebhookClientConfig {
        ca_bundle: Some(ByteString(authorities.as_bytes().to_vec())),
        ..WebhookClientConfig::default()
    };
    ValidatingWebhook { client_config, ..ValidatingWebhook::default() }
}

#[test]
fn replicas_with_authorities_of_their_own_unmade_each_others_work() {
    let pem = |name: &str| {
        std::format!("-----BEGIN CERTIFICATE-----\n{name}\n-----END CERTIFICATE-----\n")
    };
    let share = |ours: &str, live: &[ValidatingWebhook]| {
        let mut wanted = [believing(ours)];
        bundle::share(&mut wanted, live, |one| one.contains("over"));
        wanted
    };
    let (a, b) = (pem("a"), pem("b"));
    let first = share(&a, &[]);
    assert!(bundle::believe(&first, &a) && !bundle::believe(&first, &b));
    let both = share(&b, &first);
    assert!(bundle::believe(&both, &a) && bundle::believe(&both, &b));
    // Neither has anything to change any more.
    assert_eq!((share(&a, &both), share(&b, &both)), (both.clone(), both.clone()));
    // What is over goes, and what is made at every start does not fill it for ever.
    let over = [believing(&(pem("over") + &a))];
    assert!(!bundle::believe(&share(&a, &over), &pem("over")));
    let mut live = both.to_vec();
    for number in 0..100 {
        live = share(&pem(&number.to_string()), &live).to_vec();
        assert!(bundle::believe(&live, &pem(&number.to_string())));
    }
    let ByteString(kept) = live[0].client_config.ca_bundle.clone().unwrap();
    assert_eq!(bundle::certificates(&String::from_utf8(kept).unwrap()).len(), 16);
}

#[test]
fn a_critical_service_of_a_later_version_protected_nothing() {
    let mut later = json!({
        "metadata": { "name": "for-server", "uid": "cs" },
        "spec": {
            "provider": { "group": "apps", "resource": "deployments", "namespace": "web",
                          "name": "server" },
            "criteria": [
                { "type": "Finalizer", "finalizer": { "group": "my.group", "resource": "cools",
                  "finalizerName": "my.group/clean" } },
                { "type": "Finalizer", "finalizer": "in other words" },
            ],
            "onDelete": "Orphan",
        },
    });
    let read = lenient::read(&later).unwrap();
    assert_eq!((read.provider.clone(), read.releases), (provider(), false));
    assert_eq!(read.criteria[0], finalizer());
    denied(&request("DELETE", &provider(), "u1"), &satisfied(read));
    later["spec"]["criteria"].as_array_mut().unwrap().truncate(1);
    let whole: cleat_api::criticalservice::CriticalService =
        serde_json::from_value(later.clone()).unwrap();
    assert!(!Service::read(&whole).releases);
    later["spec"]["provider"] = json!("elsewhere");
    assert_eq!(lenient::read(&later), None);
}

#[test]
fn a_kind_that_does_not_exist_looked_like_one_without_objects() {
    let satisfied = seen(present("u1"), Tally::None);
    let odd = Seen { undefined: BTreeSet::from([finalizer()]), ..satisfied.clone() };
    let told = after(None, &odd, 10);
    assert_eq!(told.criteria[0].message, "there is no such kind");
    assert_eq!(after(Some(told), &satisfied, 20).criteria[0].message, "");
}

#[test]
fn a_work_never_let_go_of_a_critical_service_that_was_released() {
    let delete = request("DELETE", &provider(), "u1");
    let is_awaited = |service: Service| {
        let mut known = satisfied(service.clone());
        known.tallies.insert(finalizer(), some(1));
        let protected = Protected::parse(&denied(&delete, &known)).unwrap();
        assert!(protected.awaited.len() == 1 + usize::from(service.releases), "{protected:?}");
        protected.awaited.iter().any(|awaited| awaited.is(&service.id()))
    };
    assert!(!is_awaited(service()));
    assert!(is_awaited(Service { releases: true, ..service() }));
    // Nobody is told to delete it where nothing is needed.
    allowed(&delete, &satisfied(Service { releases: true, ..service() }));
}

#[test]
fn more_refusals_than_are_told_of_had_the_status_written_each_time() {
    let round = |second: i64| -> Vec<Denial> {
        let denial = |number: i64| Denial {
            time: Time(Timestamp::from_second(second).unwrap()),
            user: "agent".into(),
            operation: "CREATE".into(),
            object: std::format!("cools.my.group a/{number}"),
        };
        (0..11).map(denial).collect()
    };
    let with = |denials| Seen { denials, ..seen(present("u1"), some(1)) };
    let first = after(None, &with(round(100)), 100);
    assert_eq!(first.denials.len(), 10);
    for second in [102, 120, 159] {
        assert_eq!(after(Some(first.clone()), &with(round(second)), second), first);
    }
    let later = after(Some(first), &with(round(160)), 160);
    assert_eq!(later.denials.iter().filter(|one| one.time.0.as_second() == 160).count(), 10);
}
