//! All objects of a kind, as a watch tells of them, each reduced to what its story needs.
//!
//! Objects are kept under their namespace and name, and can be asked for by a group that they name
//! themselves. Nothing is said of a kind until all of it was listed once: not listed is not absent.
//!
//! `cleat_runtime::follow` keeps whole objects, which suits an agent. A hub sees the works of all its
//! clusters, up to half a megabyte each, and needs a few hundred bytes of any of them.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cleat_runtime::tasks::Stop;
use futures::StreamExt as _;
use kube::api::{Api, DynamicObject};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};

/// Namespace and name.
pub(crate) type Key = (String, String);

/// What is kept of an object.
pub(crate) trait Kept: Send + Sync + Sized + 'static {
    /// None of an object that nobody will ask for.
    fn keep(object: DynamicObject) -> Option<Self>;
    fn group(&self) -> Option<String>;
}

/// Its clones are the same.
pub(crate) struct Followed<T> {
    state: Arc<Mutex<State<T>>>,
}

struct State<T> {
    listed: bool,
    items: BTreeMap<Key, Arc<T>>,
    groups: BTreeMap<String, BTreeSet<Key>>,
}

impl<T> Clone for Followed<T> {
    fn clone(&self) -> Self {
        Self { state: Arc::clone(&self.state) }
    }
}

impl<T: Kept> Followed<T> {
    pub(crate) fn new() -> Self {
        let state = State { listed: false, items: BTreeMap::new(), groups: BTreeMap::new() };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// Whether what is not here is known not to be there.
    pub(crate) fn is_listed(&self) -> bool {
        self.state().listed
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Arc<T>> {
        self.state().items.get(key).cloned()
    }

    /// In order of their keys.
    pub(crate) fn group(&self, group: &str) -> Vec<Arc<T>> {
        let state = self.state();
        let keys = state.groups.get(group).into_iter().flatten();
        keys.filter_map(|key| state.items.get(key).cloned()).collect()
    }

    /// In order of their names.
    pub(crate) fn in_namespace(&self, namespace: &str) -> Vec<Arc<T>> {
        let state = self.state();
        let from = (namespace.to_owned(), String::new());
        let there = state.items.range(from..).take_while(|((of, _), _)| of == namespace);
        there.map(|(_, item)| Arc::clone(item)).collect()
    }

    /// In order of their keys.
    pub(crate) fn all(&self) -> Vec<Arc<T>> {
        self.state().items.values().cloned().collect()
    }

    pub(crate) fn every(&self, mut visit: impl FnMut(&T)) {
        self.all().iter().for_each(|item| visit(item));
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was there before.
    fn put(&self, key: &Key, item: Option<Arc<T>>) -> Option<Arc<T>> {
        let mut state = self.state();
        let State { items, groups, listed: _ } = &mut *state;
        let group = item.as_ref().and_then(|item| item.group());
        let old = match item {
            Some(item) => items.insert(key.clone(), item),
            None => items.remove(key),
        };
        if let Some(name) = old.as_ref().and_then(|old| old.group())
            && Some(&name) != group.as_ref()
            && let Some(keys) = groups.get_mut(&name)
        {
            keys.remove(key);
            if keys.is_empty() {
                groups.remove(&name);
            }
        }
        if let Some(name) = group {
            groups.entry(name).or_default().insert(key.clone());
        }
        old
    }

    fn keys(&self) -> BTreeSet<Key> {
        self.state().items.keys().cloned().collect()
    }

    /// Keeps this up to date until it is time to stop. `changed` is told of every change after it
    /// can be seen here: what was there, and what is there now. Two times nothing: everything was
    /// listed, for the first time or again, and what came and went since the watch broke went unseen.
    pub(crate) async fn follow(
        self,
        objects: Api<DynamicObject>,
        stop: Stop,
        changed: impl Fn(Option<&T>, Option<&T>),
    ) {
        self.follow_with(objects, watcher::Config::default(), stop, changed).await;
    }

    /// The same of those objects that bear one name.
    pub(crate) async fn follow_named(
        self,
        objects: Api<DynamicObject>,
        name: &str,
        stop: Stop,
        changed: impl Fn(Option<&T>, Option<&T>),
    ) {
        let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
        self.follow_with(objects, config, stop, changed).await;
    }

    async fn follow_with(
        self,
        objects: Api<DynamicObject>,
        config: watcher::Config,
        mut stop: Stop,
        changed: impl Fn(Option<&T>, Option<&T>),
    ) {
        let mut events = pin!(watcher(objects, config).default_backoff());
        let mut unlisted = BTreeSet::new();
        while let Some(Some(event)) = stop.or(events.next()).await {
            let put = |key: &Key, item: Option<T>| {
                let item = item.map(Arc::new);
                let old = self.put(key, item.clone());
                if old.is_some() || item.is_some() {
                    changed(old.as_deref(), item.as_deref());
                }
            };
            match event {
                Ok(Event::Init) => unlisted = self.keys(),
                Ok(Event::Apply(object) | Event::InitApply(object)) => {
                    let key = key(&object);
                    unlisted.remove(&key);
                    put(&key, T::keep(object));
                }
                Ok(Event::Delete(object)) => put(&key(&object), None),
                Ok(Event::InitDone) => {
                    for key in std::mem::take(&mut unlisted) {
                        put(&key, None);
                    }
                    self.state().listed = true;
                    changed(None, None);
                }
                Err(error) => tracing::warn!(%error, "a watch failed and is begun again"),
            }
        }
    }
}

fn key(object: &DynamicObject) -> Key {
    let metadata = &object.metadata;
    (metadata.namespace.clone().unwrap_or_default(), metadata.name.clone().unwrap_or_default())
}
