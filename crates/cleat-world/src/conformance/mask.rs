//! Replaces in a case's answers what no two servers can have in common: uids, revisions, times,
//! generated names, keys, addresses.
//!
//! A replaced value is named after the step that showed it first (`uid-3`), so that answers still
//! tell whether two values are the same, and one missing value does not rename all later ones.
//! The form of a value is kept where it matters: a time with microseconds is not a time without.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use regex::{Captures, Regex};
use serde_json::{Map, Value, json};
use x509_parser::pem::parse_x509_pem;

/// What was replaced so far in one case.
pub(crate) struct Mask {
    /// Texts known from the start: the case's id, the webhooks' address and authority.
    fixed: Vec<(String, &'static str)>,
    seen: BTreeMap<(&'static str, String), String>,
    /// Names the server made up, longest first.
    generated: Vec<(String, String)>,
    /// Names it may make up and refuse.
    prefixes: Vec<Regex>,
    step: String,
    count: BTreeMap<&'static str, usize>,
}

impl Mask {
    pub(crate) fn new(fixed: Vec<(String, &'static str)>) -> Self {
        Self {
            fixed,
            seen: BTreeMap::new(),
            generated: Vec::new(),
            prefixes: Vec::new(),
            step: String::new(),
            count: BTreeMap::new(),
        }
    }

    /// Expects names made from what a request says; objects that come back say it themselves.
    pub(crate) fn expect_generated(&mut self, prefix: &str) {
        let pattern = format!("({})[bcdfghjklmnpqrstvwxz2456789]{{5}}\\b", regex::escape(prefix));
        // An escaped text is always a pattern.
        self.prefixes.extend(Regex::new(&pattern));
    }

    /// Masks the answer to the step with this label. Steps must come in order.
    pub(crate) fn answer(&mut self, step: &str, answer: &Value) -> Value {
        step.clone_into(&mut self.step);
        self.count.clear();
        self.learn_names(answer);
        self.value(answer, Revision::Object)
    }

    fn value(&mut self, value: &Value, revision: Revision) -> Value {
        match value {
            Value::String(text) => self.text(text),
            Value::Array(items) => {
                Value::Array(items.iter().map(|item| self.value(item, revision)).collect())
            }
            Value::Object(fields) => self.object(fields, revision),
            other => other.clone(),
        }
    }

    fn object(&mut self, fields: &Map<String, Value>, outer: Revision) -> Value {
        let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
        let revision = if fields.contains_key("items") || text("kind") == "Table" {
            Revision::List
        } else if text("type") == "BOOKMARK" {
            Revision::Bookmark
        } else if fields.contains_key("kind") && outer == Revision::List {
            Revision::Object
        } else {
            outer
        };
        let mut masked = Map::new();
        for (name, value) in fields {
            let value = match (name.as_str(), value) {
                ("resourceVersion", Value::String(text)) => self.revision(text, revision),
                ("continue", Value::String(text)) if !text.is_empty() => json!("(continue)"),
                // One text: field by field it would be most of every answer.
                ("fieldsV1", Value::Object(_)) => self.text(&value.to_string()),
                ("items" | "rows" | "object", _) if revision != Revision::Bookmark => {
                    self.value(value, Revision::Object)
                }
                ("managedFields", Value::Array(entries)) => {
                    // In order of time, to the second: by chance, when a case crosses one.
                    let mut entries = entries.clone();
                    entries.sort_by_key(manager);
                    self.value(&Value::Array(entries), revision)
                }
                ("cells", Value::Array(cells)) => {
                    cells.iter().map(|cell| self.cell(cell)).collect()
                }
                ("nodePort" | "healthCheckNodePort", Value::Number(_)) => json!("(port)"),
                // Prose, and everybody's own.
                ("kubernetes.io/description", _) => json!("(description)"),
                ("description", Value::String(_)) => continue,
                _ => self.value(value, revision),
            };
            let name = match self.text(name) {
                Value::String(name) => name,
                _ => name.clone(),
            };
            masked.insert(name, value);
        }
        Value::Object(masked)
    }

    fn revision(&mut self, text: &str, revision: Revision) -> Value {
        // Never a stored object's: clients write these.
        if text.is_empty() || text == "0" || text.bytes().any(|byte| !byte.is_ascii_digit()) {
            return json!(text);
        }
        match revision {
            // Other cases write meanwhile: it need not be that of the newest object.
            Revision::List => json!("(list)"),
            Revision::Bookmark => json!("(bookmark)"),
            Revision::Object => json!(self.name("revision", text)),
        }
    }

    fn cell(&mut self, cell: &Value) -> Value {
        match cell {
            Value::String(text) if AGE.is_match(text) => json!("(age)"),
            other => self.value(other, Revision::Object),
        }
    }

    fn text(&mut self, text: &str) -> Value {
        if let Some(described) = certificate(text) {
            return described;
        }
        if JWT.is_match(text) {
            return self.token(text);
        }
        let mut text = text.to_owned();
        for (fixed, name) in &self.fixed {
            text = text.replace(fixed.as_str(), name);
        }
        for (generated, name) in &self.generated {
            text = text.replace(generated.as_str(), name);
        }
        let text = UUID.replace_all(&text, |found: &Captures<'_>| {
            self.name("uid", found.get(0).map_or("", |found| found.as_str()))
        });
        let mut text = text.into_owned();
        for pattern in [&REVISION, &WANTED] {
            text = pattern
                .replace_all(&text, |found: &Captures<'_>| {
                    let part = |index: usize| found.get(index).map_or("", |found| found.as_str());
                    format!("{}{}", part(1), self.name("revision", part(2)))
                })
                .into_owned();
        }
        for pattern in &self.prefixes {
            text = pattern.replace_all(&text, "$1(generated)").into_owned();
        }
        let text =
            TIME.replace_all(
                &text,
                |found: &Captures<'_>| {
                    if found.get(1).is_some() { "(microtime)" } else { "(time)" }
                },
            );
        let text = STORAGE_KEY.replace_all(&text, "Key: /registry/");
        let text = FINGERPRINT.replace_all(&text, "X509SHA256=(fingerprint)");
        let text = PEM.replace_all(&text, "(certificate)");
        let text = ADDRESS.replace_all(&text, "(address)");
        let text = CLUSTER_IP.replace_all(&text, "(cluster-ip)");
        let text = TOO_OLD.replace_all(&text, "too old resource version: $1 ((revision))");
        let text = TOO_LARGE
            .replace_all(&text, "Too large resource version: (revision), current: (revision)");
        let text = API_ACCESS.replace_all(&text, "kube-api-access-(generated)");
        let text = DURATION.replace_all(&text, "(duration)");
        json!(text)
    }

