//! Delete: from the wish to the moment the object leaves the store.
//!
//! An object with finalizers is only marked; it leaves when an update takes the last one away
//! (`update`). Namespaces and pods have an extra step each.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Call, RETRIES};
use crate::clock;
use crate::housekeeping::set_condition;
use crate::object;
use crate::objects::{NotWritten, Stored};
use crate::query::{DeleteOptions, Propagation};
use crate::resource::ResourceType;
use crate::rules::{self, GarbagePolicy};
use crate::status::{GroupResource, Status};

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// What became of the object.
#[derive(Debug)]
pub(crate) enum Deleted {
    /// It left the store; this was its last state.
    Gone(Value),
    /// It is marked and waits for finalizers or its grace period.
    Marked(Value),
}

/// Deletes one object on behalf of `call.user`.
///
/// `collection`: the name is not shown to webhooks, as when a whole collection is deleted.
pub(crate) async fn delete_object(
    call: &mut Call<'_>,
    options: &DeleteOptions,
    collection: bool,
) -> Result<Deleted, Status> {
    for _ in 0..RETRIES {
        let current = call.current()?.ok_or_else(|| call.not_found())?;
        check_preconditions(call, &current, options)?;
        match attempt(call, options, collection, current).await {
            Err(NotWritten::Raced) => {}
            Err(NotWritten::Failed(status)) => return Err(status),
            Ok(deleted) => return Ok(deleted),
        }
    }
    Err(call.raced())
}

fn check_preconditions(
    call: &Call<'_>,
    current: &Stored,
    options: &DeleteOptions,
) -> Result<(), Status> {
    let (uid, revision) = (object::uid(&current.value), object::resource_version(&current.value));
    if let Some(wanted) = options.uid.as_deref()
        && wanted != uid
    {
        return Err(changed(call, "UID", wanted, uid, "deleted and then recreated"));
    }
    if let Some(wanted) = options.resource_version.as_deref()
        && wanted != revision
    {
        return Err(changed(call, "ResourceVersion", wanted, revision, "modified"));
    }
    Ok(())
}

/// The object is not the one the client means. Kubernetes names the kind here, not the resource.
fn changed(call: &Call<'_>, what: &str, wanted: &str, found: &str, perhaps: &str) -> Status {
    let kind = GroupResource { group: &call.ty.group, resource: &call.ty.kind };
    let why = format!(
        "the {what} in the precondition ({wanted}) does not match the {what} in record ({found}). \
         The object might have been {perhaps}"
    );
    Status::conflict(kind, &call.name, why)
}

async fn attempt(
    call: &mut Call<'_>,
    options: &DeleteOptions,
    collection: bool,
    current: Stored,
) -> Result<Deleted, NotWritten> {
    let namespace_kind = is_namespace(&call.ty);
    let deleting = object::deletion_timestamp(&current.value).is_some();
    // A namespace already on its way answers without asking anybody again.
    if namespace_kind && deleting && has_spec_finalizers(&current.value) {
        return Ok(Deleted::Marked(current.value));
    }
    let grace = grace_seconds(&call.ty, &current.value, options);
    // A repeated delete only matters if it shortens the time that is left.
    if deleting && grace > 0 && pending_grace(&current.value).is_some_and(|left| left <= grace) {
        return Ok(Deleted::Marked(current.value));
    }
    call.admit_delete(&current.value, options, collection).await.map_err(NotWritten::Failed)?;
    let mut marked = current.value.clone();
    set_propagation_finalizers(&call.ty, &mut marked, options);
    if is_definition(&call.ty) && !deleting {
        hold_definition(&mut marked, &call.server.clock.now_text());
    }
    let waits = grace > 0
        || object::finalizers(&marked).next().is_some()
        || (namespace_kind && has_spec_finalizers(&marked));
    if !waits && !is_pod(&call.ty) {
        return leave(call, options, current).await;
    }
    mark(call, &mut marked, grace);
    let mut current = current;
    if !options.dry_run && marked != current.value {
        current = call.objects().replace(&call.ty, &call.version, marked, &current).await?;
    } else {
        current.value = marked;
    }
    match waits {
        true => Ok(Deleted::Marked(current.value)),
        // A pod that nothing holds is marked and gone in one request.
        false => leave(call, options, current).await,
    }
}

async fn leave(
    call: &Call<'_>,
    options: &DeleteOptions,
    current: Stored,
) -> Result<Deleted, NotWritten> {
    if options.dry_run {
        return Ok(Deleted::Gone(current.value));
    }
    let revision = current.revision;
    let gone = call.objects().remove(&call.ty, &call.version, current.value, revision).await?;
    Ok(Deleted::Gone(gone.value))
}

