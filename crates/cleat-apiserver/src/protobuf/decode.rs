//! From bytes and a layout to JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::special::Special;
use super::wire::{Reader, WireType};
use crate::builtin::{Cardinality, Field, FieldType, Message, Messages, Presence};

/// How deep messages may nest. The deepest useful ones are schemas inside schemas.
const DEEPEST: usize = 96;
/// How many values one object may have: empty messages take two bytes on the wire, but many in
/// memory.
const MOST_VALUES: usize = 500_000;

type Fields = Map<String, Value>;

pub(super) struct Decoder {
    messages: &'static Messages,
    left: usize,
}

impl Decoder {
    pub(super) fn new(messages: &'static Messages) -> Self {
        Self { messages, left: MOST_VALUES }
    }

    pub(super) fn object(&mut self, bytes: &[u8], message: &Message) -> Result<Value, String> {
        self.message(bytes, message, None, 0)
    }

    /// `before` is what an earlier occurrence of the same field has left: messages that come in
    /// parts are merged.
    fn message(
        &mut self,
        bytes: &[u8],
        message: &Message,
        before: Option<Value>,
        depth: usize,
    ) -> Result<Value, String> {
        if depth > DEEPEST {
            return Err("proto: message is nested too deeply".to_owned());
        }
        if let Some(special) = Special::named(message.name) {
            let mut fields = Fields::new();
            self.fields(bytes, message, &mut fields, depth)?;
            return special.json(fields);
        }
        let mut fields = match before {
            Some(Value::Object(fields)) => fields,
            _ => Fields::new(),
        };
        self.fields(bytes, message, &mut fields, depth)?;
        self.settle(message, &mut fields, depth)?;
        Ok(Value::Object(fields))
    }

    /// All fields on the wire, zero or not.
    fn fields(
        &mut self,
        bytes: &[u8],
        message: &Message,
        out: &mut Fields,
        depth: usize,
    ) -> Result<(), String> {
        let mut reader = Reader::new(bytes);
        while let Some((number, wire_type)) = reader.tag()? {
            let known = message.fields.binary_search_by_key(&number, |field| field.number);
            match known.ok().and_then(|index| message.fields.get(index)) {
                None => reader.skip(wire_type)?,
                Some(field) => self
                    .field(&mut reader, wire_type, field, out, depth)
                    .map_err(|error| at(field, error))?,
            }
        }
        Ok(())
    }

    fn field(
        &mut self,
        reader: &mut Reader<'_>,
        wire_type: WireType,
        field: &Field,
        out: &mut Fields,
        depth: usize,
    ) -> Result<(), String> {
        self.spend()?;
        if let (Presence::Inline, FieldType::Message(id)) = (field.presence, field.kind) {
            let bytes = reader.bytes(wire_type)?;
            return match self.messages.get(id) {
                Some(message) if depth < DEEPEST => self.fields(bytes, message, out, depth + 1),
                _ => Err("proto: message is nested too deeply".to_owned()),
            };
        }
        match field.cardinality {
            Cardinality::One => {
                let before = out.remove(field.name);
                let value = self.value(reader, wire_type, field.kind, before, depth)?;
                out.insert(field.name.to_owned(), value);
            }
            Cardinality::Many => {
                let mut items = match out.remove(field.name) {
                    Some(Value::Array(items)) => items,
                    _ => Vec::new(),
                };
                if wire_type == WireType::Length && is_packable(field.kind) {
                    let mut packed = Reader::new(reader.bytes(wire_type)?);
                    while !packed.is_empty() {
                        self.spend()?;
                        let scalar = scalar_wire_type(field.kind);
                        items.push(self.value(&mut packed, scalar, field.kind, None, depth)?);
                    }
                } else {
                    items.push(self.value(reader, wire_type, field.kind, None, depth)?);
                }
                out.insert(field.name.to_owned(), Value::Array(items));
            }
            Cardinality::Map => {
                let entry = reader.bytes(wire_type)?;
                let (key, value) = self.entry(entry, field.kind, depth)?;
                match out.get_mut(field.name) {
                    Some(Value::Object(entries)) => {
                        entries.insert(key, value);
                    }
                    _ => {
                        let entries = Fields::from_iter([(key, value)]);
                        out.insert(field.name.to_owned(), Value::Object(entries));
                    }
                }
            }
        }
        Ok(())
    }

