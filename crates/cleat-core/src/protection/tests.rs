//! What is tried here by tables; `histories` tries it against a world that does not wait.

mod cases;
mod found;
mod histories;
mod told;

use alloc::sync::Arc;
use std::string::String;
use std::vec;
use std::vec::Vec;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Criterion, Decision, Knowledge, Request, Service, Sight, Tally, decide};
use crate::id::Id;

fn id(group: &str, resource: &str, namespace: &str, name: &str) -> Id {
    let [group, resource, namespace, name] = [group, resource, namespace, name].map(String::from);
    Id { group, resource, namespace, name }
}

fn provider() -> Id {
    id("apps", "deployments", "web", "server")
}

fn definition() -> Id {
    id("apiextensions.k8s.io", "customresourcedefinitions", "", "cools.my.group")
}

fn finalizer() -> Criterion {
    Criterion::Finalizer {
        group: "my.group".into(),
        resource: "cools".into(),
        finalizer: "my.group/clean".into(),
    }
}

/// The proposal's: a deployment that serves the finalizer of a kind.
fn service() -> Service {
    Service {
        name: "for-server".into(),
        uid: "cs".into(),
        provider: provider(),
        criteria: vec![finalizer(), Criterion::Object(definition())],
        recorded: "u1".into(),
        ..Service::default()
    }
}

fn present(uid: &str) -> Sight {
    Sight::Present { uid: uid.into(), terminating: false }
}

/// The service alone, its provider there, and everything proven to be satisfied.
fn satisfied(service: Service) -> Knowledge {
    let mut known = Knowledge {
        services: Arc::from([Arc::new(service)]),
        services_proven: true,
        ..Knowledge::default()
    };
    known.objects.insert(provider(), present("u1"));
    known.objects.insert(definition(), Sight::Absent);
    known.objects_proven.extend([provider(), definition()]);
    known.tallies.insert(finalizer(), Tally::None);
    known
}

fn some(count: usize) -> Tally {
    Tally::Some { count, exact: true, samples: vec!["a/one".into(), "a/two".into()] }
}

fn review(operation: &str, id: &Id, uid: &str) -> Value {
    let object = json!({ "metadata": { "namespace": id.namespace, "name": id.name, "uid": uid } });
    let (new, old) = match operation {
        "DELETE" => (Value::Null, object),
        "CREATE" => (object, Value::Null),
        _ => (object.clone(), object),
    };
    json!({
        "uid": "review", "operation": operation, "name": id.name, "namespace": id.namespace,
        "resource": { "group": id.group, "version": "v1", "resource": id.resource },
        "userInfo": { "username": "somebody" }, "dryRun": false,
        "object": new, "oldObject": old, "options": { "kind": "DeleteOptions" },
    })
}

fn request(operation: &str, id: &Id, uid: &str) -> Request {
    Request::read(&review(operation, id, uid)).unwrap()
}

fn now() -> Timestamp {
    Timestamp::from_second(1_000_000).unwrap()
}

fn decided(request: &Request, known: &Knowledge) -> Decision {
    decide(request, known, now())
}

fn denied(request: &Request, known: &Knowledge) -> String {
    match decided(request, known) {
        Decision::Deny(denial) => denial.message(),
        other => panic!("expected a denial, got {other:?}"),
    }
}

fn allowed(request: &Request, known: &Knowledge) -> Vec<String> {
    match decided(request, known) {
        Decision::Allow { warnings } => warnings,
        other => panic!("expected it to pass, got {other:?}"),
    }
}

/// A status after a merge patch that names all of its fields.
fn patched(patch: &Value) -> Value {
    match patch {
        Value::Object(fields) => {
            let left = fields.iter().filter(|(_, value)| !value.is_null());
            left.map(|(field, value)| (field.clone(), patched(value))).collect()
        }
        Value::Array(items) => items.clone().into(),
        other => other.clone(),
    }
}
