//! The query of a request: its parameters, and the options of each verb that they carry.
//!
//! Options are read and checked in one step, with the refusals of kube-apiserver: what cannot be
//! read is a bad request, what makes no sense an invalid `…Options`.

mod delete;
mod list;
mod shown;
#[cfg(test)]
mod tests;
mod token;
mod write;

pub use delete::{DeleteOptions, Propagation};
pub use list::{ListOptions, VersionMatch, resource_version};
pub use token::{ContinueToken, TokenError};
pub use write::{FieldValidation, Include, WriteOptions, field_manager, include_object};

use percent_encoding::percent_decode;

use crate::quote::quoted;

/// The parameters of a query, decoded, in the order given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    parameters: Vec<(String, String)>,
}

impl Query {
    /// What stands behind the question mark. Parameters that cannot be decoded are dropped, as Go
    /// does.
    pub fn parse(text: &str) -> Self {
        let parameters = text
            .split('&')
            .filter(|part| !part.is_empty() && !part.contains(';'))
            .filter_map(|part| {
                let (name, value) = part.split_once('=').unwrap_or((part, ""));
                Some((decoded(name)?, decoded(value)?))
            })
            .collect();
        Self { parameters }
    }

    /// The first value of that name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(key, _)| key == name).map(|(_, value)| &**value)
    }

    /// Like [`Query::get`], with nothing for an absent one.
    pub fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }

    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.parameters.iter().filter(move |(key, _)| key == name).map(|(_, value)| &**value)
    }

    /// A parameter that is there is true unless it is `0` or `false`.
    pub fn flag(&self, name: &str) -> Option<bool> {
        self.get(name).map(|value| !(value == "0" || value.eq_ignore_ascii_case("false")))
    }

    /// A whole number. The error is Go's sentence.
    pub fn integer(&self, name: &str) -> Result<Option<i64>, String> {
        self.get(name).map(|text| integer("ParseInt", text)).transpose()
    }
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' && !(hex(bytes.next()) && hex(bytes.next())) {
            return None;
        }
    }
    let spaced = text.replace('+', " ");
    Some(percent_decode(spaced.as_bytes()).decode_utf8_lossy().into_owned())
}

fn hex(byte: Option<u8>) -> bool {
    byte.is_some_and(|byte| byte.is_ascii_hexdigit())
}

/// A number as Go's function of that name reads it, or refuses it.
fn integer<T: std::str::FromStr<Err = std::num::ParseIntError>>(
    function: &str,
    text: &str,
) -> Result<T, String> {
    use std::num::IntErrorKind::{NegOverflow, PosOverflow};
    text.parse().map_err(|error: std::num::ParseIntError| match error.kind() {
        PosOverflow | NegOverflow => {
            format!("strconv.{function}: parsing {}: value out of range", quoted(text))
        }
        _ => not_a_number(function, text),
    })
}

fn not_a_number(function: &str, text: &str) -> String {
    format!("strconv.{function}: parsing {}: invalid syntax", quoted(text))
}
