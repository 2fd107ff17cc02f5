//! Namespaces, configuration, nodes and events.

use serde_json::Value;

use super::Tables;
use super::age as times;
use super::cell::{Cell, Column, Row, age, name, text, text_at, wide};

pub(super) const CORE: Tables = &[
    ("namespaces", &[name(), text("Status", Cell::Text("status.phase", "")), age()]),
    ("configmaps", &[name(), text("Data", Cell::Count(&["data", "binaryData"])), age()]),
    (
        "secrets",
        &[
            name(),
            text("Type", Cell::Text("type", "")),
            text("Data", Cell::Count(&["data"])),
            age(),
        ],
    ),
    ("serviceaccounts", &[name(), age()]),
    ("nodes", NODES),
    ("events", EVENT_COLUMNS),
    (
        "resourcequotas",
        &[
            name(),
            text("Request", Cell::Made(quota_requests, "Requests used, of those allowed.")),
            text("Limit", Cell::Made(quota_limits, "Limits used, of those allowed.")),
            age(),
        ],
    ),
    (
        "componentstatuses",
        &[
            name(),
            text("Status", Cell::Made(component_status, "Whether the component is healthy.")),
            text("Message", Cell::Made(|row| component(row, "message"), "What it says.")),
            text("Error", Cell::Made(|row| component(row, "error"), "What is wrong with it.")),
        ],
    ),
];

pub(super) const EVENTS: Tables = &[("events", EVENT_COLUMNS)];

const NODES: &[Column] = &[
    name(),
    text("Status", Cell::Made(node_status, "Whether the node is ready and takes pods.")),
    text("Roles", Cell::Made(node_roles, "What the node's labels say it is for.")),
    age(),
    text("Version", Cell::Text("status.nodeInfo.kubeletVersion", "")),
    wide("Internal-IP", Cell::Made(|row| node_address(row, "InternalIP"), "Internal address.")),
    wide("External-IP", Cell::Made(|row| node_address(row, "ExternalIP"), "External address.")),
    wide("OS-Image", Cell::Text("status.nodeInfo.osImage", "<unknown>")),
    wide("Kernel-Version", Cell::Made(node_kernel, "Kernel and architecture.")),
    wide("Container-Runtime", Cell::Text("status.nodeInfo.containerRuntimeVersion", "<unknown>")),
];

/// An event may be in the form of either of its groups.
const EVENT_COLUMNS: &[Column] = &[
    text("Last Seen", Cell::Made(event_last_seen, "Time since it was last seen.")),
    text("Type", Cell::Text("type", "")),
    text("Reason", Cell::Text("reason", "")),
    text("Object", Cell::Made(event_object, "What it is about.")),
    wide("Subobject", Cell::Made(|row| regarding(row, "fieldPath").into(), "Which part of it.")),
    wide("Source", Cell::Made(event_source, "Who reported it.")),
    text("Message", Cell::Made(event_message, "What happened.")),
    wide("First Seen", Cell::Made(|row| event_first_seen(row).into(), "Time since first seen.")),
    wide("Count", Cell::Made(event_count, "How often it was seen.")),
    wide("Name", Cell::Text("metadata.name", "")),
];

fn node_status(row: &Row<'_>) -> Value {
    let mut status = match row.condition("Ready") {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if row.at("spec.unschedulable") == Some(&Value::Bool(true)) {
        status.push_str(",SchedulingDisabled");
    }
    Value::from(status)
}

fn node_roles(row: &Row<'_>) -> Value {
    let labels = row.at("metadata.labels").and_then(Value::as_object);
    let mut roles: Vec<&str> = labels
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => Some(role),
            None if key == "kubernetes.io/role" => value.as_str(),
            None => None,
        })
        .filter(|role| !role.is_empty())
        .collect();
    roles.sort_unstable();
    roles.dedup();
    Value::from(if roles.is_empty() { "<none>".to_owned() } else { roles.join(",") })
}

