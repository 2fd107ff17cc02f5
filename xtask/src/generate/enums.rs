//! Which strings a field may hold. Kubernetes leaves this out of its recorded OpenAPI documents
//! but publishes it when it runs, so it is read from the Go code that a server publishes from.
//! Reads gofmt's layout line by line; it does not understand Go.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value};

const PROPERTY_INDENT: usize = 5;
/// Of an `Enum:` that is the property's own; deeper ones are its elements'.
const OWN_INDENT: usize = 7;

/// Adds `enum` to the definitions that have one in the Kubernetes at `root`.
pub(super) fn add(root: &Path, definitions: &mut Map<String, Value>) -> Result<()> {
    let path = root.join("pkg/generated/openapi/zz_generated.openapi.go");
    let text = std::fs::read_to_string(&path).context("read the generated OpenAPI code")?;
    let mut definition = String::new();
    let mut property = String::new();
    let mut added = 0;
    for line in text.lines() {
        let indent = line.bytes().take_while(|byte| *byte == b'\t').count();
        let code = line.trim_start_matches('\t');
        if let Some(rest) = line.strip_prefix("func schema_") {
            let name = rest.split('(').next().unwrap_or_default();
            definition = definition_name(name);
        } else if indent == PROPERTY_INDENT
            && let Some(name) = code.strip_suffix(": {")
        {
            property = name.trim_matches('"').to_owned();
        } else if let Some(rest) = code.strip_prefix("Enum:") {
            let Some(schema) = definitions.get_mut(&definition) else { continue };
            let values = rest
                .trim()
                .strip_prefix("[]interface{}{")
                .and_then(|values| values.strip_suffix("},"))
                .with_context(|| format!("understand the values of {definition}.{property}"))?;
            let values: Value = serde_json::from_str(&format!("[{values}]"))?;
            let place = schema
                .get_mut("properties")
                .and_then(|properties| properties.get_mut(&property))
                .and_then(
                    |schema| if indent == OWN_INDENT { Some(schema) } else { element(schema) },
                )
                .and_then(Value::as_object_mut)
                .with_context(|| format!("{definition} has no {property}"))?;
            place.insert("enum".into(), values);
            added += 1;
        }
    }
    ensure!(added > 0, "{} has no enumerations any more", path.display());
    Ok(())
}

/// `k8sio_api_core_v1_Pod` → `io.k8s.api.core.v1.Pod`. Not a name of anything for functions of
/// packages that have no kinds with enumerations.
fn definition_name(function: &str) -> String {
    let dotted = function.replace('_', ".");
    match dotted.strip_prefix("k8sio.") {
        Some(rest) => format!("io.k8s.{rest}"),
        None if dotted.starts_with("pkg.apis.apiextensions.") => {
            format!("io.k8s.apiextensions-apiserver.{dotted}")
        }
        None => dotted,
    }
}

fn element(schema: &mut Value) -> Option<&mut Value> {
    let key = if schema.get("items").is_some() { "items" } else { "additionalProperties" };
    schema.get_mut(key)
}
