//! Services.
//!
//! Left out: topology annotations, traffic distribution, health check ports, dual-stack changes.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::check::Errors;
use super::net;
use crate::names;
use crate::rules::read::Read;

pub(super) fn service(errors: &mut Errors, object: &Value) {
    let spec = object.at("spec");
    let kind = spec.text("type");
    let headless = spec.list("clusterIPs") == [json!("None")];
    let ports = spec.list("ports");
    if ports.is_empty() && !headless && kind != "ExternalName" {
        errors.required("spec.ports", "");
    }
    by_type(errors, spec, headless);
    let mut seen = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let path = format!("spec.ports[{index}]");
        match port.text("name") {
            "" if ports.len() > 1 => errors.required(format!("{path}.name"), ""),
            "" => {}
            name => {
                errors.label(&format!("{path}.name"), name);
                if !seen.insert(name) {
                    errors.duplicate(format!("{path}.name"), name);
                }
            }
        }
        errors.port_number(&format!("{path}.port"), port.number("port").unwrap_or(0));
        errors.protocol(format!("{path}.protocol"), port.text("protocol"));
        errors.port_number_or_name(&format!("{path}.targetPort"), port.at("targetPort"));
        if let Some(protocol) = port.at("appProtocol").as_str() {
            errors.complaints(&format!("{path}.appProtocol"), protocol, names::label_key(protocol));
        }
    }
    errors.labels("spec.selector", spec.at("selector"));
    errors.one_of("spec.sessionAffinity", spec.text("sessionAffinity"), &["ClientIP", "None"]);
    if let Some(seconds) =
        spec.path(&["sessionAffinityConfig", "clientIP", "timeoutSeconds"]).as_i64()
        && !(1..=86400).contains(&seconds)
    {
        let path = "spec.sessionAffinityConfig.clientIP.timeoutSeconds";
        errors.invalid(path, seconds, "must be greater than 0 and less than 86400");
    }
    if kind != "ExternalName" {
        addresses(errors, spec);
    }
    for (index, address) in spec.list("externalIPs").iter().enumerate() {
        let path = format!("spec.externalIPs[{index}]");
        let address = address.as_str().unwrap_or("");
        match address.parse::<std::net::IpAddr>() {
            Ok(_) => net::endpoint(errors, &path, address),
            Err(_) => net::address(errors, &path, address),
        }
    }
    errors.one_of("spec.type", kind, &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"]);
    port_numbers(errors, kind, ports);
    const ONLY: &str = "may only be used when `type` is 'LoadBalancer'";
    let ranges = spec.list("loadBalancerSourceRanges");
    if !ranges.is_empty() && kind != "LoadBalancer" {
        errors.forbidden("spec.LoadBalancerSourceRanges", ONLY);
    }
    if spec.has("allocateLoadBalancerNodePorts") && kind != "LoadBalancer" {
        errors.forbidden("spec.allocateLoadBalancerNodePorts", ONLY);
    }
    if spec.has("loadBalancerClass") && kind != "LoadBalancer" {
        errors.forbidden("spec.loadBalancerClass", ONLY);
    }
    policies(errors, spec, kind);
}

fn by_type(errors: &mut Errors, spec: &Value, headless: bool) {
    match spec.text("type") {
        kind @ ("LoadBalancer" | "NodePort") if headless => {
            let why = format!("may not be set to 'None' for {kind} services");
            errors.invalid("spec.clusterIPs[0]", "None", why);
        }
        "ExternalName" => {
            for field in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
                if spec.has(field) {
                    let why = "may not be set for ExternalName services";
                    errors.forbidden(format!("spec.{field}"), why);
                }
            }
            let name = spec.text("externalName");
            match name.strip_suffix('.').unwrap_or(name) {
                "" => errors.required("spec.externalName", ""),
                name => errors.subdomain("spec.externalName", name),
            }
        }
        _ => {}
    }
}

