//! Pods and the templates of pods.
//!
//! Left out: what a DNS configuration says, readiness gates, security contexts beyond identities,
//! Windows, resource claims, pod-level resources, annotations with meanings of their own. An update of a pod is compared as a whole; the difference is not printed.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::check::{self, Errors};
use super::{container, ephemeral, net, placement, volume};
use crate::names;
use crate::rules::read::{Read, child, object as object_of};

/// A template inside a workload at `path`.
pub(super) fn template(errors: &mut Errors, path: &str, template: &Value) {
    template_with(errors, path, template, &BTreeSet::new());
}

/// `more` are volumes that the workload adds itself.
pub(super) fn template_with(
    errors: &mut Errors,
    path: &str,
    template: &Value,
    more: &BTreeSet<&str>,
) {
    let metadata = template.at("metadata");
    errors.labels(&format!("{path}.labels"), metadata.at("labels"));
    annotations(errors, &format!("{path}.annotations"), metadata.at("annotations"));
    spec(errors, &format!("{path}.spec"), template.at("spec"), more, false);
    if !template.at("spec").list("ephemeralContainers").is_empty() {
        let why = "ephemeral containers not allowed in pod template";
        errors.forbidden(format!("{path}.spec.ephemeralContainers"), why);
    }
}

fn annotations(errors: &mut Errors, path: &str, annotations: &Value) {
    for key in annotations.as_object().into_iter().flat_map(|map| map.keys()) {
        // Annotation keys may have capitals in their domain.
        errors.complaints(path, key, names::label_key(&key.to_lowercase()));
    }
}

/// The restart policy a workload insists on.
pub(super) fn restarts_always(errors: &mut Errors, path: &str, template: &Value, kind: &str) {
    let spec = template.at("spec");
    let policy = spec.text("restartPolicy");
    if policy != "Always" {
        errors.not_supported(format!("{path}.spec.restartPolicy"), policy, &["Always"]);
    }
    if spec.has("activeDeadlineSeconds") {
        let why = format!("activeDeadlineSeconds in {kind} is not Supported");
        errors.forbidden(format!("{path}.spec.activeDeadlineSeconds"), why);
    }
}

pub(super) fn create(errors: &mut Errors, pod: &Value) {
    spec(errors, "spec", pod.at("spec"), &BTreeSet::new(), true);
    if !pod.at("spec").list("ephemeralContainers").is_empty() {
        errors.forbidden("spec.ephemeralContainers", "cannot be set on create");
    }
    if !pod.at("spec").text("nodeName").is_empty()
        && !pod.at("spec").list("schedulingGates").is_empty()
    {
        let why = "cannot be set until all schedulingGates have been cleared";
        errors.forbidden("spec.nodeName", why);
    }
}

/// A pod that was changed on a path where only part of it can change.
pub(super) fn whole(errors: &mut Errors, pod: &Value) {
    spec(errors, "spec", pod.at("spec"), &BTreeSet::new(), true);
}

pub(super) fn ephemeral_update(errors: &mut Errors, old: &Value, new: &Value) {
    whole(errors, new);
    ephemeral::update(errors, old, new);
}

pub(super) fn update(errors: &mut Errors, old: &Value, new: &Value) {
    whole(errors, new);
    scheduling_gates_update(errors, old, new);
    deadline_update(errors, old, new);
    for list in ["containers", "initContainers"] {
        if old.at("spec").list(list).len() != new.at("spec").list(list).len() {
            let why = "pod updates may not add or remove containers";
            return errors.forbidden(format!("spec.{list}"), why);
        }
    }
    // Whatever may change is made equal before the comparison.
    let mut rest = new.at("spec").clone();
    let spec = object_of(&mut rest);
    for field in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
        match old.at("spec").get(field) {
            Some(value) => spec.insert(field.to_owned(), value.clone()),
            None => spec.remove(field),
        };
    }
    // As long as nobody has looked for a node, the choice may be narrowed.
    if !old.at("spec").list("schedulingGates").is_empty() {
        let before = old.at("spec").map("nodeSelector");
        let kept = before
            .into_iter()
            .flatten()
            .all(|(key, value)| new.at("spec").at("nodeSelector").get(key) == Some(value));
        if kept {
            match before {
                Some(before) => spec.insert("nodeSelector".to_owned(), before.clone().into()),
                None => spec.remove("nodeSelector"),
            };
        }
    }
    for list in ["containers", "initContainers"] {
        let before = old.at("spec").list(list);
        let now = spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        for (container, before) in now.zip(before) {
            object_of(container).insert("image".into(), before.at("image").clone());
        }
    }
    if rest != *old.at("spec") {
        let why = "pod updates may not change fields other than \
                   `spec.containers[*].image`,`spec.initContainers[*].image`,\
                   `spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing \
                   tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if \
                   it was previously negative)\n";
        errors.forbidden("spec", why);
    }
}

