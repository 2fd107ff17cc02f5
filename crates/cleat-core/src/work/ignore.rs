//! What server-side apply sends when a work leaves some fields to others (`ignoreFields`).
//!
//! An object that is not there yet gets the whole manifest. One that is there gets it without the
//! fields ignored `OnSpokePresent`; fields ignored `OnSpokeChange` stay in, and are set again only
//! when the manifest changes. Whether it has, an annotation with the hash of what was sent tells.
//!
//! A JSONPath that cannot be followed is as good as one that selects nothing. Pointers and jq
//! expressions that cannot are errors. Evaluation is bounded by steps, not by a clock.

mod applied;
mod jq;
mod pointer;
#[cfg(test)]
mod tests;

use alloc::borrow::Cow;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString as _};

use cleat_api::manifestwork::CONFIG_SPEC_HASH;
pub use cleat_api::manifestwork::{IgnoreField, IgnoreFieldsCondition};
use cleat_dialect::jsonpath::{JsonPath, Missing};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

/// More paths than this for one object are refused.
const MOST_PATHS: usize = 256;

/// What to apply.
#[derive(Clone, Debug, PartialEq)]
pub struct ApplyBody {
    pub object: Value,
    /// Stands for what the manifest says without what is ignored; empty if nothing is.
    pub hash: String,
}

/// Why the fields to ignore cannot be told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IgnoreError {
    #[error("the JSON pointer {0:?} must be / and the names of fields, with ~0 for ~ and ~1 for /")]
    Pointer(String),
    #[error("the jq expression {expression:?} {problem}")]
    Jq { expression: String, problem: String },
    #[error("{0} paths are more than the {MOST_PATHS} that may be ignored of one object")]
    TooMany(usize),
    #[error("apiVersion, kind and metadata.name cannot be ignored")]
    Identity,
    #[error("a condition is one that this agent does not know")]
    Condition,
}

/// The body to apply for a manifest, to an object that is `present` or to none.
pub fn body(
    manifest: &Value,
    present: bool,
    ignore: &[IgnoreField],
) -> Result<ApplyBody, IgnoreError> {
    let manifest = &undated(manifest);
    if ignore.is_empty() {
        return Ok(ApplyBody { object: manifest.clone(), hash: String::new() });
    }
    let count = ignore
        .iter()
        .map(|one| one.json_paths.len() + one.json_pointers.len() + one.jq_path_expressions.len());
    let count: usize = count.sum();
    if count > MOST_PATHS {
        return Err(IgnoreError::TooMany(count));
    }
    let mut stripped = Cow::Borrowed(manifest);
    let mut budget = jq::Budget::default();
    for fields in ignore {
        match fields.condition {
            IgnoreFieldsCondition::OnSpokePresent => {
                let chosen = chosen(&stripped, fields, &mut budget)?;
                stripped = Cow::Owned(without(&stripped, &chosen).unwrap_or_default());
            }
            // They are looked up all the same: a bad expression is told of at once.
            IgnoreFieldsCondition::OnSpokeChange => {
                chosen(&stripped, fields, &mut budget)?;
            }
            IgnoreFieldsCondition::Unknown => return Err(IgnoreError::Condition),
        }
    }
    let identity = |object: &Value| {
        let name = object.get("metadata").and_then(|metadata| metadata.get("name"));
        [object.get("apiVersion"), object.get("kind"), name].map(Option::<&Value>::cloned)
    };
    if identity(&stripped) != identity(manifest) {
        return Err(IgnoreError::Identity);
    }
    let digest = Sha256::digest(stripped.to_string());
    let hash: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut object = if present { stripped.into_owned() } else { manifest.clone() };
    annotate(&mut object, &hash);
    Ok(ApplyBody { object, hash })
}

/// The manifest without the `creationTimestamp: null` that generators of YAML leave in it: applied,
/// it would be owned and never set.
fn undated(value: &Value) -> Value {
    match value {
        Value::Object(entries) => {
            let kept = entries
                .iter()
                .filter(|(key, value)| !(value.is_null() && *key == "creationTimestamp"))
                .map(|(key, value)| (key.clone(), undated(value)));
            Value::Object(kept.collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(undated).collect()),
        scalar => scalar.clone(),
    }
}

/// Places in a value, by the address of what is there. They are compared while the value is
/// borrowed, and mean nothing afterwards.
type Places = BTreeSet<*const Value>;

fn chosen(
    object: &Value,
    fields: &IgnoreField,
    budget: &mut jq::Budget,
) -> Result<Places, IgnoreError> {
    let mut places = Places::new();
    for path in &fields.json_paths {
        let parsed = match path.starts_with('{') {
            true => JsonPath::parse(path),
            false => JsonPath::parse_expression(path),
        };
        let found = parsed.and_then(|path| path.find(object, Missing::Allowed));
        for value in found.into_iter().flatten().flatten() {
            if let Cow::Borrowed(value) = value {
                places.insert(value);
            }
        }
    }
    for text in &fields.json_pointers {
        let found = pointer::find(object, text);
        let found = found.ok_or_else(|| IgnoreError::Pointer(text.clone()))?;
        places.extend(found.map(core::ptr::from_ref));
    }
    for expression in &fields.jq_path_expressions {
        let found = jq::places(expression, object, budget);
        let found =
            found.map_err(|problem| IgnoreError::Jq { expression: expression.clone(), problem })?;
        places.extend(found.into_iter().map(core::ptr::from_ref));
    }
    Ok(places)
}

/// The value without what is at these places, if anything is left.
fn without(value: &Value, places: &Places) -> Option<Value> {
    if places.contains(&core::ptr::from_ref(value)) {
        return None;
    }
    Some(match value {
        Value::Array(items) => {
            Value::Array(items.iter().filter_map(|item| without(item, places)).collect())
        }
        Value::Object(entries) => {
            let kept = entries.iter().filter_map(|(key, value)| {
                without(value, places).map(|value| (key.clone(), value))
            });
            Value::Object(kept.collect())
        }
        scalar => scalar.clone(),
    })
}

fn annotate(object: &mut Value, hash: &str) {
    let Some(object) = object.as_object_mut() else { return };
    let metadata = object.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    let Some(metadata) = metadata.as_object_mut() else { return };
    let annotations = metadata.entry("annotations").or_insert_with(|| Value::Object(Map::new()));
    if annotations.is_null() {
        *annotations = Value::Object(Map::new());
    }
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.insert(CONFIG_SPEC_HASH.to_string(), Value::from(hash));
    }
}
