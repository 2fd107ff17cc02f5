//! Reading the metadata of custom resources, which no schema of theirs describes.

use std::sync::OnceLock;

use serde_json::{Map, Value, json};

use crate::schema::{Schemas, decode as go_struct};

const ROOT: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// Makes metadata what Kubernetes' struct would hold: unknown fields, nulls and zero values go,
/// and the paths of the unknown ones (below `metadata`) are returned. Wrong types are an error in
/// the words of Go's decoder.
pub fn decode(metadata: &mut Value) -> Result<Vec<String>, String> {
    let Some(root) = shapes().named(ROOT) else { return Ok(Vec::new()) };
    let unknown = go_struct::decode(metadata, root)?;
    if let Value::Object(map) = metadata {
        drop_zeros(map);
        for owner in
            map.get_mut("ownerReferences").and_then(Value::as_array_mut).into_iter().flatten()
        {
            if let Value::Object(owner) = owner {
                for key in ["apiVersion", "kind", "name", "uid"] {
                    owner.entry(key).or_insert_with(|| "".into());
                }
            }
        }
        for entry in
            map.get_mut("managedFields").and_then(Value::as_array_mut).into_iter().flatten()
        {
            if let Value::Object(entry) = entry {
                drop_zeros(entry);
            }
        }
    }
    Ok(unknown)
}

/// Every scalar here is left out when zero, except the grace period, which is a pointer.
fn drop_zeros(map: &mut Map<String, Value>) {
    map.retain(|key, value| match value {
        Value::String(text) => !text.is_empty(),
        Value::Number(number) => key == "deletionGracePeriodSeconds" || number.as_i64() != Some(0),
        _ => true,
    });
}

fn shapes() -> &'static Schemas {
    static SHAPES: OnceLock<Schemas> = OnceLock::new();
    SHAPES.get_or_init(|| {
        let definitions = definitions();
        let map = definitions.as_object();
        // A test decodes with this, so it loads.
        map.and_then(|map| Schemas::from_definitions(map).ok()).unwrap_or_default()
    })
}

fn definitions() -> Value {
    let meta = "io.k8s.apimachinery.pkg.apis.meta.v1";
    let text = || json!({"type": "string"});
    let number = || json!({"type": "integer", "format": "int64"});
    let of = |name: &str| json!({"$ref": format!("#/components/schemas/{meta}.{name}")});
    let texts = || json!({"type": "object", "additionalProperties": {"type": "string"}});
    json!({
        (format!("{meta}.Time")): {"type": "string", "format": "date-time"},
        (format!("{meta}.FieldsV1")): {"type": "object"},
        (format!("{meta}.OwnerReference")): {
            "type": "object",
            "required": ["apiVersion", "kind", "name", "uid"],
            "properties": {
                "apiVersion": text(), "kind": text(), "name": text(), "uid": text(),
                "controller": {"type": "boolean"}, "blockOwnerDeletion": {"type": "boolean"},
            },
        },
        (format!("{meta}.ManagedFieldsEntry")): {
            "type": "object",
            "properties": {
                "manager": text(), "operation": text(), "apiVersion": text(), "time": of("Time"),
                "fieldsType": text(), "fieldsV1": of("FieldsV1"), "subresource": text(),
            },
        },
        ROOT: {
            "type": "object",
            "properties": {
                "name": text(), "generateName": text(), "namespace": text(), "selfLink": text(),
                "uid": text(), "resourceVersion": text(), "generation": number(),
                "creationTimestamp": of("Time"), "deletionTimestamp": of("Time"),
                "deletionGracePeriodSeconds": number(), "labels": texts(), "annotations": texts(),
                "ownerReferences": {"type": "array", "items": of("OwnerReference")},
                "finalizers": {"type": "array", "items": text()},
                "managedFields": {"type": "array", "items": of("ManagedFieldsEntry")},
            },
        },
    })
}