fn scheduling_gates_update(errors: &mut Errors, old: &Value, new: &Value) {
    let before = old.at("spec").list("schedulingGates");
    for (index, gate) in new.at("spec").list("schedulingGates").iter().enumerate() {
        if !before.contains(gate) {
            let name = gate.text("name");
            let why = format!("only deletion is allowed, but found new scheduling gate '{name}'");
            errors.forbidden(format!("spec.schedulingGates[{index}].name"), why);
        }
    }
}

fn deadline_update(errors: &mut Errors, old: &Value, new: &Value) {
    const PATH: &str = "spec.activeDeadlineSeconds";
    let deadline = |pod: &Value| pod.at("spec").number("activeDeadlineSeconds");
    match (deadline(old), deadline(new)) {
        (Some(before), Some(now)) if before < now => {
            errors.invalid(PATH, now, "must be less than or equal to previous value");
        }
        (Some(_), None) => {
            let why = "must not update from a positive integer to nil value";
            errors.invalid(PATH, Value::Null, why);
        }
        _ => {}
    }
}

fn spec(errors: &mut Errors, path: &str, spec: &Value, more: &BTreeSet<&str>, is_pod: bool) {
    let at = |field: &str| format!("{path}.{field}");
    let mut volumes = volume::volumes(errors, &at("volumes"), spec.list("volumes"), more);
    volumes.extend(more);
    let regular = spec.list("containers");
    container::containers(errors, &at("containers"), regular, &volumes);
    let init = spec.list("initContainers");
    container::init_containers(errors, &at("initContainers"), init, regular, &volumes);
    ephemeral::containers(errors, &at("ephemeralContainers"), spec, &volumes);
    if spec.flag("hostNetwork") {
        host_network(errors, &at("containers"), regular, is_pod);
    }
    let policy = spec.text("restartPolicy");
    errors.one_of(at("restartPolicy"), policy, &["Always", "OnFailure", "Never"]);
    let policies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    errors.one_of(at("dnsPolicy"), spec.text("dnsPolicy"), &policies);
    errors.labels(&at("nodeSelector"), spec.at("nodeSelector"));
    let ids = ["runAsUser", "runAsGroup", "fsGroup"];
    check::identities(errors, &at("securityContext"), spec.at("securityContext"), &ids);
    placement::affinity(errors, &at("affinity"), spec.at("affinity"));
    if spec.text("dnsPolicy") == "None" && !spec.has("dnsConfig") {
        let why = "must provide `dnsConfig` when `dnsPolicy` is None";
        errors.required(at("dnsConfig"), why);
    }
    scheduling_gates(errors, &at("schedulingGates"), spec.list("schedulingGates"));
    let constraints = spec.list("topologySpreadConstraints");
    placement::spread(errors, &at("topologySpreadConstraints"), constraints);
    for field in ["serviceAccountName", "nodeName"] {
        if !spec.text(field).is_empty() {
            errors.subdomain(&at(field), spec.text(field));
        }
    }
    if let Some(seconds) = spec.number("activeDeadlineSeconds")
        && !(1..=i64::from(i32::MAX)).contains(&seconds)
    {
        let why = "must be between 1 and 2147483647, inclusive";
        errors.invalid(at("activeDeadlineSeconds"), seconds, why);
    }
    for field in ["hostname", "subdomain"] {
        if !spec.text(field).is_empty() {
            errors.label(&at(field), spec.text(field));
        }
    }
    tolerations(errors, &at("tolerations"), spec.list("tolerations"));
    for (index, alias) in spec.list("hostAliases").iter().enumerate() {
        let path = format!("{}[{index}]", at("hostAliases"));
        net::address(errors, &format!("{path}.ip"), alias.text("ip"));
        for (place, name) in alias.list("hostnames").iter().enumerate() {
            let name = name.as_str().unwrap_or("");
            errors.subdomain(&format!("{path}.hostnames[{place}]"), name);
        }
    }
    for field in ["priorityClassName", "runtimeClassName"] {
        if !spec.text(field).is_empty() {
            errors.subdomain(&at(field), spec.text(field));
        }
    }
    let policies = ["PreemptLowerPriority", "Never"];
    errors.maybe_one_of(at("preemptionPolicy"), spec.at("preemptionPolicy"), &policies);
}

