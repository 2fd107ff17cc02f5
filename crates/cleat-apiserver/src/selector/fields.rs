//! Field selectors: `metadata.name=x,status.phase!=Running`.
//!
//! A selector is parsed first, as text, and then bound to a resource type, which says which
//! fields it may use and where they are. An unbound selector knows `metadata.name` and
//! `metadata.namespace` only and matches nothing by other fields.

use std::borrow::Cow;
use std::fmt;

use serde_json::Value;

use super::selectable::{self, Place};
use crate::quote;
use crate::resource::ResourceType;

/// Terms that an object's fields must all meet. The default one selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector {
    terms: Vec<FieldTerm>,
}

/// `field=value` or `field!=value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldTerm {
    pub field: Box<str>,
    pub value: Box<str>,
    pub negated: bool,
    place: Place,
}

impl FieldSelector {
    /// The string form, in which values escape `\`, `,` and `=` with a backslash. The error is
    /// Kubernetes' sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = split_terms(text);
        parts.sort_unstable();
        let mut terms = Vec::new();
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            let Some((field, negated, value)) = split_term(part) else {
                return Err(format!("invalid selector: '{text}'; can't understand '{part}'"));
            };
            let value = unescaped(value)?.into();
            let place = selectable::metadata(field).unwrap_or(Place::Nowhere);
            terms.push(FieldTerm { field: field.into(), value, negated, place });
        }
        Ok(Self { terms })
    }

    /// Just this one object.
    pub fn named(name: &str) -> Self {
        let place = selectable::metadata("metadata.name").unwrap_or(Place::Nowhere);
        let field = "metadata.name".into();
        Self { terms: vec![FieldTerm { field, value: name.into(), negated: false, place }] }
    }

    /// Finds the places of the fields in objects of that type. The error is Kubernetes' sentence
    /// about the first field that may not be used.
    pub fn bind(self, resource: &ResourceType, version: &str) -> Result<Self, String> {
        let terms = self.terms.into_iter().map(|term| {
            let place = selectable::place(resource, version, &term.field)?;
            Ok(FieldTerm { place, ..term })
        });
        Ok(Self { terms: terms.collect::<Result<_, String>>()? })
    }

    pub fn matches(&self, object: &Value) -> bool {
        self.terms.iter().all(|term| term.matches(object))
    }

    pub fn is_everything(&self) -> bool {
        self.terms.is_empty()
    }

    /// The value `field` must have, if the selector asks for exactly one.
    pub fn exact(&self, field: &str) -> Option<&str> {
        self.terms
            .iter()
            .find(|term| !term.negated && &*term.field == field)
            .map(|term| &*term.value)
    }

    pub fn terms(&self) -> &[FieldTerm] {
        &self.terms
    }
}

impl FieldTerm {
    fn matches(&self, object: &Value) -> bool {
        (*self.place.read(object) == *self.value) != self.negated
    }
}

impl Place {
    fn read<'a>(&'a self, object: &'a Value) -> Cow<'a, str> {
        match self {
            Self::Nowhere => Cow::Borrowed(""),
            Self::Name => Cow::Borrowed(metadata(object, "name")),
            Self::Namespace => Cow::Borrowed(metadata(object, "namespace")),
            Self::Known { paths, absent } => paths
                .iter()
                .filter_map(|path| follow(object, path.split('.')))
                .find(|found| !found.is_empty())
                .unwrap_or(Cow::Borrowed(absent)),
            Self::Custom(path) => {
                follow(object, path.iter().map(AsRef::as_ref)).unwrap_or_default()
            }
        }
    }
}

fn metadata<'a>(object: &'a Value, field: &str) -> &'a str {
    object
        .get("metadata")
        .and_then(|metadata| metadata.get(field))
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The scalar at the end of a path; a list is entered at its first element.
fn follow<'a, 'b>(object: &'a Value, path: impl Iterator<Item = &'b str>) -> Option<Cow<'a, str>> {
    let mut value = object;
    for field in path {
        value = match value {
            Value::Array(items) => items.first()?,
            value => value,
        };
        value = value.get(field)?;
    }
    Some(match value {
        Value::String(text) => Cow::Borrowed(text),
        Value::Null => return None,
        other => Cow::Owned(quote::plain(other)),
    })
}

/// At commas that no backslash escapes.
fn split_terms(text: &str) -> Vec<&str> {
    let mut escaped = false;
    text.split(|c| {
        let splits = c == ',' && !escaped;
        escaped = c == '\\' && !escaped;
        splits
    })
    .collect()
}

/// At the first operator.
fn split_term(term: &str) -> Option<(&str, bool, &str)> {
    let at = term.char_indices().find(|(index, c)| {
        *c == '=' || term.get(*index..).is_some_and(|rest| rest.starts_with("!="))
    })?;
    let (field, rest) = term.split_at_checked(at.0)?;
    if let Some(value) = rest.strip_prefix("!=") {
        return Some((field, true, value));
    }
    let value = rest.strip_prefix("==").or_else(|| rest.strip_prefix('='))?;
    Some((field, false, value))
}

fn unescaped(value: &str) -> Result<String, String> {
    let mut out = String::with_capacity(value.len());
    let mut escaped = false;
    for c in value.chars() {
        match (escaped, c) {
            (true, '\\' | ',' | '=') => {
                out.push(c);
                escaped = false;
            }
            (true, other) => {
                return Err(format!("invalid field selector: invalid escape sequence: \\{other}"));
            }
            (false, '\\') => escaped = true,
            (false, ',' | '=') => {
                // Upstream prints the character's number.
                let code = u32::from(c);
                return Err(format!(
                    "invalid field selector: unescaped character in value: {code}"
                ));
            }
            (false, other) => out.push(other),
        }
    }
    if escaped {
        return Err("invalid field selector: invalid escape sequence: \\".to_owned());
    }
    Ok(out)
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, term) in self.terms.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            let operator = if term.negated { "!=" } else { "=" };
            write!(f, "{}{operator}", term.field)?;
            for c in term.value.chars() {
                if matches!(c, '\\' | ',' | '=') {
                    f.write_str("\\")?;
                }
                write!(f, "{c}")?;
            }
        }
        Ok(())
    }
}
