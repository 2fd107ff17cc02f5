//! Which works go first: those that need something go before those that bring it.
//!
//! Inside a work the agent keeps the order of kinds. Between works only two needs count: an object
//! needs its namespace, and a custom resource its definition. What serves finalizers, and is
//! protected, refuses to go by itself until it is needed no more.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use super::carried::Carried;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Ground<'a> {
    Namespace(&'a str),
    /// Resource and group.
    Definition(&'a str, &'a str),
}

/// The places in `carried` of what may be deleted now and is not being deleted yet.
pub(crate) fn ready(carried: &[Carried]) -> Vec<usize> {
    let mut needed: BTreeMap<Ground<'_>, BTreeSet<usize>> = BTreeMap::new();
    for (index, one) in carried.iter().enumerate() {
        for object in &one.objects {
            if !object.namespace.is_empty() {
                let namespace = Ground::Namespace(&object.namespace);
                needed.entry(namespace).or_default().insert(index);
            }
            let definition = Ground::Definition(&object.resource, &object.group);
            needed.entry(definition).or_default().insert(index);
        }
    }
    let waits = |index: usize, one: &Carried| {
        grounds(one).any(|ground| {
            let needing = needed.get(&ground);
            needing.is_some_and(|all| all.iter().any(|other| *other != index))
        })
    };
    let all = || carried.iter().enumerate().filter(|(_, one)| !one.deleting);
    let free: Vec<usize> =
        all().filter(|(index, one)| !waits(*index, one)).map(|(index, _)| index).collect();
    // Works that need each other go together; waiting would be for ever.
    if free.is_empty() && carried.iter().all(|one| !one.deleting) {
        return all().map(|(index, _)| index).collect();
    }
    free
}

fn grounds(one: &Carried) -> impl Iterator<Item = Ground<'_>> {
    one.objects.iter().filter_map(|object| match (&*object.group, &*object.resource) {
        ("", "namespaces") => Some(Ground::Namespace(&object.name)),
        ("apiextensions.k8s.io", "customresourcedefinitions") => {
            let (resource, group) = object.name.split_once('.')?;
            Some(Ground::Definition(resource, group))
        }
        _ => None,
    })
}
