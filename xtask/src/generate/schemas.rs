//! `schemas.json`: the OpenAPI v3 definitions of every served group version, by name.
//!
//! Descriptions are dropped: that prose is Kubernetes' own, and nothing in the server reads it.
//! Everything about the shape stays as published.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value};

use super::read_json;
use super::resources::Served;

const GVK: &str = "x-kubernetes-group-version-kind";

/// Reads `api/openapi-spec/v3` of the Kubernetes at `root`.
pub(super) fn read(root: &Path, served: &Served) -> Result<Map<String, Value>> {
    let folder = root.join("api/openapi-spec/v3");
    let mut definitions = Map::new();
    for (group, version) in &served.group_versions {
        let file = match &**group {
            "" => format!("api__{version}_openapi.json"),
            group => format!("apis__{group}__{version}_openapi.json"),
        };
        let mut document = read_json(&folder.join(&file))?;
        let schemas = document
            .pointer_mut("/components/schemas")
            .and_then(Value::as_object_mut)
            .with_context(|| format!("{file} has no schemas"))?;
        for (name, schema) in std::mem::take(schemas) {
            add(&mut definitions, name, schema)?;
        }
    }
    Ok(definitions)
}

/// The kinds that every group has (DeleteOptions, WatchEvent) differ between documents in the
/// groups they list: only the core group's entry is kept, which is the first of each.
fn add(definitions: &mut Map<String, Value>, name: String, mut schema: Value) -> Result<()> {
    strip(&mut schema);
    if let Some(kinds) = schema.get_mut(GVK).and_then(Value::as_array_mut) {
        kinds.truncate(1);
    }
    if let Some(known) = definitions.get(&name) {
        ensure!(*known == schema, "{name} is not the same in two documents");
    }
    definitions.insert(name, schema);
    Ok(())
}

fn strip(schema: &mut Value) {
    let Value::Object(map) = schema else { return };
    map.remove("description");
    for (key, value) in map {
        match (key.as_str(), value) {
            ("properties", Value::Object(properties)) => properties.values_mut().for_each(strip),
            ("allOf" | "anyOf" | "oneOf", Value::Array(branches)) => {
                branches.iter_mut().for_each(strip);
            }
            ("items" | "additionalProperties" | "not", inner) => strip(inner),
            _ => {}
        }
    }
}

/// The definition of a kind.
pub(super) fn find(
    definitions: &Map<String, Value>,
    group: &str,
    version: &str,
    kind: &str,
) -> Option<String> {
    let is_it = |gvk: &Value| {
        gvk.get("group").and_then(Value::as_str) == Some(group)
            && gvk.get("version").and_then(Value::as_str) == Some(version)
            && gvk.get("kind").and_then(Value::as_str) == Some(kind)
    };
    definitions
        .iter()
        .find(|(_, schema)| {
            schema.get(GVK).and_then(Value::as_array).is_some_and(|all| all.iter().any(is_it))
        })
        .map(|(name, _)| name.clone())
}
