//! Kinds about the API itself: who may do what, certificates, leases, admission, registration.

use serde_json::Value;

use super::Tables;
use super::age::human_duration;
use super::cell::{Cell, Column, Row, age, at, integer, name, number_at, text, text_at, wide};
use crate::selector::LabelSelector;

pub(super) const RBAC: Tables = &[("rolebindings", BINDINGS), ("clusterrolebindings", BINDINGS)];

const BINDINGS: &[Column] = &[
    name(),
    text("Role", Cell::Made(role, "The role given.")),
    age(),
    wide("Users", Cell::Made(|row| subjects(row, "User"), "Users it is given to.")),
    wide("Groups", Cell::Made(|row| subjects(row, "Group"), "Groups it is given to.")),
    wide(
        "ServiceAccounts",
        Cell::Made(|row| subjects(row, "ServiceAccount"), "Service accounts it is given to."),
    ),
];

pub(super) const CERTIFICATES: Tables = &[(
    "certificatesigningrequests",
    &[
        name(),
        age(),
        text("SignerName", Cell::Text("spec.signerName", "<none>")),
        text("Requestor", Cell::Text("spec.username", "")),
        text("RequestedDuration", Cell::Made(requested, "For how long it is wanted.")),
        text("Condition", Cell::Made(csr_condition, "How far the request is.")),
    ],
)];

pub(super) const COORDINATION: Tables = &[
    ("leases", &[name(), text("Holder", Cell::Text("spec.holderIdentity", "")), age()]),
    (
        "leasecandidates",
        &[
            name(),
            text("LeaseName", Cell::Text("spec.leaseName", "")),
            text("BinaryVersion", Cell::Text("spec.binaryVersion", "")),
            text("EmulationVersion", Cell::Text("spec.emulationVersion", "")),
            age(),
        ],
    ),
];

pub(super) const ADMISSION: Tables = &[
    ("mutatingwebhookconfigurations", WEBHOOKS),
    ("validatingwebhookconfigurations", WEBHOOKS),
    (
        "validatingadmissionpolicies",
        &[
            name(),
            integer("Validations", Cell::Count(&["spec.validations"])),
            text("ParamKind", Cell::Made(param_kind, "The kind of its parameters.")),
            age(),
        ],
    ),
    (
        "mutatingadmissionpolicies",
        &[
            name(),
            integer("Mutations", Cell::Count(&["spec.mutations"])),
            text("ParamKind", Cell::Made(param_kind, "The kind of its parameters.")),
            age(),
        ],
    ),
    ("validatingadmissionpolicybindings", POLICY_BINDINGS),
    ("mutatingadmissionpolicybindings", POLICY_BINDINGS),
];

const WEBHOOKS: &[Column] = &[name(), integer("Webhooks", Cell::Count(&["webhooks"])), age()];

const POLICY_BINDINGS: &[Column] = &[
    name(),
    text("PolicyName", Cell::Text("spec.policyName", "")),
    text("ParamRef", Cell::Made(param_ref, "The object with its parameters.")),
    age(),
];

pub(super) const REGISTRATION: Tables = &[(
    "apiservices",
    &[
        name(),
        text("Service", Cell::Made(service, "The service that answers.")),
        text("Available", Cell::Made(available, "Whether it answers.")),
        age(),
    ],
)];

pub(super) const FLOW_CONTROL: Tables = &[
    (
        "flowschemas",
        &[
            name(),
            text("PriorityLevel", Cell::Text("spec.priorityLevelConfiguration.name", "")),
            text("MatchingPrecedence", Cell::Number("spec.matchingPrecedence")),
            text("DistinguisherMethod", Cell::Text("spec.distinguisherMethod.type", "<none>")),
            age(),
            text("MissingPL", Cell::Made(dangling, "Whether its priority level is missing.")),
        ],
    ),
    (
        "prioritylevelconfigurations",
        &[
            name(),
            text("Type", Cell::Text("spec.type", "")),
            text(
                "NominalConcurrencyShares",
                Cell::Made(|row| limited(row, "nominalConcurrencyShares"), "Its share of seats."),
            ),
            text("Queues", Cell::Made(|row| queuing(row, "queues"), "How many queues.")),
            text("HandSize", Cell::Made(|row| queuing(row, "handSize"), "Queues per flow.")),
            text(
                "QueueLengthLimit",
                Cell::Made(|row| queuing(row, "queueLengthLimit"), "The longest a queue may be."),
            ),
            age(),
        ],
    ),
];

