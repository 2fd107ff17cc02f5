//! Objects of one kind as a watch tells them, kept in memory.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cleat_runtime::tasks::Stop;
use futures::StreamExt as _;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use tokio::sync::watch;

/// Namespace and name.
pub(crate) type Key = (String, String);

/// The objects of one kind. Its clones are the same.
///
/// Guarantees: once [`ready`](Self::ready) returned it holds what the server held at some moment,
/// and every later moment in order. While the connection is broken it holds the last one.
pub(crate) struct Mirror<K> {
    state: Arc<Mutex<State<K>>>,
    ready: watch::Sender<bool>,
}

struct State<K> {
    objects: BTreeMap<Key, Arc<K>>,
    /// What a listing has told so far.
    listing: BTreeMap<Key, Arc<K>>,
}

impl<K> Clone for Mirror<K> {
    fn clone(&self) -> Self {
        Self { state: Arc::clone(&self.state), ready: self.ready.clone() }
    }
}

impl<K> Mirror<K>
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    pub(crate) fn new() -> Self {
        let state = State { objects: BTreeMap::new(), listing: BTreeMap::new() };
        Self { state: Arc::new(Mutex::new(state)), ready: watch::Sender::new(false) }
    }

    pub(crate) fn get(&self, namespace: &str, name: &str) -> Option<Arc<K>> {
        self.state().objects.get(&(namespace.to_owned(), name.to_owned())).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Arc<K>> {
        self.state().objects.values().cloned().collect()
    }

    /// Returns when it holds something the server said.
    pub(crate) async fn ready(&self) {
        let _ = self.ready.subscribe().wait_for(|ready| *ready).await;
    }

    /// Follows `api` until told to stop. `heard` is told of every object that may have changed, and
    /// how the mirror came to know.
    pub(crate) async fn follow(
        self,
        api: Api<K>,
        config: watcher::Config,
        mut stop: Stop,
        mut heard: impl FnMut(&K, How),
    ) {
        let mut events = pin!(watcher(api, config).default_backoff());
        while let Some(Some(event)) = stop.or(events.next()).await {
            match event {
                Ok(event) => self.take(event, &mut heard),
                Err(error) => tracing::debug!(%error, "a watch was interrupted"),
            }
        }
    }

    fn take(&self, event: Event<K>, heard: &mut impl FnMut(&K, How)) {
        match event {
            Event::Apply(object) => {
                let object = slim(object);
                self.state().objects.insert(key(&*object), Arc::clone(&object));
                heard(&object, How::Changed);
            }
            Event::Delete(object) => {
                self.state().objects.remove(&key(&object));
                heard(&object, How::Gone);
            }
            Event::Init => self.state().listing.clear(),
            Event::InitApply(object) => {
                let object = slim(object);
                self.state().listing.insert(key(&*object), object);
            }
            Event::InitDone => {
                let (gone, found) = {
                    let mut state = self.state();
                    let listed = std::mem::take(&mut state.listing);
                    let before = std::mem::replace(&mut state.objects, listed);
                    let gone =
                        before.into_iter().filter(|(key, _)| !state.objects.contains_key(key));
                    let gone: Vec<_> = gone.map(|(_, object)| object).collect();
                    (gone, state.objects.values().cloned().collect::<Vec<_>>())
                };
                gone.iter().for_each(|object| heard(object, How::Gone));
                found.iter().for_each(|object| heard(object, How::Found));
                self.ready.send_replace(true);
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a mirror came to know of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// A watch told of its change.
    Changed,
    /// A listing showed it, changed or not.
    Found,
    Gone,
}

/// Who wrote which field is a third of an object, and nobody here asks.
fn slim<K: Resource>(mut object: K) -> Arc<K> {
    object.meta_mut().managed_fields = None;
    Arc::new(object)
}

fn key<K: Resource>(object: &K) -> Key {
    (object.namespace().unwrap_or_default(), object.name_any())
}
