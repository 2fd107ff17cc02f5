//! Everything that happens to a custom resource between the parsed body and its defaults.
//!
//! Built-in kinds take the other road, [`super::decode::coerce`].

use serde_json::{Number, Value};

use super::{Schema, decode, default, prune};
use crate::{
    metadata,
    status::{Shown, Status},
};

/// Puts a custom resource into the shape its schema allows: metadata is read as Kubernetes' own,
/// unknown fields and forbidden nulls go, numbers are written as Go would. Returns the paths of
/// unknown fields in the order upstream reports them. Defaults are not applied.
pub fn coerce_custom(
    object: &mut Value,
    schema: Schema<'_>,
    kind: &str,
    version: &str,
) -> Result<Vec<String>, Status> {
    let refuse = |why: String| decode::refusal(kind, version, &why);
    whole_numbers(object);
    let mut unknown = Vec::new();
    if let Some(meta) = object.get_mut("metadata") {
        if meta.is_null() {
            *meta = Value::Object(serde_json::Map::new());
        }
        let found = metadata::decode(meta).map_err(refuse)?;
        unknown.extend(found.into_iter().map(|path| format!("metadata.{path}")));
    }
    unknown.extend(prune::prune(object, schema));
    default::prune_nulls_below_root(object, schema);
    let mut embedded = Vec::new();
    coerce_embedded(object, schema, &mut String::new(), &mut embedded).map_err(refuse)?;
    embedded.sort_unstable();
    unknown.extend(embedded);
    Ok(unknown)
}

/// Reads the metadata of embedded objects as Kubernetes' own.
fn coerce_embedded(
    value: &mut Value,
    schema: Schema<'_>,
    path: &mut String,
    unknown: &mut Vec<String>,
) -> Result<(), String> {
    let node = schema.node();
    let length = path.len();
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let field = |path: &str| match path {
                    "" => key.clone(),
                    path => format!("{path}.{key}"),
                };
                if node.embedded_resource {
                    match key.as_str() {
                        "apiVersion" | "kind" if !value.is_string() => {
                            let shown = Shown(value);
                            let field = field(path);
                            return Err(format!(
                                "{field}: Invalid value: {shown}: must be a string"
                            ));
                        }
                        "metadata" => {
                            let before = value.clone();
                            let found = metadata::decode(value).map_err(|why| {
                                let shown = Shown(&before);
                                format!("{}: Invalid value: {shown}: {why}", field(path))
                            })?;
                            let prefix = field(path);
                            unknown
                                .extend(found.into_iter().map(|below| format!("{prefix}.{below}")));
                        }
                        _ => {}
                    }
                }
                let Some(below) = schema.property(key) else { continue };
                match node.properties.contains_key(key.as_str()) {
                    true if length > 0 => path.push_str(&format!(".{key}")),
                    true => path.push_str(key),
                    false => path.push_str(&format!("[{key}]")),
                }
                coerce_embedded(value, below, path, unknown)?;
                path.truncate(length);
            }
        }
        Value::Array(items) => {
            let Some(below) = schema.items() else { return Ok(()) };
            for (index, item) in items.iter_mut().enumerate() {
                path.push_str(&format!("[{index}]"));
                coerce_embedded(item, below, path, unknown)?;
                path.truncate(length);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    Ok(())
}

/// `1.0` is written as `1` by Go; storing it that way keeps later comparisons honest.
fn whole_numbers(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            if let Some(whole) = number.as_f64().and_then(exact) {
                *number = Number::from(whole);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Object(map) => map.values_mut().for_each(whole_numbers),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the range is checked first")]
fn exact(value: f64) -> Option<i64> {
    (value.fract() == 0.0 && value.abs() < 9.0e18).then_some(value as i64)
}

#[cfg(test)]
mod tests;
