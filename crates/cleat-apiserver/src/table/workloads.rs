//! Kinds that run something: controllers of pods, jobs, and what governs them.

use jiff::Timestamp;
use serde_json::Value;

use super::Tables;
use super::age::{between, human_duration};
use super::cell::{
    Cell, Row, age, at, boolean, first_few, int_or_string, integer, list_at, name, text, text_at,
    wide,
};
use super::pods;
use crate::selector::LabelSelector;

pub(super) const CORE: Tables = &[
    ("pods", pods::PODS),
    (
        "podtemplates",
        &[
            name(),
            text("Containers", Cell::Made(|row| row.containers(BARE, "name"), CONTAINERS)),
            text("Images", Cell::Made(|row| row.containers(BARE, "image"), IMAGES)),
            text("Pod Labels", Cell::Made(|row| row.labels("template.metadata.labels"), LABELS)),
        ],
    ),
    (
        "replicationcontrollers",
        &[
            name(),
            integer("Desired", Cell::Number("spec.replicas")),
            integer("Current", Cell::Number("status.replicas")),
            integer("Ready", Cell::Number("status.readyReplicas")),
            age(),
            wide("Containers", Cell::Made(container_names, CONTAINERS)),
            wide("Images", Cell::Made(container_images, IMAGES)),
            wide("Selector", Cell::Made(|row| row.labels("spec.selector"), SELECTOR)),
        ],
    ),
];

pub(super) const APPS: Tables = &[
    (
        "deployments",
        &[
            name(),
            text("Ready", Cell::Made(ready_of_desired, "Ready replicas, of those wanted.")),
            text("Up-to-date", Cell::Number("status.updatedReplicas")),
            text("Available", Cell::Number("status.availableReplicas")),
            age(),
            wide("Containers", Cell::Made(container_names, CONTAINERS)),
            wide("Images", Cell::Made(container_images, IMAGES)),
            wide("Selector", Cell::Made(deployment_selector, SELECTOR)),
        ],
    ),
    (
        "replicasets",
        &[
            name(),
            integer("Desired", Cell::Number("spec.replicas")),
            integer("Current", Cell::Number("status.replicas")),
            integer("Ready", Cell::Number("status.readyReplicas")),
            age(),
            wide("Containers", Cell::Made(container_names, CONTAINERS)),
            wide("Images", Cell::Made(container_images, IMAGES)),
            wide("Selector", Cell::Made(selector, SELECTOR)),
        ],
    ),
    (
        "statefulsets",
        &[
            name(),
            text("Ready", Cell::Made(ready_of_desired, "Ready replicas, of those wanted.")),
            age(),
            wide("Containers", Cell::Made(container_names, CONTAINERS)),
            wide("Images", Cell::Made(container_images, IMAGES)),
        ],
    ),
    (
        "daemonsets",
        &[
            name(),
            integer("Desired", Cell::Number("status.desiredNumberScheduled")),
            integer("Current", Cell::Number("status.currentNumberScheduled")),
            integer("Ready", Cell::Number("status.numberReady")),
            integer("Up-to-date", Cell::Number("status.updatedNumberScheduled")),
            integer("Available", Cell::Number("status.numberAvailable")),
            text(
                "Node Selector",
                Cell::Made(
                    |row| row.labels("spec.template.spec.nodeSelector"),
                    "Labels of the nodes it runs on.",
                ),
            ),
            age(),
            wide("Containers", Cell::Made(container_names, CONTAINERS)),
            wide("Images", Cell::Made(container_images, IMAGES)),
            wide("Selector", Cell::Made(selector, SELECTOR)),
        ],
    ),
    (
        "controllerrevisions",
        &[
            name(),
            text("Controller", Cell::Made(controller, "Whose revision it is.")),
            text("Revision", Cell::Number("revision")),
            age(),
        ],
    ),
];

