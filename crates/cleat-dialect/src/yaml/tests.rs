use super::*;
use proptest::prelude::*;
use serde_json::json;

#[test]
fn an_object_looks_as_kubectl_prints_it() {
    let object = json!({
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": { "name": "a", "labels": {}, "annotations": { "n": "1", "on": "true" } },
        "spec": {
            "containers": [
                { "name": "c", "args": ["-x", "- y", "a: b", ""], "ports": [{ "containerPort": 80 }] },
            ],
            "volumes": [],
            "nested": [["a", "b"], [{ "c": null }]],
        },
    });
    let expected = "\
apiVersion: v1
kind: Pod
metadata:
  annotations:
    \"n\": \"1\"
    \"on\": \"true\"
  labels: {}
  name: a
spec:
  containers:
  - args:
    - -x
    - '- y'
    - 'a: b'
    - \"\"
    name: c
    ports:
    - containerPort: 80
  nested:
  - - a
    - b
  - - c: null
  volumes: []
";
    assert_eq!(to_string(&object), expected);
}

#[test]
fn texts_get_the_quotes_they_need() {
    for (text, expected) in [
        ("nginx:1.18.0", "nginx:1.18.0"),
        ("1.18", "\"1.18\""),
        ("1.18.0", "1.18.0"),
        ("yes", "\"yes\""),
        ("null", "\"null\""),
        ("~", "\"~\""),
        ("0x1f", "\"0x1f\""),
        ("1e3", "\"1e3\""),
        ("12:30", "\"12:30\""),
        ("2022-06-09", "\"2022-06-09\""),
        ("2022-06-09T19:27:13Z", "\"2022-06-09T19:27:13Z\""),
        ("a #b", "'a #b'"),
        ("a#b", "a#b"),
        ("@x", "'@x'"),
        ("{{ x }}", "'{{ x }}'"),
        ("it's", "it's"),
        ("'it'", "'''it'''"),
        ("a:", "'a:'"),
        (" a", "' a'"),
        ("a\tb", "\"a\\tb\""),
        ("a\u{1}", "\"a\\x01\""),
        ("é", "é"),
        ("-", "'-'"),
        ("-a", "-a"),
        ("a, b", "a, b"),
        ("😀", "\"\\U0001F600\""),
    ] {
        assert_eq!(to_string(&json!(text)), format!("{expected}\n"), "{text}");
    }
}

#[test]
fn lines_stay_lines() {
    for (text, expected) in [
        ("a\nb\n", "x: |\n  a\n  b\n"),
        ("a\nb", "x: |-\n  a\n  b\n"),
        ("a\n\n", "x: |+\n  a\n\n"),
        (" a\nb\n", "x: |2\n   a\n  b\n"),
        ("a \nb\n", "x: \"a \\nb\\n\"\n"),
        ("a\tb\nc\n", "x: \"a\\tb\\nc\\n\"\n"),
    ] {
        assert_eq!(to_string(&json!({ "x": text })), expected, "{text:?}");
    }
}

#[test]
fn long_lines_are_folded_at_a_space() {
    let text = "word ".repeat(20);
    let folded = to_string(&json!({ "message": text.trim_end() }));
    let lines: Vec<&str> = folded.lines().collect();
    assert_eq!(lines.len(), 2, "{folded}");
    assert!(lines[0].len() > 80 && lines[1].starts_with("  word"), "{folded}");
}

#[test]
fn numbers_in_keys_count() {
    let keys = json!({ "m10": 1, "m2": 1, "m1": 1, "a-b": 1, "a1": 1, "ab": 1, "a": 1 });
    let text = to_string(&keys);
    let keys: Vec<&str> = text.lines().map(|line| line.split_once(':').unwrap().0).collect();
    assert_eq!(keys, ["a", "a-b", "a1", "ab", "m1", "m2", "m10"]);
}

proptest! {
    #[test]
    fn keys_have_one_order(a in "[a-c0-2.\\-]{0,5}", b in "[a-c0-2.\\-]{0,5}", c in "[a-c0-2.\\-]{0,5}") {
        prop_assert_eq!(natural(&a, &b), natural(&b, &a).reverse());
        if natural(&a, &b).is_le() && natural(&b, &c).is_le() {
            prop_assert!(natural(&a, &c).is_le());
        }
    }

    #[test]
    fn nothing_panics(text in "\\PC{0,40}|[ \\n:#'\"a-]{0,200}") {
        to_string(&json!({ text.clone(): [text] }));
    }
}
