//! Bodies of the fuzz targets: each takes any bytes and panics only if a promise is broken.
//!
//! `cargo fuzz` looks for such bytes (`fuzz/` at the root of the repository), and tests try the same
//! few thousand each time. Not for anybody else's use.

mod request;

pub use request::request;

use serde_json::{Value, json};

use crate::apply::{Manager, Target, server_side_apply, track_update};
use crate::builtin;
use crate::patch::{self, Language, Patch};
use crate::path::request_info;
use crate::query::{ContinueToken, DeleteOptions, ListOptions, Query, WriteOptions};
use crate::schema::cel::{Scope, check_message, check_rule, condition, validate};
use crate::schema::{Schema, Schemas};
use crate::selector::{FieldSelector, LabelSelector};

const LANGUAGES: [Language; 4] =
    [Language::Json, Language::Merge, Language::Strategic, Language::Apply];

/// A method and what is asked for, `GET /api/v1/pods?limit=5`: understood in one way, or refused.
pub fn request_path(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let (method, uri) = text.split_once(' ').unwrap_or(("GET", text));
    let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
    let query = Query::parse(query);
    if let Ok(info) = request_info(method, path, &query) {
        assert_eq!(
            info.parts.first().map_or("", String::as_str),
            info.resource,
            "RBAC and dispatch are told of different resources"
        );
        let selected = matches!(&*info.verb, "list" | "watch");
        assert!(selected || !info.name_from_selector, "a name that is not in the path");
        for ty in builtin::resources().iter().filter(|ty| *ty.plural == *info.resource) {
            let _ = ListOptions::checked(&query, info.watch_in_path, ty, &info.version);
        }
    }
    let _ = (WriteOptions::create(&query), WriteOptions::update(&query));
    let _ = (WriteOptions::patch(&query, true), WriteOptions::patch(&query, false));
    let _ = DeleteOptions::from_query(&query);
    if let Ok(token) = ContinueToken::decode(query.text("continue")) {
        assert_eq!(ContinueToken::decode(&token.encode()), Ok(token), "a list goes on elsewhere");
    }
}

/// A Pod, an empty line and a patch of any kind: tried as each of them.
pub fn patches(bytes: &[u8]) {
    let (current, body) = parts(bytes).unwrap_or((&[][..], bytes));
    let current: Option<Value> = serde_json::from_slice(current).ok().filter(Value::is_object);
    let current = current.unwrap_or_else(pod);
    let schema = builtin::schemas().named("io.k8s.api.core.v1.Pod");
    for language in LANGUAGES {
        let Ok(patch) = patch::read(language, body) else { continue };
        if let Patch::Apply(config) = &patch {
            apply(&current, config, schema);
            continue;
        }
        let changed = patch::apply_patch(&current, &patch, schema);
        if let (Patch::Merge(_), Ok(changed)) = (&patch, &changed) {
            assert!(changed.is_object(), "a merge made something else of an object");
        }
        if let Ok(mut new) = changed {
            track_update(Some(&current), &mut new, &target(schema), &MANAGER);
        }
    }
}

const MANAGER: Manager<'static> =
    Manager { name: "somebody", subresource: "", api_version: "v1", time: "2026-11-16T10:00:00Z" };

fn target(schema: Option<Schema<'_>>) -> Target<'_> {
    Target { kind: "Pod", schema, reset: &[&["status"]], api_versions: &["v1"] }
}

fn apply(current: &Value, config: &Value, schema: Option<Schema<'_>>) {
    for live in [None, Some(current)] {
        for force in [false, true] {
            let merged = server_side_apply(live, config, &target(schema), &MANAGER, force);
            if let Ok(merged) = merged {
                assert!(merged.is_object(), "a configuration made something else of an object");
            }
        }
    }
}

/// A selector of labels or of fields: what is understood can be written, and is understood again.
pub fn selectors(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    if let Ok(selector) = LabelSelector::parse(text) {
        selector.matches(&pod());
        let printed = selector.to_string();
        let again = LabelSelector::parse(&printed).map(|again| again.to_string());
        assert_eq!(again.as_ref(), Ok(&printed), "labels");
    }
    if let Ok(selector) = FieldSelector::parse(text) {
        selector.matches(&pod());
        let again = FieldSelector::parse(&selector.to_string());
        assert_eq!(again.as_ref().map(sorted_terms), Ok(sorted_terms(&selector)), "fields");
    }
    if let Ok(object) = serde_json::from_str::<Value>(text) {
        LabelSelector::check_object(&object, "selector");
        if let Ok(selector) = LabelSelector::from_object(Some(&object)) {
            selector.matches(&pod());
        }
    }
}

/// Terms come in the order of their text as it was given, which is not kept.
fn sorted_terms(selector: &FieldSelector) -> Vec<String> {
    let mut terms: Vec<String> = selector.terms().iter().map(|term| format!("{term:?}")).collect();
    terms.sort();
    terms
}

/// An expression, and if an empty line follows, an object: it ends, with a value or an error.
pub fn cel(bytes: &[u8]) {
    let (source, object) = parts(bytes).unwrap_or((bytes, &[][..]));
    let Ok(source) = str::from_utf8(source) else { return };
    let object = serde_json::from_slice(object).unwrap_or_else(|_| pod());
    if let Ok(condition) = condition(source, &["object", "oldObject", "request"]) {
        let mut scope = Scope::default();
        scope.set("object", &object);
        scope.set("oldObject", &Value::Null);
        scope.set("request", &json!({"operation": "CREATE", "userInfo": {"username": "a"}}));
        let _ = scope.holds(&condition);
    }
    let schema = json!({
        "type": "object",
        "properties": {
            "metadata": {"type": "object"},
            "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "list": {"type": "array", "items": {"type": "string"}},
            "map": {"type": "object", "additionalProperties": {"type": "integer"}},
            "when": {"type": "string", "format": "date-time"},
        },
        "x-kubernetes-validations": [{"rule": source, "messageExpression": source}],
    });
    let Ok((schemas, root)) = Schemas::from_single(&schema) else { return };
    let _ = check_rule(source, schemas.at(root), true);
    let _ = check_message(source, schemas.at(root), true);
    validate(&object, Some(&pod()), schemas.at(root));
}

/// What stands before the first empty line, and what behind it.
fn parts(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = bytes.windows(2).position(|pair| pair == b"\n\n")?;
    Some((bytes.get(..at)?, bytes.get(at + 2..)?))
}

fn pod() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "web-1", "namespace": "shop", "labels": {"app": "web", "empty": "", "n": "7"},
            "finalizers": ["a", "b"],
        },
        "spec": {
            "nodeName": "n1",
            "containers": [
                {"name": "web", "image": "web:1", "ports": [{"containerPort": 80}]},
                {"name": "log", "image": "log:1", "args": ["-v"]},
            ],
            "tolerations": [{"key": "k", "operator": "Exists"}],
        },
        "status": {"phase": "Running", "podIPs": [{"ip": "10.0.0.1"}]},
    })
}