    fn entry(
        &mut self,
        bytes: &[u8],
        kind: FieldType,
        depth: usize,
    ) -> Result<(String, Value), String> {
        let mut reader = Reader::new(bytes);
        let (mut key, mut value) = (String::new(), None);
        while let Some((number, wire_type)) = reader.tag()? {
            match number {
                1 => key = reader.text(wire_type)?,
                2 => value = Some(self.value(&mut reader, wire_type, kind, None, depth)?),
                _ => reader.skip(wire_type)?,
            }
        }
        let value = match value {
            Some(value) => value,
            None => self.zero(kind, depth)?,
        };
        Ok((key, value))
    }

    fn value(
        &mut self,
        reader: &mut Reader<'_>,
        wire_type: WireType,
        kind: FieldType,
        before: Option<Value>,
        depth: usize,
    ) -> Result<Value, String> {
        Ok(match kind {
            FieldType::String => Value::String(reader.text(wire_type)?),
            FieldType::Bytes => Value::String(STANDARD.encode(reader.bytes(wire_type)?)),
            FieldType::Bool => Value::Bool(reader.integer(wire_type)? != 0),
            FieldType::Int64 => Value::from(reader.integer(wire_type)?),
            // Go keeps the lower half of what may be a longer number.
            #[expect(clippy::cast_possible_truncation, reason = "that is what it means")]
            FieldType::Int32 => Value::from(reader.integer(wire_type)? as i32),
            FieldType::Double => number(reader.double(wire_type)?)?,
            FieldType::Message(id) => {
                let bytes = reader.bytes(wire_type)?;
                let message = self.messages.get(id).ok_or("proto: unknown message")?;
                self.message(bytes, message, before, depth + 1)?
            }
        })
    }

    /// Makes the fields those that JSON shows: zero ones away, or there, as each is declared.
    fn settle(
        &mut self,
        message: &Message,
        fields: &mut Fields,
        depth: usize,
    ) -> Result<(), String> {
        for field in &message.fields {
            match field.presence {
                Presence::Pointer => {}
                Presence::Omit => {
                    if fields.get(field.name).is_some_and(is_empty) {
                        fields.remove(field.name);
                    }
                }
                Presence::Keep => {
                    if !fields.contains_key(field.name) {
                        self.spend()?;
                        let zero = match field.cardinality {
                            Cardinality::One => self.zero(field.kind, depth)?,
                            Cardinality::Many | Cardinality::Map => Value::Null,
                        };
                        fields.insert(field.name.to_owned(), zero);
                    }
                }
                Presence::Inline => {
                    if let FieldType::Message(id) = field.kind
                        && let Some(inner) = self.messages.get(id)
                        && depth < DEEPEST
                    {
                        self.settle(inner, fields, depth + 1)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// What Go writes for a field that was never set.
    fn zero(&mut self, kind: FieldType, depth: usize) -> Result<Value, String> {
        Ok(match kind {
            FieldType::String => Value::String(String::new()),
            FieldType::Bytes => Value::Null,
            FieldType::Bool => Value::Bool(false),
            FieldType::Int32 | FieldType::Int64 | FieldType::Double => Value::from(0),
            FieldType::Message(id) => {
                let message = self.messages.get(id).ok_or("proto: unknown message")?;
                self.message(&[], message, None, depth + 1)?
            }
        })
    }

    fn spend(&mut self) -> Result<(), String> {
        self.left = self.left.checked_sub(1).ok_or("proto: object has too many values")?;
        Ok(())
    }
}

fn at(field: &Field, error: String) -> String {
    match error.strip_prefix("proto: wrong wireType") {
        Some(rest) if !rest.contains("for field") => {
            format!("proto: wrong wireType{rest} for field {}", field.name)
        }
        _ => error,
    }
}

fn is_packable(kind: FieldType) -> bool {
    matches!(kind, FieldType::Bool | FieldType::Int32 | FieldType::Int64 | FieldType::Double)
}

fn scalar_wire_type(kind: FieldType) -> WireType {
    if kind == FieldType::Double { WireType::Fixed64 } else { WireType::Varint }
}

/// Whole numbers become integers, as they would be after a round through JSON.
fn number(value: f64) -> Result<Value, String> {
    #[expect(clippy::cast_possible_truncation, reason = "within the bounds it is exact")]
    if value.fract() == 0.0 && value.abs() < 9e15 {
        return Ok(Value::from(value as i64));
    }
    serde_json::Number::from_f64(value)
        .map(Value::Number)
        .ok_or_else(|| format!("json: unsupported value: {value}"))
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}
