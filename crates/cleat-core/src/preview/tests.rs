//! Answers and plans, as people read them.

use std::collections::{BTreeMap, BTreeSet};
use std::string::{String, ToString as _};
use std::vec;
use std::vec::Vec;

use cleat_api::leftoverrecord::LeftObject;
use cleat_api::removalpreview::{PreviewVerdict, PreviewedObject, RemovalPreviewStatus};
use jiff::Timestamp;

use super::*;
use crate::id::Id;
use crate::work::contents::Found;
use crate::work::observed::Owner;
use crate::work::outlook::{Foreseen, Prospect};

fn id(resource: &str, namespace: &str, name: &str) -> Id {
    Id {
        group: String::new(),
        resource: resource.to_string(),
        namespace: namespace.to_string(),
        name: name.to_string(),
    }
}

fn foreseen(id: Id, prospect: Prospect) -> Foreseen {
    Foreseen {
        id,
        version: "v1".to_string(),
        uid: "1".to_string(),
        prospect,
        why: "because".to_string(),
        decided_by: "spec.deleteOption",
        adopted: false,
        finalizers: vec![],
    }
}

fn found(id: Id) -> Found {
    Found {
        id,
        uid: "2".to_string(),
        terminating: false,
        owners: vec![],
        account: None,
        above: BTreeMap::new(),
        labels: BTreeMap::new(),
        finalizers: vec![],
    }
}

#[test]
fn a_namespace_says_what_it_takes_along_that_no_work_lists() {
    let namespace = id("namespaces", "", "shop");
    let ours = id("configmaps", "shop", "prices");
    let theirs = id("secrets", "shop", "till");
    let comes_anyway = id("configmaps", "shop", "kube-root-ca.crt");
    let inquiry = Inquiry {
        inside: Some(Ok([ours.clone(), theirs, comes_anyway].map(found).to_vec())),
        tried: Tried::Accepted { finalizers: vec![] },
        ..Inquiry::default()
    };
    let planned = [namespace.clone(), ours].into();
    let seen = objects(
        "shop",
        vec![foreseen(namespace.clone(), Prospect::Delete)],
        &[(namespace.clone(), inquiry.clone())].into(),
        &planned,
    );
    assert_eq!(seen[0].takes_along, 1);
    assert_eq!(seen[0].effects, ["takes along 1 object (secrets shop/till) that nobody lists"]);
    assert_eq!(seen[0].blockers, [] as [String; 0]);
    // What stays takes nothing along.
    let stays = vec![foreseen(namespace.clone(), Prospect::Orphan)];
    let seen = objects("shop", stays, &[(namespace, inquiry)].into(), &planned);
    assert_eq!((seen[0].takes_along, seen[0].effects.len()), (0, 0));
}

/// What becomes of a namespace with these objects in it, of which the first is planned as well.
fn namespace_with(inside: Vec<Found>) -> PreviewedObject {
    let namespace = id("namespaces", "", "shop");
    let mut planned: BTreeSet<Id> = [namespace.clone()].into();
    planned.extend(inside.first().map(|one| one.id.clone()));
    let inquiry = Inquiry { inside: Some(Ok(inside)), ..Inquiry::default() };
    let all = vec![foreseen(namespace.clone(), Prospect::Delete)];
    objects("shop", all, &[(namespace, inquiry)].into(), &planned).remove(0)
}

fn owned_by(owner: &str, one: Found) -> Found {
    let owner = Owner {
        api_version: "apps/v1".to_string(),
        kind: "Deployment".to_string(),
        name: owner.to_string(),
        uid: owner.to_string(),
        controller: Some(true),
        block_owner_deletion: None,
    };
    Found { owners: vec![owner], ..one }
}

