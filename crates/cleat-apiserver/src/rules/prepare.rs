//! What kube-apiserver does to an object between admission and validation: it takes away what the
//! writer may not set and adds what only the server knows.
//!
//! `metadata` beyond generation (uid, timestamps, resourceVersion, managedFields) is the caller's:
//! it must be filled in before `prepare_create`.

mod admit;
mod service;

use std::collections::BTreeMap;

pub(crate) use admit::{pod_priority, pod_runtime};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::read::{Read, child, object as object_of};
use super::strategy::{self, Generation, StatusMetadata};
use super::{defaults, time};
use crate::resource::ResourceType;

/// What preparation may know about the world.
pub(crate) struct Env<'a> {
    pub(crate) now: Timestamp,
    pub(crate) user: Requester<'a>,
    pub(crate) addresses: &'a mut dyn Addresses,
    /// The service account a new pod runs as, when it exists; else its token is not mounted.
    pub(crate) service_account: Option<&'a Value>,
    /// Five random letters for the name of a token volume.
    pub(crate) suffix: &'a str,
}

/// Who asks, as CertificateSigningRequests record it.
#[derive(Clone, Copy)]
pub(crate) struct Requester<'a> {
    pub(crate) name: &'a str,
    pub(crate) uid: &'a str,
    pub(crate) groups: &'a [String],
    pub(crate) extra: &'a BTreeMap<String, Vec<String>>,
}

/// Where Services get their addresses and ports from. None when there are no more.
pub(crate) trait Addresses {
    fn cluster_ip(&mut self) -> Option<String>;
    fn node_port(&mut self) -> Option<u16>;
}

/// What the server's own admission adds to a new object. Doing it twice changes nothing, so that it
/// may be done before webhooks look, and again after they changed something.
pub(crate) fn admit_create(ty: &ResourceType, object: &mut Value, env: &Env<'_>) {
    if strategy::builtin(ty) {
        admit::create(ty, object, env);
    }
}

/// Makes a new object ready to be validated and stored. `version` is the one it was sent in.
pub(crate) fn prepare_create(
    ty: &ResourceType,
    version: &str,
    object: &mut Value,
    env: &mut Env<'_>,
) {
    if !strategy::builtin(ty) {
        if strategy::has_status(ty, version) {
            object_of(object).remove("status");
        }
        set_generation(object, 1);
        return;
    }
    admit::create(ty, object, env);
    if strategy::has_status(ty, version) && !strategy::keeps_status_on_create(ty) {
        object_of(object).remove("status");
    }
    if strategy::generation(ty) != Generation::Never {
        set_generation(object, 1);
    }
    match (&*ty.group, &*ty.plural) {
        ("", "namespaces") => {
            let spec = child(object_of(object), "spec");
            let finalizers = spec.entry("finalizers").or_insert(json!([]));
            if let Value::Array(finalizers) = finalizers
                && !finalizers.iter().any(|finalizer| finalizer == "kubernetes")
            {
                finalizers.push("kubernetes".into());
            }
        }
        ("", "pods") => {
            let quality = quality_of_service(object.at("spec"));
            let gated = !object.at("spec").list("schedulingGates").is_empty();
            let conditions = match gated {
                true => json!([{
                    "type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
                    "lastTransitionTime": time::seconds(env.now),
                    "message": "Scheduling is blocked due to non-empty scheduling gates"
                }]),
                false => Value::Null,
            };
            let status =
                json!({ "phase": "Pending", "qosClass": quality, "conditions": conditions });
            object_of(object).insert("status".into(), status);
        }
        ("", "services") => service::allocate(object, env.addresses),
        ("", "persistentvolumes") => {
            let status =
                json!({ "phase": "Pending", "lastPhaseTransitionTime": time::seconds(env.now) });
            object_of(object).insert("status".into(), status);
        }
        ("", "persistentvolumeclaims") => {
            drop_other_sources(object);
            same_data_source(object);
        }
        ("coordination.k8s.io", "leases") => drop_strategy(&Value::Null, object),
        ("apps", "daemonsets") => template_generation(object, 1),
        ("apps", "statefulsets") => drop_most_unavailable(&Value::Null, object),
        ("batch", "jobs") => job_selector(object),
        ("certificates.k8s.io", "certificatesigningrequests") => {
            let spec = child(object_of(object), "spec");
            for (key, value) in [
                ("username", Value::from(env.user.name)),
                ("uid", env.user.uid.into()),
                ("groups", json!(env.user.groups)),
                ("extra", json!(env.user.extra)),
            ] {
                spec.insert(key.to_owned(), value);
            }
        }
        _ => {}
    }
    // Brings back what was taken away in its empty form, and completes what was added.
    defaults::default(&ty.api_version(version), &ty.kind, object);
}

