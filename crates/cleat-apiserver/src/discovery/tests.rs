use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::resource::Version;

fn custom(group: &str, plural: &str, kind: &str, versions: &[&str]) -> Arc<ResourceType> {
    let version = |name: &&str| Version {
        name: (*name).into(),
        served: true,
        deprecation: None,
        schema: None,
        verbs: ["get", "list", "watch"].map(Box::from).into(),
        subresources: vec![
            Subresource {
                name: "status".into(),
                group: "".into(),
                version: "".into(),
                kind: kind.into(),
                verbs: vec!["get".into()],
            },
            Subresource {
                name: "scale".into(),
                group: "autoscaling".into(),
                version: "v1".into(),
                kind: "Scale".into(),
                verbs: vec!["get".into()],
            },
        ],
        scale: None,
        columns: Vec::new(),
        selectable_fields: Vec::new(),
    };
    Arc::new(ResourceType {
        group: group.into(),
        plural: plural.into(),
        singular: kind.to_lowercase().into(),
        kind: kind.into(),
        list_kind: format!("{kind}List").into(),
        short_names: Vec::new(),
        categories: Vec::new(),
        namespaced: true,
        versions: versions.iter().map(version).collect(),
        storage_version: versions[0].into(),
        origin: Origin::Custom { name: format!("{plural}.{group}").into(), uid: "1".into() },
    })
}

fn entry<'a>(list: &'a Value, name: &str) -> &'a Value {
    let all = list["resources"].as_array().unwrap();
    all.iter().find(|entry| entry["name"] == name).unwrap()
}

#[test]
fn built_in_groups_come_in_kubernetes_order() {
    let list = group_list(builtin::resources());
    let names: Vec<&str> =
        list["groups"].as_array().unwrap().iter().map(|g| g["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "apiregistration.k8s.io",
            "apps",
            "events.k8s.io",
            "authentication.k8s.io",
            "authorization.k8s.io",
            "autoscaling",
            "batch",
            "certificates.k8s.io",
            "networking.k8s.io",
            "policy",
            "rbac.authorization.k8s.io",
            "storage.k8s.io",
            "admissionregistration.k8s.io",
            "apiextensions.k8s.io",
            "scheduling.k8s.io",
            "coordination.k8s.io",
            "node.k8s.io",
            "discovery.k8s.io",
            "flowcontrol.apiserver.k8s.io",
        ]
    );
    assert_eq!(
        group(builtin::resources(), "autoscaling").unwrap(),
        json!({
            "kind": "APIGroup",
            "apiVersion": "v1",
            "name": "autoscaling",
            "versions": [
                { "groupVersion": "autoscaling/v2", "version": "v2" },
                { "groupVersion": "autoscaling/v1", "version": "v1" },
            ],
            "preferredVersion": { "groupVersion": "autoscaling/v2", "version": "v2" },
        })
    );
    assert_eq!(group(builtin::resources(), "example.com"), None);
}

#[test]
fn the_core_group_is_listed_without_a_version_of_the_list() {
    let list = resource_list(builtin::resources(), "", "v1").unwrap();
    assert_eq!(list["groupVersion"], "v1");
    assert_eq!(list.get("apiVersion"), None);
    let all = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
    assert_eq!(
        *entry(&list, "configmaps"),
        json!({
            "name": "configmaps",
            "singularName": "configmap",
            "namespaced": true,
            "kind": "ConfigMap",
            "shortNames": ["cm"],
            "storageVersionHash": "qFsyl6wFWjQ=",
            "verbs": all,
        })
    );
    assert_eq!(
        *entry(&list, "namespaces/finalize"),
        json!({
            "name": "namespaces/finalize",
            "singularName": "",
            "namespaced": false,
            "kind": "Namespace",
            "verbs": ["update"],
        })
    );
    assert_eq!(
        *entry(&list, "serviceaccounts/token"),
        json!({
            "name": "serviceaccounts/token",
            "singularName": "",
            "namespaced": true,
            "group": "authentication.k8s.io",
            "version": "v1",
            "kind": "TokenRequest",
            "verbs": ["create"],
        })
    );
    assert_eq!(entry(&list, "bindings").get("storageVersionHash"), None);
}

