use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::schema::arbitrary;

fn crd() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "foos", "kind": "Foo"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
                "openAPIV3Schema": {"type": "object", "properties": {"spec": {
                    "type": "object", "properties": {"a": {"type": "integer"}},
                }}},
            }}],
        },
    })
}

fn with(pointer: &str, value: Value) -> Value {
    let mut crd = crd();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    crd.pointer_mut(parent).unwrap()[key] = value;
    crd
}

fn errors(mut crd: Value) -> Vec<String> {
    default(&mut crd);
    prepare_create(&mut crd);
    validate_create(&crd).iter().map(ToString::to_string).collect()
}

/// Checks one property's schema.
fn check(schema: Value, expected: &[&str]) {
    let at = "spec.validation.openAPIV3Schema.properties[spec].properties[x]";
    let pointer = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    let expected: Vec<String> = expected.iter().map(|text| format!("{at}{text}")).collect();
    assert_eq!(errors(with(pointer, json!({"x": schema}))), expected, "{schema}");
}

#[test]
fn names_scope_and_versions() {
    assert_eq!(errors(crd()), [""; 0]);
    for (pointer, value, expected) in [
        (
            "/metadata/name",
            json!("bars.example.com"),
            r#"metadata.name: Invalid value: "bars.example.com": must be spec.names.plural+"."+spec.group"#,
        ),
        ("/spec/scope", json!(""), "spec.scope: Required value"),
        (
            "/spec/scope",
            json!("Global"),
            r#"spec.scope: Unsupported value: "Global": supported values: "Cluster", "Namespaced""#,
        ),
        (
            "/spec/names/listKind",
            json!("Foo"),
            r#"spec.names.listKind: Invalid value: "Foo": kind and listKind may not be the same"#,
        ),
        (
            "/spec/versions/0/storage",
            json!(false),
            r#"spec.versions: Invalid value: [{"Name":"v1","Served":true,"Storage":false,"Deprecated":false,"DeprecationWarning":null,"Schema":null,"Subresources":null,"AdditionalPrinterColumns":null,"SelectableFields":null}]: must have exactly one version marked as storage version"#,
        ),
        (
            "/spec/versions/0/schema",
            Value::Null,
            "spec.versions[0].schema.openAPIV3Schema: Required value",
        ),
        (
            "/spec/versions/0/schema/openAPIV3Schema/type",
            json!(""),
            "spec.validation.openAPIV3Schema.type: Required value: must not be empty at the root",
        ),
        (
            "/spec/versions/0/additionalPrinterColumns",
            json!([{"name": "x", "type": "string", "jsonPath": "spec.x"}]),
            r#"spec.additionalPrinterColumns[0].JSONPath: Invalid value: "spec.x": must be a simple json path starting with ."#,
        ),
        (
            "/spec/versions/0/selectableFields",
            json!([{"jsonPath": ".spec.zz"}]),
            r#"spec.selectableFields[0].jsonPath: Invalid value: ".spec.zz": is an invalid path: does not refer to a valid field"#,
        ),
        (
            "/spec/versions/0/subresources",
            json!({"scale": {"specReplicasPath": ".status.x", "statusReplicasPath": ".status.y"}}),
            r#"spec.subresources.scale.specReplicasPath: Invalid value: ".status.x": should be a json path under .spec"#,
        ),
        (
            "/spec/preserveUnknownFields",
            json!(true),
            "spec.preserveUnknownFields: Invalid value: true: cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
        ),
        (
            "/spec/conversion",
            json!({"strategy": "Webhook"}),
            "spec.conversion.strategy: Forbidden: this server does not call conversion webhooks; use None",
        ),
    ] {
        let found: Vec<String> = errors(with(pointer, value))
            .into_iter()
            .filter(|text| !text.starts_with("status.storedVersions"))
            .collect();
        assert_eq!(found, [expected], "{pointer}");
    }
}