/// Only their number counted: a secret that came for something that went was deleted by the old plan.
#[test]
fn a_plan_was_blind_to_which_objects_go_along() {
    let with = |resource: &str, uid: &str| {
        let web = found(id("deployments", "shop", "web"));
        let other = found(id(resource, "shop", "other"));
        namespace_with(vec![web, Found { uid: uid.to_string(), ..other }])
    };
    let (before, now) = (with("configmaps", "tmp"), with("secrets", "db"));
    assert_eq!((before.takes_along, now.takes_along), (1, 1));
    let [before, now] = [before, now].map(|one| [part("c1", vec![one])]);
    assert_ne!(plan_hash("work a", &before), plan_hash("work a", &now));
    assert_eq!(
        changes(&before, &now, 10),
        [
            "c1: namespaces /shop: takes others along: was: takes along 1 object (configmaps shop/other) \
          that nobody lists; now: takes along 1 object (secrets shop/other) that nobody lists"
        ]
    );
    let again = [part("c1", vec![with("configmaps", "tmp")])];
    assert_eq!(plan_hash("work a", &before), plan_hash("work a", &again));
    // Another of the same name is another.
    let anew = [part("c1", vec![with("configmaps", "another")])];
    assert_ne!(plan_hash("work a", &before), plan_hash("work a", &anew));
}

#[test]
fn a_rollout_of_what_a_work_brought_was_another_plan() {
    let with = |pods: &[&str]| {
        let web = Found { uid: "web".to_string(), ..found(id("deployments", "shop", "web")) };
        let pod = |name: &&str| {
            let pod = Found { uid: (*name).to_string(), ..found(id("pods", "shop", name)) };
            owned_by("web", pod)
        };
        let mut inside = vec![web];
        inside.extend(pods.iter().map(pod));
        namespace_with(inside)
    };
    let (before, now) = (with(&["a", "b"]), with(&["b", "c", "d"]));
    assert_eq!((before.takes_along, before.followed, now.followed), (0, 2, 3));
    assert_eq!(
        before.effects,
        ["takes along 2 objects (pods shop/a, pods shop/b) that others in it own"]
    );
    let [before, now] = [before, now].map(|one| [part("c1", vec![one])]);
    assert_eq!(plan_hash("work a", &before), plan_hash("work a", &now));
}

#[test]
fn a_plan_was_blind_to_which_objects_of_a_kind_go_along() {
    let definition = id("customresourcedefinitions", "", "widgets.example.com");
    let with = |uids: &[&str]| {
        let uids = uids.iter().map(|uid| (*uid).to_string()).collect();
        let instances = Some(Ok(Kindred { count: 2, uids }));
        let inquiry = Inquiry { instances, ..Inquiry::default() };
        let all = vec![foreseen(definition.clone(), Prospect::Delete)];
        let inquiries = [(definition.clone(), inquiry)].into();
        let seen = objects("shop", all, &inquiries, &[definition.clone()].into());
        plan_hash("work a", &[part("c1", seen)])
    };
    assert_eq!(with(&["a", "b"]), with(&["b", "a"]));
    assert_ne!(with(&["a", "b"]), with(&["a", "c"]));
}

#[test]
fn what_an_object_owns_was_not_counted() {
    let web = id("deployments", "shop", "web");
    let owned = ["a", "b", "c"].map(|name| id("pods", "shop", name));
    let planned = owned[0].clone();
    let inquiry = Inquiry { owned: Ok(owned.to_vec()), ..Inquiry::default() };
    let inquiries: BTreeMap<Id, Inquiry> = [(web.clone(), inquiry)].into();
    let followed = |planned: BTreeSet<Id>| {
        let all = vec![foreseen(web.clone(), Prospect::Delete)];
        let seen = objects("shop", all, &inquiries, &planned).remove(0);
        assert_eq!(seen.takes_along, 0);
        assert_eq!(
            seen.effects,
            ["is followed by 2 objects (pods shop/b, pods shop/c) that it owns"]
        );
        seen.followed
    };
    assert_eq!(followed([web.clone(), planned.clone()].into()), 2);
    // The namespace takes them along, and counts them.
    assert_eq!(followed([web.clone(), planned, id("namespaces", "", "shop")].into()), 0);
}

