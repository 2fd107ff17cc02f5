//! Defaults of the core group, pods aside.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Map, Value, json};

use super::Object;
use crate::rules::read::{Read, child, fill, objects};

pub(super) fn default(name: &str, object: &mut Object) {
    match name {
        "Service" => service(object),
        "Namespace" => namespace(object),
        "Secret" => secret(object),
        "ReplicationController" => replication_controller(object),
        "PersistentVolume" | "PersistentVolumeClaim" => {
            fill(child(object, "status"), "phase", "Pending");
        }
        "NodeStatus" if !object.has("allocatable") => {
            if let Some(capacity) = object.get("capacity").cloned() {
                object.insert("allocatable".into(), capacity);
            }
        }
        "NodeSpec" => pod_ranges(object),
        "LimitRangeItem" => limit_range_item(object),
        _ => {}
    }
}

fn service(object: &mut Object) {
    let spec = child(object, "spec");
    fill(spec, "sessionAffinity", "None");
    match spec.text("sessionAffinity") {
        "None" => {
            spec.remove("sessionAffinityConfig");
        }
        "ClientIP" => {
            let seconds = spec.path(&["sessionAffinityConfig", "clientIP", "timeoutSeconds"]);
            if seconds.is_null() {
                let config = json!({ "clientIP": { "timeoutSeconds": 10800 } });
                spec.insert("sessionAffinityConfig".into(), config);
            }
        }
        _ => {}
    }
    fill(spec, "type", "ClusterIP");
    for port in objects(spec, "ports") {
        fill(port, "protocol", "TCP");
        let target = port.at("targetPort");
        if target.is_null() || *target == json!(0) || *target == json!("") {
            let number = port.get("port").cloned().unwrap_or(json!(0));
            port.insert("targetPort".into(), number);
        }
    }
    let kind = spec.text("type").to_owned();
    let balanced = kind == "LoadBalancer";
    if balanced
        || kind == "NodePort"
        || (kind == "ClusterIP" && !spec.list("externalIPs").is_empty())
    {
        fill(spec, "externalTrafficPolicy", "Cluster");
    }
    if balanced || kind == "NodePort" || kind == "ClusterIP" {
        fill(spec, "internalTrafficPolicy", "Cluster");
    }
    if !balanced {
        return;
    }
    fill(spec, "allocateLoadBalancerNodePorts", true);
    let status = child(child(object, "status"), "loadBalancer");
    for point in objects(status, "ingress") {
        if !point.text("ip").is_empty() {
            fill(point, "ipMode", "VIP");
        }
    }
}

/// Every namespace can be selected by its name.
fn namespace(object: &mut Object) {
    let name = object.at("metadata").text("name").to_owned();
    if !name.is_empty() {
        let labels = child(child(object, "metadata"), "labels");
        labels.insert("kubernetes.io/metadata.name".into(), name.into());
    }
}

/// `stringData` can be written but never read: it goes into `data`.
fn secret(object: &mut Object) {
    let Some(Value::Object(plain)) = object.remove("stringData") else { return };
    if plain.is_empty() {
        return;
    }
    let data = child(object, "data");
    for (key, value) in plain {
        let text = value.as_str().unwrap_or("");
        data.insert(key, STANDARD.encode(text).into());
    }
}

fn replication_controller(object: &mut Object) {
    let labels = object.path(&["spec", "template", "metadata", "labels"]).clone();
    if labels.as_object().is_none_or(Map::is_empty) {
        return;
    }
    let spec = child(object, "spec");
    if spec.map("selector").is_none_or(Map::is_empty) {
        spec.insert("selector".into(), labels.clone());
    }
    let metadata = child(object, "metadata");
    if metadata.map("labels").is_none_or(Map::is_empty) {
        metadata.insert("labels".into(), labels);
    }
}

/// `podCIDR` is the first of `podCIDRs`; when they differ the single one wins.
fn pod_ranges(spec: &mut Object) {
    let single = spec.text("podCIDR").to_owned();
    let first = spec.list("podCIDRs").first().and_then(Value::as_str).map(str::to_owned);
    match first {
        Some(first) if single.is_empty() => {
            spec.insert("podCIDR".into(), first.into());
        }
        Some(first) if first == single => {}
        _ if single.is_empty() => {}
        _ => {
            spec.insert("podCIDRs".into(), json!([single]));
        }
    }
}

fn limit_range_item(item: &mut Object) {
    if item.text("type") != "Container" {
        return;
    }
    // A default limit is the maximum, a default request the limit, or else the minimum.
    for (from, to) in [("max", "default"), ("default", "defaultRequest"), ("min", "defaultRequest")]
    {
        let Some(amounts) = item.map(from).filter(|amounts| !amounts.is_empty()).cloned() else {
            continue;
        };
        let target = child(item, to);
        for (resource, amount) in amounts {
            target.entry(resource).or_insert(amount);
        }
    }
}