    /// What a token says, without what differs each time.
    fn token(&mut self, text: &str) -> Value {
        let claims = text
            .split('.')
            .nth(1)
            .and_then(|payload| URL_SAFE_NO_PAD.decode(payload).ok())
            .and_then(|payload| serde_json::from_slice::<Value>(&payload).ok());
        let Some(Value::Object(mut claims)) = claims else {
            return json!("(token)");
        };
        let mut time = |name: &str| claims.remove(name).and_then(|time| time.as_i64());
        let (issued, expires, not_before) = (time("iat"), time("exp"), time("nbf"));
        let lifetime = expires.zip(issued).map(|(expires, issued)| expires - issued);
        if let Some(Value::Object(bound)) = claims.get_mut("kubernetes.io")
            && let Some(after) = bound.get_mut("warnafter")
        {
            *after = json!(after.as_i64().zip(issued).map(|(after, issued)| after - issued));
        }
        let claims = self.value(&Value::Object(claims), Revision::Object);
        json!({"token": claims, "seconds": lifetime, "valid at once": not_before == issued})
    }

    fn name(&mut self, kind: &'static str, value: &str) -> String {
        if let Some(name) = self.seen.get(&(kind, value.to_owned())) {
            return name.clone();
        }
        let count = self.count.entry(kind).or_default();
        *count += 1;
        let name = match *count {
            1 => format!("({kind}-{})", self.step),
            count => format!("({kind}-{}.{count})", self.step),
        };
        self.seen.insert((kind, value.to_owned()), name.clone());
        name
    }

    /// Finds names made from `generateName`, wherever in the answer they are.
    fn learn_names(&mut self, value: &Value) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.learn_names(item)),
            Value::Object(fields) => {
                let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or("");
                let (prefix, name) = (text("generateName"), text("name"));
                if !prefix.is_empty()
                    && name.len() > prefix.len()
                    && name.starts_with(prefix)
                    && !self.generated.iter().any(|(known, _)| known == name)
                {
                    let masked = format!("{prefix}{}", self.name("generated", name));
                    self.generated.push((name.to_owned(), masked));
                    self.generated.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
                }
                fields.values().for_each(|field| self.learn_names(field));
            }
            _ => {}
        }
    }
}

/// What tells one entry of managed fields from the others.
fn manager(entry: &Value) -> Vec<String> {
    ["manager", "operation", "apiVersion", "subresource"]
        .map(|name| entry.get(name).map(Value::to_string).unwrap_or_default())
        .to_vec()
}

/// Whose revision a `resourceVersion` below is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Revision {
    Object,
    List,
    Bookmark,
}