pub(super) const BATCH: Tables = &[
    (
        "jobs",
        &[
            name(),
            text("Status", Cell::Made(job_status, "How far the job is.")),
            text("Completions", Cell::Made(job_completions, "Pods completed, of those wanted.")),
            text("Duration", Cell::Made(job_duration, "How long it has taken.")),
            age(),
            wide("Containers", Cell::Made(container_names, CONTAINERS)),
            wide("Images", Cell::Made(container_images, IMAGES)),
            wide("Selector", Cell::Made(selector, SELECTOR)),
        ],
    ),
    (
        "cronjobs",
        &[
            name(),
            text("Schedule", Cell::Text("spec.schedule", "")),
            text("Timezone", Cell::Text("spec.timeZone", "<none>")),
            boolean("Suspend", Cell::Made(suspended, "Whether it is paused.")),
            integer("Active", Cell::Count(&["status.active"])),
            text("Last Schedule", Cell::Made(last_schedule, "Time since it last ran.")),
            age(),
            wide("Containers", Cell::Made(|row| row.containers(CRON, "name"), CONTAINERS)),
            wide("Images", Cell::Made(|row| row.containers(CRON, "image"), IMAGES)),
            wide(
                "Selector",
                Cell::Made(|row| row.selector("spec.jobTemplate.spec.selector"), SELECTOR),
            ),
        ],
    ),
];

pub(super) const AUTOSCALING: Tables = &[(
    "horizontalpodautoscalers",
    &[
        name(),
        text("Reference", Cell::Made(scale_target, "What is scaled.")),
        text("Targets", Cell::Made(metrics, "Current and wanted values of its metrics.")),
        text("MinPods", Cell::Made(min_pods, "The fewest pods it scales to.")),
        text("MaxPods", Cell::Number("spec.maxReplicas")),
        text("Replicas", Cell::Number("status.currentReplicas")),
        age(),
    ],
)];

pub(super) const POLICY: Tables = &[(
    "poddisruptionbudgets",
    &[
        name(),
        text(
            "Min Available",
            Cell::Made(|row| bound(row, "spec.minAvailable"), "The fewest pods left."),
        ),
        text(
            "Max Unavailable",
            Cell::Made(|row| bound(row, "spec.maxUnavailable"), "The most pods disrupted."),
        ),
        integer("Allowed Disruptions", Cell::Number("status.disruptionsAllowed")),
        age(),
    ],
)];

pub(super) const SCHEDULING: Tables = &[(
    "priorityclasses",
    &[
        name(),
        integer("Value", Cell::Number("value")),
        boolean("Global-Default", Cell::Flag("globalDefault", false)),
        age(),
        text("PreemptionPolicy", Cell::Text("preemptionPolicy", "")),
    ],
)];

pub(super) const NODE: Tables =
    &[("runtimeclasses", &[name(), text("Handler", Cell::Text("handler", "")), age()])];

const TEMPLATE: &str = "spec.template.spec.containers";
const BARE: &str = "template.spec.containers";
const CRON: &str = "spec.jobTemplate.spec.template.spec.containers";
const CONTAINERS: &str = "Names of the template's containers.";
const IMAGES: &str = "Images of the template's containers.";
const LABELS: &str = "Labels of the template's pods.";
const SELECTOR: &str = "Labels of the pods it owns.";

fn container_names(row: &Row<'_>) -> Value {
    row.containers(TEMPLATE, "name")
}

fn container_images(row: &Row<'_>) -> Value {
    row.containers(TEMPLATE, "image")
}

fn selector(row: &Row<'_>) -> Value {
    row.selector("spec.selector")
}

fn deployment_selector(row: &Row<'_>) -> Value {
    Value::from(match LabelSelector::from_object(row.at("spec.selector")) {
        Ok(selector) => selector.to_string(),
        Err(_) => "<invalid>".to_owned(),
    })
}

fn ready_of_desired(row: &Row<'_>) -> Value {
    Value::from(format!("{}/{}", row.number("status.readyReplicas"), row.number("spec.replicas")))
}

fn controller(row: &Row<'_>) -> Value {
    let owners = row.list("metadata.ownerReferences").iter();
    let owner =
        owners.into_iter().find(|owner| at(owner, "controller") == Some(&Value::Bool(true)));
    let Some(owner) = owner else { return Value::from("<none>") };
    let kind = text_at(owner, "kind").to_lowercase();
    let name = text_at(owner, "name");
    Value::from(match text_at(owner, "apiVersion").split_once('/') {
        Some((group, _)) => format!("{kind}.{}/{name}", group.to_lowercase()),
        None => format!("{kind}/{name}"),
    })
}

fn job_status(row: &Row<'_>) -> Value {
    let is = |kind: &str| row.condition(kind) == Some("True");
    Value::from(if is("Complete") {
        "Complete"
    } else if is("Failed") {
        "Failed"
    } else if row.is_deleting() {
        "Terminating"
    } else if is("Suspended") {
        "Suspended"
    } else if is("FailureTarget") {
        "FailureTarget"
    } else if is("SuccessCriteriaMet") {
        "SuccessCriteriaMet"
    } else {
        "Running"
    })
}

