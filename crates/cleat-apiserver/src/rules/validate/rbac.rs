//! Roles and bindings.

use serde_json::Value;

use super::check::{Errors, picks, shown_struct};
use crate::names;
use crate::rules::read::Read;

const GROUP: &str = "rbac.authorization.k8s.io";

pub(super) fn role(errors: &mut Errors, object: &Value, namespaced: bool) {
    for (index, rule) in object.list("rules").iter().enumerate() {
        policy_rule(errors, &format!("rules[{index}]"), rule, namespaced);
    }
    let aggregation = object.at("aggregationRule");
    if aggregation.is_null() || namespaced {
        return;
    }
    let path = "aggregationRule.clusterRoleSelectors";
    let selectors = aggregation.list("clusterRoleSelectors");
    if selectors.is_empty() {
        let why = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        errors.required(path, why);
    }
    for (index, selector) in selectors.iter().enumerate() {
        let path = format!("{path}[{index}]");
        errors.selector(&path, selector);
        if picks(selector, &Value::Null).is_none() {
            errors.invalid(path, Value::Null, "invalid label selector.");
        }
    }
}

fn policy_rule(errors: &mut Errors, path: &str, rule: &Value, namespaced: bool) {
    if rule.list("verbs").is_empty() {
        errors.required(format!("{path}.verbs"), "verbs must contain at least one value");
    }
    let has = |field: &str| !rule.list(field).is_empty();
    if has("nonResourceURLs") {
        let (at, urls) = (format!("{path}.nonResourceURLs"), rule.at("nonResourceURLs"));
        if namespaced {
            let why = "namespaced rules cannot apply to non-resource URLs";
            errors.invalid(&*at, urls.clone(), why);
        }
        if has("apiGroups") || has("resources") || has("resourceNames") {
            let why = "rules cannot apply to both regular resources and non-resource URLs";
            errors.invalid(at, urls.clone(), why);
        }
        return;
    }
    if !has("apiGroups") {
        let why = "resource rules must supply at least one api group";
        errors.required(format!("{path}.apiGroups"), why);
    }
    if !has("resources") {
        let why = "resource rules must supply at least one resource";
        errors.required(format!("{path}.resources"), why);
    }
}

pub(super) fn binding(errors: &mut Errors, object: &Value, namespaced: bool) {
    let reference = object.at("roleRef");
    if reference.text("apiGroup") != GROUP {
        errors.not_supported("roleRef.apiGroup", reference.text("apiGroup"), &[GROUP]);
    }
    let kinds: &[&str] = if namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    if !kinds.contains(&reference.text("kind")) {
        errors.not_supported("roleRef.kind", reference.text("kind"), kinds);
    }
    match reference.text("name") {
        "" => errors.required("roleRef.name", ""),
        name => errors.complaints("roleRef.name", name, names::path_segment(name)),
    }
    for (index, subject) in object.list("subjects").iter().enumerate() {
        self::subject(errors, &format!("subjects[{index}]"), subject, namespaced);
    }
}

fn subject(errors: &mut Errors, path: &str, subject: &Value, namespaced: bool) {
    let (name, group) = (subject.text("name"), subject.text("apiGroup"));
    if name.is_empty() {
        errors.required(format!("{path}.name"), "");
    }
    match subject.text("kind") {
        "ServiceAccount" => {
            if !name.is_empty() {
                errors.subdomain(&format!("{path}.name"), name);
            }
            if !group.is_empty() {
                errors.not_supported(format!("{path}.apiGroup"), group, &[""]);
            }
            if !namespaced && subject.text("namespace").is_empty() {
                errors.required(format!("{path}.namespace"), "");
            }
        }
        "User" | "Group" => {
            if group != GROUP {
                errors.not_supported(format!("{path}.apiGroup"), group, &[GROUP]);
            }
        }
        kind => {
            let kinds = ["ServiceAccount", "User", "Group"];
            errors.not_supported(format!("{path}.kind"), kind, &kinds);
        }
    }
}

pub(super) fn binding_update(errors: &mut Errors, old: &Value, new: &Value) {
    let reference = new.at("roleRef");
    if old.at("roleRef") != reference {
        let shown = shown_struct(&[
            ("APIGroup", reference.at("apiGroup")),
            ("Kind", reference.at("kind")),
            ("Name", reference.at("name")),
        ]);
        errors.invalid("roleRef", shown, "cannot change roleRef");
    }
}
