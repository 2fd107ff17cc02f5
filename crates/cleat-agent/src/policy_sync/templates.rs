//! The kinds that may stand in policies, and all their objects in the cluster's namespace.
//!
//! A definition says by a label that its kind is one; such kinds come and go, and each is watched
//! while it is there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use cleat_api::configurationpolicy::POLICY_TYPE_LABEL;
use cleat_api::policy::name::PARENT_POLICY;
use cleat_core::id::Id;
use cleat_core::policy::observed::{KindName, Served};
use cleat_core::policy_sync::observed::Marked;
use cleat_core::write::{Action, Outcome};
use cleat_runtime::follow::{Follow, Held, Object, Scope};
use cleat_runtime::queue::Queue;
use cleat_runtime::tasks::Tasks;
use kube::Client;
use serde::Deserialize;
use serde_json::Value;

use super::{Config, Dependents};

/// What is read of a definition.
#[derive(Deserialize)]
struct Definition {
    spec: Spec,
}

#[derive(Deserialize)]
struct Spec {
    group: String,
    scope: String,
    names: Names,
    versions: Vec<Version>,
}

#[derive(Deserialize)]
struct Names {
    kind: String,
    plural: String,
}

#[derive(Deserialize)]
struct Version {
    name: String,
    served: bool,
}

/// What is read of a template to know whose it is.
#[derive(Deserialize)]
struct Head {
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

/// One kind and its objects.
struct Open {
    kind: String,
    served: Served,
    versions: Vec<String>,
    follow: Follow,
    /// The policy that each object is marked for.
    parents: Arc<Mutex<BTreeMap<String, String>>>,
    tasks: Tasks,
}

pub(super) struct TemplateKinds {
    shared: Arc<Shared>,
}

struct Shared {
    client: Client,
    namespace: String,
    queue: Queue<String>,
    dependents: Arc<Dependents>,
    definitions: OnceLock<Follow>,
    open: Mutex<BTreeMap<String, Open>>,
}

impl TemplateKinds {
    /// `on_change` is called when there are other kinds.
    pub(super) fn start(
        config: &Config,
        tasks: &Tasks,
        queue: Queue<String>,
        dependents: Arc<Dependents>,
        on_change: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        let shared = Arc::new(Shared {
            client: config.cluster_client.clone(),
            namespace: config.cluster.clone(),
            queue,
            dependents,
            definitions: OnceLock::new(),
            open: Mutex::default(),
        });
        let scope = Scope {
            group: "apiextensions.k8s.io".to_owned(),
            version: "v1".to_owned(),
            resource: "customresourcedefinitions".to_owned(),
            labels: Some(format!("{POLICY_TYPE_LABEL}=template")),
            ..Scope::default()
        };
        let (of, all) = (Arc::clone(&shared), tasks.clone());
        let follow = Follow::start(shared.client.clone(), tasks, scope, move |_, name| {
            // It is set in the moment after this was started, by whoever started it.
            of.take_in(name, &of.definitions.wait().get("", name), &all);
            on_change();
        });
        drop(shared.definitions.set(follow));
        Self { shared }
    }

    /// Whether all kinds were read once.
    pub(super) fn synced(&self) -> bool {
        self.shared.definitions.get().is_some_and(Follow::synced)
    }

    /// How a kind is asked for, if it is one of these.
    pub(super) fn served(&self, name: &KindName) -> Option<Served> {
        let (group, version) = name.api_version.split_once('/')?;
        let open = self.shared.lock();
        let found = open.values().find(|open| {
            open.kind == name.kind
                && open.served.group == group
                && open.versions.iter().any(|one| one == version)
        })?;
        Some(Served { version: version.to_owned(), ..found.served.clone() })
    }

    /// An object of one of these kinds.
    pub(super) fn get(&self, served: &Served, name: &str) -> Option<Held> {
        let open = self.shared.lock();
        let of = open.values().find(|open| {
            open.served.group == served.group && open.served.resource == served.resource
        })?;
        Some(of.follow.get(&self.shared.namespace, name))
    }

