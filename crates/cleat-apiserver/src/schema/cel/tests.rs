use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::schema::{Schemas, arbitrary};

fn run(schema: &Value, new: &Value, old: Option<&Value>) -> Vec<String> {
    let (arena, root) = Schemas::from_single(schema).unwrap();
    validate(new, old, arena.at(root)).iter().map(ToString::to_string).collect()
}

/// Evaluates one rule at `spec`.
fn check(rule: Value, spec: Value, expected: &[&str]) {
    let schema = json!({"type": "object", "properties": {"spec": {
        "type": "object", "x-kubernetes-validations": [rule], "properties": {
            "a": {"type": "integer"}, "b": {"type": "integer"}, "n": {"type": "number"},
            "nul": {"type": "string", "nullable": true},
            "when": {"type": "string", "format": "date-time"},
            "dur": {"type": "string", "format": "duration"},
            "bytes": {"type": "string", "format": "byte"},
            "list": {"type": "array", "items": {"type": "integer"}},
            "map": {"type": "object", "additionalProperties": {"type": "string"}},
            "a-b": {"type": "string"}, "a_b": {"type": "string"}, "x__y": {"type": "string"},
            "namespace": {"type": "string"},
        },
    }}});
    assert_eq!(run(&schema, &json!({"spec": spec}), None), expected, "{rule} on {spec}");
}

#[test]
fn values_are_seen_through_the_schema() {
    for (rule, spec) in [
        ("self.a < self.b", json!({"a": 1, "b": 2})),
        ("self.n == 1.0", json!({"n": 1})),
        ("self.when.getFullYear() == 2024", json!({"when": "2024-01-01T00:00:00Z"})),
        ("self.dur == duration('60m')", json!({"dur": "1h"})),
        ("self.bytes == b'hi'", json!({"bytes": "aGk="})),
        ("!has(self.nul)", json!({"nul": null})),
        ("self.map['k.1'] == 'v' && 'in' in self.map", json!({"map": {"k.1": "v", "in": ""}})),
        ("self.a__dash__b == '1' && self.a_b == '2'", json!({"a-b": "1", "a_b": "2"})),
        (
            "self.x__underscores__y == '3' && self.__namespace__ == '4'",
            json!({"x__y": "3", "namespace": "4"}),
        ),
        ("self.list.all(x, x > 0) && self.list.sum() == 6", json!({"list": [1, 2, 3]})),
        ("self.?a.orValue(5) == 5 && dyn(1) == 1", json!({})),
        ("quantity('1Gi').isGreaterThan(quantity('1Mi'))", json!({})),
    ] {
        check(json!({"rule": rule}), spec, &[]);
    }
}

#[test]
fn failures_are_worded_like_upstreams() {
    let spec = json!({"a": 1, "b": 2});
    for (rule, text) in [
        (json!({"rule": "self.a > self.b"}), "spec: Invalid value: failed rule: self.a > self.b"),
        (json!({"rule": "self.a > 1", "message": " too small "}), "spec: Invalid value: too small"),
        (
            json!({"rule": "self.a > 1", "messageExpression": "'got ' + string(self.a)"}),
            "spec: Invalid value: got 1",
        ),
        (
            json!({"rule": "self.a > 1", "messageExpression": "''", "message": "m"}),
            "spec: Invalid value: m",
        ),
        (
            json!({"rule": "self.a > 1", "reason": "FieldValueForbidden", "message": "m"}),
            "spec: Forbidden: m",
        ),
        (
            json!({"rule": "self.a > 1", "reason": "FieldValueRequired", "fieldPath": ".a"}),
            "spec.a: Required value: failed rule: self.a > 1",
        ),
        (json!({"rule": "self.a > 1", "reason": "FieldValueDuplicate"}), "spec: Duplicate value"),
        (
            json!({"rule": "self.n > 1.0"}),
            "spec: Invalid value: \"object\": no such key: n evaluating rule: self.n > 1.0",
        ),
        (
            json!({"rule": "self.a / 0 == 1"}),
            "spec: Invalid value: \"object\": division by zero evaluating rule: self.a / 0 == 1",
        ),
        (
            json!({"rule": "self.a == "}),
            "spec: Invalid value: \"object\": rule compile error: compilation failed: ERROR: <input>:1:11: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}\n | self.a == \n | ..........^",
        ),
    ] {
        check(rule, spec.clone(), &[text]);
    }
}

