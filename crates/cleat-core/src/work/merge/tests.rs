use super::*;
use proptest::prelude::*;
use serde_json::json;
use std::{format, vec};

fn object(api_version: &str, kind: &str, body: Value) -> Value {
    let mut object = json!({
        "apiVersion": api_version, "kind": kind,
        "metadata": { "name": "a", "resourceVersion": "7", "uid": "u" },
    });
    overlay(&mut object, body);
    object
}

fn overlay(object: &mut Value, body: Value) {
    for (key, value) in body.as_object().unwrap() {
        match (object.get_mut(key), value) {
            (Some(inner @ Value::Object(_)), Value::Object(_)) => overlay(inner, value.clone()),
            _ => object[key] = value.clone(),
        }
    }
}

/// What of the replacement was not on the object, and that it is one.
fn replaced(merge: Merge) -> Value {
    match merge {
        Merge::Replace(object) => {
            assert_eq!(object["metadata"]["resourceVersion"], "7");
            assert_eq!(object["metadata"]["uid"], "u");
            assert!(object["metadata"].get("managedFields").is_none());
            object
        }
        other => panic!("{other:?}"),
    }
}

/// Existing, wanted, what was before: each the body of a kind.
fn check(api_version: &str, kind: &str, existing: Value, wanted: Value) -> Merge {
    let existing = object(api_version, kind, existing);
    update(&existing, &object(api_version, kind, wanted), None)
}

#[test]
fn equal_though_written_differently() {
    let pod = |container: Value| json!({ "spec": { "template": { "spec": { "containers": [container] } } } });
    for (api_version, kind, existing, wanted) in [
        (
            "v1",
            "ConfigMap",
            json!({ "data": { "a": "b" } }),
            json!({ "data": { "a": "b" }, "binaryData": {} }),
        ),
        ("v1", "ConfigMap", json!({ "immutable": true }), json!({ "data": null })),
        (
            "v1",
            "Secret",
            json!({ "type": "Opaque", "data": { "a": "Yg==" } }),
            json!({ "stringData": { "a": "b" } }),
        ),
        (
            "v1",
            "Secret",
            json!({ "type": "Opaque", "data": { "a": "Yg==" } }),
            json!({ "data": { "a": "Yg\n==" } }),
        ),
        (
            "apps/v1",
            "Deployment",
            pod(
                json!({ "name": "a", "resources": { "limits": { "cpu": "1" } }, "imagePullPolicy": "Always" }),
            ),
            pod(
                json!({ "name": "a", "resources": { "limits": { "cpu": "1000m" } }, "stdin": false, "env": [] }),
            ),
        ),
        (
            "v1",
            "Service",
            json!({ "spec": { "clusterIP": "10.0.0.1" } }),
            json!({ "spec": { "clusterIP": "" } }),
        ),
        (
            "example.com/v1",
            "Widget",
            json!({ "spec": { "a": 1, "b": 2 } }),
            json!({ "spec": { "a": 1.0, "c": null } }),
        ),
        (
            "example.com/v1",
            "Widget",
            json!({ "status": { "x": 1 } }),
            json!({ "status": { "x": 2 } }),
        ),
        (
            "v1",
            "Namespace",
            json!({ "spec": { "finalizers": ["kubernetes"] } }),
            json!({ "spec": { "finalizers": [] } }),
        ),
    ] {
        assert_eq!(
            check(api_version, kind, existing.clone(), wanted.clone()),
            Merge::Same,
            "{existing} {wanted}"
        );
    }
}

