//! What is said: denials that are understood again, and statuses that do not flap.

use std::borrow::ToOwned as _;
use std::format;
use std::string::{String, ToString as _};
use std::vec;
use std::vec::Vec;

use cleat_api::criticalservice::{CriticalService, CriticalServiceStatus, Denial, Phase};
use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::protection::denial::{self, Awaited, Clause, Hold, Protected};
use crate::protection::{Probe, Seen, report};
use crate::write::{Refusal, Write};

fn refused(holds: Vec<Hold>) -> denial::Denial {
    denial::Denial { request: request("DELETE", &provider(), "u1"), holds }
}

fn understood(denial: &denial::Denial) -> Protected {
    let name = "provider-0.deployments.apps.protection.open-cluster-management.io";
    let message = format!("admission webhook {name:?} denied the request: {}", denial.message());
    assert!(message.len() <= 1024, "{} bytes", message.len());
    Protected::of(&Refusal { code: 403, reason: "Forbidden".into(), message }).unwrap()
}

#[test]
fn whoever_is_refused_understands_who_and_what() {
    let remain = |criterion: Criterion, count: usize| Clause::Remain {
        criterion,
        count,
        exact: true,
        samples: vec!["a/one".into(), "a/two".into()],
    };
    let any = Criterion::Any { group: String::new(), resource: "pods".into() };
    let denial = refused(vec![
        Hold {
            service: "for-server".into(),
            clauses: vec![
                Clause::Unknown("pods".into(), "odd; 1 secrets remain. 2 things remain".into()),
                remain(finalizer(), 7),
                Clause::Remains(definition()),
            ],
        },
        Hold {
            service: "other".into(),
            clauses: vec![remain(any, 1), Clause::Provider(provider())],
        },
    ]);
    let understood = understood(&denial);
    assert_eq!(understood.services, ["for-server", "other"]);
    let kind = |group: &str, resource: &str| Awaited::Kind {
        group: group.into(),
        resource: resource.into(),
    };
    let expected = [
        kind("my.group", "cools"),
        Awaited::Object(definition()),
        kind("", "pods"),
        Awaited::Object(provider()),
    ];
    assert_eq!(understood.awaited, expected);
    assert_eq!(understood.to_string(), "ProtectedBy for-server, other");
    assert!(understood.awaited[0].is(&id("my.group", "cools", "x", "y")));
}

#[test]
fn words_of_others_are_not_taken_for_ours() {
    for message in [
        "admission webhook \"x\" denied the request: no",
        "somebody said: ProtectedBy CriticalService a: pods x remains. No",
        "ProtectedBy CriticalService ",
        "ProtectedBy CriticalService a b: c",
    ] {
        assert_eq!(Protected::parse(message), None, "{message}");
    }
    let conflict = Refusal {
        code: 409,
        reason: "Conflict".into(),
        message: "ProtectedBy CriticalService a: pods x remains. No".into(),
    };
    assert_eq!(Protected::of(&conflict), None);
}

#[test]
fn a_denial_reads_well() {
    let clauses = vec![
        Clause::Remain {
            criterion: finalizer(),
            count: 3,
            exact: true,
            samples: vec!["a/one".into(), "a/two".into()],
        },
        Clause::Remains(definition()),
    ];
    let denial = refused(vec![Hold { service: "for-server".into(), clauses }]);
    assert_eq!(
        denial.message(),
        "ProtectedBy CriticalService for-server: 3 cools.my.group with finalizer my.group/clean \
         remain (a/one, a/two, …); customresourcedefinitions.apiextensions.k8s.io cools.my.group \
         remains. Delete these first; this can be repeated at any time."
    );
}

proptest! {
    #[test]
    fn no_message_is_too_long_or_misunderstood(
        names in prop::collection::vec("[a-z]{1,253}", 1..20),
        finalizers in prop::collection::vec("[a-z]{1,60}", 1..20),
    ) {
        let holds = names.iter().map(|name| Hold {
            service: name.clone(),
            clauses: finalizers.iter().map(|finalizer| Clause::Remain {
                criterion: Criterion::Finalizer {
                    group: "g.x".into(), resource: "things".into(), finalizer: finalizer.clone(),
                },
                count: 9,
                exact: finalizer.len() % 2 == 0,
                samples: finalizers.clone(),
            }).collect(),
        }).collect();
        let understood = understood(&refused(holds));
        prop_assert!(understood.services.iter().all(|name| names.contains(name)));
        let things = Awaited::Kind { group: "g.x".into(), resource: "things".into() };
        prop_assert!(understood.awaited.iter().all(|one| *one == things));
    }

    #[test]
    fn nothing_that_is_parsed_panics(text in ".{0,200}", more in "[a-z.:; ()0-9/]{0,200}") {
        Protected::parse(&text);
        Protected::parse(&format!("ProtectedBy CriticalService {more}"));
        Protected::parse(&format!("ProtectedBy CriticalService a: {more} remain"));
    }
}

fn object(status: Option<CriticalServiceStatus>) -> CriticalService {
    let mut object: CriticalService = serde_json::from_value(json!({
        "metadata": { "name": "for-server", "uid": "cs", "resourceVersion": "7", "generation": 1 },
        "spec": {
            "provider": { "group": "apps", "resource": "deployments", "namespace": "web",
                          "name": "server" },
            "criteria": [{ "type": "Finalizer", "finalizer": { "group": "my.group",
                "resource": "cools", "finalizerName": "my.group/clean" } }],
        },
    }))
    .unwrap();
    object.status = status;
    object
}

