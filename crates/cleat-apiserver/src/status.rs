//! Kubernetes' `Status`: the only shape in which this server says no.
//!
//! Messages follow kube-apiserver to the letter, because clients and people match on them. Nothing
//! here knows HTTP beyond the status code.

use std::{borrow::Cow, fmt};

use serde_json::{Map, Value, json};

use crate::{
    gojson::{escape_html, in_struct_order},
    quote::{number_text, quoted},
};

/// A refusal (or, rarely, a bare success) as Kubernetes words it.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    pub code: u16,
    pub reason: Cow<'static, str>,
    pub message: String,
    /// Boxed so that a `Result` of this stays small.
    pub details: Box<Details>,
}

/// The `details` of a [`Status`]; empty fields are not written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Details {
    pub name: String,
    pub group: String,
    pub kind: String,
    pub uid: String,
    pub causes: Vec<Cause>,
    pub retry_after_seconds: u32,
    /// Written as `{}` when empty, for the refusals upstream gives details without content.
    pub always: bool,
    /// Goes into the list metadata: how an expired list may be carried on.
    pub continue_token: String,
    /// What the client is told besides, in headers: refused or not, it should know.
    pub warnings: Vec<String>,
}

/// One machine-readable reason inside [`Details`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cause {
    pub reason: Cow<'static, str>,
    pub message: String,
    pub field: String,
}

/// A group and a plural resource name, printed as `deployments.apps` or `pods`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupResource<'a> {
    pub group: &'a str,
    pub resource: &'a str,
}

impl fmt::Display for GroupResource<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.group {
            "" => f.write_str(self.resource),
            group => write!(f, "{}.{group}", self.resource),
        }
    }
}

