//! What templates may read from a cluster, as questions and answers.
//!
//! Nothing is read here. Whoever resolves a template hands in a [`Lookups`]; if that does not have
//! an answer yet, resolution stops and says which question it needs answered, so that the reading
//! can be done where waiting is allowed.

use serde_json::Value as Json;

/// A question to the API server: one object, or a list when `name` is empty.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Query {
    /// `v1`, `apps/v1` and so on.
    pub api_version: String,
    pub kind: String,
    /// Empty for cluster-scoped kinds, or for all namespaces.
    pub namespace: String,
    /// Empty to list.
    pub name: String,
    /// A label selector as kubectl writes it; empty for all objects. Only for lists.
    pub selector: String,
}

impl Query {
    /// Whether many objects are asked for.
    pub fn is_list(&self) -> bool {
        self.name.is_empty()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Cluster,
    Namespaced,
}

/// Why there is no answer. Only *not found* may ever be treated as empty.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LookupError {
    /// The API server says that the object does not exist; the text is its own.
    #[error("{0}")]
    NotFound(String),
    /// The API server does not know the kind.
    #[error("one or more API resources are not installed on the API server")]
    MissingApi,
    /// The question itself is wrong, for example its selector. Asking again will not help.
    #[error("{0}")]
    Refused(String),
    /// The read failed, and nothing is known about the object.
    #[error("{0}")]
    Failed(String),
    /// Nobody has asked yet.
    #[error("this was not read yet")]
    NotYetRead,
}

/// Answers to [`Query`]s.
///
/// # Guarantees expected
/// Within one resolution the same question gets the same answer. A read that failed is
/// [`LookupError::Failed`], never an empty list.
pub trait Lookups {
    /// The object.
    ///
    /// # Errors
    /// See [`LookupError`].
    fn get(&self, query: &Query) -> Result<Json, LookupError>;

    /// The objects, in the order in which templates shall see them.
    ///
    /// # Errors
    /// See [`LookupError`]; never [`LookupError::NotFound`].
    fn list(&self, query: &Query) -> Result<Vec<Json>, LookupError>;

    /// Whether objects of a kind live in namespaces. Only asked when lookups are restricted to
    /// one namespace.
    ///
    /// # Errors
    /// See [`LookupError`].
    fn scope(&self, api_version: &str, kind: &str) -> Result<Scope, LookupError>;
}

/// For templates that may not read anything.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoLookups;

impl NoLookups {
    fn refused<T>() -> Result<T, LookupError> {
        Err(LookupError::Refused("objects cannot be looked up here".to_owned()))
    }
}

impl Lookups for NoLookups {
    fn get(&self, _: &Query) -> Result<Json, LookupError> {
        Self::refused()
    }

    fn list(&self, _: &Query) -> Result<Vec<Json>, LookupError> {
        Self::refused()
    }

    fn scope(&self, _: &str, _: &str) -> Result<Scope, LookupError> {
        Self::refused()
    }
}
