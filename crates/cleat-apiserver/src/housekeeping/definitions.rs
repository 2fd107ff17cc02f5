//! CustomResourceDefinitions: accepting their names, establishing them, and ending them after the
//! last of their instances.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{ObjectRef, Outcome, rewrite, set_condition};
use crate::crd;
use crate::object;
use crate::objects::NotWritten;
use crate::resource::{Origin, ResourceType};
use crate::server::Inner;
use crate::status::Status;
use crate::verbs::delete::CLEANUP;

pub(super) async fn settle(server: &Arc<Inner>, name: &str) -> Result<Outcome, Status> {
    let types = server.types();
    let Some(ty) = types.get("apiextensions.k8s.io", "customresourcedefinitions") else {
        return Ok(Outcome::Done);
    };
    let Some(found) = server.objects.get(ty, "v1", "", name)? else { return Ok(Outcome::Done) };
    let at = ObjectRef::of(ty, &found.value);
    if object::deletion_timestamp(&found.value).is_some() {
        return end(server, ty, &at, &found.value).await;
    }
    let others: Vec<Value> = server
        .objects
        .all(ty, "v1", "")?
        .into_iter()
        .filter(|other| object::name(other) != name)
        .collect();
    let now = server.clock.now_text();
    rewrite(server, ty, &at, ("kube-apiserver", "status"), |definition| {
        let status = crd::status(definition, &others, &now);
        if let Some(map) = definition.as_object_mut() {
            map.insert("status".into(), status);
        }
        true
    })
    .await?;
    Ok(Outcome::Done)
}

/// Removes the instances straight from the store, as Kubernetes does: no webhook is asked. Those
/// with finalizers are marked and waited for.
async fn end(
    server: &Arc<Inner>,
    ty: &Arc<ResourceType>,
    at: &ObjectRef,
    definition: &Value,
) -> Result<Outcome, Status> {
    if !object::has_finalizer(definition, CLEANUP) {
        return Ok(Outcome::Done);
    }
    let types = server.types();
    let text = |pointer| object::at(definition, pointer).unwrap_or_default();
    let own = object::name(definition);
    let found = types.get(text("/spec/group"), text("/spec/names/plural"));
    let instances =
        found.filter(|ty| matches!(&ty.origin, Origin::Custom { name, .. } if &**name == own));
    if crd::is_established(definition) && found.is_none() {
        // It had instances and may have them still: not seeing them is not their absence.
        return Err(Status::internal("the kind of an established definition cannot be read"));
    }
    let mut left = 0;
    if let Some(instances) = instances {
        for instance in server.objects.all(instances, &instances.storage_version, "")? {
            left += usize::from(!remove(server, instances, &instance).await?);
        }
    }
    let now = server.clock.now_text();
    let established = instances.is_some();
    rewrite(server, ty, at, ("kube-apiserver", "status"), |definition| {
        let (status, reason, message) = match (left, established) {
            (0, true) => ("False", "InstanceDeletionCompleted", "removed all instances"),
            (0, false) => ("False", "NeverEstablished", "resource was never established"),
            _ => ("True", "InstanceDeletionInProgress", "CustomResource deletion is in progress"),
        };
        if let Some(map) = definition.as_object_mut() {
            let all = object::as_map(map.entry("status").or_insert_with(|| json!({})));
            let conditions = all.entry("conditions").or_insert_with(|| json!([]));
            set_condition(conditions, &now, "Terminating", status, reason, message);
        }
        if left == 0 {
            object::remove_finalizer(definition, CLEANUP);
        }
        true
    })
    .await?;
    Ok(Outcome::Done)
}

/// `true` once the instance is gone.
async fn remove(server: &Inner, ty: &Arc<ResourceType>, instance: &Value) -> Result<bool, Status> {
    let version = &ty.storage_version;
    let (namespace, name) = (object::namespace(instance), object::name(instance));
    for _ in 0..crate::verbs::RETRIES {
        let Some(current) = server.objects.get(ty, version, namespace, name)? else {
            return Ok(true);
        };
        let held = object::finalizers(&current.value).next().is_some();
        let marked = object::deletion_timestamp(&current.value).is_some();
        let written = match (held, marked) {
            (true, true) => return Ok(false),
            (true, false) => {
                let mut new = current.value.clone();
                let meta = object::metadata_mut(&mut new);
                meta.insert("deletionTimestamp".into(), server.clock.now_text().into());
                meta.insert("deletionGracePeriodSeconds".into(), 0.into());
                if let Some(generation) = meta.get("generation").and_then(Value::as_i64) {
                    meta.insert("generation".into(), (generation + 1).into());
                }
                server.objects.replace(ty, version, new, &current).await
            }
            (false, _) => {
                let revision = current.revision;
                server.objects.remove(ty, version, current.value, revision).await
            }
        };
        match written {
            Ok(_) => return Ok(!held),
            Err(NotWritten::Raced) => {}
            Err(NotWritten::Failed(status)) => return Err(status),
        }
    }
    Ok(false)
}