#[test]
fn rules_apply_wherever_they_stand() {
    let rule = |text: &str| json!([{"rule": text}]);
    let schema = json!({"type": "object", "x-kubernetes-validations": rule("self.metadata.name != 'x'"),
        "properties": {
            "list": {"type": "array", "items": {
                "type": "string", "x-kubernetes-validations": rule("self != 'x'"),
            }},
            "map": {"type": "object", "additionalProperties": {
                "type": "integer", "x-kubernetes-validations": rule("self > 0"),
            }},
        },
    });
    let object = json!({
        "metadata": {"name": "x"}, "list": ["a", "x"], "map": {"p": 1, "q.r": 0},
    });
    assert_eq!(
        run(&schema, &object, None),
        [
            "<nil>: Invalid value: failed rule: self.metadata.name != 'x'",
            "list[1]: Invalid value: \"x\": failed rule: self != 'x'",
            "map[q.r]: Invalid value: 0: failed rule: self > 0",
        ]
    );
}

#[test]
fn transition_rules_see_what_was_there_before() {
    let schema = json!({"type": "object", "properties": {
        "n": {"type": "integer", "x-kubernetes-validations": [{"rule": "self >= oldSelf"}]},
        "o": {"type": "integer", "x-kubernetes-validations": [{
            "rule": "oldSelf.hasValue() || self == 1", "optionalOldSelf": true,
        }]},
        "list": {
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": {
                "type": "object", "x-kubernetes-validations": [{"rule": "self.v >= oldSelf.v"}],
                "properties": {"k": {"type": "string"}, "v": {"type": "integer"}},
            },
        },
    }});
    let old = json!({"n": 2, "list": [{"k": "a", "v": 2}, {"k": "b", "v": 1}]});
    let new = json!({"n": 1, "o": 2, "list": [
        {"k": "b", "v": 1}, {"k": "a", "v": 1}, {"k": "c", "v": 0},
    ]});
    assert_eq!(
        run(&schema, &new, Some(&old)),
        [
            "list[1]: Invalid value: failed rule: self.v >= oldSelf.v",
            "n: Invalid value: 1: failed rule: self >= oldSelf",
            "o: Invalid value: 2: failed rule: oldSelf.hasValue() || self == 1",
        ]
    );
    assert_eq!(
        run(&schema, &new, None),
        ["o: Invalid value: 2: failed rule: oldSelf.hasValue() || self == 1"]
    );
}

#[test]
fn what_did_not_change_is_not_held_against_an_update() {
    let schema = json!({"type": "object", "properties": {"spec": {
        "type": "object", "properties": {
            "s": {"type": "string", "x-kubernetes-validations": [{"rule": "self == 'new'"}]},
            "t": {"type": "string"},
        },
    }}});
    let old = json!({"spec": {"s": "old", "t": "1"}});
    assert_eq!(run(&schema, &json!({"spec": {"s": "old", "t": "2"}}), Some(&old)), [""; 0]);
    assert_eq!(run(&schema, &json!({"spec": {"s": "odd", "t": "1"}}), Some(&old)).len(), 1);
}

#[test]
fn mistakes_are_found_when_a_rule_is_written() {
    let schema = json!({"type": "object", "properties": {
        "a": {"type": "integer"}, "m": {"type": "object", "additionalProperties": {"type": "string"}},
        "list": {"type": "array", "items": {
            "type": "object", "properties": {"x": {"type": "integer"}},
        }},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }});
    let (arena, root) = Schemas::from_single(&schema).unwrap();
    let check = |rule: &str| check_rule(rule, arena.at(root), true);
    for good in [
        "self.a == 1",
        "self.m.anything == ''",
        "self.list.all(e, e.x > 0)",
        "has(self.free.x)",
        "self.metadata.name == 'x'",
        "self.a == oldSelf.a",
        "[1].exists(x, x == self.a)",
        "self.list[0].x == 1",
        "optional.of(self.a).hasValue()",
    ] {
        assert_eq!(check(good), Ok(()), "{good}");
    }
    let failed = |text: &str| Err(format!("compilation failed: ERROR: <input>:{text}"));
    assert_eq!(
        check("self.foo == 1"),
        failed("1:5: undefined field 'foo'\n | self.foo == 1\n | ....^"),
    );
    assert_eq!(
        check("foo == 1"),
        failed("1:1: undeclared reference to 'foo' (in container '')\n | foo == 1\n | ^"),
    );
    for (bad, why) in [
        ("self.list.all(e, e.y > 0)", "undefined field 'y'"),
        ("self.metadata.labels.size() > 0", "undefined field 'labels'"),
        ("frobnicate(self.a)", "undeclared reference to 'frobnicate'"),
        ("Foo{a: 1} == self", "undeclared reference to 'Foo'"),
        ("self.a", "cel expression must evaluate to a bool"),
        ("'text'", "cel expression must evaluate to a bool"),
    ] {
        assert!(check(bad).unwrap_err().contains(why), "{bad}");
    }
    assert_eq!(field_path(".m['a.b']", arena.at(root)).as_deref(), Ok("m[a.b]"));
    assert_eq!(field_path(".zz", arena.at(root)).unwrap_err(), "does not refer to a valid field");
}

