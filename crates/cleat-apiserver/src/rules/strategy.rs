//! Which parts of an object each way of writing may touch, as a table over the built-in kinds.
//!
//! This is what kube-apiserver's registry strategies say; what they do to single fields is in
//! `prepare`.

use crate::metadata::NameRule;
use crate::resource::{Origin, ResourceType};

/// When `metadata.generation` goes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Generation {
    /// The kind has none.
    Never,
    /// Starts at 1 and stays.
    Fixed,
    /// When this field changes.
    Field(&'static str),
    /// When the spec or an annotation changes.
    SpecOrAnnotations,
    /// When anything but metadata changes, or a label does.
    BodyOrLabels,
}

/// What an update of `status` may do to metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StatusMetadata {
    Writable,
    Labels,
    Owners,
    Kept,
}

pub(super) fn builtin(ty: &ResourceType) -> bool {
    ty.origin == Origin::Builtin
}

/// Whether the kind has a `status` that only its subresource may write.
pub(super) fn has_status(ty: &ResourceType, version: &str) -> bool {
    ty.version(version).is_some_and(|version| version.subresource("status").is_some())
}

pub(crate) fn name_rule(ty: &ResourceType) -> NameRule {
    if !builtin(ty) {
        return NameRule::Subdomain;
    }
    match (&*ty.group, &*ty.plural) {
        ("", "namespaces" | "services") | ("apps", "statefulsets") => NameRule::Label,
        // The last ones are checked by the kinds themselves, if at all.
        ("rbac.authorization.k8s.io", _)
        | ("authentication.k8s.io" | "authorization.k8s.io", _)
        | ("networking.k8s.io", "ipaddresses")
        | ("apiregistration.k8s.io", _) => NameRule::PathSegment,
        _ => NameRule::Subdomain,
    }
}

/// Whether a PUT of a name that does not exist creates it.
pub(crate) fn create_on_update(ty: &ResourceType) -> bool {
    builtin(ty)
        && matches!(
            (&*ty.group, &*ty.plural),
            ("", "endpoints" | "events" | "limitranges" | "services")
                | ("events.k8s.io", "events")
                | ("coordination.k8s.io", "leases")
                | ("node.k8s.io", "runtimeclasses")
                | ("rbac.authorization.k8s.io", _)
        )
}

/// Whether an update may leave `metadata.resourceVersion` out.
pub(crate) fn unconditional_update(ty: &ResourceType) -> bool {
    builtin(ty)
        && !matches!(
            (&*ty.group, &*ty.plural),
            ("node.k8s.io", "runtimeclasses")
                | ("policy", "poddisruptionbudgets")
                | (
                    "storage.k8s.io",
                    "csidrivers" | "csinodes" | "csistoragecapacities" | "volumeattachments"
                )
                | ("coordination.k8s.io", "leases")
                | ("admissionregistration.k8s.io", _)
                | ("apiextensions.k8s.io" | "apiregistration.k8s.io", _)
        )
}

/// What server-side apply must ignore on this path because it is put back anyway.
pub(crate) fn reset_fields(
    ty: &ResourceType,
    version: &str,
    subresource: Option<&str>,
) -> &'static [&'static [&'static str]] {
    const STATUS: &[&[&str]] = &[&["status"]];
    const SPEC: &[&[&str]] = &[&["spec"]];
    const SPEC_AND_METADATA: &[&[&str]] = &[&["metadata"], &["spec"]];
    if !builtin(ty) {
        return match subresource {
            None | Some("scale") if has_status(ty, version) => STATUS,
            Some("status") => SPEC_AND_METADATA,
            _ => &[],
        };
    }
    match (&*ty.plural, subresource) {
        ("certificatesigningrequests", None) => &[&["spec"], &["status"]],
        ("certificatesigningrequests", Some("status")) => &[&["spec"], &["status", "conditions"]],
        ("certificatesigningrequests", Some("approval")) => {
            &[&["spec"], &["status", "certificate"]]
        }
        ("deployments", Some("status")) => &[&["spec"], &["metadata", "labels"]],
        ("pods", Some("status")) => {
            &[&["spec"], &["metadata", "deletionTimestamp"], &["metadata", "ownerReferences"]]
        }
        (_, Some("status")) => match status_metadata(ty) {
            StatusMetadata::Kept => SPEC_AND_METADATA,
            _ => SPEC,
        },
        ("namespaces", Some("finalize")) => STATUS,
        (_, None) if has_status(ty, version) => STATUS,
        _ => &[],
    }
}

pub(super) fn generation(ty: &ResourceType) -> Generation {
    match (&*ty.group, &*ty.plural) {
        ("apps", "deployments") => Generation::SpecOrAnnotations,
        ("apps", "daemonsets" | "replicasets" | "statefulsets")
        | ("batch", "cronjobs" | "jobs")
        | ("", "pods" | "replicationcontrollers")
        | ("flowcontrol.apiserver.k8s.io", _)
        | ("networking.k8s.io", "ingresses" | "ingressclasses" | "networkpolicies")
        | ("policy", "poddisruptionbudgets")
        | ("resource.k8s.io", "deviceclasses" | "resourceslices")
        | ("apiextensions.k8s.io", _) => Generation::Field("spec"),
        (
            "admissionregistration.k8s.io",
            "mutatingwebhookconfigurations" | "validatingwebhookconfigurations",
        ) => Generation::Field("webhooks"),
        ("admissionregistration.k8s.io", _) => Generation::Field("spec"),
        ("", "podtemplates") => Generation::Field("template"),
        ("discovery.k8s.io", "endpointslices") => Generation::BodyOrLabels,
        ("scheduling.k8s.io", "priorityclasses") => Generation::Fixed,
        _ => Generation::Never,
    }
}

pub(super) fn status_metadata(ty: &ResourceType) -> StatusMetadata {
    match (&*ty.group, &*ty.plural) {
        ("apps", "deployments") => StatusMetadata::Labels,
        ("", "pods") => StatusMetadata::Owners,
        ("storage.k8s.io", "volumeattachments")
        | ("flowcontrol.apiserver.k8s.io", _)
        | ("admissionregistration.k8s.io", _)
        | ("networking.k8s.io", "servicecidrs")
        | ("apiextensions.k8s.io" | "resource.k8s.io", _) => StatusMetadata::Kept,
        _ => StatusMetadata::Writable,
    }
}

/// Built-in kinds whose status a create may set.
pub(super) fn keeps_status_on_create(ty: &ResourceType) -> bool {
    (&*ty.group, &*ty.plural) == ("", "nodes")
}
