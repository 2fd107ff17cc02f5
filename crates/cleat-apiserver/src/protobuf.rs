//! Request bodies in protobuf, which `kubectl`'s typed commands and Go clients send: decoded into
//! the JSON that Go would have written for the same object.
//!
//! Driven by the layouts of [`crate::builtin::messages`]. Nothing is encoded here: clients accept
//! answers in JSON. Custom resources have no protobuf form.

mod decode;
mod special;
#[cfg(test)]
mod tests;
mod wire;

use serde_json::Value;

use crate::builtin;
use decode::Decoder;
use wire::Reader;

/// What every body begins with.
const MAGIC: &[u8] = b"k8s\0";

/// The kind a body is taken for when it does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DefaultKind<'a> {
    /// `apps/v1`
    pub api_version: &'a str,
    pub kind: &'a str,
}

/// A body that is no object. The text is the error that Kubernetes puts into its bad request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct DecodeError {
    pub message: String,
    /// `apiVersion` and `kind`, once known.
    pub kind: Option<(String, String)>,
}

/// Decodes an object, `apiVersion` and `kind` included.
///
/// Depth and number of values are bounded, so that a body costs memory in proportion to its size.
pub fn decode(body: &[u8], default: DefaultKind<'_>) -> Result<Value, DecodeError> {
    let plain = |message: &str| DecodeError { message: message.to_owned(), kind: None };
    if body.is_empty() {
        return Err(plain("empty data"));
    }
    let rest = body.strip_prefix(MAGIC).ok_or_else(|| {
        plain(
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]",
        )
    })?;
    if rest.is_empty() {
        return Err(plain("empty body"));
    }
    let envelope = envelope(rest).map_err(|message| plain(&message))?;
    let or =
        |given: String, default: &str| if given.is_empty() { default.to_owned() } else { given };
    let kind = or(envelope.kind, default.kind);
    let api_version = or(envelope.api_version, default.api_version);
    let decoded = object(&api_version, &kind, envelope.raw);
    decoded.map_err(|message| DecodeError { message, kind: Some((api_version, kind)) })
}

fn object(api_version: &str, kind: &str, raw: &[u8]) -> Result<Value, String> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let messages = builtin::messages();
    let message = messages.of_kind(group, version, kind).ok_or_else(|| {
        format!(
            "no kind \"{kind}\" is registered for version \"{api_version}\" in scheme \
             \"pkg/api/legacyscheme/scheme.go:30\""
        )
    })?;
    let mut value = Decoder::new(messages).object(raw, message)?;
    if let Some(fields) = value.as_object_mut() {
        fields.insert("apiVersion".to_owned(), api_version.into());
        fields.insert("kind".to_owned(), kind.into());
    }
    Ok(value)
}

struct Envelope<'a> {
    api_version: String,
    kind: String,
    raw: &'a [u8],
}

/// `runtime.Unknown`: the type, and the object as bytes.
fn envelope(bytes: &[u8]) -> Result<Envelope<'_>, String> {
    let mut envelope = Envelope { api_version: String::new(), kind: String::new(), raw: &[] };
    let mut reader = Reader::new(bytes);
    while let Some((number, wire_type)) = reader.tag()? {
        match number {
            1 => {
                let mut reader = Reader::new(reader.bytes(wire_type)?);
                while let Some((number, wire_type)) = reader.tag()? {
                    match number {
                        1 => envelope.api_version = reader.text(wire_type)?,
                        2 => envelope.kind = reader.text(wire_type)?,
                        _ => reader.skip(wire_type)?,
                    }
                }
            }
            2 => envelope.raw = reader.bytes(wire_type)?,
            _ => reader.skip(wire_type)?,
        }
    }
    Ok(envelope)
}
