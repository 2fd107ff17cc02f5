//! Every rule of the comparison as a row: template, live, and what comes of it.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::diff::{RecordDiff, full, shortened};
use super::*;
use proptest::prelude::*;
use serde_json::json;

const HAVE: Rule = Rule { compliance: Compliance::MustHave, metadata: Compliance::MustHave };
const ONLY: Rule =
    Rule { compliance: Compliance::MustOnlyHave, metadata: Compliance::MustOnlyHave };

fn object(fields: Value) -> Value {
    let mut object = json!({ "apiVersion": "v1", "kind": "Thing", "metadata": { "name": "a" } });
    let all = object.as_object_mut().unwrap();
    for (key, value) in fields.as_object().unwrap() {
        all.insert(key.clone(), value.clone());
    }
    object
}

/// What `spec` would become, or nothing if it stays.
fn spec(rule: Rule, template: Value, live: Value) -> Option<Value> {
    let template = json!({ "apiVersion": "v1", "kind": "Thing", "spec": template });
    match compare(&template, &object(json!({ "spec": live })), rule) {
        Comparison::Same => None,
        Comparison::Differs(difference) => {
            assert!(difference.content && !difference.status);
            Some(difference.merged["spec"].clone())
        }
        Comparison::Impossible(problem) => panic!("{problem}"),
    }
}

#[test]
fn what_musthave_asks_for() {
    let same = None;
    let cases: Vec<(&str, Value, Value, Option<Value>)> = vec![
        ("a part of a map", json!({"a": 1}), json!({"a": 1, "b": 2}), same.clone()),
        (
            "a changed scalar",
            json!({"a": 1}),
            json!({"a": 2, "b": 2}),
            Some(json!({"a": 1, "b": 2})),
        ),
        ("an added key", json!({"c": 1}), json!({"a": 2}), Some(json!({"a": 2, "c": 1}))),
        ("null against a map keeps it", json!({"m": null}), json!({"m": {"x": 1}}), same.clone()),
        (
            "null against a scalar takes it away",
            json!({"s": null}),
            json!({"s": 1}),
            Some(json!({"s": null})),
        ),
        ("null against nothing", json!({"s": null}), json!({}), same.clone()),
        (
            "lists in another order",
            json!({"l": ["a", "b"]}),
            json!({"l": ["b", "a"]}),
            same.clone(),
        ),
        ("a part of a list", json!({"l": ["b"]}), json!({"l": ["a", "b", "c"]}), same.clone()),
        (
            "an item that is not there comes first",
            json!({"l": ["x"]}),
            json!({"l": ["a", "b"]}),
            Some(json!({"l": ["x", "a", "b"]})),
        ),
        (
            "twice in the template, once live",
            json!({"l": ["a", "a"]}),
            json!({"l": ["a"]}),
            Some(json!({"l": ["a", "a"]})),
        ),
        (
            "once in the template, twice live",
            json!({"l": ["a"]}),
            json!({"l": ["a", "a"]}),
            same.clone(),
        ),
        (
            "items are one by name",
            json!({"l": [{"name": "x", "v": 2}]}),
            json!({"l": [{"name": "y", "v": 1}, {"name": "x", "v": 1, "w": 1}]}),
            Some(json!({"l": [{"name": "x", "v": 2, "w": 1}, {"name": "y", "v": 1}]})),
        ),
        (
            "items without a name are one if the live one has all",
            json!({"l": [{"v": 1}]}),
            json!({"l": [{"v": 1, "w": 2}]}),
            same.clone(),
        ),
        (
            "items without a name that differ are two",
            json!({"l": [{"v": 2}]}),
            json!({"l": [{"v": 1, "w": 2}]}),
            Some(json!({"l": [{"v": 2}, {"v": 1, "w": 2}]})),
        ),
        ("an empty list against nothing", json!({"l": []}), json!({"x": 1}), same.clone()),
        (
            "an empty map against nothing",
            json!({"m": {}}),
            json!({"x": 1}),
            Some(json!({"m": {}, "x": 1})),
        ),
        (
            "a zero against nothing is for the server to say",
            json!({"n": 0}),
            json!({}),
            Some(json!({"n": 0})),
        ),
        (
            "false against nothing is for the server to say",
            json!({"b": false}),
            json!({}),
            Some(json!({"b": false})),
        ),
        ("quantities", json!({"cpu": "1"}), json!({"cpu": "1000m"}), same.clone()),
        (
            "different quantities",
            json!({"cpu": "1"}),
            json!({"cpu": "2"}),
            Some(json!({"cpu": "1"})),
        ),
        (
            "a quantity against a number",
            json!({"n": "1"}),
            json!({"n": 1}),
            Some(json!({"n": "1"})),
        ),
        ("a number against its text", json!({"n": 1}), json!({"n": "1"}), same.clone()),
        (
            "a text that is no quantity against its value",
            json!({"b": "true"}),
            json!({"b": true}),
            same.clone(),
        ),
        ("one and one point zero", json!({"n": 1}), json!({"n": 1.0}), same.clone()),
        (
            "nested lists of lists",
            json!({"l": [["a", "b"]]}),
            json!({"l": [["b", "a"]]}),
            same.clone(),
        ),
        (
            "a scalar over a map below the top",
            json!({"m": "x"}),
            json!({"m": {"y": 1}}),
            Some(json!({"m": "x"})),
        ),
    ];
    for (what, template, live, expected) in cases {
        assert_eq!(spec(HAVE, template, live), expected, "{what}");
    }
}

