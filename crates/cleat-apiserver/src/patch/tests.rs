use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Accepts, Patch, apply_patch, language, read};
use crate::schema::Schemas;
use crate::status::Status;

const JSON: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

fn parse(media_type: &str, body: &[u8], accepts: Accepts) -> Result<Patch, Status> {
    read(language(media_type, accepts)?, body)
}

/// A type with every kind of list a strategic merge tells apart.
fn schemas() -> Schemas {
    let definitions = json!({
        "Root": {"type": "object", "properties": {
            "metadata": {"type": "object", "properties": {
                "finalizers": {
                    "type": "array", "items": {"type": "string"},
                    "x-kubernetes-patch-strategy": "merge"
                },
                "labels": {"type": "object", "additionalProperties": {"type": "string"}}
            }},
            "containers": {
                "type": "array", "items": {"$ref": "#/components/schemas/Container"},
                "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "name"
            },
            "volumes": {
                "type": "array", "items": {"type": "object"},
                "x-kubernetes-patch-strategy": "merge,retainKeys",
                "x-kubernetes-patch-merge-key": "name"
            },
            "keyless": {
                "type": "array", "items": {"type": "object"},
                "x-kubernetes-patch-strategy": "merge"
            },
            "args": {"type": "array", "items": {"type": "string"}},
            "strategy": {
                "allOf": [{"$ref": "#/components/schemas/Strategy"}], "default": {},
                "x-kubernetes-patch-strategy": "retainKeys"
            },
            "selector": {
                "allOf": [{"$ref": "#/components/schemas/Strategy"}],
                "x-kubernetes-patch-strategy": "replace"
            }
        }},
        "Strategy": {"type": "object", "properties": {"type": {"type": "string"}}},
        "Container": {"type": "object", "properties": {
            "name": {"type": "string"},
            "ports": {
                "type": "array", "items": {"type": "object"},
                "x-kubernetes-patch-strategy": "merge",
                "x-kubernetes-patch-merge-key": "containerPort"
            }
        }}
    });
    Schemas::from_definitions(definitions.as_object().unwrap()).unwrap()
}

fn patched(media_type: &str, current: &Value, patch: &Value) -> Result<Value, Status> {
    let schemas = schemas();
    let patch = parse(media_type, patch.to_string().as_bytes(), Accepts::Builtin)?;
    apply_patch(current, &patch, schemas.named("Root"))
}

#[track_caller]
fn check(media_type: &str, current: Value, patch: Value, expected: Value) {
    assert_eq!(patched(media_type, &current, &patch), Ok(expected), "{patch} on {current}");
}

#[track_caller]
fn refuse(media_type: &str, current: Value, patch: Value, code: u16, message: &str) {
    let status = patched(media_type, &current, &patch).unwrap_err();
    assert_eq!((status.code, status.message.as_str()), (code, message), "{patch} on {current}");
}

#[test]
fn json_patch_follows_upstream() {
    let now = || json!({"a": {"b": [1, 2]}, "n": null, "x/y": 1, "~": 2});
    let op = |op: &str, path: &str, value: Value| json!([{"op": op, "path": path, "value": value}]);
    let with = |at: &str, value: Value| {
        let mut changed = now();
        changed[at] = value;
        changed
    };
    check(JSON, now(), op("add", "/a/b/0", json!(0)), with("a", json!({"b": [0, 1, 2]})));
    check(JSON, now(), op("add", "/a/b/-", json!(3)), with("a", json!({"b": [1, 2, 3]})));
    check(JSON, now(), op("add", "/a/b/-1", json!(3)), with("a", json!({"b": [1, 2, 3]})));
    check(JSON, now(), op("replace", "/a/b/-1", json!(3)), with("a", json!({"b": [1, 3]})));
    check(JSON, now(), op("remove", "/a/b/0", json!(null)), with("a", json!({"b": [2]})));
    check(JSON, now(), op("replace", "/x~1y", json!(9)), with("x/y", json!(9)));
    check(JSON, now(), op("replace", "/~0", json!(9)), with("~", json!(9)));
    check(JSON, now(), op("replace", "/absent", json!(9)), with("absent", json!(9)));
    check(JSON, now(), op("test", "/absent", json!(null)), now());
    check(JSON, now(), op("test", "/a", json!({"b": [1, 2]})), now());
    check(JSON, now(), json!(null), now());
    let copy = json!([{"op": "copy", "from": "/a/b", "path": "/c"}]);
    check(JSON, now(), copy, with("c", json!([1, 2])));
    let rename = json!([{"op": "move", "from": "/x~1y", "path": "/a/c"}]);
    check(JSON, now(), rename, json!({"a": {"b": [1, 2], "c": 1}, "n": null, "~": 2}));
}

