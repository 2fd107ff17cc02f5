//! The object that a template is to be, and how the one that is there differs from it.

use alloc::borrow::ToOwned as _;
use alloc::string::String;

use cleat_api::configurationpolicy::{ConfigurationPolicySpec, ENCRYPTION_IV, STOPPED};
use cleat_api::policy::PolicyTemplate;
use cleat_api::policy::name::{
    CLUSTER_NAME, CLUSTER_NAMESPACE, OLD_CLUSTER_NAME, OLD_CLUSTER_NAMESPACE, PARENT_POLICY,
};
use serde_json::{Map, Value, json};

use super::observed::{Observed, Policy};

const KIND: &str = "Policy";

/// The template as an object of its own.
pub(crate) fn object(seen: &Observed, local: &Policy, template: &PolicyTemplate) -> Value {
    let definition = &template.object_definition;
    let text = |pointer: &str| definition.pointer(pointer).cloned().unwrap_or(Value::Null);
    let namespace = &seen.place.cluster_namespace;
    let label = |name: &str| {
        let labels = local.object.pointer("/metadata/labels");
        let found = labels.and_then(|labels| labels.get(name)).and_then(Value::as_str);
        found.unwrap_or(namespace).to_owned()
    };
    let mut labels = map(definition.pointer("/metadata/labels"));
    for (name, value) in [
        (PARENT_POLICY, seen.name.clone()),
        (CLUSTER_NAME, label(CLUSTER_NAME)),
        (OLD_CLUSTER_NAME, label(CLUSTER_NAME)),
        (CLUSTER_NAMESPACE, label(CLUSTER_NAMESPACE)),
        (OLD_CLUSTER_NAMESPACE, label(CLUSTER_NAMESPACE)),
    ] {
        labels.insert(name.to_owned(), Value::String(value));
    }
    let mut metadata = json!({
        "name": text("/metadata/name"),
        "namespace": namespace,
        "labels": labels,
        "ownerReferences": [{
            "apiVersion": "policy.open-cluster-management.io/v1",
            "kind": KIND,
            "name": seen.name,
            "uid": local.uid,
            "controller": true,
            "blockOwnerDeletion": true,
        }],
    });
    let mut annotations = map(definition.pointer("/metadata/annotations"));
    // What the hub encrypted can be read only with the vector that it sent along.
    let told = local.object.pointer("/metadata/annotations");
    if let Some(vector) = told.and_then(|told| told.get(ENCRYPTION_IV)) {
        annotations.insert(ENCRYPTION_IV.to_owned(), vector.clone());
    }
    if let (false, Some(metadata)) = (annotations.is_empty(), metadata.as_object_mut()) {
        metadata.insert("annotations".to_owned(), Value::Object(annotations));
    }
    json!({
        "apiVersion": text("/apiVersion"),
        "kind": text("/kind"),
        "metadata": metadata,
        "spec": spec(local, definition.get("spec")),
    })
}

fn map(value: Option<&Value>) -> Map<String, Value> {
    value.and_then(Value::as_object).cloned().unwrap_or_default()
}

/// The policy's word on remediation counts, except for a template that is never to change anything.
fn spec(local: &Policy, own: Option<&Value>) -> Value {
    let mut spec = map(own);
    let said = spec.get("remediationAction").and_then(Value::as_str).unwrap_or_default();
    let action = match &local.spec.remediation_action {
        _ if said.eq_ignore_ascii_case("informonly") => Some("inform".to_owned()),
        Some(action) if !action.is_empty() => Some(action.clone()),
        _ => None,
    };
    if let Some(action) = action {
        spec.insert("remediationAction".to_owned(), Value::String(action));
    }
    Value::Object(spec)
}

/// The name of the policy that owns an object.
pub(crate) fn owner(object: &Value) -> Option<&str> {
    policy_reference(object)?.get("name").and_then(Value::as_str)
}

pub(crate) fn owner_uid(object: &Value) -> Option<&str> {
    policy_reference(object)?.get("uid").and_then(Value::as_str)
}

fn policy_reference(object: &Value) -> Option<&Value> {
    let owners = object.pointer("/metadata/ownerReferences")?.as_array()?;
    owners.iter().find(|owner| owner.get("kind").and_then(Value::as_str) == Some(KIND))
}

/// What is there with what is wanted written over it; `None` if it is as wanted.
pub(crate) fn changed(live: &Value, wanted: &Value) -> Option<Value> {
    let kind = wanted.get("kind").and_then(Value::as_str).unwrap_or_default();
    let spec = !is_same_spec(kind, live.get("spec"), wanted.get("spec"));
    let covers = |pointer: &str| {
        let found = live.pointer(pointer).and_then(Value::as_object);
        let all = wanted.pointer(pointer).and_then(Value::as_object).into_iter().flatten();
        all.into_iter().all(|(key, value)| found.and_then(|found| found.get(key)) == Some(value))
    };
    let owners = wanted.pointer("/metadata/ownerReferences");
    let owned = live.pointer("/metadata/ownerReferences") == owners;
    let stopped = is_stopped(live);
    if !spec && owned && !stopped && covers("/metadata/labels") && covers("/metadata/annotations") {
        return None;
    }
    let mut next = live.clone();
    let fields = next.as_object_mut()?;
    if spec {
        fields.insert("spec".to_owned(), wanted.get("spec").cloned().unwrap_or_default());
    }
    let metadata = fields.get_mut("metadata")?.as_object_mut()?;
    metadata.insert("ownerReferences".to_owned(), owners.cloned().unwrap_or_default());
    for field in ["labels", "annotations"] {
        let mut all = map(metadata.get(field));
        all.remove(STOPPED);
        all.extend(map(wanted.pointer("/metadata").and_then(|own| own.get(field))));
        if !all.is_empty() || metadata.contains_key(field) {
            metadata.insert(field.to_owned(), Value::Object(all));
        }
    }
    Some(next)
}

/// What servers fill in is no difference.
fn is_same_spec(kind: &str, live: Option<&Value>, wanted: Option<&Value>) -> bool {
    if live == wanted {
        return true;
    }
    if kind != "ConfigurationPolicy" {
        return false;
    }
    let read = |spec: Option<&Value>| {
        serde_json::from_value::<ConfigurationPolicySpec>(spec?.clone()).ok()
    };
    match (read(live), read(wanted)) {
        (Some(live), Some(wanted)) => live == wanted,
        _ => false,
    }
}

/// The object as one that looks at nothing until it is told to again. `None`: it is.
pub(crate) fn stopped(live: &Value) -> Option<Value> {
    let never = json!({ "compliant": "never", "noncompliant": "never" });
    if live.pointer("/spec/evaluationInterval") == Some(&never) && is_stopped(live) {
        return None;
    }
    let mut next = live.clone();
    next.get_mut("spec")?.as_object_mut()?.insert("evaluationInterval".to_owned(), never);
    let metadata = next.get_mut("metadata")?.as_object_mut()?;
    let mut annotations = map(metadata.get("annotations"));
    annotations.insert(STOPPED.to_owned(), Value::String("true".to_owned()));
    metadata.insert("annotations".to_owned(), Value::Object(annotations));
    Some(next)
}

/// Whether it was stopped; whoever only wants it to look at nothing does not say so.
fn is_stopped(live: &Value) -> bool {
    let annotations = live.pointer("/metadata/annotations");
    annotations.is_some_and(|annotations| annotations.get(STOPPED).is_some())
}
