//! The four ways a client may say what to change: JSON patch, merge patch, strategic merge patch
//! and apply.
//!
//! This module reads a request's body and turns an object into its successor. It does not default,
//! prune or validate the result, and an applied configuration is only read here: merging it needs
//! the owners of fields, which is `apply`'s business.

mod json;
mod merge;
mod shown;
mod strategic;
#[cfg(test)]
mod tests;

pub(crate) use json::Operations;
use serde_json::Value;
pub(crate) use shown::shown;

use crate::gojson;
use crate::goyaml;
use crate::schema::{Schema, repeats};
use crate::status::Status;

const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";
const APPLY_PATCH: &str = "application/apply-patch+yaml";

/// A change as the client asked for it, well-formed but not yet tried on an object.
#[derive(Clone, Debug)]
pub(crate) enum Patch {
    Json(Operations),
    Merge(Value),
    Strategic(Value),
    /// A configuration for server-side apply, as given.
    Apply(Value),
}

/// Which kinds of patch a resource takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accepts {
    /// All four.
    Builtin,
    /// No strategic merge: the merge keys of custom resources are not known.
    Custom,
}

impl Accepts {
    fn media_types(self) -> &'static [&'static str] {
        match self {
            Self::Builtin => &[JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH],
            Self::Custom => &[JSON_PATCH, MERGE_PATCH, APPLY_PATCH],
        }
    }
}

/// What a PATCH request's body is to be read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    Json,
    Merge,
    Strategic,
    Apply,
}

/// The language that a media type stands for.
///
/// Errors: 415 for one the resource does not take.
pub(crate) fn language(content_type: &str, accepts: Accepts) -> Result<Language, Status> {
    let media_type = content_type.split_once(';').map_or(content_type, |(media, _)| media);
    let known = accepts.media_types();
    if !known.contains(&media_type) {
        if accepts == Accepts::Builtin {
            // Built-in routes refuse before anybody looks at the kind.
            let mut status =
                Status::new(415, "UnsupportedMediaType", "415: Unsupported Media Type");
            status.details.always = true;
            return Err(status);
        }
        return Err(Status::unsupported_media_type(format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            known.join(", ")
        )));
    }
    Ok(match media_type {
        JSON_PATCH => Language::Json,
        MERGE_PATCH => Language::Merge,
        STRATEGIC_PATCH => Language::Strategic,
        _ => Language::Apply,
    })
}

/// Reads the body of a PATCH request.
///
/// Errors: 400 for a body that is not such a patch, 413 for too many operations.
pub(crate) fn read(language: Language, body: &[u8]) -> Result<Patch, Status> {
    match language {
        Language::Json => Operations::parse(body).map(Patch::Json),
        Language::Merge => {
            let document =
                read_json(body).and_then(object_or_null).map_err(|why| undecodable(&why))?;
            match document {
                Value::Null => Err(Status::bad_request("Invalid JSON Patch")),
                document => Ok(Patch::Merge(document)),
            }
        }
        Language::Strategic => match read_json(body).and_then(object_or_null) {
            Err(why) => Err(Status::bad_request(why)),
            Ok(Value::Null) => Ok(Patch::Strategic(Value::Object(serde_json::Map::new()))),
            Ok(document) => Ok(Patch::Strategic(document)),
        },
        Language::Apply => read_yaml(body)
            .and_then(|document| {
                let refused = "error unmarshaling JSON: while decoding JSON";
                object_or_null(document).map_err(|why| format!("{refused}: {why}"))
            })
            .map(Patch::Apply)
            .map_err(|why| Status::bad_request(format!("error decoding YAML: {why}"))),
    }
}

/// Applies a JSON, merge or strategic merge patch. `schema` gives strategic merge its keys.
///
/// Errors: as kube-apiserver words them, 422 where the patch does not fit the object.
pub(crate) fn apply_patch(
    current: &Value,
    patch: &Patch,
    schema: Option<Schema<'_>>,
) -> Result<Value, Status> {
    let mut changed = current.clone();
    match patch {
        Patch::Json(operations) => operations.apply(&mut changed)?,
        Patch::Merge(document) => merge::apply(&mut changed, document),
        Patch::Strategic(document) => strategic::apply(&mut changed, document, schema)?,
        Patch::Apply(_) => {
            return Err(Status::internal("an applied configuration is not a patch"));
        }
    }
    Ok(changed)
}

/// A patch that is well-formed but does not fit. The reason is not told, as upstream does not.
fn does_not_fit() -> Status {
    let message = "the server rejected our request due to an error in our request";
    let mut status = Status::new(422, "Invalid", message);
    status.details.always = true;
    status
}

fn undecodable(why: &str) -> Status {
    Status::bad_request(format!("error decoding patch: {why}"))
}

fn read_json(body: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(body).map_err(|error| gojson::json_error(body, &error))
}

/// YAML, of which JSON is the common and faster case.
fn read_yaml(body: &[u8]) -> Result<Value, String> {
    if let Ok(document) = serde_json::from_slice(body) {
        return Ok(document);
    }
    goyaml::read(body).map(|document| document.value).map_err(|why| unconverted(&why))
}

/// What there is to say of keys that an applied configuration gives twice.
pub(crate) fn repeats_in_applied(body: &[u8]) -> Vec<String> {
    let json = str::from_utf8(body).ok().and_then(|text| repeats::parse(text).ok());
    match json {
        Some((_, false)) => Vec::new(),
        _ => goyaml::read(body).map(|document| document.repeats).unwrap_or_default(),
    }
}

/// What a strict reader says of them.
pub(crate) fn refused_repeats(repeats: &[String]) -> Status {
    let why = unconverted(&goyaml::complaint(repeats));
    Status::bad_request(format!("error strict decoding YAML: {why}"))
}

fn unconverted(why: &str) -> String {
    format!("error converting YAML to JSON: {why}")
}

fn object_or_null(document: Value) -> Result<Value, String> {
    match document {
        document @ (Value::Object(_) | Value::Null) => Ok(document),
        other => Err(format!(
            "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            gojson::json_type(&other)
        )),
    }
}
