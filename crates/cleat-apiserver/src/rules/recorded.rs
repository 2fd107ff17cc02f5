//! What a real kube-apiserver (v1.36.4) answered, held against what the rules make of the same.
//!
//! `recorded/*.jsonl` were taken with `dryRun=All` by an administrator. Metadata is not validated
//! here, and neither are the kinds other modules answer for. Go walks maps in random order, so
//! causes are compared as a set.

use serde_json::{Value, json};

use super::*;
use crate::builtin;
use crate::resource::ResourceType;
use crate::status::Status;

struct Anything;

impl Addresses for Anything {
    fn cluster_ip(&mut self) -> Option<String> {
        Some("10.0.0.1".into())
    }

    fn node_port(&mut self) -> Option<u16> {
        Some(30000)
    }
}

#[test]
fn new_objects_come_back_as_from_kubernetes() {
    for line in include_str!("recorded/create.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let mut object = case["given"].clone();
        let (ty, version) = resource(&object);
        let api_version = ty.api_version(version);
        let ours = match unreadable(&api_version, &ty.kind, &object) {
            Some(why) => {
                let kind = &ty.kind;
                let words =
                    format!("{kind} in version \"{version}\" cannot be handled as a {kind}");
                Status::bad_request(format!("{words}: {why}")).to_json()
            }
            None => {
                default(&api_version, &ty.kind, &mut object);
                object["metadata"]["uid"] = json!("UID");
                with_env(|env| prepare_create(ty, version, &mut object, env));
                answer(ty, validate_create(ty, &object), object)
            }
        };
        assert_eq!(masked(&ours), masked(&case["answer"]), "{line}");
    }
}

#[test]
fn updates_come_back_as_from_kubernetes() {
    for line in include_str!("recorded/update.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let (old, mut object) = (&case["old"], case["given"].clone());
        let (ty, version) = resource(&object);
        let subresource = case["subresource"].as_str();
        default(&ty.api_version(version), &ty.kind, &mut object);
        with_env(|env| prepare_update(ty, version, subresource, old, &mut object, env));
        let ours = answer(ty, validate_update(ty, subresource, old, &object), object);
        assert_eq!(masked(&ours), masked(&case["answer"]), "{line}");
    }
}

fn resource(object: &Value) -> (&'static ResourceType, &'static str) {
    let api_version = object["apiVersion"].as_str().unwrap();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let kind = object["kind"].as_str().unwrap();
    let all = builtin::resources().iter();
    let ty = all.map(|ty| &**ty).find(|ty| &*ty.group == group && &*ty.kind == kind).unwrap();
    (ty, &ty.version(version).unwrap().name)
}

fn with_env(run: impl FnOnce(&mut Env<'_>)) {
    let extra = Default::default();
    let groups = ["system:masters".to_owned(), "system:authenticated".to_owned()];
    run(&mut Env {
        now: "2026-11-15T21:07:54Z".parse().unwrap(),
        user: Requester { name: "admin", uid: "admin", groups: &groups, extra: &extra },
        addresses: &mut Anything,
        service_account: Some(&json!({})),
        suffix: "abcde",
    });
}

fn answer(ty: &ResourceType, errors: Vec<crate::status::FieldError>, object: Value) -> Value {
    if errors.is_empty() {
        return object;
    }
    let name = object["metadata"]["name"].as_str().unwrap();
    Status::invalid(&ty.group, &ty.kind, name, &errors).to_json()
}

/// Without what differs from one server, or one second, to the next.
fn masked(value: &Value) -> Value {
    const VOLATILE: [&str; 8] = [
        "clusterIP",
        "clusterIPs",
        "creationTimestamp",
        "lastPhaseTransitionTime",
        "lastTransitionTime",
        "nodePort",
        "resourceVersion",
        "uid",
    ];
    match value {
        Value::Object(map) => {
            let kept = map.iter().filter(|(key, _)| !VOLATILE.contains(&&***key));
            let mut kept: serde_json::Map<String, Value> =
                kept.map(|(key, value)| (key.clone(), masked(value))).collect();
            if let Some(Value::Array(causes)) = kept.get_mut("causes") {
                causes.sort_by_key(Value::to_string);
            }
            // The message lists the causes in the same random order.
            let many = kept.get("details").is_some_and(|details| {
                details["causes"].as_array().is_some_and(|causes| causes.len() > 1)
            });
            if many {
                kept.remove("message");
            }
            Value::Object(kept)
        }
        Value::Array(items) => items.iter().map(masked).collect(),
        other => other.clone(),
    }
}