/// What a certificate in base64 says, without keys and dates.
fn certificate(text: &str) -> Option<Value> {
    // "-----BEGIN CERTIFICATE-----" in base64.
    if !text.starts_with("LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t") {
        return None;
    }
    let bytes = STANDARD.decode(text).ok()?;
    let (_, pem) = parse_x509_pem(&bytes).ok()?;
    let certificate = pem.parse_x509().ok()?;
    if certificate.is_ca() {
        return Some(json!("(authority)"));
    }
    let validity = certificate.validity();
    let days = (validity.not_after.timestamp() - validity.not_before.timestamp()) / 86_400;
    let usage = certificate.key_usage().ok().flatten().map(|usage| usage.value.to_string());
    let extended = certificate.extended_key_usage().ok().flatten();
    Some(json!({
        "certificate": certificate.subject().to_string(),
        "days": days,
        "usage": usage,
        "client": extended.as_ref().map(|usage| usage.value.client_auth),
        "server": extended.as_ref().map(|usage| usage.value.server_auth),
    }))
}

macro_rules! pattern {
    ($name:ident, $pattern:expr) => {
        static $name: LazyLock<Regex> = LazyLock::new(|| Regex::new($pattern).unwrap());
    };
}

pattern!(UUID, r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}");
// Not the dates that cases themselves write, which are before 2020.
pattern!(TIME, r"20[2-9]\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z");
pattern!(AGE, r"^(\d+(y|d|h|m|s))+$|^<invalid>$");
pattern!(JWT, r"^eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$");
pattern!(PEM, r"(?s)-----BEGIN CERTIFICATE-----.*-----END CERTIFICATE-----\n?");
pattern!(ADDRESS, r"127\.0\.0\.1:\d+");
pattern!(CLUSTER_IP, r"\b10\.\d+\.\d+\.\d+\b");
// In texts that quote a whole object, as JSON (perhaps quoted again) or YAML.
pattern!(REVISION, r#"(resourceVersion\\*"?: ?\\*"|ResourceVersion in record \()([1-9]\d*)"#);
// What a deletion insisted on. A revision of one digit is no stored object's: cases write these.
pattern!(WANTED, r"(ResourceVersion in the precondition \()(\d{2,})");
// Where an API server keeps its objects is a flag of its own.
pattern!(STORAGE_KEY, r"Key: /\w+/");
pattern!(TOO_OLD, r"too old resource version: (\d+) \(\d+\)");
pattern!(FINGERPRINT, r"X509SHA256=[0-9a-f]{64}");
pattern!(TOO_LARGE, r"Too large resource version: \d+, current: \d+");
// The volume that the API server gives every pod for its service account's token.
pattern!(API_ACCESS, r"kube-api-access-[a-z0-9]{5}\b");
pattern!(DURATION, r"\b\d+(\.\d+)?(ms|µs|ns)\b");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_values_stay_the_same_and_lists_have_revisions_of_their_own() {
        let mut mask = Mask::new(vec![("t1234567".to_owned(), "(id)")]);
        let uid = "0b2d2a10-7a2c-4b8e-a3a0-5a7c1d2e3f40";
        let first = mask.answer(
            "1",
            &json!({"metadata": {"uid": uid, "resourceVersion": "12", "namespace": "ns-t1234567",
                "creationTimestamp": "2026-11-15T21:00:00Z"}}),
        );
        assert_eq!(
            first,
            json!({"metadata": {"uid": "(uid-1)", "resourceVersion": "(revision-1)",
                "namespace": "ns-(id)", "creationTimestamp": "(time)"}})
        );
        let second = mask.answer(
            "2",
            &json!({"kind": "List", "metadata": {"resourceVersion": "12", "continue": "abc"},
                "items": [{"metadata": {"resourceVersion": "12"}},
                    {"metadata": {"resourceVersion": "13", "name": "a-x2k4f", "generateName": "a-"}}]}),
        );
        assert_eq!(
            second,
            json!({"kind": "List", "metadata": {"resourceVersion": "(list)", "continue": "(continue)"},
                "items": [{"metadata": {"resourceVersion": "(revision-1)"}},
                    {"metadata": {"resourceVersion": "(revision-2)", "name": "a-(generated-2)",
                        "generateName": "a-"}}]})
        );
    }

    #[test]
    fn a_revision_that_a_deletion_insisted_on_is_known_again() {
        let mut mask = Mask::new(Vec::new());
        mask.answer("1", &json!({"metadata": {"resourceVersion": "212"}}));
        let refused = |wanted: &str| {
            json!(format!(
                "the ResourceVersion in the precondition ({wanted}) does not match the \
                 ResourceVersion in record (213)"
            ))
        };
        assert_eq!(
            mask.answer("2", &refused("212")),
            "the ResourceVersion in the precondition ((revision-1)) does not match the \
             ResourceVersion in record ((revision-2))"
        );
        assert_eq!(
            mask.answer("3", &refused("1")),
            "the ResourceVersion in the precondition (1) does not match the \
             ResourceVersion in record ((revision-2))"
        );
    }
}
