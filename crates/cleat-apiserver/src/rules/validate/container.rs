//! Containers: names, images, ports, environment, mounts, probes, resources.
//!
//! Left out: security contexts beyond identities and escalation, lifecycle hooks beyond their handler, resize policies, restart
//! rules, device claims.

use std::collections::BTreeSet;

use serde_json::Value;

use super::check::{self, Errors};
use super::security;
use crate::names;
use crate::quantity::Quantity;
use crate::rules::read::Read;

/// The containers of a pod. `volumes` are the names that mounts may use.
pub(super) fn containers(
    errors: &mut Errors,
    path: &str,
    containers: &[Value],
    volumes: &BTreeSet<&str>,
) {
    if containers.is_empty() {
        return errors.required(path, "");
    }
    let mut seen = BTreeSet::new();
    for (index, container) in containers.iter().enumerate() {
        let path = format!("{path}[{index}]");
        common(errors, &path, container, volumes);
        let name = container.text("name");
        if !seen.insert(name) {
            errors.duplicate(format!("{path}.name"), name);
        }
        lifecycle(errors, &path, container);
        probes(errors, &path, container);
    }
    host_ports(errors, path, containers);
}

pub(super) fn init_containers(
    errors: &mut Errors,
    path: &str,
    init: &[Value],
    regular: &[Value],
    volumes: &BTreeSet<&str>,
) {
    let mut seen: BTreeSet<&str> = regular.iter().map(|container| container.text("name")).collect();
    for (index, container) in init.iter().enumerate() {
        let path = format!("{path}[{index}]");
        common(errors, &path, container, volumes);
        let name = container.text("name");
        if seen.contains(name) {
            errors.duplicate(format!("{path}.name"), name);
        } else if !name.is_empty() {
            seen.insert(name);
        }
        if container.text("restartPolicy") == "Always" {
            lifecycle(errors, &path, container);
            probes(errors, &path, container);
            continue;
        }
        for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
            if container.has(field) {
                let why = "may not be set for init containers without restartPolicy=Always";
                errors.forbidden(format!("{path}.{field}"), why);
            }
        }
    }
}

pub(super) fn common(errors: &mut Errors, path: &str, container: &Value, volumes: &BTreeSet<&str>) {
    match container.text("name") {
        "" => errors.required(format!("{path}.name"), ""),
        name => errors.label(&format!("{path}.name"), name),
    }
    let image = container.text("image");
    if image.is_empty() {
        errors.required(format!("{path}.image"), "");
    } else if image.trim() != image {
        let why = "must not have leading or trailing whitespace";
        errors.invalid(format!("{path}.image"), image, why);
    }
    let policy = container.text("terminationMessagePolicy");
    let path_of = |field: &str| format!("{path}.{field}");
    errors.one_of(path_of("terminationMessagePolicy"), policy, &["File", "FallbackToLogsOnError"]);
    ports(errors, &path_of("ports"), container.list("ports"));
    environment(errors, &path_of("env"), container.list("env"));
    environment_sources(errors, &path_of("envFrom"), container.list("envFrom"));
    mounts(errors, &path_of("volumeMounts"), container.list("volumeMounts"), volumes);
    let policy = container.text("imagePullPolicy");
    errors.one_of(path_of("imagePullPolicy"), policy, &["Always", "IfNotPresent", "Never"]);
    resources(errors, &path_of("resources"), container.at("resources"));
    let context = container.at("securityContext");
    check::identities(errors, &path_of("securityContext"), context, &["runAsUser", "runAsGroup"]);
    security::escalation(errors, &path_of("securityContext"), context);
}

fn ports(errors: &mut Errors, path: &str, ports: &[Value]) {
    let mut seen = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let path = format!("{path}[{index}]");
        let name = port.text("name");
        if !name.is_empty() {
            let complaints = check::port_name(name);
            if complaints.is_empty() && !seen.insert(name) {
                errors.duplicate(format!("{path}.name"), name);
            }
            errors.complaints(&format!("{path}.name"), name, complaints);
        }
        match port.number("containerPort").unwrap_or(0) {
            0 => errors.required(format!("{path}.containerPort"), ""),
            number => errors.port_number(&format!("{path}.containerPort"), number),
        }
        match port.number("hostPort").unwrap_or(0) {
            0 => {}
            number => errors.port_number(&format!("{path}.hostPort"), number),
        }
        errors.protocol(format!("{path}.protocol"), port.text("protocol"));
    }
}

fn host_ports(errors: &mut Errors, path: &str, containers: &[Value]) {
    let mut seen = BTreeSet::new();
    for (index, container) in containers.iter().enumerate() {
        for (place, port) in container.list("ports").iter().enumerate() {
            let number = port.number("hostPort").unwrap_or(0);
            let text = format!("{}/{}/{number}", port.text("protocol"), port.text("hostIP"));
            if number != 0 && !seen.insert(text.clone()) {
                errors.duplicate(format!("{path}[{index}].ports[{place}].hostPort"), text);
            }
        }
    }
}