#[test]
fn different_though_alike() {
    let pod = |spec: Value| json!({ "spec": { "template": { "spec": spec } } });
    let policy = |spec: Value| json!({ "spec": spec });
    for (api_version, kind, existing, wanted) in [
        // Pointers: to say no is not to say nothing.
        (
            "apps/v1",
            "Deployment",
            pod(json!({})),
            pod(json!({ "automountServiceAccountToken": false })),
        ),
        (
            "apps/v1",
            "Deployment",
            pod(json!({ "hostNetwork": true })),
            pod(json!({ "hostNetwork": false })),
        ),
        (
            "apps/v1",
            "Deployment",
            pod(json!({ "nodeSelector": { "a": "b", "c": "d" } })),
            pod(json!({ "nodeSelector": { "a": "b" } })),
        ),
        (
            "apps/v1",
            "Deployment",
            pod(json!({ "containers": [{ "name": "a", "env": [{ "name": "A", "value": "1" }] }] })),
            pod(
                json!({ "containers": [{ "name": "a", "env": [{ "name": "A", "value": "1000m" }] }] }),
            ),
        ),
        (
            "apps/v1",
            "Deployment",
            pod(json!({ "volumes": [{ "name": "a", "hostPath": { "path": "/" } }] })),
            pod(json!({ "volumes": [{ "name": "a", "emptyDir": {} }] })),
        ),
        (
            "v1",
            "ConfigMap",
            json!({ "data": { "a": "b", "c": "d" } }),
            json!({ "data": { "a": "b" } }),
        ),
        ("v1", "ConfigMap", json!({ "data": { "a": "b" } }), json!({})),
        // Somebody has opened a policy by narrowing whom it is about, or by adding to it.
        (
            "networking.k8s.io/v1",
            "NetworkPolicy",
            policy(json!({ "podSelector": { "matchLabels": { "a": "b" } } })),
            policy(json!({ "podSelector": {} })),
        ),
        (
            "networking.k8s.io/v1",
            "NetworkPolicy",
            policy(json!({ "podSelector": {}, "ingress": [{}] })),
            policy(json!({ "podSelector": {} })),
        ),
        (
            "networking.k8s.io/v1",
            "NetworkPolicy",
            policy(
                json!({ "podSelector": {}, "ingress": [{ "from": [{ "podSelector": {} }], "ports": [] }] }),
            ),
            policy(json!({ "podSelector": {}, "ingress": [{ "ports": [] }] })),
        ),
        (
            "example.com/v1",
            "Issuer",
            json!({ "spec": { "ca": {} } }),
            json!({ "spec": { "selfSigned": {} } }),
        ),
        (
            "example.com/v1",
            "Widget",
            json!({ "spec": { "list": [1, 2] } }),
            json!({ "spec": { "list": [1] } }),
        ),
    ] {
        let merge = check(api_version, kind, existing.clone(), wanted.clone());
        assert!(matches!(merge, Merge::Replace(_)), "{existing} {wanted} {merge:?}");
    }
}

#[test]
fn labels_and_annotations_are_merged() {
    let on = |labels: Value| json!({ "metadata": { "labels": labels, "finalizers": ["f"], "ownerReferences": [{ "uid": "o" }] } });
    let existing = object("v1", "Pod", on(json!({ "a": "1", "b": "2", "c": "3" })));
    let wanted = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "labels": { "a": "9", "b-": "", "z-": "" }, "finalizers": ["mine"], "ownerReferences": [] },
        "spec": { "hostname": "x" },
    });
    let put = replaced(update(&existing, &wanted, None));
    assert_eq!(put, object("v1", "Pod", on(json!({ "a": "9", "c": "3" }))));
    assert_eq!(update(&put, &wanted, None), Merge::Same);
    // What was stated before and still is as it was, goes; what somebody has changed, stays.
    let before = json!({ "metadata": { "labels": { "c": "3" } } });
    assert_eq!(
        replaced(update(&put, &wanted, Some(&before)))["metadata"]["labels"],
        json!({ "a": "9" })
    );
    let before = json!({ "metadata": { "labels": { "c": "4" } } });
    assert_eq!(update(&put, &wanted, Some(&before)), Merge::Same);
}

#[test]
fn what_is_stated_no_more_goes() {
    let widget = |spec: Value| object("example.com/v1", "Widget", json!({ "spec": spec }));
    let existing = widget(
        json!({ "a": 1, "b": { "c": 1, "d": 2 }, "list": [{ "x": 1, "y": 2 }], "theirs": 1, "replicas": 3 }),
    );
    let before = widget(
        json!({ "a": 1, "b": { "c": 1, "d": 2 }, "list": [{ "x": 1, "y": 2 }], "replicas": 3 }),
    );
    let wanted = widget(json!({ "b": { "c": 1 }, "list": [{ "x": 1 }] }));
    assert_eq!(update(&existing, &wanted, None), Merge::Same);
    let put = replaced(update(&existing, &wanted, Some(&before)));
    assert_eq!(
        put["spec"],
        json!({ "b": { "c": 1 }, "list": [{ "x": 1 }], "theirs": 1, "replicas": 3 })
    );
    assert_eq!(update(&put, &wanted, Some(&before)), Merge::Same);
}

/// A null on the object compared equal to any zero of a field that servers fill in, so it was taken
/// away a second time.
#[test]
fn a_null_was_taken_for_what_had_been_stated_before() {
    let service = |kind: Value| object("v1", "Service", json!({ "spec": { "type": kind } }));
    let (existing, wanted) = (service(Value::Null), service(Value::Null));
    assert_eq!(update(&existing, &wanted, Some(&service(json!("")))), Merge::Same);
}

