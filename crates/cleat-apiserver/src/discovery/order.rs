//! In which order groups and versions are listed: the order of preference.

use std::cmp::{Ordering, Reverse};
use std::sync::Arc;

use crate::resource::{Origin, ResourceType};

/// A group with its served versions, most preferred first.
pub(super) struct Group<'a> {
    pub(super) name: &'a str,
    pub(super) versions: Vec<&'a str>,
    builtin: bool,
}

/// How custom groups, which all have the same priority, are told apart. Kubernetes makes the two
/// forms of `/apis` by different code, and they disagree.
#[derive(Clone, Copy)]
pub(super) enum Ties {
    ByName,
    /// By `VERSION.GROUP`, the least of a group counting.
    ByVersionAndName,
}

/// All named groups: the built-in ones in the order they have among themselves, then the others.
pub(super) fn groups(resources: &[Arc<ResourceType>], ties: Ties) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for resource in resources.iter().filter(|resource| !resource.group.is_empty()) {
        let index = groups.iter().position(|group| group.name == &*resource.group);
        let index = index.unwrap_or_else(|| {
            groups.push(Group { name: &resource.group, versions: Vec::new(), builtin: false });
            groups.len() - 1
        });
        let Some(group) = groups.get_mut(index) else { continue };
        group.builtin |= resource.origin == Origin::Builtin;
        for version in resource.versions.iter().filter(|version| version.served) {
            if !group.versions.contains(&&*version.name) {
                group.versions.push(&version.name);
            }
        }
    }
    groups.retain(|group| !group.versions.is_empty());
    for group in &mut groups {
        group.versions.sort_by(|a, b| newer_first(a, b));
    }
    groups.sort_by_cached_key(|group| match (group.builtin, ties) {
        (true, _) => (false, None),
        (false, Ties::ByName) => (true, Some(group.name.to_owned())),
        (false, Ties::ByVersionAndName) => {
            let names = group.versions.iter().map(|version| format!("{version}.{}", group.name));
            (true, names.min())
        }
    });
    groups
}

/// Kubernetes' order of versions: stable ones before betas before alphas, each the highest first;
/// then names of any other form, by alphabet.
pub fn newer_first(a: &str, b: &str) -> Ordering {
    match (parse(a), parse(b)) {
        (Some(a), Some(b)) => Reverse(a).cmp(&Reverse(b)),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.cmp(b),
    }
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Stability {
    Alpha,
    Beta,
    Stable,
}

/// `v2beta1` → beta, 2, 1.
fn parse(version: &str) -> Option<(Stability, u64, u64)> {
    let rest = version.strip_prefix('v')?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (major, rest) = rest.split_at_checked(digits)?;
    let (stability, minor) = if let Some(minor) = rest.strip_prefix("alpha") {
        (Stability::Alpha, minor)
    } else if let Some(minor) = rest.strip_prefix("beta") {
        (Stability::Beta, minor)
    } else if rest.is_empty() {
        (Stability::Stable, "0")
    } else {
        return None;
    };
    Some((stability, number(major)?, number(minor)?))
}

/// Digits only: `parse` alone would take a sign too.
fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}
