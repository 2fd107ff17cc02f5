//! How many objects of a kind there are, and how many of them have a finalizer: one watch of
//! metadata per kind, of which names and finalizers are kept.
//!
//! What is counted may be behind; [`Census::prove_none`] is not. It knows nothing of why anybody
//! counts.

mod count;
mod proof;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kube::Client;
use serde_json::value::RawValue;
use tokio::sync::Notify;
use tokio::time::Instant;

use self::count::Count;
pub use self::count::Counted;
use self::proof::Since;
pub use self::proof::{Proof, Turns};
use crate::kinds::Mapped;
use crate::path;
use crate::reflect::{Sink, Wish, reflect};
use crate::tasks::Tasks;
use crate::watch::{Fault, Form, OfPage, Source};

/// The objects of one kind. Its clones are the same; when the last is gone the watch ends.
#[derive(Clone)]
pub struct Census {
    shared: Arc<Shared>,
    _open: Arc<Open>,
}

struct Shared {
    client: Client,
    source: Source,
    on_change: Box<dyn Fn() + Send + Sync>,
    state: Mutex<State>,
    attention: Notify,
}

#[derive(Default)]
struct State {
    count: Count,
    closed: bool,
    /// What was counted is of a history that the server does not have any more.
    outdated: bool,
}

/// Ends the watch when nobody holds it any more.
struct Open(Arc<Shared>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.attention.notify_one();
    }
}

impl Census {
    /// `on_change` is called whenever a count may have changed. It must not block.
    pub fn start(
        client: Client,
        tasks: &Tasks,
        kind: &Mapped,
        on_change: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        let Mapped { group, version, resource, namespaced: _ } = kind;
        // What cannot be a path is not served: the server says so of this one.
        let path = path::everywhere(group, version, resource).unwrap_or_else(|_| "/-".to_owned());
        let shared = Arc::new(Shared {
            client,
            source: Source { path, query: String::new(), form: Form::Metadata },
            on_change: Box::new(on_change),
            state: Mutex::default(),
            attention: Notify::new(),
        });
        let (carrier, stop) = (Arc::clone(&shared), tasks.stop());
        tasks.spawn("census", async move {
            reflect(carrier.client.clone(), &*carrier, stop).await;
        });
        Self { _open: Arc::new(Open(Arc::clone(&shared))), shared }
    }

    /// As far as the watch told: all objects, or those with a finalizer.
    pub fn count(&self, finalizer: Option<&str>) -> Counted {
        self.shared.lock().count.counted(finalizer)
    }

    /// Looks whether there is any object, or any with a finalizer, as of now or later.
    pub async fn prove_none(
        &self,
        finalizer: Option<&str>,
        turns: &Turns,
        patience: Duration,
    ) -> Proof {
        let put_back = || self.shared.count_anew();
        let since = {
            let state = self.shared.lock();
            let many = state.count.exceeds(proof::READ);
            let reached = state.count.reached(finalizer).filter(|_| !state.outdated);
            reached.map(|revision| Since { revision, many, put_back: &put_back })
        };
        let Shared { client, source, .. } = &*self.shared;
        proof::prove(client, source, finalizer, since, turns, patience).await
    }
}

/// The same without a watch, by looking alone.
pub async fn prove_none(
    client: &Client,
    kind: &Mapped,
    finalizer: Option<&str>,
    turns: &Turns,
    patience: Duration,
) -> Proof {
    let Ok(path) = path::everywhere(&kind.group, &kind.version, &kind.resource) else {
        return Proof::NoSuchKind;
    };
    let source = Source { path, query: String::new(), form: Form::Metadata };
    proof::prove(client, &source, finalizer, None, turns, patience).await
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count_anew(&self) {
        self.lock().outdated = true;
        self.attention.notify_one();
    }

    fn tell(&self, changed: bool) {
        if changed {
            (self.on_change)();
        }
    }
}

impl Sink for Shared {
    fn source(&self) -> Source {
        self.source.clone()
    }

    fn wish(&self) -> Wish {
        let state = self.lock();
        match (state.closed, state.outdated) {
            (true, _) => Wish::EndAt(Instant::now()),
            (false, true) => Wish::List,
            (false, false) => Wish::GoOn,
        }
    }

    fn attention(&self) -> &Notify {
        &self.attention
    }

    fn list_began(&self) {
        let mut state = self.lock();
        state.outdated = false;
        state.count.list_began();
    }

    fn listed(&self, objects: &[&RawValue], _: &OfPage<'_>) {
        for object in objects {
            self.lock().count.listed(object);
        }
    }

    fn list_ended(&self, revision: &str) {
        self.lock().count.list_ended(revision);
        self.tell(true);
    }

    fn changed(&self, object: &RawValue) {
        let changed = self.lock().count.changed(object);
        self.tell(changed);
    }

    fn deleted(&self, object: &RawValue) {
        let changed = self.lock().count.deleted(object);
        self.tell(changed);
    }

    fn reached(&self, revision: &str) {
        self.lock().count.reach(revision);
    }

    fn up(&self) {
        let changed = self.lock().count.up();
        self.tell(changed);
    }

    fn down(&self, fault: &Fault) {
        let changed = self.lock().count.down(fault);
        self.tell(changed);
    }
}
