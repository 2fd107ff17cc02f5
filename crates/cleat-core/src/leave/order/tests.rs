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
