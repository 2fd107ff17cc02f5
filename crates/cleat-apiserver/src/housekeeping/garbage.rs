//! The garbage collector: what is owned goes when its last owner went.
//!
//! An owner that cannot be resolved is not an absent one: a kind this server does not know keeps
//! its dependents.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::{Chore, ObjectRef, Outcome, delete_as, find, rewrite};
use crate::object;
use crate::query::Propagation;
use crate::resource::ResourceType;
use crate::server::Inner;
use crate::status::Status;
use crate::user::User;

pub(super) const ORPHAN: &str = "orphan";
pub(super) const FOREGROUND: &str = "foregroundDeletion";

/// Who is owned by whom, by uid. Only objects with owner references are in it.
#[derive(Default)]
pub(crate) struct Ownership {
    dependents: BTreeMap<Box<str>, BTreeSet<ObjectRef>>,
    /// What each dependent was last seen to refer to.
    owners: BTreeMap<ObjectRef, Vec<Box<str>>>,
    /// Owners that go in the foreground and wait for their dependents.
    waiting: BTreeMap<Box<str>, ObjectRef>,
    /// Owners that were seen to go while they had dependents, so that these can be judged even
    /// when the owner's kind has gone too.
    gone: BTreeSet<Box<str>>,
}

impl Ownership {
    /// Takes over what `object` says of its owners.
    pub(crate) fn note(&mut self, at: &ObjectRef, object: &Value) {
        self.unlink(at);
        let owners: Vec<Box<str>> = object::owner_references(object)
            .iter()
            .filter_map(|owner| owner.get("uid")?.as_str())
            .map(Box::from)
            .collect();
        for owner in &owners {
            self.dependents.entry(owner.clone()).or_default().insert(at.clone());
        }
        if !owners.is_empty() {
            self.owners.insert(at.clone(), owners);
        }
    }

    /// The object is gone.
    pub(crate) fn forget(&mut self, at: &ObjectRef, uid: &str) {
        self.unlink(at);
        if self.dependents.contains_key(uid) {
            self.gone.insert(uid.into());
        }
    }

    fn is_gone(&self, uid: &str) -> bool {
        self.gone.contains(uid)
    }

    fn unlink(&mut self, at: &ObjectRef) {
        for owner in self.owners.remove(at).unwrap_or_default() {
            if let Some(dependents) = self.dependents.get_mut(&owner) {
                dependents.remove(at);
                if dependents.is_empty() {
                    self.dependents.remove(&owner);
                    self.gone.remove(&owner);
                }
            }
        }
    }

    pub(crate) fn dependents(&self, uid: &str) -> impl Iterator<Item = &ObjectRef> {
        self.dependents.get(uid).into_iter().flatten()
    }

    pub(crate) fn waiting(&self, uid: &str) -> Option<&ObjectRef> {
        self.waiting.get(uid)
    }

    pub(crate) fn wait(&mut self, uid: &str, at: &ObjectRef) {
        self.waiting.insert(uid.into(), at.clone());
    }

    pub(crate) fn settled(&mut self, uid: &str) {
        self.waiting.remove(uid);
    }
}

/// What became of one owner.
#[derive(PartialEq, Eq)]
enum Owner {
    Present,
    /// Going in the foreground: it waits for this dependent to go first.
    Waiting,
    Absent,
    /// Its kind is not served here, so nothing can be said.
    Unresolvable,
}

fn user() -> User {
    User::service_account("kube-system", "generic-garbage-collector")
}

/// Deletes a dependent whose owners are all gone, or forgets the owners that are.
pub(super) async fn check_dependent(
    server: &Arc<Inner>,
    at: &ObjectRef,
) -> Result<Outcome, Status> {
    let Some((ty, dependent)) = find(server, at)? else { return Ok(Outcome::Done) };
    let dependent = dependent.value;
    let references = object::owner_references(&dependent);
    let mut states = Vec::with_capacity(references.len());
    for reference in references {
        states.push(owner_state(server, at, reference)?);
    }
    if states.iter().any(|state| matches!(state, Owner::Present | Owner::Unresolvable)) {
        if states.iter().all(|state| matches!(state, Owner::Present | Owner::Unresolvable)) {
            return Ok(Outcome::Done);
        }
        let lost: BTreeSet<String> = references
            .iter()
            .zip(&states)
            .filter(|(_, state)| matches!(state, Owner::Absent | Owner::Waiting))
            .filter_map(|(reference, _)| Some(reference.get("uid")?.as_str()?.to_owned()))
            .collect();
        rewrite(server, &ty, at, ("kube-controller-manager", ""), |object| {
            drop_owners(object, &lost)
        })
        .await?;
        return Ok(Outcome::Done);
    }
    if states.is_empty() {
        return Ok(Outcome::Done);
    }
    let has_dependents =
        server.housekeeper.lock().ownership.dependents(object::uid(&dependent)).next().is_some();
    let propagation = if object::has_finalizer(&dependent, ORPHAN) {
        Propagation::Orphan
    } else if object::has_finalizer(&dependent, FOREGROUND)
        || (states.contains(&Owner::Waiting) && has_dependents)
    {
        Propagation::Foreground
    } else {
        Propagation::Background
    };
    if object::deletion_timestamp(&dependent).is_some() {
        // On its way; its finalizers decide when.
        return Ok(Outcome::Done);
    }
    delete_as(server, &user(), &ty, &dependent, propagation).await?;
    Ok(Outcome::Done)
}