fn addresses(errors: &mut Errors, spec: &Value) {
    let single = spec.text("clusterIP");
    let all = spec.list("clusterIPs");
    match (single, all.first().and_then(Value::as_str)) {
        ("", Some(_)) => {
            let why = "must be empty when `clusterIP` is not specified";
            errors.invalid("spec.clusterIPs", json!(all), why);
        }
        ("", None) => {}
        (_, None) => errors.required("spec.clusterIPs", ""),
        (single, Some(first)) if single != first => {
            errors.invalid("spec.clusterIPs", json!(all), "first value must match `clusterIP`");
        }
        _ => {}
    }
    let mut seen = BTreeSet::new();
    for (index, family) in spec.list("ipFamilies").iter().enumerate() {
        let family = family.as_str().unwrap_or("");
        let path = format!("spec.ipFamilies[{index}]");
        if !["IPv4", "IPv6"].contains(&family) {
            errors.not_supported(&*path, family, &["IPv4", "IPv6"]);
        }
        if !seen.insert(family) {
            errors.duplicate(path, family);
        }
    }
    let policies = ["PreferDualStack", "RequireDualStack", "SingleStack"];
    errors.maybe_one_of("spec.ipFamilyPolicy", spec.at("ipFamilyPolicy"), &policies);
    for (index, address) in all.iter().enumerate() {
        let address = address.as_str().unwrap_or("");
        if index == 0 && address == "None" {
            if all.len() > 1 {
                let why = "'None' must be the first and only value";
                errors.invalid("spec.clusterIPs", json!(all), why);
            }
            continue;
        }
        net::address(errors, &format!("spec.clusterIPs[{index}]"), address);
    }
    if all.len() > 2 {
        errors.invalid("spec.clusterIPs", json!(all), "may only hold up to 2 values");
    }
}

fn port_numbers(errors: &mut Errors, kind: &str, ports: &[Value]) {
    if kind == "ClusterIP" {
        for (index, port) in ports.iter().enumerate() {
            if port.number("nodePort").unwrap_or(0) != 0 {
                let why = "may not be used when `type` is 'ClusterIP'";
                errors.forbidden(format!("spec.ports[{index}].nodePort"), why);
            }
        }
    }
    let mut seen = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let number = port.number("nodePort").unwrap_or(0);
        if number != 0 && !seen.insert((port.text("protocol"), number)) {
            errors.duplicate(format!("spec.ports[{index}].nodePort"), number);
        }
    }
    let mut seen = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let (protocol, number) = (port.text("protocol"), port.number("port").unwrap_or(0));
        if !seen.insert((protocol, number)) {
            let shown = json!({
                "Name": "", "Protocol": protocol, "AppProtocol": null, "Port": number,
                "TargetPort": 0, "NodePort": 0
            });
            errors.duplicate(format!("spec.ports[{index}]"), shown);
        }
    }
}

fn policies(errors: &mut Errors, spec: &Value, kind: &str) {
    let outside = matches!(kind, "NodePort" | "LoadBalancer")
        || (kind == "ClusterIP" && !spec.list("externalIPs").is_empty());
    let policy = spec.text("externalTrafficPolicy");
    if outside {
        errors.one_of("spec.externalTrafficPolicy", policy, &["Cluster", "Local"]);
    } else if !policy.is_empty() {
        let why = "may only be set for externally-accessible services";
        errors.invalid("spec.externalTrafficPolicy", policy, why);
    }
    let policy = spec.at("internalTrafficPolicy");
    errors.maybe_one_of("spec.internalTrafficPolicy", policy, &["Cluster", "Local"]);
}

pub(super) fn update(errors: &mut Errors, old: &Value, new: &Value) {
    let (before, spec) = (old.at("spec"), new.at("spec"));
    if [before, spec].iter().any(|spec| spec.text("type") == "ExternalName") {
        return;
    }
    let (was, is) = (before.list("clusterIPs"), spec.list("clusterIPs"));
    if was.len() == is.len() {
        for (index, (old, new)) in was.iter().zip(is).enumerate() {
            if old != new {
                let path = format!("spec.clusterIPs[{index}]");
                errors.invalid(path, json!(is), "may not change once set");
            }
        }
    } else if is.is_empty() {
        errors.invalid("spec.clusterIPs[0]", json!(is), "primary clusterIP can not be unset");
    } else if was.first() != is.first() && !was.is_empty() {
        errors.invalid("spec.clusterIPs[0]", json!(is), "may not change once set");
    }
}

pub(super) fn status(errors: &mut Errors, object: &Value) {
    const PATH: &str = "status.loadBalancer.ingress";
    let points = object.path(&["status", "loadBalancer"]).list("ingress");
    if object.at("spec").text("type") != "LoadBalancer" && !points.is_empty() {
        return errors.forbidden(PATH, "may only be used when `spec.type` is 'LoadBalancer'");
    }
    net::load_balancer(errors, PATH, object);
}
