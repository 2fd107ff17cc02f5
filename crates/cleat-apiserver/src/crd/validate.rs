//! Whether a CustomResourceDefinition is acceptable, in the words of kube-apiserver.
//!
//! Upstream validates an internal form in which what all versions have in common stands once, at
//! the top of the spec. Paths in errors show that form, so it is followed here.

use serde_json::{Map, Value};

use super::{defaults, flag, openapi, path, structural, text, text_at, texts_at, versions};
use crate::{
    gojson::escape_html,
    metadata::{self, NameRule},
    names,
    quote::is_printable,
    schema::{Schema, Schemas, Type, cel},
    status::{FieldError, Problem},
};

const MOST_SELECTABLE: usize = 8;

/// What is wrong with a new definition. Its names must be defaulted and its status prepared.
pub fn validate_create(crd: &Value) -> Vec<FieldError> {
    let mut errors = metadata::validate(crd, false, NameRule::Subdomain);
    let wanted = format!("{}.{}", text_at(crd, "/spec/names/plural"), text_at(crd, "/spec/group"));
    let name = text_at(crd, "/metadata/name");
    if !name.is_empty() && name != wanted {
        let after = errors.iter().rposition(|error| error.field == "metadata.name");
        let detail = "must be spec.names.plural+\".\"+spec.group";
        let error = FieldError::invalid("metadata.name", name, detail);
        errors.insert(after.map_or(0, |at| at + 1), error);
    }
    errors.extend(body(crd));
    errors.extend(approval(crd, None));
    errors.extend(preserve_unknown_fields(crd, None));
    errors
}

/// What is wrong with a changed definition.
pub fn validate_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = metadata::validate_update(new, old);
    let mut spec = body(new);
    let status = spec.iter().position(|error| error.field.starts_with("status."));
    let status = status.map(|at| spec.split_off(at)).unwrap_or_default();
    errors.extend(spec);
    let mut fixed =
        vec![("/spec/group", "spec.group"), ("/spec/names/plural", "spec.names.plural")];
    if is_established(old) {
        fixed
            .splice(0..0, [("/spec/scope", "spec.scope"), ("/spec/names/kind", "spec.names.kind")]);
    }
    for (pointer, field) in fixed {
        let (new, old) = (text_at(new, pointer), text_at(old, pointer));
        if new != old {
            errors.push(FieldError::invalid(field, new, "field is immutable"));
        }
    }
    errors.extend(status);
    errors.extend(approval(new, Some(old)));
    errors.extend(preserve_unknown_fields(new, Some(old)));
    errors
}

/// Whether a definition's names were accepted, so that its resource is served.
pub fn is_established(crd: &Value) -> bool {
    let conditions = crd.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|condition| {
        text_at(condition, "/type") == "Established" && text_at(condition, "/status") == "True"
    })
}

