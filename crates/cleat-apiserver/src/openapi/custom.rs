//! The definitions of a custom kind and of its list, with what every object has put in.

use serde_json::{Map, Value, json};

use super::REFERENCE;
use crate::resource::{ResourceType, Version};

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";

/// `stable.example.com`, `v1`, `CronTab` → `com.example.stable.v1.CronTab`.
pub(super) fn definition_name(group: &str, version: &str, kind: &str) -> String {
    let mut parts: Vec<&str> = group.split('.').rev().collect();
    parts.extend([version, kind]);
    parts.join(".")
}

/// The two definitions of one version, by name.
pub(super) fn definitions(resource: &ResourceType, version: &str) -> Vec<(String, Value)> {
    let Some(found) = resource.version(version) else { return Vec::new() };
    let name = |kind: &str| definition_name(&resource.group, version, kind);
    let mut object = object_schema(found);
    let mut list = list_schema(&name(&resource.kind));
    for (schema, kind) in [(&mut object, &resource.kind), (&mut list, &resource.list_kind)] {
        let gvk = json!([{ "group": resource.group, "version": version, "kind": kind }]);
        schema.insert("x-kubernetes-group-version-kind".into(), gvk);
        if !found.selectable_fields.is_empty() {
            let fields: Vec<Value> = found
                .selectable_fields
                .iter()
                .map(|path| json!({ "fieldPath": path.strip_prefix('.').unwrap_or(path) }))
                .collect();
            schema.insert("x-kubernetes-selectable-fields".into(), fields.into());
        }
    }
    vec![
        (name(&resource.kind), Value::Object(object)),
        (name(&resource.list_kind), Value::Object(list)),
    ]
}

/// Without a schema nothing may be said about properties: clients would take those for all.
fn object_schema(version: &Version) -> Map<String, Value> {
    let Some(root) = &version.schema else {
        return Map::from_iter([("type".to_owned(), "object".into())]);
    };
    let mut schema = root.schema().to_openapi();
    let properties = schema.entry("properties").or_insert_with(|| Map::new().into());
    if let Value::Object(properties) = properties {
        properties.values_mut().for_each(complete_embedded);
        insert_type_and_meta(properties, OBJECT_META);
    }
    schema
}

fn list_schema(items: &str) -> Map<String, Value> {
    let mut properties = Map::new();
    let item = json!({ "$ref": format!("{REFERENCE}{items}") });
    properties.insert("items".into(), json!({ "type": "array", "items": item }));
    insert_type_and_meta(&mut properties, LIST_META);
    Map::from_iter([
        ("type".to_owned(), "object".into()),
        ("required".to_owned(), json!(["items"])),
        ("properties".to_owned(), properties.into()),
    ])
}

fn insert_type_and_meta(properties: &mut Map<String, Value>, meta: &str) {
    properties.insert("apiVersion".into(), json!({ "type": "string" }));
    properties.insert("kind".into(), json!({ "type": "string" }));
    let reference = json!({ "$ref": format!("{REFERENCE}{meta}") });
    properties.insert("metadata".into(), json!({ "allOf": [reference] }));
}

/// Whole objects inside an object get the same, and must name their kind. As deep as the schema,
/// which loading has bounded.
fn complete_embedded(schema: &mut Value) {
    let Value::Object(map) = schema else { return };
    if let Some(Value::Object(properties)) = map.get_mut("properties") {
        properties.values_mut().for_each(complete_embedded);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = map.get_mut(key) {
            complete_embedded(inner);
        }
    }
    if map.get("x-kubernetes-embedded-resource") != Some(&Value::Bool(true)) {
        return;
    }
    let properties = map.entry("properties").or_insert_with(|| Map::new().into());
    if let Value::Object(properties) = properties {
        insert_type_and_meta(properties, OBJECT_META);
    }
    let required = map.entry("required").or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(required) = required {
        for key in ["kind", "apiVersion"] {
            if !required.iter().any(|given| given == key) {
                required.push(key.into());
            }
        }
    }
}