impl Status {
    pub fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason: Cow::Borrowed(reason),
            message: message.into(),
            details: Box::default(),
        }
    }

    fn about(mut self, what: GroupResource<'_>, name: &str) -> Self {
        self.details.group = what.group.to_owned();
        self.details.kind = what.resource.to_owned();
        self.details.name = name.to_owned();
        self
    }

    /// Has `details` written even when there is nothing in them.
    pub(crate) fn with_details(mut self) -> Self {
        self.details.always = true;
        self
    }

    pub fn with_cause(mut self, cause: Cause) -> Self {
        self.details.causes.push(cause);
        self
    }

    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    /// `why` is the whole sentence after the colon.
    pub fn forbidden(what: GroupResource<'_>, name: &str, why: impl fmt::Display) -> Self {
        let message = match name {
            "" => format!("{what} is forbidden: {why}"),
            name => format!("{what} {} is forbidden: {why}", quoted(name)),
        };
        Self::new(403, "Forbidden", message).about(what, name)
    }

    pub fn not_found(what: GroupResource<'_>, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{what} {} not found", quoted(name))).about(what, name)
    }

    /// The path names nothing this server has.
    pub fn no_such_path() -> Self {
        let mut status =
            Self::new(404, "NotFound", "the server could not find the requested resource");
        status.details.always = true;
        status
    }

    /// The path exists, but not for this method.
    pub fn no_such_method() -> Self {
        let message = "the server does not allow this method on the requested resource";
        let mut status = Self::new(405, "MethodNotAllowed", message);
        status.details.always = true;
        status
    }

    pub fn method_not_supported(what: GroupResource<'_>, verb: &str) -> Self {
        let message = format!("{verb} is not supported on resources of kind \"{what}\"");
        Self::new(405, "MethodNotAllowed", message).about(what, "")
    }

    pub fn not_acceptable(message: impl Into<String>) -> Self {
        Self::new(406, "NotAcceptable", message)
    }

    pub fn already_exists(what: GroupResource<'_>, name: &str) -> Self {
        Self::new(409, "AlreadyExists", format!("{what} {} already exists", quoted(name)))
            .about(what, name)
    }

    pub fn conflict(what: GroupResource<'_>, name: &str, why: impl fmt::Display) -> Self {
        let message = format!("Operation cannot be fulfilled on {what} {}: {why}", quoted(name));
        Self::new(409, "Conflict", message).about(what, name)
    }

    /// The revision asked for has left the history.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    pub fn too_large(message: impl Into<String>) -> Self {
        Self::new(413, "RequestEntityTooLarge", message)
    }

    pub fn unsupported_media_type(message: impl Into<String>) -> Self {
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// What a validation refused. `kind` and `group` name the object's kind, not its resource.
    pub fn invalid(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> Self {
        let subject = match group {
            "" => kind.to_owned(),
            group => format!("{kind}.{group}"),
        };
        let mut texts: Vec<String> = Vec::new();
        for error in errors {
            let text = error.to_string();
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        let all = match texts.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let mut status =
            Self::new(422, "Invalid", format!("{subject} \"{name}\" is invalid: {all}"));
        status.details.group = group.to_owned();
        status.details.kind = kind.to_owned();
        status.details.name = name.to_owned();
        status.details.causes = errors.iter().map(FieldError::cause).collect();
        status
    }

    pub fn too_many_requests(message: impl Into<String>, retry_after_seconds: u32) -> Self {
        let mut status = Self::new(429, "TooManyRequests", message);
        status.details.retry_after_seconds = retry_after_seconds;
        status
    }

    pub fn internal(message: impl fmt::Display) -> Self {
        let mut status =
            Self::new(500, "InternalError", format!("Internal error occurred: {message}"));
        status.details.causes.push(Cause {
            reason: Cow::Borrowed(""),
            message: message.to_string(),
            field: String::new(),
        });
        status
    }

    pub fn service_unavailable(message: impl Into<String>) -> Self {
        Self::new(503, "ServiceUnavailable", message)
    }

    pub fn timeout(message: impl Into<String>) -> Self {
        Self::new(504, "Timeout", message)
    }

    /// The JSON document a client receives.
    pub fn to_json(&self) -> Value {
        let mut body = Map::new();
        body.insert("kind".into(), "Status".into());
        body.insert("apiVersion".into(), "v1".into());
        let meta = match &*self.details.continue_token {
            "" => json!({}),
            token => json!({ "continue": token }),
        };
        body.insert("metadata".into(), meta);
        let success = (200..300).contains(&self.code);
        body.insert("status".into(), if success { "Success" } else { "Failure" }.into());
        if !self.message.is_empty() {
            body.insert("message".into(), self.message.clone().into());
        }
        if !self.reason.is_empty() {
            body.insert("reason".into(), self.reason.clone().into());
        }
        let details = self.details.to_json();
        if !details.is_empty() || self.details.always {
            body.insert("details".into(), Value::Object(details));
        }
        if !success || self.code != 200 {
            body.insert("code".into(), self.code.into());
        }
        Value::Object(body)
    }
}

impl Details {
    fn to_json(&self) -> Map<String, Value> {
        let mut details = Map::new();
        for (key, value) in
            [("name", &self.name), ("group", &self.group), ("kind", &self.kind), ("uid", &self.uid)]
        {
            if !value.is_empty() {
                details.insert(key.into(), value.clone().into());
            }
        }
        if !self.causes.is_empty() {
            let causes = self.causes.iter().map(Cause::to_json).collect();
            details.insert("causes".into(), Value::Array(causes));
        }
        if self.retry_after_seconds > 0 {
            details.insert("retryAfterSeconds".into(), self.retry_after_seconds.into());
        }
        details
    }
}

impl Cause {
    fn to_json(&self) -> Value {
        let mut cause = Map::new();
        for (key, value) in
            [("reason", &*self.reason), ("message", &*self.message), ("field", &*self.field)]
        {
            if !value.is_empty() {
                cause.insert(key.into(), value.into());
            }
        }
        Value::Object(cause)
    }
}

/// One field that a validation refused.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    /// Dotted path from the object's root, `spec.containers[0].name`.
    pub field: String,
    pub problem: Problem,
}

/// What is wrong with a field, in the categories of Kubernetes' field errors.
#[derive(Clone, Debug, PartialEq)]
pub enum Problem {
    Required {
        detail: String,
    },
    Invalid {
        value: Value,
        detail: String,
    },
    /// Like `Invalid`, for a value that is shown in an order JSON objects here do not keep.
    InvalidShown {
        shown: String,
        detail: String,
    },
    /// Like `Invalid`, for a value too large to be shown.
    InvalidOmitted {
        detail: String,
    },
    /// Worded like `Invalid`, but with a reason of its own: the JSON type is wrong.
    TypeInvalid {
        value: Value,
        detail: String,
    },
    NotSupported {
        value: Value,
        supported: Vec<String>,
    },
    Duplicate {
        value: Value,
    },
    /// Like `Duplicate`, for a value too large to be shown.
    DuplicateOmitted,
    NotFound {
        value: Value,
    },
    Forbidden {
        detail: String,
    },
    TooLong {
        max: usize,
    },
    TooMany {
        actual: usize,
        max: usize,
    },
    Internal {
        detail: String,
    },
}

impl FieldError {
    pub fn required(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { field: field.into(), problem: Problem::Required { detail: detail.into() } }
    }

    pub fn invalid(
        field: impl Into<String>,
        value: impl Into<Value>,
        detail: impl Into<String>,
    ) -> Self {
        let problem = Problem::Invalid { value: value.into(), detail: detail.into() };
        Self { field: field.into(), problem }
    }

    pub fn forbidden(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { field: field.into(), problem: Problem::Forbidden { detail: detail.into() } }
    }

    pub fn not_supported(
        field: impl Into<String>,
        value: impl Into<Value>,
        supported: &[&str],
    ) -> Self {
        let supported = supported.iter().map(|s| (*s).to_owned()).collect();
        let problem = Problem::NotSupported { value: value.into(), supported };
        Self { field: field.into(), problem }
    }

    fn cause(&self) -> Cause {
        let reason = match self.problem {
            Problem::Required { .. } => "FieldValueRequired",
            Problem::Invalid { .. }
            | Problem::InvalidShown { .. }
            | Problem::InvalidOmitted { .. } => "FieldValueInvalid",
            Problem::TypeInvalid { .. } => "FieldValueTypeInvalid",
            Problem::NotSupported { .. } => "FieldValueNotSupported",
            Problem::Duplicate { .. } | Problem::DuplicateOmitted => "FieldValueDuplicate",
            Problem::NotFound { .. } => "FieldValueNotFound",
            Problem::Forbidden { .. } => "FieldValueForbidden",
            Problem::TooLong { .. } => "FieldValueTooLong",
            Problem::TooMany { .. } => "FieldValueTooMany",
            Problem::Internal { .. } => "InternalError",
        };
        Cause {
            reason: Cow::Borrowed(reason),
            message: self.problem.to_string(),
            field: self.field.clone(),
        }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.problem)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Required { detail } if detail.is_empty() => f.write_str("Required value"),
            Self::Required { detail } => write!(f, "Required value: {detail}"),
            Self::Invalid { value, detail } | Self::TypeInvalid { value, detail } => {
                write!(f, "Invalid value: {}", Shown(value))?;
                if detail.is_empty() { Ok(()) } else { write!(f, ": {detail}") }
            }
            Self::InvalidShown { shown, detail } => {
                write!(f, "Invalid value: {shown}: {detail}")
            }
            Self::InvalidOmitted { detail } => write!(f, "Invalid value: {detail}"),
            Self::NotSupported { value, supported } => {
                write!(f, "Unsupported value: {}", Shown(value))?;
                let quoted: Vec<String> = supported.iter().map(|s| quoted(s)).collect();
                if quoted.is_empty() {
                    Ok(())
                } else {
                    write!(f, ": supported values: {}", quoted.join(", "))
                }
            }
            Self::Duplicate { value } => write!(f, "Duplicate value: {}", Shown(value)),
            Self::DuplicateOmitted => f.write_str("Duplicate value"),
            Self::NotFound { value } => write!(f, "Not found: {}", Shown(value)),
            Self::Forbidden { detail } if detail.is_empty() => f.write_str("Forbidden"),
            Self::Forbidden { detail } => write!(f, "Forbidden: {detail}"),
            Self::TooLong { max: 1 } => write!(f, "Too long: may not be more than 1 byte"),
            Self::TooLong { max } => write!(f, "Too long: may not be more than {max} bytes"),
            Self::TooMany { actual, max } => {
                let items = if *max == 1 { "item" } else { "items" };
                write!(f, "Too many: {actual}: must have at most {max} {items}")
            }
            Self::Internal { detail } => write!(f, "Internal error: {detail}"),
        }
    }
}

/// A value as it stands in a message: strings in Go's quotes, the rest as Go writes JSON.
pub(crate) struct Shown<'a>(pub(crate) &'a Value);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::String(text) => f.write_str(&quoted(text)),
            Value::Number(number) => f.write_str(&number_text(number)),
            other => f.write_str(&escape_html(&in_struct_order(other))),
        }
    }
}
