//! From the bytes of a body to an object the verbs can trust to have the right shape.
//!
//! Decoding, unknown fields, defaults. What an object means is checked later, where it is stored.

use std::borrow::Cow;

use cleat_dialect::gotypes::types;
use serde_json::Value;

use super::{Call, delete};
use crate::crd;
use crate::gojson;
use crate::goyaml::{self, Document};
use crate::negotiate::BodyFormat;
use crate::object;
use crate::protobuf::{self, DefaultKind};
use crate::query::{DeleteOptions, FieldValidation, Query};
use crate::resource::Origin;
use crate::rules;
use crate::schema::{coerce, decode, default, repeats, strict};
use crate::status::Status;

/// Reads an object of the call's own kind.
pub(crate) fn read(
    call: &mut Call<'_>,
    media: BodyFormat,
    body: &[u8],
    validation: FieldValidation,
) -> Result<Value, Status> {
    let default = DefaultKind { api_version: &call.api_version(), kind: &call.ty.kind };
    let Parsed { value, json, repeats } = parse(media, body, default)?;
    let json = json.as_deref().unwrap_or(body);
    check_kind(call, &value, json)?;
    // What came as protobuf has no field that is not known or there twice.
    let text = (media != BodyFormat::Protobuf).then_some(Text { json, repeats: &repeats });
    shape(call, value, text, validation)
}

/// A body that was read.
pub(crate) struct Parsed {
    pub(crate) value: Value,
    /// Its JSON, if it was sent as something else.
    json: Option<Vec<u8>>,
    repeats: Repeats,
}

/// What an object was read from, by which strictness is judged.
#[derive(Clone, Copy)]
pub(crate) struct Text<'a> {
    pub(crate) json: &'a [u8],
    pub(crate) repeats: &'a Repeats,
}

/// Whether a key was given twice.
pub(crate) enum Repeats {
    None,
    /// Somewhere; the text shows where.
    Some,
    /// As these say, if there are any; the text does not show it any more.
    Told(Vec<String>),
}

/// Any object, of whatever kind.
pub(crate) fn parse(
    media: BodyFormat,
    body: &[u8],
    default: DefaultKind<'_>,
) -> Result<Parsed, Status> {
    let kind = default.kind;
    let unreadable = |why: String| {
        Status::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): {why}"
        ))
    };
    let garbled = |why: String| {
        let shown = head(body);
        unreadable(format!("couldn't get version/kind; json parse error: {why} ({shown})"))
    };
    let parsed = match media {
        BodyFormat::Protobuf => match protobuf::decode(body, default) {
            Ok(value) => Parsed { value, json: None, repeats: Repeats::None },
            Err(error) => {
                return Err(match &error.kind {
                    Some((api_version, kind)) => {
                        let version = api_version.rsplit('/').next().unwrap_or_default();
                        decode::refusal(kind, version, &error.message)
                    }
                    None => unreadable(format!("{} ({})", error.message, head(body))),
                });
            }
        },
        BodyFormat::Json => {
            // Go puts a replacement character where text is not UTF-8, and so do we.
            let text = String::from_utf8_lossy(body);
            let (value, repeats) =
                repeats::parse(&text).map_err(|error| garbled(gojson::json_error(body, &error)))?;
            let json = matches!(text, Cow::Owned(_)).then(|| text.into_owned().into_bytes());
            let repeats = if repeats { Repeats::Some } else { Repeats::None };
            Parsed { value, json, repeats }
        }
        BodyFormat::Yaml => {
            let Document { value, repeats } =
                goyaml::read(body).map_err(|why| unreadable(format!("{why} ({})", head(body))))?;
            let json = Some(value.to_string().into_bytes());
            Parsed { value, json, repeats: Repeats::Told(repeats) }
        }
    };
    match &parsed.value {
        // Go reads null into any struct as nothing at all.
        Value::Null => Ok(Parsed {
            value: Value::Object(serde_json::Map::new()),
            json: Some(b"{}".to_vec()),
            repeats: Repeats::None,
        }),
        Value::Object(map) => {
            for field in ["apiVersion", "kind"] {
                if let Some(odd) =
                    map.get(field).filter(|value| !value.is_string() && !value.is_null())
                {
                    return Err(garbled(format!(
                        "json: cannot unmarshal {} into Go struct field .{field} of type string",
                        gojson::json_type(odd)
                    )));
                }
            }
            Ok(parsed)
        }
        odd => Err(garbled(format!(
            "json: cannot unmarshal {} into Go value of type struct {{ APIVersion string \
             \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \
             \"json:\\\"kind,omitempty\\\"\" }}",
            gojson::json_type(odd)
        ))),
    }
}

