//! What goes along with a namespace that nobody lists: what somebody brought there, and what only follows
//! that.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use crate::id::Id;
use crate::work::contents::{Found, comes_with_every_namespace};

/// What is in a namespace beside what is planned and what comes with every one.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Unlisted<'a> {
    /// What nothing else in the namespace owns. Which objects these are matters to whoever agrees.
    pub(super) roots: Vec<&'a Found>,
    /// What something in the namespace owns, such as the pods of a deployment: it comes and goes by
    /// itself.
    pub(super) followers: Vec<&'a Found>,
}

pub(super) fn unlisted<'a>(found: &'a [Found], planned: &BTreeSet<Id>) -> Unlisted<'a> {
    let led = led(found);
    let mut unlisted = Unlisted::default();
    for one in found.iter().filter(|one| !comes_with_every_namespace(one)) {
        if planned.contains(&one.id) {
            continue;
        }
        match led.contains(one.uid.as_str()) {
            true => unlisted.followers.push(one),
            false => unlisted.roots.push(one),
        }
    }
    unlisted.roots.sort_by(|a, b| a.id.cmp(&b.id));
    unlisted.followers.sort_by(|a, b| a.id.cmp(&b.id));
    unlisted
}

/// The objects whose owners lead to one here that has none here itself. Those that own each other in a
/// circle follow nobody.
fn led(found: &[Found]) -> BTreeSet<&str> {
    let here: BTreeSet<&str> = found.iter().map(|one| one.uid.as_str()).collect();
    let owned_by = |one: &Found, some: &BTreeSet<&str>| {
        one.owners.iter().any(|owner| some.contains(owner.uid.as_str()))
    };
    let mut leads: BTreeSet<&str> =
        found.iter().filter(|one| !owned_by(one, &here)).map(|one| one.uid.as_str()).collect();
    let mut led = BTreeSet::new();
    loop {
        let next: Vec<&str> = found
            .iter()
            .filter(|one| !leads.contains(one.uid.as_str()) && owned_by(one, &leads))
            .map(|one| one.uid.as_str())
            .collect();
        if next.is_empty() {
            return led;
        }
        leads.extend(&next);
        led.extend(next);
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;

    use super::*;
    use crate::work::observed::Owner;

    fn found(resource: &str, name: &str, owners: &[&str]) -> Found {
        let owner = |uid: &&str| Owner {
            api_version: "apps/v1".into(),
            kind: "ReplicaSet".into(),
            name: (*uid).into(),
            uid: (*uid).into(),
            controller: Some(true),
            block_owner_deletion: None,
        };
        Found {
            id: Id {
                resource: resource.into(),
                namespace: "shop".into(),
                name: name.into(),
                ..Id::default()
            },
            uid: name.into(),
            terminating: false,
            above: BTreeMap::new(),
            owners: owners.iter().map(owner).collect(),
            account: None,
            labels: BTreeMap::new(),
            finalizers: Vec::new(),
        }
    }

    fn names<'a>(all: &[&'a Found]) -> Vec<&'a str> {
        all.iter().map(|one| one.uid.as_str()).collect()
    }

    #[test]
    fn pods_follow_what_owns_them_and_everything_else_counts_by_itself() {
        let all = [
            found("pods", "pod", &["set"]),
            found("replicasets", "set", &["web"]),
            found("deployments", "web", &["the ledger, which is in no namespace"]),
            found("secrets", "db", &[]),
            found("configmaps", "kube-root-ca.crt", &[]),
            // Nobody leads to these, so nobody could say whether they come and go.
            found("configmaps", "one", &["other"]),
            found("configmaps", "other", &["one"]),
            found("configmaps", "own", &["own"]),
        ];
        let planned: BTreeSet<Id> = [all[2].id.clone()].into();
        let Unlisted { roots, followers } = unlisted(&all, &planned);
        assert_eq!(names(&roots), ["one", "other", "own", "db"]);
        assert_eq!(names(&followers), ["pod", "set"]);
        let Unlisted { roots, followers } = unlisted(&all, &BTreeSet::new());
        assert_eq!(names(&roots), ["one", "other", "own", "web", "db"]);
        assert_eq!(names(&followers), ["pod", "set"]);
    }
}
