//! How an object differs from what it should be, for people: a unified diff of YAML.

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use cleat_dialect::{difflib, yaml};
use serde_json::Value;

use super::server::stripped;

/// Lines shown around each change.
const CONTEXT: usize = 5;

/// Lines of a diff that are kept, and those of its header.
const LINES: usize = 50;
const HEADER: usize = 3;

/// Longer texts are not compared line by line.
const LONGEST_TEXT: usize = 512 * 1024;

/// Said in place of a diff that might tell secrets.
pub const REDACTED: &str = "# The difference is redacted because it contains sensitive data. To override, the spec[\"object-templates\"][].recordDiff field must be set to \"InStatus\" for the difference to be recorded in the policy status. Consider existing access to the ConfigurationPolicy objects and the etcd encryption configuration before you proceed with an override.";

/// What is recorded of the differences of a template that secrets went into, if it does not say.
pub const CENSORED: &str = "Censored";

/// Where a difference is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordDiff {
    InStatus,
    Log,
    None,
    /// Only that there is one.
    Redacted,
}

impl RecordDiff {
    /// What a template says, or what is safe for its kind. `read_secrets`: resolving its templates
    /// read a Secret.
    pub fn of(said: Option<&str>, definition: &Value, read_secrets: bool) -> Self {
        match said {
            Some("InStatus") => Self::InStatus,
            Some("Log") => Self::Log,
            Some("None") => Self::None,
            Some(CENSORED) => Self::Redacted,
            _ if read_secrets || is_sensitive(definition) => Self::Redacted,
            _ => Self::InStatus,
        }
    }
}

fn is_sensitive(definition: &Value) -> bool {
    let field = |name: &str| definition.get(name).and_then(Value::as_str).unwrap_or_default();
    let group = field("apiVersion").rsplit_once('/').map_or("", |(group, _)| group);
    matches!(
        (group, field("kind")),
        ("", "ConfigMap" | "Secret")
            | ("oauth.openshift.io", "OAuthAccessToken" | "OAuthAuthorizeTokens")
            | ("route.openshift.io", "Route")
    )
}

/// The whole difference; empty if the server would see none.
pub fn full(live: &Value, updated: &Value) -> String {
    let (live, updated) = (stripped(live), stripped(updated));
    let name = |field: &str| {
        let metadata = live.get("metadata").or_else(|| updated.get("metadata"));
        metadata.and_then(|all| all.get(field)).and_then(Value::as_str).unwrap_or_default()
    };
    let who = match name("namespace") {
        "" => name("name").to_owned(),
        namespace => format!("{namespace}/{}", name("name")),
    };
    let (before, after) = (yaml::to_string(&live), yaml::to_string(&updated));
    if before.len().max(after.len()) > LONGEST_TEXT {
        return "# The objects are too large to show how they differ.".to_owned();
    }
    let (from, to) = (format!("{who} : existing"), format!("{who} : updated"));
    difflib::unified(&before, &after, &from, &to, CONTEXT)
}

/// As much of a difference as fits into a status.
pub fn shortened(diff: &str) -> String {
    let lines: Vec<&str> = diff.split('\n').collect();
    let most = LINES + HEADER;
    if lines.len() <= most {
        return diff.to_owned();
    }
    let shown: Vec<&str> = lines.iter().take(most).copied().collect();
    format!("# Truncated: showing {LINES}/{} diff lines:\n{}", lines.len(), shown.join("\n"))
}