fn job_completions(row: &Row<'_>) -> Value {
    let done = row.number("status.succeeded");
    let parallelism = row.number("spec.parallelism");
    Value::from(match row.at("spec.completions").and_then(Value::as_i64) {
        Some(wanted) => format!("{done}/{wanted}"),
        None if parallelism > 1 => format!("{done}/1 of {parallelism}"),
        None => format!("{done}/1"),
    })
}

fn job_duration(row: &Row<'_>) -> Value {
    let time = |path: &str| row.text(path).parse::<Timestamp>().ok();
    let Some(start) = time("status.startTime") else { return Value::from("") };
    let end = time("status.completionTime").unwrap_or(row.now);
    Value::from(human_duration(between(start, end)))
}

fn suspended(row: &Row<'_>) -> Value {
    Value::from(match row.at("spec.suspend").and_then(Value::as_bool) {
        None => "<unset>",
        Some(true) => "True",
        Some(false) => "False",
    })
}

fn last_schedule(row: &Row<'_>) -> Value {
    Value::from(match row.at("status.lastScheduleTime") {
        None => "<none>".to_owned(),
        Some(_) => row.since("status.lastScheduleTime"),
    })
}

fn bound(row: &Row<'_>, path: &str) -> Value {
    Value::from(int_or_string(row.at(path), "N/A"))
}

fn scale_target(row: &Row<'_>) -> Value {
    let target = |field: &str| row.text(&format!("spec.scaleTargetRef.{field}"));
    Value::from(format!("{}/{}", target("kind"), target("name")))
}

fn min_pods(row: &Row<'_>) -> Value {
    Value::from(int_or_string(row.at("spec.minReplicas"), "<unset>"))
}

fn metrics(row: &Row<'_>) -> Value {
    let specs = row.list("spec.metrics");
    if specs.is_empty() {
        // The first version of this kind knew processors only.
        let Some(target) = row.at("spec.targetCPUUtilizationPercentage") else {
            return Value::from("<none>");
        };
        let current = percent(row.at("status.currentCPUUtilizationPercentage"), "<unknown>");
        return Value::from(format!("cpu: {current}/{}", percent(Some(target), "<auto>")));
    }
    let statuses = list_at(row.object, "status.currentMetrics");
    let all: Vec<String> =
        specs.iter().enumerate().map(|(index, spec)| metric(spec, statuses.get(index))).collect();
    Value::from(first_few(&all, 2, ", "))
}

fn metric(spec: &Value, status: Option<&Value>) -> String {
    let source = match text_at(spec, "type") {
        "External" => "external",
        "Pods" => "pods",
        "Object" => "object",
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        _ => return "<unknown type>".to_owned(),
    };
    let target = |field: &str| at(spec, &format!("{source}.target.{field}"));
    let current =
        |field: &str| status.and_then(|status| at(status, &format!("{source}.current.{field}")));
    let quantity = |value: Option<&Value>, absent: &str| int_or_string(value, absent);
    let named = text_at(spec, &format!("{source}.name"));
    let has_status = status.is_some_and(|status| at(status, source).is_some());
    let absent = if has_status { "0" } else { "<unknown>" };
    match (source, target("averageValue")) {
        ("resource" | "containerResource", Some(wanted)) => {
            let now = quantity(current("averageValue"), absent);
            format!("{named}: {now}/{}", quantity(Some(wanted), "0"))
        }
        ("resource" | "containerResource", None) => {
            let now = percent(current("averageUtilization"), "<unknown>");
            format!("{named}: {now}/{}", percent(target("averageUtilization"), "<auto>"))
        }
        ("pods", wanted) => {
            format!("{}/{}", quantity(current("averageValue"), absent), quantity(wanted, "0"))
        }
        (_, Some(wanted)) => {
            let now = quantity(current("averageValue"), "<unknown>");
            format!("{now}/{} (avg)", quantity(Some(wanted), "0"))
        }
        (_, None) => {
            format!("{}/{}", quantity(current("value"), absent), quantity(target("value"), "0"))
        }
    }
}

fn percent(value: Option<&Value>, absent: &str) -> String {
    value.and_then(Value::as_i64).map_or_else(|| absent.to_owned(), |value| format!("{value}%"))
}
