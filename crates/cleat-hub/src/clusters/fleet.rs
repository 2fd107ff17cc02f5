//! What the hub knows of its clusters: the objects, which of them are the same cluster, and when
//! each was last heard of.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cleat_api::managedcluster::{LEASE, ManagedCluster};
use cleat_core::lease::Heartbeat;
use cleat_core::registration::join::{self, Namesake};
use cleat_runtime::clock::Clock;
use cleat_runtime::queue::Queue;
use cleat_runtime::tasks::Tasks;
use k8s_openapi::api::coordination::v1::Lease;
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt as _};

use super::{COUNTING, Key};
use crate::mirror::{How, Mirror};

/// Its clones are the same.
#[derive(Clone)]
pub(super) struct Fleet {
    clusters: Mirror<ManagedCluster>,
    state: Arc<Mutex<State>>,
    clock: Clock,
}

#[derive(Default)]
struct State {
    /// The names under which a cluster is known, by its id.
    names: BTreeMap<String, BTreeSet<String>>,
    ids: BTreeMap<String, String>,
    heartbeats: BTreeMap<String, Heartbeat>,
}

impl Fleet {
    pub(super) fn new(clock: Clock) -> Self {
        Self { clusters: Mirror::new(), state: Arc::default(), clock }
    }

    pub(super) fn follow(
        &self,
        hub_client: &Client,
        selector: Option<&str>,
        queue: &Queue<Key>,
        tasks: &Tasks,
    ) {
        let mut config = watcher::Config::default();
        if let Some(selector) = selector {
            config = config.labels(selector);
        }
        let (fleet, adding) = (self.clone(), queue.clone());
        let heard = move |cluster: &ManagedCluster, how| {
            for name in fleet.index(cluster, how) {
                adding.add(Key::Cluster(name));
            }
            adding.add_after(Key::Counts, COUNTING);
        };
        let api: Api<ManagedCluster> = Api::all(hub_client.clone());
        let following = self.clusters.clone().follow(api, config, tasks.stop(), heard);
        tasks.spawn("watch clusters", following);
    }

    pub(super) async fn ready(&self) {
        self.clusters.ready().await;
    }

    pub(super) fn get(&self, name: &str) -> Option<Arc<ManagedCluster>> {
        self.clusters.get("", name)
    }

    pub(super) fn count(&self, is_counted: impl Fn(&ManagedCluster) -> bool) -> usize {
        self.clusters.all().iter().filter(|cluster| is_counted(cluster)).count()
    }

    /// Other objects for the same cluster, sorted by name.
    pub(super) fn namesakes(&self, cluster: &ManagedCluster) -> Vec<Namesake> {
        let own = cluster.name_any();
        let Some(id) = join::id(cluster) else { return Vec::new() };
        let names = self.state().names.get(id).cloned().unwrap_or_default();
        let others = names.iter().filter(|name| **name != own);
        others.filter_map(|name| Namesake::of(&*self.get(name)?)).collect()
    }

    pub(super) fn heartbeat(&self, name: &str) -> Heartbeat {
        self.state().heartbeats.get(name).copied().unwrap_or_default()
    }

    /// Notes what a lease says.
    pub(super) fn heard(&self, lease: &Lease, how: How) {
        if lease.name_any() != LEASE {
            return;
        }
        let name = lease.namespace().unwrap_or_default();
        let mut state = self.state();
        if how == How::Gone {
            state.heartbeats.remove(&name);
            return;
        }
        let renewed = lease.spec.as_ref().and_then(|spec| spec.renew_time.as_ref());
        let renewed = renewed.map(|time| time.0);
        let before = state.heartbeats.get(&name).copied();
        let next = Heartbeat::next(before, renewed, how == How::Changed, self.clock.now());
        state.heartbeats.insert(name, next);
    }

    /// Notes who the cluster is, and says which clusters that concerns.
    fn index(&self, cluster: &ManagedCluster, how: How) -> BTreeSet<String> {
        let name = cluster.name_any();
        let id = join::id(cluster).map(ToOwned::to_owned);
        let mut state = self.state();
        let State { names, ids, heartbeats: _ } = &mut *state;
        let mut concerned = BTreeSet::from([name.clone()]);
        if let Some(before) = ids.remove(&name)
            && let Some(same) = names.get_mut(&before)
        {
            same.remove(&name);
            concerned.extend(same.iter().cloned());
            if same.is_empty() {
                names.remove(&before);
            }
        }
        if let Some(id) = id.filter(|_| how != How::Gone) {
            let same = names.entry(id.clone()).or_default();
            concerned.extend(same.iter().cloned());
            same.insert(name.clone());
            ids.insert(name, id);
        }
        concerned
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
