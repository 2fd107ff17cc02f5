//! Beyond these, cells were compared with upstream's printers over its whole test data, pruned at
//! random, and over random pods, when they were written.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::builtin;
use crate::resource::{Column as Declared, Version};

fn options() -> TableOptions {
    TableOptions {
        version: MetaVersion::V1,
        include: Include::None,
        headers: true,
        now: "2026-01-01T01:00:00Z".parse().unwrap(),
    }
}

fn printer(group: &str, plural: &str) -> Printer {
    let found = builtin::resources()
        .iter()
        .find(|resource| &*resource.group == group && &*resource.plural == plural);
    let resource = found.unwrap_or_else(|| panic!("{group} {plural}"));
    Printer::new(resource, &resource.storage_version)
}

/// `Column=cell` for each, with `*` after the names of wide ones.
fn shown(printer: &Printer, mut object: Value) -> String {
    object["metadata"]["name"] = json!("x");
    object["metadata"]["creationTimestamp"] = json!("2026-01-01T00:55:00Z");
    let table = printer.table(None, [&object], &options());
    let cells = table["rows"][0]["cells"].as_array().unwrap();
    let columns = table["columnDefinitions"].as_array().unwrap();
    assert_eq!(cells.len(), columns.len());
    let pairs = columns.iter().zip(cells).map(|(column, cell)| {
        let wide = if column["priority"] == 1 { "*" } else { "" };
        let cell = match cell {
            Value::String(text) => text.clone(),
            other => format!("<{other}>"),
        };
        format!("{}{wide}={cell}", column["name"].as_str().unwrap())
    });
    pairs.collect::<Vec<_>>().join("|")
}

fn check(group: &str, plural: &str, object: Value, expected: &str) {
    assert_eq!(shown(&printer(group, plural), object), expected, "{group} {plural}");
}

#[test]
fn kinds_of_the_core_group() {
    check("", "namespaces", json!({"status": {"phase": "Active"}}), "Name=x|Status=Active|Age=5m");
    check(
        "",
        "configmaps",
        json!({"data": {"a": "", "b": ""}, "binaryData": {"c": ""}}),
        "Name=x|Data=<3>|Age=5m",
    );
    check("", "secrets", json!({"type": "Opaque"}), "Name=x|Type=Opaque|Data=<0>|Age=5m");
    check("", "serviceaccounts", json!({}), "Name=x|Age=5m");
    check("", "limitranges", json!({}), "Name=x|Created At=2026-01-01T00:55:00Z");
    check(
        "",
        "nodes",
        json!({
            "metadata": {"labels": {
                "node-role.kubernetes.io/worker": "", "kubernetes.io/role": "db",
            }},
            "spec": {"unschedulable": true},
            "status": {
                "conditions": [{"type": "Ready", "status": "False"}],
                "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
                "nodeInfo": {"kubeletVersion": "v1", "kernelVersion": "6", "architecture": "arm64"},
            },
        }),
        "Name=x|Status=NotReady,SchedulingDisabled|Roles=db,worker|Age=5m|Version=v1|\
         Internal-IP*=10.0.0.1|External-IP*=<none>|OS-Image*=<unknown>|\
         Kernel-Version*=6 (arm64)|Container-Runtime*=<unknown>",
    );
    let event = "Last Seen=10m|Type=Normal|Reason=R|Object=pod/p|Subobject*=|Source*=c, h|\
                 Message=hi|First Seen*=20m|Count*=<3>|Name*=x";
    check(
        "",
        "events",
        json!({
            "type": "Normal", "reason": "R", "message": " hi\n", "count": 3,
            "involvedObject": {"kind": "Pod", "name": "p"},
            "source": {"component": "c", "host": "h"},
            "firstTimestamp": "2026-01-01T00:40:00Z", "lastTimestamp": "2026-01-01T00:50:00Z",
        }),
        event,
    );
    check(
        "events.k8s.io",
        "events",
        json!({
            "type": "Normal", "reason": "R", "note": "hi", "eventTime": "2026-01-01T00:40:00.5Z",
            "regarding": {"kind": "Pod", "name": "p"},
            "reportingController": "c", "reportingInstance": "h",
            "series": {"count": 3, "lastObservedTime": "2026-01-01T00:50:00.0Z"},
        }),
        &event.replace("First Seen*=20m", "First Seen*=19m"),
    );
    check(
        "",
        "resourcequotas",
        json!({"status": {
            "hard": {"pods": "4", "cpu": "2", "limits.cpu": "8"}, "used": {"pods": "1"},
        }}),
        "Name=x|Request=cpu: 0/2, pods: 1/4|Limit=limits.cpu: 0/8|Age=5m",
    );
}