fn role(row: &Row<'_>) -> Value {
    Value::from(format!("{}/{}", row.text("roleRef.kind"), row.text("roleRef.name")))
}

fn subjects(row: &Row<'_>, kind: &str) -> Value {
    let names: Vec<String> = row
        .list("subjects")
        .iter()
        .filter(|subject| text_at(subject, "kind") == kind)
        .map(|subject| match kind {
            "ServiceAccount" => {
                format!("{}/{}", text_at(subject, "namespace"), text_at(subject, "name"))
            }
            _ => text_at(subject, "name").to_owned(),
        })
        .collect();
    Value::from(names.join(", "))
}

fn requested(row: &Row<'_>) -> Value {
    let seconds = row.at("spec.expirationSeconds").and_then(Value::as_i64);
    Value::from(seconds.map_or_else(|| "<none>".to_owned(), human_duration))
}

fn csr_condition(row: &Row<'_>) -> Value {
    let has = |kind: &str| row.condition(kind).is_some();
    let mut text = match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (false, true) => "Approved",
        (false, false) => "Pending",
    }
    .to_owned();
    if has("Failed") {
        text.push_str(",Failed");
    }
    if !row.text("status.certificate").is_empty() {
        text.push_str(",Issued");
    }
    Value::from(text)
}

fn param_kind(row: &Row<'_>) -> Value {
    Value::from(match row.at("spec.paramKind") {
        None => "<unset>".to_owned(),
        Some(kind) => format!("{}/{}", text_at(kind, "apiVersion"), text_at(kind, "kind")),
    })
}

fn param_ref(row: &Row<'_>) -> Value {
    let Some(reference) = row.at("spec.paramRef") else { return Value::from("<unset>") };
    let (namespace, name) = (text_at(reference, "namespace"), text_at(reference, "name"));
    Value::from(match (namespace, name, at(reference, "selector")) {
        (_, "", None) => "<unset>".to_owned(),
        (_, "", Some(selector)) => {
            LabelSelector::from_object(Some(selector)).unwrap_or_default().to_string()
        }
        ("", name, _) => format!("*/{name}"),
        (namespace, name, _) => format!("{namespace}/{name}"),
    })
}

fn service(row: &Row<'_>) -> Value {
    Value::from(match row.at("spec.service") {
        None => "Local".to_owned(),
        Some(service) => format!("{}/{}", text_at(service, "namespace"), text_at(service, "name")),
    })
}

fn available(row: &Row<'_>) -> Value {
    let conditions = row.list("status.conditions").iter();
    let found = conditions.into_iter().find(|one| text_at(one, "type") == "Available");
    let Some(condition) = found else { return Value::from("Unknown") };
    let status = text_at(condition, "status");
    Value::from(match (status, text_at(condition, "reason")) {
        ("True", _) | (_, "") => status.to_owned(),
        (status, reason) => format!("{status} ({reason})"),
    })
}

fn dangling(row: &Row<'_>) -> Value {
    Value::from(row.condition("Dangling").unwrap_or("?"))
}

fn limited(row: &Row<'_>, field: &str) -> Value {
    number_in(row.at("spec.limited"), field)
}

fn queuing(row: &Row<'_>, field: &str) -> Value {
    number_in(row.at("spec.limited.limitResponse.queuing"), field)
}

fn number_in(settings: Option<&Value>, field: &str) -> Value {
    match settings {
        None => Value::from("<none>"),
        Some(settings) => Value::from(number_at(settings, field)),
    }
}
