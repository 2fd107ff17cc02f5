//! The agent as a Deployment in its cluster, as data.

use cleat_agent::registration::HubAddress;
use cleat_core::id::{Id, Target};
use cleat_core::leave::parts::{BOOTSTRAP, NAME, binding_name};
use serde_json::{Value, json};

/// One object, and where it goes.
pub(crate) struct Object {
    pub(crate) target: Target,
    pub(crate) object: Value,
}

pub(crate) struct Wish<'a> {
    pub(crate) cluster: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) image: &'a str,
    pub(crate) hub: &'a HubAddress,
    pub(crate) token: &'a str,
    pub(crate) strategy: &'a str,
    pub(crate) labels: &'a [(String, String)],
    pub(crate) lease_seconds: Option<i32>,
}

/// In the order in which they are applied. Works may hold anything, so the agent may do anything on
/// its own cluster; on the hub it may do next to nothing.
pub(crate) fn objects(wish: &Wish<'_>) -> Vec<Object> {
    let Wish { cluster, namespace, image, hub, token, strategy, labels, lease_seconds } = wish;
    let rbac = "rbac.authorization.k8s.io";
    let marks = json!({ "app": NAME });
    let binding = binding_name(namespace);
    let meta = json!({ "name": NAME, "namespace": namespace, "labels": marks });
    let mut arguments = vec![
        "agent".to_owned(),
        format!("--cluster-name={cluster}"),
        format!("--agent-namespace={namespace}"),
        "--bootstrap-dir=/bootstrap".to_owned(),
        format!("--remove-strategy={strategy}"),
        format!("--deployment={namespace}/{NAME}"),
    ];
    arguments.extend(labels.iter().map(|(key, value)| format!("--label={key}={value}")));
    arguments.extend(lease_seconds.map(|seconds| format!("--lease-seconds={seconds}")));
    let mut bootstrap = json!({ "server": hub.server, "token": token });
    if let (Some(authority), Some(bootstrap)) = (&hub.authority, bootstrap.as_object_mut()) {
        bootstrap.insert("ca.crt".to_owned(), json!(authority));
    }
    let pod = json!({
        "serviceAccountName": NAME,
        "containers": [{
            "name": "agent", "image": image, "args": arguments,
            "resources": { "requests": { "cpu": "10m", "memory": "32Mi" } },
            "securityContext": {
                "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
                "runAsNonRoot": true, "runAsUser": 65532,
                "capabilities": { "drop": ["ALL"] },
            },
            "volumeMounts": [{ "name": "bootstrap", "mountPath": "/bootstrap", "readOnly": true }],
        }],
        "volumes": [{ "name": "bootstrap", "secret": { "secretName": BOOTSTRAP } }],
    });
    let place = |group: &str, version: &str, resource: &str, namespace: &str, name: &str| Target {
        version: version.to_owned(),
        id: Id {
            group: group.to_owned(),
            resource: resource.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        },
    };
    vec![
        Object {
            target: place("", "v1", "namespaces", "", namespace),
            object: json!({
                "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace },
            }),
        },
        Object {
            target: place("", "v1", "serviceaccounts", namespace, NAME),
            object: json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta }),
        },
        Object {
            target: place(rbac, "v1", "clusterrolebindings", "", &binding),
            object: json!({
                "apiVersion": format!("{rbac}/v1"), "kind": "ClusterRoleBinding",
                "metadata": { "name": binding },
                "roleRef": { "apiGroup": rbac, "kind": "ClusterRole", "name": "cluster-admin" },
                "subjects": [{ "kind": "ServiceAccount", "name": NAME, "namespace": namespace }],
            }),
        },
        Object {
            target: place("", "v1", "secrets", namespace, BOOTSTRAP),
            object: json!({
                "apiVersion": "v1", "kind": "Secret",
                "metadata": { "name": BOOTSTRAP, "namespace": namespace },
                "stringData": bootstrap,
            }),
        },
        Object {
            target: place("apps", "v1", "deployments", namespace, NAME),
            object: json!({
                "apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta,
                "spec": {
                    "replicas": 1,
                    "strategy": { "type": "Recreate" },
                    "selector": { "matchLabels": marks },
                    "template": { "metadata": { "labels": marks }, "spec": pod },
                },
            }),
        },
    ]
}
