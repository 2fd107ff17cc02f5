//! The metadata every object has: what may stand in it on create and on update.
//!
//! Works on metadata whose types are already right ([`decode`] sees to that for custom resources,
//! the built-in schemas for the rest); a value of a wrong type counts as absent here. Setting uid,
//! timestamps and names is the server's business, not done here.

mod decode;
mod rule;

use std::collections::BTreeSet;

use serde_json::{Map, Value};

pub use decode::decode;
pub use rule::NameRule;

use crate::{
    gojson::escape_html,
    names,
    quote::{code_point, is_printable, quoted, string_slice},
    status::{FieldError, Problem},
};

/// All annotations of an object together, keys and values.
const MOST_ANNOTATION_BYTES: usize = 256 * 1024;

/// Read access to the `metadata` of an object.
#[derive(Clone, Copy)]
struct Meta<'a>(Option<&'a Map<String, Value>>);

impl<'a> Meta<'a> {
    fn of(object: &'a Value) -> Self {
        Self(object.get("metadata").and_then(Value::as_object))
    }

    fn get(self, key: &str) -> Option<&'a Value> {
        self.0?.get(key).filter(|value| !value.is_null())
    }

    fn text(self, key: &str) -> &'a str {
        self.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    fn list(self, key: &str) -> &'a [Value] {
        self.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    fn texts(self, key: &str) -> Vec<&'a str> {
        self.list(key).iter().filter_map(Value::as_str).collect()
    }

    fn map(self, key: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let map = self.get(key).and_then(Value::as_object);
        map.into_iter().flatten().map(|(key, value)| (&**key, value.as_str().unwrap_or_default()))
    }
}

/// What is wrong with a new object's metadata; its name must already be generated.
pub fn validate(object: &Value, namespaced: bool, rule: NameRule) -> Vec<FieldError> {
    validate_at("metadata", Meta::of(object), namespaced, rule)
}

/// What is wrong with the metadata of an object embedded in another, at `path`. It needs no name,
/// and may or may not have a namespace.
pub(crate) fn validate_embedded(object: &Value, path: &str) -> Vec<FieldError> {
    let meta = Meta::of(object);
    let namespaced = !meta.text("namespace").is_empty();
    let mut errors = validate_at(path, meta, namespaced, NameRule::PathSegment);
    let unnamed = format!("{path}.name");
    errors.retain(|error| {
        error.field != unnamed || !matches!(error.problem, Problem::Required { .. })
    });
    errors
}

/// What is wrong with the metadata of a changed object, for every kind: what also holds on create,
/// and what must not change.
pub fn validate_common_update(new: &Value, old: &Value, namespaced: bool) -> Vec<FieldError> {
    let mut errors = validate(new, namespaced, NameRule::PathSegment);
    errors.extend(validate_update(new, old));
    errors
}

/// What must not have changed in metadata. Upstream runs this once for all kinds
/// ([`validate_common_update`]) and once more for custom resources and most built-in kinds.
pub fn validate_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let (new, old) = (Meta::of(new), Meta::of(old));
    let mut errors = Vec::new();
    if old.get("deletionTimestamp").is_some() {
        let before: BTreeSet<&str> = old.texts("finalizers").into_iter().collect();
        let now: BTreeSet<&str> = new.texts("finalizers").into_iter().collect();
        let added: Vec<&str> = now.difference(&before).copied().collect();
        if !added.is_empty() {
            let added = string_slice(&added);
            errors.push(FieldError::forbidden(
                "metadata.finalizers",
                format!("no new finalizers can be added if the object is being deleted, found new finalizers {added}"),
            ));
        }
    }
    if new.text("resourceVersion").is_empty() {
        errors.push(FieldError::invalid(
            "metadata.resourceVersion",
            "",
            "must be specified for an update",
        ));
    }
    let generation = |meta: Meta<'_>| meta.get("generation").and_then(Value::as_i64).unwrap_or(0);
    if generation(new) < generation(old) {
        errors.push(FieldError::invalid(
            "metadata.generation",
            generation(new),
            "must not be decremented",
        ));
    }
    for key in ["name", "namespace", "uid"] {
        if new.text(key) != old.text(key) {
            errors.push(immutable(key, new.text(key)));
        }
    }
    for key in ["creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        if new.get(key) != old.get(key) {
            errors.push(immutable(key, new.get(key).cloned().unwrap_or_default()));
        }
    }
    labels("metadata", new, &mut errors);
    annotations("metadata", new, &mut errors);
    owners("metadata", new, &mut errors);
    managed_fields("metadata", new, &mut errors);
    errors
}

