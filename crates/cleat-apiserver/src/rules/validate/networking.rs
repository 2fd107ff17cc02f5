//! Ingresses and network policies.

use serde_json::Value;

use super::check::{self, Errors};
use super::net;
use crate::rules::read::Read;

pub(super) fn ingress(errors: &mut Errors, object: &Value) {
    let spec = object.at("spec");
    let rules = spec.list("rules");
    if rules.is_empty() && !spec.has("defaultBackend") {
        let shown = spec.at("rules").clone();
        errors.invalid("spec", shown, "either `defaultBackend` or `rules` must be specified");
    }
    if spec.has("defaultBackend") {
        backend(errors, "spec.defaultBackend", spec.at("defaultBackend"));
    }
    for (index, rule) in rules.iter().enumerate() {
        let path = format!("spec.rules[{index}]");
        host(errors, &format!("{path}.host"), rule.text("host"));
        if rule.has("http") {
            paths(errors, &format!("{path}.http.paths"), rule.at("http").list("paths"));
        }
    }
    for (index, tls) in spec.list("tls").iter().enumerate() {
        for (place, name) in tls.list("hosts").iter().enumerate() {
            let path = format!("spec.tls[{index}].hosts[{place}]");
            let name = name.as_str().unwrap_or("");
            match name.contains('*') {
                true => wildcard(errors, &path, name),
                false => errors.subdomain(&path, name),
            }
        }
        let secret = tls.text("secretName");
        if !secret.is_empty() {
            errors.subdomain(&format!("spec.tls[{index}].secretName"), secret);
        }
    }
    if let Some(class) = spec.at("ingressClassName").as_str() {
        errors.subdomain("spec.ingressClassName", class);
    }
}

/// An address that a service has been given, as an object of its name.
pub(super) fn ip_address(errors: &mut Errors, object: &Value) {
    net::address(errors, "metadata.name", object.at("metadata").text("name"));
    let parent = object.at("spec").at("parentRef");
    if parent.is_null() {
        return errors.required("spec.parentRef", "");
    }
    for field in ["resource", "name"] {
        if parent.text(field).is_empty() {
            errors.required(format!("spec.parentRef.{field}"), "");
        }
    }
}

/// Addresses that services may be given.
pub(super) fn service_range(errors: &mut Errors, object: &Value) {
    let ranges = object.at("spec").list("cidrs");
    if ranges.is_empty() {
        errors.required("spec.cidrs", "at least one CIDR required");
    }
    for (index, range) in ranges.iter().enumerate() {
        net::range(errors, &format!("spec.cidrs[{index}]"), range.as_str().unwrap_or(""));
    }
}

fn host(errors: &mut Errors, path: &str, host: &str) {
    if host.is_empty() {
        return;
    }
    if host.parse::<std::net::IpAddr>().is_ok() {
        errors.invalid(path, host, "must be a DNS name, not an IP address");
    }
    match host.contains('*') {
        true => wildcard(errors, path, host),
        false => errors.subdomain(path, host),
    }
}

fn wildcard(errors: &mut Errors, path: &str, host: &str) {
    let good =
        host.strip_prefix("*.").is_some_and(|rest| crate::names::dns_subdomain(rest).is_empty());
    if !good {
        let why = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS \
                   subdomain, which must consist of lower case alphanumeric characters, '-' or '.' \
                   and end with an alphanumeric character (e.g. '*.example.com', regex used for \
                   validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9]\
                   )?)*')";
        errors.invalid(path, host, why);
    }
}

fn paths(errors: &mut Errors, path: &str, paths: &[Value]) {
    if paths.is_empty() {
        errors.required(path, "");
    }
    for (index, rule) in paths.iter().enumerate() {
        let at = format!("{path}[{index}]");
        let target = rule.text("path");
        let Some(kind) = rule.at("pathType").as_str() else {
            errors.required(format!("{at}.pathType"), "pathType must be specified");
            continue;
        };
        let field = format!("{at}.path");
        match kind {
            "Exact" | "Prefix" => {
                if !target.starts_with('/') {
                    errors.invalid(&*field, target, "must be an absolute path");
                }
                for sequence in ["//", "/./", "/../", "%2f", "%2F"] {
                    if target.contains(sequence) {
                        errors.invalid(&*field, target, format!("must not contain '{sequence}'"));
                    }
                }
                for suffix in ["/..", "/."] {
                    if target.ends_with(suffix) {
                        errors.invalid(&*field, target, format!("cannot end with '{suffix}'"));
                    }
                }
            }
            "ImplementationSpecific" => {
                if !target.is_empty() && !target.starts_with('/') {
                    errors.invalid(field, target, "must be an absolute path");
                }
            }
            other => {
                let kinds = ["Exact", "ImplementationSpecific", "Prefix"];
                errors.not_supported(format!("{at}.pathType"), other, &kinds);
            }
        }
        backend(errors, &format!("{at}.backend"), rule.at("backend"));
    }
}