/// Spec and status.
fn body(crd: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let empty = Value::Object(Map::new());
    let spec = crd.get("spec").unwrap_or(&empty);
    let common = Common::of(versions(crd));
    group_and_scope(spec, &mut errors);
    if common.schema != Some(true) {
        for (index, version) in versions(crd).iter().enumerate() {
            if version.pointer("/schema/openAPIV3Schema").is_none_or(Value::is_null) {
                let field = format!("spec.versions[{index}].schema.openAPIV3Schema");
                errors.push(FieldError::required(field, ""));
            }
        }
    }
    for (index, version) in versions(crd).iter().enumerate() {
        let at = format!("spec.versions[{index}]");
        let name = text_at(version, "/name");
        let wrong = names::dns_1035_label(name);
        if !wrong.is_empty() {
            errors.push(FieldError::invalid(format!("{at}.name"), name, wrong.join(",")));
        }
        deprecation(version, &at, &mut errors);
        let own = |shared: Option<bool>| shared.is_none();
        if own(common.schema) {
            schema(
                version,
                has_status(version),
                &format!("{at}.schema.openAPIV3Schema"),
                &mut errors,
            );
        }
        if own(common.subresources) {
            subresources(version, &format!("{at}.subresources"), &mut errors);
        }
        if own(common.columns) {
            columns(version, &format!("{at}.additionalPrinterColumns"), &mut errors);
        }
        if own(common.selectable) {
            selectable(version, &format!("{at}.selectableFields"), &mut errors);
        }
    }
    let all: Vec<&str> = versions(crd).iter().map(|version| text_at(version, "/name")).collect();
    let refuse = |detail: &str| {
        let problem =
            Problem::InvalidShown { shown: common.shown(versions(crd)), detail: detail.to_owned() };
        FieldError { field: "spec.versions".to_owned(), problem }
    };
    if all.iter().enumerate().any(|(at, name)| all.iter().take(at).any(|before| before == name)) {
        errors.push(refuse("must contain unique version names"));
    }
    if versions(crd).iter().filter(|version| flag(version, "storage")).count() != 1 {
        errors.push(refuse("must have exactly one version marked as storage version"));
    }
    // The internal form repeats the first version's name, and upstream checks it once more.
    if let Some(first) = all.first().filter(|name| !name.is_empty()) {
        let wrong = names::dns_1035_label(first);
        if !wrong.is_empty() {
            errors.push(FieldError::invalid("spec.version", *first, wrong.join(",")));
        }
    }
    for key in ["plural", "singular", "kind", "listKind"] {
        if text_at(spec, &format!("/names/{key}")).is_empty() {
            errors.push(FieldError::required(format!("spec.names.{key}"), ""));
        }
    }
    names_are_good(spec.get("names").unwrap_or(&empty), "spec.names", &mut errors);
    if let Some(first) = versions(crd).first() {
        if common.schema == Some(true) {
            let status = versions(crd).iter().any(has_status);
            schema(first, status, "spec.validation.openAPIV3Schema", &mut errors);
        }
        if common.subresources == Some(true) {
            subresources(first, "spec.subresources", &mut errors);
        }
        if common.columns == Some(true) {
            columns(first, "spec.additionalPrinterColumns", &mut errors);
        }
        if common.selectable == Some(true) {
            selectable(first, "spec.selectableFields", &mut errors);
        }
    }
    conversion(spec, &mut errors);
    names_are_good(
        crd.pointer("/status/acceptedNames").unwrap_or(&empty),
        "status.acceptedNames",
        &mut errors,
    );
    stored_versions(crd, &mut errors);
    errors
}

/// Which parts all versions have in common: `Some(true)` when they do and it is there,
/// `Some(false)` when none has it, `None` when versions differ.
struct Common {
    schema: Option<bool>,
    subresources: Option<bool>,
    columns: Option<bool>,
    selectable: Option<bool>,
}

impl Common {
    fn of(versions: &[Value]) -> Self {
        let shared = |key: &str| {
            let mut all = versions.iter().map(|version| version.get(key).filter(|v| !v.is_null()));
            let first = all.next().flatten();
            all.all(|other| other == first).then_some(first.is_some())
        };
        Self {
            schema: shared("schema"),
            subresources: shared("subresources"),
            columns: shared("additionalPrinterColumns"),
            selectable: shared("selectableFields"),
        }
    }

    /// Versions as messages show them: like the Go structs, without what they have in common.
    fn shown(&self, versions: &[Value]) -> String {
        let part = |version: &Value, key: &str, shared: Option<bool>| match version.get(key) {
            Some(value) if shared.is_none() => escape_html(&value.to_string()),
            _ => "null".to_owned(),
        };
        let all: Vec<String> = versions
            .iter()
            .map(|version| {
                let warning = version.get("deprecationWarning").unwrap_or(&Value::Null);
                format!(
                    "{{\"Name\":{},\"Served\":{},\"Storage\":{},\"Deprecated\":{},\"DeprecationWarning\":{},\"Schema\":{},\"Subresources\":{},\"AdditionalPrinterColumns\":{},\"SelectableFields\":{}}}",
                    Value::from(text_at(version, "/name")),
                    flag(version, "served"),
                    flag(version, "storage"),
                    flag(version, "deprecated"),
                    escape_html(&warning.to_string()),
                    part(version, "schema", self.schema),
                    part(version, "subresources", self.subresources),
                    part(version, "additionalPrinterColumns", self.columns),
                    part(version, "selectableFields", self.selectable),
                )
            })
            .collect();
        format!("[{}]", all.join(","))
    }
}