/// Warnings about finalizers that `old` did not have and that are not domain-qualified. Only
/// custom resources get them.
pub fn finalizer_warnings(new: &Value, old: Option<&Value>) -> Vec<String> {
    let before: Vec<&str> = old.map(|old| Meta::of(old).texts("finalizers")).unwrap_or_default();
    let mut added = Meta::of(new).texts("finalizers");
    added.retain(|finalizer| !before.contains(finalizer));
    added.sort_unstable();
    added.dedup();
    let mut warnings = Vec::new();
    for finalizer in added {
        let start = format!("metadata.finalizers: {}: ", quoted(finalizer));
        warnings.extend(names::label_key(finalizer).iter().map(|text| format!("{start}{text}")));
        if !finalizer.contains('/')
            && !matches!(finalizer, "orphan" | "foregroundDeletion" | "kubernetes")
        {
            let path = if finalizer.contains('.') { " including a path (/)" } else { "" };
            warnings.push(format!(
                "{start}prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with other finalizer writers"
            ));
        }
    }
    warnings
}

fn immutable(key: &str, value: impl Into<Value>) -> FieldError {
    FieldError::invalid(format!("metadata.{key}"), value, "field is immutable")
}

fn validate_at(path: &str, meta: Meta<'_>, namespaced: bool, rule: NameRule) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut complain = |key: &str, value: &str, wrong: Vec<String>| {
        let field = format!("{path}.{key}");
        errors.extend(wrong.into_iter().map(|text| FieldError::invalid(&*field, value, text)));
    };
    let (name, prefix) = (meta.text("name"), meta.text("generateName"));
    if !prefix.is_empty() {
        complain("generateName", prefix, rule.check(prefix, true));
    }
    if !name.is_empty() {
        complain("name", name, rule.check(name, false));
    }
    let namespace = meta.text("namespace");
    if namespaced && !namespace.is_empty() {
        complain("namespace", namespace, names::dns_label(namespace));
    }
    if name.is_empty() {
        let detail = "name or generateName is required";
        errors.push(FieldError::required(format!("{path}.name"), detail));
    }
    match (namespaced, namespace.is_empty()) {
        (true, true) => errors.push(FieldError::required(format!("{path}.namespace"), "")),
        (false, false) => errors
            .push(FieldError::forbidden(format!("{path}.namespace"), "not allowed on this type")),
        _ => {}
    }
    if let Some(generation) = meta.get("generation").and_then(Value::as_i64)
        && generation < 0
    {
        errors.push(FieldError::invalid(
            format!("{path}.generation"),
            generation,
            "must be greater than or equal to 0",
        ));
    }
    labels(path, meta, &mut errors);
    annotations(path, meta, &mut errors);
    owners(path, meta, &mut errors);
    finalizers(path, meta, &mut errors);
    managed_fields(path, meta, &mut errors);
    errors
}

fn labels(path: &str, meta: Meta<'_>, errors: &mut Vec<FieldError>) {
    let field = format!("{path}.labels");
    for (key, value) in meta.map("labels") {
        let keys = names::label_key(key).into_iter();
        errors.extend(keys.map(|text| FieldError::invalid(&*field, key, text)));
        let values = names::label_value(value).into_iter();
        errors.extend(values.map(|text| FieldError::invalid(&*field, value, text)));
    }
}

fn annotations(path: &str, meta: Meta<'_>, errors: &mut Vec<FieldError>) {
    let field = format!("{path}.annotations");
    let mut size = 0;
    for (key, value) in meta.map("annotations") {
        size += key.len() + value.len();
        let wrong = names::label_key(&key.to_lowercase()).into_iter();
        errors.extend(wrong.map(|text| FieldError::invalid(&*field, key, text)));
    }
    if size > MOST_ANNOTATION_BYTES {
        errors.push(FieldError { field, problem: Problem::TooLong { max: MOST_ANNOTATION_BYTES } });
    }
}

