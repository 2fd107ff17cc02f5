//! The namespace a cluster has on the hub: whose it is, and what of it may go with the cluster.
//!
//! A hub may be somebody's ordinary Kubernetes. A namespace that was there before the cluster is not
//! taken over because a cluster has its name, and one that holds what others brought does not go when
//! the cluster does.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use cleat_api::managedcluster::CLUSTER_NAME_LABEL;
use cleat_api::policy;
use serde_json::Value;

use super::access::Part;
use super::hub::Seen;
use crate::id::Id;
use crate::work::contents::{self, Contents, Found};

/// On a namespace that stayed when its cluster left: why.
pub const KEPT: &str = "cleat.dev/kept";

/// What a cluster has inside its namespace.
const INNER: [Part; 3] = [Part::Registration, Part::Work, Part::Lease];

/// Whether the namespace says that it is the cluster's.
pub fn is_labelled(namespace: &Value, cluster: &str) -> bool {
    let labels = namespace.pointer("/metadata/labels").and_then(Value::as_object);
    labels.and_then(|all| all.get(CLUSTER_NAME_LABEL)?.as_str()) == Some(cluster)
}

/// Whether the namespace is the cluster's: it says so, or somebody took the label off one that holds
/// what the hub made there for the cluster. One that was made anew holds nothing of that.
pub(crate) fn is_own(namespace: &Value, parts: &BTreeMap<Part, Seen>, cluster: &str) -> bool {
    let made = |part: &Part| matches!(parts.get(part), Some(Seen::Present(_)));
    is_labelled(namespace, cluster) || INNER.iter().any(made)
}

/// Why a cluster cannot be taken in whose namespace is somebody else's, and what to do.
pub fn taken(cluster: &str) -> String {
    format!(
        "The hub has a namespace {cluster} that is not this cluster's, and what a cluster has on the \
         hub goes when it leaves. Join under another name; or, if the namespace is meant for the \
         cluster: kubectl label namespace {cluster} {CLUSTER_NAME_LABEL}={cluster}"
    )
}

/// What the namespace holds, as far as its end is concerned. `uid` is that of the cluster.
pub fn judge(found: &[Found], cluster: &str, uid: &str) -> Contents {
    let mut own: BTreeSet<&str> =
        found.iter().filter(|one| is_fleets(one, cluster)).map(|one| one.uid.as_str()).collect();
    own.insert(uid);
    // What belongs to the cluster or to something of the fleet, such as the rights of an add-on, goes
    // with it.
    loop {
        let follows = |one: &&Found| {
            let direct = one.owners.iter().map(|owner| &owner.uid);
            !own.contains(one.uid.as_str())
                && direct.chain(one.above.keys()).any(|owner| own.contains(owner.as_str()))
        };
        let more: Vec<&str> = found.iter().filter(follows).map(|one| one.uid.as_str()).collect();
        if more.is_empty() {
            break;
        }
        own.extend(more);
    }
    let others: Vec<Found> =
        found.iter().filter(|one| !own.contains(one.uid.as_str())).cloned().collect();
    contents::judge(&others, "")
}

