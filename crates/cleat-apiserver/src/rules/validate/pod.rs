//! Pods and the templates of pods.
//!
//! Left out: affinity, topology spread, DNS configuration, host aliases, scheduling and readiness
//! gates, security contexts, Windows, resource claims, pod-level resources, annotations with
//! meanings of their own. An update of a pod is compared as a whole; the difference is not printed.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::check::Errors;
use super::{container, volume};
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

pub(super) fn update(errors: &mut Errors, old: &Value, new: &Value) {
    spec(errors, "spec", new.at("spec"), &BTreeSet::new(), true);
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

fn spec(errors: &mut Errors, path: &str, spec: &Value, more: &BTreeSet<&str>, is_pod: bool) {
    let at = |field: &str| format!("{path}.{field}");
    let mut volumes = volume::volumes(errors, &at("volumes"), spec.list("volumes"), more);
    volumes.extend(more);
    let regular = spec.list("containers");
    container::containers(errors, &at("containers"), regular, &volumes);
    let init = spec.list("initContainers");
    container::init_containers(errors, &at("initContainers"), init, regular, &volumes);
    if spec.flag("hostNetwork") {
        host_network(errors, &at("containers"), regular, is_pod);
    }
    let policy = spec.text("restartPolicy");
    errors.one_of(at("restartPolicy"), policy, &["Always", "OnFailure", "Never"]);
    let policies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    errors.one_of(at("dnsPolicy"), spec.text("dnsPolicy"), &policies);
    errors.labels(&at("nodeSelector"), spec.at("nodeSelector"));
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
    for field in ["priorityClassName", "runtimeClassName"] {
        if !spec.text(field).is_empty() {
            errors.subdomain(&at(field), spec.text(field));
        }
    }
    let policies = ["PreemptLowerPriority", "Never"];
    errors.maybe_one_of(at("preemptionPolicy"), spec.at("preemptionPolicy"), &policies);
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
