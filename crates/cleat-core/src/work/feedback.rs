//! Values that a work brings back from an object: well-known ones of a few kinds, and whatever
//! JSONPaths select.
//!
//! A field that is not there gives no value and is no failure. A rule that cannot be followed is
//! one, and the other rules still give theirs. Conditions are made elsewhere.

#[cfg(test)]
mod tests;

use alloc::borrow::Cow;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use cleat_api::manifestwork::{
    FeedbackRule, FeedbackRuleType, FeedbackValue, FieldValue, FieldValueType, JsonPath,
};
use cleat_dialect::jsonpath::{JsonPath as Path, Missing};
use serde_json::Value;

/// All values of one object together: what is beyond would make a work too large to store.
const MOST_BYTES: usize = 256 * 1024;
/// The text about rules that could not be followed is cut here.
const LONGEST_FAILURE: usize = 1024;

/// The values that `rules` select from `object`, each name once, and what could not be selected.
///
/// With `raw_json`, structures and several results at once are given as JSON text of at most
/// `max_len` bytes; without it, the first result must be a scalar.
pub fn values(
    object: &Value,
    rules: &[FeedbackRule],
    raw_json: bool,
    max_len: usize,
) -> (Vec<FeedbackValue>, Result<(), String>) {
    let mut selection = Selection {
        object,
        raw: raw_json.then_some(max_len),
        names: BTreeSet::new(),
        values: Vec::new(),
        bytes: 0,
        failures: Vec::new(),
    };
    for rule in rules {
        selection.follow(rule);
    }
    let Selection { values, failures, .. } = selection;
    let told = if failures.is_empty() { Ok(()) } else { Err(cut(failures.join("; "))) };
    (values, told)
}

/// Names and paths of the values that are well known of a kind.
fn well_known(api_version: &str, kind: &str) -> &'static [(&'static str, &'static str)] {
    match (api_version, kind) {
        ("apps/v1", "Deployment") => &[
            ("ReadyReplicas", ".status.readyReplicas"),
            ("Replicas", ".status.replicas"),
            ("AvailableReplicas", ".status.availableReplicas"),
        ],
        ("apps/v1", "DaemonSet") => &[
            ("NumberReady", ".status.numberReady"),
            ("DesiredNumberScheduled", ".status.desiredNumberScheduled"),
            ("NumberAvailable", ".status.numberAvailable"),
        ],
        ("batch/v1", "Job") => &[
            ("JobComplete", r#".status.conditions[?(@.type=="Complete")].status"#),
            ("JobSucceeded", ".status.succeeded"),
        ],
        ("v1", "Pod") => &[
            ("PodReady", r#".status.conditions[?(@.type=="Ready")].status"#),
            ("PodPhase", ".status.phase"),
        ],
        _ => &[],
    }
}

struct Selection<'a> {
    object: &'a Value,
    /// How long JSON text may be, if there may be any.
    raw: Option<usize>,
    names: BTreeSet<String>,
    values: Vec<FeedbackValue>,
    bytes: usize,
    failures: Vec<String>,
}

impl Selection<'_> {
    fn follow(&mut self, rule: &FeedbackRule) {
        let object = self.object;
        let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
        match rule.type_ {
            FeedbackRuleType::WellKnownStatus => {
                let (api_version, kind) = (text("apiVersion"), text("kind"));
                let known = well_known(api_version, kind);
                if known.is_empty() {
                    self.failures.push(format!(
                        "no status is well known of {kind} in {api_version}: use JSONPaths"
                    ));
                }
                for (name, path) in known {
                    self.add(name, path);
                }
            }
            FeedbackRuleType::JsonPaths => {
                let version = text("apiVersion");
                let version = version.rsplit('/').next().unwrap_or_default();
                for JsonPath { name, path, version: wanted } in &rule.json_paths {
                    if wanted.is_empty() || wanted == version {
                        self.add(name, path);
                    } else {
                        self.failures.push(format!(
                            "{name}: is for version {wanted}, and the object is {version}"
                        ));
                    }
                }
            }
            FeedbackRuleType::Unknown => {
                self.failures.push("a rule has a type that this agent does not know".into());
            }
        }
    }

    fn add(&mut self, name: &str, path: &str) {
        // The list is keyed by name: the second of a name would make the whole status invalid.
        if self.names.contains(name) {
            self.failures.push(format!("{name}: the name is used twice"));
            return;
        }
        match select(self.object, path, self.raw) {
            Ok(None) => {}
            Ok(Some(value)) => {
                let length = name.len() + length(&value);
                if self.bytes + length > MOST_BYTES {
                    self.failures
                        .push(format!("{name}: the values together exceed {MOST_BYTES} bytes"));
                    return;
                }
                self.bytes += length;
                self.names.insert(name.to_string());
                self.values.push(FeedbackValue { name: name.to_string(), field_value: value });
            }
            Err(failure) => self.failures.push(format!("{name}: {failure}")),
        }
    }
}

fn length(value: &FieldValue) -> usize {
    let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    8 + text(&value.string) + text(&value.json_raw)
}

fn integer(value: i64) -> FieldValue {
    FieldValue { type_: FieldValueType::Integer, integer: Some(value), ..Default::default() }
}

fn boolean(value: bool) -> FieldValue {
    FieldValue { type_: FieldValueType::Boolean, boolean: Some(value), ..Default::default() }
}

fn string(value: String) -> FieldValue {
    FieldValue { type_: FieldValueType::String, string: Some(value), ..Default::default() }
}

fn json_raw(value: String) -> FieldValue {
    FieldValue { type_: FieldValueType::JsonRaw, json_raw: Some(value), ..Default::default() }
}

fn select(object: &Value, path: &str, raw: Option<usize>) -> Result<Option<FieldValue>, String> {
    if !path.starts_with('.') {
        return Err(format!("the path {path} must begin with a dot"));
    }
    let parsed = Path::parse_expression(path)
        .map_err(|error| format!("the path {path} cannot be read: {error}"))?;
    let found = parsed
        .find(object, Missing::Allowed)
        .map_err(|error| format!("the path {path} does not fit: {error}"))?;
    let Some(results) = found.into_iter().next() else { return Ok(None) };
    let value: Cow<'_, Value> = match (raw, results.as_slice()) {
        (_, []) => return Ok(None),
        (Some(_), [_, _, ..]) => {
            Cow::Owned(Value::Array(results.into_iter().map(Cow::into_owned).collect()))
        }
        (_, [first, ..]) => first.clone(),
    };
    match &*value {
        Value::Null => Ok(None),
        Value::Bool(flag) => Ok(Some(boolean(*flag))),
        Value::String(text) => Ok(Some(string(text.clone()))),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => Ok(Some(integer(whole))),
            None => Err(format!("{number} is not a whole number of 64 bits")),
        },
        Value::Array(_) | Value::Object(_) => {
            let Some(longest) = raw else {
                return Err(format!("the value at {path} is neither text, number nor truth"));
            };
            let text = value.to_string();
            if text.len() > longest {
                return Err(format!(
                    "the value at {path} has {} bytes of JSON, at most {longest} are brought back",
                    text.len()
                ));
            }
            Ok(Some(json_raw(text)))
        }
    }
}

fn cut(mut text: String) -> String {
    if text.len() > LONGEST_FAILURE {
        let end = (0..=LONGEST_FAILURE).rev().find(|at| text.is_char_boundary(*at));
        text.truncate(end.unwrap_or_default());
        text.push('…');
    }
    text
}
