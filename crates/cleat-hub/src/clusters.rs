//! Clusters, as the hub looks after them: their place and rights, their life, their sets.
//!
//! This is the IO half of `cleat_core::registration::hub`, `cleat_core::lease` and
//! `cleat_core::clusterset`. Events only say which cluster to look at. The hub never dials a
//! cluster.

mod fleet;
mod leave;
mod parts;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cleat_api::managedcluster::ManagedCluster;
use cleat_api::managedclusterset::{DEFAULT, GLOBAL, ManagedClusterSet};
use cleat_api::managedclustersetbinding::ManagedClusterSetBinding;
use cleat_core::clusterset;
use cleat_core::registration::access::{self, Part};
use cleat_core::registration::hub::{self, Seen};
use cleat_core::write::{Action, Outcome, Side, Write};
use cleat_runtime::clock::Clock;
use cleat_runtime::execute::{self, Executor, Read};
use cleat_runtime::kinds::Kinds;
use cleat_runtime::queue::{self, Queue, Wake};
use cleat_runtime::tasks::Tasks;
use jiff::SignedDuration;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::Api;
use kube::runtime::watcher;
use kube::{Client, ResourceExt as _};

use self::fleet::Fleet;
use self::parts::Parts;
use crate::mirror::Mirror;
use crate::registration::Requests;

/// Clusters, sets and requests looked at at the same time.
const WORKERS: usize = 16;

/// How long to let clusters come and go before their sets are counted again.
const COUNTING: Duration = Duration::from_millis(300);

/// When to look again at what events should have told about sooner.
const CHECK: Duration = Duration::from_secs(1);

/// What the hub's part for clusters is told.
#[derive(Clone)]
pub struct Config {
    pub hub_client: Client,
    pub clock: Clock,
    /// Only clusters with these labels, in Kubernetes' own spelling; without it, all.
    pub selector: Option<String>,
}

impl Config {
    pub fn new(hub_client: Client) -> Self {
        Self { hub_client, clock: Clock::system(), selector: None }
    }
}

/// What to look at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    /// What is there once for all clusters.
    Foundation,
    Cluster(String),
    /// A request for a certificate.
    Request(String),
    Set(String),
    /// How many clusters every set has.
    Counts,
    /// Namespace and name.
    Binding(String, String),
}

struct Context {
    hub_client: Client,
    executor: Executor,
    kinds: Kinds,
    clock: Clock,
    hub_id: Option<String>,
    fleet: Fleet,
    parts: Parts,
    sets: Mirror<ManagedClusterSet>,
    bindings: Mirror<ManagedClusterSetBinding>,
    requests: Requests,
}

/// Starts looking after clusters, until `tasks` end.
pub fn start(config: Config, tasks: &Tasks) {
    let stop = tasks.stop();
    let more = tasks.clone();
    tasks.spawn("clusters", async move {
        let mut stop = stop;
        let Some(hub_id) = stop.clone().or(own_id(&config.hub_client)).await else { return };
        let queue = Queue::new();
        let context = Arc::new(watch(config, hub_id, &queue, &more));
        let Some(()) = stop.or(context.ready()).await else { return };
        queue.add(Key::Foundation);
        let closing = queue.clone();
        more.spawn("clusters: end", async move {
            stop.stopped().await;
            closing.close();
        });
        let handle = move |key| {
            let context = Arc::clone(&context);
            async move { context.handle(key).await }
        };
        queue::run(queue, WORKERS, handle).await;
    });
}

/// By what the hub is known to clusters that might be the hub itself. Without it nobody can tell.
async fn own_id(hub_client: &Client) -> Option<String> {
    let namespaces: Api<Namespace> = Api::all(hub_client.clone());
    let mut pause = tokio::time::interval(CHECK);
    loop {
        pause.tick().await;
        match namespaces.get_opt("kube-system").await {
            Ok(found) => return found.and_then(|namespace| namespace.uid()),
            Err(error) => tracing::warn!(%error, "the hub does not say who it is"),
        }
    }
}