/// Whether it is there for the fleet and for nothing else.
fn is_fleets(one: &Found, cluster: &str) -> bool {
    let Id { group, resource, name, .. } = &one.id;
    match (group.as_str(), resource.as_str()) {
        _ if one.labels.get(CLUSTER_NAME_LABEL).is_some_and(|of| of == cluster) => true,
        ("work.open-cluster-management.io", "manifestworks") => true,
        ("addon.open-cluster-management.io", "managedclusteraddons") => true,
        (policy::GROUP, "policies") => true,
        // Questions to the cluster, which nobody answers any more.
        ("cleat.dev", "removalpreviews") => true,
        // A lease says that somebody lived, and is worth nothing by itself.
        ("coordination.k8s.io", "leases") => true,
        ("", "secrets") => name == policy::name::ENCRYPTION_KEY_SECRET,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::contents::Above;
    use crate::work::observed::Owner;
    use serde_json::json;
    use std::vec;

    fn found(group: &str, resource: &str, name: &str) -> Found {
        let id = Id {
            group: group.into(),
            resource: resource.into(),
            namespace: "c1".into(),
            name: name.into(),
        };
        Found {
            uid: format!("{resource}/{name}"),
            id,
            terminating: false,
            owners: vec![],
            account: None,
            above: BTreeMap::new(),
            labels: BTreeMap::new(),
            finalizers: vec![],
        }
    }

    #[test]
    fn a_namespace_is_a_clusters_by_its_label_or_by_what_the_hub_made_in_it() {
        let labelled =
            |name: &str| json!({ "metadata": { "labels": { CLUSTER_NAME_LABEL: name } } });
        let none = BTreeMap::new();
        assert!(is_own(&labelled("c1"), &none, "c1"));
        assert!(!is_own(&labelled("c2"), &none, "c1"));
        assert!(!is_own(&json!({ "metadata": { "name": "c1" } }), &none, "c1"));
        let bare = json!({ "metadata": {} });
        let outer = [(Part::Role, Seen::Present(json!({})))].into();
        assert!(!is_own(&bare, &outer, "c1"), "a role says nothing of a namespace");
        let inner = [(Part::Work, Seen::Present(json!({})))].into();
        assert!(is_own(&bare, &inner, "c1"));
    }

    #[test]
    fn what_the_fleet_brought_goes_and_what_others_brought_keeps_the_namespace() {
        let addon = found("addon.open-cluster-management.io", "managedclusteraddons", "logs");
        let mut role = found("rbac.authorization.k8s.io", "roles", "logs");
        role.owners = vec![Owner {
            api_version: "addon.open-cluster-management.io/v1alpha1".into(),
            kind: "ManagedClusterAddOn".into(),
            name: "logs".into(),
            uid: addon.uid.clone(),
            controller: None,
            block_owner_deletion: None,
        }];
        let binding = Found {
            labels: [(CLUSTER_NAME_LABEL.into(), "c1".into())].into(),
            ..found("rbac.authorization.k8s.io", "rolebindings", "b")
        };
        let ours = vec![
            addon,
            role,
            binding,
            found("coordination.k8s.io", "leases", "managed-cluster-lease"),
            found("", "secrets", "policy-encryption-key"),
            found("cleat.dev", "removalpreviews", "preview-1"),
            found("", "configmaps", "kube-root-ca.crt"),
        ];
        assert_eq!(judge(&ours, "c1", "of-c1"), Contents::Ours);
        let mut all = ours.clone();
        let theirs = found("apps", "deployments", "shop");
        all.push(theirs.clone());
        assert_eq!(judge(&all, "c1", "of-c1"), Contents::Foreign(vec![theirs.id]));
        let mut all = ours;
        let other = Found {
            labels: [(CLUSTER_NAME_LABEL.into(), "c2".into())].into(),
            ..found("", "configmaps", "of-another")
        };
        all.push(other.clone());
        assert_eq!(judge(&all, "c1", "of-c1"), Contents::Foreign(vec![other.id]));
    }

    #[test]
    fn what_belonged_to_the_cluster_itself_was_waited_for_by_it() {
        let owned_by = |kind: &str, uid: &str| Owner {
            api_version: "cluster.open-cluster-management.io/v1".into(),
            kind: kind.into(),
            name: "c1".into(),
            uid: uid.into(),
            controller: None,
            block_owner_deletion: None,
        };
        let there = |owners: Vec<Owner>| Above::There { terminating: true, owners };
        let mut notes = found("", "configmaps", "notes");
        notes.owners = vec![owned_by("ManagedCluster", "of-c1")];
        notes.above = [("of-c1".into(), there(vec![]))].into();
        assert_eq!(judge(&[notes.clone()], "c1", "of-c1"), Contents::Ours);
        let mut far = found("", "configmaps", "far");
        far.owners = vec![owned_by("ClusterThing", "between")];
        far.above = notes.above.clone();
        far.above.insert("between".into(), there(vec![owned_by("ManagedCluster", "of-c1")]));
        assert_eq!(judge(&[far], "c1", "of-c1"), Contents::Ours);
        // That of another cluster is somebody else's.
        let alive = Above::There { terminating: false, owners: vec![] };
        notes.above = [("of-c1".into(), alive)].into();
        let foreign = Contents::Foreign(vec![notes.id.clone()]);
        assert_eq!(judge(&[notes], "c1", "of-another"), foreign);
    }
}
