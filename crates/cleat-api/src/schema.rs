//! Pieces of schemas that no Rust type can express by itself.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

/// A Kubernetes object whose content is nobody's business but its own kind's.
pub(crate) fn embedded_resource(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "description": "Any Kubernetes object, complete as it would be given to kubectl apply.",
        "type": "object",
        "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true,
    })
}

/// Conditions, at most one of each type.
pub(crate) fn conditions_by_type(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": condition(),
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    })
}

/// Conditions as a plain list.
pub(crate) fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": condition() })
}

/// What every condition in Kubernetes looks like.
fn condition() -> Value {
    json!({
        "description": "One aspect of the current state.",
        "type": "object",
        "required": ["type", "status", "lastTransitionTime", "reason", "message"],
        "properties": {
            "type": {
                "description": "The aspect, in CamelCase.",
                "type": "string",
                "maxLength": 316,
                "pattern": LABEL_KEY,
            },
            "status": {
                "description": "Whether it holds.",
                "type": "string",
                "enum": ["True", "False", "Unknown"],
            },
            "observedGeneration": {
                "description": "The generation of the object this was said about.",
                "type": "integer",
                "format": "int64",
                "minimum": 0,
            },
            "lastTransitionTime": {
                "description": "When the status last changed.",
                "type": "string",
                "format": "date-time",
            },
            "reason": {
                "description": "Why, for programs.",
                "type": "string",
                "minLength": 1,
                "maxLength": 1024,
                "pattern": r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
            },
            "message": {
                "description": "Why, for people.",
                "type": "string",
                "maxLength": 32768,
            },
        },
    })
}

/// A label key: an optional DNS subdomain and a slash, then a name.
pub(crate) const LABEL_KEY: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$";

/// A DNS subdomain.
pub(crate) const SUBDOMAIN: &str =
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)$";

pub(crate) fn default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
