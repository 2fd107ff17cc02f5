//! What a cluster has on the hub: a namespace, a lease, and as few rights as its agent needs.
//!
//! Names are those of OCM, so that its tools find them. Rights are fewer: an agent cannot list what
//! others asked for, cannot change what its cluster is to be (only say what it is), and cannot
//! remove works.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use cleat_api::managedcluster::{CLUSTER_NAME_LABEL, LEASE};
use serde_json::{Value, json};

use super::identity::{BOOTSTRAP_ACCOUNT, BOOTSTRAP_NAMESPACE, group};
use crate::id::{Id, Target};

/// Holds the right to look after works until there is none left, even in a namespace that goes.
pub const WORK_FINALIZER: &str = "cluster.open-cluster-management.io/manifest-work-cleanup";

/// The roles that are the same for all clusters.
pub const REGISTRATION_ROLE: &str = "open-cluster-management:managedcluster:registration";
pub const WORK_ROLE: &str = "open-cluster-management:managedcluster:work";
/// What agents may do that have no certificate yet.
pub const BOOTSTRAP_ROLE: &str = "open-cluster-management:bootstrap";

const RBAC: &str = "rbac.authorization.k8s.io";
const CLUSTER: &str = "cluster.open-cluster-management.io";
/// Who may `renew` this may have a new certificate for an old one.
pub const RENEWAL_GROUP: &str = "register.open-cluster-management.io";
pub const RENEWAL_RESOURCE: &str = "managedclusters";
pub const RENEWAL_SUBRESOURCE: &str = "clientcertificates";

/// Whether the cluster may do its work, or only learn that it may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    Accepted,
    Denied,
    /// It was denied and is leaving: it may do what that takes, and ask for no new certificate.
    Leaving,
}

/// One object a cluster has on the hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    Namespace,
    Role,
    RoleBinding,
    Registration,
    Work,
    Lease,
}

impl Part {
    pub const ALL: [Self; 6] = [
        Self::Namespace,
        Self::Role,
        Self::RoleBinding,
        Self::Registration,
        Self::Work,
        Self::Lease,
    ];

    pub fn target(self, cluster: &str) -> Target {
        let role = format!("open-cluster-management:managedcluster:{cluster}");
        let (group, resource, namespace, name) = match self {
            Self::Namespace => ("", "namespaces", "", cluster.to_owned()),
            Self::Role => (RBAC, "clusterroles", "", role),
            Self::RoleBinding => (RBAC, "clusterrolebindings", "", role),
            Self::Registration => (RBAC, "rolebindings", cluster, format!("{role}:registration")),
            Self::Work => (RBAC, "rolebindings", cluster, format!("{role}:work")),
            Self::Lease => ("coordination.k8s.io", "leases", cluster, LEASE.to_owned()),
        };
        target(group, resource, namespace, name)
    }

    /// The object as it should be.
    pub fn wanted(self, cluster: &str, standing: Standing) -> Value {
        let Target { id, .. } = self.target(cluster);
        let labels = json!({ CLUSTER_NAME_LABEL: cluster });
        let metadata = match self {
            Self::Namespace | Self::Role | Self::RoleBinding => {
                json!({ "name": id.name, "labels": labels })
            }
            Self::Registration | Self::Lease => {
                json!({ "name": id.name, "namespace": id.namespace, "labels": labels })
            }
            Self::Work => json!({
                "name": id.name, "namespace": id.namespace, "labels": labels,
                "finalizers": [WORK_FINALIZER],
            }),
        };
        let binding = |kind: &str, role: &str| {
            json!({
                "apiVersion": format!("{RBAC}/v1"), "kind": kind, "metadata": metadata,
                "roleRef": { "apiGroup": RBAC, "kind": "ClusterRole", "name": role },
                "subjects": [{ "apiGroup": RBAC, "kind": "Group", "name": group(cluster) }],
            })
        };
        match self {
            Self::Namespace => {
                json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": metadata })
            }
            Self::Role => json!({
                "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole", "metadata": metadata,
                "rules": rules(cluster, standing),
            }),
            Self::RoleBinding => binding("ClusterRoleBinding", &id.name),
            Self::Registration => binding("RoleBinding", REGISTRATION_ROLE),
            Self::Work => binding("RoleBinding", WORK_ROLE),
            Self::Lease => json!({
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata,
                "spec": { "holderIdentity": LEASE },
            }),
        }
    }
}

/// The rights an agent has outside its namespace.
fn rules(cluster: &str, standing: Standing) -> Vec<Value> {
    let own = json!({
        "apiGroups": [CLUSTER], "resources": ["managedclusters"], "resourceNames": [cluster],
        "verbs": ["get", "list", "watch"],
    });
    let status = json!({
        "apiGroups": [CLUSTER], "resources": ["managedclusters/status"],
        "resourceNames": [cluster], "verbs": ["patch", "update"],
    });
    match standing {
        Standing::Denied => [own].into(),
        Standing::Leaving => [own, status].into(),
        Standing::Accepted => [
            own,
            status,
            // Policies that go with the definition of their kind were deleted by nobody.
            json!({
                "apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"],
                "resourceNames": [format!("policies.{}", cleat_api::policy::GROUP)],
                "verbs": ["get"],
            }),
            // Without `list` nobody finds a request whose name it does not know.
            json!({
                "apiGroups": ["certificates.k8s.io"], "resources": ["certificatesigningrequests"],
                "verbs": ["create", "get"],
            }),
            json!({
                "apiGroups": [RENEWAL_GROUP],
                "resources": [format!("{RENEWAL_RESOURCE}/{RENEWAL_SUBRESOURCE}")],
                "resourceNames": [cluster], "verbs": ["renew"],
            }),
        ]
        .into(),
    }
}

