use super::*;
use cleat_api::manifestwork::CelExpression;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use proptest::prelude::*;
use serde_json::json;
use std::vec;

fn rule(condition: &str, expressions: &[&str]) -> ConditionRule {
    ConditionRule {
        condition: condition.into(),
        type_: ConditionRuleType::Cel,
        cel_expressions: expressions
            .iter()
            .map(|text| CelExpression { expression: (*text).into() })
            .collect(),
        ..Default::default()
    }
}

fn well_known_rule(condition: &str) -> ConditionRule {
    ConditionRule { type_: ConditionRuleType::WellKnownConditions, ..rule(condition, &[]) }
}

fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" },
        "status": { "replicas": 2, "readyReplicas": 1, "half": 0.5,
                    "conditions": [{ "type": "Available", "status": "True" }] },
    })
}

fn told(object: &Value, rule: &ConditionRule) -> (&'static str, &'static str, String) {
    let mut findings = evaluate(object, core::slice::from_ref(rule));
    assert_eq!(findings.len(), 1, "{rule:?}");
    let Finding { condition, status, reason, message } = findings.remove(0);
    assert!(condition == rule.condition || rule.condition.is_empty());
    (status, reason, message)
}

#[test]
fn well_known_conditions() {
    let job = |conditions: Value| json!({ "apiVersion": "batch/v1", "kind": "Job", "status": { "conditions": conditions } });
    let pod =
        |phase: &str| json!({ "apiVersion": "v1", "kind": "Pod", "status": { "phase": phase } });
    for (object, status, message) in [
        (job(json!([{ "type": "Complete", "status": "True" }])), "True", "Job is finished"),
        (job(json!([{ "type": "Failed", "status": "True" }])), "True", "Job is finished"),
        (
            job(
                json!([{ "type": "Complete", "status": "False" }, { "type": "X", "status": "True" }]),
            ),
            "False",
            "Job is not finished",
        ),
        (json!({ "apiVersion": "batch/v1", "kind": "Job" }), "False", "Job is not finished"),
        (pod("Succeeded"), "True", "Pod is in phase Succeeded"),
        (pod("Failed"), "True", "Pod is in phase Failed"),
        (pod("Running"), "False", "Pod is in phase Running"),
        (json!({ "apiVersion": "v1", "kind": "Pod" }), "False", "Pod is in phase Unknown"),
    ] {
        for name in ["Complete", ""] {
            let expected = (status, "ConditionRuleEvaluated", message.to_string());
            assert_eq!(told(&object, &well_known_rule(name)), expected, "{object}");
        }
    }
    let expected = "Complete is not well known of Deployment in apps/v1: use CEL".to_string();
    assert_eq!(
        told(&deployment(), &well_known_rule("Complete")),
        ("False", "ConditionRuleInvalid", expected)
    );
}

#[test]
fn expressions() {
    for (expression, status, reason, message) in [
        ("object.status.replicas == 2", "True", "Evaluated", "Manifest is Ready"),
        (
            "object.status.replicas == object.status.readyReplicas",
            "False",
            "Evaluated",
            "Manifest is not Ready",
        ),
        (
            "object.status.conditions.exists(c, c.type == 'Available' && c.status == 'True')",
            "True",
            "Evaluated",
            "Manifest is Ready",
        ),
        (
            "hasConditions(object.status) && !hasConditions({}) && !hasConditions('x') && !hasConditions({'conditions': []}) && !hasConditions({'conditions': null})",
            "True",
            "Evaluated",
            "Manifest is Ready",
        ),
        ("has(object.status) && !has(object.spec)", "True", "Evaluated", "Manifest is Ready"),
        ("object.status.half < 1.0", "True", "Evaluated", "Manifest is Ready"),
        ("quantity('1Gi').isGreaterThan(quantity('1M'))", "True", "Evaluated", "Manifest is Ready"),
        (
            "'a b'.split(' ').size() == 2 && object.metadata.name.matches('^w')",
            "True",
            "Evaluated",
            "Manifest is Ready",
        ),
        ("object.metadata.name", "False", "ExpressionError", "expected bool result, got string"),
        ("object.status.half", "False", "ExpressionError", "expected bool result, got double"),
        ("object.missing", "False", "ExpressionError", "no such key: missing"),
        ("other == 1", "False", "ExpressionError", "no such attribute(s): other"),
        ("1 + 'a' == 2", "False", "ExpressionError", "no such overload"),
        (
            "[1,2,3].all(a, [1].all(b, [1].all(c, [1].all(d, [1].all(e, [1].all(f, [1].all(g, [1].all(h, true))))))))",
            "True",
            "Evaluated",
            "Manifest is Ready",
        ),
    ] {
        let (status, reason) = (status, format!("ConditionRule{reason}"));
        let (a, b, c) = told(&deployment(), &rule("Ready", &[expression]));
        assert_eq!((a, b.to_string(), c.as_str()), (status, reason, message), "{expression}");
    }
    let (status, reason, _) = told(&deployment(), &rule("Ready", &["1 +"]));
    assert_eq!((status, reason), ("False", "ConditionRuleExpressionError"));
}

#[test]
fn all_expressions_must_hold() {
    for (expressions, expected) in [
        (vec!["true", "true"], ("True", "ConditionRuleEvaluated")),
        (vec!["true", "false"], ("False", "ConditionRuleEvaluated")),
        (vec!["false", "object.x"], ("False", "ConditionRuleExpressionError")),
        (vec![], ("False", "ConditionRuleInvalid")),
        (vec!["true"; 33], ("False", "ConditionRuleInvalid")),
    ] {
        let (status, reason, _) = told(&deployment(), &rule("Ready", &expressions));
        assert_eq!((status, reason), expected, "{expressions:?}");
    }
}

