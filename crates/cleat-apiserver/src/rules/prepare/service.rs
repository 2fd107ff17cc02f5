//! Addresses and ports of Services.
//!
//! One address family only: a request for two keeps its policy but gets one address.

use serde_json::{Map, Value, json};

use super::{Addresses, put};
use crate::rules::read::{Read, child, fill, list, object as object_of, objects};

type Object = Map<String, Value>;

/// Gives a new Service what it did not ask for by number.
pub(super) fn allocate(object: &mut Value, addresses: &mut dyn Addresses) {
    let spec = child(object_of(object), "spec");
    same_addresses(spec);
    if spec.text("type") == "ExternalName" {
        spec.remove("internalTrafficPolicy");
        return;
    }
    let headless = spec.text("clusterIP") == "None";
    let free = headless && spec.map("selector").is_none_or(Map::is_empty);
    fill(spec, "ipFamilyPolicy", if free { "RequireDualStack" } else { "SingleStack" });
    if spec.list("ipFamilies").is_empty() {
        let first = spec.list("clusterIPs").first().and_then(Value::as_str).unwrap_or("");
        let first = if first.contains(':') { "IPv6" } else { "IPv4" };
        let families = match free && spec.text("ipFamilyPolicy") != "SingleStack" {
            true => json!([first, if first == "IPv4" { "IPv6" } else { "IPv4" }]),
            false => json!([first]),
        };
        spec.insert("ipFamilies".into(), families);
    }
    if spec.text("clusterIP").is_empty()
        && let Some(address) = addresses.cluster_ip()
    {
        spec.insert("clusterIPs".into(), json!([address]));
        spec.insert("clusterIP".into(), address.into());
    }
    allocate_ports(spec, addresses);
}

/// An update that leaves addresses out keeps the old ones; one that changes to a type without them
/// loses them.
pub(super) fn keep_allocated(old: &Value, new: &mut Value, addresses: &mut dyn Addresses) {
    let before = old.at("spec");
    let spec = child(object_of(new), "spec");
    let addressed = |kind: &str| kind != "ExternalName";
    let (was, is) = (before.text("type").to_owned(), spec.text("type").to_owned());
    if addressed(&was) && addressed(&is) {
        if spec.text("clusterIP").is_empty() && spec.list("clusterIPs").is_empty() {
            put(spec, "clusterIP", before.at("clusterIP").clone());
            put(spec, "clusterIPs", before.at("clusterIPs").clone());
        }
        // Who changes the one address means the first of several.
        let (one, several) = (spec.at("clusterIP").clone(), spec.at("clusterIPs"));
        if one.as_str().is_some_and(|one| !one.is_empty())
            && one != *before.at("clusterIP")
            && several == before.at("clusterIPs")
            && let Some(first) = list(spec, "clusterIPs").first_mut()
        {
            *first = one;
        }
        for field in ["ipFamilies", "ipFamilyPolicy"] {
            if !spec.has(field) {
                put(spec, field, before.at(field).clone());
            }
        }
        same_addresses(spec);
        keep_ports(before, spec);
    }
    if addressed(&was) && !addressed(&is) {
        drop_unchanged(before, spec, &["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"]);
    }
    if !addressed(&is) {
        spec.remove("internalTrafficPolicy");
    }
    if ported(&was) && !ported(&is) {
        objects(spec, "ports").for_each(|port| {
            port.remove("nodePort");
        });
    }
    if was == "LoadBalancer" && is != "LoadBalancer" {
        drop_unchanged(before, spec, &["allocateLoadBalancerNodePorts", "loadBalancerClass"]);
    }
    if !(ported(&is) || (is == "ClusterIP" && !spec.list("externalIPs").is_empty())) {
        drop_unchanged(before, spec, &["externalTrafficPolicy"]);
    }
    if is != "LoadBalancer" {
        child(object_of(new), "status").insert("loadBalancer".into(), json!({}));
    }
    if !addressed(&was) && addressed(&is) {
        return allocate(new, addresses);
    }
    allocate_ports(child(object_of(new), "spec"), addresses);
}

/// Fields that no longer apply go, unless this very update changed them: then validation speaks.
fn drop_unchanged(before: &Value, spec: &mut Object, fields: &[&str]) {
    for field in fields {
        if spec.at(field) == before.at(field) {
            spec.remove(*field);
        }
    }
}

/// `clusterIP` is the first of `clusterIPs`; whichever is given fills in the other.
fn same_addresses(spec: &mut Object) {
    let single = spec.text("clusterIP").to_owned();
    let first = spec.list("clusterIPs").first().and_then(Value::as_str).unwrap_or("").to_owned();
    if single.is_empty() && !first.is_empty() {
        spec.insert("clusterIP".into(), first.into());
    } else if !single.is_empty() && first.is_empty() {
        spec.insert("clusterIPs".into(), json!([single]));
    }
}

fn ported(kind: &str) -> bool {
    matches!(kind, "NodePort" | "LoadBalancer")
}

fn allocate_ports(spec: &mut Object, addresses: &mut dyn Addresses) {
    let wanted = match spec.text("type") {
        "NodePort" => true,
        "LoadBalancer" => spec.at("allocateLoadBalancerNodePorts").as_bool().unwrap_or(true),
        _ => false,
    };
    if !wanted {
        return;
    }
    for port in objects(spec, "ports") {
        if port.number("nodePort").unwrap_or(0) == 0
            && let Some(number) = addresses.node_port()
        {
            port.insert("nodePort".into(), number.into());
        }
    }
}

/// Ports are known by their names.
fn keep_ports(before: &Value, spec: &mut Object) {
    if !ported(before.text("type")) || !ported(spec.text("type")) {
        return;
    }
    let used: Vec<i64> = spec.list("ports").iter().filter_map(|p| p.number("nodePort")).collect();
    for port in objects(spec, "ports") {
        let same = before.list("ports").iter().find(|old| old.text("name") == port.text("name"));
        let number = same.and_then(|old| old.number("nodePort")).unwrap_or(0);
        if port.number("nodePort").unwrap_or(0) == 0 && number != 0 && !used.contains(&number) {
            port.insert("nodePort".into(), number.into());
        }
    }
}