fn scheduling_gates(errors: &mut Errors, path: &str, gates: &[Value]) {
    let mut seen = BTreeSet::new();
    for (index, gate) in gates.iter().enumerate() {
        let name = gate.text("name");
        errors.complaints(&format!("{path}[{index}]"), name, names::label_key(name));
        if !seen.insert(name) {
            errors.duplicate(format!("{path}[{index}]"), name);
        }
    }
}

fn host_network(errors: &mut Errors, path: &str, containers: &[Value], is_pod: bool) {
    for (index, container) in containers.iter().enumerate() {
        for (place, port) in container.list("ports").iter().enumerate() {
            let (host, own) = (port.number("hostPort").unwrap_or(0), port.number("containerPort"));
            if (is_pod || host != 0) && host != own.unwrap_or(0) {
                let path = format!("{path}[{index}].ports[{place}].hostPort");
                errors.invalid(path, host, "must match `containerPort` when `hostNetwork` is true");
            }
        }
    }
}

fn tolerations(errors: &mut Errors, path: &str, tolerations: &[Value]) {
    for (index, toleration) in tolerations.iter().enumerate() {
        let path = format!("{path}[{index}]");
        let at = |field: &str| format!("{path}.{field}");
        let (key, value) = (toleration.text("key"), toleration.text("value"));
        let (operator, effect) = (toleration.text("operator"), toleration.text("effect"));
        if !key.is_empty() {
            errors.complaints(&at("key"), key, names::label_key(key));
        } else if operator != "Exists" {
            let why = "operator must be Exists when `key` is empty, which means \"match all values \
                       and all keys\"";
            errors.invalid(at("operator"), operator, why);
        }
        if toleration.has("tolerationSeconds") && effect != "NoExecute" {
            let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            errors.invalid(at("effect"), effect, why);
        }
        match operator {
            "Equal" | "" => {
                let complaints = names::label_value(value);
                if !complaints.is_empty() {
                    errors.invalid(at("operator"), value, complaints.join(";"));
                }
            }
            "Exists" if !value.is_empty() => {
                let why = "value must be empty when `operator` is 'Exists'";
                errors.invalid(at("operator"), value, why);
            }
            "Exists" => {}
            other => errors.not_supported(at("operator"), other, &["Equal", "Exists"]),
        }
        let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
        if !effect.is_empty() && !effects.contains(&effect) {
            errors.not_supported(at("effect"), effect, &effects);
        }
    }
}

/// The whole spec of a template that says which pods a Job makes, as it must stay.
pub(super) fn template_for_comparison(template: &Value, directives_may_change: bool) -> Value {
    let mut template = template.clone();
    if directives_may_change {
        let object = object_of(&mut template);
        let metadata = child(object, "metadata");
        metadata.remove("labels");
        metadata.remove("annotations");
        let spec = child(object, "spec");
        for field in ["nodeSelector", "tolerations", "schedulingGates", "affinity"] {
            spec.remove(field);
        }
    }
    json!(template)
}
