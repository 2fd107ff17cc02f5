//! Deployments, ReplicaSets, StatefulSets, DaemonSets and ReplicationControllers.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::check::{Errors, amount, picks, shown_map, shown_struct};
use super::{core, pod};
use crate::rules::read::{Read, object as object_of};

const MISMATCH: &str = "`selector` does not match template `labels`";

pub(super) fn deployment(errors: &mut Errors, object: &Value) {
    let spec = object.at("spec");
    errors.not_negative("spec", spec, &["replicas"]);
    selected(errors, spec, "deployment", "invalid label selector", |errors| {
        pod::template(errors, "spec.template", spec.at("template"));
        pod::restarts_always(errors, "spec.template", spec.at("template"), "ReplicaSet");
    });
    strategy(errors, spec.at("strategy"));
    errors.not_negative("spec", spec, &["minReadySeconds", "revisionHistoryLimit"]);
    errors.not_negative("spec", spec, &["progressDeadlineSeconds"]);
    if let Some(deadline) = spec.number("progressDeadlineSeconds")
        && deadline <= spec.number("minReadySeconds").unwrap_or(0)
    {
        let why = "must be greater than minReadySeconds";
        errors.invalid("spec.progressDeadlineSeconds", deadline, why);
    }
}

pub(super) fn replica_set(errors: &mut Errors, object: &Value) {
    let spec = object.at("spec");
    errors.not_negative("spec", spec, &["replicas", "minReadySeconds"]);
    // Upstream says "deployment" here, too.
    selected(errors, spec, "deployment", "invalid label selector", |errors| {
        pod::template(errors, "spec.template", spec.at("template"));
        pod::restarts_always(errors, "spec.template", spec.at("template"), "ReplicaSet");
    });
}

pub(super) fn replication_controller(errors: &mut Errors, object: &Value) {
    let spec = object.at("spec");
    errors.not_negative("spec", spec, &["minReadySeconds"]);
    let selector = spec.at("selector");
    if selector.as_object().is_none_or(Map::is_empty) {
        errors.required("spec.selector", "");
    }
    errors.not_negative("spec", spec, &["replicas"]);
    let template = spec.at("template");
    if template.is_null() {
        return errors.required("spec.template", "");
    }
    let labels = template.at("metadata").at("labels");
    let wanted = json!({ "matchLabels": selector });
    if picks(&wanted, labels) == Some(false) {
        errors.invalid("spec.template.metadata.labels", shown_map(labels), MISMATCH);
    }
    pod::template(errors, "spec.template", template);
    pod::restarts_always(errors, "spec.template", template, "ReplicationController");
}

pub(super) fn daemon_set(errors: &mut Errors, object: &Value) {
    let spec = object.at("spec");
    let (selector, template) = (spec.at("selector"), spec.at("template"));
    errors.selector("spec.selector", selector);
    let labels = template.at("metadata").at("labels");
    if picks(selector, labels) == Some(false) {
        errors.invalid("spec.template.metadata.labels", shown_map(labels), MISMATCH);
    }
    if !selector.is_null() && empty(selector) {
        errors.invalid(
            "spec.selector",
            selector.clone(),
            "empty selector is invalid for daemonset",
        );
    }
    pod::template(errors, "spec.template", template);
    pod::restarts_always(errors, "spec.template", template, "DaemonSet");
    errors.not_negative("spec", spec, &["minReadySeconds"]);
    daemon_set_strategy(errors, spec.at("updateStrategy"));
    errors.not_negative("spec", spec, &["revisionHistoryLimit"]);
}

pub(super) fn controller_revision(errors: &mut Errors, object: &Value) {
    if !object.has("data") {
        errors.required("data", "data is mandatory");
    }
    if let Some(revision) = object.number("revision").filter(|revision| *revision < 0) {
        errors.invalid("revision", revision, "must be greater than or equal to 0");
    }
}

