//! Where a pod may run: affinities and topology spread.
//!
//! Left out: namespaces of pod affinities, label keys taken from the pod, minimum domains.

use serde_json::Value;

use super::check::Errors;
use crate::names;
use crate::rules::read::Read;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

pub(super) fn affinity(errors: &mut Errors, path: &str, affinity: &Value) {
    let nodes = affinity.at("nodeAffinity");
    let at = format!("{path}.nodeAffinity");
    let required = nodes.at(REQUIRED);
    if !required.is_null() {
        let at = format!("{at}.{REQUIRED}.nodeSelectorTerms");
        let terms = required.list("nodeSelectorTerms");
        if terms.is_empty() {
            errors.required(&*at, "must have at least one node selector term");
        }
        for (index, term) in terms.iter().enumerate() {
            node_term(errors, &format!("{at}[{index}]"), term);
        }
    }
    for (index, term) in nodes.list(PREFERRED).iter().enumerate() {
        let at = format!("{at}.{PREFERRED}[{index}]");
        weight(errors, &at, term);
        node_term(errors, &format!("{at}.preference"), term.at("preference"));
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let at = format!("{path}.{kind}");
        for (index, term) in affinity.at(kind).list(REQUIRED).iter().enumerate() {
            pod_term(errors, &format!("{at}.{REQUIRED}[{index}]"), term);
        }
        for (index, term) in affinity.at(kind).list(PREFERRED).iter().enumerate() {
            let at = format!("{at}.{PREFERRED}[{index}]");
            weight(errors, &at, term);
            pod_term(errors, &format!("{at}.podAffinityTerm"), term.at("podAffinityTerm"));
        }
    }
}

fn weight(errors: &mut Errors, path: &str, term: &Value) {
    let weight = term.number("weight").unwrap_or(0);
    if !(1..=100).contains(&weight) {
        errors.invalid(format!("{path}.weight"), weight, "must be in the range 1-100");
    }
}

fn node_term(errors: &mut Errors, path: &str, term: &Value) {
    for (index, wanted) in term.list("matchExpressions").iter().enumerate() {
        let path = format!("{path}.matchExpressions[{index}]");
        let (key, values) = (wanted.text("key"), wanted.list("values"));
        match wanted.text("operator") {
            "In" | "NotIn" => {
                if values.is_empty() {
                    let why = "must be specified when `operator` is 'In' or 'NotIn'";
                    errors.required(format!("{path}.values"), why);
                }
            }
            "Exists" | "DoesNotExist" => {
                if !values.is_empty() {
                    let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                    errors.forbidden(format!("{path}.values"), why);
                }
            }
            "Gt" | "Lt" => {
                if values.len() != 1 {
                    let why = "must be specified single value when `operator` is 'Lt' or 'Gt'";
                    errors.required(format!("{path}.values"), why);
                }
            }
            other => {
                let why = "not a valid selector operator";
                errors.invalid(format!("{path}.operator"), other, why);
            }
        }
        errors.complaints(&format!("{path}.key"), key, names::label_key(key));
    }
}

fn pod_term(errors: &mut Errors, path: &str, term: &Value) {
    for field in ["labelSelector", "namespaceSelector"] {
        errors.selector(&format!("{path}.{field}"), term.at(field));
    }
    topology_key(errors, &format!("{path}.topologyKey"), term.text("topologyKey"));
    let key = term.text("topologyKey");
    errors.complaints(&format!("{path}.topologyKey"), key, names::label_key(key));
}

fn topology_key(errors: &mut Errors, path: &str, key: &str) {
    if key.is_empty() {
        errors.required(path, "can not be empty");
    }
}

pub(super) fn spread(errors: &mut Errors, path: &str, constraints: &[Value]) {
    for (index, constraint) in constraints.iter().enumerate() {
        let path = format!("{path}[{index}]");
        let skew = constraint.number("maxSkew").unwrap_or(0);
        if skew <= 0 {
            errors.invalid(format!("{path}.maxSkew"), skew, "must be greater than zero");
        }
        topology_key(errors, &format!("{path}.topologyKey"), constraint.text("topologyKey"));
        let otherwise = constraint.text("whenUnsatisfiable");
        let ways = ["DoNotSchedule", "ScheduleAnyway"];
        if !ways.contains(&otherwise) {
            errors.not_supported(format!("{path}.whenUnsatisfiable"), otherwise, &ways);
        }
        errors.selector(&format!("{path}.labelSelector"), constraint.at("labelSelector"));
    }
}