#[test]
fn what_could_not_be_seen_was_taken_for_nothing() {
    let blind = || Err("it is dark".to_string());
    let mut inquiries: BTreeMap<Id, Inquiry> = [
        (id("configmaps", "shop", "prices"), Inquiry::default()),
        (id("deployments", "shop", "web"), Inquiry { owned: blind(), ..Inquiry::default() }),
        (
            id("namespaces", "", "shop"),
            Inquiry {
                inside: Some(Err("it is dark".to_string())),
                owned: blind(),
                ..Inquiry::default()
            },
        ),
        (
            id("customresourcedefinitions", "", "widgets.example.com"),
            Inquiry { instances: Some(Err("no answer".to_string())), ..Inquiry::default() },
        ),
    ]
    .into();
    assert_eq!(
        unseen(&inquiries),
        [
            "what goes along with customresourcedefinitions widgets.example.com cannot be seen: no answer",
            "what goes along with deployments shop/web cannot be seen: it is dark",
            "what goes along with namespaces shop cannot be seen: it is dark",
        ]
    );
    for number in 0..30 {
        let name = std::format!("m{number}");
        inquiries
            .insert(id("pods", "shop", &name), Inquiry { owned: blind(), ..Inquiry::default() });
    }
    let told = unseen(&inquiries);
    assert_eq!(told.len(), 21);
    assert_eq!(told[20], "what goes along with 13 other objects cannot be seen either");
}

#[test]
fn what_stands_in_the_way_is_told() {
    let map = id("configmaps", "shop", "prices");
    let told = |tried: Tried| {
        let inquiry = Inquiry { tried, ..Inquiry::default() };
        let all = vec![foreseen(map.clone(), Prospect::Delete)];
        objects("shop", all, &[(map.clone(), inquiry)].into(), &[map.clone()].into())[0]
            .blockers
            .clone()
    };
    assert_eq!(
        told(Tried::Refused("denied by guard".to_string())),
        ["would be refused: denied by guard"]
    );
    assert_eq!(
        told(Tried::Accepted { finalizers: vec!["x/y".to_string()] }),
        ["waits for finalizer x/y"]
    );
    let absent = "waits for finalizer x/y; nobody serves it".to_string();
    let inquiry = Inquiry {
        tried: Tried::Accepted { finalizers: ["x/y", "x/z"].map(String::from).to_vec() },
        unserved: [("x/y".to_string(), absent.clone())].into(),
        ..Inquiry::default()
    };
    let all = vec![foreseen(map.clone(), Prospect::Delete)];
    let seen = objects("shop", all, &[(map.clone(), inquiry)].into(), &[map.clone()].into());
    assert_eq!(seen[0].blockers, [absent, "waits for finalizer x/z".to_string()]);
    assert_eq!(
        told(Tried::Unknown("no answer".to_string())),
        ["whether it would be accepted is not known: no answer"]
    );
}

#[test]
fn a_namespace_that_would_wait_for_what_is_in_it_looked_free() {
    let namespace = id("namespaces", "", "shop");
    let told = |count: usize| {
        let waits = |number: usize| {
            let line = ("x/y".to_string(), "waits for finalizer x/y; nobody serves it".to_string());
            (id("configmaps", "shop", &std::format!("m{number}")), [line].into())
        };
        let inquiry = Inquiry {
            tried: Tried::Accepted { finalizers: vec![] },
            unserved_along: (0..count).map(waits).collect(),
            ..Inquiry::default()
        };
        let all = vec![foreseen(namespace.clone(), Prospect::Delete)];
        objects("shop", all, &[(namespace.clone(), inquiry)].into(), &BTreeSet::new())
            .remove(0)
            .blockers
    };
    assert_eq!(
        told(1),
        ["configmaps shop/m0 waits for finalizer x/y; nobody serves it".to_string()]
    );
    let many = told(5);
    assert_eq!(many.len(), 4);
    assert_eq!(many[3], "2 other objects that would go along could not go either");
}

#[test]
fn what_would_be_written_says_where_it_differs_and_what_refuses_it() {
    let map = id("configmaps", "shop", "prices");
    let inquiry = Inquiry {
        tried: Tried::Refused("denied by guard".to_string()),
        changes: ["data.a", "data.b", "data.c", "data.d"].map(String::from).to_vec(),
        ..Inquiry::default()
    };
    let told = |prospect: Prospect| {
        let all = vec![foreseen(map.clone(), prospect)];
        let inquiries = [(map.clone(), inquiry.clone())].into();
        let one = objects("shop", all, &inquiries, &BTreeSet::new()).remove(0);
        (one.verdict, one.effects, one.blockers)
    };
    let refused = vec!["would be refused: denied by guard".to_string()];
    let changes = vec!["changes data.a, data.b, data.c and 1 more".to_string()];
    assert_eq!(told(Prospect::Change), (PreviewVerdict::Change, changes, refused.clone()));
    assert_eq!(told(Prospect::Create), (PreviewVerdict::Create, vec![], refused));
    assert_eq!(told(Prospect::Unchanged), (PreviewVerdict::Unchanged, vec![], vec![]));
}