pub(super) fn stateful_set(errors: &mut Errors, object: &Value, is_new: bool) {
    let spec = object.at("spec");
    match spec.text("podManagementPolicy") {
        "OrderedReady" | "Parallel" => {}
        "" => errors.required("spec.podManagementPolicy", ""),
        other => {
            let why = "must be 'OrderedReady' or 'Parallel'";
            errors.invalid("spec.podManagementPolicy", other, why);
        }
    }
    stateful_set_strategy(errors, spec.at("updateStrategy"));
    let retention = spec.at("persistentVolumeClaimRetentionPolicy");
    for field in ["whenDeleted", "whenScaled"] {
        let policy = retention.text(field);
        if !["Retain", "Delete"].contains(&policy) {
            let path = format!("spec.persistentVolumeClaimRetentionPolicy.{field}");
            errors.not_supported(path, policy, &["Retain", "Delete"]);
        }
    }
    let claims = spec.list("volumeClaimTemplates");
    if is_new {
        for (index, claim) in claims.iter().enumerate() {
            let path = format!("spec.volumeClaimTemplates[{index}].spec");
            core::claim_spec(errors, &path, claim.at("spec"));
        }
    }
    errors.not_negative("spec", spec, &["replicas", "minReadySeconds"]);
    errors.not_negative("spec.ordinals", spec.at("ordinals"), &["start"]);
    if is_new && !spec.text("serviceName").is_empty() {
        errors.label("spec.serviceName", spec.text("serviceName"));
    }
    let volumes: BTreeSet<&str> =
        claims.iter().map(|claim| claim.at("metadata").text("name")).collect();
    selected(errors, spec, "statefulset", "", |errors| {
        pod::template_with(errors, "spec.template", spec.at("template"), &volumes);
    });
    pod::restarts_always(errors, "spec.template", spec.at("template"), "StatefulSet");
}

pub(super) fn stateful_set_update(errors: &mut Errors, old: &Value, new: &Value) {
    let rest = |object: &Value| {
        let mut spec = object.at("spec").clone();
        for field in [
            "replicas",
            "ordinals",
            "template",
            "updateStrategy",
            "revisionHistoryLimit",
            "persistentVolumeClaimRetentionPolicy",
            "minReadySeconds",
        ] {
            object_of(&mut spec).remove(field);
        }
        spec
    };
    if rest(old) != rest(new) {
        let why = "updates to statefulset spec for fields other than 'replicas', 'ordinals', \
                   'template', 'updateStrategy', 'revisionHistoryLimit', \
                   'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
        errors.forbidden("spec", why);
    }
}

/// Counts in a status that cannot be negative or larger than the whole.
pub(super) fn status(errors: &mut Errors, kind: &str, object: &Value) {
    let status = object.at("status");
    let number = |field: &str| status.number(field).unwrap_or(0);
    let (counts, below): (&[&str], &[&str]) = match kind {
        "deployments" => (
            &[
                "observedGeneration",
                "replicas",
                "updatedReplicas",
                "readyReplicas",
                "availableReplicas",
                "unavailableReplicas",
                "terminatingReplicas",
                "collisionCount",
            ],
            &["updatedReplicas", "readyReplicas", "availableReplicas"],
        ),
        "statefulsets" => (
            &[
                "replicas",
                "readyReplicas",
                "currentReplicas",
                "updatedReplicas",
                "availableReplicas",
                "observedGeneration",
                "collisionCount",
            ],
            &["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"],
        ),
        "replicasets" | "replicationcontrollers" => (
            &[
                "replicas",
                "fullyLabeledReplicas",
                "readyReplicas",
                "availableReplicas",
                "observedGeneration",
            ],
            &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"],
        ),
        "daemonsets" => (
            &[
                "currentNumberScheduled",
                "numberMisscheduled",
                "desiredNumberScheduled",
                "numberReady",
                "observedGeneration",
                "updatedNumberScheduled",
                "numberAvailable",
                "numberUnavailable",
                "collisionCount",
            ],
            &[],
        ),
        _ => return,
    };
    errors.not_negative("status", status, counts);
    for field in below {
        if number(field) > number("replicas") {
            let why = "cannot be greater than status.replicas";
            errors.invalid(format!("status.{field}"), number(field), why);
        }
    }
    if !below.is_empty() && number("availableReplicas") > number("readyReplicas") {
        let why = match kind {
            "statefulsets" => "cannot be greater than status.readyReplicas",
            _ => "cannot be greater than readyReplicas",
        };
        errors.invalid("status.availableReplicas", number("availableReplicas"), why);
    }
}

fn empty(selector: &Value) -> bool {
    selector.map("matchLabels").is_none_or(Map::is_empty)
        && selector.list("matchExpressions").is_empty()
}

