use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::schema::{Schemas, arbitrary};

/// Checks `value` at `spec.x` against `schema` and compares the messages.
fn check(schema: Value, value: Value, expected: &[&str]) {
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"x": schema}},
    }});
    whole(schema, json!({"spec": {"x": value}}), expected);
}

fn whole(schema: Value, object: Value, expected: &[&str]) {
    let (arena, root) = Schemas::from_single(&schema).unwrap();
    let errors = validate(&object, arena.at(root));
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(texts, expected, "{schema} on {object}");
}

fn update(schema: Value, old: Value, new: Value, expected: &[&str]) {
    let (arena, root) = Schemas::from_single(&schema).unwrap();
    let errors = validate_update(&new, &old, arena.at(root));
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(texts, expected, "{old} to {new}");
}

#[test]
fn wrong_types() {
    let string = json!({"type": "string"});
    let integer = json!({"type": "integer"});
    check(string.clone(), json!("fine"), &[]);
    check(
        string,
        json!(5),
        &[r#"spec.x: Invalid value: "integer": spec.x in body must be of type string: "integer""#],
    );
    check(
        integer.clone(),
        json!("5"),
        &[r#"spec.x: Invalid value: "string": spec.x in body must be of type integer: "string""#],
    );
    check(integer.clone(), json!(2.0), &[]);
    check(
        integer,
        json!(1.5),
        &[
            r#"spec.x: Invalid value: "number": spec.x in body must be of type integer: "number""#,
            r#"<nil>: Invalid value: "": Checked value must be of type integer (default format) in spec.x"#,
        ],
    );
    check(json!({"type": "number"}), json!(1), &[]);
    check(
        json!({"type": "object"}),
        json!([]),
        &[r#"spec.x: Invalid value: "array": spec.x in body must be of type object: "array""#],
    );
    check(
        json!({"type": "array", "items": {"type": "string"}}),
        json!(["a", null]),
        &[r#"spec.x[1]: Invalid value: "null": spec.x[1] in body must be of type string: "null""#],
    );
    check(json!({"type": "string", "nullable": true}), json!(null), &[]);
    check(json!({"x-kubernetes-int-or-string": true}), json!("50%"), &[]);
    check(
        json!({"x-kubernetes-int-or-string": true}),
        json!(true),
        &[
            r#"spec.x: Invalid value: "boolean": spec.x in body must be of type integer,string: "boolean""#,
        ],
    );
    check(
        json!({"type": "integer", "format": "int32"}),
        json!(true),
        &[r#"spec.x: Invalid value: "": spec.x in body must be of type int32: """#],
    );
    check(
        json!({"type": "integer", "format": "int32"}),
        json!(3_000_000_000_i64),
        &[
            r#"<nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.x"#,
        ],
    );
    check(
        json!({"type": "string", "format": "date-time"}),
        json!(5),
        &[r#"spec.x: Invalid value: "int64": spec.x in body must be of type date-time: "int64""#],
    );
}

#[test]
fn bounds_of_numbers() {
    check(
        json!({"type": "integer", "minimum": 1}),
        json!(0),
        &["spec.x: Invalid value: 0: spec.x in body should be greater than or equal to 1"],
    );
    check(
        json!({"type": "integer", "minimum": 1, "exclusiveMinimum": true}),
        json!(1),
        &["spec.x: Invalid value: 1: spec.x in body should be greater than 1"],
    );
    check(
        json!({"type": "number", "maximum": 2.5}),
        json!(2.75),
        &["spec.x: Invalid value: 2.75: spec.x in body should be less than or equal to 2.5"],
    );
    check(
        json!({"type": "number", "maximum": 2.5, "exclusiveMaximum": true}),
        json!(2.5),
        &["spec.x: Invalid value: 2.5: spec.x in body should be less than 2.5"],
    );
    check(
        json!({"type": "integer", "multipleOf": 3}),
        json!(7),
        &["spec.x: Invalid value: 7: spec.x in body should be a multiple of 3"],
    );
    check(json!({"type": "number", "multipleOf": 0.1}), json!(0.3), &[]);
}

#[test]
fn lengths_and_patterns() {
    check(
        json!({"type": "string", "minLength": 2}),
        json!("ä"),
        &[r#"spec.x: Invalid value: "ä": spec.x in body should be at least 2 chars long"#],
    );
    check(
        json!({"type": "string", "maxLength": 2}),
        json!("abc"),
        &["spec.x: Too long: may not be more than 2 bytes"],
    );
    check(
        json!({"type": "string", "pattern": "^[a-z]+$"}),
        json!("ABC"),
        &[r#"spec.x: Invalid value: "ABC": spec.x in body should match '^[a-z]+$'"#],
    );
    check(
        json!({"type": "array", "minItems": 2, "items": {"type": "string"}}),
        json!(["a"]),
        &["spec.x: Invalid value: 1: spec.x in body should have at least 2 items"],
    );
    check(
        json!({"type": "array", "maxItems": 1, "items": {"type": "string"}}),
        json!(["a", "b"]),
        &["spec.x: Too many: 2: must have at most 1 item"],
    );
    check(
        json!({"type": "object", "minProperties": 1, "additionalProperties": {"type": "string"}}),
        json!({}),
        &["spec.x: Invalid value: 0: spec.x in body should have at least 1 properties"],
    );
    check(
        json!({"type": "object", "maxProperties": 1, "additionalProperties": {"type": "string"}}),
        json!({"a": "1", "b": "2"}),
        &["spec.x: Too many: 2: must have at most 1 item"],
    );
}

#[test]
fn enumerations_requirements_and_maps() {
    check(
        json!({"type": "string", "enum": ["a", "b"]}),
        json!("c"),
        &[r#"spec.x: Unsupported value: "c": supported values: "a", "b""#],
    );
    check(
        json!({"type": "integer", "enum": [1, 2]}),
        json!(3),
        &[r#"spec.x: Unsupported value: 3: supported values: "1", "2""#],
    );
    check(
        json!({"type": "object", "required": ["a", "b"], "properties": {"a": {"type": "string"}}}),
        json!({"b": 1}),
        &["spec.x.a: Required value"],
    );
    whole(json!({"type": "object", "required": ["spec"]}), json!({}), &["spec: Required value"]);
    check(
        json!({"type": "object", "additionalProperties": {"type": "string"}}),
        json!({"k.v": 1}),
        &[
            r#"spec.x.k.v: Invalid value: "integer": spec.x.k.v in body must be of type string: "integer""#,
        ],
    );
    check(
        json!({"type": "object", "additionalProperties": false}),
        json!({"k": 1}),
        &[r#"spec.x: Invalid value: "k": spec.x.k in body is a forbidden property"#],
    );
}

#[test]
fn several_schemas_at_once() {
    let required = |key: &str| json!({"required": [key]});
    let object = |junctor: &str| {
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true,
            junctor: [required("a"), required("b")]})
    };
    check(
        object("oneOf"),
        json!({}),
        &[
            r#"<nil>: Invalid value: "": "spec.x" must validate one and only one schema (oneOf). Found none valid"#,
            "spec.x.a: Required value",
        ],
    );
    check(
        object("oneOf"),
        json!({"a": 1, "b": 1}),
        &[
            r#"<nil>: Invalid value: "": "spec.x" must validate one and only one schema (oneOf). Found 2 valid alternatives"#,
        ],
    );
    check(
        object("anyOf"),
        json!({}),
        &[
            r#"<nil>: Invalid value: "": "spec.x" must validate at least one schema (anyOf)"#,
            "spec.x.a: Required value",
        ],
    );
    check(
        object("allOf"),
        json!({"a": 1}),
        &[
            "spec.x.b: Required value",
            r#"<nil>: Invalid value: "": "spec.x" must validate all the schemas (allOf)"#,
        ],
    );
    check(
        json!({"type": "object", "not": {"required": ["a"]}}),
        json!({"a": 1}),
        &[r#"<nil>: Invalid value: "": "spec.x" must not validate the schema (not)"#],
    );
}

#[test]
fn formats() {
    for (format, good, bad) in [
        ("date-time", "2024-02-29T23:59:59.5+01:00", "2024-02-30T00:00:00Z"),
        ("date-time", "2024-02-29t01:02:03z", "2024-02-29 01:02:03Z"),
        ("date", "2024-02-29", "2023-02-29"),
        ("duration", "1h30m", "soon"),
        ("duration", "2 weeks", "2 fortnights"),
        ("email", "a.b@example.com", "a.b@"),
        ("email", "A B <a@b.c>", "a@b@c"),
        ("uri", "https://example.com:80/a?b#c", "example.com"),
        ("uri", "/path", "http://[::1"),
        ("hostname", "a-b.example.com", "-a.example.com"),
        ("ipv4", "10.0.0.1", "10.0.0.256"),
        ("ipv4", "010.0.0.1", "10.0.0"),
        ("ipv6", "fe80::1", "10.0.0.1"),
        ("cidr", "10.0.0.0/8", "10.0.0.0/33"),
        ("cidr", "fe80::/64", "fe80::"),
        ("mac", "01:23:45:67:89:ab", "01:23:45:67:89"),
        ("uuid", "123E4567-e89b-12d3-a456-426614174000", "123E4567-e89b-12d3-a456-42661417400"),
        ("uuid4", "123e4567e89b42d3a456426614174000", "123e4567-e89b-12d3-a456-426614174000"),
        ("isbn10", "0-321-75104-3", "0321751044"),
        ("isbn13", "978-0321751041", "978-0321751042"),
        ("creditcard", "4111 1111 1111 1111", "4111 1111 1111 1112"),
        ("ssn", "123-45-6789", "123456789"),
        ("hexcolor", "#FFFFFF", "#FFFFF"),
        ("rgbcolor", "rgb(255,255,25)", "rgb(255,255,2559)"),
        ("byte", "aGVsbG8=", "aGVsbG8"),
        ("bsonobjectid", "507f1f77bcf86cd799439011", "507f1f77bcf86cd79943901"),
        ("k8s-short-name", "a-b", "a.b"),
        ("k8s-long-name", "a.b", "A.b"),
    ] {
        let schema = json!({"type": "string", "format": format});
        check(schema.clone(), json!(good), &[]);
        let text = format!(
            "spec.x: Invalid value: \"{bad}\": spec.x in body must be of type {format}: \"{bad}\""
        );
        check(schema, json!(bad), &[&text]);
    }
    check(json!({"type": "string", "format": "made-up"}), json!("anything"), &[]);
    check(json!({"type": "string", "format": "password"}), json!("anything"), &[]);
}

#[test]
fn sets_and_maps_do_not_repeat() {
    check(
        json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}),
        json!(["a", "b", "a", "a"]),
        &[r#"spec.x[2]: Duplicate value: "a""#],
    );
    let list_map = json!({
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
        "items": {"type": "object", "properties": {"k": {"type": "string"}}},
    });
    check(
        list_map.clone(),
        json!([{"k": "a", "v": 1}, {"k": "b"}, {"k": "a"}]),
        &[r#"spec.x[2]: Duplicate value: {"k":"a"}"#],
    );
    check(list_map, json!([{}, {}]), &["spec.x[1]: Duplicate value: {}"]);
}

#[test]
fn embedded_objects_need_good_metadata() {
    let schema = json!({
        "type": "object", "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true,
    });
    check(
        schema.clone(),
        json!({"metadata": {"name": "a"}}),
        &["spec.x.apiVersion: Required value", "spec.x.kind: Required value"],
    );
    check(
        schema.clone(),
        json!({"apiVersion": "a/b/c", "kind": "", "metadata": {"name": "a/b"}}),
        &[
            r#"spec.x.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c"#,
            r#"spec.x.kind: Invalid value: "": must not be empty"#,
            r#"spec.x.metadata.name: Invalid value: "a/b": may not contain '/'"#,
        ],
    );
    check(schema, json!({"apiVersion": "v1", "kind": "Pod"}), &[]);
}

#[test]
fn what_was_wrong_before_and_did_not_change_is_let_through() {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "a": {"type": "string", "maxLength": 1},
        "b": {"type": "string"},
        "list": {
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "required": ["v"], "properties": {
                "k": {"type": "string"}, "v": {"type": "string"}, "n": {"type": "integer"},
            }},
        },
        "plain": {"type": "array", "items": {"type": "string", "maxLength": 1}},
    }}}});
    let too_long = "spec.a: Too long: may not be more than 1 byte";
    update(
        schema.clone(),
        json!({"spec": {"a": "xx"}}),
        json!({"spec": {"a": "xx", "b": "y"}}),
        &[],
    );
    update(schema.clone(), json!({"spec": {"a": "xx"}}), json!({"spec": {"a": "yy"}}), &[too_long]);
    // An element of a list-map is found again by its key, wherever it moved.
    update(
        schema.clone(),
        json!({"spec": {"list": [{"k": "1"}, {"k": "2", "v": "w"}]}}),
        json!({"spec": {"list": [{"k": "2", "v": "z"}, {"k": "1"}]}}),
        &[],
    );
    update(
        schema.clone(),
        json!({"spec": {"list": [{"k": "1"}]}}),
        json!({"spec": {"list": [{"k": "1", "n": 5}]}}),
        &["spec.list[0].v: Required value"],
    );
    update(
        schema,
        json!({"spec": {"plain": ["xx"]}}),
        json!({"spec": {"plain": ["xx", "y"]}}),
        &["spec.plain[0]: Too long: may not be more than 1 byte"],
    );
}

#[test]
fn a_status_is_checked_alone() {
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "required": ["a"]},
        "status": {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}},
    }});
    let (arena, root) = Schemas::from_single(&schema).unwrap();
    let new = json!({"spec": {}, "status": {"n": 0}});
    let errors = validate_status_update(&new, &json!({}), arena.at(root));
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        ["status.n: Invalid value: 0: n in body should be greater than or equal to 1"]
    );
}

proptest! {
    #[test]
    fn any_schema_and_value_are_survived(
        schema in arbitrary::schema(), new in arbitrary::value(), old in arbitrary::value(),
    ) {
        let (arena, root) = Schemas::from_single(&schema).unwrap();
        let _ = validate(&new, arena.at(root));
        let _ = validate_update(&new, &old, arena.at(root));
        let unchanged = validate_update(&new, &new, arena.at(root));
        let of_create = validate(&new, arena.at(root));
        prop_assert!(unchanged.len() <= of_create.len());
    }
}