/// The first bytes of a body, as Kubernetes shows them.
fn head(body: &[u8]) -> String {
    const SHOWN: usize = 30;
    let start = body.get(..SHOWN).unwrap_or(body);
    let shown = match body.first() {
        None => return "<empty>".to_owned(),
        Some(b'{') => String::from_utf8_lossy(start).into_owned(),
        Some(_) => start.iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    if body.len() > SHOWN { format!("{shown} ...") } else { shown }
}

/// The body must be of the kind and version that the path says.
pub(crate) fn check_kind(call: &Call<'_>, value: &Value, body: &[u8]) -> Result<(), Status> {
    let text = |field| value.get(field).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let custom = matches!(call.ty.origin, Origin::Custom { .. });
    if custom && kind.is_empty() {
        return Err(Status::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): Object 'Kind' is missing in \
             '{}' ({})",
            call.ty.kind,
            compact(value),
            head(body)
        )));
    }
    if api_version.matches('/').count() > 1 {
        return Err(Status::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): unexpected GroupVersion \
             string: {api_version} ({})",
            call.ty.kind,
            head(body)
        )));
    }
    let expected = call.api_version();
    if custom {
        if api_version != expected {
            return Err(Status::bad_request(format!(
                "the API version in the data ({api_version}) does not match the expected API \
                 version ({expected})"
            )));
        }
        // Another kind is only refused by validation.
        return Ok(());
    }
    let given = (or(api_version, &expected), or(kind, &call.ty.kind));
    if given == (&*expected, &*call.ty.kind) {
        return Ok(());
    }
    let (api_version, kind) = given;
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let registered = match delete::is_definition(&call.ty) {
        // Their server has no other kinds, and knows a version that it no longer serves.
        true => {
            group == &*call.ty.group
                && matches!(version, "v1" | "v1beta1")
                && (kind == &*call.ty.kind || kind == &*call.ty.list_kind)
        }
        false => types().knows(api_version, kind),
    };
    let want = &call.ty.kind;
    // What is not of the right kind is read first as what it says to be.
    let unreadable = rules::unreadable(api_version, kind, value).filter(|_| registered);
    let why = match registered {
        _ if unreadable.is_some() => unreadable.unwrap_or_default(),
        false => format!(
            "no kind \"{kind}\" is registered for version \"{api_version}\" in scheme \
             \"pkg/runtime/scheme.go:111\""
        ),
        true if kind == &**want => {
            return Err(Status::bad_request(format!(
                "the API version in the data ({api_version}) does not match the expected API \
                 version ({expected})"
            )));
        }
        true => {
            let package = call.ty.group.split('.').next().filter(|group| !group.is_empty());
            format!(
                "converting ({version}.{kind}) to ({}.{want}): unknown conversion",
                package.unwrap_or("core")
            )
        }
    };
    Err(Status::bad_request(format!(
        "{kind} in version \"{version}\" cannot be handled as a {want}: {why}"
    )))
}

fn or<'a>(given: &'a str, otherwise: &'a str) -> &'a str {
    if given.is_empty() { otherwise } else { given }
}

fn compact(value: &Value) -> String {
    value.to_string().chars().take(2048).collect()
}