fn node_address(row: &Row<'_>, kind: &str) -> Value {
    let addresses = row.list("status.addresses").iter();
    let found = addresses.filter(|address| text_at(address, "type") == kind);
    Value::from(found.map(|address| text_at(address, "address")).next().unwrap_or("<none>"))
}

fn node_kernel(row: &Row<'_>) -> Value {
    let kernel = row.text_or("status.nodeInfo.kernelVersion", "<unknown>");
    Value::from(match row.text("status.nodeInfo.architecture") {
        "" => kernel.to_owned(),
        architecture => format!("{kernel} ({architecture})"),
    })
}

/// The first path that holds something.
fn either<'a>(row: &Row<'a>, paths: &[&str]) -> &'a str {
    paths.iter().map(|path| row.text(path)).find(|text| !text.is_empty()).unwrap_or_default()
}

fn regarding<'a>(row: &Row<'a>, field: &str) -> &'a str {
    either(row, &[&format!("involvedObject.{field}"), &format!("regarding.{field}")])
}

fn event_object(row: &Row<'_>) -> Value {
    let kind = regarding(row, "kind").to_lowercase();
    Value::from(match regarding(row, "name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    })
}

fn event_first_seen(row: &Row<'_>) -> String {
    let first = ["firstTimestamp", "deprecatedFirstTimestamp", "eventTime"];
    times::since(first.iter().find_map(|path| row.at(path)), row.now)
}

fn event_last_seen(row: &Row<'_>) -> Value {
    if row.at("series").is_some() {
        return Value::from(row.since("series.lastObservedTime"));
    }
    let last = ["lastTimestamp", "deprecatedLastTimestamp"];
    Value::from(match last.iter().find_map(|path| row.at(path)) {
        Some(time) => times::since(Some(time), row.now),
        None => event_first_seen(row),
    })
}

fn event_count(row: &Row<'_>) -> Value {
    let count = match row.at("series") {
        Some(_) => row.number("series.count"),
        None => row.number("count").max(row.number("deprecatedCount")).max(1),
    };
    Value::from(count)
}

fn event_source(row: &Row<'_>) -> Value {
    let component = either(
        row,
        &[
            "source.component",
            "deprecatedSource.component",
            "reportingComponent",
            "reportingController",
        ],
    );
    let instance = either(row, &["source.host", "deprecatedSource.host", "reportingInstance"]);
    Value::from(match instance {
        "" => component.to_owned(),
        instance => format!("{component}, {instance}"),
    })
}

fn event_message(row: &Row<'_>) -> Value {
    Value::from(either(row, &["message", "note"]).trim())
}

fn quota_requests(row: &Row<'_>) -> Value {
    quota(row, false)
}

fn quota_limits(row: &Row<'_>) -> Value {
    quota(row, true)
}

fn quota(row: &Row<'_>, limits: bool) -> Value {
    let hard = row.at("status.hard").and_then(Value::as_object);
    let used = row.at("status.used");
    let parts: Vec<String> = hard
        .into_iter()
        .flatten()
        .filter(|(name, _)| name.starts_with("limits.") == limits)
        .map(|(name, hard)| {
            let used = used.and_then(|used| used.get(name)).and_then(Value::as_str).unwrap_or("0");
            format!("{name}: {used}/{}", hard.as_str().unwrap_or("0"))
        })
        .collect();
    Value::from(parts.join(", "))
}

fn healthy<'a>(row: &Row<'a>) -> Option<&'a Value> {
    row.list("conditions").iter().find(|condition| text_at(condition, "type") == "Healthy")
}

fn component_status(row: &Row<'_>) -> Value {
    Value::from(match healthy(row).map(|condition| text_at(condition, "status")) {
        None => "Unknown",
        Some("True") => "Healthy",
        Some(_) => "Unhealthy",
    })
}

fn component(row: &Row<'_>, field: &str) -> Value {
    Value::from(healthy(row).map(|condition| text_at(condition, field)).unwrap_or_default())
}
