use proptest::prelude::*;
use serde_json::json;

use super::*;

fn texts(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

fn check(metadata: Value, expected: &[&str]) {
    let object = json!({"metadata": metadata});
    assert_eq!(texts(&validate(&object, true, NameRule::Subdomain)), expected, "{object}");
}

const SUBDOMAIN_TEXT: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL_TEXT: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const KEY_TEXT: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

#[test]
fn names_and_namespaces() {
    check(json!({"name": "a.b-c", "namespace": "n"}), &[]);
    check(json!({"generateName": "a-", "name": "a-xyz", "namespace": "n"}), &[]);
    check(
        json!({"namespace": "n"}),
        &["metadata.name: Required value: name or generateName is required"],
    );
    check(
        json!({"name": "A_b", "namespace": "n"}),
        &[&format!("metadata.name: Invalid value: \"A_b\": {SUBDOMAIN_TEXT}")],
    );
    check(
        json!({"name": "a", "namespace": "N"}),
        &[&format!("metadata.namespace: Invalid value: \"N\": {LABEL_TEXT}")],
    );
    check(
        json!({"name": "a", "namespace": "a.b"}),
        &["metadata.namespace: Invalid value: \"a.b\": must not contain dots"],
    );
    check(json!({"name": "a"}), &["metadata.namespace: Required value"]);
    let long = "a".repeat(254);
    check(
        json!({"name": long, "namespace": "n"}),
        &[&format!(
            "metadata.name: Invalid value: \"{long}\": must be no more than 253 characters"
        )],
    );
    let cluster = json!({"metadata": {"name": "a:b", "namespace": "n"}});
    assert_eq!(
        texts(&validate(&cluster, false, NameRule::PathSegment)),
        ["metadata.namespace: Forbidden: not allowed on this type"]
    );
    assert_eq!(NameRule::PathSegment.check("..", false), ["may not be '..'"]);
    assert_eq!(
        NameRule::PathSegment.check("a%/", false),
        ["may not contain '/'", "may not contain '%'"]
    );
    assert_eq!(NameRule::Label1035.check("1a", false).len(), 1);
    assert_eq!(NameRule::Label.check("a-", true), Vec::<String>::new());
}

#[test]
fn labels_and_annotations() {
    let with = |key: &str, value: Value| json!({"name": "a", "namespace": "n", key: value});
    check(with("labels", json!({"example.com/A_b": "", "x": "Y.z"})), &[]);
    check(
        with("labels", json!({"a b": "c"})),
        &[&format!("metadata.labels: Invalid value: \"a b\": name part {KEY_TEXT}")],
    );
    check(
        with("labels", json!({"/b": "c"})),
        &["metadata.labels: Invalid value: \"/b\": prefix part must be non-empty"],
    );
    check(
        with("labels", json!({"a/b/c": "c"})),
        &[&format!(
            "metadata.labels: Invalid value: \"a/b/c\": a valid label key {KEY_TEXT} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        )],
    );
    check(
        with("labels", json!({"a": "-"})),
        &[
            "metadata.labels: Invalid value: \"-\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
        ],
    );
    check(with("annotations", json!({"Example.com/a": "anything at all"})), &[]);
    check(
        with("annotations", json!({"a": "x".repeat(256 * 1024)})),
        &["metadata.annotations: Too long: may not be more than 262144 bytes"],
    );
}

#[test]
fn owners_finalizers_and_managers() {
    let with = |key: &str, value: Value| json!({"name": "a", "namespace": "n", key: value});
    check(
        with("ownerReferences", json!([{}])),
        &[
            "metadata.ownerReferences.apiVersion: Invalid value: \"\": version must not be empty",
            "metadata.ownerReferences.kind: Invalid value: \"\": must not be empty",
            "metadata.ownerReferences.name: Invalid value: \"\": must not be empty",
            "metadata.ownerReferences.uid: Invalid value: \"\": must not be empty",
        ],
    );
    let owner = |name: &str| json!({"apiVersion": "v1", "kind": "K", "name": name, "uid": "u", "controller": true});
    check(
        with("ownerReferences", json!([owner("x"), owner("y")])),
        &[
            r#"metadata.ownerReferences: Invalid value: [{"apiVersion":"v1","kind":"K","name":"x","uid":"u","controller":true},{"apiVersion":"v1","kind":"K","name":"y","uid":"u","controller":true}]: Only one reference can have Controller set to true. Found "true" in references for K/x and K/y"#,
        ],
    );
    check(with("finalizers", json!(["example.com/x", "plain"])), &[]);
    check(
        with("finalizers", json!(["foregroundDeletion", "orphan"])),
        &[
            r#"metadata.finalizers: Invalid value: ["foregroundDeletion","orphan"]: finalizer orphan and foregroundDeletion cannot be both set"#,
        ],
    );
    check(
        with("managedFields", json!([{"manager": "a\tb", "fieldsType": "X"}])),
        &[
            "metadata.managedFields[0].operation: Invalid value: \"\": must be `Apply` or `Update`",
            "metadata.managedFields[0].fieldsType: Invalid value: \"X\": must be `FieldsV1`",
            "metadata.managedFields[0].manager: Invalid value: \"a\\tb\": invalid character U+0009 (at position 1)",
        ],
    );
    assert_eq!(
        finalizer_warnings(
            &json!({"metadata": {"finalizers": ["b", "a.b", "orphan", "x/y", "old"]}}),
            Some(&json!({"metadata": {"finalizers": ["old"]}})),
        ),
        [
            "metadata.finalizers: \"a.b\": prefer a domain-qualified finalizer name including a path (/) to avoid accidental conflicts with other finalizer writers",
            "metadata.finalizers: \"b\": prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers",
        ]
    );
}

#[test]
fn what_must_not_change() {
    let old = json!({"metadata": {
        "name": "a", "namespace": "n", "uid": "u", "resourceVersion": "1", "generation": 2,
        "creationTimestamp": "2024-01-01T00:00:00Z", "deletionTimestamp": "2024-01-02T00:00:00Z",
        "finalizers": ["x/y"],
    }});
    let mut new = old.clone();
    new["metadata"]["resourceVersion"] = "2".into();
    assert_eq!(texts(&validate_common_update(&new, &old, true)), Vec::<String>::new());
    let changed = json!({"metadata": {
        "name": "b", "namespace": "n", "uid": "v", "generation": 1,
        "creationTimestamp": "2024-01-01T00:00:00Z", "finalizers": ["x/y", "z/b", "z/a"],
    }});
    assert_eq!(
        texts(&validate_update(&changed, &old)),
        [
            r#"metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"z/a", "z/b"}"#,
            r#"metadata.resourceVersion: Invalid value: "": must be specified for an update"#,
            "metadata.generation: Invalid value: 1: must not be decremented",
            r#"metadata.name: Invalid value: "b": field is immutable"#,
            r#"metadata.uid: Invalid value: "v": field is immutable"#,
            "metadata.deletionTimestamp: Invalid value: null: field is immutable",
        ]
    );
}

proptest! {
    #[test]
    fn any_metadata_is_survived(
        new in crate::schema::arbitrary::value(), old in crate::schema::arbitrary::value(), name in ".{0,8}",
    ) {
        let (mut new, old) = (json!({"metadata": new}), json!({"metadata": old}));
        let _ = decode(&mut new["metadata"]);
        let _ = validate(&new, true, NameRule::Subdomain);
        let _ = validate_update(&new, &old);
        for rule in [NameRule::Subdomain, NameRule::Label, NameRule::Label1035, NameRule::PathSegment] {
            let _ = (rule.check(&name, true), rule.check(&name, false));
        }
    }
}