#[test]
fn json_patch_that_does_not_fit_is_unprocessable() {
    let message = "the server rejected our request due to an error in our request";
    for patch in [
        json!([{"op": "test", "path": "/a", "value": 2}]),
        json!([{"op": "remove", "path": "/absent"}]),
        json!([{"op": "add", "path": "/absent/b", "value": 1}]),
        json!([{"op": "add", "path": "/l/3", "value": 1}]),
        json!([{"op": "add", "path": "/l/-4", "value": 1}]),
        json!([{"op": "replace", "path": "/l/2", "value": 1}]),
        json!([{"op": "add", "path": "/l/x", "value": 1}]),
        json!([{"op": "add", "path": "/a/b", "value": 1}]),
        json!([{"op": "add", "path": "", "value": {}}]),
        json!([{"op": "add", "value": {}}]),
        json!([{"op": "frob", "path": "/a"}]),
        json!([null]),
    ] {
        refuse(JSON, json!({"a": 1, "l": [1, 2]}), patch, 422, message);
    }
    let status = patched(JSON, &json!({}), &json!([{"op": "remove", "path": "/a"}])).unwrap_err();
    assert_eq!(status.reason, "Invalid");
}

#[test]
fn malformed_patches_are_bad_requests() {
    let refuse = |media, body: &str, message: &str| {
        let status = parse(media, body.as_bytes(), Accepts::Builtin).unwrap_err();
        assert_eq!((status.code, status.message.as_str()), (400, message), "{body}");
    };
    let prefix = "error decoding patch: ";
    let not_ops = "json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp";
    refuse(JSON, "{}", &format!("{prefix}{not_ops}"));
    let not_op = "json: cannot unmarshal number into Go value of type handlers.jsonPatchOp";
    refuse(JSON, "[1]", &format!("{prefix}{not_op}"));
    let not_text =
        "json: cannot unmarshal number into Go struct field jsonPatchOp.path of type string";
    refuse(JSON, r#"[{"op":"add","path":1}]"#, &format!("{prefix}{not_text}"));
    refuse(JSON, "[", &format!("{prefix}unexpected end of JSON input"));
    let not_map = "json: cannot unmarshal array into Go value of type map[string]interface {}";
    refuse(MERGE, "[]", &format!("{prefix}{not_map}"));
    refuse(MERGE, "null", "Invalid JSON Patch");
    refuse(STRATEGIC, "[]", not_map);
    let in_json = "error unmarshaling JSON: while decoding JSON";
    refuse(APPLY, "[]", &format!("error decoding YAML: {in_json}: {not_map}"));
}

#[test]
fn too_many_operations_are_too_large() {
    let operations = vec![json!({"op": "test", "path": "/a"}); 10_001];
    let message = "The allowed maximum operations in a JSON patch is 10000, got 10001";
    refuse(JSON, json!({}), Value::Array(operations), 413, message);
}

#[test]
fn nesting_and_copying_are_bounded() {
    let message = "the server rejected our request due to an error in our request";
    let deep = (0..100).fold(json!(1), |inner, _| json!({"a": inner}));
    let twice = json!([
        {"op": "add", "path": "/a", "value": deep},
        {"op": "copy", "from": "/a", "path": format!("/a{}", "/a".repeat(100))}
    ]);
    refuse(JSON, json!({}), twice, 422, message);
    let mut doubling = vec![json!({"op": "add", "path": "/a", "value": ["x".repeat(1024)]})];
    doubling.extend((0..40).map(|_| json!({"op": "copy", "from": "/a", "path": "/a/-"})));
    refuse(JSON, json!({}), Value::Array(doubling), 422, message);
}

#[test]
fn unknown_media_types_are_refused() {
    let status = parse("application/json", b"{}", Accepts::Builtin).unwrap_err();
    assert_eq!((status.code, status.message.as_str()), (415, "415: Unsupported Media Type"));
    assert_eq!(parse(STRATEGIC, b"{}", Accepts::Custom).unwrap_err().code, 415);
    let charset = format!("{MERGE}; charset=utf-8");
    assert!(matches!(parse(&charset, b"{}", Accepts::Custom), Ok(Patch::Merge(_))));
}

#[test]
fn configurations_may_be_yaml() {
    let body = b"apiVersion: v1\nkind: ConfigMap\ndata:\n  a: 'yes'\n  n: \"1\"\n";
    let Ok(Patch::Apply(config)) = parse(APPLY, body, Accepts::Custom) else { panic!("refused") };
    let expected =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "yes", "false": "1"}});
    assert_eq!(config, expected);
    assert!(matches!(parse(APPLY, b"", Accepts::Custom), Ok(Patch::Apply(Value::Null))));
}