#[test]
fn pods_say_what_they_are_doing() {
    let container = |state: Value| json!({"name": "c", "state": state});
    let waiting = container(json!({"waiting": {"reason": "CrashLoopBackOff"}}));
    let completed = container(json!({"terminated": {"reason": "Completed", "exitCode": 0}}));
    let failed = container(json!({"terminated": {"exitCode": 3}}));
    let killed = container(json!({"terminated": {"exitCode": 137, "signal": 9}}));
    let running = json!({
        "name": "c", "ready": true, "restartCount": 2, "state": {"running": {}},
        "lastState": {"terminated": {"finishedAt": "2026-01-01T00:59:00Z"}},
    });
    let spec = json!({"containers": [{}, {}], "initContainers": [{"name": "c"}]});
    for (phase, status, meta, ready, reason, restarts) in [
        ("Pending", json!({}), json!({}), "0/2", "Pending", "0"),
        ("Pending", json!({"reason": "Evicted"}), json!({}), "0/2", "Evicted", "0"),
        (
            "Running",
            json!({"containerStatuses": [running]}),
            json!({}),
            "1/2",
            "Running",
            "2 (60s ago)",
        ),
        (
            "Running",
            json!({"containerStatuses": [waiting]}),
            json!({}),
            "0/2",
            "CrashLoopBackOff",
            "0",
        ),
        (
            "Succeeded",
            json!({"containerStatuses": [completed]}),
            json!({}),
            "0/2",
            "Completed",
            "0",
        ),
        (
            "Running",
            json!({"containerStatuses": [completed, running]}),
            json!({}),
            "1/2",
            "NotReady",
            "2 (60s ago)",
        ),
        ("Failed", json!({"containerStatuses": [failed]}), json!({}), "0/2", "ExitCode:3", "0"),
        (
            "Failed",
            json!({"containerStatuses": [completed, failed]}),
            json!({}),
            "0/2",
            "ExitCode:3",
            "0",
        ),
        ("Failed", json!({"containerStatuses": [killed]}), json!({}), "0/2", "Signal:9", "0"),
        (
            "Pending",
            json!({"initContainerStatuses": [container(json!({}))]}),
            json!({}),
            "0/2",
            "Init:0/1",
            "0",
        ),
        (
            "Pending",
            json!({"initContainerStatuses": [waiting]}),
            json!({}),
            "0/2",
            "Init:CrashLoopBackOff",
            "0",
        ),
        (
            "Pending",
            json!({"initContainerStatuses": [failed]}),
            json!({}),
            "0/2",
            "Init:ExitCode:3",
            "0",
        ),
        (
            "Pending",
            json!({"conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]}),
            json!({}),
            "0/2",
            "SchedulingGated",
            "0",
        ),
        ("Running", json!({}), json!({"deletionTimestamp": "t"}), "0/2", "Terminating", "0"),
        (
            "Running",
            json!({"reason": "NodeLost"}),
            json!({"deletionTimestamp": "t"}),
            "0/2",
            "Unknown",
            "0",
        ),
        ("Failed", json!({}), json!({"deletionTimestamp": "t"}), "0/2", "Failed", "0"),
    ] {
        let mut status = status;
        status["phase"] = json!(phase);
        let object = json!({"metadata": meta, "spec": spec, "status": status});
        let expected = format!(
            "Name=x|Ready={ready}|Status={reason}|Restarts={restarts}|Age=5m|IP*=<none>|\
             Node*=<none>|Nominated Node*=<none>|Readiness Gates*=<none>"
        );
        check("", "pods", object, &expected);
    }
    let done = json!({"metadata": {"name": "x"}, "status": {"phase": "Succeeded"}});
    let table = printer("", "pods").table(None, [&done], &options());
    assert_eq!(table["rows"][0]["conditions"][0]["reason"], "Succeeded");
}

#[test]
fn kinds_that_run_something() {
    let template = json!({"spec": {"containers": [
        {"name": "a", "image": "i"}, {"name": "b", "image": "j"},
    ]}});
    let selector = json!({"matchLabels": {"app": "web"}});
    check(
        "apps",
        "deployments",
        json!({
            "spec": {"replicas": 3, "template": template, "selector": selector},
            "status": {"readyReplicas": 1, "updatedReplicas": 2},
        }),
        "Name=x|Ready=1/3|Up-to-date=<2>|Available=<0>|Age=5m|Containers*=a,b|Images*=i,j|\
         Selector*=app=web",
    );
    check(
        "apps",
        "statefulsets",
        json!({"spec": {"replicas": 3, "template": template}}),
        "Name=x|Ready=0/3|Age=5m|Containers*=a,b|Images*=i,j",
    );
    check(
        "apps",
        "daemonsets",
        json!({"status": {"desiredNumberScheduled": 2}}),
        "Name=x|Desired=<2>|Current=<0>|Ready=<0>|Up-to-date=<0>|Available=<0>|\
         Node Selector=<none>|Age=5m|Containers*=|Images*=|Selector*=<none>",
    );
    check(
        "apps",
        "controllerrevisions",
        json!({"revision": 2, "metadata": {"ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "controller": true},
        ]}}),
        "Name=x|Controller=daemonset.apps/d|Revision=<2>|Age=5m",
    );
    check(
        "batch",
        "jobs",
        json!({
            "spec": {"completions": 2, "selector": selector},
            "status": {
                "succeeded": 1, "startTime": "2026-01-01T00:00:00Z",
                "completionTime": "2026-01-01T00:02:10Z",
                "conditions": [{"type": "Complete", "status": "True"}],
            },
        }),
        "Name=x|Status=Complete|Completions=1/2|Duration=2m10s|Age=5m|Containers*=|Images*=|\
         Selector*=app=web",
    );
    check(
        "batch",
        "cronjobs",
        json!({"spec": {"schedule": "* * * * *", "suspend": false}, "status": {"active": [{}]}}),
        "Name=x|Schedule=* * * * *|Timezone=<none>|Suspend=False|Active=<1>|\
         Last Schedule=<none>|Age=5m|Containers*=|Images*=|Selector*=<none>",
    );
    check(
        "policy",
        "poddisruptionbudgets",
        json!({"spec": {"minAvailable": "50%"}}),
        "Name=x|Min Available=50%|Max Unavailable=N/A|Allowed Disruptions=<0>|Age=5m",
    );
    check(
        "autoscaling",
        "horizontalpodautoscalers",
        json!({
            "spec": {
                "scaleTargetRef": {"kind": "Deployment", "name": "d"}, "maxReplicas": 9,
                "metrics": [
                    {"type": "Resource", "resource": {
                        "name": "cpu", "target": {"averageUtilization": 80},
                    }},
                    {"type": "Pods", "pods": {"target": {"averageValue": "7"}}},
                    {"type": "Odd"},
                ],
            },
            "status": {"currentMetrics": [
                {"type": "Resource", "resource": {"current": {"averageUtilization": 12}}},
            ]},
        }),
        "Name=x|Reference=Deployment/d|Targets=cpu: 12%/80%, <unknown>/7 + 1 more...|\
         MinPods=<unset>|MaxPods=<9>|Replicas=<0>|Age=5m",
    );
}

#[test]
fn kinds_of_networks_and_storage() {
    check(
        "",
        "services",
        json!({"spec": {
            "type": "LoadBalancer", "clusterIPs": ["10.0.0.1"], "selector": {"a": "b"},
            "ports": [{"port": 80, "protocol": "TCP", "nodePort": 30000}, {"port": 81, "protocol": "UDP"}],
        }}),
        "Name=x|Type=LoadBalancer|Cluster-IP=10.0.0.1|External-IP=<pending>|\
         Port(s)=80:30000/TCP,81/UDP|Age=5m|Selector*=a=b",
    );
    check(
        "",
        "endpoints",
        json!({"subsets": [{
            "addresses": [{"ip": "1.1.1.1"}, {"ip": "::1"}], "ports": [{"port": 1}, {"port": 2}],
        }]}),
        "Name=x|Endpoints=1.1.1.1:1,[::1]:1,1.1.1.1:2 + 1 more...|Age=5m",
    );
    check(
        "discovery.k8s.io",
        "endpointslices",
        json!({"addressType": "IPv4", "ports": [{"name": "p"}, {"port": 80}]}),
        "Name=x|AddressType=IPv4|Ports=p,80|Endpoints=<unset>|Age=5m",
    );
    check(
        "networking.k8s.io",
        "ingresses",
        json!({"spec": {"tls": [{}], "rules": [{"host": "a"}, {"host": "b"}, {"host": "c"}, {}]}}),
        "Name=x|Class=<none>|Hosts=a,b,c + 1 more...|Address=|Ports=80, 443|Age=5m",
    );
    check(
        "networking.k8s.io",
        "networkpolicies",
        json!({"spec": {"podSelector": {}}}),
        "Name=x|Pod-Selector=<none>|Age=5m",
    );
    check(
        "storage.k8s.io",
        "storageclasses",
        json!({
            "provisioner": "p",
            "metadata": {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        }),
        "Name=x (default)|Provisioner=p|ReclaimPolicy=Delete|VolumeBindingMode=Immediate|\
         AllowVolumeExpansion=<false>|Age=5m",
    );
    check(
        "",
        "persistentvolumes",
        json!({
            "spec": {
                "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany", "ReadWriteOnce"],
                "claimRef": {"namespace": "n", "name": "c"}, "storageClassName": "s",
            },
            "status": {"phase": "Bound"},
        }),
        "Name=x|Capacity=1Gi|Access Modes=RWO,RWX|Reclaim Policy=|Status=Bound|Claim=n/c|\
         StorageClass=s|VolumeAttributesClass=<unset>|Reason=|Age=5m|VolumeMode*=<unset>",
    );
    check(
        "",
        "persistentvolumeclaims",
        json!({"status": {"phase": "Pending", "capacity": {"storage": "1Gi"}}}),
        "Name=x|Status=Pending|Volume=|Capacity=|Access Modes=|StorageClass=|\
         VolumeAttributesClass=<unset>|Age=5m|VolumeMode*=<unset>",
    );
}

#[test]
fn kinds_about_the_api() {
    check(
        "rbac.authorization.k8s.io",
        "clusterrolebindings",
        json!({
            "roleRef": {"kind": "ClusterRole", "name": "r"},
            "subjects": [
                {"kind": "User", "name": "u"}, {"kind": "User", "name": "v"},
                {"kind": "ServiceAccount", "namespace": "n", "name": "s"},
            ],
        }),
        "Name=x|Role=ClusterRole/r|Age=5m|Users*=u, v|Groups*=|ServiceAccounts*=n/s",
    );
    for plural in ["roles", "clusterroles"] {
        check(
            "rbac.authorization.k8s.io",
            plural,
            json!({}),
            "Name=x|Created At=2026-01-01T00:55:00Z",
        );
    }
    check(
        "certificates.k8s.io",
        "certificatesigningrequests",
        json!({
            "spec": {"signerName": "s", "username": "u", "expirationSeconds": 600},
            "status": {"conditions": [{"type": "Approved"}], "certificate": "eA=="},
        }),
        "Name=x|Age=5m|SignerName=s|Requestor=u|RequestedDuration=10m|Condition=Approved,Issued",
    );
    check(
        "admissionregistration.k8s.io",
        "validatingwebhookconfigurations",
        json!({"webhooks": [{}, {}]}),
        "Name=x|Webhooks=<2>|Age=5m",
    );
    check("coordination.k8s.io", "leases", json!({}), "Name=x|Holder=|Age=5m");
    check(
        "apiregistration.k8s.io",
        "apiservices",
        json!({"status": {"conditions": [
            {"type": "Available", "status": "False", "reason": "Gone"},
        ]}}),
        "Name=x|Service=Local|Available=False (Gone)|Age=5m",
    );
    check(
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        json!({}),
        "Name=x|Created At=2026-01-01T00:55:00Z",
    );
}

fn custom(columns: &[(&str, &str, &str)]) -> Printer {
    let columns = columns.iter().map(|(name, kind, path)| Declared {
        name: (*name).into(),
        kind: (*kind).into(),
        format: "".into(),
        description: "".into(),
        priority: 0,
        json_path: (*path).into(),
    });
    let version = Version {
        name: "v1".into(),
        served: true,
        deprecation: None,
        schema: None,
        verbs: Vec::new(),
        subresources: Vec::new(),
        scale: None,
        columns: columns.collect(),
        selectable_fields: Vec::new(),
    };
    let resource = ResourceType {
        group: "example.com".into(),
        plural: "widgets".into(),
        singular: "widget".into(),
        kind: "Widget".into(),
        list_kind: "WidgetList".into(),
        short_names: Vec::new(),
        categories: Vec::new(),
        namespaced: true,
        versions: vec![version],
        storage_version: "v1".into(),
        origin: Origin::Custom { name: "widgets.example.com".into(), uid: "u".into() },
    };
    Printer::new(&resource, "v1")
}

#[test]
fn custom_resources_have_the_columns_they_declare() {
    let object = json!({
        "spec": {"size": 3, "ratio": 1.5, "on": true, "none": null, "tags": ["a"], "when": "soon"},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    });
    let printer = custom(&[
        ("Size", "integer", ".spec.size"),
        ("Ratio", "number", ".spec.ratio"),
        ("Whole", "integer", ".spec.ratio"),
        ("On", "boolean", ".spec.on"),
        ("Text", "string", ".spec.size"),
        ("None", "string", ".spec.none"),
        ("Tags", "string", ".spec.tags"),
        ("Gone", "string", ".spec.gone.deeper"),
        ("Wrong", "boolean", ".spec.size"),
        ("Ready", "string", ".status.conditions[?(@.type==\"Ready\")].status"),
        ("When", "date", ".spec.when"),
        ("Age", "date", ".metadata.creationTimestamp"),
        ("Bad", "string", ".spec["),
        ("After", "string", ".spec.size"),
    ]);
    assert_eq!(
        shown(&printer, object),
        "Name=x|Size=<3>|Ratio=<1.5>|Whole=<1>|On=<true>|Text=3|None=<no value>|Tags=[\"a\"]|\
         Gone=<null>|Wrong=<null>|Ready=True|When=<invalid>|Age=5m"
    );
    assert_eq!(shown(&custom(&[]), json!({})), "Name=x|Age=5m");
}

#[test]
fn tables_carry_as_much_of_the_objects_as_wanted() {
    let object = json!({"metadata": {"name": "x", "uid": "u"}, "data": {"a": "b"}});
    let list = json!({"resourceVersion": "7", "continue": "c", "remainingItemCount": 2, "x": 1});
    let with = |include, headers| {
        let options = TableOptions { include, headers, ..options() };
        printer("", "configmaps").table(Some(&list), [&object], &options)
    };
    let table = with(Include::Metadata, true);
    assert_eq!(table["kind"], "Table");
    assert_eq!(table["apiVersion"], "meta.k8s.io/v1");
    assert_eq!(
        table["metadata"],
        json!({"resourceVersion": "7", "continue": "c", "remainingItemCount": 2})
    );
    assert_eq!(
        table["columnDefinitions"][0],
        json!({
            "name": "Name", "type": "string", "format": "name",
            "description": "The object's name.", "priority": 0,
        })
    );
    assert_eq!(
        table["rows"][0],
        json!({
            "cells": ["x", 1, "<unknown>"],
            "object": {
                "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
                "metadata": {"name": "x", "uid": "u"},
            },
        })
    );
    assert_eq!(with(Include::Object, true)["rows"][0]["object"], object);
    assert_eq!(with(Include::None, false)["rows"][0]["object"], Value::Null);
    assert_eq!(with(Include::None, false)["columnDefinitions"], Value::Null);
    let partial = partial_metadata_list(Some(&list), [&object], MetaVersion::V1Beta1);
    assert_eq!(partial["items"][0]["apiVersion"], "meta.k8s.io/v1beta1");
}

/// Anything at all, under the names that columns look for.
fn anything() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z:/]{0,4}|2026-01-01T00:00:00Z".prop_map(Value::from),
    ];
    let keys = "metadata|spec|status|conditions|containers|initContainerStatuses|\
                containerStatuses|name|state|terminated|exitCode|restartCount|lastState|subsets|\
                addresses|ports|rules|metrics|series|type|reason";
    scalar.prop_recursive(5, 40, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(keys, inner, 0..4)
                .prop_map(|entries| entries.into_iter().collect()),
        ]
    })
}

proptest! {
    #[test]
    fn no_object_breaks_a_table(object in anything()) {
        for resource in builtin::resources() {
            let printer = Printer::new(resource, &resource.storage_version);
            printer.table(object.get("metadata"), [&object], &options());
        }
    }
}
