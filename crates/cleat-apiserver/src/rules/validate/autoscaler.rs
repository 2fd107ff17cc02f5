//! Autoscalers.
//!
//! Left out: targets of metrics that are not resources, policies of behaviours.

use serde_json::Value;

use super::check::Errors;
use crate::names;
use crate::rules::read::Read;

pub(super) fn autoscaler(errors: &mut Errors, object: &Value) {
    let spec = object.at("spec");
    let (least, most) = (spec.number("minReplicas"), spec.number("maxReplicas").unwrap_or(0));
    if let Some(least) = least.filter(|least| *least < 1) {
        errors.invalid("spec.minReplicas", least, "must be greater than or equal to 1");
    }
    if most == 0 {
        errors.required("spec.maxReplicas", "must be set and greater than 0");
    } else if most < 0 {
        errors.invalid("spec.maxReplicas", most, "must be greater than or equal to 1");
    }
    if least.is_some_and(|least| most < least) {
        errors.invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`");
    }
    for field in ["kind", "name"] {
        let path = format!("spec.scaleTargetRef.{field}");
        match spec.at("scaleTargetRef").text(field) {
            "" => errors.required(path, ""),
            text => errors.complaints(&path, text, names::path_segment(text)),
        }
    }
    let version = spec.at("scaleTargetRef").text("apiVersion");
    match version.matches('/').count() {
        0 => errors.invalid(
            "spec.scaleTargetRef.apiVersion",
            version,
            "apiVersion must specify API group",
        ),
        1 => {}
        _ => errors.invalid(
            "spec.scaleTargetRef.apiVersion",
            version,
            format!("unexpected GroupVersion string: {version}"),
        ),
    }
    for (index, metric) in spec.list("metrics").iter().enumerate() {
        metric_source(errors, &format!("spec.metrics[{index}]"), metric);
    }
    for direction in ["scaleUp", "scaleDown"] {
        let rules = spec.at("behavior").at(direction);
        let path = format!("spec.behavior.{direction}.stabilizationWindowSeconds");
        match rules.number("stabilizationWindowSeconds") {
            Some(seconds) if seconds < 0 => {
                errors.invalid(path, seconds, "must be greater than or equal to zero");
            }
            Some(seconds) if seconds > 3600 => {
                errors.invalid(path, seconds, "must be less than or equal to 3600");
            }
            _ => {}
        }
    }
    let countable = |metric: &Value| ["Object", "External"].contains(&metric.text("type"));
    if least == Some(0) && !spec.list("metrics").iter().any(countable) {
        let why = "must specify at least one Object or External metric to support scaling to zero \
                   replicas";
        errors.forbidden("spec.metrics", why);
    }
}

fn metric_source(errors: &mut Errors, path: &str, metric: &Value) {
    let kind = metric.text("type");
    let field = match kind {
        "ContainerResource" => "containerResource",
        "External" => "external",
        "Object" => "object",
        "Pods" => "pods",
        "Resource" => "resource",
        "" => return errors.required(format!("{path}.type"), "must specify a metric source type"),
        other => {
            let kinds = ["ContainerResource", "External", "Object", "Pods", "Resource"];
            // Upstream finds it twice.
            errors.not_supported(format!("{path}.type"), other, &kinds);
            return errors.not_supported(format!("{path}.type"), other, &kinds);
        }
    };
    let path = format!("{path}.{field}");
    if !metric.has(field) {
        return errors.required(path, "must populate information for the given metric source");
    }
    if !["Resource", "ContainerResource"].contains(&kind) {
        return;
    }
    let source = metric.at(field);
    if source.text("name").is_empty() {
        errors.required(format!("{path}.name"), "must specify a resource name");
    }
    let target = source.at("target");
    if !target.has("averageUtilization") && !target.has("averageValue") {
        let why = "must set either a target raw value or a target utilization";
        errors.required(format!("{path}.target.averageUtilization"), why);
    }
}
