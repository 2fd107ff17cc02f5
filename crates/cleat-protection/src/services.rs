//! The CriticalServices of a cluster, read as they come: a review must not read a thousand.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use cleat_api::criticalservice::CriticalService;
use cleat_core::protection::Service;
use cleat_core::write::{Action, Outcome};
use cleat_runtime::follow::{Follow, Held, Scope};
use cleat_runtime::tasks::Tasks;
use kube::Client;

pub(crate) struct Services {
    follow: Follow,
    read: Mutex<Read>,
    /// Names of those that changed since they were last read.
    stale: Arc<Mutex<BTreeSet<String>>>,
}

#[derive(Default)]
struct Read {
    by_name: BTreeMap<String, Arc<Service>>,
    all: Arc<[Arc<Service>]>,
}

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
                    Some(object) => {
                        read.by_name.insert(name, Arc::new(Service::read(&object)));
                    }
                    None => drop(read.by_name.remove(&name)),
                }
            }
            read.all = read.by_name.values().cloned().collect();
        }
        Ok(Arc::clone(&read.all))
    }

    /// One, whole.
    pub(crate) fn get(&self, name: &str) -> Option<CriticalService> {
        match self.follow.get("", name) {
            Held::Present(object) => match object.parse() {
                Ok(service) => Some(service),
                Err(error) => {
                    tracing::warn!(name, %error, "a CriticalService was not understood");
                    Some(unreadable(name, &object.uid))
                }
            },
            Held::Absent | Held::Unknown(_) => None,
        }
    }

    pub(crate) fn wrote(&self, action: &Action, outcome: &Outcome) {
        self.follow.wrote(action, outcome);
    }
}

/// It protects nothing that could be named, but it is there.
fn unreadable(name: &str, uid: &str) -> CriticalService {
    let mut service = CriticalService::default();
    service.metadata.name = Some(name.to_owned());
    service.metadata.uid = Some(uid.to_owned());
    service
}