/// What is there once for all clusters. A hub without it grants nobody anything.
pub fn foundation() -> Vec<(Target, Value)> {
    let role = |name: &str, rules: Value| {
        let object = json!({
            "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole",
            "metadata": { "name": name, "labels": { CLUSTER_NAME_LABEL: "" } }, "rules": rules,
        });
        (target(RBAC, "clusterroles", "", name.to_owned()), object)
    };
    [
        role(
            REGISTRATION_ROLE,
            json!([
                {
                    "apiGroups": ["coordination.k8s.io"], "resources": ["leases"],
                    "resourceNames": [LEASE], "verbs": ["get", "update", "patch"],
                },
                {
                    "apiGroups": ["addon.open-cluster-management.io"],
                    "resources": ["managedclusteraddons"], "verbs": ["get", "list", "watch"],
                },
                {
                    "apiGroups": ["addon.open-cluster-management.io"],
                    "resources": ["managedclusteraddons/status"], "verbs": ["patch", "update"],
                },
            ]),
        ),
        role(
            WORK_ROLE,
            json!([
                {
                    "apiGroups": ["", "events.k8s.io"], "resources": ["events"],
                    "verbs": ["create", "patch", "update"],
                },
                {
                    "apiGroups": ["work.open-cluster-management.io"],
                    "resources": ["manifestworks"],
                    "verbs": ["get", "list", "watch", "update", "patch"],
                },
                {
                    "apiGroups": ["work.open-cluster-management.io"],
                    "resources": ["manifestworks/status"], "verbs": ["patch", "update"],
                },
                {
                    "apiGroups": ["work.open-cluster-management.io"],
                    "resources": ["manifestworks/finalizers"], "verbs": ["update"],
                },
                // What a removal would do is asked and answered here.
                {
                    "apiGroups": ["cleat.dev"], "resources": ["removalpreviews"],
                    "verbs": ["get", "list", "watch"],
                },
                {
                    "apiGroups": ["cleat.dev"], "resources": ["removalpreviews/status"],
                    "verbs": ["patch", "update"],
                },
                // Policies are only read, reported on, and held until the cluster let go of them.
                {
                    "apiGroups": [cleat_api::policy::GROUP], "resources": ["policies"],
                    "verbs": ["get", "list", "watch", "update", "patch"],
                },
                {
                    "apiGroups": [cleat_api::policy::GROUP],
                    "resources": ["policies/status", "policies/finalizers"],
                    "verbs": ["patch", "update"],
                },
                {
                    "apiGroups": [""], "resources": ["secrets"],
                    "resourceNames": [cleat_api::policy::name::ENCRYPTION_KEY_SECRET],
                    "verbs": ["get", "list", "watch"],
                },
            ]),
        ),
    ]
    .into()
}

/// With what an agent comes that has no certificate yet: it may ask to join, look at what became of
/// that, and learn which cluster the hub is.
pub fn bootstrap() -> Vec<(Target, Value)> {
    let account = json!({ "name": BOOTSTRAP_ACCOUNT, "namespace": BOOTSTRAP_NAMESPACE });
    [
        (
            target("", "namespaces", "", BOOTSTRAP_NAMESPACE.to_owned()),
            json!({
                "apiVersion": "v1", "kind": "Namespace",
                "metadata": { "name": BOOTSTRAP_NAMESPACE },
            }),
        ),
        (
            target("", "serviceaccounts", BOOTSTRAP_NAMESPACE, BOOTSTRAP_ACCOUNT.to_owned()),
            json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": account }),
        ),
        (
            target(RBAC, "clusterroles", "", BOOTSTRAP_ROLE.to_owned()),
            json!({
                "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole",
                "metadata": { "name": BOOTSTRAP_ROLE },
                "rules": [
                    {
                        "apiGroups": ["certificates.k8s.io"],
                        "resources": ["certificatesigningrequests"], "verbs": ["create", "get"],
                    },
                    {
                        "apiGroups": [CLUSTER], "resources": ["managedclusters"],
                        "verbs": ["create", "get"],
                    },
                    {
                        "apiGroups": [""], "resources": ["namespaces"],
                        "resourceNames": ["kube-system"], "verbs": ["get"],
                    },
                ],
            }),
        ),
        (
            target(RBAC, "clusterrolebindings", "", BOOTSTRAP_ROLE.to_owned()),
            json!({
                "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRoleBinding",
                "metadata": { "name": BOOTSTRAP_ROLE },
                "roleRef": { "apiGroup": RBAC, "kind": "ClusterRole", "name": BOOTSTRAP_ROLE },
                "subjects": [{
                    "kind": "ServiceAccount", "name": BOOTSTRAP_ACCOUNT,
                    "namespace": BOOTSTRAP_NAMESPACE,
                }],
            }),
        ),
    ]
    .into()
}

fn target(group: &str, resource: &str, namespace: &str, name: String) -> Target {
    let [group, resource, namespace] = [group, resource, namespace].map(ToOwned::to_owned);
    Target { version: "v1".to_owned(), id: Id { group, resource, namespace, name } }
}

/// Whether `live` has all that `wanted` says. What `wanted` does not mention is somebody else's.
pub fn covers(live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => wanted.iter().all(|(key, wanted)| {
            let ignored = matches!(key.as_str(), "apiVersion" | "kind");
            ignored || live.get(key).is_some_and(|live| covers(live, wanted))
        }),
        (live, wanted) => live == wanted,
    }
}