fn owner_state(server: &Inner, at: &ObjectRef, reference: &Value) -> Result<Owner, Status> {
    let text = |field| reference.get(field).and_then(Value::as_str).unwrap_or_default();
    let group = match text("apiVersion").split_once('/') {
        Some((group, _)) => group,
        None => "",
    };
    let types = server.types();
    let Some(ty) = types.by_kind(group, text("kind")) else {
        let gone = server.housekeeper.lock().ownership.is_gone(text("uid"));
        return Ok(if gone { Owner::Absent } else { Owner::Unresolvable });
    };
    let namespace = match (ty.namespaced, &*at.namespace) {
        // A cluster-scoped object cannot be owned by a namespaced one: nothing to look up.
        (true, "") => return Ok(Owner::Unresolvable),
        (true, namespace) => namespace,
        (false, _) => "",
    };
    let found = server.objects.get(ty, &ty.storage_version, namespace, text("name"))?;
    Ok(match found {
        Some(owner) if object::uid(&owner.value) != text("uid") => Owner::Absent,
        Some(owner)
            if object::deletion_timestamp(&owner.value).is_some()
                && object::has_finalizer(&owner.value, FOREGROUND) =>
        {
            Owner::Waiting
        }
        Some(_) => Owner::Present,
        None => Owner::Absent,
    })
}

/// Takes the references to these owners off; says whether there were any.
fn drop_owners(object: &mut Value, uids: &BTreeSet<String>) -> bool {
    let meta = object::metadata_mut(object);
    let Some(Value::Array(references)) = meta.get_mut("ownerReferences") else { return false };
    let before = references.len();
    references.retain(|reference| {
        let uid = reference.get("uid").and_then(Value::as_str).unwrap_or_default();
        !uids.contains(uid)
    });
    let changed = references.len() != before;
    if references.is_empty() {
        meta.remove("ownerReferences");
    }
    changed
}

/// An owner that leaves orphans, or waits for its dependents, is let go when that is done.
pub(super) async fn release_owner(server: &Arc<Inner>, at: &ObjectRef) -> Result<Outcome, Status> {
    let Some((ty, owner)) = find(server, at)? else { return Ok(Outcome::Done) };
    let owner = owner.value;
    if object::deletion_timestamp(&owner).is_none() {
        return Ok(Outcome::Done);
    }
    let uid = object::uid(&owner);
    let dependents: Vec<ObjectRef> =
        server.housekeeper.lock().ownership.dependents(uid).cloned().collect();
    if object::has_finalizer(&owner, ORPHAN) {
        let lost = BTreeSet::from([uid.to_owned()]);
        for dependent in &dependents {
            let Some((ty, _)) = find(server, dependent)? else { continue };
            rewrite(server, &ty, dependent, ("kube-controller-manager", ""), |object| {
                drop_owners(object, &lost)
            })
            .await?;
        }
        return finish(server, &ty, at, ORPHAN).await;
    }
    if !object::has_finalizer(&owner, FOREGROUND) {
        return Ok(Outcome::Done);
    }
    server.housekeeper.lock().ownership.wait(uid, at);
    let mut blocked = false;
    for dependent in &dependents {
        let Some((_, found)) = find(server, dependent)? else { continue };
        blocked |= blocks(&found.value, uid);
        server.housekeeper.schedule(Chore::Dependent(dependent.clone()));
    }
    if blocked {
        return Ok(Outcome::Done);
    }
    server.housekeeper.lock().ownership.settled(uid);
    finish(server, &ty, at, FOREGROUND).await
}

fn blocks(dependent: &Value, owner: &str) -> bool {
    object::owner_references(dependent).iter().any(|reference| {
        reference.get("uid").and_then(Value::as_str) == Some(owner)
            && reference.get("blockOwnerDeletion").and_then(Value::as_bool) == Some(true)
    })
}

async fn finish(
    server: &Inner,
    ty: &Arc<ResourceType>,
    at: &ObjectRef,
    finalizer: &str,
) -> Result<Outcome, Status> {
    rewrite(server, ty, at, ("kube-controller-manager", ""), |object| {
        object::remove_finalizer(object, finalizer);
        true
    })
    .await?;
    Ok(Outcome::Done)
}