    /// All objects that are marked as a policy's, or why not all of them can be seen.
    pub(super) fn marked(&self, policy: &str) -> Result<Vec<Marked>, String> {
        if !self.synced() {
            return Err("the kinds of templates were not read yet".to_owned());
        }
        let open = self.shared.lock();
        let mut all = Vec::new();
        for open in open.values() {
            let resource = &open.served.resource;
            if let Some(why) = open.follow.trouble() {
                return Err(format!("{resource} cannot be watched ({why}): make them readable"));
            }
            if !open.follow.synced() {
                return Err(format!("{resource} were not read yet"));
            }
            let parents = open.parents.lock().unwrap_or_else(PoisonError::into_inner);
            let names: Vec<String> = parents
                .iter()
                .filter(|(_, parent)| *parent == policy)
                .map(|(name, _)| name.clone())
                .collect();
            drop(parents);
            for name in names {
                if let Held::Present(object) = open.follow.get(&self.shared.namespace, &name) {
                    all.push(marked(open, &object, &self.shared.namespace)?);
                }
            }
        }
        Ok(all)
    }

    pub(super) fn wrote(&self, action: &Action, outcome: &Outcome) {
        let open = self.shared.lock();
        for open in open.values() {
            open.follow.wrote(action, outcome);
        }
    }

    pub(super) async fn end(&self) {
        let all = std::mem::take(&mut *self.shared.lock());
        for open in all.into_values() {
            open.tasks.shutdown().await;
        }
    }
}

fn marked(open: &Open, object: &Object, namespace: &str) -> Result<Marked, String> {
    let target = open.served.target(namespace, &object.name);
    let read = object.parse::<Value>();
    let object = read.map_err(|error| format!("{} cannot be read ({error})", target.id))?;
    Ok(Marked::read(target, open.kind.clone(), &object))
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_in(&self, name: &str, held: &Held, tasks: &Tasks) {
        let definition = match held {
            Held::Present(object) => object.parse::<Definition>().ok(),
            Held::Absent | Held::Unknown(_) => None,
        };
        let mut open = self.lock();
        let Some(Definition { spec }) = definition else {
            if let Some(Open { tasks: ending, .. }) = open.remove(name) {
                tasks.spawn("end of a kind", async move { ending.shutdown().await });
            }
            return;
        };
        let served = spec.versions.into_iter().filter(|version| version.served);
        let versions: Vec<String> = served.map(|version| version.name).collect();
        let Some(version) = versions.first().cloned() else { return };
        if let Some(open) = open.get_mut(name) {
            open.versions = versions;
            open.follow.check();
            return;
        }
        let served = Served {
            group: spec.group,
            version,
            resource: spec.names.plural,
            namespaced: spec.scope == "Namespaced",
        };
        if served.namespaced {
            open.insert(name.to_owned(), self.start(spec.names.kind, served, versions));
        }
    }

    fn start(&self, kind: String, served: Served, versions: Vec<String>) -> Open {
        let tasks = Tasks::new();
        let scope = Scope {
            group: served.group.clone(),
            version: served.version.clone(),
            resource: served.resource.clone(),
            namespace: Some(self.namespace.clone()),
            ..Scope::default()
        };
        let parents: Arc<Mutex<BTreeMap<String, String>>> = Arc::default();
        let follow: Arc<OnceLock<Follow>> = Arc::default();
        let on_event = {
            let (parents, follow) = (Arc::clone(&parents), Arc::clone(&follow));
            let (queue, dependents, kind) =
                (self.queue.clone(), Arc::clone(&self.dependents), kind.clone());
            move |namespace: &str, name: &str| {
                for policy in index(&parents, name, &follow.wait().get(namespace, name)) {
                    queue.add(policy);
                }
                dependents.of(&kind, name, |policy| queue.add(policy.clone()));
            }
        };
        let started = Follow::start(self.client.clone(), &tasks, scope, on_event);
        drop(follow.set(started.clone()));
        Open { kind, served, versions, follow: started, parents, tasks }
    }
}

/// Takes in whose an object is; gives whose it was and is.
fn index(parents: &Mutex<BTreeMap<String, String>>, name: &str, held: &Held) -> BTreeSet<String> {
    let now = match held {
        Held::Present(object) => object.parse::<Head>().ok(),
        Held::Absent | Held::Unknown(_) => None,
    };
    let now = now.and_then(|mut head| head.metadata.labels.remove(PARENT_POLICY));
    let mut parents = parents.lock().unwrap_or_else(PoisonError::into_inner);
    let before = match &now {
        Some(parent) => parents.insert(name.to_owned(), parent.clone()),
        None => parents.remove(name),
    };
    before.into_iter().chain(now).collect()
}

/// The object of a dependency or a template that is none of these.
pub(super) fn id(served: &Served, namespace: &str, name: &str) -> Id {
    let namespace = if served.namespaced { namespace } else { "" };
    served.target(namespace, name).id
}
