//! Compares the answers of two servers, and the differences with the list of known ones.

use std::path::Path;

use anyhow::{Context as _, Result};
use serde::Deserialize;
use serde_json::Value;

use super::Answers;

/// One place where two servers answer differently.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    pub case: String,
    pub step: String,
    /// JSON pointer into the step's answer.
    pub at: String,
    /// The real server's value; None when it has none there.
    pub real: Option<Value>,
    pub ours: Option<Value>,
}

/// A difference we know and can explain.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    pub case: String,
    /// The step's name or number, or `*`.
    pub step: String,
    /// JSON pointer; covers everything below it. A segment may be `*`; `*` alone covers the step.
    pub at: String,
    pub reason: String,
}

/// The list in `differences.yaml`.
pub(crate) fn known(path: &Path) -> Result<Vec<Known>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    serde_saphyr::from_str(&text).with_context(|| format!("read {}", path.display()))
}

impl Known {
    #[must_use]
    pub fn covers(&self, difference: &Difference) -> bool {
        self.case == difference.case
            && (self.step == "*" || self.step == difference.step)
            && (self.at == "*" || covers(&self.at, &difference.at))
    }
}

/// Whether a pointer is the pattern's or below it.
pub(crate) fn covers(pattern: &str, pointer: &str) -> bool {
    let mut found = pointer.split('/');
    pattern
        .split('/')
        .all(|wanted| found.next().is_some_and(|found| wanted == "*" || wanted == found))
}

/// Every place where the answers to one case differ.
pub(crate) fn answers(case: &str, real: &Answers, ours: &Answers) -> Vec<Difference> {
    let mut differences = Vec::new();
    for (index, (step, real)) in real.iter().enumerate() {
        let ours = ours.get(index).map(|(_, ours)| ours);
        let mut places = Vec::new();
        walk("", Some(real), ours, &mut places);
        differences.extend(places.into_iter().map(|(at, real, ours)| Difference {
            case: case.to_owned(),
            step: step.clone(),
            at,
            real,
            ours,
        }));
    }
    differences
}

type Place = (String, Option<Value>, Option<Value>);

fn walk(at: &str, real: Option<&Value>, ours: Option<&Value>, places: &mut Vec<Place>) {
    match (real, ours) {
        (Some(Value::Object(real)), Some(Value::Object(ours))) => {
            for (name, value) in real {
                walk(&below(at, name), Some(value), ours.get(name), places);
            }
            for (name, value) in ours.iter().filter(|(name, _)| !real.contains_key(*name)) {
                walk(&below(at, name), None, Some(value), places);
            }
        }
        (Some(Value::Array(real)), Some(Value::Array(ours))) => {
            for index in 0..real.len().max(ours.len()) {
                walk(&below(at, &index.to_string()), real.get(index), ours.get(index), places);
            }
        }
        (real, ours) if real == ours => {}
        (real, ours) => places.push((at.to_owned(), real.cloned(), ours.cloned())),
    }
}

fn below(at: &str, name: &str) -> String {
    format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"))
}

impl std::fmt::Display for Difference {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let show = |value: &Option<Value>| match value {
            None => "(nothing)".to_owned(),
            Some(value) => {
                let text = value.to_string();
                match text.char_indices().nth(300) {
                    Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
                    None => text,
                }
            }
        };
        writeln!(formatter, "{} step {} at {}", self.case, self.step, self.at)?;
        writeln!(formatter, "    real: {}", show(&self.real))?;
        write!(formatter, "    ours: {}", show(&self.ours))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_differing_place_is_named_once() {
        let real = vec![("1".to_owned(), json!({"a": [1, 2], "b/c": {"d": 1}, "e": 1}))];
        let ours = vec![("1".to_owned(), json!({"a": [1, 3, 4], "b/c": {}, "e": 1, "f": null}))];
        let places: Vec<String> =
            answers("x", &real, &ours).into_iter().map(|difference| difference.at).collect();
        assert_eq!(places, ["/a/1", "/a/2", "/b~1c/d", "/f"]);
    }

    #[test]
    fn a_known_difference_covers_what_is_below_it() {
        assert!(covers("/body/items/*/status", "/body/items/3/status/phase"));
        assert!(covers("/body", "/body"));
        assert!(!covers("/body/status/phase", "/body/status"));
        assert!(!covers("/body/sta", "/body/status"));
    }
}
