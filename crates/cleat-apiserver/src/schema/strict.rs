//! What strict field validation finds in the bytes of a request: keys given twice, and keys a
//! built-in kind does not know.
//!
//! Works on the bytes, because a parsed object has already lost duplicates and order. Says nothing
//! about types: [`super::decode`] does.

use std::{collections::BTreeSet, fmt};

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{Additional, Schema};
use crate::quote::quoted;

/// More findings than this are not collected.
const MOST: usize = 100;

/// `duplicate field "spec.a"` for every key given twice, in order of appearance. Bytes that are
/// not JSON give what was found before the mistake.
pub fn duplicates(bytes: &[u8]) -> Vec<String> {
    run(bytes, None)
}

/// Duplicates as in [`duplicates`], and `unknown field "spec.x"` for every key that `schema` does
/// not know, in order of appearance. What is below an unknown key is not looked at.
pub fn violations(bytes: &[u8], schema: Schema<'_>) -> Vec<String> {
    run(bytes, Some(schema))
}

/// The message of a request refused by strict field validation.
pub fn refusal(violations: &[String]) -> String {
    format!("strict decoding error: {}", violations.join(", "))
}

/// A pruned path as strict validation words it.
pub fn unknown_field(path: &str) -> String {
    format!("unknown field {}", quoted(path))
}

fn run(bytes: &[u8], schema: Option<Schema<'_>>) -> Vec<String> {
    let mut findings = Findings::default();
    let mut json = serde_json::Deserializer::from_slice(bytes);
    // A syntax error is reported by whoever parses the body for real.
    let _ = Walk { findings: &mut findings, schema }.deserialize(&mut json);
    findings.found
}

#[derive(Default)]
struct Findings {
    path: String,
    found: Vec<String>,
}

impl Findings {
    fn add(&mut self, what: &str, key: &str) {
        let path = match self.path.as_str() {
            "" => key.to_owned(),
            path => format!("{path}.{key}"),
        };
        let text = format!("{what} field {}", quoted(&path));
        if self.found.len() < MOST && !self.found.contains(&text) {
            self.found.push(text);
        }
    }
}

struct Walk<'f, 'a> {
    findings: &'f mut Findings,
    /// `None` where anything goes.
    schema: Option<Schema<'a>>,
}

impl<'de> DeserializeSeed<'de> for Walk<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let schema = self.schema.and_then(Schema::items);
        let length = self.findings.path.len();
        let mut index = 0_usize;
        loop {
            self.findings.path.push_str(&format!("[{index}]"));
            let more = items.next_element_seed(Walk { findings: self.findings, schema })?;
            self.findings.path.truncate(length);
            if more.is_none() {
                return Ok(());
            }
            index += 1;
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let length = self.findings.path.len();
        let mut seen = BTreeSet::new();
        while let Some(key) = entries.next_key::<String>()? {
            let Some(below) = known(self.schema, &key) else {
                self.findings.add("unknown", &key);
                entries.next_value::<IgnoredAny>()?;
                continue;
            };
            if seen.contains(&key) {
                self.findings.add("duplicate", &key);
            }
            if length > 0 {
                self.findings.path.push('.');
            }
            self.findings.path.push_str(&key);
            entries.next_value_seed(Walk { findings: self.findings, schema: below })?;
            self.findings.path.truncate(length);
            seen.insert(key);
        }
        Ok(())
    }
}

/// The schema below `key`; `None` when a struct has no such field.
fn known<'a>(schema: Option<Schema<'a>>, key: &str) -> Option<Option<Schema<'a>>> {
    let Some(schema) = schema else { return Some(None) };
    let node = schema.node();
    match (node.properties.get(key), node.additional) {
        (Some(id), _) => Some(Some(schema.child(*id))),
        (None, Additional::Schema(id)) => Some(Some(schema.child(id))),
        (None, Additional::Boolean(true)) => Some(None),
        // A built-in definition without properties is opaque: any JSON.
        (None, _) if node.properties.is_empty() => Some(None),
        (None, _) => None,
    }
}

#[cfg(test)]
mod tests;
