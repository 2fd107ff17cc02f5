//! `protobuf.json`: how the objects look on the wire in protobuf, for the decoder in
//! `cleat-apiserver`.
//!
//! ```text
//! { MESSAGE: [ [NUMBER, NAME, TYPE, CARDINALITY, PRESENCE], … in order of NUMBER ], … }
//! ```
//!
//! - MESSAGE is the OpenAPI definition's name (`io.k8s.api.core.v1.Pod`), also where a message has
//!   no definition because its fields are part of another's (`io.k8s.api.core.v1.VolumeSource`).
//! - NAME is the JSON key, taken from the Go struct's `json` tag, since a few protobuf names are
//!   spelled differently.
//! - TYPE is `string`, `bytes`, `bool`, `int32`, `int64`, `double`, or a MESSAGE.
//! - CARDINALITY is `one`, `many` (a list) or `map` (string keys; TYPE is the values').
//! - PRESENCE says what Kubernetes' JSON shows, which is more than the wire tells, because zero
//!   values are written too:
//!   - `pointer`: what is on the wire, zero or not; nothing when it is not there;
//!   - `omit`: nothing when zero or empty;
//!   - `keep`: always there; when not on the wire, the type's zero value (for a message, `{}` and
//!     its own kept fields; for a list or map, `null`);
//!   - `inline`: the message's fields are the parent's own; NAME is empty.
//!
//! Messages whose JSON is not an object with these fields are listed like the others, with
//! protobuf's field names, and are up to the decoder: `…api.resource.Quantity`,
//! `…meta.v1.{Time,MicroTime,FieldsV1,Verbs}`, `…runtime.RawExtension`, `…util.intstr.IntOrString`,
//! `…apiextensions.v1.{JSON,JSONSchemaPropsOrArray,JSONSchemaPropsOrBool,
//! JSONSchemaPropsOrStringArray}`, and `ExtraValue` of authentication, authorization and
//! certificates.

mod golang;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, Value, json};

use super::modules;
use golang::Tag;

const LIBRARIES: [&str; 4] = ["api", "apimachinery", "apiextensions-apiserver", "kube-aggregator"];

/// Bodies that no OpenAPI document mentions.
const ALSO: [&str; 2] = [
    "io.k8s.apimachinery.pkg.apis.meta.v1.PartialObjectMetadata",
    "io.k8s.apimachinery.pkg.apis.meta.v1.PartialObjectMetadataList",
];

const SCALARS: [&str; 6] = ["string", "bytes", "bool", "int32", "int64", "double"];

#[derive(Clone)]
struct Field {
    number: u32,
    name: String,
    kind: String,
    cardinality: Cardinality,
    presence: Presence,
}

#[derive(Clone, Copy, PartialEq)]
enum Cardinality {
    One,
    Many,
    Map,
}

#[derive(Clone, Copy, PartialEq)]
enum Presence {
    Pointer,
    Omit,
    Keep,
    Inline,
}

/// All messages that `definitions` have, and what those contain.
pub(super) fn read(definitions: &Map<String, Value>) -> Result<Map<String, Value>> {
    let mut known = BTreeMap::new();
    for library in LIBRARIES {
        read_below(&modules::library(library)?, &mut known)?;
    }
    let mut reached = BTreeMap::new();
    let mut open: Vec<String> =
        definitions.keys().cloned().chain(ALSO.map(str::to_owned)).collect();
    while let Some(name) = open.pop() {
        if SCALARS.contains(&&*name) || reached.contains_key(&name) {
            continue;
        }
        let fields = known.get(&name).with_context(|| format!("no message is named {name}"))?;
        open.extend(fields.iter().map(|field| field.kind.clone()));
        reached.insert(name, fields.clone());
    }
    check(&reached, definitions)?;
    Ok(reached
        .into_iter()
        .map(|(name, fields)| (name, fields.iter().map(Field::to_json).collect()))
        .collect())
}

fn read_below(folder: &Path, known: &mut BTreeMap<String, Vec<Field>>) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            read_below(&path, known)?;
        } else if path.file_name().is_some_and(|name| name == "generated.proto") {
            let text = std::fs::read_to_string(&path)?;
            let tags = golang::tags(folder)?;
            parse(&text, &tags, known).with_context(|| format!("read {}", path.display()))?;
        }
    }
    Ok(())
}

