//! Why a strategic merge patch was refused, and with which status.

use serde_json::{Map, Value};
use thiserror::Error;

use super::shown;
use crate::patch::does_not_fit;
use crate::quote::{plain, type_name};
use crate::status::Status;

/// Texts are upstream's: clients see them.
#[derive(Debug, Error, PartialEq)]
pub(super) enum Refusal {
    #[error("invalid JSON document")]
    NotAnObject,
    #[error("invalid patch format of primitive list")]
    BadPrimitiveList,
    #[error("invalid patch format of retainKeys")]
    BadRetainKeys,
    #[error("invalid patch format of setElementOrder list")]
    BadOrder,
    #[error("lists of lists are not supported")]
    ListOfLists,
    #[error("expected a []interface {{}}, but received a {0}")]
    NotAList(&'static str),
    #[error("expected a map[string]interface {{}}, but received a {0}")]
    NotAMap(&'static str),
    #[error("{0}")]
    Other(String),
}

impl Refusal {
    pub(super) fn not_a_list(value: &Value) -> Self {
        Self::NotAList(type_name(value))
    }

    pub(super) fn not_a_map(value: &Value) -> Self {
        Self::NotAMap(type_name(value))
    }

    pub(super) fn unknown_directive(directive: &Value, map: &Map<String, Value>) -> Self {
        Self::Other(format!("unknown patch type: {} in map: {}", plain(directive), shown(map)))
    }

    pub(super) fn no_merge_key(map: &Map<String, Value>, key: &str) -> Self {
        Self::Other(format!("map: {} does not contain declared merge key: {key}", shown(map)))
    }
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::NotAnObject
            | Refusal::BadPrimitiveList
            | Refusal::BadRetainKeys
            | Refusal::BadOrder => Self::bad_request(refusal.to_string()),
            Refusal::ListOfLists => does_not_fit(),
            // Upstream has no status for these: they go out as bare server errors.
            Refusal::NotAList(_) | Refusal::NotAMap(_) | Refusal::Other(_) => {
                Self::new(500, "", refusal.to_string())
            }
        }
    }
}