pub(super) fn seen(provider: Sight, tally: Tally) -> Seen {
    let mut seen = Seen { probe: Probe::Refused, ..Seen::default() };
    seen.known.objects.insert(super::provider(), provider);
    seen.known.tallies.insert(finalizer(), tally);
    seen
}

/// The status after a pass at a second, and that another pass there has nothing to add.
pub(super) fn after(
    status: Option<CriticalServiceStatus>,
    seen: &Seen,
    second: i64,
) -> CriticalServiceStatus {
    let at = Timestamp::from_second(second).unwrap();
    let action = report(&object(status.clone()), seen, at);
    let told = match action {
        None => status.unwrap(),
        Some(action) => {
            let Write::MergeStatus(patch) = action.write else { panic!("not a status") };
            assert_eq!(patch["metadata"], json!({ "uid": "cs", "resourceVersion": "7" }));
            serde_json::from_value(patched(&patch["status"])).unwrap()
        }
    };
    let later = Timestamp::from_second(second + 5).unwrap();
    assert_eq!(report(&object(Some(told.clone())), seen, later), None, "it flaps");
    told
}

pub(super) fn condition(status: &CriticalServiceStatus, kind: &str) -> String {
    let found = status.conditions.iter().find(|condition| condition.type_ == kind);
    found.map(|found| format!("{} {}", found.status, found.reason)).unwrap_or_default()
}

#[test]
fn the_life_of_a_critical_service_is_told() {
    let waiting = after(None, &seen(Sight::Absent, Tally::None), 10);
    assert_eq!(waiting.provider.as_ref().unwrap().phase, Phase::Waiting);
    assert_eq!(condition(&waiting, "Effective"), "Unknown Waiting");
    assert!(waiting.latch.is_none());

    let there = after(Some(waiting), &seen(present("u1"), some(2)), 20);
    assert_eq!(there.provider.as_ref().unwrap().uid, "u1");
    assert_eq!(there.criteria[0].count, 2);
    assert_eq!(condition(&there, "Effective"), "True RefusedInDryRun");
    assert_eq!(condition(&there, "Needed"), "True CriteriaUnsatisfied");

    let blind = seen(Sight::Unknown("cut off".into()), Tally::Unknown("cut off".into()));
    let blind = after(Some(there.clone()), &blind, 30);
    assert_eq!(blind.provider, there.provider);
    assert_eq!(condition(&blind, "Needed"), "True CriteriaUnsatisfied");

    let anew = after(Some(blind), &seen(present("u2"), Tally::None), 40);
    let provider = anew.provider.clone().unwrap();
    assert_eq!((&*provider.uid, &*provider.replaced), ("u2", "u1"));

    let gone = after(Some(anew), &seen(Sight::Absent, Tally::None), 50);
    let latch = gone.latch.clone().unwrap();
    assert_eq!((&*latch.uid, latch.late.len()), ("u2", 0));
    assert_eq!(latch.expires.0.duration_since(latch.since.0), SignedDuration::from_hours(1));
    assert_eq!(condition(&gone, "Stranded"), "");

    let late = after(Some(gone), &seen(Sight::Absent, some(1)), 60);
    assert_eq!(late.latch.as_ref().unwrap().late.len(), 2);
    assert_eq!(condition(&late, "Stranded"), "True CameTooLate");
    assert_eq!(late.latch.as_ref().unwrap().since, latch.since);

    let back = after(Some(late), &seen(present("u3"), some(1)), 70);
    assert!(back.latch.is_none());
    assert_eq!(condition(&back, "Stranded"), "");
}

#[test]
fn protection_that_does_not_work_is_told() {
    for (probe, expected) in [
        (Probe::NotAsked, "False NotAsked"),
        (Probe::Unknown("no".into()), "Unknown CannotTell"),
        (Probe::Unprotectable("aggregated".into()), "False Unprotectable"),
        (Probe::Seen, "True SeenInDryRun"),
        (Probe::NotMade, "Unknown Waiting"),
    ] {
        let seen = Seen { probe, ..seen(present("u1"), Tally::None) };
        assert_eq!(condition(&after(None, &seen, 10), "Effective"), expected);
    }
}

#[test]
fn a_namespace_with_its_own_consumers_and_a_circle_are_told() {
    let inside = Tally::Some { count: 1, exact: true, samples: vec!["web/one".into()] };
    let seen = Seen { cycle: vec!["for-server".into()], ..seen(present("u1"), inside) };
    let told = after(None, &seen, 10);
    assert_eq!(condition(&told, "SelfContained"), "True SameNamespace");
    assert_eq!(condition(&told, "Cyclic"), "True WaitsForItself");
}

#[test]
fn who_asks_again_and_again_is_told_of_once_a_minute() {
    let denial = |second: i64, user: &str| Denial {
        time: Time(Timestamp::from_second(second).unwrap()),
        user: user.to_owned(),
        operation: "DELETE".to_owned(),
        object: "deployments.apps web/server".to_owned(),
    };
    let with = |denials| Seen { denials, ..seen(present("u1"), some(1)) };
    let one = after(None, &with(vec![denial(10, "a")]), 10);
    let again = after(Some(one.clone()), &with(vec![denial(10, "a"), denial(40, "a")]), 40);
    assert_eq!(again.denials, one.denials);
    let later = after(Some(again), &with(vec![denial(40, "a"), denial(80, "a")]), 80);
    assert_eq!(later.denials, [denial(80, "a")]);
    let many = (0..30).map(|n| denial(90 + n, &format!("u{n}"))).collect();
    let many = after(Some(later), &with(many), 200);
    assert_eq!(many.denials.len(), 10);
    assert_eq!(many.denials[0], denial(119, "u29"));
}
