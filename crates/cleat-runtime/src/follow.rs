//! Whole objects of one kind, kept up to date: the works of a hub, the ledgers of a cluster.
//!
//! Objects are kept as compact text, without managed fields, and parsed when somebody wants them.
//! What was last seen stays when the server cannot be reached; [`Follow::trouble`] says so.

mod held;
mod text;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cleat_core::id::{Id, Target};
use cleat_core::write::{Action, Outcome, Write};
use http::{Request, header};
use jiff::Timestamp;
use kube::Client;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::{Notify, watch};

pub use self::held::{Held, Object};
use self::held::{Key, State};
use crate::mirror::Reason;
use crate::path;
use crate::queue::{self, Queue, Wake};
use crate::reflect::{Sink, Wish, reflect};
use crate::status::{Missing, Status};
use crate::tasks::Tasks;
use crate::watch::{Fault, Form, OfPage, Source};
use crate::wire;

/// Which objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    pub group: String,
    pub version: String,
    pub resource: String,
    /// None: in all.
    pub namespace: Option<String>,
    /// A label selector, as `kubectl get -l` takes it.
    pub labels: Option<String>,
    pub fields: Option<String>,
}

/// The objects of a scope. Its clones are the same.
#[derive(Clone)]
pub struct Follow {
    shared: Arc<Shared>,
}

type OnEvent = Box<dyn Fn(&str, &str) + Send + Sync>;

struct Shared {
    client: Client,
    scope: Scope,
    on_event: OnEvent,
    state: Mutex<State>,
    reads: Queue<Key>,
    attention: Notify,
    synced: watch::Sender<bool>,
}

/// How many objects are read at the same time, and how long one rests that could not be.
const READERS: usize = 4;
const RETRY: Duration = Duration::from_secs(5);

impl Follow {
    /// `on_event` is given namespace and name of whatever changed. It must not block.
    pub fn start(
        client: Client,
        tasks: &Tasks,
        scope: Scope,
        on_event: impl Fn(&str, &str) + Send + Sync + 'static,
    ) -> Self {
        let shared = Arc::new(Shared {
            client,
            scope,
            on_event: Box::new(on_event),
            state: Mutex::default(),
            reads: Queue::new(),
            attention: Notify::new(),
            synced: watch::Sender::new(false),
        });
        let (carrier, stop) = (Arc::clone(&shared), tasks.stop());
        tasks.spawn("follow", async move {
            reflect(carrier.client.clone(), &*carrier, stop).await;
        });
        let (reader, mut stop) = (Arc::clone(&shared), tasks.stop());
        tasks.spawn("follow reads", async move {
            let reads = reader.reads.clone();
            let all = queue::run(reads.clone(), READERS, move |key| {
                let shared = Arc::clone(&reader);
                async move { shared.read(&key).await }
            });
            stop.or(all).await;
            reads.close();
        });
        Self { shared }
    }

    pub fn get(&self, namespace: &str, name: &str) -> Held {
        self.shared.lock().get(&(namespace.into(), name.into()))
    }

    /// All that are there, in order of namespace and name.
    pub fn all(&self) -> Vec<Arc<Object>> {
        self.shared.lock().all()
    }

    /// Whether everything was read once. What is missing after that is absent.
    pub fn synced(&self) -> bool {
        *self.shared.synced.borrow()
    }

    /// Waits for that.
    pub async fn until_synced(&self) {
        let mut synced = self.shared.synced.subscribe();
        // The sender is ours, so it cannot be gone.
        let _ = synced.wait_for(|synced| *synced).await;
    }

    /// When the server last told anything.
    pub fn last_contact(&self) -> Option<Timestamp> {
        self.shared.lock().last_contact()
    }

    /// Why nothing new is heard, if so.
    pub fn trouble(&self) -> Option<Reason> {
        self.shared.lock().trouble()
    }

    /// Whether that is because the server said that it does not serve the kind.
    pub fn is_unserved(&self) -> bool {
        self.shared.lock().is_unserved()
    }

    /// The kind may have come to be served: asks now rather than after a pause.
    pub fn check(&self) {
        self.shared.attention.notify_one();
    }

    /// What came of a write of ours, so that it is seen before a watch tells of it.
    pub fn wrote(&self, action: &Action, outcome: &Outcome) {
        self.shared.wrote(action, outcome);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, changed: impl IntoIterator<Item = Key>) {
        for (namespace, name) in changed {
            (self.on_event)(&namespace, &name);
        }
    }