#[test]
fn messages() {
    for (fixed, expression, expected) in [
        ("words", "", "words"),
        ("", "", "Manifest is Ready"),
        ("words", "result ? 'up: ' + object.metadata.name : 'down'", "up: web"),
        ("words", "''", "words"),
        ("words", "1", "expected string result, got int"),
        ("words", "object.missing", "no such key: missing"),
        ("words", "badcel", "no such attribute(s): badcel"),
    ] {
        let message = ConditionRule {
            message: fixed.into(),
            message_expression: expression.into(),
            ..rule("Ready", &["true"])
        };
        let expected = ("True", "ConditionRuleEvaluated", expected.to_string());
        assert_eq!(told(&deployment(), &message), expected, "{expression}");
    }
    let long = ConditionRule { message: "é".repeat(2000), ..rule("Ready", &["true"]) };
    assert!(told(&deployment(), &long).2.len() < 1100);
}

#[test]
fn conditions_that_cannot_be_ruled() {
    for name in [
        "Applied",
        "Available",
        "StatusFeedbackSynced",
        "Deleting",
        "",
        "-x",
        "a b",
        "A.B/x",
        "é",
        "x/",
        "/x",
        "a/b/c",
    ] {
        assert_eq!(evaluate(&deployment(), &[rule(name, &["true"])]), [], "{name}");
    }
    for name in ["Ready", "x", "example.com/Ready", "a_b.c-d"] {
        assert_eq!(evaluate(&deployment(), &[rule(name, &["true"])]).len(), 1, "{name}");
    }
    assert!(!may_be_ruled(&"x".repeat(400)));
    let twice = [rule("Ready", &["true"]), rule("Ready", &["false"])];
    assert_eq!(evaluate(&deployment(), &twice).len(), 1);
    let unknown = ConditionRule { type_: ConditionRuleType::Unknown, ..rule("Ready", &[]) };
    assert_eq!(told(&deployment(), &unknown).1, "ConditionRuleInvalid");
}

#[test]
fn manifests_together() {
    let one = |type_: &str, status: &str, reason: &str| {
        let found = json!({ "type": type_, "status": status, "reason": reason, "message": format!("{type_} {status}"), "lastTransitionTime": "2020-01-01T00:00:00Z" });
        let found: Condition = serde_json::from_value(found).unwrap();
        ManifestCondition { conditions: vec![found], ..Default::default() }
    };
    let ruled = |type_: &str, status: &str| one(type_, status, "ConditionRuleEvaluated");
    for (statuses, type_, expected) in [
        (vec!["True"], "Complete", "True"),
        (vec!["True", "False", "Unknown"], "Complete", "False"),
        (vec!["True", "Unknown"], "Complete", "Unknown"),
        (vec!["False", "True", "Unknown"], "Progressing", "True"),
        (vec!["False", "Unknown"], "Progressing", "Unknown"),
        (vec!["False", "False"], "Progressing", "False"),
        (vec!["Strange"], "Complete", "Unknown"),
    ] {
        let manifests: Vec<_> = statuses.iter().map(|status| ruled(type_, status)).collect();
        let message = match statuses.as_slice() {
            [status] => format!("{type_} {status}"),
            several => format!("Aggregated from {} manifest conditions", several.len()),
        };
        let reason = "ConditionRulesAggregated";
        let expected = Finding { condition: type_.into(), status: expected, reason, message };
        assert_eq!(aggregate(&manifests), [expected], "{statuses:?}");
    }
    let others =
        [one("Applied", "True", "AppliedManifestComplete"), ruled("B", "True"), ruled("A", "True")];
    let types: Vec<String> = aggregate(&others).into_iter().map(|one| one.condition).collect();
    assert_eq!(types, ["A", "B"]);
}

#[test]
fn evaluation_is_bounded() {
    let object = json!({ "list": vec![1; 5000] });
    let slow = rule("Ready", &["object.list.all(a, object.list.all(b, object.list.all(c, true)))"]);
    let expected =
        ("False", "ConditionRuleExpressionError", "CEL evaluation budget exceeded".to_string());
    assert_eq!(told(&object, &slow), expected);
    for expression in [
        "(".repeat(3000) + "true" + &")".repeat(3000),
        "'%.2000000000f'.format([1.0]) == ''".to_string(),
        "lists.range(100000000).size() == 0".to_string(),
    ] {
        assert_eq!(told(&object, &rule("Ready", &[&expression])).1, "ConditionRuleExpressionError");
    }
    // Whatever the engine makes of these, it ends.
    for expression in ["!".repeat(5000) + "true", "true && ".repeat(2000) + "true"] {
        told(&object, &rule("Ready", &[&expression]));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn no_expression_breaks_it(
        expression in prop_oneof![
            r#"(object|\.status|\.conditions|\[0\]|\.exists\(c, |\)| == |'x'|1|0\.5| && | \+ | - |-|!|\(|\.size\(\)|\.matches\(|hasConditions\(| \? | : |quantity\(|\.format\(\[|\]){0,10}"#,
            ".{0,30}",
        ]
    ) {
        let findings = evaluate(&deployment(), &[rule("Ready", &[&expression])]);
        prop_assert_eq!(findings.len(), 1);
    }
}
