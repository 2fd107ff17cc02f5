//! Label selectors of objects, as Kubernetes reads them.

use alloc::collections::BTreeMap;
use alloc::string::String;

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
}