fn group_and_scope(spec: &Value, errors: &mut Vec<FieldError>) {
    let group = text_at(spec, "/group");
    let wrong = names::dns_subdomain(group);
    if group.is_empty() {
        errors.push(FieldError::required("spec.group", ""));
    } else if !wrong.is_empty() {
        errors.push(FieldError::invalid("spec.group", group, wrong.join(",")));
    } else if !group.contains('.') {
        let detail = "should be a domain with at least one dot";
        errors.push(FieldError::invalid("spec.group", group, detail));
    }
    match text_at(spec, "/scope") {
        "" => errors.push(FieldError::required("spec.scope", "")),
        "Cluster" | "Namespaced" => {}
        scope => {
            let supported = ["Cluster", "Namespaced"];
            errors.push(FieldError::not_supported("spec.scope", scope, &supported));
        }
    }
}

fn deprecation(version: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let Some(warning) = version.get("deprecationWarning").and_then(Value::as_str) else { return };
    let mut refuse = |detail: String| {
        errors.push(FieldError::invalid(format!("{at}.deprecationWarning"), warning, detail));
    };
    if !flag(version, "deprecated") {
        refuse("can only be set for deprecated versions".to_owned());
        return;
    }
    if warning.len() > 256 {
        refuse("must be <= 256 characters long".to_owned());
    }
    if warning.is_empty() {
        refuse("must not be an empty string".to_owned());
    }
    if let Some((at, _)) = warning.char_indices().find(|(_, c)| !is_printable(*c)) {
        refuse(format!(
            "must only contain printable UTF-8 characters; non-printable character found at index {at}"
        ));
    }
}

fn has_status(version: &Value) -> bool {
    version.pointer("/subresources/status").is_some_and(|status| !status.is_null())
}

fn schema(version: &Value, status: bool, at: &str, errors: &mut Vec<FieldError>) {
    let Some(schema) = version.pointer("/schema/openAPIV3Schema").and_then(Value::as_object) else {
        return;
    };
    if status {
        root_with_status(schema, at, errors);
    }
    if schema.get("nullable").and_then(Value::as_bool) == Some(true) {
        let detail = "nullable cannot be true at the root";
        errors.push(FieldError::forbidden(format!("{at}.nullable"), detail));
    }
    let readable = structural::is_readable(schema);
    let mut found = if readable { structural::check(schema, at) } else { Vec::new() };
    let loaded = Schemas::from_single(&Value::Object(schema.clone()));
    let typed = loaded.as_ref().ok().map(|(arena, root)| arena.at(*root));
    if let (true, Some(typed)) = (readable && found.is_empty(), typed) {
        found = defaults::check(typed, at);
    }
    let typed = typed.filter(|_| found.is_empty());
    errors.extend(found);
    errors.extend(openapi::check(schema, at, typed));
    if let (Err(why), true) = (&loaded, errors.is_empty()) {
        errors.push(FieldError::invalid(at, "", why.to_string()));
    }
}

/// With a status subresource, the root may only use keywords that also make sense for a part.
fn root_with_status(schema: &Map<String, Value>, at: &str, errors: &mut Vec<FieldError>) {
    const ALLOWED: [(&str, &str); 22] = [
        ("description", "Description"),
        ("type", "Type"),
        ("format", "Format"),
        ("title", "Title"),
        ("maximum", "Maximum"),
        ("exclusiveMaximum", "ExclusiveMaximum"),
        ("minimum", "Minimum"),
        ("exclusiveMinimum", "ExclusiveMinimum"),
        ("maxLength", "MaxLength"),
        ("minLength", "MinLength"),
        ("pattern", "Pattern"),
        ("maxItems", "MaxItems"),
        ("minItems", "MinItems"),
        ("uniqueItems", "UniqueItems"),
        ("multipleOf", "MultipleOf"),
        ("required", "Required"),
        ("items", "Items"),
        ("properties", "Properties"),
        ("externalDocs", "ExternalDocs"),
        ("example", "Example"),
        ("x-kubernetes-preserve-unknown-fields", "XPreserveUnknownFields"),
        ("x-kubernetes-validations", "XValidations"),
    ];
    let kind = text(schema, "type");
    if !kind.is_empty() && kind != "object" {
        let detail = "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
        errors.push(FieldError::invalid(format!("{at}.type"), kind, detail));
    } else if schema.iter().any(|(key, value)| {
        !value.is_null() && *value != false && !ALLOWED.iter().any(|(allowed, _)| allowed == key)
    }) {
        let allowed: Vec<&str> = ALLOWED.iter().map(|(_, name)| *name).collect();
        let detail = format!(
            "only [{}] fields are allowed at the root of the schema if the status subresource is enabled",
            allowed.join(" ")
        );
        errors.push(FieldError::invalid(at, schema.clone(), detail));
    }
}

