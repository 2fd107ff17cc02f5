//! Defaults of the apps and batch groups, pod templates aside.

use serde_json::{Map, Value, json};

use super::Object;
use crate::rules::prepare::TEMPLATE_GENERATION;
use crate::rules::read::{Read, child, fill, objects};

pub(super) fn default(name: &str, object: &mut Object) {
    match name {
        "DeploymentSpec" => {
            fill(object, "replicas", 1);
            rolling(child(object, "strategy"), json!("25%"), json!("25%"));
            fill(object, "revisionHistoryLimit", 10);
            fill(object, "progressDeadlineSeconds", 600);
        }
        "DaemonSet" => {
            // A number that is no field any more is only there as an annotation, and never absent.
            let annotations = child(child(object, "metadata"), "annotations");
            fill(annotations, TEMPLATE_GENERATION, "0");
        }
        "DaemonSetSpec" => {
            rolling(child(object, "updateStrategy"), json!(1), json!(0));
            fill(object, "revisionHistoryLimit", 10);
        }
        "StatefulSetSpec" => stateful_set(object),
        "ReplicaSetSpec" => fill(object, "replicas", 1),
        "Job" => job(object),
        "CronJobSpec" => {
            fill(object, "concurrencyPolicy", "Allow");
            fill(object, "suspend", false);
            fill(object, "successfulJobsHistoryLimit", 3);
            fill(object, "failedJobsHistoryLimit", 1);
        }
        "PodFailurePolicyOnPodConditionsPattern" => fill(object, "status", "True"),
        _ => {}
    }
}

fn rolling(strategy: &mut Object, max_unavailable: Value, max_surge: Value) {
    fill(strategy, "type", "RollingUpdate");
    if strategy.text("type") == "RollingUpdate" {
        let rolling = child(strategy, "rollingUpdate");
        fill(rolling, "maxUnavailable", max_unavailable);
        fill(rolling, "maxSurge", max_surge);
    }
}

fn stateful_set(spec: &mut Object) {
    fill(spec, "podManagementPolicy", "OrderedReady");
    let strategy = child(spec, "updateStrategy");
    if strategy.text("type").is_empty() {
        strategy.insert("type".into(), "RollingUpdate".into());
        child(strategy, "rollingUpdate");
    }
    if strategy.text("type") == "RollingUpdate" && strategy.has("rollingUpdate") {
        fill(child(strategy, "rollingUpdate"), "partition", 0);
    }
    let retention = child(spec, "persistentVolumeClaimRetentionPolicy");
    fill(retention, "whenDeleted", "Retain");
    fill(retention, "whenScaled", "Retain");
    fill(spec, "replicas", 1);
    fill(spec, "revisionHistoryLimit", 10);
    for claim in objects(spec, "volumeClaimTemplates") {
        claim.insert("apiVersion".into(), "v1".into());
        claim.insert("kind".into(), "PersistentVolumeClaim".into());
    }
}

/// A Job of its own; the template inside a CronJob gets none of this.
fn job(object: &mut Object) {
    let labels = object.path(&["spec", "template", "metadata", "labels"]).clone();
    if labels.as_object().is_some_and(|labels| !labels.is_empty())
        && object.at("metadata").map("labels").is_none_or(Map::is_empty)
    {
        child(object, "metadata").insert("labels".into(), labels);
    }
    let spec = child(object, "spec");
    if !spec.has("completions") && !spec.has("parallelism") {
        spec.insert("completions".into(), 1.into());
    }
    fill(spec, "parallelism", 1);
    let retries = if spec.has("backoffLimitPerIndex") { i32::MAX } else { 6 };
    fill(spec, "backoffLimit", retries);
    fill(spec, "completionMode", "NonIndexed");
    fill(spec, "suspend", false);
    let replacement = match spec.has("podFailurePolicy") {
        true => "Failed",
        false => "TerminatingOrFailed",
    };
    fill(spec, "podReplacementPolicy", replacement);
    fill(spec, "manualSelector", false);
}
