use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn parse(value: Value) -> Result<Keep, String> {
    DeleteOption::parse_value(Some(&value)).map(|(keep, _)| keep).map_err(|why| why.to_string())
}

fn config_map(namespace: &str, name: &str) -> OrphanRule {
    OrphanRule {
        group: String::new(),
        resource: "configmaps".to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }
}

#[test]
fn absent_and_foreground_keep_nothing_and_orphan_everything() {
    assert_eq!(DeleteOption::parse_value(None), Ok((Keep::Nothing, None)));
    assert_eq!(parse(json!({})), Ok(Keep::Nothing));
    assert_eq!(parse(json!({ "propagationPolicy": "Foreground" })), Ok(Keep::Nothing));
    assert_eq!(parse(json!({ "propagationPolicy": "Orphan" })), Ok(Keep::Everything));
    let empty = json!({ "propagationPolicy": "SelectivelyOrphan", "selectivelyOrphans": {} });
    assert_eq!(parse(empty), Ok(Keep::Nothing));
    let ttl = json!({ "ttlSecondsAfterFinished": 0 });
    assert_eq!(DeleteOption::parse_value(Some(&ttl)), Ok((Keep::Nothing, Some(0))));
}

#[test]
fn every_spelling_names_the_same_object() {
    let expected = Ok(Keep::Listed(vec![config_map("default", "cm2")]));
    let shipped = json!({ "resource": "configmaps", "namespace": "default", "name": "cm2" });
    let proposed = json!({ "group": "", "resource": "configmaps", "resourceNamespace": "default", "resourceName": "cm2" });
    let both = json!({
        "resource": "configmaps", "namespace": "default", "name": "cm2",
        "resourceNamespace": "default", "resourceName": "cm2",
    });
    for rule in [shipped, proposed, both] {
        let policy = "SelectivelyOrphan";
        let nested = json!({ "orphaningRules": [rule] });
        let cases = [
            json!({ "propagationPolicy": policy, "selectivelyOrphans": nested }),
            json!({ "propagationPolicy": policy, "selectivelyOrphan": [rule] }),
            json!({ "propagationPolicy": policy, "selectivelyOrphans": nested, "selectivelyOrphan": [rule, rule] }),
        ];
        for case in cases {
            assert_eq!(parse(case.clone()), expected, "{case}");
        }
    }
}

#[test]
fn what_would_lose_data_is_refused_and_says_what_to_do() {
    let rule = json!({ "resource": "configmaps", "namespace": "default", "name": "a" });
    let listed = |rule: Value| {
        let nested = json!({ "orphaningRules": [rule] });
        json!({ "propagationPolicy": "SelectivelyOrphan", "selectivelyOrphans": nested })
    };
    let cases = [
        (
            json!({ "selectivelyOrphans": { "orphaningRules": [rule] } }),
            "deleteOption.selectivelyOrphans.orphaningRules has an effect only with propagationPolicy: SelectivelyOrphan; set it, or remove the rules",
        ),
        (
            json!({ "propagationPolicy": "Foreground", "selectivelyOrphan": [rule] }),
            "deleteOption.selectivelyOrphan has an effect only",
        ),
        (
            json!({ "propagationPolicy": "Orphan", "selectivelyOrphan": [rule] }),
            "set it, or remove",
        ),
        (
            json!({
                "propagationPolicy": "SelectivelyOrphan",
                "selectivelyOrphans": { "orphaningRules": [rule] },
                "selectivelyOrphan": [{ "resource": "configmaps", "name": "b" }],
            }),
            "name different objects; keep one of the two lists",
        ),
        (
            listed(json!({ "resource": "configmaps", "name": "a", "resourceName": "b" })),
            "deleteOption.selectivelyOrphans.orphaningRules[0] has different values for name and resourceName; keep one of them",
        ),
        (
            listed(
                json!({ "resource": "configmaps", "name": "a", "namespace": "x", "resourceNamespace": "y" }),
            ),
            "different values for namespace and resourceNamespace",
        ),
        (
            listed(json!({ "resource": "configmaps" })),
            "[0] has no name; rules name one object each",
        ),
        (listed(json!({ "resource": "", "name": "a" })), "[0] has no resource"),
        (json!({ "propagationPolicy": "Background" }), "is not one of Foreground, Orphan"),
        (json!("Orphan"), "deleteOption cannot be read: "),
        (json!({ "selectivelyOrphan": { "orphaningRules": [] } }), "cannot be read"),
    ];
    for (case, expected) in cases {
        let why = parse(case.clone()).unwrap_err();
        assert!(why.contains(expected), "{case}: {why}");
        assert!(why.len() < 400, "{why}");
    }
}

#[test]
fn rules_match_exactly() {
    let rule = config_map("default", "*");
    assert!(rule.matches("", "configmaps", "default", "*"));
    assert!(!rule.matches("", "configmaps", "default", "a"));
    let keep = Keep::Listed(vec![config_map("default", "a")]);
    assert!(keep.keeps("", "configmaps", "default", "a"));
    for (group, resource, namespace, name) in [
        ("apps", "configmaps", "default", "a"),
        ("", "secrets", "default", "a"),
        ("", "configmaps", "", "a"),
        ("", "configmaps", "default", "A"),
    ] {
        assert!(!keep.keeps(group, resource, namespace, name));
    }
    assert!(Keep::Everything.keeps("", "", "", ""));
    assert!(!Keep::Nothing.keeps("", "configmaps", "default", "a"));
}

fn anything() -> impl Strategy<Value = Value> {
    let word = prop_oneof![
        Just("propagationPolicy".to_owned()),
        Just("SelectivelyOrphan".to_owned()),
        Just("selectivelyOrphans".to_owned()),
        Just("selectivelyOrphan".to_owned()),
        Just("orphaningRules".to_owned()),
        Just("resource".to_owned()),
        Just("name".to_owned()),
        Just("resourceName".to_owned()),
        Just("namespace".to_owned()),
        ".{0,4}",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 48, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::vec((word.clone(), inner), 0..6)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn nothing_makes_it_panic(value in anything()) {
        if let Ok((Keep::Listed(rules), _)) = DeleteOption::parse_value(Some(&value)) {
            prop_assert!(!rules.is_empty());
            prop_assert!(rules.is_sorted());
        }
    }
}
