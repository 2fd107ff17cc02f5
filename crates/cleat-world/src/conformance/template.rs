//! Puts values into the texts of a case: `<ns>`, or `<created/metadata/uid>` from an earlier answer.
//!
//! A text that is one template and nothing else becomes the value itself, which may be a number or
//! an object; inside a longer text the value must be a text or a number.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use anyhow::{Context as _, Result, bail};
use regex::Regex;
use serde_json::Value;

/// Names that templates can use: texts, and bodies of answers by the step's name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names(BTreeMap<String, Value>);

impl Names {
    pub(crate) fn set(&mut self, name: &str, value: Value) {
        self.0.insert(name.to_owned(), value);
    }

    /// Texts may use names that were set before.
    pub(crate) fn fill(&self, text: &str) -> Result<String> {
        let mut filled = String::new();
        let mut rest = 0;
        for found in TEMPLATE.find_iter(text) {
            filled.push_str(text.get(rest..found.start()).unwrap_or_default());
            match self.look_up(found.as_str())? {
                Value::String(value) => filled.push_str(value),
                Value::Number(value) => filled.push_str(&value.to_string()),
                _ => bail!("{} is neither a text nor a number", found.as_str()),
            }
            rest = found.end();
        }
        filled.push_str(text.get(rest..).unwrap_or_default());
        Ok(filled)
    }

    pub(crate) fn fill_value(&self, value: &Value) -> Result<Value> {
        Ok(match value {
            Value::String(text) => {
                let whole = TEMPLATE.find(text).is_some_and(|found| found.len() == text.len());
                if whole { self.look_up(text)?.clone() } else { Value::String(self.fill(text)?) }
            }
            Value::Array(items) => {
                Value::Array(items.iter().map(|item| self.fill_value(item)).collect::<Result<_>>()?)
            }
            Value::Object(fields) => Value::Object(
                fields
                    .iter()
                    .map(|(name, field)| Ok((self.fill(name)?, self.fill_value(field)?)))
                    .collect::<Result<_>>()?,
            ),
            other => other.clone(),
        })
    }

    fn look_up(&self, template: &str) -> Result<&Value> {
        let path = template.trim_start_matches('<').trim_end_matches('>');
        let (name, pointer) = path.find('/').map_or((path, ""), |slash| path.split_at(slash));
        self.0
            .get(name)
            .and_then(|value| value.pointer(pointer))
            .with_context(|| format!("nothing at {template}"))
    }
}

static TEMPLATE: LazyLock<Regex> = LazyLock::new(|| {
    #[expect(clippy::unwrap_used, reason = "a constant pattern, exercised by every test")]
    Regex::new("<[a-z][a-z0-9-]*(/[^<>]*)?>").unwrap()
});

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_put_into_texts_and_objects() {
        let mut names = Names::default();
        names.set("ns", json!("some"));
        names.set("made", json!({"metadata": {"uid": "u", "generation": 2}, "items": [{"a": 1}]}));
        assert_eq!(
            names.fill("/namespaces/<ns>/x?uid=<made/metadata/uid>").unwrap(),
            "/namespaces/some/x?uid=u"
        );
        assert_eq!(
            names
                .fill_value(&json!({"<ns>": ["<made/metadata/generation>", "<made/items/0>"]}))
                .unwrap(),
            json!({"some": [2, {"a": 1}]})
        );
        assert!(names.fill("<made/metadata/absent>").is_err());
        assert!(names.fill("<unheard-of>").is_err());
        assert_eq!(names.fill("a < b, <Unknown>").unwrap(), "a < b, <Unknown>");
    }
}