/// Brings an object into its schema's shape and fills in defaults. Unknown and repeated fields of its
/// text, if it has one, are refused, warned of or dropped.
pub(crate) fn shape(
    call: &mut Call<'_>,
    mut value: Value,
    text: Option<Text<'_>>,
    validation: FieldValidation,
) -> Result<Value, Status> {
    if !value.is_object() {
        return Err(Status::bad_request(format!(
            "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            gojson::json_type(&value)
        )));
    }
    let (kind, version) = (call.ty.kind.clone(), call.version.clone());
    let text = text.filter(|_| validation != FieldValidation::Ignore);
    let ty = std::sync::Arc::clone(&call.ty);
    let schema = ty.version(&call.version).and_then(|v| v.schema.as_ref()).map(|r| r.schema());
    let custom = matches!(call.ty.origin, Origin::Custom { .. });
    let mut findings = Vec::new();
    match schema {
        Some(schema) if custom => {
            let unknown = coerce::coerce_custom(&mut value, schema, &kind, &version)?;
            if let Some(Text { json, repeats }) = text {
                // Most bodies have nothing to find, and are not read again to find it.
                if let Repeats::Some = repeats {
                    findings = strict::duplicates(json);
                }
                findings.extend(unknown.iter().map(|path| format!("unknown field \"{path}\"")));
            }
        }
        Some(schema) => {
            if let Some(why) = rules::unreadable(&call.api_version(), &kind, &value) {
                return Err(decode::refusal(&kind, &version, &why));
            }
            call.left_empty = rules::left_empty(&call.ty, &value);
            let unknown = decode::coerce(&mut value, schema, &kind, &version)?;
            if let Some(Text { json, repeats }) = text
                && (matches!(repeats, Repeats::Some) || !unknown.is_empty())
            {
                // In which order these stand only the text knows.
                findings = strict::violations(json, schema);
            }
        }
        None => {}
    }
    let told = match text {
        Some(Text { repeats: Repeats::Told(told), .. }) => told.as_slice(),
        _ => &[],
    };
    if validation == FieldValidation::Strict {
        if !told.is_empty() {
            findings.insert(0, goyaml::complaint(told));
        }
        if !findings.is_empty() {
            let why = format!("strict decoding error: {}", findings.join(", "));
            return Err(decode::refusal(&kind, &version, &why));
        }
    }
    call.warnings.extend(told.iter().cloned());
    call.warnings.extend(findings);
    fill_defaults(call, &mut value);
    let api_version = call.api_version();
    let map = object::as_map(&mut value);
    map.insert("apiVersion".into(), api_version.into());
    if !custom {
        map.insert("kind".into(), (*kind).into());
    }
    Ok(value)
}

/// Brings what a webhook left of an object into its schema's shape again, with defaults. What the
/// schema does not know is dropped: the client has no part in it and is not told.
pub(crate) fn reshape(call: &Call<'_>, mut value: Value) -> Result<Value, Status> {
    let (kind, version) = (&*call.ty.kind, &*call.version);
    match (&call.ty.origin, call.schema()) {
        (_, None) => {}
        (Origin::Custom { .. }, Some(schema)) => {
            coerce::coerce_custom(&mut value, schema, kind, version)?;
        }
        (Origin::Builtin, Some(schema)) => {
            if let Some(why) = rules::unreadable(&call.api_version(), kind, &value) {
                return Err(decode::refusal(kind, version, &why));
            }
            decode::coerce(&mut value, schema, kind, version)?;
        }
    }
    fill_defaults(call, &mut value);
    Ok(value)
}

pub(crate) fn fill_defaults(call: &Call<'_>, value: &mut Value) {
    match (&call.ty.origin, call.schema()) {
        (Origin::Custom { .. }, Some(schema)) => default::default(value, schema),
        (Origin::Custom { .. }, None) => {}
        (Origin::Builtin, _) if delete::is_definition(&call.ty) => crd::default(value),
        (Origin::Builtin, _) => rules::default(&call.api_version(), &call.ty.kind, value),
    }
}

/// An update must be of the object that the path names.
pub(crate) fn check_name(call: &Call<'_>, value: &Value) -> Result<(), Status> {
    let (name, namespace) = (object::name(value), object::namespace(value));
    let expected = &*call.name;
    if name.is_empty() {
        return Err(Status::bad_request(format!(
            "the name of the object ({expected} based on URL) was undeterminable: name must be \
             provided"
        )));
    }
    if name != expected {
        return Err(Status::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({expected})"
        )));
    }
    if !namespace.is_empty() && namespace != call.namespace {
        return Err(Status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    Ok(())
}

/// Why a body was not recognized, without what was expected and what the body is.
pub(crate) fn unwrapped<'m>(message: &'m str, kind: &str) -> &'m str {
    let wrapped = format!("the object provided is unrecognized (must be of type {kind}): ");
    let Some(why) = message.strip_prefix(&wrapped) else { return message };
    why.rfind(" (").and_then(|end| why.get(..end)).unwrap_or(why)
}

/// The options of a delete: from the body if there is one, else from the query.
pub(crate) fn delete_options(
    media: Result<BodyFormat, Status>,
    body: &[u8],
    query: &Query,
) -> Result<DeleteOptions, Status> {
    if body.is_empty() {
        return DeleteOptions::from_query(query);
    }
    let default = DefaultKind { api_version: "v1", kind: "DeleteOptions" };
    let parsed = parse(media?, body, default).map_err(|mut status| {
        // Options are read by a decoder that does not say what it expected.
        status.message = unwrapped(&status.message, "DeleteOptions").to_owned();
        status
    })?;
    DeleteOptions::from_body(&parsed.value)
}
