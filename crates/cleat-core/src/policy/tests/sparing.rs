//! Namespaces that policies made, on a cluster that leaves its hub.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use cleat_api::configurationpolicy::{FINALIZER, PruneObjectBehavior};
use cleat_api::leftoverrecord::LeftObject;
use serde_json::{Value, json};

use crate::id::{Id, Target};
use crate::policy::observed::*;
use crate::policy::spare::{judge, judge_ahead, taken_along};
use crate::policy::{must_be_sure, plan, reads, report};
use crate::work::contents::{Contents, Found};
use crate::write::Plan;

use super::site::*;

fn web() -> Target {
    ListOf::namespaces().kind.target("", "web")
}

fn theirs() -> Id {
    let [resource, namespace, name] = ["configmaps", "web", "theirs"].map(String::from);
    Id { resource, namespace, name, ..Id::default() }
}

fn foreign() -> Contents {
    Contents::Foreign(vec![theirs()])
}

fn made() -> Value {
    json!({
        "object": { "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "web" } },
        "compliant": "Compliant",
        "reason": "Resource found as expected",
        "properties": { "createdByPolicy": true, "uid": "uid-web" },
    })
}

/// A policy that made these and goes because its cluster leaves.
fn going(entries: Vec<Value>, contents: Option<Contents>) -> Observed {
    let mut spec = spec("enforce", "musthave", definition("a", "default"));
    spec["pruneObjectBehavior"] = json!("DeleteIfCreated");
    let mut seen = observed(spec, &[pod("a", "default", "x")]);
    let policy = policy(&mut seen);
    policy.deleting = true;
    policy.finalizers = vec![FINALIZER.into()];
    policy.status =
        serde_json::from_value(json!({ "compliant": "Compliant", "relatedObjects": entries }))
            .unwrap();
    let kind = KindName { api_version: "v1".into(), kind: "Namespace".into() };
    seen.cluster.kinds.insert(kind, Kind::Served(ListOf::namespaces().kind));
    let object = Arc::new(json!({ "metadata": { "name": "web", "uid": "uid-web" } }));
    let present = Present { object, writers: vec![] };
    seen.cluster.objects.insert(web().id, Seen::Present(present));
    seen.cluster.contents.extend(contents.map(|contents| (web().id, contents)));
    seen.controller.departure = Departure::Emptying;
    seen
}

#[test]
fn a_policy_of_a_leaving_cluster_took_along_what_others_had_put_into_its_namespace() {
    let seen = going(vec![made()], None);
    assert_eq!(plan(&seen), Plan::new(), "nobody looked");
    assert_eq!(reads(&seen).missing, BTreeSet::from([Read::Contents(web())]));
    let dark = "what it holds cannot be seen: pods: no answer";
    let stays = "stays: it holds what is not ours: configmaps web/theirs";
    for (contents, expected) in [
        (foreign(), Some(stays)),
        (Contents::Waiting("pods web/p".into()), Some("it still holds pods web/p")),
        (Contents::Unknown(dark.into()), Some(dark)),
        (Contents::Ours, None),
    ] {
        let seen = going(vec![made()], Some(contents.clone()));
        let Some(why) = expected else {
            assert_eq!(verbs(&plan(&seen)), [["delete namespaces"]]);
            continue;
        };
        assert_eq!(plan(&seen), Plan::new(), "{contents:?}");
        let message = format!("Failed to delete objects: /v1, Kind=Namespace \"web\" ({why})");
        assert_eq!(told(&seen).2, message);
        assert!(report(&seen).wake.is_some(), "no watch tells of it: {contents:?}");
    }
    // Its own things go first, and are not asked about.
    let seen = going(vec![entry("a", true, "uid-a"), made()], None);
    assert_eq!(verbs(&plan(&seen)), [["delete pods"]]);
    assert!(reads(&seen).missing.is_empty());
}

#[test]
fn a_policy_of_a_leaving_cluster_took_along_what_others_had_made_of_its_definition() {
    let name = "widgets.example.com";
    let kind = Served {
        group: "apiextensions.k8s.io".into(),
        version: "v1".into(),
        resource: "customresourcedefinitions".into(),
        namespaced: false,
    };
    let definition = kind.target("", name);
    let made = json!({
        "object": {
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": name },
        },
        "compliant": "Compliant",
        "reason": "Resource found as expected",
        "properties": { "createdByPolicy": true, "uid": "uid-widgets" },
    });
    let mut seen = going(vec![made], None);
    let served = KindName {
        api_version: "apiextensions.k8s.io/v1".into(),
        kind: "CustomResourceDefinition".into(),
    };
    seen.cluster.kinds.insert(served, Kind::Served(kind));
    let object = Arc::new(json!({ "metadata": { "name": name, "uid": "uid-widgets" } }));
    let present = Present { object, writers: vec![] };
    seen.cluster.objects.insert(definition.id.clone(), Seen::Present(present));
    assert_eq!(plan(&seen), Plan::new(), "nobody looked");
    assert_eq!(reads(&seen).missing, BTreeSet::from([Read::Contents(definition.clone())]));
    let [group, resource] = ["example.com", "widgets"].map(String::from);
    let foreign = Contents::Foreign(vec![Id { group, resource, ..theirs() }]);
    seen.cluster.contents.insert(definition.id.clone(), foreign);
    assert_eq!(plan(&seen), Plan::new());
    let stays = "(stays: it holds what is not ours: widgets.example.com web/theirs)";
    assert!(told(&seen).2.ends_with(stays), "{}", told(&seen).2);
    seen.cluster.contents.insert(definition.id, Contents::Ours);
    assert_eq!(verbs(&plan(&seen)), [["delete customresourcedefinitions"]]);
}

#[test]
fn that_everything_is_gone_was_believed_of_a_watch() {
    let mut seen = going(vec![made()], Some(Contents::Ours));
    assert!(!must_be_sure(&seen, &plan(&seen)), "a delete takes only what it means");
    seen.cluster.objects.insert(web().id, Seen::Absent);
    assert!(must_be_sure(&seen, &plan(&seen)), "it lets go");
    seen.controller.departure = Departure::Staying;
    assert!(!must_be_sure(&seen, &plan(&seen)), "its cluster stays");
}

#[test]
fn outside_of_a_leave_a_namespace_is_pruned_as_ever() {
    let mut seen = going(vec![made()], None);
    seen.controller.departure = Departure::Staying;
    assert!(reads(&seen).missing.is_empty());
    assert_eq!(verbs(&plan(&seen)), [["delete namespaces"]]);
}

#[test]
fn a_policy_went_before_the_hub_had_heard_what_stays_of_it() {
    let mut seen = going(vec![made()], Some(foreign()));
    let next = status(&report(&seen).publish);
    let listed = &next.related_objects[0];
    assert_eq!(listed.reason, "it holds what is not ours: configmaps web/theirs");
    assert_eq!(listed.properties.as_ref().unwrap().uid, "uid-web");
    policy(&mut seen).status = next;
    assert_eq!(plan(&seen), Plan::new(), "nobody has heard");
    // What was said to stay stays, whatever becomes of what is in it.
    seen.cluster.contents.insert(web().id, Contents::Ours);
    assert_eq!(plan(&seen), Plan::new());
    let heard = |uid: &str| LeftObject {
        resource: "namespaces".into(),
        name: "web".into(),
        uid: uid.into(),
        ..LeftObject::default()
    };
    seen.cluster.heard = vec![heard("another")];
    assert_eq!(plan(&seen), Plan::new(), "of another incarnation");
    seen.cluster.heard.push(heard("uid-web"));
    assert_eq!(verbs(&plan(&seen)), [["patch configurationpolicies"]]);
}

#[test]
fn what_another_template_takes_along_was_taken_for_somebodys() {
    let parent = |uid: &str| {
        let api_version = "policy.open-cluster-management.io/v1".into();
        Some(Owner { api_version, kind: "Policy".into(), name: "o".into(), uid: uid.into() })
    };
    let mut seen = going(vec![made()], None);
    let one = Policy { owner: parent("p"), ..policy(&mut seen).clone() };
    let other = |uid: &str, deleting: bool| {
        let related = json!({ "relatedObjects": [entry("b", true, "uid-b")] });
        let status = serde_json::from_value(related).unwrap();
        Policy { uid: "other".into(), deleting, owner: parent(uid), status, ..one.clone() }
    };
    let found = |uid: &str| Found {
        id: theirs(),
        uid: uid.into(),
        terminating: false,
        owners: vec![],
        account: None,
        above: BTreeMap::new(),
        labels: BTreeMap::new(),
        finalizers: vec![],
    };
    let mut keeps = other("p", true);
    keeps.spec.prune_object_behavior = PruneObjectBehavior::None;
    for (what, other, waits) in [
        ("of the same policy", other("p", false), true),
        ("of another that goes", other("q", true), true),
        ("of another that may wait for this", other("q", false), false),
        ("not sent by the hub", Policy { owner: None, ..other("p", true) }, false),
        ("not held", Policy { finalizers: vec![], ..other("p", true) }, false),
        ("of one that prunes nothing", keeps, false),
    ] {
        let waiting = Contents::Waiting(theirs().to_string());
        let expected = if waits { waiting } else { foreign() };
        assert_eq!(judge(vec![found("uid-b")], &one, &[one.clone(), other]), expected, "{what}");
    }
    let own = Policy { status: other("p", true).status, ..one.clone() };
    assert_eq!(judge(vec![found("uid-b")], &own, &[]), Contents::Ours);
}

#[test]
fn what_goes_before_a_namespace_kept_it_in_the_preview_of_a_leave() {
    let seen = going(vec![made(), entry("a", true, "")], None);
    let found = |uid: &str| Found {
        id: theirs(),
        uid: uid.into(),
        terminating: false,
        owners: vec![],
        account: None,
        above: BTreeMap::new(),
        labels: BTreeMap::new(),
        finalizers: vec![],
    };
    let Subject::Policy(one) = &seen.policy else { panic!("there is a policy") };
    let [api_version, kind, name, uid] =
        ["policy.open-cluster-management.io/v1", "Policy", "o", "q"].map(String::from);
    let owner = Some(Owner { api_version, kind, name, uid });
    let related = json!({ "relatedObjects": [entry("b", true, "uid-b")] });
    let status = serde_json::from_value(related).unwrap();
    let other = Policy { uid: "other".into(), deleting: false, owner, status, ..(**one).clone() };
    let nothing = BTreeSet::new();
    let works = BTreeSet::from([String::from("uid-b")]);
    let ahead = |others: &[Policy], works: &BTreeSet<String>| {
        judge_ahead(vec![found("uid-b")], &seen, others, works)
    };
    assert_eq!(ahead(&[], &nothing), foreign());
    assert_eq!(ahead(&[], &works), Contents::Ours, "a work takes it along");
    let others = [other];
    assert_eq!(ahead(&others, &nothing), Contents::Ours, "another policy takes it along");
    assert_eq!(taken_along(&others), works);
    assert_eq!(taken_along(&[Policy { finalizers: vec![], ..others[0].clone() }]), nothing);
    // What is on its way out is gone by then.
    let dying = vec![Found { terminating: true, ..found("uid-c") }];
    assert_eq!(judge_ahead(dying, &seen, &[], &nothing), Contents::Ours);
}