/// Sets the deletion time, which never moves again except forward in haste (a shorter grace).
fn mark(call: &Call<'_>, object: &mut Value, grace: i64) {
    let now = call.server.clock.now();
    let end = now.checked_add(jiff::SignedDuration::from_secs(grace)).unwrap_or(now);
    let first = object::deletion_timestamp(object).is_none();
    let shorter = pending_grace(object).is_some_and(|left| grace < left);
    if !first && !shorter {
        return;
    }
    let meta = object::metadata_mut(object);
    meta.insert("deletionTimestamp".into(), clock::seconds(end).into());
    if is_namespace(&call.ty) || is_definition(&call.ty) {
        // Both are marked by code of their own, which leaves the rest alone.
    } else if meta.insert("deletionGracePeriodSeconds".into(), grace.into()).is_none()
        && let Some(generation) = meta.get("generation").and_then(Value::as_i64)
    {
        meta.insert("generation".into(), (generation + 1).into());
    }
    if is_namespace(&call.ty) {
        let status = object.as_object_mut().map(|map| map.entry("status").or_insert(json!({})));
        if let Some(status) = status {
            object::as_map(status).insert("phase".into(), "Terminating".into());
        }
    }
}

/// Only pods that a node may be running are given time to end.
fn grace_seconds(ty: &ResourceType, object: &Value, options: &DeleteOptions) -> i64 {
    if !is_pod(ty) {
        return 0;
    }
    let ended = matches!(object::at(object, "/status/phase"), Some("Succeeded" | "Failed"));
    let unplaced = object::at(object, "/spec/nodeName").unwrap_or_default().is_empty();
    if ended || unplaced {
        return 0;
    }
    let declared = object.pointer("/spec/terminationGracePeriodSeconds").and_then(Value::as_i64);
    options.grace_period_seconds.or(declared).unwrap_or(30).max(0)
}

fn pending_grace(object: &Value) -> Option<i64> {
    object::metadata(object)?.get("deletionGracePeriodSeconds")?.as_i64()
}

/// The garbage collector works through finalizers: the wish for orphans or for a foreground
/// deletion is written onto the object before it goes.
fn set_propagation_finalizers(ty: &ResourceType, object: &mut Value, options: &DeleteOptions) {
    let policy = rules::garbage_policy(ty);
    if policy == GarbagePolicy::Unsupported {
        return;
    }
    let (orphan, foreground) = match (options.orphan_dependents, options.propagation) {
        (Some(orphan), _) => (orphan, false),
        (None, Some(Propagation::Orphan)) => (true, false),
        (None, Some(Propagation::Foreground)) => (false, true),
        (None, Some(Propagation::Background)) => (false, false),
        (None, None) if object::has_finalizer(object, ORPHAN) => (true, false),
        (None, None) if object::has_finalizer(object, FOREGROUND) => (false, true),
        (None, None) => (policy == GarbagePolicy::Orphan, false),
    };
    for (wanted, finalizer) in [(orphan, ORPHAN), (foreground, FOREGROUND)] {
        if wanted {
            object::add_finalizer(object, finalizer);
        } else {
            object::remove_finalizer(object, finalizer);
        }
    }
}

/// Keeps a definition until its instances are gone.
pub(crate) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

fn hold_definition(definition: &mut Value, now: &str) {
    object::add_finalizer(definition, CLEANUP);
    let status = object::as_map(definition).entry("status").or_insert_with(|| json!({}));
    let conditions = object::as_map(status).entry("conditions").or_insert_with(|| json!([]));
    set_condition(
        conditions,
        now,
        "Terminating",
        "True",
        "InstanceDeletionPending",
        "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    );
}

fn is_pod(ty: &ResourceType) -> bool {
    ty.group.is_empty() && &*ty.plural == "pods"
}

pub(crate) fn is_definition(ty: &ResourceType) -> bool {
    (&*ty.group, &*ty.plural) == ("apiextensions.k8s.io", "customresourcedefinitions")
}

pub(crate) fn is_namespace(ty: &ResourceType) -> bool {
    ty.group.is_empty() && &*ty.plural == "namespaces"
}

pub(crate) fn has_spec_finalizers(object: &Value) -> bool {
    object.pointer("/spec/finalizers").and_then(Value::as_array).is_some_and(|all| !all.is_empty())
}

/// The answer to a delete request: the object where it lives on or where its kind always shows it,
/// else a bare success.
pub(crate) fn answer(ty: &Arc<ResourceType>, deleted: Deleted) -> Value {
    match deleted {
        Deleted::Marked(object) => object,
        Deleted::Gone(object) if rules::returns_deleted(ty) => object,
        Deleted::Gone(object) => json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
            "details": details(ty, &object),
        }),
    }
}

fn details(ty: &ResourceType, object: &Value) -> Value {
    let mut details = json!({ "name": object::name(object), "kind": &*ty.plural });
    let map = object::as_map(&mut details);
    if !ty.group.is_empty() {
        map.insert("group".into(), (*ty.group).into());
    }
    if !object::uid(object).is_empty() {
        map.insert("uid".into(), object::uid(object).into());
    }
    details
}
