//! Defaults of the smaller groups that depend on more than a missing field.

use serde_json::{Value, json};

use super::Object;
use crate::rules::read::{Read, child, fill};

pub(super) fn default(package: &str, name: &str, object: &mut Object) {
    match (package, name) {
        ("rbac/v1", "Subject") if matches!(object.text("kind"), "User" | "Group") => {
            fill(object, "apiGroup", "rbac.authorization.k8s.io");
        }
        ("networking/v1", "NetworkPolicySpec") if object.list("policyTypes").is_empty() => {
            let mut kinds = vec!["Ingress"];
            if !object.list("egress").is_empty() {
                kinds.push("Egress");
            }
            object.insert("policyTypes".into(), json!(kinds));
        }
        ("networking/v1", "IngressClassSpec") => {
            if let Some(Value::Object(parameters)) = object.get_mut("parameters") {
                fill(parameters, "scope", "Cluster");
            }
        }
        ("storage/v1", "CSIDriverSpec") if object.list("volumeLifecycleModes").is_empty() => {
            object.insert("volumeLifecycleModes".into(), json!(["Persistent"]));
        }
        ("flowcontrol/v1", "FlowSchemaSpec") => number(object, "matchingPrecedence", 1000),
        ("flowcontrol/v1", "QueuingConfiguration") => {
            number(object, "handSize", 8);
            number(object, "queues", 64);
            number(object, "queueLengthLimit", 50);
        }
        ("resource/v1", "ExactDeviceRequest" | "DeviceSubRequest") => {
            fill(object, "allocationMode", "ExactCount");
            if object.text("allocationMode") == "ExactCount" {
                number(object, "count", 1);
            }
        }
        ("autoscaling/v2", "HorizontalPodAutoscalerSpec") => autoscaler(object),
        ("autoscaling/v1", "HorizontalPodAutoscaler") => {
            // Metrics that the smaller version does not know are in an annotation.
            let others = "autoscaling.alpha.kubernetes.io/metrics";
            if !object.at("metadata").at("annotations").has(others) {
                let spec = child(object, "spec");
                number(spec, "targetCPUUtilizationPercentage", 80);
            }
        }
        _ => {}
    }
}

/// For fields whose zero means "not given".
fn number(object: &mut Object, key: &str, value: i64) {
    if object.number(key).unwrap_or(0) == 0 {
        object.insert(key.to_owned(), value.into());
    }
}

fn autoscaler(spec: &mut Object) {
    if spec.list("metrics").is_empty() {
        let target = json!({ "type": "Utilization", "averageUtilization": 80 });
        let metric = json!({ "type": "Resource", "resource": { "name": "cpu", "target": target } });
        spec.insert("metrics".into(), json!([metric]));
    }
    if !spec.has("behavior") {
        return;
    }
    let policy = |kind, value| json!({ "type": kind, "value": value, "periodSeconds": 15 });
    let behavior = child(spec, "behavior");
    let up = child(behavior, "scaleUp");
    fill(up, "stabilizationWindowSeconds", 0);
    fill(up, "selectPolicy", "Max");
    fill(up, "policies", json!([policy("Pods", 4), policy("Percent", 100)]));
    let down = child(behavior, "scaleDown");
    fill(down, "selectPolicy", "Max");
    fill(down, "policies", json!([policy("Percent", 100)]));
}