fn backend(errors: &mut Errors, path: &str, backend: &Value) {
    match (backend.has("resource"), backend.has("service")) {
        (true, true) => errors.invalid(path, "", "cannot set both resource and service backends"),
        (true, false) => {}
        (false, false) => errors.invalid(path, "", "resource or service backend is required"),
        (false, true) => {
            let service = backend.at("service");
            match service.text("name") {
                "" => errors.required(format!("{path}.service.name"), ""),
                name => errors.label(&format!("{path}.service.name"), name),
            }
            let port = service.at("port");
            match (port.text("name"), port.number("number").unwrap_or(0)) {
                ("", 0) => errors.required(path, "port name or number is required"),
                ("", number) => errors.port_number(&format!("{path}.service.port.number"), number),
                (name, 0) => {
                    let complaints = check::port_name(name);
                    errors.complaints(&format!("{path}.service.port.name"), name, complaints);
                }
                _ => errors.invalid(path, "", "cannot set both port name & port number"),
            }
        }
    }
}

pub(super) fn network_policy(errors: &mut Errors, object: &Value) {
    let spec = object.at("spec");
    errors.selector("spec.podSelector", spec.at("podSelector"));
    for (direction, side) in [("ingress", "from"), ("egress", "to")] {
        for (index, rule) in spec.list(direction).iter().enumerate() {
            let path = format!("spec.{direction}[{index}]");
            for (place, port) in rule.list("ports").iter().enumerate() {
                policy_port(errors, &format!("{path}.ports[{place}]"), port);
            }
            for (place, peer) in rule.list(side).iter().enumerate() {
                policy_peer(errors, &format!("{path}.{side}[{place}]"), peer);
            }
        }
    }
    let kinds = spec.list("policyTypes");
    if kinds.len() > 2 {
        let why = "may not specify more than two policyTypes";
        return errors.invalid("spec.policyTypes", spec.at("policyTypes").clone(), why);
    }
    for (index, kind) in kinds.iter().enumerate() {
        let path = format!("spec.policyTypes[{index}]");
        errors.maybe_one_of(path, kind, &["Ingress", "Egress"]);
    }
}

fn policy_port(errors: &mut Errors, path: &str, port: &Value) {
    errors.maybe_one_of(format!("{path}.protocol"), port.at("protocol"), &["TCP", "UDP", "SCTP"]);
    let (at, end_at) = (format!("{path}.port"), format!("{path}.endPort"));
    let end = port.number("endPort");
    match port.at("port") {
        Value::Null => {
            if let Some(end) = end {
                errors.invalid(end_at, end, "may not be specified when `port` is not specified");
            }
        }
        Value::String(name) => {
            if let Some(end) = end {
                errors.invalid(end_at, end, "may not be specified when `port` is non-numeric");
            }
            errors.complaints(&at, name, check::port_name(name));
        }
        number => {
            let number = number.as_i64().unwrap_or(0);
            errors.port_number(&at, number);
            if let Some(end) = end {
                if end < number {
                    let why = "must be greater than or equal to `port`";
                    errors.invalid(&*end_at, number, why);
                }
                errors.port_number(&end_at, end);
            }
        }
    }
}

fn policy_peer(errors: &mut Errors, path: &str, peer: &Value) {
    let mut peers = 0;
    for field in ["podSelector", "namespaceSelector"] {
        if peer.has(field) {
            peers += 1;
            errors.selector(&format!("{path}.{field}"), peer.at(field));
        }
    }
    if peer.has("ipBlock") {
        peers += 1;
        block(errors, &format!("{path}.ipBlock"), peer.at("ipBlock"));
    }
    if peers == 0 {
        errors.required(path, "must specify a peer");
    } else if peers > 1 && peer.has("ipBlock") {
        errors.forbidden(path, "may not specify both ipBlock and another peer");
    }
}

fn block(errors: &mut Errors, path: &str, block: &Value) {
    let outer = block.text("cidr");
    if outer.is_empty() {
        return errors.required(format!("{path}.cidr"), "");
    }
    net::range(errors, &format!("{path}.cidr"), outer);
    let Some(outer) = net::parse_range(outer) else { return };
    for (index, inner) in block.list("except").iter().enumerate() {
        let path = format!("{path}.except[{index}]");
        let inner = inner.as_str().unwrap_or("");
        net::range(errors, &path, inner);
        if net::parse_range(inner).is_some_and(|inner| !net::strictly_inside(inner, outer)) {
            errors.invalid(path, inner, "must be a strict subset of `cidr`");
        }
    }
}
