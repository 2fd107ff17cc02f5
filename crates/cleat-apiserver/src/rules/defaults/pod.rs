//! Defaults of pods and what is inside them.

use serde_json::{Value, json};

use super::Object;
use crate::quantity::Quantity;
use crate::rules::read::{Read, child, fill, objects};

pub(super) fn default(name: &str, object: &mut Object) {
    match name {
        "Pod" => pod(object),
        "PodSpec" => account(object),
        "PodStatus" => addresses(object),
        "Container" | "EphemeralContainer" => {
            let policy = pull_policy(object.text("image"));
            fill(object, "imagePullPolicy", policy);
        }
        "Volume" => volume(object),
        _ => {}
    }
}

/// The parts that only a Pod gets, not a template of one.
fn pod(object: &mut Object) {
    let spec = child(object, "spec");
    for list in ["containers", "initContainers"] {
        for container in objects(spec, list) {
            requests_follow_limits(container);
        }
    }
    fill(spec, "enableServiceLinks", true);
    pod_level_requests(spec);
    if spec.flag("hostNetwork") {
        for list in ["containers", "initContainers"] {
            for container in objects(spec, list) {
                for port in objects(container, "ports") {
                    let number = port.number("containerPort").unwrap_or(0);
                    if port.number("hostPort").unwrap_or(0) == 0 && number != 0 {
                        port.insert("hostPort".into(), number.into());
                    }
                }
            }
        }
    }
    // A negative period means the shortest one, as it did before it was validated.
    if spec.number("terminationGracePeriodSeconds").is_some_and(|seconds| seconds < 0) {
        spec.insert("terminationGracePeriodSeconds".into(), 1.into());
    }
}

fn requests_follow_limits(container: &mut Object) {
    let Some(limits) = container.at("resources").map("limits").cloned() else { return };
    if limits.is_empty() {
        return;
    }
    let requests = child(child(container, "resources"), "requests");
    for (resource, amount) in limits {
        requests.entry(resource).or_insert(amount);
    }
}

/// Requests of the whole pod, when it has limits of its own: what its containers ask for, and the
/// limits for what they do not ask.
fn pod_level_requests(spec: &mut Object) {
    let Some(limits) = spec.at("resources").map("limits").cloned() else { return };
    if limits.is_empty() {
        return;
    }
    let supported = |name: &str| matches!(name, "cpu" | "memory") || name.starts_with("hugepages-");
    let mut sums: std::collections::BTreeMap<String, Vec<Quantity>> = Default::default();
    for container in spec.list("containers") {
        for (name, amount) in container.at("resources").map("requests").into_iter().flatten() {
            if matches!(&**name, "cpu" | "memory")
                && let Ok(amount) = Quantity::from_json(amount)
            {
                sums.entry(name.clone()).or_default().push(amount);
            }
        }
    }
    let requests = child(child(spec, "resources"), "requests");
    for (name, amounts) in sums {
        let sum = amounts.into_iter().reduce(Quantity::plus).unwrap_or(Quantity::ZERO);
        requests.entry(name).or_insert_with(|| sum.to_string().into());
    }
    for (name, amount) in limits {
        if supported(&name) {
            requests.entry(name).or_insert(amount);
        }
    }
}

/// `serviceAccount` is the old name of `serviceAccountName`; both are always written.
fn account(spec: &mut Object) {
    let name = match spec.text("serviceAccountName") {
        "" => spec.text("serviceAccount"),
        name => name,
    };
    if !name.is_empty() {
        let name = Value::from(name);
        spec.insert("serviceAccount".into(), name.clone());
        spec.insert("serviceAccountName".into(), name);
    }
}

/// `podIP` is the first of `podIPs`; when they differ the single one wins.
fn addresses(status: &mut Object) {
    let single = status.text("podIP").to_owned();
    let first = status.list("podIPs").first().map(|ip| ip.text("ip").to_owned());
    match first {
        Some(first) if single.is_empty() => {
            status.insert("podIP".into(), first.into());
        }
        Some(first) if first == single => {}
        _ if single.is_empty() => {}
        _ => {
            status.insert("podIPs".into(), json!([{ "ip": single }]));
        }
    }
}

fn volume(volume: &mut Object) {
    let sources = volume.keys().filter(|key| *key != "name").count();
    if sources == 0 {
        volume.insert("emptyDir".into(), json!({}));
    }
    if let Some(Value::Object(image)) = volume.get_mut("image") {
        let policy = pull_policy(image.text("reference"));
        fill(image, "pullPolicy", policy);
    }
}

/// An image that names the moving tag, or no version at all, is pulled every time.
fn pull_policy(image: &str) -> &'static str {
    let last = image.rsplit('/').next().unwrap_or(image);
    let latest = match (last.split_once('@'), last.split_once(':')) {
        (Some((name, _)), _) => name.ends_with(":latest"),
        (None, Some((_, tag))) => tag == "latest",
        // An unreadable reference has no tag at all, not even the implied one.
        (None, None) => readable(image),
    };
    if latest { "Always" } else { "IfNotPresent" }
}

/// Whether an untagged reference is one: lower case, without spaces or empty parts.
fn readable(image: &str) -> bool {
    let path = match image.split_once('/') {
        Some((host, path)) if host.contains(['.', ':']) || host == "localhost" => path,
        _ => image,
    };
    let part = |part: &str| {
        let ends =
            |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
        ends(part.chars().next())
            && ends(part.chars().next_back())
            && part.bytes().all(|c| {
                c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, b'.' | b'_' | b'-')
            })
    };
    path.split('/').all(part)
}