fn subresources(version: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let Some(scale) = version.pointer("/subresources/scale").filter(|scale| !scale.is_null())
    else {
        return;
    };
    for (key, required, prefixes, detail) in [
        ("specReplicasPath", true, &[".spec."][..], "should be a json path under .spec"),
        ("statusReplicasPath", true, &[".status."], "should be a json path under .status"),
        (
            "labelSelectorPath",
            false,
            &[".spec.", ".status."],
            "should be a json path under either .spec or .status",
        ),
    ] {
        let (field, value) = (format!("{at}.scale.{key}"), text_at(scale, &format!("/{key}")));
        if value.is_empty() {
            if required {
                errors.push(FieldError::required(field, ""));
            }
            continue;
        }
        let wrong = path::check(value, &field);
        if wrong.is_empty() && !prefixes.iter().any(|prefix| value.starts_with(prefix)) {
            errors.push(FieldError::invalid(field, value, detail));
        }
        errors.extend(wrong);
    }
}

fn columns(version: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let columns = version.get("additionalPrinterColumns").and_then(Value::as_array);
    for (index, column) in columns.into_iter().flatten().enumerate() {
        let field = |key: &str| format!("{at}[{index}].{key}");
        if text_at(column, "/name").is_empty() {
            errors.push(FieldError::required(field("name"), ""));
        }
        let types = "must be one of boolean,date,integer,number,string";
        match text_at(column, "/type") {
            "" => errors.push(FieldError::required(field("type"), types)),
            "boolean" | "date" | "integer" | "number" | "string" => {}
            kind => errors.push(FieldError::invalid(field("type"), kind, types)),
        }
        let format = text_at(column, "/format");
        let formats =
            ["", "byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
        if !formats.contains(&format) {
            let detail = format!("must be one of {}", formats.join(",").trim_start_matches(','));
            errors.push(FieldError::invalid(field("format"), format, detail));
        }
        match text_at(column, "/jsonPath") {
            "" => errors.push(FieldError::required(field("JSONPath"), "")),
            found => errors.extend(path::check(found, &field("JSONPath"))),
        }
    }
}

fn selectable(version: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let fields = version.get("selectableFields").and_then(Value::as_array);
    let Some(fields) = fields.filter(|fields| !fields.is_empty()) else { return };
    let Some(Ok((arena, root))) =
        version.pointer("/schema/openAPIV3Schema").map(Schemas::from_single)
    else {
        return;
    };
    let mut seen: Vec<String> = Vec::new();
    for (index, entry) in fields.iter().enumerate() {
        let (field, found) = (format!("{at}[{index}].jsonPath"), text_at(entry, "/jsonPath"));
        if found.is_empty() {
            errors.push(FieldError::required(field, ""));
            continue;
        }
        let resolved = match found.contains('[') {
            true => Err("array notation is not allowed".to_owned()),
            false => cel::field_path(found, arena.at(root)),
        };
        let resolved = match resolved {
            Ok(resolved) => resolved,
            Err(why) => {
                let detail = format!("is an invalid path: {why}");
                errors.push(FieldError::invalid(field, found, detail));
                continue;
            }
        };
        if resolved.split('.').next() == Some("metadata") {
            let detail = "must not point to fields in metadata";
            errors.push(FieldError::invalid(&*field, found, detail));
        }
        let target = found.split('.').skip(1).try_fold(arena.at(root), Schema::property);
        let kind = target.and_then(|target| target.node().kind);
        if !matches!(kind, Some(Type::String | Type::Boolean | Type::Integer)) {
            let detail = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.";
            errors.push(FieldError::invalid(&*field, found, detail));
        }
        if seen.contains(&resolved) {
            let problem = Problem::Duplicate { value: found.into() };
            errors.push(FieldError { field, problem });
        } else {
            seen.push(resolved);
        }
    }
    if seen.len() > MOST_SELECTABLE {
        let problem = Problem::TooMany { actual: seen.len(), max: MOST_SELECTABLE };
        errors.push(FieldError { field: at.to_owned(), problem });
    }
}

fn names_are_good(names: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let mut check = |field: String, text: &str, shown: &str| {
        let wrong = names::dns_1035_label(text);
        if !wrong.is_empty() {
            let mixed = match text == shown && !field.ends_with("ind") {
                true => "",
                false => "may have mixed case, but should otherwise match: ",
            };
            errors.push(FieldError::invalid(field, shown, format!("{mixed}{}", wrong.join(","))));
        }
    };
    for key in ["plural", "singular", "kind", "listKind"] {
        let name = text_at(names, &format!("/{key}"));
        if name.is_empty() {
            continue;
        }
        let field = format!("{at}.{key}");
        match key {
            "kind" | "listKind" => check(field, &name.to_lowercase(), name),
            _ => check(field, name, name),
        }
    }
    for (index, short) in texts_at(names, "/shortNames").iter().enumerate() {
        check(format!("{at}.shortNames[{index}]"), short, short);
    }
    let (kind, list_kind) = (text_at(names, "/kind"), text_at(names, "/listKind"));
    if !kind.is_empty() && kind == list_kind {
        let detail = "kind and listKind may not be the same";
        errors.push(FieldError::invalid(format!("{at}.listKind"), list_kind, detail));
    }
    for (index, category) in texts_at(names, "/categories").iter().enumerate() {
        let wrong = names::dns_1035_label(category);
        if !wrong.is_empty() {
            let field = format!("{at}.categories[{index}]");
            errors.push(FieldError::invalid(field, *category, wrong.join(",")));
        }
    }
}

fn conversion(spec: &Value, errors: &mut Vec<FieldError>) {
    let webhook = spec.pointer("/conversion/webhook").filter(|webhook| !webhook.is_null());
    match text_at(spec, "/conversion/strategy") {
        "" => errors.push(FieldError::required("spec.conversion.strategy", "")),
        "None" => {
            for (pointer, key) in [
                ("/clientConfig", "webhookClientConfig"),
                ("/conversionReviewVersions", "conversionReviewVersions"),
            ] {
                if webhook.and_then(|webhook| webhook.pointer(pointer)).is_some() {
                    let detail = "should not be set when strategy is not set to Webhook";
                    errors.push(FieldError::forbidden(format!("spec.conversion.{key}"), detail));
                }
            }
        }
        "Webhook" => errors.push(FieldError::forbidden(
            "spec.conversion.strategy",
            "this server does not call conversion webhooks; use None",
        )),
        other => {
            let supported = ["None", "Webhook"];
            errors.push(FieldError::not_supported("spec.conversion.strategy", other, &supported));
        }
    }
}

fn stored_versions(crd: &Value, errors: &mut Vec<FieldError>) {
    let stored = texts_at(crd, "/status/storedVersions");
    let field = "status.storedVersions";
    if stored.is_empty() {
        let detail = "must have at least one stored version";
        errors.push(FieldError::invalid(field, Value::Null, detail));
        return;
    }
    for version in versions(crd).iter().filter(|version| flag(version, "storage")) {
        let name = text_at(version, "/name");
        if !stored.contains(&name) {
            let detail = format!("must have the storage version {name}");
            errors.push(FieldError::invalid(field, stored.clone(), detail));
        }
    }
    for (index, name) in stored.iter().enumerate() {
        if !versions(crd).iter().any(|version| text_at(version, "/name") == *name) {
            let detail = format!(
                "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
            );
            errors.push(FieldError::invalid(format!("{field}[{index}]"), *name, detail));
        }
    }
}

/// Groups of the Kubernetes community need an approval.
fn approval(new: &Value, old: Option<&Value>) -> Option<FieldError> {
    let state = super::status::approval(new)?;
    if old.and_then(super::status::approval).is_some_and(|old| old.reason == state.reason) {
        return None;
    }
    let field = format!("metadata.annotations[{}]", super::status::APPROVED);
    match state.reason {
        "MissingAnnotation" => Some(FieldError::required(field, state.message)),
        "InvalidAnnotation" => Some(FieldError::invalid(field, state.annotation, state.message)),
        _ => None,
    }
}

fn preserve_unknown_fields(new: &Value, old: Option<&Value>) -> Option<FieldError> {
    let set = |crd: &Value| crd.get("spec").is_some_and(|spec| flag(spec, "preserveUnknownFields"));
    if old.is_some_and(set) || !set(new) {
        return None;
    }
    let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
    Some(FieldError::invalid("spec.preserveUnknownFields", true, detail))
}