#[test]
fn schemas_must_be_structural() {
    check(json!({}), &[".type: Required value: must not be empty for specified object fields"]);
    check(json!({"type": "array"}), &[".items: Required value: must be specified"]);
    check(json!({"x-kubernetes-int-or-string": true}), &[]);
    check(
        json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}),
        &[],
    );
    check(
        json!({"type": "object", "anyOf": [{"type": "object"}]}),
        &[".anyOf[0].type: Forbidden: must be empty to be structural"],
    );
    // Whether junctors speak of declared fields is only looked at from the root.
    check(json!({"type": "object", "anyOf": [{"properties": {"z": {"minimum": 1}}}]}), &[]);
    let pointer = "/spec/versions/0/schema/openAPIV3Schema/anyOf";
    assert_eq!(
        errors(with(pointer, json!([{"properties": {"z": {"minimum": 1}}}]))),
        [
            "spec.validation.openAPIV3Schema.properties[z]: Required value: because it is defined in spec.validation.openAPIV3Schema.anyOf[0].properties[z]"
        ]
    );
    check(
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": false}),
        &[
            ".additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive",
        ],
    );
    check(
        json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true}),
        &[
            ".uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        ],
    );
    check(
        json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "properties": {"k": {"type": "string"}}}}),
        &[
            ".items.properties[k].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
        ],
    );
    check(
        json!({"type": "string", "pattern": "("}),
        &[
            ".pattern: Invalid value: \"(\": must be a valid regular expression, but isn't: error parsing regexp: unclosed group: `(`",
        ],
    );
}

