//! Label selectors of objects, as Kubernetes reads them.

use alloc::borrow::ToOwned as _;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

/// Whether it selects something with these labels. An empty one selects everything; one with an
/// operator that nobody knows selects nothing, for choosing too much would be worse.
pub fn selects(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    let exact = selector.match_labels.iter().flatten();
    let required = selector.match_expressions.iter().flatten();
    exact.into_iter().all(|(key, value)| labels.get(key) == Some(value))
        && required.into_iter().all(|one| meets(one, labels.get(&one.key)))
}

fn meets(required: &LabelSelectorRequirement, value: Option<&String>) -> bool {
    let values = required.values.as_deref().unwrap_or_default();
    match required.operator.as_str() {
        "In" => value.is_some_and(|value| values.contains(value)),
        "NotIn" => value.is_none_or(|value| !values.contains(value)),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        _ => false,
    }
}

/// A selector as a request writes it, and `kubectl get -l` takes it. The error is for users.
pub fn parsed(text: &str) -> Result<LabelSelector, String> {
    let mut all = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        // A comma inside parentheses separates values.
        let depth = |end: usize| {
            let before = rest.get(..end).unwrap_or_default();
            before.matches('(').count() > before.matches(')').count()
        };
        let end = rest.match_indices(',').map(|(at, _)| at).find(|at| !depth(*at));
        let (one, after) = match end {
            Some(end) => (rest.get(..end).unwrap_or_default(), rest.get(end + 1..)),
            None => (rest, None),
        };
        all.push(requirement(one.trim())?);
        rest = after.unwrap_or_default().trim();
    }
    Ok(LabelSelector { match_labels: None, match_expressions: Some(all) })
}

fn requirement(text: &str) -> Result<LabelSelectorRequirement, String> {
    let made = |key: &str, operator: &str, values: Option<Vec<String>>| {
        let key = key.trim();
        if key.is_empty() || key.contains(char::is_whitespace) {
            return Err(format!("unable to parse requirement: {text}"));
        }
        let (key, operator) = (key.to_owned(), operator.to_owned());
        Ok(LabelSelectorRequirement { key, operator, values })
    };
    let one = |value: &str| Some(vec![value.trim().to_owned()]);
    if let Some((key, value)) = text.split_once("!=") {
        return made(key, "NotIn", one(value));
    }
    if let Some((key, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        return made(key, "In", one(value));
    }
    if let Some((head, values)) = text.split_once('(') {
        let values = values.trim_end().trim_end_matches(')').split(',');
        let values = Some(values.map(|value| value.trim().to_owned()).collect());
        return match head.trim().rsplit_once(' ') {
            Some((key, "in")) => made(key, "In", values),
            Some((key, "notin")) => made(key, "NotIn", values),
            _ => Err(format!("unable to parse requirement: {text}")),
        };
    }
    match text.strip_prefix('!') {
        Some(key) => made(key, "DoesNotExist", None),
        None => made(text, "Exists", None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn check(selector: Value, labels: Value, expected: bool) {
        let selector: LabelSelector = serde_json::from_value(selector.clone()).unwrap();
        let labels = serde_json::from_value(labels).unwrap();
        assert_eq!(selects(&selector, &labels), expected, "{selector:?} of {labels:?}");
    }

    #[test]
    fn all_that_is_asked_must_hold() {
        let one = |operator: &str, values: Value| json!({ "matchExpressions": [{ "key": "a", "operator": operator, "values": values }] });
        check(json!({}), json!({}), true);
        check(json!({ "matchLabels": { "a": "b" } }), json!({ "a": "b", "c": "d" }), true);
        check(json!({ "matchLabels": { "a": "b" } }), json!({ "a": "c" }), false);
        check(one("In", json!(["b", "c"])), json!({ "a": "c" }), true);
        check(one("In", json!(["b"])), json!({}), false);
        check(one("NotIn", json!(["b"])), json!({}), true);
        check(one("NotIn", json!(["b"])), json!({ "a": "b" }), false);
        check(one("Exists", json!([])), json!({ "a": "" }), true);
        check(one("DoesNotExist", json!([])), json!({ "a": "" }), false);
        check(one("Like", json!(["b"])), json!({ "a": "b" }), false);
    }

    #[test]
    fn selectors_are_read_as_kubectl_reads_them() {
        let labels = |text: &str| -> BTreeMap<String, String> {
            let pairs = text.split_whitespace().filter_map(|pair| pair.split_once('='));
            pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
        };
        for (selector, object, selected) in [
            ("", "a=1", true),
            ("a=1", "a=1 b=2", true),
            ("a==2", "a=1", false),
            ("a!=2", "a=1", true),
            ("a in (1, 2),b", "a=2 b=x", true),
            ("a notin (1,2)", "a=2", false),
            ("!b", "a=2", true),
        ] {
            let parsed = parsed(selector).unwrap();
            assert_eq!(selects(&parsed, &labels(object)), selected, "{selector}");
        }
        for bad in ["a like (b)", "a b", "=1"] {
            assert!(parsed(bad).is_err(), "{bad}");
        }
    }
}
