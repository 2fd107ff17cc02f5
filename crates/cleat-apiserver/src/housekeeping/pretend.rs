//! Workloads that look as if nodes ran them, for servers that are told to pretend.

use std::sync::Arc;

use super::{ObjectRef, Outcome, find, rewrite};
use crate::object;
use crate::objects::NotWritten;
use crate::resource::ResourceType;
use crate::rules::pretend;
use crate::server::Inner;
use crate::status::Status;

pub(super) fn covers(ty: &ResourceType) -> bool {
    matches!(
        (&*ty.group, &*ty.plural),
        ("apps", "deployments" | "replicasets" | "statefulsets" | "daemonsets")
            | ("batch", "jobs")
            | ("", "replicationcontrollers" | "pods" | "persistentvolumeclaims")
    )
}

pub(super) async fn advance(server: &Arc<Inner>, at: &ObjectRef) -> Result<Outcome, Status> {
    let Some((ty, found)) = find(server, at)? else { return Ok(Outcome::Done) };
    let free = object::finalizers(&found.value).next().is_none();
    if &*ty.plural == "pods" && object::deletion_timestamp(&found.value).is_some() && free {
        // Nobody else is there to report that a pod in its grace period has ended.
        let (last, revision) = (found.value, found.revision);
        return match server.objects.remove(&ty, &ty.storage_version, last, revision).await {
            Ok(_) => Ok(Outcome::Done),
            Err(NotWritten::Raced) => Ok(Outcome::Again),
            Err(NotWritten::Failed(status)) => Err(status),
        };
    }
    let now = server.clock.now();
    rewrite(
        server,
        &ty,
        at,
        ("kube-controller-manager", "status"),
        |current| match pretend::status(&ty, current, now) {
            Some(status) => {
                object::as_map(current).insert("status".into(), status);
                true
            }
            None => false,
        },
    )
    .await?;
    Ok(Outcome::Done)
}