/// Understands the little of the language that Kubernetes' generator writes: messages of fields,
/// one a line, never nested.
fn parse(
    text: &str,
    tags: &BTreeMap<(String, u32), Tag>,
    known: &mut BTreeMap<String, Vec<Field>>,
) -> Result<()> {
    let mut package = String::new();
    let mut message: Option<(String, Vec<Field>)> = None;
    for line in text.lines() {
        let line = line.split("//").next().unwrap_or_default().trim();
        if let Some(name) = line.strip_prefix("package ") {
            package = name.trim_end_matches(';').to_owned();
        } else if let Some(name) = line.strip_prefix("message ") {
            message = Some((name.trim_end_matches('{').trim().to_owned(), Vec::new()));
        } else if line == "}" {
            if let Some((name, mut fields)) = message.take() {
                fields.sort_by_key(|field| field.number);
                known.insert(definition(&format!("{package}.{name}")), fields);
            }
        } else if let Some((name, fields)) = &mut message
            && let Some(statement) = line.strip_suffix(';')
        {
            fields.push(field(statement, &package, name, tags)?);
        }
    }
    Ok(())
}

/// `optional string name = 1`, `repeated .k8s.io.… x = 2`, `map<string, string> y = 3`.
fn field(
    statement: &str,
    package: &str,
    message: &str,
    tags: &BTreeMap<(String, u32), Tag>,
) -> Result<Field> {
    let unclear = || format!("understand `{statement}`");
    let (declaration, number) = statement.split_once(" = ").with_context(unclear)?;
    let number: u32 = number.parse().with_context(unclear)?;
    let (kind, proto_name) = declaration.rsplit_once(' ').with_context(unclear)?;
    let (kind, cardinality) = if let Some(kind) = kind.strip_prefix("optional ") {
        (kind, Cardinality::One)
    } else if let Some(kind) = kind.strip_prefix("repeated ") {
        (kind, Cardinality::Many)
    } else if let Some(types) = kind.strip_prefix("map<string,") {
        (types.trim_end_matches('>').trim(), Cardinality::Map)
    } else {
        bail!(unclear());
    };
    let is_message = !SCALARS.contains(&kind);
    let kind = match kind.strip_prefix('.') {
        _ if !is_message => kind.to_owned(),
        Some(absolute) => definition(absolute),
        None if kind.contains('.') => definition(kind),
        None => definition(&format!("{package}.{kind}")),
    };
    let (name, presence) = match tags.get(&(message.to_owned(), number)) {
        // Messages that are no Go structs; the decoder knows them by name.
        None => (proto_name, Presence::Omit),
        Some(tag) if tag.inline => ("", Presence::Inline),
        Some(tag) if tag.pointer => (&*tag.name, Presence::Pointer),
        // Go leaves no struct out for being empty.
        Some(tag) if is_message && cardinality == Cardinality::One && !tag.omit_zero => {
            (&*tag.name, Presence::Keep)
        }
        Some(tag) if tag.omit_empty => (&*tag.name, Presence::Omit),
        Some(tag) => (&*tag.name, Presence::Keep),
    };
    Ok(Field { number, name: name.to_owned(), kind, cardinality, presence })
}

/// `k8s.io.api.core.v1.Pod` → `io.k8s.api.core.v1.Pod`.
fn definition(message: &str) -> String {
    let rest = message.strip_prefix("k8s.io.").unwrap_or(message);
    format!("io.k8s.{}", rest.replacen('_', "-", 1))
}

/// Every field must be a property of its definition, inlined ones of the parent's.
fn check(messages: &BTreeMap<String, Vec<Field>>, definitions: &Map<String, Value>) -> Result<()> {
    for (name, fields) in messages {
        let properties = definitions.get(name).and_then(|schema| schema.get("properties"));
        let Some(properties) = properties.and_then(Value::as_object) else { continue };
        for field in fields {
            let inlined = match field.presence {
                Presence::Inline => messages.get(&field.kind).map(Vec::as_slice),
                _ => Some(std::slice::from_ref(field)),
            };
            for field in inlined.unwrap_or_default() {
                ensure!(
                    field.presence == Presence::Inline || properties.contains_key(&field.name),
                    "{name} has no property {}",
                    field.name
                );
            }
        }
    }
    Ok(())
}

impl Field {
    fn to_json(&self) -> Value {
        let cardinality = match self.cardinality {
            Cardinality::One => "one",
            Cardinality::Many => "many",
            Cardinality::Map => "map",
        };
        let presence = match self.presence {
            Presence::Pointer => "pointer",
            Presence::Omit => "omit",
            Presence::Keep => "keep",
            Presence::Inline => "inline",
        };
        json!([self.number, self.name, self.kind, cardinality, presence])
    }
}
