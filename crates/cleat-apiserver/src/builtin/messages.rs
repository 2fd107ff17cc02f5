//! `data/protobuf.json`: how built-in kinds are laid out in protobuf. The format, and which
//! messages need more than their layout, is described in `xtask/src/generate/protobuf.rs`.
//!
//! Only the layouts: reading and writing bytes by them is another module's.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::DataError;

const DATA: &str = include_str!("../../data/protobuf.json");

/// All layouts, found by message or by kind.
#[derive(Debug, Default)]
pub struct Messages {
    all: Vec<Message>,
    names: BTreeMap<&'static str, MessageId>,
    kinds: Kinds,
}

/// A message's place among [`Messages`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(u32);

/// One message.
#[derive(Debug)]
pub struct Message {
    /// The OpenAPI definition's name, `io.k8s.api.core.v1.Pod`.
    pub name: &'static str,
    /// In order of number.
    pub fields: Vec<Field>,
}

/// One field of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    pub number: u32,
    /// The JSON key; empty when the field is inlined.
    pub name: &'static str,
    pub kind: FieldType,
    pub cardinality: Cardinality,
    pub presence: Presence,
}

/// What a field, or each element of it, is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldType {
    String,
    Bytes,
    Bool,
    Int32,
    Int64,
    Double,
    Message(MessageId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cardinality {
    One,
    Many,
    /// Keys are strings.
    Map,
}

/// When Kubernetes' JSON shows a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Presence {
    /// When it is on the wire, zero or not.
    Pointer,
    /// When it is neither zero nor empty.
    Omit,
    /// Always: a zero value when it is not on the wire, `{}` for a message and `null` for a list
    /// or map.
    Keep,
    /// The message's fields stand among the parent's.
    Inline,
}

impl Messages {
    pub fn get(&self, id: MessageId) -> Option<&Message> {
        self.all.get(id.0 as usize)
    }

    /// The message of that OpenAPI definition.
    pub fn named(&self, name: &str) -> Option<&Message> {
        self.names.get(name).and_then(|id| self.get(*id))
    }

    /// The message for bodies of that kind. Kinds that belong to all groups are found under any.
    pub fn of_kind(&self, group: &str, version: &str, kind: &str) -> Option<&Message> {
        if let "DeleteOptions" | "Status" | "WatchEvent" = kind {
            return self.named(&format!("io.k8s.apimachinery.pkg.apis.meta.v1.{kind}"));
        }
        self.kinds.get(&(group.into(), version.into(), kind.into())).and_then(|id| self.get(*id))
    }
}

/// By group, version and kind.
type Kinds = BTreeMap<(Box<str>, Box<str>, Box<str>), MessageId>;

/// A field as the file has it.
type Row = (u32, &'static str, &'static str, Cardinality, Presence);

pub(super) fn load() -> Result<Messages, DataError> {
    let file: BTreeMap<&'static str, Vec<Row>> = serde_json::from_str(DATA)?;
    let names: BTreeMap<&'static str, MessageId> =
        file.keys().zip(0..).map(|(name, index)| (*name, MessageId(index))).collect();
    let mut all = Vec::with_capacity(file.len());
    for (name, rows) in file {
        let mut fields = Vec::with_capacity(rows.len());
        for (number, name, kind, cardinality, presence) in rows {
            let kind = match kind {
                "string" => FieldType::String,
                "bytes" => FieldType::Bytes,
                "bool" => FieldType::Bool,
                "int32" => FieldType::Int32,
                "int64" => FieldType::Int64,
                "double" => FieldType::Double,
                other => FieldType::Message(
                    *names.get(other).ok_or_else(|| DataError::Undefined(other.to_owned()))?,
                ),
            };
            fields.push(Field { number, name, kind, cardinality, presence });
        }
        all.push(Message { name, fields });
    }
    Ok(Messages { all, kinds: kinds(&names), names })
}

fn kinds(names: &BTreeMap<&'static str, MessageId>) -> Kinds {
    let mut kinds = Kinds::new();
    for (name, schema) in super::schemas().definitions() {
        let Some(id) = names.get(name) else { continue };
        for gvk in &schema.node().group_version_kinds {
            let part = |key| gvk.get(key).and_then(Value::as_str).unwrap_or_default().into();
            kinds.insert((part("group"), part("version"), part("kind")), *id);
        }
    }
    kinds
}