fn environment(errors: &mut Errors, path: &str, variables: &[Value]) {
    for (index, variable) in variables.iter().enumerate() {
        let path = format!("{path}[{index}]");
        match variable.text("name") {
            "" => errors.required(format!("{path}.name"), ""),
            name => {
                errors.complaints(&format!("{path}.name"), name, check::environment_name(name));
            }
        }
        if variable.has("valueFrom") {
            value_from(errors, &format!("{path}.valueFrom"), variable);
        }
    }
}

fn value_from(errors: &mut Errors, path: &str, variable: &Value) {
    let from = variable.at("valueFrom");
    let mut sources = 0;
    if from.has("fieldRef") {
        sources += 1;
        field_reference(errors, &format!("{path}.fieldRef"), from.at("fieldRef"));
    }
    if from.has("resourceFieldRef") {
        sources += 1;
        if from.at("resourceFieldRef").text("resource").is_empty() {
            errors.required(format!("{path}.resourceFieldRef.resource"), "");
        }
    }
    for field in ["configMapKeyRef", "secretKeyRef"] {
        if from.has(field) {
            sources += 1;
            let (path, name) = (format!("{path}.{field}"), from.at(field).text("name"));
            errors.subdomain(&format!("{path}.name"), name);
            match from.at(field).text("key") {
                "" => errors.required(format!("{path}.key"), ""),
                key => errors.complaints(&format!("{path}.key"), key, check::data_key(key)),
            }
        }
    }
    sources += i32::from(from.has("fileKeyRef"));
    if sources == 0 {
        let all = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, \
                   `secretKeyRef` or `fileKeyRef`";
        errors.invalid(path, "", all);
    } else if !variable.text("value").is_empty() {
        errors.invalid(path, "", "may not be specified when `value` is not empty");
    } else if sources > 1 {
        errors.invalid(path, "", "may not have more than one field specified at a time");
    }
}

fn field_reference(errors: &mut Errors, path: &str, reference: &Value) {
    const KNOWN: [&str; 9] = [
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "spec.nodeName",
        "spec.serviceAccountName",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
        "status.podIPs",
    ];
    let field = reference.text("fieldPath");
    if reference.text("apiVersion").is_empty() {
        errors.required(format!("{path}.apiVersion"), "");
    } else if field.is_empty() {
        errors.required(format!("{path}.fieldPath"), "");
    } else if let Some((base, key)) = field.split_once("['")
        && let Some(key) = key.strip_suffix("']")
    {
        match base {
            "metadata.annotations" | "metadata.labels" => {
                let key = if base.ends_with("labels") { key.into() } else { key.to_lowercase() };
                errors.complaints(path, &key, names::label_key(&key));
            }
            other => errors.invalid(path, other, "does not support subscript"),
        }
    } else if !KNOWN.contains(&field) {
        let why = match field {
            "metadata.annotations" | "metadata.labels" => {
                return errors.not_supported(format!("{path}.fieldPath"), field, &KNOWN);
            }
            _ => format!("error converting fieldPath: field label not supported: {field}"),
        };
        errors.invalid(format!("{path}.fieldPath"), field, why);
    }
}

fn environment_sources(errors: &mut Errors, path: &str, sources: &[Value]) {
    for (index, source) in sources.iter().enumerate() {
        let at = format!("{path}[{index}]");
        let prefix = source.text("prefix");
        errors.complaints(&format!("{at}.prefix"), prefix, check::environment_name(prefix));
        let mut count = 0;
        for field in ["configMapRef", "secretRef"] {
            if source.has(field) {
                count += 1;
                match source.at(field).text("name") {
                    "" => errors.required(format!("{at}.{field}.name"), ""),
                    name => errors.subdomain(&format!("{at}.{field}.name"), name),
                }
            }
        }
        match count {
            0 => errors.invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"),
            1 => {}
            _ => errors.invalid(path, "", "may not have more than one field specified at a time"),
        }
    }
}

fn mounts(errors: &mut Errors, path: &str, mounts: &[Value], volumes: &BTreeSet<&str>) {
    let mut seen = BTreeSet::new();
    for (index, mount) in mounts.iter().enumerate() {
        let at = format!("{path}[{index}]");
        let name = mount.text("name");
        if name.is_empty() {
            errors.required(format!("{at}.name"), "");
        }
        if !volumes.contains(name) {
            errors.not_found(format!("{at}.name"), name);
        }
        let target = mount.text("mountPath");
        if target.is_empty() {
            errors.required(format!("{at}.mountPath"), "");
        }
        if !seen.insert(target) {
            errors.invalid(format!("{at}.mountPath"), target, "must be unique");
        }
        for field in ["subPath", "subPathExpr"] {
            let sub = mount.text(field);
            if sub.starts_with('/') {
                errors.invalid(format!("{path}.{field}"), sub, "must be a relative path");
            }
            no_back_steps(errors, &format!("{path}.{field}"), sub);
        }
    }
}

