//! Kubernetes' `Status`: how a server says that something did not work.

use cleat_core::id::Target;
use cleat_core::write::Refusal;
use serde::Deserialize;

use crate::wire::{Answer, shorten};

/// What a 404 was about.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    Object,
    Kind,
    /// Something the request needs, such as the namespace to create in.
    Other,
}

/// What we read of Kubernetes' `Status`.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct Status {
    kind: String,
    code: u16,
    pub(crate) reason: String,
    pub(crate) message: String,
    details: Details,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Details {
    name: String,
    kind: String,
    causes: Vec<Cause>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Cause {
    reason: String,
}

impl Status {
    /// Also of an answer that is none, such as a gateway's page or plain text.
    pub(crate) fn of(answer: &Answer) -> Self {
        let parsed = serde_json::from_slice::<Self>(&answer.body).ok();
        let mut status = parsed.filter(|status| status.kind == "Status").unwrap_or_else(|| {
            let text = String::from_utf8_lossy(&answer.body).trim().to_owned();
            Self { message: text, ..Self::default() }
        });
        status.code = answer.code;
        if status.message.is_empty() {
            status.message = format!("the server answered {}", answer.code);
        }
        status.message = shorten(status.message);
        status
    }

    /// The server names the object that is missing. Where it names none it does not know the path,
    /// and so not the kind.
    pub(crate) fn missing(&self, target: &Target) -> Missing {
        let Details { name, kind, causes: _ } = &self.details;
        if self.reason != "NotFound" || name.is_empty() {
            Missing::Kind
        } else if *name != target.id.name
            || (kind == "namespaces" && target.id.resource != "namespaces")
        {
            Missing::Other
        } else {
            Missing::Object
        }
    }

    pub(crate) fn is_from_webhook(&self) -> bool {
        self.message.starts_with("admission webhook ")
    }

    pub(crate) fn is_about_managers(&self) -> bool {
        self.details.causes.iter().any(|cause| cause.reason == "FieldManagerConflict")
    }

    pub(crate) fn refusal(self) -> Refusal {
        Refusal { code: self.code, reason: self.reason, message: self.message }
    }
}