#[test]
fn defaults_must_be_good_values() {
    check(
        json!({"type": "string", "default": 5}),
        &[r#".default: Invalid value: "integer":  in body must be of type string: "integer""#],
    );
    check(
        json!({"type": "object", "default": {"z": 1}}),
        &[r#".default: Invalid value: {"z":1}: must not have unknown fields"#],
    );
    check(
        json!({"type": "string", "default": "b", "x-kubernetes-validations": [{"rule": "self == 'a'"}]}),
        &[r#".default: Invalid value: "b": failed rule: self == 'a'"#],
    );
}

#[test]
fn rules_must_compile() {
    check(
        json!({"type": "object", "properties": {"q": {"type": "string"}},
            "x-kubernetes-validations": [{"rule": "self.zz == 'a'"}]}),
        &[
            r#".x-kubernetes-validations[0].rule: Invalid value: {"Rule":"self.zz == 'a'","Message":"","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}: compilation failed: ERROR: <input>:1:5: undefined field 'zz'
 | self.zz == 'a'
 | ....^"#,
        ],
    );
    check(
        json!({"type": "array", "maxItems": 3, "items": {"type": "string",
            "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}}),
        &[
            r#".items.x-kubernetes-validations[0].rule: Invalid value: "self == oldSelf": oldSelf cannot be used on the uncorrelatable portion of the schema within spec.validation.openAPIV3Schema.properties[spec].properties[x]"#,
        ],
    );
}

#[test]
fn what_an_update_may_not_change() {
    let mut old = crd();
    default(&mut old);
    prepare_create(&mut old);
    old["metadata"]["resourceVersion"] = "1".into();
    old["status"] = status(&old, &[], "2024-01-01T00:00:00Z");
    let mut new = old.clone();
    new["spec"]["scope"] = "Cluster".into();
    new["spec"]["versions"][0]["name"] = "v2".into();
    prepare_update(&mut new, &old, None);
    let found: Vec<String> = validate_update(&new, &old).iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        [
            "spec.scope: Invalid value: \"Cluster\": field is immutable",
            "status.storedVersions[0]: Invalid value: \"v1\": missing from spec.versions; v1 was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in v1 and removes v1 from status.storedVersions",
        ]
    );
}

#[test]
fn names_are_accepted_or_in_conflict() {
    let mut first = crd();
    default(&mut first);
    prepare_create(&mut first);
    first["status"] = status(&first, &[], "T1");
    assert_eq!(
        first["status"],
        json!({
            "acceptedNames": {"kind": "Foo", "listKind": "FooList", "plural": "foos", "singular": "foo"},
            "conditions": [
                {"type": "NamesAccepted", "status": "True", "reason": "NoConflicts",
                    "message": "no conflicts found", "lastTransitionTime": "T1"},
                {"type": "Established", "status": "True", "reason": "InitialNamesAccepted",
                    "message": "the initial names have been accepted", "lastTransitionTime": "T1"},
            ],
            "storedVersions": ["v1"],
        })
    );
    assert_eq!(status(&first, &[first.clone()], "T2"), first["status"]);
    let mut second = with("/spec/names/plural", json!("fuzz"));
    second["metadata"]["name"] = "fuzz.example.com".into();
    default(&mut second);
    prepare_create(&mut second);
    let found = status(&second, &[first.clone(), second.clone()], "T3");
    assert_eq!(found["acceptedNames"], json!({"kind": "", "plural": "fuzz"}));
    assert_eq!(
        found["conditions"],
        json!([
            {"type": "NamesAccepted", "status": "False", "reason": "ListKindConflict",
                "message": "\"FooList\" is already in use", "lastTransitionTime": "T3"},
            {"type": "Established", "status": "False", "reason": "NotAccepted",
                "message": "not all names are accepted", "lastTransitionTime": "T3"},
        ])
    );
}

#[test]
fn a_definition_becomes_a_resource_type() {
    let mut crd = with(
        "/spec/versions/0/subresources",
        json!({"status": {}, "scale": {"specReplicasPath": ".spec.a", "statusReplicasPath": ".status.a"}}),
    );
    crd["metadata"]["uid"] = "u".into();
    let mut other = crd["spec"]["versions"][0].clone();
    other["name"] = "v1beta1".into();
    other["storage"] = false.into();
    other["deprecated"] = true.into();
    crd["spec"]["versions"].as_array_mut().unwrap().insert(0, other);
    default(&mut crd);
    let resource = resource_type(&crd).unwrap();
    let names: Vec<&str> = resource.versions.iter().map(|version| &*version.name).collect();
    assert_eq!(names, ["v1", "v1beta1"]);
    assert_eq!((&*resource.storage_version, &*resource.list_kind), ("v1", "FooList"));
    assert!(resource.namespaced);
    let beta = resource.version("v1beta1").unwrap();
    assert_eq!(
        beta.deprecation.as_deref(),
        Some("example.com/v1beta1 Foo is deprecated; use example.com/v1 Foo")
    );
    assert_eq!(beta.subresource("scale").unwrap().kind.as_ref(), "Scale");
    assert!(beta.schema.as_ref().unwrap().schema().property("spec").is_some());
    let mut all = ["v1alpha1", "foo", "v10", "v2", "v2beta2", "v2beta10", "abc"];
    all.sort_by(|left, right| resource::by_priority(left, right));
    assert_eq!(all, ["v10", "v2", "v2beta10", "v2beta2", "v1alpha1", "abc", "foo"]);
}

#[test]
fn formats_that_mean_nothing_are_warned_about() {
    let pointer = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/a/format";
    let crd = with(pointer, json!("odd"));
    assert_eq!(warnings(&crd, None), ["unrecognized format \"odd\""]);
    assert_eq!(warnings(&crd, Some(&crd)), [""; 0]);
    assert_eq!(warnings(&self::crd(), None), [""; 0]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_definition_is_survived(schema in arbitrary::schema(), part in arbitrary::value(), at in 0..6_usize) {
        let pointers = ["/spec", "/spec/names", "/spec/versions", "/spec/versions/0", "/metadata", "/spec/group"];
        let mut crd = with("/spec/versions/0/schema/openAPIV3Schema", schema);
        let _ = errors(crd.clone());
        let _ = resource_type(&crd);
        *crd.pointer_mut(pointers[at]).unwrap() = part;
        let _ = validate_update(&crd, &self::crd());
        let _ = status(&crd, &[self::crd()], "T");
        let _ = (warnings(&crd, None), resource_type(&crd));
        let _ = errors(crd);
    }
}