pub(super) fn no_back_steps(errors: &mut Errors, path: &str, target: &str) {
    if target.split('/').any(|part| part == "..") {
        errors.invalid(path, target, "must not contain '..'");
    }
}

fn lifecycle(errors: &mut Errors, path: &str, container: &Value) {
    for hook in ["postStart", "preStop"] {
        let handler = container.path(&["lifecycle", hook]);
        if !handler.is_null() {
            self::handler(errors, &format!("{path}.lifecycle.{hook}"), handler);
        }
    }
}

fn probes(errors: &mut Errors, path: &str, container: &Value) {
    for field in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let probe = container.at(field);
        if probe.is_null() {
            continue;
        }
        let path = format!("{path}.{field}");
        handler(errors, &path, probe);
        let counts = [
            "initialDelaySeconds",
            "timeoutSeconds",
            "periodSeconds",
            "successThreshold",
            "failureThreshold",
        ];
        errors.not_negative(&path, probe, &counts);
        if let Some(period) = probe.number("terminationGracePeriodSeconds") {
            let at = format!("{path}.terminationGracePeriodSeconds");
            if field == "readinessProbe" {
                errors.invalid(at, period, "must not be set for readinessProbes");
            } else if period <= 0 {
                errors.invalid(at, period, "must be greater than 0");
            }
        }
        let successes = probe.number("successThreshold").unwrap_or(0);
        if field != "readinessProbe" && successes != 1 {
            errors.invalid(format!("{path}.successThreshold"), successes, "must be 1");
        }
    }
}

fn handler(errors: &mut Errors, path: &str, handler: &Value) {
    let mut found = false;
    for field in ["exec", "httpGet", "tcpSocket", "grpc", "sleep"] {
        let action = handler.at(field);
        if action.is_null() {
            continue;
        }
        let path = format!("{path}.{field}");
        if found {
            errors.forbidden(path, "may not specify more than 1 handler type");
            continue;
        }
        found = true;
        match field {
            "exec" if action.list("command").is_empty() => {
                errors.required(format!("{path}.command"), "");
            }
            "httpGet" => {
                if action.text("path").is_empty() {
                    errors.required(format!("{path}.path"), "");
                }
                errors.port_number_or_name(&format!("{path}.port"), action.at("port"));
                let scheme = action.text("scheme");
                if !["HTTP", "HTTPS"].contains(&scheme) {
                    errors.not_supported(format!("{path}.scheme"), scheme, &["HTTP", "HTTPS"]);
                }
            }
            "tcpSocket" | "grpc" => {
                errors.port_number_or_name(&format!("{path}.port"), action.at("port"));
            }
            _ => {}
        }
    }
    if !found {
        errors.required(path, "must specify a handler type");
    }
}

fn resources(errors: &mut Errors, path: &str, resources: &Value) {
    let limits = resources.at("limits");
    for (name, amount) in limits.as_object().into_iter().flatten() {
        let path = format!("{path}.limits[{name}]");
        resource_name(errors, &path, name);
        errors.quantity(&path, name, amount);
    }
    let requests = resources.at("requests");
    for (name, amount) in requests.as_object().into_iter().flatten() {
        let at = format!("{path}.requests[{name}]");
        resource_name(errors, &at, name);
        errors.quantity(&at, name, amount);
        let Ok(request) = Quantity::from_json(amount) else { continue };
        let overcommit = !name.starts_with("hugepages-") && !check::extended(name);
        match limits.get(name).and_then(|limit| Quantity::from_json(limit).ok()) {
            Some(limit) if request != limit && !overcommit => {
                let why = format!("must be equal to {name} limit of {limit}");
                errors.invalid(format!("{path}.requests"), request.to_string(), why);
            }
            Some(limit) if request > limit => {
                let why = format!("must be less than or equal to {name} limit of {limit}");
                errors.invalid(format!("{path}.requests"), request.to_string(), why);
            }
            None if !overcommit => errors.required(
                format!("{path}.limits"),
                "Limit must be set for non overcommitable resources",
            ),
            _ => {}
        }
    }
}

fn resource_name(errors: &mut Errors, path: &str, name: &str) {
    let complaints = names::label_key(name);
    if !complaints.is_empty() {
        return errors.complaints(path, name, complaints);
    }
    let container =
        matches!(name, "cpu" | "memory" | "ephemeral-storage") || name.starts_with("hugepages-");
    let standard = container
        || name.starts_with("requests.")
        || matches!(
            name,
            "storage"
                | "pods"
                | "services"
                | "replicationcontrollers"
                | "secrets"
                | "configmaps"
                | "persistentvolumeclaims"
                | "resourcequotas"
        );
    if name.contains('/') || container {
        return;
    }
    if !standard {
        errors.invalid(path, name, "must be a standard resource type or fully qualified");
    }
    errors.invalid(path, name, "must be a standard resource for containers");
}