fn owners(path: &str, meta: Meta<'_>, errors: &mut Vec<FieldError>) {
    let field = format!("{path}.ownerReferences");
    let mut controller = None;
    for owner in meta.list("ownerReferences") {
        let text = |key: &str| owner.get(key).and_then(Value::as_str).unwrap_or_default();
        let api_version = text("apiVersion");
        let version = api_version.split_once('/').map_or(api_version, |(_, version)| version);
        if version.is_empty() || version.contains('/') {
            let field = format!("{field}.apiVersion");
            errors.push(FieldError::invalid(field, api_version, "version must not be empty"));
        }
        for key in ["kind", "name", "uid"] {
            if text(key).is_empty() {
                let field = format!("{field}.{key}");
                errors.push(FieldError::invalid(field, "", "must not be empty"));
            }
        }
        if api_version == "v1" && text("kind") == "Event" {
            let detail = "/v1, Kind=Event is disallowed from being an owner".to_owned();
            let problem = Problem::InvalidShown { shown: shown_owner(owner), detail };
            errors.push(FieldError { field: field.clone(), problem });
        }
        if owner.get("controller").and_then(Value::as_bool) == Some(true) {
            let this = format!("{}/{}", text("kind"), text("name"));
            match &controller {
                None => controller = Some(this),
                Some(first) => {
                    let shown: Vec<String> =
                        meta.list("ownerReferences").iter().map(shown_owner).collect();
                    let detail = format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {this}"
                    );
                    let shown = format!("[{}]", shown.join(","));
                    let problem = Problem::InvalidShown { shown, detail };
                    errors.push(FieldError { field: field.clone(), problem });
                }
            }
        }
    }
}

/// JSON in the order of the Go struct, which messages show.
fn shown_owner(owner: &Value) -> String {
    let order = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];
    let entries: Vec<String> = order
        .iter()
        .filter_map(|key| {
            owner.get(key).map(|value| format!("\"{key}\":{}", escape_html(&value.to_string())))
        })
        .collect();
    format!("{{{}}}", entries.join(","))
}

fn finalizers(path: &str, meta: Meta<'_>, errors: &mut Vec<FieldError>) {
    let field = format!("{path}.finalizers");
    let all = meta.texts("finalizers");
    for finalizer in &all {
        let wrong = names::label_key(finalizer).into_iter();
        errors.extend(wrong.map(|text| FieldError::invalid(&*field, *finalizer, text)));
    }
    if all.contains(&"orphan") && all.contains(&"foregroundDeletion") {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.push(FieldError::invalid(field, all, detail));
    }
}

fn managed_fields(path: &str, meta: Meta<'_>, errors: &mut Vec<FieldError>) {
    for (index, entry) in meta.list("managedFields").iter().enumerate() {
        let field = |key: &str| format!("{path}.managedFields[{index}].{key}");
        let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default();
        let operation = text("operation");
        if !matches!(operation, "Apply" | "Update") {
            let detail = "must be `Apply` or `Update`";
            errors.push(FieldError::invalid(field("operation"), operation, detail));
        }
        let kind = text("fieldsType");
        if !matches!(kind, "" | "FieldsV1") {
            errors.push(FieldError::invalid(field("fieldsType"), kind, "must be `FieldsV1`"));
        }
        errors.extend(field_manager(text("manager"), &field("manager")));
        if text("subresource").len() > 256 {
            let problem = Problem::TooLong { max: 256 };
            errors.push(FieldError { field: field("subresource"), problem });
        }
    }
}

/// What is wrong with the name of a field manager, in an object or in a request's options.
pub fn field_manager(name: &str, field: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if name.len() > 128 {
        errors.push(FieldError { field: field.to_owned(), problem: Problem::TooLong { max: 128 } });
    }
    for (at, c) in name.char_indices().filter(|(_, c)| !is_printable(*c)) {
        let detail = format!("invalid character {} (at position {at})", code_point(c));
        errors.push(FieldError::invalid(field, name, detail));
    }
    errors
}

#[cfg(test)]
mod tests;
