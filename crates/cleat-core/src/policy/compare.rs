//! Whether an object is as a template says, and what it would be if it were.
//!
//! Pure comparison of two JSON objects. Whether the difference is written, and whether the server
//! agrees that there is one, is decided elsewhere.

pub mod diff;
mod equal;
mod merge;
mod metadata;
mod quantity;
mod server;

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::String;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use equal::{Absence, Equality};
use merge::Merge;
pub use server::same_to_a_server;

/// What a template asks of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Compliance {
    MustHave,
    MustOnlyHave,
    MustNotHave,
}

impl Compliance {
    /// Any of the spellings.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            _ if text.eq_ignore_ascii_case("musthave") => Some(Self::MustHave),
            _ if text.eq_ignore_ascii_case("mustonlyhave") => Some(Self::MustOnlyHave),
            _ if text.eq_ignore_ascii_case("mustnothave") => Some(Self::MustNotHave),
            _ => None,
        }
    }

    fn merge(self) -> Merge {
        match self {
            Self::MustHave | Self::MustNotHave => Merge::Keep,
            Self::MustOnlyHave => Merge::Replace,
        }
    }
}

/// `complianceType` and `metadataComplianceType`, which defaults to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    pub compliance: Compliance,
    pub metadata: Compliance,
}

impl Rule {
    pub fn new(compliance: Compliance) -> Self {
        Self { compliance, metadata: compliance }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Comparison {
    /// Nothing to write, and no need to ask the server.
    Same,
    Differs(Difference),
    /// The template cannot be brought together with the object; for users, why.
    Impossible(String),
}

/// How an object differs from what it should be.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The live object after the template was applied, ready to be sent.
    pub merged: Value,
    /// Something other than `status` differs or may differ: only the server can tell what it would
    /// make of `merged`.
    pub content: bool,
    /// `status` differs. It is never written.
    pub status: bool,
}

/// Compares a named object with its template.
pub fn compare(template: &Value, live: &Value, rule: Rule) -> Comparison {
    let (Some(wanted), Some(existing)) = (template.as_object(), live.as_object()) else {
        return Comparison::Impossible("the object definition is not an object".to_owned());
    };
    let mut merged = existing.clone();
    let mut content = Equality::Equal;
    let mut status = Equality::Equal;
    for (key, value) in wanted {
        let compared = match key.as_str() {
            "apiVersion" | "kind" => continue,
            "metadata" => metadata::compared(template, live, rule.metadata.merge())
                .map(|(metadata, equality)| (Value::Object(metadata), equality)),
            "stringData" if is_kind(live, "v1", "Secret") => {
                string_data(value, existing, rule.compliance)
            }
            _ => top_level(key, value, existing.get(key), rule.compliance.merge(), Absence::Zeros),
        };
        match compared {
            Err(problem) => return Comparison::Impossible(problem),
            Ok((_, equality)) if key == "status" => status = equality,
            Ok((value, equality)) => {
                content = content.and(equality);
                merged.insert(key.clone(), value);
            }
        }
    }
    if rule.compliance == Compliance::MustOnlyHave {
        let before = merged.len();
        merged.retain(|key, _| wanted.contains_key(key) || survives(live, key));
        if merged.len() < before {
            content = Equality::Different;
        }
    }
    let (content, status) = (content != Equality::Equal, !status.holds());
    if content || status {
        Comparison::Differs(Difference { merged: Value::Object(merged), content, status })
    } else {
        Comparison::Same
    }
}

/// Whether a live object is one an unnamed template means. The server is not asked; what is absent
/// counts as its zero value.
pub fn matches(template: &Value, live: &Value, rule: Rule) -> bool {
    let (Some(wanted), Some(existing)) = (template.as_object(), live.as_object()) else {
        return false;
    };
    let only = rule.compliance == Compliance::MustOnlyHave;
    if only && existing.keys().any(|key| !wanted.contains_key(key) && !survives(live, key)) {
        return false;
    }
    wanted.iter().all(|(key, value)| {
        let compared = match key.as_str() {
            "apiVersion" | "kind" => return true,
            "metadata" => metadata::compared(template, live, rule.metadata.merge())
                .map(|(_, equality)| equality),
            "stringData" if is_kind(live, "v1", "Secret") => {
                string_data(value, existing, rule.compliance).map(|(_, equality)| equality)
            }
            _ => {
                let how = rule.compliance.merge();
                top_level(key, value, existing.get(key), how, Absence::EmptyMaps)
                    .map(|(_, equality)| equality)
            }
        };
        compared.is_ok_and(Equality::holds)
    })
}

fn top_level(
    key: &str,
    template: &Value,
    live: Option<&Value>,
    how: Merge,
    absence: Absence,
) -> Result<(Value, Equality), String> {
    let existing = live.unwrap_or(&Value::Null);
    let fits = match template {
        Value::Object(_) => existing.is_object() || existing.is_null(),
        Value::Array(_) => existing.is_array() || existing.is_null(),
        _ => true,
    };
    if !fits {
        return Err(format!(
            "Error merging changes into key \"{key}\": object type of template and existing do not match"
        ));
    }
    let merged = merge::merged(template, existing, how);
    let equality = equal::equivalent(&merged, live, absence);
    Ok((merged, equality))
}

/// A Secret's `stringData` is never read back: it is what `data` holds, decoded.
fn string_data(
    template: &Value,
    live: &Map<String, Value>,
    compliance: Compliance,
) -> Result<(Value, Equality), String> {
    let mut decoded = Map::new();
    for (key, value) in live.get("data").and_then(Value::as_object).into_iter().flatten() {
        let text = value.as_str().and_then(|text| STANDARD.decode(text).ok());
        if let Some(text) = text.and_then(|bytes| String::from_utf8(bytes).ok()) {
            decoded.insert(key.clone(), Value::String(text));
        }
    }
    if compliance != Compliance::MustOnlyHave
        && let Some(wanted) = template.as_object()
    {
        decoded.retain(|key, _| wanted.contains_key(key));
    }
    let decoded = Value::Object(decoded);
    top_level("stringData", template, Some(&decoded), compliance.merge(), Absence::Zeros)
}

/// What `mustonlyhave` leaves alone though the template does not speak of it.
fn survives(live: &Value, key: &str) -> bool {
    match key {
        "apiVersion" | "kind" | "metadata" | "status" => true,
        "secrets" | "imagePullSecrets" => is_kind(live, "v1", "ServiceAccount"),
        _ => false,
    }
}

fn is_kind(object: &Value, api_version: &str, kind: &str) -> bool {
    let field = |name: &str| object.get(name).and_then(Value::as_str);
    field("kind") == Some(kind) && field("apiVersion") == Some(api_version)
}

#[cfg(test)]
mod tests;
