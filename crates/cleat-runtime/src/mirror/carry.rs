//! From a server's watch into a mirror: one task per kind.

use std::collections::BTreeSet;
use std::sync::Arc;

use cleat_core::id::{Id, Target};
use serde_json::value::RawValue;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::handover::{Kept, Shape};
use super::kind::{Kind, KindName};
use super::{Chore, DEFINITIONS, GRACE, LINGER, Shared, State, UNCLAIMED, meta};
use crate::path;
use crate::reflect::{Sink, Wish, reflect};
use crate::watch::{Ask, Fault, Form, OfPage, PAGE, Source};

/// Watches a kind until nobody cares about it.
pub(super) fn start(shared: &Arc<Shared>, name: Arc<KindName>) {
    let Some(attention) = shared.lock().kinds.get(&name).map(Kind::attention) else { return };
    let carrier = Carrier { shared: Arc::clone(shared), name, attention };
    let stop = shared.tasks.stop();
    shared.tasks.spawn("mirror", async move {
        loop {
            reflect(carrier.shared.client.clone(), &carrier, stop.clone()).await;
            let mut state = carrier.shared.lock();
            let wanted = state.kinds.get(&carrier.name).is_some_and(Kind::is_cared_about);
            if stop.is_stopped() || !wanted {
                state.kinds.remove(&carrier.name);
                return;
            }
        }
    });
}

struct Carrier {
    shared: Arc<Shared>,
    name: Arc<KindName>,
    attention: Arc<Notify>,
}

impl Carrier {
    fn with<T: Default>(&self, act: impl FnOnce(&mut Kind, &mut meta::Owners) -> T) -> T {
        let mut state = self.shared.lock();
        let State { kinds, interests: _, owners, handover: _ } = &mut *state;
        kinds.get_mut(&self.name).map(|kind| act(kind, owners)).unwrap_or_default()
    }

    /// What a list told of these is not what they are any more.
    fn superseded(&self, ids: &[Arc<Id>]) {
        self.shared.forget(ids);
        self.shared.tell(ids);
    }

    /// Takes in one object of a list; gives it back if that was news, and then the object itself is
    /// for whoever asks first, if it is whole.
    fn one_listed(
        &self,
        object: &RawValue,
        revision: Option<u64>,
        shape: Option<&Arc<Shape>>,
    ) -> Option<Arc<Id>> {
        let head = meta::head(object)?;
        let mut state = self.shared.lock();
        let State { kinds, interests: _, owners, handover } = &mut *state;
        let changed = kinds.get_mut(&self.name)?.listed(&head, object, revision, owners)?;
        if let Some(shape) = shape {
            handover.keep(&changed, Kept::new(&head, object.get(), shape));
        }
        Some(changed)
    }

    /// What nobody asked for by then was not needed.
    fn end_handover(&self) {
        if !self.shared.lock().handover.is_empty() {
            self.shared.chores.add_after(Chore::Forget(Arc::clone(&self.name)), UNCLAIMED);
        }
    }

    /// While a kind is not served, its definition is watched, so that nobody has to ask.
    fn care_about_definition(&self, unserved: bool) {
        let KindName { group, resource } = &*self.name;
        if **group == *DEFINITION_GROUP || !group.contains('.') {
            return;
        }
        let owner = format!("{DEFINITIONS} {resource}.{group}");
        let mut targets = BTreeSet::new();
        if unserved {
            let id = Id {
                group: DEFINITION_GROUP.to_owned(),
                resource: "customresourcedefinitions".to_owned(),
                namespace: String::new(),
                name: definition_of(&self.name),
            };
            targets.insert(Target { version: "v1".to_owned(), id });
        }
        self.shared.interest([(owner.as_str(), &targets)]);
    }
}

pub(super) const DEFINITION_GROUP: &str = "apiextensions.k8s.io";

pub(super) fn definition_of(kind: &KindName) -> String {
    format!("{}.{}", kind.resource, kind.group)
}

impl Sink for Carrier {
    fn source(&self) -> Source {
        let version = self.with(|kind, _| kind.version().to_owned());
        let KindName { group, resource } = &*self.name;
        // What cannot be a path is not served: the server says so of this one.
        let path = path::everywhere(group, &version, resource).unwrap_or_else(|_| "/-".to_owned());
        Source { path, query: String::new(), form: Form::Metadata }
    }

    fn wish(&self) -> Wish {
        let state = self.shared.lock();
        let gone = Wish::EndAt(Instant::now());
        state.kinds.get(&self.name).map_or(gone, |kind| kind.wish(LINGER))
    }

    fn attention(&self) -> &Notify {
        &self.attention
    }

    fn list_began(&self) {
        self.with(|kind, _| kind.list_began());
    }

    fn ask(&self, source: &Source) -> Ask {
        let state = self.shared.lock();
        let ask = state.kinds.get(&self.name).map(|kind| kind.ask(state.handover.room()));
        ask.unwrap_or(Ask { form: source.form, limit: PAGE })
    }

    /// Who cares is told when the page was read: most who care about one object care about its
    /// neighbours too, and would look once for each.
    fn listed(&self, objects: &[&RawValue], of: &OfPage<'_>) {
        let revision = of.revision.parse().ok();
        let whole = of.form == Form::Whole;
        let shape = whole.then(|| Arc::new(Shape::of_list(of.api_version, of.kind)));
        let changed: Vec<Arc<Id>> = objects
            .iter()
            .filter_map(|object| self.one_listed(object, revision, shape.as_ref()))
            .collect();
        let bytes: Option<usize> =
            whole.then(|| objects.iter().map(|object| object.get().len()).sum());
        self.with(|kind, _| kind.page_ended(objects.len(), changed.len(), bytes));
        self.shared.tell(&changed);
    }

    fn list_ended(&self, revision: &str) {
        let revision = revision.parse().ok();
        let (changed, settling) = self.with(|kind, _| (kind.list_ended(revision), kind.settle()));
        self.shared.settle(settling);
        self.end_handover();
        self.superseded(&changed);
    }

    fn changed(&self, object: &RawValue) {
        let Some(head) = meta::head(object) else { return };
        let changed = self.with(|kind, owners| kind.changed(&head, object, owners));
        self.superseded(changed.as_slice());
    }

    fn deleted(&self, object: &RawValue) {
        let Some(head) = meta::head(object) else { return };
        let changed = self.with(|kind, _| kind.deleted(&head));
        self.superseded(changed.as_slice());
    }

    fn reached(&self, revision: &str) {
        let Ok(revision) = revision.parse() else { return };
        self.with(|kind, _| kind.reached(revision));
    }

    fn up(&self) {
        let now = Instant::now();
        let (was_unserved, changed, settling) =
            self.with(|kind, _| (kind.is_unserved(), kind.up(now), kind.settle()));
        if was_unserved {
            self.care_about_definition(false);
        }
        self.shared.settle(settling);
        self.shared.tell(&changed);
    }

    fn down(&self, fault: &Fault) {
        let now = Instant::now();
        let ((changed, clear), unserved) =
            self.with(|kind, _| (kind.down(fault, now), kind.is_unserved()));
        if clear {
            tracing::info!(kind = %definition_of(&self.name), ?fault, "cannot be watched now");
            self.shared.chores.add_after(Chore::Tell(Arc::clone(&self.name)), GRACE);
        }
        if unserved {
            self.care_about_definition(true);
        }
        self.end_handover();
        self.shared.tell(&changed);
    }
}