    fn wrote(&self, action: &Action, outcome: &Outcome) {
        let Id { group, resource, namespace, name } = &action.target.id;
        let Scope { namespace: only, .. } = &self.scope;
        if *group != self.scope.group
            || *resource != self.scope.resource
            || only.as_ref().is_some_and(|only| only != namespace)
        {
            return;
        }
        let key: Key = (namespace.as_str().into(), name.as_str().into());
        let (changed, doubted) = {
            let mut state = self.lock();
            let changed = match outcome {
                Outcome::Done(Value::Null) => match &action.write {
                    Write::Delete { uid, .. } => state.gone(&key, uid),
                    _ => false,
                },
                Outcome::Done(object) => match Object::of_value(object) {
                    Some(object) => state.wrote(object),
                    None => state.doubt(&key),
                },
                Outcome::NotFound
                | Outcome::AlreadyExists
                | Outcome::Conflict(_)
                | Outcome::Lost(_) => state.doubt(&key),
                Outcome::NoSuchKind | Outcome::Refused(_) | Outcome::NotTried => false,
            };
            (changed, state.doubted(&key).is_some())
        };
        if doubted {
            self.reads.add(key.clone());
        }
        self.tell(changed.then_some(key));
    }

    async fn read(&self, key: &Key) -> Wake {
        let Some(told) = self.lock().doubted(key) else { return Wake::OnChange };
        let (namespace, name) = key;
        let id = Id {
            group: self.scope.group.clone(),
            resource: self.scope.resource.clone(),
            namespace: namespace.to_string(),
            name: name.to_string(),
        };
        let target = Target { version: self.scope.version.clone(), id };
        let Ok(path) = path::object(&target) else { return Wake::OnChange };
        let request = Request::get(path).header(header::ACCEPT, Form::Whole.of_object());
        let Ok(request) = request.body(Vec::new()) else { return Wake::OnChange };
        let Ok(answer) = wire::exchange(&self.client, request, wire::PATIENCE).await else {
            return Wake::After(RETRY);
        };
        let found = if answer.is_success() {
            match serde_json::from_slice(&answer.body).ok().and_then(Object::of_text) {
                Some(object) => Some(object),
                None => return Wake::After(RETRY),
            }
        } else if answer.code == 404 && Status::of(&answer).missing(&target) == Missing::Object {
            None
        } else {
            return Wake::After(RETRY);
        };
        let settled = self.lock().read(key, found, told);
        match settled {
            Some(changed) => {
                self.tell(changed.then(|| key.clone()));
                Wake::OnChange
            }
            None => Wake::After(Duration::ZERO),
        }
    }
}

impl Sink for Shared {
    fn source(&self) -> Source {
        let Scope { group, version, resource, namespace, labels, fields } = &self.scope;
        let id = Id {
            group: group.clone(),
            resource: resource.clone(),
            namespace: namespace.clone().unwrap_or_default(),
            name: String::new(),
        };
        // What cannot be a path is not served: the server says so of this one.
        let path = path::collection(&Target { version: version.clone(), id });
        let mut query = String::new();
        for (name, selector) in [("labelSelector", labels), ("fieldSelector", fields)] {
            if let Some(selector) = selector {
                query.push_str(&format!("{name}={}&", path::query_value(selector)));
            }
        }
        Source { path: path.unwrap_or_else(|_| "/-".to_owned()), query, form: Form::Whole }
    }

    fn wish(&self) -> Wish {
        Wish::GoOn
    }

    fn attention(&self) -> &Notify {
        &self.attention
    }

    fn list_began(&self) {
        self.lock().list_began();
    }

    fn listed(&self, objects: &[&RawValue], of: &OfPage<'_>) {
        let revision = of.revision.parse().ok();
        for object in objects {
            let Some(object) = Object::of_text(object) else { continue };
            let key = object.key();
            let changed = self.lock().listed(object, revision);
            self.tell(changed.then_some(key));
        }
    }

    fn list_ended(&self, revision: &str) {
        let changed = self.lock().list_ended(revision.parse().ok());
        self.synced.send_replace(true);
        self.tell(changed);
    }

    fn changed(&self, object: &RawValue) {
        let Some(object) = Object::of_text(object) else { return };
        let key = object.key();
        let changed = self.lock().changed(object);
        self.tell(changed.then_some(key));
    }

    fn deleted(&self, object: &RawValue) {
        let Some(object) = Object::of_text(object) else { return };
        let changed = self.lock().deleted(&object);
        self.tell(changed.then(|| object.key()));
    }

    fn reached(&self, revision: &str) {
        self.lock().reached(revision.parse().ok());
    }

    fn up(&self) {
        let doubted = self.lock().up();
        for key in doubted {
            self.reads.add(key);
        }
    }

    fn down(&self, fault: &Fault) {
        if self.lock().down(fault) {
            let resource = &self.scope.resource;
            tracing::info!(resource, ?fault, "cannot be watched now");
        }
    }
}
