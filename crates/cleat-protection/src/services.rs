//! The CriticalServices of a cluster, read as they come: a review must not read a thousand.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use cleat_api::criticalservice::CriticalService;
use cleat_core::protection::{Service, lenient};
use cleat_core::write::{Action, Outcome};
use cleat_runtime::follow::{Follow, Held, Scope};
use cleat_runtime::tasks::Tasks;
use kube::Client;
use serde_json::Value;

pub(crate) struct Services {
    follow: Follow,
    read: Mutex<Read>,
    /// Names of those that changed since they were last read.
    stale: Arc<Mutex<BTreeSet<String>>>,
}

#[derive(Default)]
struct Read {
    by_name: Revisions,
    all: Arc<[Arc<Service>]>,
}

/// By name; with the revision that was read, if it could be read.
pub(crate) type Revisions = BTreeMap<String, (Option<String>, Arc<Service>)>;

impl Services {
    pub(crate) fn start(
        client: Client,
        tasks: &Tasks,
        scope: Scope,
        on_change: impl Fn(&str) + Send + Sync + 'static,
    ) -> Self {
        let stale: Arc<Mutex<BTreeSet<String>>> = Arc::default();
        let heard = Arc::clone(&stale);
        let follow = Follow::start(client, tasks, scope, move |_, name| {
            heard.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
            on_change(name);
        });
        Self { follow, read: Mutex::default(), stale }
    }

    pub(crate) async fn until_synced(&self) {
        self.follow.until_synced().await;
    }

    /// All of them, or why they are not known.
    pub(crate) fn all(&self) -> Result<Arc<[Arc<Service>]>, String> {
        if !self.follow.synced() {
            let why = self.follow.trouble().map(|reason| reason.to_string());
            return Err(why.unwrap_or_else(|| "not read yet".to_owned()));
        }
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let stale = std::mem::take(&mut *self.stale.lock().unwrap_or_else(PoisonError::into_inner));
        if !stale.is_empty() {
            for name in stale {
                match self.get(&name) {
                    One::Read(object) => {
                        let revision = object.metadata.resource_version.clone();
                        let service = Arc::new(Service::read(&object));
                        read.by_name.insert(name, (revision, service));
                    }
                    // What was last understood still stands, if nothing can be made of it now.
                    One::Odd(service) => {
                        if let Some(service) = service {
                            read.by_name.insert(name, (None, Arc::from(service)));
                        }
                    }
                    One::Absent => drop(read.by_name.remove(&name)),
                }
            }
            read.all = read.by_name.values().map(|(_, service)| Arc::clone(service)).collect();
        }
        Ok(Arc::clone(&read.all))
    }

    /// The same by name, each with the revision it was read at.
    pub(crate) fn revisions(&self) -> Revisions {
        // Brings what is read up to date.
        let _ = self.all();
        self.read.lock().unwrap_or_else(PoisonError::into_inner).by_name.clone()
    }

    /// Why the watch may be behind by more than a moment, if so.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.follow.trouble().map(|reason| reason.to_string())
    }

    /// One, whole.
    pub(crate) fn get(&self, name: &str) -> One {
        match self.follow.get("", name) {
            Held::Present(object) => match object.parse() {
                Ok(service) => One::Read(Box::new(service)),
                Err(error) => {
                    tracing::warn!(name, %error, "a CriticalService was not understood");
                    let value = object.parse().ok();
                    One::Odd(value.and_then(|value| understood(&value)).map(Box::new))
                }
            },
            Held::Absent | Held::Unknown(_) => One::Absent,
        }
    }

    pub(crate) fn wrote(&self, action: &Action, outcome: &Outcome) {
        self.follow.wrote(action, outcome);
    }
}

/// What an object asks for, if that can be told.
pub(crate) fn understood(object: &Value) -> Option<Service> {
    match serde_json::from_value::<CriticalService>(object.clone()) {
        Ok(service) => Some(Service::read(&service)),
        Err(_) => lenient::read(object),
    }
}

/// A CriticalService that was looked for.
pub(crate) enum One {
    Absent,
    Read(Box<CriticalService>),
    /// A later version's, of which so much is understood: what it protects, at least.
    Odd(Option<Box<Service>>),
}