#[test]
fn what_mustonlyhave_asks_for() {
    let cases: Vec<(&str, Value, Value, Option<Value>)> = vec![
        ("the same", json!({"a": {"b": 1}}), json!({"a": {"b": 1}}), None),
        ("a key too many", json!({"a": 1}), json!({"a": 1, "b": 2}), Some(json!({"a": 1}))),
        (
            "a nested key too many",
            json!({"a": {"b": 1}}),
            json!({"a": {"b": 1, "c": 1}}),
            Some(json!({"a": {"b": 1}})),
        ),
        ("an item too many", json!({"l": [1]}), json!({"l": [1, 2]}), Some(json!({"l": [1]}))),
        ("lists in another order", json!({"l": [1, 2]}), json!({"l": [2, 1]}), None),
    ];
    for (what, template, live, expected) in cases {
        assert_eq!(spec(ONLY, template, live), expected, "{what}");
    }
    let template = json!({ "apiVersion": "v1", "kind": "Thing", "a": 1 });
    let live = object(json!({ "a": 1, "b": 1, "status": { "x": 1 } }));
    let Comparison::Differs(difference) = compare(&template, &live, ONLY) else { panic!() };
    assert_eq!(difference.merged, object(json!({ "a": 1, "status": { "x": 1 } })));
    let account =
        json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": "a" } });
    let live = json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": "a", "uid": "u" },
        "secrets": [{ "name": "s" }], "imagePullSecrets": [{ "name": "s" }],
    });
    assert_eq!(compare(&account, &live, ONLY), Comparison::Same);
}

#[test]
fn only_labels_and_annotations_count_of_metadata() {
    let with =
        |metadata: Value| json!({ "apiVersion": "v1", "kind": "Thing", "metadata": metadata });
    let live = with(json!({
        "name": "a", "uid": "u", "resourceVersion": "7", "finalizers": ["f"],
        "labels": { "x": "1", "y": "2" },
        "annotations": { "kubectl.kubernetes.io/last-applied-configuration": "{}", "n": "1" },
    }));
    let template = with(json!({ "name": "a", "finalizers": ["other"], "labels": { "x": "1" } }));
    assert_eq!(compare(&template, &live, HAVE), Comparison::Same);
    let Comparison::Differs(difference) = compare(&template, &live, ONLY) else { panic!() };
    let metadata = &difference.merged["metadata"];
    assert_eq!(metadata["labels"], json!({ "x": "1" }));
    assert_eq!(metadata["annotations"], live["metadata"]["annotations"], "not spoken of");
    assert_eq!((&metadata["finalizers"], &metadata["uid"]), (&json!(["f"]), &json!("u")));
    let metadata_only =
        Rule { compliance: Compliance::MustHave, metadata: Compliance::MustOnlyHave };
    let template = with(json!({ "annotations": { "n": "1" } }));
    assert_eq!(
        compare(&template, &live, metadata_only),
        Comparison::Same,
        "kubectl's is kubectl's"
    );
}

