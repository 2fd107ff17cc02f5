use alloc::string::ToString;

use serde_json::{Value, json};

use super::*;

fn cluster(name: &str, labels: Value, spec: Value) -> ManagedCluster {
    let object = json!({
        "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": { "name": name, "labels": labels }, "spec": spec,
    });
    serde_json::from_value(object).unwrap()
}

#[test]
fn names_and_addresses_must_be_usable() {
    let url = |url: &str| {
        cluster("c1", json!({}), json!({ "managedClusterClientConfigs": [{ "url": url }] }))
    };
    assert!(objections(&url("https://a:6443"), None).is_empty());
    for bad in ["http://a", "a:6443", "https://", "https:///x", "https://a b"] {
        let said = objections(&url(bad), None);
        assert!(said.len() == 1 && said[0].contains("https://"), "{bad}: {said:?}");
        assert!(objections(&url(bad), Some(&url(bad))).is_empty(), "what is there may stay");
    }
    for bad in ["a.b", "-a", "managed-clusters", &"a".repeat(64)] {
        assert_eq!(objections(&cluster(bad, json!({}), json!({})), None).len(), 1, "{bad}");
    }
}

#[test]
fn acceptance_and_sets_need_rights_of_their_own() {
    let plain = cluster("c1", json!({}), json!({}));
    let accepted = cluster("c1", json!({}), json!({ "hubAcceptsClient": true }));
    let in_set = |set: &str| cluster("c1", json!({ CLUSTER_SET_LABEL: set }), json!({}));
    let said = |new: &ManagedCluster, old: Option<&ManagedCluster>| {
        rights(new, old).iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert!(said(&plain, None).is_empty());
    assert_eq!(said(&accepted, None), ["update managedclusters/accept c1"]);
    assert_eq!(said(&accepted, Some(&plain)), ["update managedclusters/accept c1"]);
    assert_eq!(said(&plain, Some(&accepted)), ["update managedclusters/accept c1"]);
    assert!(said(&accepted, Some(&accepted)).is_empty());
    assert_eq!(said(&in_set("a"), Some(&plain)), ["create managedclustersets/join a"]);
    let both = ["create managedclustersets/join a", "create managedclustersets/join b"];
    assert_eq!(said(&in_set("b"), Some(&in_set("a"))), both);
    assert_eq!(said(&plain, Some(&in_set("a"))), ["create managedclustersets/join a"]);
    assert!(said(&in_set("a"), Some(&in_set("a"))).is_empty());
    assert!(accepts(&accepted, Some(&plain)) && !accepts(&accepted, Some(&accepted)));
}

#[test]
fn a_binding_is_named_after_its_set_and_keeps_it() {
    let binding = |name: &str, set: &str| -> ManagedClusterSetBinding {
        let object = json!({
            "apiVersion": "cluster.open-cluster-management.io/v1beta2",
            "kind": "ManagedClusterSetBinding",
            "metadata": { "name": name }, "spec": { "clusterSet": set },
        });
        serde_json::from_value(object).unwrap()
    };
    let good = binding("a", "a");
    assert!(binding_objections(&good, None).is_empty());
    assert_eq!(binding_rights(&good, None)[0].to_string(), "create managedclustersets/bind a");
    assert!(binding_rights(&good, Some(&good)).is_empty());
    assert_eq!(binding_objections(&binding("a", "b"), None).len(), 1);
    assert_eq!(binding_objections(&binding("b", "b"), Some(&good)).len(), 1);
}