fn watch(config: Config, hub_id: Option<String>, queue: &Queue<Key>, tasks: &Tasks) -> Context {
    let Config { hub_client, clock, selector } = config;
    let executor = Executor::new(execute::Config {
        hub: Some(hub_client.clone()),
        field_manager: Some(hub::MANAGER.to_owned()),
        user_agent: Some(hub::MANAGER.to_owned()),
        ..Default::default()
    });
    let all = watcher::Config::default();
    let fleet = Fleet::new(clock.clone());
    fleet.follow(&hub_client, selector.as_deref(), queue, tasks);
    let parts = Parts::follow(&hub_client, &fleet, queue, tasks);

    let (sets, adding) = (Mirror::new(), queue.clone());
    let heard = move |set: &ManagedClusterSet, _| {
        let name = set.name_any();
        if name == DEFAULT || name == GLOBAL {
            adding.add(Key::Foundation);
        }
        adding.add(Key::Set(name));
    };
    let api: Api<ManagedClusterSet> = Api::all(hub_client.clone());
    tasks.spawn("watch sets", sets.clone().follow(api, all.clone(), tasks.stop(), heard));

    let (bindings, adding) = (Mirror::new(), queue.clone());
    let heard = move |binding: &ManagedClusterSetBinding, _| {
        adding.add(Key::Binding(binding.namespace().unwrap_or_default(), binding.name_any()));
    };
    let api: Api<ManagedClusterSetBinding> = Api::all(hub_client.clone());
    tasks.spawn("watch bindings", bindings.clone().follow(api, all.clone(), tasks.stop(), heard));

    let (asked, adding) = (Mirror::new(), queue.clone());
    let heard = move |request: &CertificateSigningRequest, _| {
        adding.add(Key::Request(request.name_any()));
    };
    let api: Api<CertificateSigningRequest> = Api::all(hub_client.clone());
    tasks.spawn("watch requests", asked.clone().follow(api, all, tasks.stop(), heard));
    let requests = Requests::new(hub_client.clone(), asked);

    let kinds = Kinds::new(hub_client.clone());
    Context { hub_client, executor, kinds, clock, hub_id, fleet, parts, sets, bindings, requests }
}

impl Context {
    async fn ready(&self) {
        self.fleet.ready().await;
        self.parts.ready().await;
        self.sets.ready().await;
        self.bindings.ready().await;
        self.requests.ready().await;
    }

    async fn handle(&self, key: Key) -> Wake {
        match key {
            Key::Foundation => self.foundation().await,
            Key::Cluster(name) => self.cluster(&name).await,
            Key::Request(name) => self.request(&name).await,
            Key::Set(name) => self.set(&name).await,
            Key::Counts => self.counts().await,
            Key::Binding(namespace, name) => self.binding(&namespace, &name).await,
        }
    }

    async fn foundation(&self) -> Wake {
        let live = [DEFAULT, GLOBAL].map(|name| self.sets.get("", name));
        let live = live.map(|set| set.and_then(|set| serde_json::to_value(&*set).ok()));
        let [default, global] = &live;
        let mut step = clusterset::foundation([default.as_ref(), global.as_ref()]);
        for (target, object) in access::foundation() {
            let live = self.parts.role(&target.id.name);
            if live.is_some_and(|live| access::covers(&live, &object)) {
                continue;
            }
            let write = Write::Apply { object, manager: hub::MANAGER.to_owned(), force: true };
            step.push(Action { side: Side::Hub, target, write });
        }
        if step.is_empty() {
            return Wake::OnChange;
        }
        let done = self.executor.execute(vec![step]).await;
        log("the foundation", &done);
        Wake::After(CHECK)
    }

    async fn cluster(&self, name: &str) -> Wake {
        let Some(cluster) = self.fleet.get(name) else { return Wake::OnChange };
        if cluster.metadata.deletion_timestamp.is_some() {
            return self.leave(&cluster).await;
        }
        let seen = self.observe(&cluster).await;
        let plan = hub::plan(&seen);
        let done = if plan.is_empty() { Vec::new() } else { self.executor.execute(plan).await };
        log(name, &done);
        let settled = done.iter().flatten().all(Outcome::is_done);
        if settled && !done.is_empty() {
            // What was written comes back as an event, and that event goes on.
            return Wake::After(CHECK);
        }
        let verdict = hub::report(&seen, &done);
        if let Some(status) = verdict.status {
            let told = self.executor.execute(vec![vec![status]]).await;
            log(name, &told);
            if !told.iter().flatten().all(Outcome::is_done) {
                return Wake::After(CHECK);
            }
        }
        verdict.wake.map_or(Wake::OnChange, |wake| Wake::After(duration(wake)))
    }

