use std::string::ToString as _;
use std::vec;
use std::vec::Vec;

use cleat_api::leftoverrecord::LeftObject;
use cleat_api::manifestwork::ManifestWork;

use super::*;

/// Works by name and objects, such as `namespaces shop`, `configmaps shop/a`,
/// `customresourcedefinitions.apiextensions.k8s.io things.example.com`; those in `deleting` are going.
fn check(works: &[(&str, &[&str])], deleting: &[&str], expected: &[&str]) {
    let carried: Vec<Carried> = works
        .iter()
        .map(|(name, objects)| {
            let mut one = Carried::work(&ManifestWork::default());
            one.name = name.to_string();
            one.deleting = deleting.contains(name);
            one.objects = objects.iter().map(|object| left(object)).collect();
            one
        })
        .collect();
    let names: Vec<&str> = ready(&carried).into_iter().map(|index| &*carried[index].name).collect();
    assert_eq!(names, expected, "of {works:?} while {deleting:?} go");
}

fn left(object: &str) -> LeftObject {
    let (kind, name) = object.split_once(' ').unwrap();
    let (resource, group) = kind.split_once('.').unwrap_or((kind, ""));
    let (namespace, name) = name.split_once('/').unwrap_or(("", name));
    LeftObject {
        group: group.to_string(),
        resource: resource.to_string(),
        namespace: namespace.to_string(),
        name: name.to_string(),
        ..LeftObject::default()
    }
}

const THINGS: &str = "customresourcedefinitions.apiextensions.k8s.io things.example.com";

#[test]
fn those_that_need_something_go_before_those_that_bring_it() {
    let works: &[(&str, &[&str])] = &[
        ("base", &["namespaces shop", THINGS]),
        ("shop", &["configmaps shop/a"]),
        ("thing", &["things.example.com else/t"]),
        ("other", &["configmaps else/c"]),
    ];
    check(works, &[], &["shop", "thing", "other"]);
    check(works, &["shop", "thing", "other"], &[]);
    check(&works[..1], &[], &["base"]);
}

#[test]
fn works_that_brought_the_same_namespace_waited_for_each_other() {
    for ground in ["namespaces shop", THINGS] {
        let inside = ["configmaps shop/a", "things.example.com shop/t"];
        let one: &[&str] = &[ground, inside[0], inside[1]];
        let both: Vec<&str> = vec![ground, "namespaces shop", THINGS, inside[0], inside[1]];
        let works: &[(&str, &[&str])] = &[("a", &both), ("b", &both), ("base", &["namespaces z"])];
        check(works, &[], &["a", "b", "base"]);
        // One that is denied holds up nobody.
        check(works, &["base"], &["a", "b"]);
        check(works, &["a", "base"], &["b"]);
        // Who needs it and does not bring it goes first.
        check(&[("a", one), ("b", one), ("inside", &inside)], &[], &["inside"]);
        check(&[("a", one), ("b", one), ("inside", &inside)], &["inside"], &[]);
    }
}

#[test]
fn with_works_that_need_each_other_everything_went_at_once() {
    let (a, b): (&[&str], &[&str]) =
        (&["namespaces one", "configmaps two/a"], &["namespaces two", "configmaps one/b"]);
    check(&[("a", a), ("b", b)], &[], &["a", "b"]);
    // What stands on both of them goes before.
    let inside: (&str, &[&str]) = ("inside", &["namespaces three", "configmaps one/c"]);
    check(&[("a", a), ("b", b), inside], &[], &["inside"]);
    check(&[("a", a), ("b", b), inside], &["inside"], &[]);
    // What they stand on goes after.
    let base: (&str, &[&str]) = ("base", &["namespaces three"]);
    let a: &[&str] = &["namespaces one", "configmaps two/a", "configmaps three/a"];
    check(&[base, ("a", a), ("b", b)], &[], &["a", "b"]);
    // Half of it is on its way, or something else is denied: the rest does not wait for ever.
    check(&[base, ("a", a), ("b", b)], &["a"], &["b"]);
    let other: (&str, &[&str]) = ("other", &["configmaps four/d"]);
    check(&[base, ("a", a), ("b", b), other], &["other"], &["a", "b"]);
}

/// The same with a priority for each, in their order.
fn check_said(works: &[(&str, &[&str], u8)], deleting: &[&str], expected: &[&str]) {
    let carried: Vec<Carried> = works
        .iter()
        .map(|(name, objects, priority)| {
            let mut one = Carried::work(&ManifestWork::default());
            one.name = name.to_string();
            one.deleting = deleting.contains(name);
            one.objects = objects.iter().map(|object| left(object)).collect();
            one.priority = *priority;
            one
        })
        .collect();
    let names: Vec<&str> = ready(&carried).into_iter().map(|index| &*carried[index].name).collect();
    assert_eq!(names, expected, "of {works:?} while {deleting:?} go");
}

#[test]
fn an_operator_went_with_the_instances_that_it_had_to_finalize() {
    let operator: (&str, &[&str], u8) = ("operator", &["deployments.apps shop/operator"], 50);
    let rights: (&str, &[&str], u8) = ("rights", &["clusterroles.rbac operator"], 100);
    let instances: (&str, &[&str], u8) = ("instances", &["things.example.com shop/t"], 0);
    check_said(&[operator, rights, instances], &[], &["instances"]);
    check_said(&[operator, rights, instances], &["instances"], &[]);
    check_said(&[operator, rights], &[], &["operator"]);
    check_said(&[operator, rights], &["operator"], &[]);
    check_said(&[rights], &[], &["rights"]);
}

#[test]
fn what_is_said_against_what_is_needed_holds_up_nobody_for_ever() {
    let base: (&str, &[&str], u8) = ("base", &["namespaces shop"], 0);
    let inside: (&str, &[&str], u8) = ("inside", &["configmaps shop/a"], 10);
    let later: (&str, &[&str], u8) = ("later", &["configmaps else/a"], 20);
    check_said(&[base, inside, later], &[], &["base", "inside"]);
    check_said(&[base, inside, later], &["base", "inside"], &[]);
    check_said(&[later], &[], &["later"]);
}

#[test]
fn a_priority_is_a_number_up_to_a_hundred() {
    use super::super::carried::CLEANUP_PRIORITY;
    for (said, expected) in [("0", 0), ("7", 7), ("100", 100), ("101", 0), ("-1", 0), ("soon", 0)] {
        let mut work = ManifestWork::default();
        let note = (CLEANUP_PRIORITY.to_string(), said.to_string());
        work.metadata.annotations = Some([note].into());
        assert_eq!(Carried::work(&work).priority, expected, "{said}");
    }
}
