//! The list in `sequences.yaml`: where an answer may differ whatever the sequence, and why.
//!
//! Cases list their differences by name; a random sequence has none that lasts. So an entry says by
//! what the real server's answer is known.

use std::path::Path;

use anyhow::{Context as _, Result};
use regex::Regex;
use serde::Deserialize;
use serde_json::Value;

use super::sequence::sent;
use crate::conformance::case::{Step, yaml};
use crate::conformance::compare::{Difference, covers};

/// One entry as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    /// A pattern for the request, such as `^PATCH merge <widgets>/`.
    #[serde(default)]
    sent: String,
    /// JSON pointer into the answer, covering what is below it; a segment may be `*`.
    at: String,
    /// A pattern for the real server's value: a text as it is, anything else as JSON.
    real: String,
    reason: String,
}

/// A difference we know and can explain.
#[derive(Debug)]
pub(crate) struct Exception {
    sent: Regex,
    at: String,
    real: Regex,
    pub(crate) reason: String,
}

pub(crate) fn load(path: &Path) -> Result<Vec<Exception>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    read(&text).with_context(|| format!("read {}", path.display()))
}

fn read(text: &str) -> Result<Vec<Exception>> {
    let written: Vec<Written> = yaml(text)?;
    written
        .into_iter()
        .map(|Written { sent, at, real, reason }| {
            let pattern = |text: &str| Regex::new(text).with_context(|| format!("read {text}"));
            Ok(Exception { sent: pattern(&sent)?, at, real: pattern(&real)?, reason })
        })
        .collect()
}

impl Exception {
    pub(crate) fn covers(&self, step: Option<&Step>, difference: &Difference) -> bool {
        let real = match &difference.real {
            None => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        covers(&self.at, &difference.at)
            && self.real.is_match(&real)
            && step.is_some_and(|step| self.sent.is_match(&sent(step)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::conformance::Suite;

    #[test]
    fn an_exception_covers_what_its_patterns_fit() {
        let text = r#"[{sent: "^PATCH ", at: /body/message, real: "^odd", reason: because}]"#;
        let exceptions = read(text).unwrap();
        let [exception] = exceptions.as_slice() else { panic!("{exceptions:?}") };
        let patch = Step { patch: Some("<widgets>/a".to_owned()), ..Step::default() };
        let put = Step { put: Some("<widgets>/a".to_owned()), ..Step::default() };
        let difference = |at: &str, real: &str| Difference {
            case: "x".to_owned(),
            step: "s1".to_owned(),
            at: at.to_owned(),
            real: Some(json!(real)),
            ours: None,
        };
        let odd = difference("/body/message", "odd words");
        assert!(exception.covers(Some(&patch), &odd));
        assert!(!exception.covers(Some(&put), &odd));
        assert!(!exception.covers(Some(&patch), &difference("/body/message", "words")));
        assert!(!exception.covers(Some(&patch), &difference("/code", "odd words")));
    }

    #[test]
    fn the_list_can_be_read() {
        let exceptions = load(&Suite::folder().join("sequences.yaml")).unwrap();
        assert!(exceptions.iter().all(|exception| !exception.reason.is_empty()));
    }
}
