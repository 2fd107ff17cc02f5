//! Claims and volumes are kept while something uses them, as the storage controllers of a real
//! cluster do.

use std::sync::Arc;

use serde_json::Value;

use super::{ObjectRef, Outcome, find, rewrite};
use crate::object;
use crate::resource::ResourceType;
use crate::server::Inner;
use crate::status::Status;

const CLAIM: &str = "kubernetes.io/pvc-protection";
const VOLUME: &str = "kubernetes.io/pv-protection";

pub(super) fn protects(ty: &ResourceType) -> bool {
    ty.group.is_empty() && matches!(&*ty.plural, "persistentvolumeclaims" | "persistentvolumes")
}

/// The claims that a pod which went had used.
pub(super) fn freed<'a>(
    ty: &'a ResourceType,
    last: &'a Value,
) -> impl Iterator<Item = ObjectRef> + 'a {
    let pod = ty.group.is_empty() && &*ty.plural == "pods";
    claims(last).filter(move |_| pod).map(|claim| ObjectRef {
        group: "".into(),
        plural: "persistentvolumeclaims".into(),
        namespace: object::namespace(last).into(),
        name: claim.into(),
    })
}

fn claims(pod: &Value) -> impl Iterator<Item = &str> {
    let volumes = pod.pointer("/spec/volumes").and_then(Value::as_array);
    volumes
        .into_iter()
        .flatten()
        .filter_map(|volume| volume.pointer("/persistentVolumeClaim/claimName")?.as_str())
}

/// Takes the protection off what is to go and is not in use.
pub(super) async fn release(server: &Arc<Inner>, at: &ObjectRef) -> Result<Outcome, Status> {
    let Some((ty, found)) = find(server, at)? else { return Ok(Outcome::Done) };
    if object::deletion_timestamp(&found.value).is_none() {
        return Ok(Outcome::Done);
    }
    let (finalizer, used) = match &*ty.plural {
        "persistentvolumes" => (VOLUME, object::at(&found.value, "/status/phase") == Some("Bound")),
        _ => (CLAIM, in_use(server, at)?),
    };
    if used || !object::has_finalizer(&found.value, finalizer) {
        return Ok(Outcome::Done);
    }
    rewrite(server, &ty, at, ("kube-controller-manager", ""), |current| {
        object::remove_finalizer(current, finalizer);
        true
    })
    .await?;
    Ok(Outcome::Done)
}

/// Whether a pod that has not ended names the claim.
fn in_use(server: &Inner, at: &ObjectRef) -> Result<bool, Status> {
    let types = server.types();
    let Some(pods) = types.get("", "pods") else { return Ok(false) };
    let pods = server.objects.all(pods, "v1", &at.namespace)?;
    Ok(pods.iter().any(|pod| {
        let ended = matches!(object::at(pod, "/status/phase"), Some("Succeeded" | "Failed"));
        !ended && claims(pod).any(|claim| claim == &*at.name)
    }))
}