/// Makes an update ready to be validated and stored: whatever this path may not write is put back
/// as it was.
pub(crate) fn prepare_update(
    ty: &ResourceType,
    version: &str,
    subresource: Option<&str>,
    old: &Value,
    new: &mut Value,
    env: &mut Env<'_>,
) {
    set_generation(new, old.at("metadata").number("generation").unwrap_or(0));
    if !strategy::builtin(ty) {
        return custom(ty, version, subresource, old, new);
    }
    match (&*ty.plural, subresource) {
        ("certificatesigningrequests", subresource) => {
            certificate_request(subresource, old, new, env.now);
        }
        ("namespaces", Some("finalize")) => keep(old, new, "status"),
        (_, Some("status")) => {
            keep(old, new, "spec");
            status_metadata(ty, old, new);
            status_details(ty, old, new, env.now);
        }
        ("pods", Some("ephemeralcontainers")) => {
            let containers = new.at("spec").at("ephemeralContainers").clone();
            keep(old, new, "spec");
            keep(old, new, "status");
            put(child(object_of(new), "spec"), "ephemeralContainers", containers);
        }
        _ => {
            if strategy::has_status(ty, version) {
                keep(old, new, "status");
            }
            main_details(ty, old, new, env);
        }
    }
    if subresource != Some("status") && changed(ty, old, new) {
        bump(old, new);
    }
    defaults::default(&ty.api_version(version), &ty.kind, new);
}

fn custom(
    ty: &ResourceType,
    version: &str,
    subresource: Option<&str>,
    old: &Value,
    new: &mut Value,
) {
    let separate = strategy::has_status(ty, version);
    if subresource == Some("status") {
        let status = new.get("status").cloned();
        let managed = new.at("metadata").at("managedFields").clone();
        let revision = new.at("metadata").at("resourceVersion").clone();
        *new = old.clone();
        let object = object_of(new);
        match status {
            Some(status) => object.insert("status".into(), status),
            None => object.remove("status"),
        };
        let metadata = child(object, "metadata");
        put(metadata, "managedFields", managed);
        put(metadata, "resourceVersion", revision);
        return;
    }
    if separate {
        keep(old, new, "status");
    }
    let body = |object: &Value| -> Map<String, Value> {
        let fields = object.as_object().into_iter().flatten();
        let ignored = |key: &str| key == "metadata" || (separate && key == "status");
        fields.filter(|(key, _)| !ignored(key)).map(|(k, v)| (k.clone(), v.clone())).collect()
    };
    if body(old) != body(new) {
        bump(old, new);
    }
}

fn changed(ty: &ResourceType, old: &Value, new: &Value) -> bool {
    match strategy::generation(ty) {
        Generation::Never if (&*ty.group, &*ty.plural) == ("storage.k8s.io", "csidrivers") => {
            old.at("spec") != new.at("spec")
        }
        Generation::Never | Generation::Fixed => false,
        Generation::Field(field) => old.at(field) != new.at(field),
        Generation::SpecOrAnnotations => {
            old.at("spec") != new.at("spec")
                || old.path(&["metadata", "annotations"]) != new.path(&["metadata", "annotations"])
        }
        Generation::BodyOrLabels => {
            let body = |object: &Value| {
                let mut object = object.clone();
                object_of(&mut object).remove("metadata");
                object
            };
            body(old) != body(new)
                || old.path(&["metadata", "labels"]) != new.path(&["metadata", "labels"])
        }
    }
}