fn part(cluster: &str, objects: Vec<PreviewedObject>) -> Part {
    let answer = RemovalPreviewStatus { objects, ..RemovalPreviewStatus::default() };
    Part { cluster: cluster.to_string(), answer: Some(answer), believed: Believed::default() }
}

fn object(name: &str, uid: &str, verdict: PreviewVerdict) -> PreviewedObject {
    PreviewedObject {
        resource: "configmaps".to_string(),
        namespace: "shop".to_string(),
        name: name.to_string(),
        uid: uid.to_string(),
        verdict,
        ..PreviewedObject::default()
    }
}

#[test]
fn a_plan_is_the_same_until_something_changes_that_matters() {
    let before = [part("c1", vec![object("a", "1", PreviewVerdict::Delete)])];
    let mut obstacle = before.clone();
    if let Some(answer) = &mut obstacle[0].answer {
        answer.objects[0].blockers.push("waits for finalizer x".to_string());
        answer.objects[0].why = "said otherwise".to_string();
        // Pods come and go.
        answer.objects[0].followed = 3;
    }
    assert_eq!(plan_hash("work a", &before), plan_hash("work a", &obstacle));
    assert_ne!(plan_hash("work a", &before), plan_hash("work b", &before));
    let silent = Part { answer: None, ..part("c1", vec![]) };
    let mut fuller = object("a", "1", PreviewVerdict::Delete);
    fuller.takes_along = 2;
    for (other, said) in [
        (vec![part("c1", vec![])], "c1: configmaps shop/a: was: delete uid 1; now: not there"),
        (
            vec![part("c1", vec![object("a", "2", PreviewVerdict::Delete)])],
            "c1: configmaps shop/a: was: delete uid 1; now: delete uid 2",
        ),
        (
            vec![part("c1", vec![object("a", "1", PreviewVerdict::Orphan)])],
            "c1: configmaps shop/a: was: delete uid 1; now: orphan uid 1",
        ),
        (
            vec![part("c1", vec![fuller])],
            "c1: configmaps shop/a: was: delete uid 1; now: delete uid 1 with 2 more",
        ),
        (vec![silent.clone()], "c1: configmaps shop/a: was: delete uid 1; now: not there"),
        (vec![silent], "c1: answered then, and does not now"),
    ] {
        assert_ne!(plan_hash("work a", &before), plan_hash("work a", &other));
        assert!(changes(&before, &other, 10).contains(&said.to_string()), "{said}");
    }
}

fn silent(believed: &[&str]) -> [Part; 1] {
    let left = |name: &&str| LeftObject {
        resource: "configmaps".to_string(),
        name: (*name).to_string(),
        ..LeftObject::default()
    };
    let believed: Vec<LeftObject> = believed.iter().map(left).collect();
    [Part { answer: None, believed: Believed::of(&believed), ..part("c1", vec![]) }]
}

#[test]
fn what_a_silent_cluster_is_believed_to_have_is_part_of_the_plan() {
    let hash = |parts: &[Part]| plan_hash("work a", parts);
    let before = silent(&["a", "b"]);
    assert_eq!(hash(&before), hash(&silent(&["b", "a"])));
    assert_eq!(changes(&before, &silent(&["b", "a"]), 10), [] as [String; 0]);
    let now = silent(&["a", "b", "c"]);
    assert_ne!(hash(&before), hash(&now));
    assert_eq!(
        changes(&before, &now, 10),
        ["c1: does not answer, and the hub believes other objects to be there: 2 then, 3 now"]
    );
    let answered = [part("c1", vec![])];
    assert_ne!(hash(&silent(&[])), hash(&answered));
    assert_eq!(changes(&silent(&[]), &answered, 10), ["c1: did not answer then, and does now"]);
    let written = before[0].believed.to_string();
    assert_eq!(Believed::parse(&written).as_ref(), Some(&before[0].believed));
    assert_eq!(Believed::parse("nonsense"), None);
}