#[test]
fn merge_patch_follows_upstream() {
    let now = || json!({"a": {"b": 1, "c": 2}, "l": [{"x": 1}], "s": "t"});
    check(MERGE, now(), json!({}), now());
    check(MERGE, now(), json!({"a": {"b": null}, "l": null}), json!({"a": {"c": 2}, "s": "t"}));
    // Nulls are dropped from new values, also inside lists, but not when a list replaces an object.
    check(
        MERGE,
        now(),
        json!({"n": {"x": null, "y": [{"z": null}, null]}, "a": [{"z": null}], "l": [{"z": null}]}),
        json!({"n": {"y": [{}, null]}, "a": [{"z": null}], "l": [{}], "s": "t"}),
    );
}

#[test]
fn strategic_merge_of_maps() {
    let now = || json!({"metadata": {"labels": {"a": "1", "b": "2"}}, "args": ["x"]});
    check(
        STRATEGIC,
        now(),
        json!({"metadata": {"labels": {"a": null, "c": "3"}}, "args": ["y"]}),
        json!({"metadata": {"labels": {"b": "2", "c": "3"}}, "args": ["y"]}),
    );
    check(
        STRATEGIC,
        now(),
        json!({"metadata": {"labels": {"$patch": "replace", "c": "3"}}}),
        json!({"metadata": {"labels": {"c": "3"}}, "args": ["x"]}),
    );
    check(
        STRATEGIC,
        now(),
        json!({"metadata": {"labels": {"$patch": "delete"}}}),
        json!({"metadata": {"labels": {}}, "args": ["x"]}),
    );
    // Nulls and directives in what is new are left out.
    check(
        STRATEGIC,
        json!({}),
        json!({"metadata": {"a": null, "b": {"$patch": "delete"}, "c": [{"d": null}]}}),
        json!({"metadata": {"c": [{}]}}),
    );
    check(
        STRATEGIC,
        json!({"selector": {"type": "a", "x": 1}}),
        json!({"selector": {"y": 1}}),
        json!({"selector": {"y": 1}}),
    );
}

