//! All objects of a kind, or those with certain labels, for policies that do not name theirs.
//!
//! Each such list is watched once for all policies that want it, and for as long as one does.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cleat_core::policy::observed::ListOf;
use cleat_runtime::follow::{Follow, Scope};
use cleat_runtime::mirror::Reason;
use cleat_runtime::queue::Queue;
use cleat_runtime::tasks::Tasks;
use jiff::Timestamp;
use kube::Client;
use serde_json::Value;

use super::Key;
use super::subjects::Subjects;

pub(super) struct Lists {
    client: Client,
    queue: Queue<Key>,
    subjects: Arc<Subjects>,
    open: Mutex<BTreeMap<ListOf, (Follow, Tasks)>>,
}

impl Lists {
    pub(super) fn new(client: Client, queue: Queue<Key>, subjects: Arc<Subjects>) -> Self {
        Self { client, queue, subjects, open: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ListOf, (Follow, Tasks)>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The objects. `None`: they were not read yet.
    ///
    /// Whoever asks said before that it cares, so that it hears of changes.
    pub(super) fn get(&self, of: &ListOf) -> Option<Result<Vec<Arc<Value>>, Reason>> {
        let follow = self.open(of);
        if let Some(reason) = follow.trouble() {
            return Some(Err(reason));
        }
        if !follow.synced() {
            return None;
        }
        let parsed = follow.all().into_iter().map(|object| object.parse().map(Arc::new));
        let all: Result<Vec<Arc<Value>>, serde_json::Error> = parsed.collect();
        Some(all.map_err(|error| Reason::Unreachable {
            since: Timestamp::now(),
            message: format!("an object of the list cannot be read: {error}"),
        }))
    }

    fn open(&self, of: &ListOf) -> Follow {
        let mut open = self.lock();
        if let Some((follow, _)) = open.get(of) {
            return follow.clone();
        }
        let tasks = Tasks::new();
        let ListOf { kind, namespace, labels } = of.clone();
        let scope = Scope {
            group: kind.group,
            version: kind.version,
            resource: kind.resource,
            namespace: Some(namespace).filter(|namespace| !namespace.is_empty()),
            labels: Some(labels).filter(|labels| !labels.is_empty()),
            fields: None,
        };
        let wake = {
            let (queue, subjects, of) = (self.queue.clone(), self.subjects.clone(), of.clone());
            move || {
                subjects.of_list(&of, |key| queue.add(key.clone()));
            }
        };
        let told = wake.clone();
        let follow = Follow::start(self.client.clone(), &tasks, scope, move |_, _| told());
        // An empty list has no object to be told of.
        let (first, mut stop) = (follow.clone(), tasks.stop());
        tasks.spawn("first list", async move {
            if stop.or(first.until_synced()).await.is_some() {
                wake();
            }
        });
        open.insert(of.clone(), (follow.clone(), tasks));
        follow
    }

    /// Ends the watch of a list that nobody wants any more.
    pub(super) fn release(&self, of: &ListOf, tasks: &Tasks) {
        if self.subjects.of_list(of, |_| {}) {
            return;
        }
        if let Some((_, ending)) = self.lock().remove(of) {
            tasks.spawn("end of a list", async move { ending.shutdown().await });
        }
    }

    /// Ends all of them.
    pub(super) async fn end(&self) {
        let all = std::mem::take(&mut *self.lock());
        for (_, tasks) in all.into_values() {
            tasks.shutdown().await;
        }
    }
}