/// The hash was another, and nothing was said to differ.
#[test]
fn a_plan_that_changed_did_not_say_in_what() {
    let told = |before: &[Part], now: &[Part]| {
        assert_ne!(plan_hash("work a", before), plan_hash("work a", now));
        changes(before, now, 10)
    };
    let answer = |problems: &[&str], more: i64, digest: &str| {
        let answer = RemovalPreviewStatus {
            problems: problems.iter().map(|one| (*one).to_string()).collect(),
            more,
            digest: digest.to_string(),
            ..RemovalPreviewStatus::default()
        };
        [Part { answer: Some(answer), ..part("c1", vec![]) }]
    };
    let whole = answer(&[], 0, "");
    let blind = answer(&["it is dark"], 0, "");
    assert_eq!(told(&whole, &blind), ["c1: unknown now: it is dark"]);
    assert_eq!(told(&blind, &whole), ["c1: no more unknown: it is dark"]);
    assert_eq!(
        told(&whole, &answer(&[], 7, "x")),
        ["c1: more objects than are listed: 0 then, 7 now"]
    );
    assert_eq!(
        told(&answer(&[], 7, "x"), &answer(&[], 7, "y")),
        ["c1: of all its objects, listed or not, some are others now"]
    );
    // Two works list one object, and one of them says something else now.
    let of = |source: &str, verdict| PreviewedObject {
        source: source.to_string(),
        ..object("a", "1", verdict)
    };
    let two = |verdict| [part("c1", vec![of("one", PreviewVerdict::Keep), of("two", verdict)])];
    assert_eq!(
        told(&two(PreviewVerdict::Keep), &two(PreviewVerdict::Orphan)),
        [
            "c1: configmaps shop/a: was: keep uid 1 by one, keep uid 1 by two; now: keep uid 1 by one, \
          orphan uid 1 by two"
        ]
    );
}

#[test]
fn long_answers_are_cut_and_counted() {
    let all: Vec<PreviewedObject> = (0..2_100)
        .map(|number| object(&std::format!("m{number:04}"), "1", PreviewVerdict::Delete))
        .collect();
    let answer = listed(all, vec![], vec![], Timestamp::UNIX_EPOCH);
    assert_eq!((answer.objects.len(), answer.more), (2_000, 100));
}

/// Two thousand long refusals are more than a server takes, so the answer never came.
#[test]
fn an_answer_was_longer_than_a_server_takes() {
    let long = |number: usize| PreviewedObject {
        blockers: vec!["x".repeat(2_000)],
        ..object(&std::format!("m{number:04}"), "1", PreviewVerdict::Delete)
    };
    let answer = listed((0..2_000).map(long).collect(), vec![], vec![], Timestamp::UNIX_EPOCH);
    let written = serde_json::to_string(&answer).unwrap().len();
    assert!((800_000..1_000_000).contains(&written), "{written}");
    assert_eq!(answer.objects.len() as i64 + answer.more, 2_000);
    assert!(answer.more > 0 && !answer.digest.is_empty());
    let told = not_taken(&"y".repeat(5_000), Timestamp::UNIX_EPOCH);
    assert!(told.answered_at.is_some() && told.objects.is_empty());
    assert!(told.problems[0].len() < 400, "{told:?}");
}

#[test]
fn a_plan_was_blind_to_what_was_cut_off() {
    let answer = |last: &str| {
        let name = |number: usize| match number {
            2_100 => last.to_string(),
            number => std::format!("m{number:04}"),
        };
        let all = (0..=2_100).map(|number| object(&name(number), "1", PreviewVerdict::Delete));
        let answer = listed(all.collect(), vec![], vec![], Timestamp::UNIX_EPOCH);
        [Part { answer: Some(answer), ..part("c1", vec![]) }]
    };
    let (before, now) = (answer("x"), answer("y"));
    assert_eq!(plan_hash("work a", &before), plan_hash("work a", &answer("x")));
    assert_ne!(plan_hash("work a", &before), plan_hash("work a", &now));
}
