//! Quotas and limit ranges.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::check::Errors;
use crate::names;
use crate::quantity::Quantity;
use crate::rules::read::Read;

const SCOPES: [&str; 7] = [
    "BestEffort",
    "CrossNamespacePodAffinity",
    "NotBestEffort",
    "NotTerminating",
    "PriorityClass",
    "Terminating",
    "VolumeAttributesClass",
];

pub(super) fn resource_quota(errors: &mut Errors, object: &Value) {
    let spec = object.at("spec");
    for (name, amount) in spec.map("hard").into_iter().flatten() {
        let path = format!("spec.hard[{name}]");
        let complaints = names::label_key(name);
        if complaints.is_empty() && !name.contains('/') && !quota_resource(name) {
            let why = "must be a standard resource type or fully qualified";
            errors.invalid(&*path, name.as_str(), why);
            errors.invalid(&*path, name.as_str(), "must be a standard resource for quota");
        }
        errors.complaints(&path, name, complaints);
        errors.quantity(&path, name, amount);
    }
    scopes(errors, spec);
    for wanted in spec.at("scopeSelector").list("matchExpressions") {
        scope_selector(errors, "spec.scopeSelector.matchExpressions", wanted);
    }
}

pub(super) fn resource_quota_status(errors: &mut Errors, object: &Value) {
    for field in ["hard", "used"] {
        for (name, amount) in object.at("status").map(field).into_iter().flatten() {
            errors.quantity(&format!("status.{field}[{name}]"), name, amount);
        }
    }
}

fn scopes(errors: &mut Errors, spec: &Value) {
    const PATH: &str = "spec.scopes";
    let scopes: Vec<&str> = spec.list("scopes").iter().filter_map(Value::as_str).collect();
    let shown = || spec.at("scopes").clone();
    for scope in &scopes {
        if !SCOPES.contains(scope) {
            errors.invalid(PATH, shown(), "unsupported scope");
        }
        for name in spec.map("hard").into_iter().flat_map(Map::keys) {
            if !name.contains('/') && quota_resource(name) && !counts(scope, name) {
                errors.invalid(PATH, shown(), "unsupported scope applied to resource");
            }
        }
    }
    for pair in [["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]] {
        if pair.iter().all(|scope| scopes.contains(scope)) {
            errors.invalid(PATH, shown(), "conflicting scopes");
        }
    }
}

/// Whether objects within the scope have any of the resource.
fn counts(scope: &str, resource: &str) -> bool {
    const OF_PODS: [&str; 6] =
        ["cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"];
    match scope {
        "BestEffort" => resource == "pods",
        "VolumeAttributesClass" => {
            ["persistentvolumeclaims", "requests.storage"].contains(&resource)
        }
        scope if SCOPES.contains(&scope) => resource == "pods" || OF_PODS.contains(&resource),
        _ => true,
    }
}

fn scope_selector(errors: &mut Errors, path: &str, wanted: &Value) {
    let (scope, operator) = (wanted.text("scopeName"), wanted.text("operator"));
    let at = |field: &str| format!("{path}.{field}");
    if !SCOPES.contains(&scope) {
        errors.invalid(at("scopeName"), scope, "unsupported scope");
    }
    if !["PriorityClass", "VolumeAttributesClass"].contains(&scope) && operator != "Exists" {
        let why = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, \
                   ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, \
                   ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
        errors.invalid(at("operator"), operator, why);
    }
    let none = wanted.list("values").is_empty();
    match operator {
        "In" | "NotIn" if none => {
            let why = "must be at least one value when `operator` is 'In' or 'NotIn' for scope \
                       selector";
            errors.required(at("values"), why);
        }
        "Exists" | "DoesNotExist" if !none => {
            let why =
                "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
            errors.invalid(at("values"), wanted.at("values").clone(), why);
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        other => errors.invalid(at("operator"), other, "not a valid selector operator"),
    }
}

fn quota_resource(name: &str) -> bool {
    name.starts_with("count/")
        || name.starts_with("requests.")
        || name.starts_with("limits.")
        || name.starts_with("hugepages-")
        || matches!(
            name,
            "cpu"
                | "memory"
                | "ephemeral-storage"
                | "storage"
                | "pods"
                | "services"
                | "replicationcontrollers"
                | "resourcequotas"
                | "secrets"
                | "configmaps"
                | "persistentvolumeclaims"
                | "services.nodeports"
                | "services.loadbalancers"
        )
}

pub(super) fn limit_range(errors: &mut Errors, object: &Value) {
    let mut seen = BTreeSet::new();
    for (index, item) in object.at("spec").list("limits").iter().enumerate() {
        let path = format!("spec.limits[{index}]");
        let kind = item.text("type");
        errors.complaints(&format!("{path}.type"), kind, names::label_key(kind));
        if !kind.contains('/') && !["Pod", "Container", "PersistentVolumeClaim"].contains(&kind) {
            let why = "must be a standard limit type or fully qualified";
            errors.invalid(format!("{path}.type"), kind, why);
        }
        if !seen.insert(kind) {
            errors.duplicate(format!("{path}.type"), kind);
        }
        if kind == "Pod" {
            for field in ["default", "defaultRequest"] {
                if item.map(field).is_some_and(|map| !map.is_empty()) {
                    let why = "may not be specified when `type` is 'Pod'";
                    errors.forbidden(format!("{path}.{field}"), why);
                }
            }
        }
        if kind == "PersistentVolumeClaim" {
            let given = |field: &str| item.at(field).has("storage");
            if !given("min") && !given("max") {
                let why = "either minimum or maximum storage value is required, but neither was \
                           provided";
                errors.required(format!("{path}.limits"), why);
            }
        }
        ordered(errors, &path, item);
        for (name, ratio) in item.map("maxLimitRequestRatio").into_iter().flatten() {
            let Ok(ratio) = Quantity::from_json(ratio) else { continue };
            if Quantity::from_json(&1.into()).is_ok_and(|one| ratio < one) {
                let path = format!("{path}.maxLimitRequestRatio[{name}]");
                errors.invalid(path, ratio.to_string(), format!("ratio {ratio} is less than 1"));
            }
        }
    }
}

/// Least, default request, default and most must come in that order.
fn ordered(errors: &mut Errors, path: &str, item: &Value) {
    let fields = ["min", "max", "default", "defaultRequest"];
    let names: BTreeSet<&String> =
        fields.iter().filter_map(|field| item.map(field)).flat_map(Map::keys).collect();
    for name in names {
        let of = |field: &str| Quantity::from_json(item.at(field).get(name)?).ok();
        let mut check = |low: &str, high: &str, at: &str, shown: &str, words: (&str, &str)| {
            if let (Some(least), Some(most), Some(shown)) = (of(low), of(high), of(shown))
                && least > most
            {
                let why = format!("{} {least} is greater than {} {most}", words.0, words.1);
                errors.invalid(format!("{path}.{at}[{name}]"), shown.to_string(), why);
            }
        };
        check("min", "max", "min", "min", ("min value", "max value"));
        let request = "defaultRequest";
        check("min", request, request, request, ("min value", "default request value"));
        check(request, "max", request, request, ("default request value", "max value"));
        let words = ("default request value", "default limit value");
        check(request, "default", request, request, words);
        check("min", "default", "default", "min", ("min value", "default value"));
        check("default", "max", "default", "max", ("default value", "max value"));
    }
}
