//! What the garbage collector would remove after an object, and of which objects that is looked for.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use crate::id::Id;
use crate::work::contents::{Found, is_namespace};

/// Whether what an object owns may be in any namespace: it is in none itself, and is none.
pub fn owns_anywhere(id: &Id) -> bool {
    id.namespace.is_empty() && !is_namespace(id)
}

/// Whether it is of a kind that Kubernetes does not bring. Roles, storage classes and the like own
/// nothing in practice.
pub fn is_custom(id: &Id) -> bool {
    id.group.contains('.') && !id.group.ends_with(".k8s.io")
}

/// What the collector would remove after an object: what it alone owns, and what that owns.
pub fn owned(found: &[Found], uid: &str) -> Vec<Id> {
    let mut going: BTreeSet<&str> = [uid].into();
    let mut owned = Vec::new();
    loop {
        let before = owned.len();
        for one in found.iter().filter(|one| !one.owners.is_empty()) {
            let alone = one.owners.iter().all(|owner| going.contains(owner.uid.as_str()));
            if alone && going.insert(&one.uid) {
                owned.push(one.id.clone());
            }
        }
        if owned.len() == before {
            return owned;
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;
    use alloc::string::String;

    use super::*;
    use crate::work::observed::Owner;

    fn found(name: &str, owners: &[&str]) -> Found {
        let owner = |uid: &&str| Owner {
            api_version: "apps/v1".into(),
            kind: "ReplicaSet".into(),
            name: (*uid).into(),
            uid: (*uid).into(),
            controller: Some(true),
            block_owner_deletion: None,
        };
        Found {
            id: Id { name: name.into(), ..Id::default() },
            uid: name.into(),
            terminating: false,
            owners: owners.iter().map(owner).collect(),
            account: None,
            above: BTreeMap::new(),
            labels: BTreeMap::new(),
            finalizers: Vec::new(),
        }
    }

    #[test]
    fn the_collector_follows_owners_down_and_spares_what_somebody_else_owns_too() {
        let all = [
            found("pod", &["set"]),
            found("set", &["web"]),
            found("shared", &["web", "other"]),
            found("free", &[]),
        ];
        let names: Vec<String> = owned(&all, "web").into_iter().map(|id| id.name).collect();
        assert_eq!(names, ["set", "pod"]);
    }

    #[test]
    fn only_kinds_that_kubernetes_does_not_bring_are_thought_to_own_things_elsewhere() {
        for (group, custom) in [
            ("", false),
            ("apps", false),
            ("rbac.authorization.k8s.io", false),
            ("apiextensions.k8s.io", false),
            ("example.com", true),
            ("cluster.x-k8s.io", true),
        ] {
            let id = Id { group: group.into(), ..Id::default() };
            assert_eq!(is_custom(&id), custom, "{group}");
        }
        let within = Id { namespace: "shop".into(), ..Id::default() };
        let namespace = Id { resource: "namespaces".into(), ..Id::default() };
        assert!(owns_anywhere(&Id::default()));
        assert!(!owns_anywhere(&within) && !owns_anywhere(&namespace));
    }
}