#[test]
fn a_namespace_keeps_what_openshift_assigned() {
    let namespace = |annotations: Value| json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "n", "annotations": annotations } });
    let live = namespace(json!({ "openshift.io/sa.scc.mcs": "s0", "a": "1" }));
    assert_eq!(compare(&namespace(json!({ "a": "1" })), &live, ONLY), Comparison::Same);
    let Comparison::Differs(difference) = compare(&namespace(json!({ "b": "1" })), &live, ONLY)
    else {
        panic!()
    };
    assert_eq!(
        difference.merged["metadata"]["annotations"],
        json!({ "openshift.io/sa.scc.mcs": "s0", "b": "1" })
    );
}

#[test]
fn what_cannot_be_merged_is_said_in_the_known_words() {
    let cases = [
        (
            json!({ "metadata": { "annotations": { "case": 10 } } }),
            "invalid annotation, error: contains non-string value in the map under key \"case\": 10 is of the type int64, expected string",
        ),
        (
            json!({ "metadata": { "labels": { "on": true } } }),
            "invalid label, error: contains non-string value in the map under key \"on\": true is of the type bool, expected string",
        ),
        (
            json!({ "spec": [1] }),
            "Error merging changes into key \"spec\": object type of template and existing do not match",
        ),
    ];
    for (template, expected) in cases {
        let comparison = compare(&template, &object(json!({ "spec": { "a": 1 } })), HAVE);
        assert_eq!(comparison, Comparison::Impossible(String::from(expected)));
    }
}

#[test]
fn a_status_is_compared_and_never_written() {
    let live = object(json!({ "spec": { "a": 1 }, "status": { "phase": "Pending" } }));
    let template = json!({ "spec": { "a": 1 }, "status": { "phase": "Running" } });
    let Comparison::Differs(difference) = compare(&template, &live, HAVE) else { panic!() };
    assert!(difference.status && !difference.content);
    assert_eq!(difference.merged, live);
}

#[test]
fn string_data_is_what_data_holds() {
    let secret = |fields: Value| {
        let mut secret =
            json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "s" } });
        secret.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        secret
    };
    let live = secret(json!({ "data": { "a": "aGVsbG8=", "raw": "//8=" } }));
    let same = secret(json!({ "stringData": { "a": "hello" } }));
    assert_eq!(compare(&same, &live, HAVE), Comparison::Same);
    let other = secret(json!({ "stringData": { "a": "bye" } }));
    let Comparison::Differs(difference) = compare(&other, &live, HAVE) else { panic!() };
    assert_eq!(difference.merged["stringData"], json!({ "a": "bye" }));
    assert_eq!(difference.merged["data"], live["data"]);
}

#[test]
fn an_unnamed_template_takes_absent_for_zero() {
    let live = object(json!({ "spec": { "a": 1 } }));
    for (template, expected) in [
        (json!({ "spec": { "a": 1, "n": 0, "m": {}, "l": [] } }), true),
        (json!({ "spec": { "a": 2 } }), false),
        (json!({ "metadata": { "labels": { "x": "y" } } }), false),
        (json!({ "spec": [1] }), false),
        (json!({ "kind": "Other" }), true),
    ] {
        assert_eq!(matches(&template, &live, HAVE), expected, "{template}");
    }
    let not = Rule::new(Compliance::MustNotHave);
    assert!(matches(&json!({ "spec": { "a": 1 } }), &live, not));
}

#[test]
fn spellings() {
    for (text, expected) in [
        ("MustHave", Some(Compliance::MustHave)),
        ("mustonlyhave", Some(Compliance::MustOnlyHave)),
        ("Mustnothave", Some(Compliance::MustNotHave)),
        ("must have", None),
    ] {
        assert_eq!(Compliance::parse(text), expected);
    }
}