#[test]
fn what_only_we_have_set_is_derived_afresh() {
    let mut existing = object(
        "apps/v1",
        "Deployment",
        json!({ "spec": {
            "replicas": 5,
            "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxSurge": "25%" } },
            "progressDeadlineSeconds": 600,
            "minReadySeconds": 9,
            "template": { "spec": {
                "containers": [{
                    "name": "a", "image": "x",
                    "resources": { "limits": { "cpu": "1" }, "requests": { "cpu": "1" } },
                    "livenessProbe": { "exec": { "command": ["x"] } },
                    "terminationMessagePath": "theirs",
                }],
                "volumes": [{ "name": "v", "emptyDir": {} }],
            } },
        } }),
    );
    let wanted = object(
        "apps/v1",
        "Deployment",
        json!({ "spec": {
            "strategy": { "type": "Recreate" },
            "template": { "spec": {
                "containers": [{
                    "name": "a", "image": "x",
                    "resources": { "limits": { "cpu": "2" } },
                    "livenessProbe": { "tcpSocket": { "port": 1 } },
                }],
                "volumes": [{ "name": "v", "configMap": { "name": "c" } }],
            } },
        } }),
    );
    let fields = json!({ "f:spec": {
        "f:replicas": {}, "f:progressDeadlineSeconds": {}, "f:minReadySeconds": {}, "f:strategy": {},
        "f:template": { "f:spec": { "f:containers": { "k:{\"name\":\"a\"}": {
            "f:resources": { "f:limits": {}, "f:requests": {} },
            "f:terminationMessagePath": {},
        } } } },
    } });
    let theirs = json!({ "f:spec": {
        "f:minReadySeconds": {},
        "f:template": { "f:spec": { "f:containers": { "k:{\"name\":\"a\"}": { "f:terminationMessagePath": {} } } } },
    } });
    existing["metadata"]["managedFields"] = json!([
        { "manager": "work-agent", "operation": "Update", "fieldsV1": fields },
        { "manager": "kubectl-edit", "operation": "Update", "fieldsV1": theirs },
    ]);
    let put = replaced(update(&existing, &wanted, None));
    assert_eq!(
        put["spec"],
        json!({
            "replicas": 5,
            "strategy": { "type": "Recreate" },
            "minReadySeconds": 9,
            "template": { "spec": {
                "containers": [{
                    "name": "a", "image": "x",
                    "resources": { "limits": { "cpu": "2" } },
                    "livenessProbe": { "tcpSocket": { "port": 1 } },
                    "terminationMessagePath": "theirs",
                }],
                "volumes": [{ "name": "v", "configMap": { "name": "c" } }],
            } },
        })
    );
    assert_eq!(update(&put, &wanted, None), Merge::Same);
}