#[test]
fn hashes_are_those_of_kubernetes_even_for_forms_not_served() {
    for (group, name, hash) in [
        ("apps", "deployments", "8aSe+NMegvE="),
        ("events.k8s.io", "events", "r2yiGXH7wu8="),
        ("admissionregistration.k8s.io", "mutatingadmissionpolicies", "LYmCf+UMVdg="),
    ] {
        let list = resource_list(builtin::resources(), group, "v1").unwrap();
        assert_eq!(entry(&list, name)["storageVersionHash"], hash, "{group} {name}");
    }
}

#[test]
fn aggregated_documents_hold_everything_at_once() {
    let document = aggregated_groups(builtin::resources());
    let group = document["items"].as_array().unwrap().iter();
    let autoscaling = group.clone().find(|g| g["metadata"]["name"] == "autoscaling").unwrap();
    let all = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
    let kind = json!({ "group": "", "kind": "HorizontalPodAutoscaler", "version": "" });
    let resources = json!([{
        "categories": ["all"],
        "resource": "horizontalpodautoscalers",
        "responseKind": kind,
        "scope": "Namespaced",
        "shortNames": ["hpa"],
        "singularResource": "horizontalpodautoscaler",
        "subresources": [
            { "responseKind": kind, "subresource": "status", "verbs": ["get", "patch", "update"] },
        ],
        "verbs": all,
    }]);
    assert_eq!(
        *autoscaling,
        json!({
            "metadata": { "name": "autoscaling" },
            "versions": [
                { "freshness": "Current", "version": "v2", "resources": resources },
                { "freshness": "Current", "version": "v1", "resources": resources },
            ],
        })
    );
    let core = aggregated_core(builtin::resources());
    assert_eq!(core["items"][0]["metadata"], json!({}));
    assert_eq!(core["items"][0]["versions"][0]["version"], "v1");
}

#[test]
fn custom_kinds_follow_and_name_their_group() {
    let mut resources = vec![
        custom("z.example.com", "widgets", "Widget", &["v1beta1", "v1", "odd", "v2alpha1"]),
        custom("a.example.com", "gadgets", "Gadget", &["v1beta2"]),
    ];
    resources.extend(builtin::resources().iter().cloned());
    let names = |list: &Value, key: &str, path: &str| -> Vec<String> {
        let all = list[key].as_array().unwrap();
        all.iter().rev().take(2).map(|g| g.pointer(path).unwrap().to_string()).collect()
    };
    let plain = group_list(&resources);
    assert_eq!(names(&plain, "groups", "/name"), ["\"a.example.com\"", "\"z.example.com\""]);
    let aggregated = aggregated_groups(&resources);
    assert_eq!(
        names(&aggregated, "items", "/metadata/name"),
        ["\"z.example.com\"", "\"a.example.com\""]
    );
    let group = group(&resources, "z.example.com").unwrap();
    let versions: Vec<&str> = group["versions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|v| v["version"].as_str().unwrap())
        .collect();
    assert_eq!(versions, ["v1", "v1beta1", "v2alpha1", "odd"]);

    let item = aggregated["items"].as_array().unwrap().last().unwrap();
    let widgets = &item["versions"][0]["resources"][0];
    let own = json!({ "group": "z.example.com", "version": "v1", "kind": "Widget" });
    assert_eq!(widgets["responseKind"], own);
    assert_eq!(widgets["subresources"][0]["responseKind"], own);
    assert_eq!(
        widgets["subresources"][1]["responseKind"],
        json!({ "group": "autoscaling", "version": "v1", "kind": "Scale" })
    );
}

#[test]
fn versions_are_ordered_by_stability_then_number() {
    let mut versions = ["v1", "v10", "v2", "v11alpha2", "v3beta1", "foo", "v12alpha1", "v1beta+1"];
    versions.sort_by(|a, b| newer_first(a, b));
    assert_eq!(
        versions,
        ["v10", "v2", "v1", "v3beta1", "v12alpha1", "v11alpha2", "foo", "v1beta+1"]
    );
}