/// A selector that must be there, hold something and pick the template's labels; then `template`.
fn selected(
    errors: &mut Errors,
    spec: &Value,
    kind: &str,
    unreadable: &str,
    template: impl FnOnce(&mut Errors),
) {
    let selector = spec.at("selector");
    if selector.is_null() {
        errors.required("spec.selector", "");
    } else {
        errors.selector("spec.selector", selector);
        if empty(selector) {
            let why = format!("empty selector is invalid for {kind}");
            errors.invalid("spec.selector", selector.clone(), why);
        }
    }
    let labels = spec.path(&["template", "metadata", "labels"]);
    match picks(selector, labels) {
        None => return errors.invalid("spec.selector", selector.clone(), unreadable),
        Some(false) if selector.is_null() || !empty(selector) => {
            errors.invalid("spec.template.metadata.labels", shown_map(labels), MISMATCH);
        }
        Some(_) => {}
    }
    template(errors);
}

fn strategy(errors: &mut Errors, strategy: &Value) {
    let rolling = strategy.at("rollingUpdate");
    match strategy.text("type") {
        "Recreate" => {
            if !rolling.is_null() {
                let why = "may not be specified when strategy `type` is 'Recreate'";
                errors.forbidden("spec.strategy.rollingUpdate", why);
            }
        }
        "RollingUpdate" => {
            let path = "spec.strategy.rollingUpdate.maxUnavailable";
            let (unavailable, surge) = (rolling.at("maxUnavailable"), rolling.at("maxSurge"));
            errors.number_or_percent(path, unavailable);
            errors.number_or_percent("spec.strategy.rollingUpdate.maxSurge", surge);
            if amount(unavailable) == 0 && amount(surge) == 0 {
                errors.invalid(path, unavailable.clone(), "may not be 0 when `maxSurge` is 0");
            }
            errors.at_most_everything(path, unavailable);
        }
        _ => {
            let shown = shown_struct(&[("Type", strategy.at("type")), ("RollingUpdate", rolling)]);
            errors.not_supported("spec.strategy", shown, &["Recreate", "RollingUpdate"]);
        }
    }
}

fn daemon_set_strategy(errors: &mut Errors, strategy: &Value) {
    let rolling = strategy.at("rollingUpdate");
    match strategy.text("type") {
        "OnDelete" => {}
        "RollingUpdate" => {
            let at = |field: &str| format!("spec.updateStrategy.rollingUpdate.{field}");
            let (unavailable, surge) = (rolling.at("maxUnavailable"), rolling.at("maxSurge"));
            errors.number_or_percent(&at("maxUnavailable"), unavailable);
            errors.number_or_percent(&at("maxSurge"), surge);
            errors.at_most_everything(&at("maxUnavailable"), unavailable);
            errors.at_most_everything(&at("maxSurge"), surge);
            match (amount(unavailable) != 0, amount(surge) != 0) {
                (true, true) => {
                    let why = "may not be set when maxUnavailable is non-zero";
                    errors.invalid(at("maxSurge"), surge.clone(), why);
                }
                (false, false) => {
                    errors.required(at("maxUnavailable"), "cannot be 0 when maxSurge is 0");
                }
                _ => {}
            }
        }
        _ => {
            let shown = shown_struct(&[("Type", strategy.at("type")), ("RollingUpdate", rolling)]);
            errors.not_supported("spec.updateStrategy", shown, &["RollingUpdate", "OnDelete"]);
        }
    }
}

fn stateful_set_strategy(errors: &mut Errors, strategy: &Value) {
    let rolling = strategy.at("rollingUpdate");
    let shown_rolling = || {
        if rolling.is_null() {
            return Value::Null;
        }
        let partition = json!(rolling.number("partition").unwrap_or(0));
        let most = rolling.at("maxUnavailable");
        shown_struct(&[("Partition", &partition), ("MaxUnavailable", most)])
    };
    match strategy.text("type") {
        "" => errors.required("spec.updateStrategy", ""),
        "OnDelete" => {
            if !rolling.is_null() {
                let why = "only allowed for updateStrategy 'RollingUpdate'";
                errors.invalid("spec.updateStrategy.rollingUpdate", shown_rolling(), why);
            }
        }
        "RollingUpdate" => {
            errors.not_negative("spec.updateStrategy.rollingUpdate", rolling, &["partition"]);
        }
        _ => {
            let rolling = shown_rolling();
            let shown = shown_struct(&[("Type", strategy.at("type")), ("RollingUpdate", &rolling)]);
            errors.invalid("spec.updateStrategy", shown, "must be 'RollingUpdate' or 'OnDelete'");
        }
    }
}
