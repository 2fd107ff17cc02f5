//! What a control plane does by itself: collecting garbage, ending namespaces, establishing and
//! ending custom resource definitions, giving namespaces their service account, filling secrets with
//! tokens, signing certificates, aggregating roles.
//!
//! Every stored change names the chores it may cause ([`Housekeeper::written`], `removed`); one
//! task per server works through them. A chore carries a name, never a change: it looks at the
//! store afresh, so that repeating it is harmless and a restart (which schedules all of them) takes
//! the same path. Chores delete and update through the same verbs as any client.

mod accounts;
mod agenda;
mod definitions;
mod events;
mod garbage;
mod namespaces;
mod pretend;
mod protection;
mod roles;
mod secrets;
mod signing;

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::object;
use crate::objects::{Before, Stored};
use crate::resource::{Origin, ResourceType};
use crate::server::Inner;
use crate::status::Status;
use crate::user::User;
use crate::verbs::{Call, delete};

use agenda::Agenda;
pub(crate) use garbage::Ownership;

/// How many chores run side by side.
const AT_ONCE: usize = 8;
/// A chore that failed is tried again after this long, doubling up to [`SLOWEST`].
const FIRST_RETRY: Duration = Duration::from_millis(50);
const SLOWEST: Duration = Duration::from_secs(10);

/// One thing to look after.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Chore {
    /// An object with owner references: are its owners still there?
    Dependent(ObjectRef),
    /// An object going in the foreground, or leaving orphans.
    Owner(ObjectRef),
    Namespace(String),
    Definition(String),
    /// The default service account and root certificate of a namespace.
    Account(String),
    Certificate(String),
    /// The secrets with tokens of an account, by namespace and name.
    Tokens(Box<str>, Box<str>),
    AggregatedRoles,
    /// A claim or volume that may go once nothing uses it.
    Protection(ObjectRef),
    /// Events that are too old.
    Events,
    /// Let a workload look as if nodes ran it.
    Pretend(ObjectRef),
}

/// Where an object is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ObjectRef {
    pub(crate) group: Box<str>,
    pub(crate) plural: Box<str>,
    pub(crate) namespace: Box<str>,
    pub(crate) name: Box<str>,
}

impl ObjectRef {
    pub(crate) fn of(ty: &ResourceType, object: &Value) -> Self {
        Self {
            group: ty.group.clone(),
            plural: ty.plural.clone(),
            namespace: object::namespace(object).into(),
            name: object::name(object).into(),
        }
    }
}

/// What a chore came to.
pub(crate) enum Outcome {
    /// Nothing left to do until something changes.
    Done,
    /// Worth another look even if nothing changes.
    Again,
}

/// The list of chores of one server, and what is needed to know them.
pub(crate) struct Housekeeper {
    state: Mutex<State>,
    wake: Notify,
    pretends: bool,
}

#[derive(Default)]
struct State {
    ownership: Ownership,
    /// Namespaces on their way out: what leaves them is news.
    terminating: BTreeSet<Box<str>>,
    agenda: Agenda,
}