#[test]
fn conditions_are_evaluated_on_admission_variables() {
    let variables = ["object", "oldObject", "request"];
    let condition =
        condition("request.operation == 'CREATE' && has(object.spec.a)", &variables).unwrap();
    let request = json!({"operation": "CREATE"});
    let mut scope = Scope::default();
    scope.set("request", &request);
    scope.set("object", &json!({"spec": {"a": 1}}));
    assert_eq!(scope.holds(&condition), Ok(true));
    scope.set("object", &json!({}));
    assert_eq!(scope.holds(&condition), Err("no such key: spec".to_owned()));
    assert!(super::condition("nobody == 1", &variables).is_err());
    assert!(super::condition("1 +", &variables).is_err());
}

#[test]
fn a_computed_value_that_failed_fails_only_who_asks_for_it() {
    let names = BTreeSet::from(["good".to_owned(), "bad".to_owned()]);
    let compile = |source: &str| expression(source, &["object"], Some(&names), Wanted::Anything);
    let mut scope = Scope::default();
    scope.set("object", &json!({"a": 1}));
    scope.compute("good", &compile("object.a + 1").unwrap());
    scope.compute("bad", &compile("object.none").unwrap());
    let holds = |source: &str| scope.holds(&compile(source).unwrap());
    assert_eq!(holds("variables.good == 2"), Ok(true));
    assert_eq!(holds("variables.good == 2 || variables.bad == 1"), Ok(true));
    assert_eq!(
        holds("variables.bad == 1"),
        Err("composited variable \"bad\" fails to evaluate: no such key: none".to_owned())
    );
    assert!(compile("variables.unheard").unwrap_err().contains("undefined field 'unheard'"));
    assert!(expression("true", &[], None, Wanted::Text).is_err());
}

#[test]
fn nothing_exhausts_stack_memory_or_time() {
    let deep = [
        format!("{}1{}", "(".repeat(5000), ")".repeat(5000)),
        format!("{}1{}", "(".repeat(48), ")".repeat(48)),
        format!("{}true", "!".repeat(8000)),
        format!("1{}", "+1".repeat(8000)),
        format!("self{}", ".a".repeat(5000)),
        format!("{}1", "true?1:".repeat(2000)),
        format!("[1]{}", ".map(x,x)".repeat(500)),
        "a".repeat(100_000),
    ];
    for source in deep {
        let _ = Expression::parse(&source);
    }
    // As deep as allowed, evaluated on an ordinary thread.
    let sum = Expression::parse(&format!("1{} == {}", "+1".repeat(70), 71)).unwrap();
    assert_eq!(sum.evaluate(&[]), Ok(CelValue::Bool(true)));
    for (source, failure) in [
        ("lists.range(9223372036854775807).size() > 0", "the range is too long"),
        ("'%.2000000000f'.format([1.0]) == ''", "the expression could not be evaluated"),
    ] {
        let expression = Expression::parse(source).unwrap();
        assert_eq!(expression.evaluate(&[]), Err(Failure::Other(failure.to_owned())));
    }
    let nested = Expression::parse("l.all(a, l.all(b, l.all(c, a + b + c >= 0)))").unwrap();
    let list = CelValue::List(Arc::new(vec![CelValue::Int(1); 10_000]));
    assert_eq!(nested.evaluate(&[("l", list)]), Err(Failure::OverBudget));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_text_and_any_value_are_survived(
        source in "[a-z0-9.()\\[\\]{}?:'\"+*/<>=!&| -]{0,24}", value in arbitrary::value(),
        schema in arbitrary::schema(),
    ) {
        let mut schema = schema;
        schema["x-kubernetes-validations"] = json!([
            {"rule": source}, {"rule": "self == oldSelf"}, {"rule": "has(self.a) && self.a.b > 1"},
        ]);
        let (arena, root) = Schemas::from_single(&schema).unwrap();
        let _ = validate(&value, Some(&value), arena.at(root));
        let _ = check_rule(&source, arena.at(root), true);
    }
}
