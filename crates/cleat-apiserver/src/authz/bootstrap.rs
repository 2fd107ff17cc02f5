//! The roles and bindings every cluster starts with.
//!
//! `data/rbac.json` holds what kube-apiserver 1.36 creates with its default feature gates, one
//! object per line. Writing them into a store, and when, is the server's business.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use serde_json::{Map, Value};

use super::{Rule, aggregated_rules, rule};

const AUTO_UPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";

static OBJECTS: LazyLock<Vec<Value>> = LazyLock::new(|| {
    // The file is part of this crate and a test reads it, so it parses.
    let mut objects: Vec<Value> =
        serde_json::from_str(include_str!("../../data/rbac.json")).unwrap_or_default();
    // `admin` gathers from `edit`, and `edit` from `view`: each round carries rules one role on.
    for _ in 0..3 {
        let mut roles: Vec<Value> =
            objects.iter().filter(|object| kind_of(object) == "ClusterRole").cloned().collect();
        roles.sort_by(|a, b| name_of(a).cmp(name_of(b)));
        for object in objects.iter_mut().filter(|object| kind_of(object) == "ClusterRole") {
            let rules = aggregated_rules(object, roles.iter());
            if let (Some(rules), Some(object)) = (rules, object.as_object_mut()) {
                object.insert("rules".into(), rules);
            }
        }
    }
    objects
});

static RULES: LazyLock<BTreeMap<&'static str, Arc<[Rule]>>> = LazyLock::new(|| {
    let roles = OBJECTS.iter().filter(|object| kind_of(object) == "ClusterRole");
    roles.map(|role| (name_of(role), rule::rules_of(role).into())).collect()
});

/// Cluster roles, their bindings, then the roles and bindings of `kube-system` and `kube-public`.
/// Aggregated roles have their rules already.
pub fn objects() -> &'static [Value] {
    &OBJECTS
}

/// What to write where an object of [`objects`] exists already: what it lost is added again, what
/// was added to it stays. `None` when nothing is to be done, or the object says hands off.
pub fn reconciled(existing: &Value, wanted: &Value) -> Option<Value> {
    let protect = existing.pointer("/metadata/annotations").and_then(|a| a.get(AUTO_UPDATE));
    if protect.and_then(Value::as_str) == Some("false") {
        return None;
    }
    let mut result = existing.clone();
    let object = result.as_object_mut()?;
    let metadata = object.entry("metadata").or_insert_with(|| Map::new().into());
    for key in ["annotations", "labels"] {
        let Some(wanted) = wanted.pointer(&format!("/metadata/{key}")) else { continue };
        let (Some(metadata), Some(wanted)) = (metadata.as_object_mut(), wanted.as_object()) else {
            continue;
        };
        let present = metadata.entry(key).or_insert_with(|| Map::new().into());
        if let Some(present) = present.as_object_mut() {
            for (key, value) in wanted {
                present.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
    }
    if wanted.get("roleRef").is_some() {
        add_missing_subjects(object, wanted);
    } else {
        let held = rule::rules_of(existing);
        let missing = rule::uncovered(held.iter(), &rule::rules_of(wanted));
        // Aggregated rules come back by aggregation.
        if !missing.is_empty() && wanted.get("aggregationRule").is_none() {
            let rules = object.entry("rules").or_insert_with(|| Value::Array(Vec::new()));
            if rules.is_null() {
                *rules = Value::Array(Vec::new());
            }
            if let Some(rules) = rules.as_array_mut() {
                rules.extend(missing.iter().map(Rule::to_json));
            }
        }
        match wanted.get("aggregationRule") {
            Some(wanted) => {
                object.entry("aggregationRule").or_insert_with(|| wanted.clone());
            }
            None => {
                object.remove("aggregationRule");
            }
        }
    }
    (result != *existing).then_some(result)
}

fn add_missing_subjects(object: &mut Map<String, Value>, wanted: &Value) {
    let wanted = wanted.get("subjects").and_then(Value::as_array);
    for subject in wanted.into_iter().flatten() {
        let subjects = object.entry("subjects").or_insert_with(|| Value::Array(Vec::new()));
        if subjects.is_null() {
            *subjects = Value::Array(Vec::new());
        }
        if let Some(subjects) = subjects.as_array_mut().filter(|all| !all.contains(subject)) {
            subjects.push(subject.clone());
        }
    }
}

/// The rules in memory shared by every server of the process, when they are the bootstrap ones.
pub(crate) fn shared(role: &str, rules: Vec<Rule>) -> Arc<[Rule]> {
    match RULES.get(role) {
        Some(shared) if **shared == *rules => shared.clone(),
        _ => rules.into(),
    }
}

fn kind_of(object: &Value) -> &str {
    object.get("kind").and_then(Value::as_str).unwrap_or_default()
}

fn name_of(object: &Value) -> &str {
    object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default()
}
