//! What clusters have on the hub, as watches tell: namespaces, rights, leases.

use std::collections::BTreeMap;
use std::fmt::Debug;

use cleat_api::managedcluster::CLUSTER_NAME_LABEL;
use cleat_core::registration::access::Part;
use cleat_core::registration::hub::Seen;
use cleat_runtime::queue::Queue;
use cleat_runtime::tasks::Tasks;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, RoleBinding};
use kube::runtime::watcher;
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Key;
use super::fleet::Fleet;
use crate::mirror::{How, Mirror};

pub(super) struct Parts {
    namespaces: Mirror<Namespace>,
    roles: Mirror<ClusterRole>,
    role_bindings: Mirror<ClusterRoleBinding>,
    bindings: Mirror<RoleBinding>,
    leases: Mirror<Lease>,
}

impl Parts {
    /// Only what says by its label to which cluster it belongs: a hub has much else.
    pub(super) fn follow(
        hub_client: &Client,
        fleet: &Fleet,
        queue: &Queue<Key>,
        tasks: &Tasks,
    ) -> Self {
        let fleet = fleet.clone();
        Self {
            namespaces: mirror(hub_client, queue, tasks, |_, _| {}),
            roles: mirror(hub_client, queue, tasks, |_, _| {}),
            role_bindings: mirror(hub_client, queue, tasks, |_, _| {}),
            bindings: mirror(hub_client, queue, tasks, |_, _| {}),
            leases: mirror(hub_client, queue, tasks, move |lease, how| fleet.heard(lease, how)),
        }
    }

    pub(super) async fn ready(&self) {
        self.namespaces.ready().await;
        self.roles.ready().await;
        self.role_bindings.ready().await;
        self.bindings.ready().await;
        self.leases.ready().await;
    }

    /// All parts of a cluster.
    pub(super) fn of(&self, cluster: &str) -> BTreeMap<Part, Seen> {
        Part::ALL.into_iter().map(|part| (part, self.part(cluster, part))).collect()
    }

    pub(super) fn role(&self, name: &str) -> Option<Value> {
        found(&self.roles, "", name)
    }

    fn part(&self, cluster: &str, part: Part) -> Seen {
        let id = part.target(cluster).id;
        let (namespace, name) = (&*id.namespace, &*id.name);
        let found = match part {
            Part::Namespace => found(&self.namespaces, namespace, name),
            Part::Role => found(&self.roles, namespace, name),
            Part::RoleBinding => found(&self.role_bindings, namespace, name),
            Part::Registration | Part::Work => found(&self.bindings, namespace, name),
            Part::Lease => found(&self.leases, namespace, name),
        };
        found.map_or(Seen::Absent, Seen::Present)
    }
}

fn found<K>(mirror: &Mirror<K>, namespace: &str, name: &str) -> Option<Value>
where
    K: Resource + Clone + Debug + DeserializeOwned + Serialize + Send + Sync + 'static,
{
    mirror.get(namespace, name).and_then(|object| serde_json::to_value(&*object).ok())
}

fn mirror<K>(
    hub_client: &Client,
    queue: &Queue<Key>,
    tasks: &Tasks,
    mut also: impl FnMut(&K, How) + Send + 'static,
) -> Mirror<K>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    let (mirror, queue) = (Mirror::new(), queue.clone());
    let heard = move |object: &K, how| {
        also(object, how);
        match object.labels().get(CLUSTER_NAME_LABEL).map(String::as_str) {
            Some("") => queue.add(Key::Foundation),
            Some(cluster) => queue.add(Key::Cluster(cluster.to_owned())),
            None => {}
        }
    };
    let api: Api<K> = Api::all(hub_client.clone());
    let config = watcher::Config::default().labels(CLUSTER_NAME_LABEL);
    tasks.spawn("watch parts", mirror.clone().follow(api, config, tasks.stop(), heard));
    mirror
}