fn main_details(ty: &ResourceType, old: &Value, new: &mut Value, env: &mut Env<'_>) {
    match (&*ty.group, &*ty.plural) {
        ("", "namespaces") => {
            let finalizers = old.path(&["spec", "finalizers"]).clone();
            put(child(object_of(new), "spec"), "finalizers", finalizers);
        }
        ("", "secrets") if new.text("type").is_empty() => keep(old, new, "type"),
        ("", "services") => service::keep_allocated(old, new, env.addresses),
        ("", "pods") => {
            let spec = child(object_of(new), "spec");
            for field in ["priority", "preemptionPolicy", "serviceAccountName", "serviceAccount"] {
                if !spec.has(field) {
                    put(spec, field, old.at("spec").at(field).clone());
                }
            }
            admit::tolerations(spec);
        }
        ("", "persistentvolumeclaims") => same_data_source(new),
        ("coordination.k8s.io", "leases") => drop_strategy(old, new),
        ("apps", "daemonsets") => {
            let annotation = old.path(&["metadata", "annotations", TEMPLATE_GENERATION]);
            let number = annotation.as_str().and_then(|text| text.parse().ok()).unwrap_or(1i64);
            let moved = old.path(&["spec", "template"]) != new.path(&["spec", "template"]);
            let metadata = child(object_of(new), "metadata");
            child(metadata, "annotations").remove(TEMPLATE_GENERATION);
            template_generation(new, if moved { number.saturating_add(1) } else { number });
        }
        ("apps", "statefulsets") => drop_most_unavailable(old, new),
        _ => {}
    }
}

/// How many pods of a stateful set may be unavailable during an update is a field behind a gate that
/// is closed: it is only kept where it is in use already.
fn drop_most_unavailable(old: &Value, new: &mut Value) {
    let place = ["spec", "updateStrategy", "rollingUpdate", "maxUnavailable"];
    if old.path(&place).is_null() && !new.path(&place).is_null() {
        let spec = child(object_of(new), "spec");
        child(child(spec, "updateStrategy"), "rollingUpdate").remove("maxUnavailable");
    }
}

/// How the holder of a lease is chosen is behind a gate that is closed, too.
fn drop_strategy(old: &Value, new: &mut Value) {
    let spec = child(object_of(new), "spec");
    for field in ["strategy", "preferredHolder"] {
        if !old.at("spec").has(field) {
            spec.remove(field);
        }
    }
}

fn status_metadata(ty: &ResourceType, old: &Value, new: &mut Value) {
    let fields: &[&str] = match strategy::status_metadata(ty) {
        StatusMetadata::Writable => &[],
        StatusMetadata::Labels => &["labels"],
        StatusMetadata::Owners => &["ownerReferences"],
        StatusMetadata::Kept => &[
            "annotations",
            "deletionTimestamp",
            "finalizers",
            "labels",
            "ownerReferences",
            "selfLink",
        ],
    };
    let metadata = child(object_of(new), "metadata");
    for field in fields {
        put(metadata, field, old.at("metadata").at(field).clone());
    }
}

fn status_details(ty: &ResourceType, old: &Value, new: &mut Value, now: Timestamp) {
    const SINCE: &str = "lastPhaseTransitionTime";
    let before = old.at("status");
    match (&*ty.group, &*ty.plural) {
        ("", "pods") => {
            let quality = before.at("qosClass").clone();
            let status = child(object_of(new), "status");
            if status.text("qosClass").is_empty() {
                put(status, "qosClass", quality);
            }
        }
        ("", "persistentvolumes") => {
            let status = child(object_of(new), "status");
            let moved = before.text("phase") != status.text("phase");
            if moved && (!status.has(SINCE) || status.at(SINCE) == before.at(SINCE)) {
                status.insert(SINCE.into(), time::seconds(now).into());
            } else if !moved && !status.has(SINCE) {
                put(status, SINCE, before.at(SINCE).clone());
            }
        }
        _ => {}
    }
}

/// A request never changes; its status and its approval are written on paths of their own, and
/// neither may touch what the other says.
fn certificate_request(subresource: Option<&str>, old: &Value, new: &mut Value, now: Timestamp) {
    keep(old, new, "spec");
    match subresource {
        Some("approval") => {
            let conditions = new.path(&["status", "conditions"]).clone();
            keep(old, new, "status");
            put(child(object_of(new), "status"), "conditions", conditions);
        }
        Some("status") => {}
        _ => return keep(old, new, "status"),
    }
    let now = time::seconds(now);
    let conditions = child(object_of(new), "status").get_mut("conditions");
    let conditions = conditions.and_then(Value::as_array_mut).into_iter().flatten();
    for condition in conditions.filter_map(Value::as_object_mut) {
        if !condition.has("lastUpdateTime") {
            condition.insert("lastUpdateTime".into(), now.clone().into());
        }
        if !condition.has("lastTransitionTime") {
            let same = old.path(&["status", "conditions"]).as_array().into_iter().flatten().find(
                |before| {
                    before.at("type") == condition.at("type")
                        && before.at("status") == condition.at("status")
                        && before.has("lastTransitionTime")
                },
            );
            let since = same.map(|before| before.at("lastTransitionTime").clone());
            let since = since.unwrap_or_else(|| now.clone().into());
            condition.insert("lastTransitionTime".into(), since);
        }
    }
}