    async fn observe(&self, cluster: &ManagedCluster) -> hub::Observed {
        let name = cluster.name_any();
        let mut parts = self.parts.of(&name);
        // The watch tells only of namespaces that are clusters'; another may have the name.
        if cluster.spec.hub_accepts_client && parts.get(&Part::Namespace) == Some(&Seen::Absent) {
            parts.insert(Part::Namespace, self.read_part(&name, Part::Namespace).await);
        }
        hub::Observed {
            parts,
            namesakes: self.fleet.namesakes(cluster),
            hub_id: self.hub_id.clone(),
            heartbeat: self.fleet.heartbeat(&name),
            now: self.clock.now(),
            cluster: cluster.clone(),
        }
    }

    /// A part, as the server has it now.
    async fn read_part(&self, cluster: &str, part: Part) -> Seen {
        match self.executor.read(Side::Hub, &part.target(cluster)).await {
            Read::Present(object) => Seen::Present(object),
            Read::Absent => Seen::Absent,
            Read::NoSuchKind | Read::Unknown { .. } => Seen::Unknown,
        }
    }

    async fn request(&self, name: &str) -> Wake {
        let accepted = |cluster: &str| {
            let cluster = self.fleet.get(cluster)?;
            let refused = cleat_core::registration::join::refused_by_hub(
                &cluster,
                &self.fleet.namesakes(&cluster),
                self.hub_id.as_deref(),
            );
            Some(cluster.spec.hub_accepts_client && refused.is_none())
        };
        match self.requests.decide(name, accepted).await {
            Some(action) => {
                let done = self.executor.execute(vec![vec![action]]).await;
                log(name, &done);
                if done.iter().flatten().all(Outcome::is_done) {
                    Wake::OnChange
                } else {
                    Wake::After(CHECK)
                }
            }
            None if self.requests.is_waiting(name) => Wake::After(CHECK),
            None => Wake::OnChange,
        }
    }

    async fn set(&self, name: &str) -> Wake {
        // Whoever is bound to it may have waited for it, or lost it.
        let bound = self.bindings.all().into_iter().filter(|one| one.spec.cluster_set == name);
        for binding in bound {
            self.binding(&binding.namespace().unwrap_or_default(), &binding.name_any()).await;
        }
        let Some(set) = self.sets.get("", name) else { return Wake::OnChange };
        let none = BTreeMap::new();
        let members = self.fleet.count(|cluster| {
            clusterset::contains(&set, cluster.metadata.labels.as_ref().unwrap_or(&none))
        });
        let told = clusterset::report(&set, members, self.clock.now());
        self.tell(name, told).await
    }

    async fn counts(&self) -> Wake {
        let mut wake = Wake::OnChange;
        for set in self.sets.all() {
            if let Wake::After(after) = self.set(&set.name_any()).await {
                wake = Wake::After(after);
            }
        }
        wake
    }

    async fn binding(&self, namespace: &str, name: &str) -> Wake {
        let Some(binding) = self.bindings.get(namespace, name) else { return Wake::OnChange };
        let exists = self.sets.get("", &binding.spec.cluster_set).is_some();
        let told = clusterset::report_binding(&binding, exists, self.clock.now());
        self.tell(name, told).await
    }

    async fn tell(&self, name: &str, status: Option<Action>) -> Wake {
        let Some(status) = status else { return Wake::OnChange };
        let done = self.executor.execute(vec![vec![status]]).await;
        log(name, &done);
        let settled = done.iter().flatten().all(Outcome::is_done);
        if settled { Wake::OnChange } else { Wake::After(CHECK) }
    }
}

fn duration(wake: SignedDuration) -> Duration {
    Duration::try_from(wake).unwrap_or_default().max(Duration::from_millis(1))
}

/// One line for what was done, one for each thing that was not.
fn log(subject: &str, done: &[Vec<Outcome>]) {
    let all = done.iter().flatten();
    let count = all.clone().filter(|outcome| outcome.is_done()).count();
    if count > 0 {
        tracing::info!(subject, writes = count, "looked after");
    }
    for outcome in all {
        match outcome {
            Outcome::Refused(refusal) => {
                tracing::warn!(subject, message = refusal.message, "a write was refused");
            }
            Outcome::Lost(message) => tracing::warn!(subject, message, "a write got no answer"),
            Outcome::NoSuchKind => tracing::warn!(subject, "the hub does not serve a kind"),
            Outcome::Done(_)
            | Outcome::NotFound
            | Outcome::AlreadyExists
            | Outcome::Conflict(_)
            | Outcome::NotTried => {}
        }
    }
}
