//! Behaviour of server-side apply, told as histories of one object.

mod builtins;
mod ownership;
mod properties;
mod sets;

use serde_json::{Value, json};

use super::{Manager, Target, server_side_apply, track_update};
use crate::schema::{Id, Schemas};
use crate::status::Status;

pub(super) const TIME: &str = "2026-11-15T10:00:00Z";

/// One object of a custom kind, and everything that happened to it.
pub(super) struct Thing {
    schemas: Schemas,
    root: Option<Id>,
    pub(super) live: Option<Value>,
    pub(super) time: String,
}

/// A kind with every sort of field.
pub(super) fn schema() -> Value {
    let text = json!({"type": "string"});
    let item = json!({
        "type": "object", "required": ["name"],
        "properties": {
            "name": text, "value": text, "size": {"type": "integer"},
            "ports": {
                "type": "array", "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["port", "protocol"],
                "items": {"type": "object", "properties": {
                    "port": {"type": "integer"}, "name": text,
                    "protocol": {"type": "string", "default": "TCP"}
                }}
            }
        }
    });
    json!({"type": "object", "properties": {
        "apiVersion": text, "kind": text, "metadata": {"type": "object"},
        "spec": {"type": "object", "properties": {
            "text": text, "count": {"type": "integer"}, "flag": {"type": "boolean"},
            "either": {"x-kubernetes-int-or-string": true},
            "items": {
                "type": "array", "items": item, "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"]
            },
            "set": {"type": "array", "items": text, "x-kubernetes-list-type": "set"},
            "list": {"type": "array", "items": text},
            "atom": {"type": "object", "x-kubernetes-map-type": "atomic",
                "properties": {"a": text, "b": text}},
            "map": {"type": "object", "additionalProperties": text},
            "maps": {"type": "object", "additionalProperties": {
                "type": "object", "properties": {"a": text, "b": text}}},
            "nested": {"type": "object", "properties": {
                "inner": {"type": "object", "properties": {"a": text, "b": text}}}},
            "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "any": {"x-kubernetes-preserve-unknown-fields": true}
        }},
        "status": {"type": "object", "properties": {"phase": text}}
    }})
}

impl Thing {
    pub(super) fn new() -> Self {
        let (schemas, root) = Schemas::from_single(&schema()).unwrap();
        Self { schemas, root: Some(root), live: None, time: TIME.to_owned() }
    }

    pub(super) fn schemaless() -> Self {
        Self { root: None, ..Self::new() }
    }

    fn with<R>(
        &self,
        name: &str,
        subresource: &str,
        run: impl FnOnce(&Target<'_>, &Manager<'_>) -> R,
    ) -> R {
        let reset: &[&[&str]] =
            if subresource == "status" { &[&["metadata"], &["spec"]] } else { &[&["status"]] };
        let schema = self.root.map(|root| self.schemas.root(root));
        let versions = &["example.com/v1", "example.com/v2"];
        let target = Target { kind: "Thing", schema, reset, api_versions: versions };
        let api_version = "example.com/v1";
        run(&target, &Manager { name, subresource, api_version, time: &self.time })
    }

    pub(super) fn try_apply(&mut self, name: &str, spec: Value, force: bool) -> Result<(), Status> {
        let config = whole(json!({"spec": spec}));
        self.try_apply_object(name, &config, force)
    }

    pub(super) fn try_apply_object(
        &mut self,
        name: &str,
        config: &Value,
        force: bool,
    ) -> Result<(), Status> {
        let live = self.live.as_ref();
        let new = self.with(name, "", |target, manager| {
            server_side_apply(live, config, target, manager, force)
        })?;
        self.live = Some(new);
        Ok(())
    }

    #[track_caller]
    pub(super) fn apply(&mut self, name: &str, spec: Value) {
        self.try_apply(name, spec, false).unwrap();
    }

    #[track_caller]
    pub(super) fn force(&mut self, name: &str, spec: Value) {
        self.try_apply(name, spec, true).unwrap();
    }

    /// An update that leaves everything but the spec alone.
    pub(super) fn update(&mut self, name: &str, spec: Value) {
        let mut new = self.live.clone().unwrap_or_else(|| whole(json!({})));
        new["spec"] = spec;
        self.update_object(name, "", new);
    }

    pub(super) fn update_object(&mut self, name: &str, subresource: &str, mut new: Value) {
        let live = self.live.as_ref();
        self.with(name, subresource, |target, manager| {
            track_update(live, &mut new, target, manager);
        });
        self.live = Some(new);
    }

    pub(super) fn spec(&self) -> &Value {
        &self.live.as_ref().unwrap()["spec"]
    }

    pub(super) fn entries(&self) -> Vec<Value> {
        let managed = &self.live.as_ref().unwrap()["metadata"]["managedFields"];
        managed.as_array().cloned().unwrap_or_default()
    }

    /// What a manager manages of the spec; null if nothing.
    pub(super) fn managed(&self, name: &str) -> Value {
        let entry = self.entries().into_iter().find(|entry| entry["manager"] == name);
        entry.map(|entry| entry["fieldsV1"]["f:spec"].clone()).unwrap_or_default()
    }

    #[track_caller]
    pub(super) fn conflicts(&mut self, name: &str, spec: Value) -> Vec<String> {
        let status = self.try_apply(name, spec, false).unwrap_err();
        assert_eq!((status.code, &*status.reason), (409, "Conflict"));
        status.details.causes.iter().map(|cause| cause.field.clone()).collect()
    }
}

/// An object with the given parts.
pub(super) fn whole(parts: Value) -> Value {
    let mut object = json!({
        "apiVersion": "example.com/v1", "kind": "Thing",
        "metadata": {"name": "x", "namespace": "ns"}
    });
    for (key, value) in parts.as_object().unwrap() {
        object[key] = value.clone();
    }
    object
}
