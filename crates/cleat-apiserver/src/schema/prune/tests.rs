use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::schema::{Schemas, arbitrary};

fn check(schema: Value, object: Value, kept: Value, removed: &[&str]) {
    let (arena, root) = Schemas::from_single(&schema).unwrap();
    let mut object = object;
    assert_eq!(prune(&mut object, arena.at(root)), removed);
    assert_eq!(object, kept);
}

#[test]
fn unknown_fields_are_removed_and_named() {
    check(
        json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {
                "a": {"type": "string"},
                "list": {"type": "array", "items": {
                    "type": "object", "properties": {"b": {"type": "string"}},
                }},
            }},
        }}),
        json!({
            "apiVersion": "g/v1", "kind": "K", "metadata": {"name": "n", "odd": 1},
            "spec": {"a": "1", "x": 1, "list": [{"b": "1", "c": {"d": 2}}, {"e": 3}]},
            "other": {},
        }),
        json!({
            "apiVersion": "g/v1", "kind": "K", "metadata": {"name": "n", "odd": 1},
            "spec": {"a": "1", "list": [{"b": "1"}, {}]},
        }),
        &["other", "spec.list[0].c", "spec.list[1].e", "spec.x"],
    );
}

#[test]
fn maps_keep_their_keys() {
    check(
        json!({"type": "object", "properties": {
            "typed": {"type": "object", "additionalProperties": {
                "type": "object", "properties": {"a": {"type": "string"}},
            }},
            "scalars": {"type": "object", "additionalProperties": true},
        }}),
        json!({"typed": {"x": {"a": "1", "b": 2}}, "scalars": {"k": "v", "o": {"p": 1}}}),
        json!({"typed": {"x": {"a": "1"}}, "scalars": {"k": "v", "o": {}}}),
        &["scalars.o.p", "typed.x.b"],
    );
}

#[test]
fn preserved_parts_are_pruned_only_below_what_they_know() {
    check(
        json!({"type": "object", "properties": {"spec": {
            "type": "object", "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"known": {"type": "object", "properties": {"a": {"type": "string"}}}},
        }}}),
        json!({"spec": {"free": {"x": 1}, "known": {"a": "1", "b": 2}}}),
        json!({"spec": {"free": {"x": 1}, "known": {"a": "1"}}}),
        &["spec.known.b"],
    );
}

#[test]
fn embedded_objects_keep_their_metadata() {
    check(
        json!({"type": "object", "properties": {"inner": {
            "type": "object", "x-kubernetes-embedded-resource": true,
            "properties": {"spec": {"type": "object"}},
        }}}),
        json!({"inner": {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"any": 1}, "spec": {"x": 1}, "y": 2,
        }}),
        json!({"inner": {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"any": 1}, "spec": {},
        }}),
        &["inner.spec.x", "inner.y"],
    );
}

proptest! {
    #[test]
    fn pruning_twice_removes_nothing_more(
        schema in arbitrary::schema(), object in arbitrary::value(),
    ) {
        let (arena, root) = Schemas::from_single(&schema).unwrap();
        let mut once = object;
        prune(&mut once, arena.at(root));
        let mut twice = once.clone();
        let removed = prune(&mut twice, arena.at(root));
        prop_assert_eq!(removed, Vec::<String>::new());
        prop_assert_eq!(once, twice);
    }
}
