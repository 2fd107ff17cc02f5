//! The plain engine: a text and its data, with Go's and Sprig's functions and no lookups.

use jiff::Timestamp;
use serde_json::Value as Json;

use crate::context::Context;
use crate::exec::{self, Failure, MissingKey};
use crate::lex;
use crate::library::{Env, Library};
use crate::limits::{Budget, Fault, Limits};
use crate::lookup::{LookupError, Query};
use crate::parse;
use crate::random::Random;
use crate::time::Time;
use crate::value::{Numbers, Value, from_json};

/// What encloses an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delimiters {
    pub left: String,
    pub right: String,
}

impl Delimiters {
    /// What templates that are resolved on the hub are written in.
    pub fn hub() -> Self {
        Self { left: "{{hub".to_owned(), right: "hub}}".to_owned() }
    }
}

impl Default for Delimiters {
    fn default() -> Self {
        Self { left: "{{".to_owned(), right: "}}".to_owned() }
    }
}

#[derive(Clone, Debug)]
pub struct RenderOptions {
    /// How messages call the template.
    pub name: String,
    pub delimiters: Delimiters,
    pub missing_key: MissingKey,
    pub limits: Limits,
    /// What `now` answers.
    pub now: Timestamp,
    /// What random choices follow from; without it there are none.
    pub seed: Option<String>,
}

impl RenderOptions {
    pub fn new(now: Timestamp) -> Self {
        Self {
            name: "tmpl".to_owned(),
            delimiters: Delimiters::default(),
            missing_key: MissingKey::default(),
            limits: Limits::default(),
            now,
            seed: None,
        }
    }
}

/// Why a template gave no text. The texts are Go's.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RenderError {
    /// The text is not a template.
    #[error("{0}")]
    Parse(String),
    /// Running it failed.
    #[error("{0}")]
    Execute(String),
    /// It needed more than its [`Limits`] allow.
    #[error("{0}")]
    Limit(String),
    /// A lookup failed. `error` says whether asking again may help.
    #[error("{text}")]
    Lookup { text: String, query: Box<Query>, error: LookupError },
    /// What came out is not UTF-8.
    #[error("the result is not valid UTF-8; encode binary values with base64enc")]
    NotText,
}

/// Renders a template over JSON data, whose whole numbers are `int64` as in Kubernetes objects.
///
/// # Errors
/// See [`RenderError`].
pub fn render(text: &str, data: &Json, options: &RenderOptions) -> Result<String, RenderError> {
    let data = from_json(data, Numbers::Int64);
    run(text, data, &Library::default(), options)
}

/// Renders a template over a [`Context`].
///
/// # Errors
/// See [`RenderError`].
pub fn render_context(
    text: &str,
    context: &Context,
    options: &RenderOptions,
) -> Result<String, RenderError> {
    run(text, context.value(), &Library::default(), options)
}

pub(crate) fn run(
    text: &str,
    data: Value,
    library: &Library<'_>,
    options: &RenderOptions,
) -> Result<String, RenderError> {
    let delimiters = lex::Delimiters {
        left: options.delimiters.left.clone(),
        right: options.delimiters.right.clone(),
    };
    let set =
        parse::parse(&options.name, text, &delimiters, options.limits, &|name| library.knows(name))
            .map_err(RenderError::Parse)?;
    let env = Env {
        budget: Budget::new(options.limits),
        now: Time::new(options.now),
        random: options.seed.as_ref().map(|seed| Random::new(seed, text)),
    };
    let bytes = exec::execute(&set, library, &env, options.missing_key, data)
        .map_err(|failure| RenderError::from(*failure))?;
    String::from_utf8(bytes).map_err(|_| RenderError::NotText)
}

impl From<Failure> for RenderError {
    fn from(failure: Failure) -> Self {
        let Failure { message, fault } = failure;
        match fault {
            Fault::Text(_) => Self::Execute(message),
            Fault::Limit(_) => Self::Limit(message),
            Fault::Lookup { query, error, .. } => Self::Lookup { text: message, query, error },
        }
    }
}
