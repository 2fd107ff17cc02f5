//! Which policies and sets of policies a hub takes. What their schemas can say, their schemas say.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Rules, Verdict, refused, text};
use crate::policy::{LONGEST_NAME, name};

/// Judges a Policy. `old` is what it is to replace, if anything.
pub fn policy(object: &Value, old: Option<&Value>, _: &Rules) -> Verdict {
    if old.is_some_and(|old| old.get("spec") == object.get("spec")) {
        return Verdict::Allowed { warnings: Vec::new() };
    }
    let mut problems = Vec::new();
    let length = text(object, "/metadata/namespace").len() + text(object, "/metadata/name").len();
    let labels = object.pointer("/metadata/labels");
    // A copy bears the name of its root, with a dot in it, and the namespace of a cluster.
    let is_copy = labels.is_some_and(|labels| labels.get(name::ROOT_POLICY).is_some());
    if old.is_none() && !is_copy && length > LONGEST_NAME {
        problems.push(format!(
            "the combined length of the policy namespace and name cannot exceed {LONGEST_NAME} \
             characters"
        ));
    }
    let templates = object.pointer("/spec/policy-templates").and_then(Value::as_array);
    let mut definitions =
        templates.into_iter().flatten().filter_map(|one| one.get("objectDefinition"));
    let acts = |of: &Value, path: &str| !text(of, path).is_empty();
    let idle = |one: &Value| {
        text(one, "/kind") == "ConfigurationPolicy" && !acts(one, "/spec/remediationAction")
    };
    if !acts(object, "/spec/remediationAction") && definitions.any(idle) {
        problems.push(
            "RemediationAction field of the policy and policy template cannot both be unset"
                .to_owned(),
        );
    }
    verdict(problems)
}

/// Judges a PolicySet. `old` is what it is to replace, if anything.
pub fn policy_set(object: &Value, old: Option<&Value>, _: &Rules) -> Verdict {
    if old.is_some_and(|old| old.get("spec") == object.get("spec")) {
        return Verdict::Allowed { warnings: Vec::new() };
    }
    let list = |path: &str| object.pointer(path).and_then(Value::as_array).into_iter().flatten();
    let policies: BTreeSet<&str> = list("/spec/policies").filter_map(Value::as_str).collect();
    let (mut problems, mut met) = (Vec::new(), BTreeSet::new());
    for one in list("/spec/exclusions") {
        let policy = text(one, "/policyName");
        if !policies.contains(policy) {
            problems.push(format!(
                "policy in spec.exclusions is not listed in spec.policies: {policy}"
            ));
        } else if !met.insert(policy) {
            problems.push(format!("policy in spec.exclusions has a duplicate entry: {policy}"));
        }
    }
    verdict(problems)
}

fn verdict(problems: Vec<String>) -> Verdict {
    match problems.is_empty() {
        true => Verdict::Allowed { warnings: Vec::new() },
        false => refused(problems),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asked(object: &Value, old: Option<&Value>) -> String {
        match policy(object, old, &Rules::default()) {
            Verdict::Refused(refusal) => refusal.message,
            _ => String::new(),
        }
    }

    fn root(name: &str, action: Value, template: Value) -> Value {
        json!({
            "metadata": { "namespace": "team", "name": name },
            "spec": { "remediationAction": action, "policy-templates": [
                { "objectDefinition": { "kind": "ConfigurationPolicy", "spec": template } },
                { "objectDefinition": { "kind": "Other" } },
            ] },
        })
    }

    #[test]
    fn a_name_leaves_room_for_the_namespace() {
        let (fits, long) = ("a".repeat(58), "a".repeat(59));
        assert_eq!(asked(&root(&fits, json!("inform"), json!({})), None), "");
        let mut too_long = root(&long, json!("inform"), json!({}));
        assert!(asked(&too_long, None).contains("cannot exceed 62 characters"));
        // What is there already may be mended.
        let before = root(&long, json!("enforce"), json!({}));
        assert_eq!(asked(&too_long, Some(&before)), "");
        too_long["metadata"]["labels"] = json!({ name::ROOT_POLICY: "x.y" });
        assert_eq!(asked(&too_long, None), "");
    }

    #[test]
    fn somebody_says_what_to_do() {
        let words =
            "RemediationAction field of the policy and policy template cannot both be unset";
        let enforce = json!({ "remediationAction": "enforce" });
        for (action, template, refusal) in [
            (Value::Null, json!({}), words),
            (Value::Null, enforce, ""),
            (json!("inform"), json!({}), ""),
        ] {
            assert!(asked(&root("p", action, template), None).contains(refusal));
        }
        let wrong = root("p", Value::Null, json!({}));
        assert_eq!(asked(&wrong, Some(&wrong)), "");
        assert!(asked(&wrong, Some(&root("p", json!("inform"), json!({})))).contains(words));
    }

    #[test]
    fn a_set_leaves_out_only_what_is_in_it_and_once() {
        let set = |exclusions: &[&str]| {
            let each = exclusions.iter().map(|name| json!({ "policyName": name }));
            let exclusions: Vec<Value> = each.collect();
            let set = json!({ "spec": { "policies": ["p", "q"], "exclusions": exclusions } });
            match policy_set(&set, None, &Rules::default()) {
                Verdict::Refused(refusal) => refusal.message,
                _ => String::new(),
            }
        };
        assert_eq!(set(&["p", "q"]), "");
        assert!(set(&["r"]).contains("is not listed in spec.policies: r"));
        assert!(set(&["p", "p"]).contains("has a duplicate entry: p"));
    }
}
