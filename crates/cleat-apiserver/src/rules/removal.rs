//! How kinds differ when they are deleted.

use super::strategy::builtin;
use crate::resource::ResourceType;

/// What becomes of dependents when the request does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GarbagePolicy {
    /// They are deleted in the background.
    Delete,
    /// They are orphaned: old kinds behave as they did before there was garbage collection.
    Orphan,
    /// The kind takes no part.
    Unsupported,
}

pub(crate) fn garbage_policy(ty: &ResourceType) -> GarbagePolicy {
    match (builtin(ty), &*ty.group, &*ty.plural) {
        (true, "batch", "jobs") | (true, "", "replicationcontrollers") => GarbagePolicy::Orphan,
        (true, "" | "events.k8s.io", "events") => GarbagePolicy::Unsupported,
        _ => GarbagePolicy::Delete,
    }
}

/// Whether a delete is answered with the object rather than with a bare success.
pub(crate) fn returns_deleted(ty: &ResourceType) -> bool {
    builtin(ty)
        && matches!(
            (&*ty.group, &*ty.plural),
            (
                "",
                "namespaces"
                    | "persistentvolumes"
                    | "persistentvolumeclaims"
                    | "pods"
                    | "podtemplates"
                    | "resourcequotas"
                    | "services"
                    | "serviceaccounts"
            ) | (
                "storage.k8s.io",
                "csidrivers"
                    | "csinodes"
                    | "storageclasses"
                    | "volumeattachments"
                    | "volumeattributesclasses"
            )
        )
}