pub(super) const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// The one field of a DaemonSet that survives only as an annotation.
fn template_generation(object: &mut Value, number: i64) {
    let annotations = child(child(object_of(object), "metadata"), "annotations");
    let given = annotations.text(TEMPLATE_GENERATION).parse::<i64>().ok();
    let number = given.filter(|given| *given >= 1).unwrap_or(number);
    annotations.insert(TEMPLATE_GENERATION.into(), number.to_string().into());
}

/// Unless told otherwise, a Job's pods are known by the Job's uid.
fn job_selector(object: &mut Value) {
    if object.at("spec").flag("manualSelector") {
        return;
    }
    let name = object.at("metadata").at("name").clone();
    let uid = object.at("metadata").at("uid").clone();
    let spec = child(object_of(object), "spec");
    let labels = child(child(child(spec, "template"), "metadata"), "labels");
    for (key, value) in [
        ("job-name", &name),
        ("batch.kubernetes.io/job-name", &name),
        ("controller-uid", &uid),
        ("batch.kubernetes.io/controller-uid", &uid),
    ] {
        labels.entry(key).or_insert(value.clone());
    }
    let chosen = child(child(spec, "selector"), "matchLabels");
    chosen.entry("batch.kubernetes.io/controller-uid").or_insert(uid);
}

/// A claim can be filled from another claim or from a snapshot; `dataSource` is silent about others.
fn drop_other_sources(claim: &mut Value) {
    let spec = child(object_of(claim), "spec");
    let source = spec.at("dataSource");
    let known = matches!(
        (source.text("apiGroup"), source.text("kind")),
        ("", "PersistentVolumeClaim") | ("snapshot.storage.k8s.io", "VolumeSnapshot")
    );
    if !known {
        spec.remove("dataSource");
    }
}

/// `dataSource` and `dataSourceRef` say the same, unless the latter points to another namespace.
fn same_data_source(claim: &mut Value) {
    let spec = child(object_of(claim), "spec");
    if !spec.at("dataSourceRef").text("namespace").is_empty() {
        return;
    }
    for (from, to) in [("dataSource", "dataSourceRef"), ("dataSourceRef", "dataSource")] {
        if spec.has(from) && !spec.has(to) {
            let source = spec.at(from).clone();
            spec.insert(to.to_owned(), source);
        }
    }
}

/// `Guaranteed` when every container has equal limits and requests for both processor and memory,
/// `BestEffort` when none asks for anything.
fn quality_of_service(spec: &Value) -> &'static str {
    let resources: Vec<&Value> = if spec.has("resources") {
        vec![spec.at("resources")]
    } else {
        let containers = spec.list("containers").iter().chain(spec.list("initContainers"));
        containers.map(|container| container.at("resources")).collect()
    };
    let positive = |amounts: &Value, name: &str| {
        let amount = crate::quantity::Quantity::from_json(amounts.at(name)).ok()?;
        (!amount.is_zero() && !amount.is_negative()).then_some(amount)
    };
    let mut asks = false;
    let mut guaranteed = true;
    for resources in resources {
        for name in ["cpu", "memory"] {
            let limit = positive(resources.at("limits"), name);
            let request = positive(resources.at("requests"), name);
            asks |= limit.is_some() || request.is_some();
            guaranteed &= limit.is_some() && limit == request;
        }
    }
    match (asks, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

/// Puts a top-level field back as it was.
fn keep(old: &Value, new: &mut Value, field: &str) {
    put(object_of(new), field, old.at(field).clone());
}

/// Null takes the field away.
fn put(object: &mut Map<String, Value>, field: &str, value: Value) {
    if value.is_null() {
        object.remove(field);
    } else {
        object.insert(field.to_owned(), value);
    }
}

fn set_generation(object: &mut Value, generation: i64) {
    let metadata = child(object_of(object), "metadata");
    if generation == 0 {
        metadata.remove("generation");
    } else {
        metadata.insert("generation".into(), generation.into());
    }
}

fn bump(old: &Value, new: &mut Value) {
    let before = old.at("metadata").number("generation").unwrap_or(0);
    set_generation(new, before.saturating_add(1));
}

#[cfg(test)]
mod tests;
