//! Requests that must be refused, each for one reason: of two, servers may name either first.

use serde_json::{Value, json};

use super::dice::Dice;
use super::kind::Kind;
use crate::conformance::case::Step;

const STRANGER: &str = "11111111-2222-3333-4444-555555555555";

pub(crate) fn step(kind: Kind, name: &str, dice: &mut Dice) -> Step {
    match dice.roll(5) {
        0 => body(kind, name, dice),
        1 => content(kind, name, dice),
        2 => patch(kind, name, dice),
        3 => options(kind, name, dice),
        _ => target(kind, name, dice),
    }
}

/// Bodies that are not of the right kind, or not of the object that the path names.
fn body(kind: Kind, name: &str, dice: &mut Dice) -> Step {
    let mut object = kind.smallest(name);
    let mut set = |pointer: &str, value: Value| {
        if let Some(field) = object.pointer_mut(pointer) {
            *field = value;
        }
    };
    let created = dice.one_in(2);
    match dice.roll(8) {
        0 => set("/apiVersion", json!("v9")),
        1 => set("/kind", json!("Pod")),
        2 => set("/metadata", json!({"name": name, "namespace": "elsewhere"})),
        3 => set("/metadata", json!({})),
        4 => set("/metadata", json!({"name": name, "resourceVersion": "abc"})),
        5 => set("/metadata", json!({"name": name, "resourceVersion": "1"})),
        6 => return raw(kind, name, created, "{"),
        _ => return raw(kind, name, created, "[]"),
    }
    write(kind, name, created, object)
}

fn raw(kind: Kind, name: &str, created: bool, text: &str) -> Step {
    let step = write(kind, name, created, Value::Null);
    Step { body: None, raw: Some(text.to_owned()), ..step }
}

fn write(kind: Kind, name: &str, created: bool, body: Value) -> Step {
    let body = Some(body);
    if created {
        Step { post: Some(kind.path().to_owned()), body, ..Step::default() }
    } else {
        Step { put: Some(format!("{}/{name}", kind.path())), body, ..Step::default() }
    }
}

/// Objects with one value that may not be.
fn content(kind: Kind, name: &str, dice: &mut Dice) -> Step {
    let mut object = kind.smallest(name);
    let fault = match (kind, dice.roll(8)) {
        (_, 0) => json!({"metadata": {"labels": {"tier": "not valid!"}}}),
        (_, 1) => json!({"metadata": {"finalizers": ["not a name"]}}),
        (_, 2) => json!({"metadata": {"annotations": {"note": 5}}}),
        (_, 3) => json!({"metadata": {"labels": {"not a key!": "x"}}}),
        (_, 4) => json!({"colour": "red"}),
        (Kind::ConfigMap, 5) => json!({"data": {"not a key!": "x"}}),
        (Kind::ConfigMap, 6) => json!({"data": {"k": 5}}),
        (Kind::ConfigMap, _) => json!({"binaryData": {"b": "not base64!"}}),
        (Kind::Secret, 5) => json!({"data": {"not a key!": "dg=="}}),
        (Kind::Secret, 6) => json!({"data": {"k": "not base64!"}}),
        (Kind::Secret, _) => json!({"type": "kubernetes.io/tls"}),
        (Kind::StatefulSet, 5) => json!({"spec": {"replicas": -1}}),
        (Kind::StatefulSet, 6) => json!({"spec": {"replicas": "many"}}),
        (Kind::StatefulSet, _) => json!({"spec": {"selector": {"matchLabels": {"app": "y"}}}}),
        (Kind::Widget, 5) => json!({"spec": {"color": "purple"}}),
        (Kind::Widget, 6) => json!({"spec": {"size": "large"}}),
        (Kind::Widget, _) => json!({"spec": {"parts": [{"name": "door"}, {"name": "door"}]}}),
    };
    overlay(&mut object, fault);
    let post = Some(format!("{}?fieldValidation=Strict", kind.path()));
    Step { post, body: Some(object), ..Step::default() }
}

/// Puts the fields of one object into another, which keeps its own beside them.
fn overlay(object: &mut Value, fields: Value) {
    match (object, fields) {
        (Value::Object(object), Value::Object(fields)) => {
            for (name, field) in fields {
                overlay(object.entry(name).or_insert(Value::Null), field);
            }
        }
        (place, value) => *place = value,
    }
}

fn patch(kind: Kind, name: &str, dice: &mut Dice) -> Step {
    let path = format!("{}/{name}", kind.path());
    let step = |media: &str, path: String, body: Value| Step {
        patch: Some(path),
        media: Some(media.to_owned()),
        body: Some(body),
        ..Step::default()
    };
    match dice.roll(9) {
        0 => step("json-patch", path, json!({"op": "remove", "path": "/metadata/labels"})),
        1 => step("json-patch", path, json!([{"op": "dance", "path": "/metadata/labels"}])),
        2 => {
            let test = json!([{"op": "test", "path": "/metadata/name", "value": "z"}]);
            step("json-patch", path, test)
        }
        3 => {
            let rename = json!([{"op": "replace", "path": "/metadata/name", "value": "z"}]);
            step("json-patch", path, rename)
        }
        4 => step("merge", path, json!([1])),
        5 => step("merge", path, json!({"metadata": {"uid": STRANGER}})),
        6 => step("application/x-patch", path, json!({})),
        7 => step("apply", path, Value::Object(kind.identity(name))),
        _ => {
            let path = format!("{path}?fieldManager=alice");
            step("apply", path, Value::Object(kind.identity("z")))
        }
    }
}

fn options(kind: Kind, name: &str, dice: &mut Dice) -> Step {
    let list =
        |query: &str| Step { get: Some(format!("{}?{query}", kind.path())), ..Step::default() };
    let delete = |query: &str| Step {
        delete: Some(format!("{}/{name}{query}", kind.path())),
        ..Step::default()
    };
    match dice.roll(9) {
        0 => list("labelSelector=tier%20in%20("),
        1 => list("labelSelector=not%20valid!"),
        2 => list("fieldSelector=metadata.color=red"),
        3 => list("limit=many"),
        4 => list("limit=1&continue=nonsense"),
        5 => delete("?propagationPolicy=Sideways"),
        6 => delete("?dryRun=Some"),
        7 => {
            let body = Some(json!({"preconditions": {"uid": STRANGER}}));
            Step { body, ..delete("") }
        }
        _ => {
            let post = Some(format!("{}?fieldValidation=Somewhat", kind.path()));
            Step { post, body: Some(kind.smallest(name)), ..Step::default() }
        }
    }
}

/// Paths and methods that are not there.
fn target(kind: Kind, name: &str, dice: &mut Dice) -> Step {
    let path = kind.path();
    let body = || Some(kind.smallest(name));
    match dice.roll(7) {
        0 => Step { get: Some(format!("{path}/none")), ..Step::default() },
        1 => Step { delete: Some(format!("{path}/none")), ..Step::default() },
        2 => Step { get: Some(format!("{path}/{name}/nothing")), ..Step::default() },
        3 => Step { post: Some(format!("{path}/{name}")), body: body(), ..Step::default() },
        4 => Step { put: Some(path.to_owned()), body: body(), ..Step::default() },
        5 => {
            let body = Some(kind.smallest("Not_A_Name"));
            Step { post: Some(path.to_owned()), body, ..Step::default() }
        }
        _ => Step { put: Some(format!("{path}/z")), body: body(), ..Step::default() },
    }
}