#[test]
fn strategic_merge_retains_only_named_keys() {
    check(
        STRATEGIC,
        json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}),
        json!({"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}),
        json!({"strategy": {"type": "Recreate"}}),
    );
    check(
        STRATEGIC,
        json!({"volumes": [{"name": "v", "emptyDir": {}}]}),
        json!({"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {}}]}),
        json!({"volumes": [{"name": "v", "hostPath": {}}]}),
    );
    let message = "invalid patch format of retainKeys";
    refuse(
        STRATEGIC,
        json!({"strategy": {}}),
        json!({"strategy": {"$retainKeys": ["type"], "rollingUpdate": {}}}),
        400,
        message,
    );
    refuse(STRATEGIC, json!({}), json!({"$retainKeys": "type"}), 400, message);
}

#[test]
fn strategic_merge_of_keyed_lists() {
    let now = || json!({"containers": [{"name": "a", "image": "1"}, {"name": "b"}, {"name": "c"}]});
    let merge = |patch: Value, expected: Value| {
        check(STRATEGIC, now(), json!({"containers": patch}), json!({"containers": expected}));
    };
    merge(
        json!([{"name": "a", "tty": true}]),
        json!([{"name": "a", "image": "1", "tty": true}, {"name": "b"}, {"name": "c"}]),
    );
    merge(
        json!([{"name": "d"}]),
        json!([{"name": "d"}, {"name": "a", "image": "1"}, {"name": "b"}, {"name": "c"}]),
    );
    merge(
        json!([{"name": "c", "x": 1}, {"name": "b"}]),
        json!([{"name": "a", "image": "1"}, {"name": "c", "x": 1}, {"name": "b"}]),
    );
    merge(
        json!([{"name": "a", "$patch": "delete"}, {"name": "z", "$patch": "delete"}]),
        json!([{"name": "b"}, {"name": "c"}]),
    );
    merge(json!([{"$patch": "replace"}, {"name": "x"}]), json!([{"name": "x"}]));
    merge(json!([{"$patch": "replace"}]), json!([]));
    // Nested lists merge by their own key.
    check(
        STRATEGIC,
        json!({"containers": [{"name": "a", "ports": [{"containerPort": 80, "name": "h"}]}]}),
        json!({"containers": [{"name": "a", "ports": [
            {"containerPort": 80, "name": "web"}, {"containerPort": 443}
        ]}]}),
        json!({"containers": [{"name": "a", "ports": [
            {"containerPort": 80, "name": "web"}, {"containerPort": 443}
        ]}]}),
    );
}

#[test]
fn strategic_merge_sets_element_order() {
    let now = || json!({"containers": [{"name": "a"}, {"name": "b"}, {"name": "s"}]});
    let names = |names: &str| -> Vec<Value> {
        names.chars().map(|name| json!({"name": name.to_string()})).collect()
    };
    let merge = |order: &str, patch: Option<Value>, expected: Value| {
        let mut body = json!({"$setElementOrder/containers": names(order)});
        if let Some(patch) = patch {
            body["containers"] = patch;
        }
        check(STRATEGIC, now(), body, json!({"containers": expected}));
    };
    merge("ba", None, json!(names("bas")));
    merge("bna", Some(json!(names("n"))), json!(names("bnas")));
    merge("b", Some(json!([{"name": "a", "$patch": "delete"}])), json!(names("bs")));
    check(
        STRATEGIC,
        json!({}),
        json!({"$setElementOrder/containers": names("ba"), "containers": names("ba")}),
        json!({"containers": names("ba")}),
    );
    check(STRATEGIC, json!({}), json!({"$setElementOrder/containers": names("a")}), json!({}));
    let status = patched(
        STRATEGIC,
        &now(),
        &json!({"$setElementOrder/containers": names("ab"), "containers": names("ba")}),
    )
    .unwrap_err();
    assert_eq!((status.code, &*status.reason), (500, ""));
    assert!(status.message.starts_with("The order in patch list:\n[map[name:b] map[name:a]]\n"));
}

#[test]
fn strategic_merge_of_primitive_lists() {
    let now = || json!({"metadata": {"finalizers": ["a", "b", "c"]}});
    let merge = |patch: Value, expected: Value| {
        check(STRATEGIC, now(), json!({"metadata": patch}), json!({"metadata": expected}));
    };
    merge(json!({"finalizers": ["b", "d"]}), json!({"finalizers": ["a", "b", "d", "c"]}));
    merge(
        json!({"$deleteFromPrimitiveList/finalizers": ["a", "x"]}),
        json!({"finalizers": ["b", "c"]}),
    );
    merge(
        json!({
            "$deleteFromPrimitiveList/finalizers": ["b"],
            "$setElementOrder/finalizers": ["c", "n", "a"],
            "finalizers": ["n"]
        }),
        json!({"finalizers": ["c", "n", "a"]}),
    );
    check(STRATEGIC, json!({}), json!({"$deleteFromPrimitiveList/x": ["a"]}), json!({}));
}

#[test]
fn strategic_merge_refusals_are_worded_as_upstream() {
    let list = || json!({"containers": [{"name": "a"}], "keyless": [{}]});
    let refuse = |patch, code, message| refuse(STRATEGIC, list(), patch, code, message);
    refuse(
        json!({"containers": [{"image": "x"}]}),
        500,
        "map: map[image:x] does not contain declared merge key: name",
    );
    refuse(
        json!({"containers": [{"$patch": "delete"}]}),
        500,
        "map: map[$patch:delete] does not contain declared merge key: name",
    );
    refuse(
        json!({"containers": [{"name": "a", "$patch": "frob"}]}),
        500,
        "unknown patch type: frob in map: map[$patch:frob name:a]",
    );
    refuse(
        json!({"containers": ["a"]}),
        500,
        "list element types are not identical: [[map[name:a]] [a]]",
    );
    refuse(
        json!({"containers": [{"name": "a", "$patch": "merge"}]}),
        500,
        "merging lists cannot yet be specified in the patch",
    );
    refuse(
        json!({"$deleteFromPrimitiveList": ["a"]}),
        400,
        "invalid patch format of primitive list",
    );
    refuse(json!({"$setElementOrder": ["a"]}), 400, "invalid patch format of setElementOrder list");
    refuse(json!({"keyless": [{}]}), 500, "cannot merge lists without merge key for struct");
}

/// Values rich in what patches give a meaning to.
fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3i64..3).prop_map(Value::from),
        "[a-c]{0,2}".prop_map(Value::from),
        prop_oneof![Just("delete"), Just("replace"), Just("merge")].prop_map(Value::from),
    ];
    let key = prop_oneof![
        "[a-c]",
        Just("name".to_owned()),
        Just("metadata".to_owned()),
        Just("finalizers".to_owned()),
        Just("containers".to_owned()),
        Just("ports".to_owned()),
        Just("containerPort".to_owned()),
        Just("$patch".to_owned()),
        Just("$retainKeys".to_owned()),
        Just("$setElementOrder/containers".to_owned()),
        Just("$deleteFromPrimitiveList/finalizers".to_owned()),
        Just("$setElementOrder/finalizers".to_owned()),
    ];
    leaf.prop_recursive(5, 64, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::btree_map(key.clone(), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn operations() -> impl Strategy<Value = Value> {
    let path = proptest::collection::vec("[a-c0-2-]", 0..4)
        .prop_map(|parts| parts.iter().map(|part| format!("/{part}")).collect::<String>());
    let kind = prop_oneof!["add", "remove", "replace", "move", "copy", "test"];
    let operation = (kind, path.clone(), path, anything()).prop_map(
        |(op, path, from, value)| json!({"op": op, "path": path, "from": from, "value": value}),
    );
    proptest::collection::vec(operation, 0..6).prop_map(Value::from)
}

proptest! {
    #[test]
    fn no_patch_panics(current in anything(), patch in anything(), operations in operations()) {
        for media_type in [JSON, MERGE, STRATEGIC] {
            let _ = patched(media_type, &current, &patch);
            let _ = patched(media_type, &current, &operations);
        }
    }

    // Not the second time: a list that replaces an object keeps its nulls, and loses them when it
    // replaces itself. Upstream does the same.
    #[test]
    fn merging_a_third_time_changes_nothing(current in anything(), patch in anything()) {
        let once = patched(MERGE, &current, &patch);
        if let Ok(twice) = once.and_then(|once| patched(MERGE, &once, &patch)) {
            prop_assert_eq!(patched(MERGE, &twice, &patch), Ok(twice.clone()));
        }
    }

    #[test]
    fn no_body_panics(body in proptest::collection::vec(any::<u8>(), 0..64)) {
        for media_type in [JSON, MERGE, STRATEGIC, APPLY] {
            let _ = parse(media_type, &body, Accepts::Builtin);
        }
    }
}