#[test]
fn a_diff_reads_like_upstreams() {
    let pod = |labels: Value| {
        let mut pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": "nginx-pod", "namespace": "default", "resourceVersion": "1", "managedFields": [{}] },
            "spec": { "containers": [{ "image": "nginx:1.7.9", "name": "nginx", "ports": [{ "containerPort": 80 }] }] },
        });
        if !labels.is_null() {
            pod["metadata"]["labels"] = labels;
        }
        pod
    };
    let expected = "\
--- default/nginx-pod : existing
+++ default/nginx-pod : updated
@@ -1,8 +1,10 @@
 apiVersion: v1
 kind: Pod
 metadata:
+  labels:
+    image: nginx:1.7.9
   name: nginx-pod
   namespace: default
 spec:
   containers:
   - image: nginx:1.7.9
";
    assert_eq!(full(&pod(Value::Null), &pod(json!({ "image": "nginx:1.7.9" }))), expected);
    assert_eq!(full(&pod(Value::Null), &pod(Value::Null)), "");
}

#[test]
fn a_long_diff_is_cut_after_fifty_lines() {
    let namespace = |annotations: Value| json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "default", "annotations": annotations } });
    let many: Map<String, Value> =
        (1..=55).map(|n| (format!("message{n}"), json!("message"))).collect();
    let diff = full(&namespace(json!({})), &namespace(Value::Object(many)));
    let short = shortened(&diff);
    let lines: Vec<&str> = short.split('\n').collect();
    assert_eq!(lines.len(), 54);
    assert!(lines[0].starts_with("# Truncated: showing 50/"), "{}", lines[0]);
    assert_eq!(lines[1], "--- default : existing");
    assert_eq!(lines[53], "+    message46: message");
    assert_eq!(shortened("a\nb"), "a\nb");
}

#[test]
fn what_may_tell_secrets_is_not_shown_unless_asked() {
    let definition =
        |api_version: &str, kind: &str| json!({ "apiVersion": api_version, "kind": kind });
    let cases = [
        (None, "v1", "Secret", false, RecordDiff::Redacted),
        (None, "v1", "ConfigMap", false, RecordDiff::Redacted),
        (None, "v1", "Pod", false, RecordDiff::InStatus),
        (None, "v1", "Pod", true, RecordDiff::Redacted),
        (None, "route.openshift.io/v1", "Route", false, RecordDiff::Redacted),
        (None, "example.com/v1", "Secret", false, RecordDiff::InStatus),
        (Some("InStatus"), "v1", "Secret", true, RecordDiff::InStatus),
        (Some("Log"), "v1", "Pod", false, RecordDiff::Log),
        (Some("None"), "v1", "Pod", false, RecordDiff::None),
    ];
    for (said, api_version, kind, read_secrets, expected) in cases {
        assert_eq!(RecordDiff::of(said, &definition(api_version, kind), read_secrets), expected);
    }
}

#[test]
fn bookkeeping_of_the_server_is_no_difference() {
    let one = json!({ "metadata": { "name": "a", "generation": 1, "resourceVersion": "1", "managedFields": [], "annotations": {} }, "a": 1 });
    let other = json!({ "metadata": { "name": "a", "generation": 2, "resourceVersion": "2", "annotations": { "kubectl.kubernetes.io/last-applied-configuration": "x" } }, "a": 1 });
    assert!(same_to_a_server(&one, &other));
    assert!(!same_to_a_server(&one, &json!({ "metadata": { "name": "a" }, "a": 2 })));
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..3_i64).prop_map(Value::from),
        prop_oneof![Just("a"), Just("1"), Just("1000m"), Just("")].prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-c]|name", inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    /// What was written once is not written again, or enforcing would never end.
    #[test]
    fn applying_a_template_twice_changes_nothing(template in value(), live in value(), only: bool) {
        let rule = if only { ONLY } else { HAVE };
        let template = json!({ "spec": template });
        if let Comparison::Differs(first) = compare(&template, &object(json!({ "spec": live })), rule)
            && let Comparison::Differs(second) = compare(&template, &first.merged, rule)
        {
            prop_assert_eq!(second.merged, first.merged);
        }
    }

    #[test]
    fn an_object_is_as_it_is(live in value()) {
        let live = object(json!({ "spec": live }));
        prop_assert_eq!(compare(&live, &live, HAVE), Comparison::Same);
        prop_assert_eq!(compare(&live, &live, ONLY), Comparison::Same);
        prop_assert!(matches(&live, &live, ONLY));
    }
}
