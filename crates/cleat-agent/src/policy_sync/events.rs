//! What events say about policies of this cluster, sorted by policy as they arrive, so that a pass
//! looks only at those of its own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use cleat_core::policy_sync::{Told, told};
use cleat_core::write::{Action, Outcome};
use cleat_runtime::follow::{Follow, Held, Scope};
use cleat_runtime::queue::Queue;
use cleat_runtime::tasks::Tasks;
use serde_json::Value;

use super::Config;

/// What is kept of an event: the policy it is about, by uid, the template, and what it says.
struct Kept {
    policy: String,
    uid: String,
    template: String,
    told: Told,
}

#[derive(Default)]
struct Index {
    kept: BTreeMap<String, Kept>,
    of_policy: BTreeMap<String, Vec<String>>,
}

pub(super) struct Events {
    follow: Arc<OnceLock<Follow>>,
    index: Arc<Mutex<Index>>,
}

fn lock(index: &Mutex<Index>) -> MutexGuard<'_, Index> {
    index.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Events {
    pub(super) fn start(config: &Config, tasks: &Tasks, queue: Queue<String>) -> Self {
        let scope = Scope {
            version: "v1".to_owned(),
            resource: "events".to_owned(),
            namespace: Some(config.cluster.clone()),
            fields: Some("involvedObject.kind=Policy".to_owned()),
            ..Scope::default()
        };
        let follow: Arc<OnceLock<Follow>> = Arc::default();
        let index: Arc<Mutex<Index>> = Arc::default();
        let (of, into) = (Arc::clone(&follow), Arc::clone(&index));
        let started =
            Follow::start(config.cluster_client.clone(), tasks, scope, move |namespace, name| {
                // It is set in the moment after this was started, by whoever started it.
                let held = of.wait().get(namespace, name);
                if let Some(policy) = lock(&into).take_in(name, &held) {
                    queue.add(policy);
                }
            });
        drop(follow.set(started));
        Self { follow, index }
    }

    /// What was said about each template of a policy.
    pub(super) fn of(&self, policy: &str, uid: &str) -> BTreeMap<String, Vec<Told>> {
        let index = lock(&self.index);
        let mut all: BTreeMap<String, Vec<Told>> = BTreeMap::new();
        for name in index.of_policy.get(policy).into_iter().flatten() {
            if let Some(kept) = index.kept.get(name).filter(|kept| kept.uid == uid) {
                all.entry(kept.template.clone()).or_default().push(kept.told.clone());
            }
        }
        all
    }

    pub(super) fn wrote(&self, action: &Action, outcome: &Outcome) {
        if let Some(follow) = self.follow.get() {
            follow.wrote(action, outcome);
        }
    }
}

impl Index {
    /// Gives the policy it is about.
    fn take_in(&mut self, name: &str, held: &Held) -> Option<String> {
        let before = self.forget(name);
        let Held::Present(object) = held else { return before };
        let event: Value = object.parse().ok()?;
        let text = |pointer: &str| Some(event.pointer(pointer)?.as_str()?.to_owned());
        let (policy, uid) = (text("/involvedObject/name")?, text("/involvedObject/uid")?);
        let (template, told) = told(&event)?;
        self.of_policy.entry(policy.clone()).or_default().push(name.to_owned());
        let kept = Kept { policy: policy.clone(), uid, template, told };
        self.kept.insert(name.to_owned(), kept);
        Some(policy)
    }

    fn forget(&mut self, name: &str) -> Option<String> {
        let kept = self.kept.remove(name)?;
        if let Some(names) = self.of_policy.get_mut(&kept.policy) {
            names.retain(|other| other != name);
            if names.is_empty() {
                self.of_policy.remove(&kept.policy);
            }
        }
        Some(kept.policy)
    }
}
