use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::schema::{Schemas, arbitrary};

fn check(schema: Value, object: Value, expected: Value) {
    let (arena, root) = Schemas::from_single(&schema).unwrap();
    let mut object = object;
    prune_nulls(&mut object, arena.at(root));
    default(&mut object, arena.at(root));
    assert_eq!(object, expected);
}

#[test]
fn absent_properties_get_their_default_and_what_lies_below() {
    let schema = json!({"type": "object", "properties": {
        "a": {"type": "string", "default": "A"},
        "nested": {"type": "object", "default": {"x": 1}, "properties": {
            "x": {"type": "integer"}, "y": {"type": "integer", "default": 2},
        }},
        "absent": {"type": "object", "properties": {"z": {"type": "integer", "default": 3}}},
        "list": {"type": "array", "items": {
            "type": "object", "properties": {"p": {"type": "string", "default": "TCP"}},
        }},
        "map": {"type": "object", "additionalProperties": {
            "type": "object", "properties": {"q": {"type": "boolean", "default": false}},
        }},
    }});
    check(
        schema,
        json!({"list": [{}, {"p": "UDP"}], "map": {"k": {}}}),
        json!({
            "a": "A", "nested": {"x": 1, "y": 2},
            "list": [{"p": "TCP"}, {"p": "UDP"}], "map": {"k": {"q": false}},
        }),
    );
}

#[test]
fn nulls_are_kept_where_allowed_defaulted_where_possible_and_dropped_otherwise() {
    let schema = json!({"type": "object", "properties": {
        "nullable": {"type": "string", "nullable": true, "default": "N"},
        "defaulted": {"type": "string", "default": "D"},
        "plain": {"type": "string"},
        "list": {"type": "array", "items": {"type": "string"}},
        "filled": {"type": "array", "items": {"type": "string", "default": "I"}},
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
    }});
    check(
        schema,
        json!({
            "nullable": null, "defaulted": null, "plain": null, "unknown": null,
            "list": [null], "filled": [null], "map": {"k": null},
        }),
        json!({
            "nullable": null, "defaulted": "D", "unknown": null,
            "list": [null], "filled": ["I"], "map": {},
        }),
    );
}

proptest! {
    #[test]
    fn defaulting_twice_changes_nothing(
        schema in arbitrary::schema(), object in arbitrary::value(),
    ) {
        let (arena, root) = Schemas::from_single(&schema).unwrap();
        let mut once = object;
        prune_nulls(&mut once, arena.at(root));
        default(&mut once, arena.at(root));
        let mut twice = once.clone();
        default(&mut twice, arena.at(root));
        prop_assert_eq!(once, twice);
    }
}