impl Housekeeper {
    pub(crate) fn new(pretends: bool) -> Self {
        Self { state: Mutex::default(), wake: Notify::new(), pretends }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn schedule(&self, chore: Chore) {
        self.schedule_all([chore]);
    }

    fn schedule_all(&self, chores: impl IntoIterator<Item = Chore>) {
        let now = Instant::now();
        let mut any = false;
        let mut state = self.lock();
        for chore in chores {
            state.agenda.soon(chore, now);
            any = true;
        }
        drop(state);
        if any {
            self.wake.notify_one();
        }
    }

    /// Not before so long from now, unless it is due sooner anyway.
    pub(crate) fn schedule_later(&self, chore: Chore, wait: Duration) {
        let at = Instant::now() + wait;
        self.lock().agenda.later(chore, at, 0);
        self.wake.notify_one();
    }

    /// An object was stored. `old` is what it replaced.
    pub(crate) fn written(&self, ty: &ResourceType, old: Option<&Before>, new: &Value) {
        let mut chores = Vec::new();
        let at = ObjectRef::of(ty, new);
        let marked = object::deletion_timestamp(new).is_some();
        if marked
            && (object::has_finalizer(new, garbage::FOREGROUND)
                || object::has_finalizer(new, garbage::ORPHAN))
        {
            chores.push(Chore::Owner(at.clone()));
        }
        let references = object::owner_references(new);
        let former = old.map_or(&[][..], |old| &old.owner_references);
        if (!references.is_empty() || !former.is_empty()) && (old.is_none() || former != references)
        {
            let mut state = self.lock();
            state.ownership.note(&at, new);
            // An owner that waits for this one may have nothing to wait for any more.
            for uid in former.iter().filter_map(|owner| owner.get("uid")?.as_str()) {
                chores.extend(state.ownership.waiting(uid).cloned().map(Chore::Owner));
            }
            if !references.is_empty() {
                chores.push(Chore::Dependent(at.clone()));
            }
        }
        if !at.namespace.is_empty() && self.lock().terminating.contains(&*at.namespace) {
            chores.push(Chore::Namespace(at.namespace.to_string()));
        }
        if marked && protection::protects(ty) {
            chores.push(Chore::Protection(at.clone()));
        }
        match (&*ty.group, &*ty.plural) {
            ("", "namespaces") if marked => {
                self.lock().terminating.insert(at.name.clone());
                chores.push(Chore::Namespace(at.name.to_string()));
            }
            ("", "namespaces") if old.is_none() => chores.push(Chore::Account(at.name.to_string())),
            ("apiextensions.k8s.io", "customresourcedefinitions") => {
                chores.push(Chore::Definition(at.name.to_string()));
            }
            ("certificates.k8s.io", "certificatesigningrequests") => {
                chores.push(Chore::Certificate(at.name.to_string()));
            }
            ("rbac.authorization.k8s.io", "clusterroles") => chores.push(Chore::AggregatedRoles),
            ("" | "events.k8s.io", "events") => {
                self.schedule_later(Chore::Events, events::LIFETIME)
            }
            ("", "secrets") => {
                let account = secrets::account(new);
                chores.extend(account.map(|name| Chore::Tokens(at.namespace.clone(), name.into())));
            }
            _ => {}
        }
        if self.pretends && pretend::covers(ty) {
            chores.push(Chore::Pretend(at));
        }
        self.schedule_all(chores);
    }

    /// An object left the store; `last` is how it looked.
    pub(crate) fn removed(&self, ty: &ResourceType, last: &Value) {
        let at = ObjectRef::of(ty, last);
        let mut chores = Vec::new();
        let mut state = self.lock();
        state.ownership.forget(&at, object::uid(last));
        for dependent in state.ownership.dependents(object::uid(last)) {
            chores.push(Chore::Dependent(dependent.clone()));
        }
        for owner in object::owner_references(last) {
            let uid = owner.get("uid").and_then(Value::as_str).unwrap_or_default();
            chores.extend(state.ownership.waiting(uid).cloned().map(Chore::Owner));
        }
        state.ownership.settled(object::uid(last));
        if state.terminating.contains(&*at.namespace) && !at.namespace.is_empty() {
            chores.push(Chore::Namespace(at.namespace.to_string()));
        }
        if ty.group.is_empty() && &*ty.plural == "namespaces" {
            state.terminating.remove(&*at.name);
        }
        drop(state);
        chores.extend(protection::freed(ty, last).map(Chore::Protection));
        if ty.group.is_empty() && accounts::keeps(&ty.plural, &at.name) {
            chores.push(Chore::Account(at.namespace.to_string()));
        }
        if let Origin::Custom { name, .. } = &ty.origin {
            chores.push(Chore::Definition(name.to_string()));
        }
        match (&*ty.group, &*ty.plural) {
            ("rbac.authorization.k8s.io", "clusterroles") => chores.push(Chore::AggregatedRoles),
            ("", "serviceaccounts") => chores.push(Chore::Tokens(at.namespace, at.name)),
            _ => {}
        }
        self.schedule_all(chores);
    }

    /// The chores that are due and not running, and when the next one is.
    fn take_due(&self, running: &BTreeSet<Chore>, room: usize) -> (Vec<(Chore, u32)>, Instant) {
        let now = Instant::now();
        let mut state = self.lock();
        let ready = state.agenda.take(now, room, running);
        let idle = now + Duration::from_secs(3600);
        (ready, state.agenda.next(now).unwrap_or(idle))
    }

    fn retry(&self, chore: Chore, tries: u32) {
        let wait = FIRST_RETRY.saturating_mul(1 << tries.min(16)).min(SLOWEST);
        let at = Instant::now() + wait;
        // Whatever was scheduled meanwhile is sooner.
        self.lock().agenda.later(chore, at, tries + 1);
    }
}

/// Works through the chores until the server goes.
pub(crate) async fn run(server: Arc<Inner>) {
    let keeper = Arc::clone(&server.housekeeper);
    let mut running = BTreeSet::new();
    let mut tasks = FuturesUnordered::new();
    loop {
        let (ready, next) = keeper.take_due(&running, AT_ONCE.saturating_sub(tasks.len()));
        for (chore, tries) in ready {
            running.insert(chore.clone());
            let server = Arc::clone(&server);
            tasks.push(async move {
                // One broken chore must not end the others.
                let outcome = AssertUnwindSafe(attend(&server, &chore)).catch_unwind().await;
                let outcome = outcome.unwrap_or_else(|_| Err(Status::internal("a chore panicked")));
                (chore, tries, outcome)
            });
        }
        tokio::select! {
            Some((chore, tries, outcome)) = tasks.next(), if !tasks.is_empty() => {
                running.remove(&chore);
                match outcome {
                    Ok(Outcome::Done) => {}
                    Ok(Outcome::Again) => keeper.retry(chore, tries),
                    Err(status) => {
                        tracing::debug!(?chore, tries, why = status.message, "chore to be retried");
                        keeper.retry(chore, tries);
                    }
                }
            }
            () = keeper.wake.notified() => {}
            () = tokio::time::sleep_until(next) => {}
            () = server.stopping() => return,
        }
    }
}

async fn attend(server: &Arc<Inner>, chore: &Chore) -> Result<Outcome, Status> {
    match chore {
        Chore::Dependent(at) => garbage::check_dependent(server, at).await,
        Chore::Owner(at) => garbage::release_owner(server, at).await,
        Chore::Namespace(name) => namespaces::empty(server, name).await,
        Chore::Definition(name) => definitions::settle(server, name).await,
        Chore::Account(namespace) => accounts::provide(server, namespace).await,
        Chore::Certificate(name) => signing::sign(server, name).await,
        Chore::Tokens(namespace, name) => secrets::provide(server, namespace, name).await,
        Chore::AggregatedRoles => roles::aggregate(server).await,
        Chore::Protection(at) => protection::release(server, at).await,
        Chore::Events => events::expire(server).await,
        Chore::Pretend(at) => pretend::advance(server, at).await,
    }
}

/// After a start nothing is remembered: every object is looked at once.
pub(crate) fn schedule_everything(server: &Inner) {
    for ty in server.types().all() {
        let looked = server.objects.each(ty, &ty.storage_version, "", |object| match object {
            Ok(object) => server.housekeeper.written(ty, None, &object),
            Err(status) => tracing::error!(why = status.message, "cannot look after an object"),
        });
        if let Err(status) = looked {
            tracing::error!(why = status.message, "cannot look after all objects");
        }
    }
    server.housekeeper.schedule(Chore::AggregatedRoles);
}

/// The object a chore is about, if it is still there.
fn find(server: &Inner, at: &ObjectRef) -> Result<Option<(Arc<ResourceType>, Stored)>, Status> {
    let types = server.types();
    let Some(ty) = types.get(&at.group, &at.plural) else { return Ok(None) };
    let found = server.objects.get(ty, &ty.storage_version, &at.namespace, &at.name)?;
    Ok(found.map(|stored| (Arc::clone(ty), stored)))
}

/// Deletes an object as one of the control plane's own users, provided it is still what was seen.
///
/// An object that changed meanwhile is not deleted: that is a conflict, to be looked at again.
async fn delete_as(
    server: &Inner,
    user: &User,
    ty: &Arc<ResourceType>,
    target: &Value,
    propagation: crate::query::Propagation,
) -> Result<(), Status> {
    let (namespace, name) = (object::namespace(target), object::name(target));
    let mut call = Call::internal(server, user, ty, namespace, name);
    let options = crate::query::DeleteOptions {
        uid: Some(object::uid(target).to_owned()),
        resource_version: Some(object::resource_version(target).to_owned()),
        propagation: Some(propagation),
        ..Default::default()
    };
    match delete::delete_object(&mut call, &options, false).await {
        Err(status) if status.code == 404 => Ok(()),
        other => other.map(drop),
    }
}

/// Rewrites an object until nobody else is quicker, and notes `manager` (and the subresource it
/// would use) as who did. `change` returns whether it changed anything.
async fn rewrite(
    server: &Inner,
    ty: &Arc<ResourceType>,
    at: &ObjectRef,
    (manager, subresource): (&str, &str),
    change: impl Fn(&mut Value) -> bool,
) -> Result<(), Status> {
    use crate::objects::NotWritten;
    let mut call = Call::internal(server, &User::default(), ty, &at.namespace, &at.name);
    subresource.clone_into(&mut call.subresource);
    for _ in 0..crate::verbs::RETRIES {
        let version = &ty.storage_version;
        let Some(current) = server.objects.get(ty, version, &at.namespace, &at.name)? else {
            return Ok(());
        };
        let mut new = current.value.clone();
        if !change(&mut new) || new == current.value {
            return Ok(());
        }
        call.track(Some(&current.value), &mut new, manager);
        let free = object::deletion_timestamp(&new).is_some()
            && object::finalizers(&new).next().is_none()
            && !(delete::is_namespace(ty) && delete::has_spec_finalizers(&new));
        let written = match free {
            true => {
                // Watchers see it as it was stored.
                let revision = current.revision;
                server.objects.remove(ty, version, current.value, revision).await
            }
            false => server.objects.replace(ty, version, new, &current).await,
        };
        match written {
            Ok(_) => return Ok(()),
            Err(NotWritten::Raced) => {}
            Err(NotWritten::Failed(status)) => return Err(status),
        }
    }
    Err(Status::internal("an object changes faster than it can be looked after"))
}

/// Sets one condition; the transition time moves only with the status.
pub(crate) fn set_condition(
    conditions: &mut Value,
    now: &str,
    kind: &str,
    status: &str,
    reason: &str,
    message: &str,
) {
    if !conditions.is_array() {
        *conditions = Value::Array(Vec::new());
    }
    let Some(all) = conditions.as_array_mut() else { return };
    let position = all.iter().position(|condition| condition.get("type") == Some(&kind.into()));
    let since = position
        .and_then(|index| all.get(index))
        .filter(|before| before.get("status") == Some(&status.into()))
        .and_then(|before| before.get("lastTransitionTime").cloned())
        .unwrap_or_else(|| now.into());
    let condition = serde_json::json!({
        "type": kind, "status": status, "lastTransitionTime": since, "reason": reason,
        "message": message,
    });
    match position.and_then(|index| all.get_mut(index)) {
        Some(slot) => *slot = condition,
        None => all.push(condition),
    }
}