#[test]
fn what_never_changes_is_made_anew() {
    let class = |body: Value| ("storage.k8s.io/v1", "StorageClass", body);
    let binding = |role: &str| json!({ "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role } });
    let secret = |body: Value| ("v1", "Secret", body);
    for ((api_version, kind, existing), wanted, expected) in [
        (secret(json!({ "type": "Opaque" })), json!({ "type": "kubernetes.io/tls" }), true),
        (secret(json!({ "type": "kubernetes.io/tls" })), json!({}), true),
        (
            secret(json!({ "type": "Opaque", "immutable": true, "data": {} })),
            json!({ "data": { "a": "" } }),
            true,
        ),
        (
            secret(json!({ "type": "Opaque", "immutable": true })),
            json!({ "immutable": false }),
            true,
        ),
        (
            secret(json!({ "type": "Opaque", "immutable": true })),
            json!({ "immutable": true }),
            false,
        ),
        (
            class(
                json!({ "provisioner": "a", "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate" }),
            ),
            json!({ "provisioner": "a" }),
            false,
        ),
        (
            class(
                json!({ "provisioner": "a", "reclaimPolicy": "Retain", "volumeBindingMode": "Immediate" }),
            ),
            json!({ "provisioner": "a" }),
            true,
        ),
        (
            class(json!({ "provisioner": "a", "parameters": { "x": "y" } })),
            json!({ "provisioner": "a" }),
            true,
        ),
        (("rbac.authorization.k8s.io/v1", "RoleBinding", binding("a")), binding("b"), true),
        (
            ("rbac.authorization.k8s.io/v1", "RoleBinding", binding("a")),
            json!({ "roleRef": { "kind": "Role", "name": "a" } }),
            false,
        ),
    ] {
        let merge = check(api_version, kind, existing.clone(), wanted.clone());
        assert_eq!(merge == Merge::Recreate, expected, "{existing} {wanted} {merge:?}");
    }
}

#[test]
fn what_others_inject_stays() {
    let hook = |ca: &str| json!({ "webhooks": [{ "name": "x", "clientConfig": { "url": "u", "caBundle": ca } }] });
    let kind = "ValidatingWebhookConfiguration";
    let group = "admissionregistration.k8s.io/v1";
    assert_eq!(check(group, kind, hook("QQ=="), hook("")), Merge::Same);
    assert_eq!(check(group, kind, hook("QQ=="), hook("Cg==")), Merge::Same);
    let changed = json!({ "webhooks": [{ "name": "x", "clientConfig": { "url": "v" } }] });
    let put = replaced(check(group, kind, hook("QQ=="), changed));
    assert_eq!(put["webhooks"][0]["clientConfig"], json!({ "url": "v", "caBundle": "QQ==" }));
    assert!(matches!(check(group, kind, hook("QQ=="), hook("Qg==")), Merge::Replace(_)));

    let token = "kubernetes.io/service-account-token";
    let existing =
        json!({ "type": token, "data": { "token": "QQ==", "ca.crt": "QQ==", "x": "QQ==" } });
    let put = replaced(check("v1", "Secret", existing, json!({ "type": token })));
    assert_eq!(put["data"], json!({ "token": "QQ==", "ca.crt": "QQ==" }));

    let asks = json!({ "metadata": { "labels": { "config.openshift.io/inject-trusted-cabundle": "true" } } });
    let mut existing = asks.clone();
    existing["data"] = json!({ "ca-bundle.crt": "pem" });
    assert_eq!(check("v1", "ConfigMap", existing, asks), Merge::Same);

    let role = json!({ "aggregationRule": { "clusterRoleSelectors": [] }, "rules": [{ "verbs": ["get"] }] });
    let wanted = json!({ "aggregationRule": { "clusterRoleSelectors": [] }, "rules": [] });
    assert_eq!(check("rbac.authorization.k8s.io/v1", "ClusterRole", role, wanted), Merge::Same);
}

#[test]
fn nothing_that_only_a_server_may_say_is_created() {
    let manifest = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": "a", "uid": "u", "resourceVersion": "1", "creationTimestamp": null,
            "ownerReferences": [{}], "finalizers": ["f"], "labels": { "a": "b", "c-": "" },
        },
        "data": { "x": "y" }, "status": {},
    });
    let expected = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "a", "finalizers": ["f"], "labels": { "a": "b" } },
        "data": { "x": "y" },
    });
    assert_eq!(fresh(&manifest), expected);
}

#[test]
fn fingerprints_stand_for_content() {
    let one = object("v1", "ConfigMap", json!({ "data": { "a": "b" } }));
    let mut other = one.clone();
    other["metadata"]["resourceVersion"] = json!("8");
    other["metadata"]["managedFields"] = json!([{}]);
    other["status"] = json!({ "x": 1 });
    assert_eq!(fingerprint(&one), fingerprint(&other));
    other["metadata"]["labels"] = json!({ "a": "b" });
    assert_ne!(fingerprint(&one), fingerprint(&other));
    other = one.clone();
    other["data"]["a"] = json!("c");
    assert_ne!(fingerprint(&one), fingerprint(&other));
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0_i64..3).prop_map(Value::from),
        "[ab]{0,1}|100m|Yg==".prop_map(Value::from),
    ];
    let key = "a|name|data|spec|replicas|containers|template|volumes|emptyDir|limits|cpu|type";
    leaf.prop_recursive(5, 40, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(key, inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// A server that changes nothing is written to once.
    #[test]
    fn what_was_put_says_what_was_stated(
        kind in prop::sample::select(vec![
            ("apps/v1", "Deployment"), ("v1", "Service"), ("v1", "ConfigMap"), ("v1", "Secret"),
            ("example.com/v1", "Widget"), ("v1", "Pod"), ("rbac.authorization.k8s.io/v1", "Role"),
            ("networking.k8s.io/v1", "NetworkPolicy"), ("batch/v1", "CronJob"),
        ]),
        bodies in prop::collection::vec(json_value(), 3),
    ) {
        let made = |body: &Value| object(kind.0, kind.1, json!({
            "spec": body, "data": body, "rules": body, "type": "Opaque",
        }));
        let [existing, wanted, before] = [&bodies[0], &bodies[1], &bodies[2]].map(made);
        for previous in [None, Some(&before)] {
            if let Merge::Replace(put) = update(&existing, &wanted, previous) {
                prop_assert_eq!(update(&put, &wanted, Some(&wanted)), Merge::Same, "{}", put);
                prop_assert_eq!(update(&put, &wanted, previous), Merge::Same, "{}", put);
            }
        }
        if kind.1 != "Secret" || bodies[1].is_object() {
            prop_assert_eq!(update(&wanted, &wanted, Some(&wanted)), Merge::Same);
        }
        let _ = format!("{:?}", restate(&existing, &wanted));
    }
}
