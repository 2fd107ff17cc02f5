//! Cluster roles that gather the rules of others (`aggregationRule`).
//!
//! Only the computation: when to run it and how to store the result is the controller's business.

use serde_json::Value;

use crate::selector::LabelSelector;

/// The rules an aggregated cluster role ought to have, or `None` when it has them already, is not
/// aggregated, or has a selector without meaning.
///
/// `all` are the cluster roles there are, in order of their names.
pub fn aggregated_rules<'a>(
    role: &Value,
    all: impl Iterator<Item = &'a Value> + Clone,
) -> Option<Value> {
    let selectors = role.get("aggregationRule")?.get("clusterRoleSelectors");
    let own_name = role.pointer("/metadata/name");
    let mut rules: Vec<Value> = Vec::new();
    for selector in selectors.and_then(Value::as_array).into_iter().flatten() {
        let selector = LabelSelector::from_object(Some(selector)).ok()?;
        for other in all.clone() {
            if other.pointer("/metadata/name") == own_name || !selector.matches(other) {
                continue;
            }
            for rule in other.get("rules").and_then(Value::as_array).into_iter().flatten() {
                if !rules.contains(rule) {
                    rules.push(rule.clone());
                }
            }
        }
    }
    let current = role.get("rules").and_then(Value::as_array);
    if current.map_or(&[][..], Vec::as_slice) == rules.as_slice() {
        return None;
    }
    // No rules at all are written as Kubernetes writes them.
    Some(if rules.is_empty() { Value::Null } else { Value::Array(rules) })
}
