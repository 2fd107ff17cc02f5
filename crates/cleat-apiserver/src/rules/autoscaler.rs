//! HorizontalPodAutoscalers are stored as `autoscaling/v2`; v1 is a smaller view of the same.
//!
//! v1 knows one metric, the processor. What else there is travels in annotations, as upstream does,
//! but here in the form of v2: only the names of the annotations are the same.

use serde_json::{Value, json};

use super::defaults;
use super::read::{Read, child, object as object_of};

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const CURRENT: &str = "autoscaling.alpha.kubernetes.io/current-metrics";

/// The stored object as v1 shows it.
pub(crate) fn to_v1(stored: &Value) -> Value {
    let mut view = stored.clone();
    let object = object_of(&mut view);
    object.insert("apiVersion".into(), "autoscaling/v1".into());
    let mut notes = Vec::new();

    let spec = child(object, "spec");
    let metrics = spec.remove("metrics").unwrap_or(Value::Null);
    let (processor, others) = split(&metrics, "target");
    if let Some(percent) = processor {
        spec.insert("targetCPUUtilizationPercentage".into(), percent);
    }
    notes.push((METRICS, json!(others), others.is_empty()));
    let behavior = spec.remove("behavior").unwrap_or(Value::Null);
    notes.push((BEHAVIOR, behavior.clone(), behavior.is_null()));

    let status = child(object, "status");
    let current = status.remove("currentMetrics").unwrap_or(Value::Null);
    let (processor, others) = split(&current, "current");
    if let Some(percent) = processor {
        status.insert("currentCPUUtilizationPercentage".into(), percent);
    }
    notes.push((CURRENT, json!(others), others.is_empty()));
    let conditions = status.remove("conditions").unwrap_or(Value::Null);
    let none = conditions.as_array().is_none_or(Vec::is_empty);
    notes.push((CONDITIONS, conditions, none));

    let metadata = child(object, "metadata");
    for (name, value, empty) in notes {
        if !empty {
            child(metadata, "annotations").insert(name.into(), value.to_string().into());
        }
    }
    defaults::default("autoscaling/v1", "HorizontalPodAutoscaler", &mut view);
    view
}

/// A v1 object as it is stored.
pub(crate) fn from_v1(sent: &Value) -> Value {
    let mut stored = sent.clone();
    let object = object_of(&mut stored);
    object.insert("apiVersion".into(), "autoscaling/v2".into());
    let annotations = child(child(object, "metadata"), "annotations");
    let mut note = |name: &str| -> Value {
        let text = annotations.remove(name);
        let text = text.as_ref().and_then(Value::as_str).unwrap_or("null");
        serde_json::from_str(text).unwrap_or(Value::Null)
    };
    let (metrics, behavior) = (note(METRICS), note(BEHAVIOR));
    let (conditions, current) = (note(CONDITIONS), note(CURRENT));

    let spec = child(object, "spec");
    let percent = spec.remove("targetCPUUtilizationPercentage").unwrap_or(Value::Null);
    let mut all: Vec<Value> = Vec::new();
    if !percent.is_null() {
        let target = json!({ "type": "Utilization", "averageUtilization": percent });
        all.push(json!({ "type": "Resource", "resource": { "name": "cpu", "target": target } }));
    }
    all.extend(metrics.as_array().into_iter().flatten().cloned());
    spec.insert("metrics".into(), all.into());
    if !behavior.is_null() {
        spec.insert("behavior".into(), behavior);
    }

    let status = child(object, "status");
    let percent = status.remove("currentCPUUtilizationPercentage").unwrap_or(Value::Null);
    let mut all: Vec<Value> = Vec::new();
    if !percent.is_null() {
        let current = json!({ "averageUtilization": percent });
        all.push(json!({ "type": "Resource", "resource": { "name": "cpu", "current": current } }));
    }
    all.extend(current.as_array().into_iter().flatten().cloned());
    if !all.is_empty() {
        status.insert("currentMetrics".into(), all.into());
    }
    if !conditions.is_null() {
        status.insert("conditions".into(), conditions);
    }
    defaults::default("autoscaling/v2", "HorizontalPodAutoscaler", &mut stored);
    stored
}

/// The processor's percentage, and every other metric.
fn split(metrics: &Value, side: &str) -> (Option<Value>, Vec<Value>) {
    let mut processor = None;
    let mut others = Vec::new();
    for metric in metrics.as_array().into_iter().flatten() {
        let resource = metric.at("resource");
        let percent = resource.at(side).at("averageUtilization");
        if processor.is_none() && resource.text("name") == "cpu" && !percent.is_null() {
            processor = Some(percent.clone());
        } else {
            others.push(metric.clone());
        }
    }
    (processor, others)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_small_view_loses_nothing() {
        let memory = json!({ "type": "Resource", "resource": {
            "name": "memory", "target": { "type": "Utilization", "averageUtilization": 70 } } });
        let cpu = json!({ "type": "Resource", "resource": {
            "name": "cpu", "target": { "type": "Utilization", "averageUtilization": 50 } } });
        let mut stored = json!({
            "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
            "metadata": { "name": "a" },
            "spec": { "maxReplicas": 3, "scaleTargetRef": { "kind": "Deployment", "name": "d" },
                "metrics": [cpu, memory] }
        });
        defaults::default("autoscaling/v2", "HorizontalPodAutoscaler", &mut stored);
        let view = to_v1(&stored);
        assert_eq!(view["spec"]["targetCPUUtilizationPercentage"], json!(50));
        assert_eq!(view["spec"].get("metrics"), None);
        assert_eq!(view["status"], json!({ "currentReplicas": 0, "desiredReplicas": 0 }));
        assert_eq!(from_v1(&view), stored);
    }
}
