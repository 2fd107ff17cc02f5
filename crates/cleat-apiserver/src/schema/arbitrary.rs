//! Random schemas and values that meet often enough to be interesting: few names, few strings.

use proptest::{collection, option, prelude::*, sample::select};
use serde_json::{Map, Value, json};

const NAMES: [&str; 7] = ["a", "b", "c", "kind", "apiVersion", "metadata", "spec"];

/// Any JSON, with the names that [`schema`] uses.
pub(crate) fn value() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..40).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        select(&["", "a", "abc", "2024-01-01T00:00:00Z", "10.0.0.1", "1h", "☃", "-"][..])
            .prop_map(Value::from),
        ".{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            collection::btree_map(select(&NAMES[..]), inner, 0..5).prop_map(|map| {
                Value::Object(map.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())
            }),
        ]
    })
    .boxed()
}

/// Any schema that loads, structural or not.
pub(crate) fn schema() -> BoxedStrategy<Value> {
    let leaf = annotated(prop_oneof![
        Just(json!({})),
        select(&["string", "integer", "number", "boolean", "object", "array"][..])
            .prop_map(|kind| json!({"type": kind})),
        Just(json!({"x-kubernetes-int-or-string": true})),
        select(&["date-time", "ipv4", "uuid", "duration", "uri", "email", "byte", "odd"][..])
            .prop_map(|format| json!({"type": "string", "format": format})),
        select(&["^a+$", "(", r"\d", "[a-z", ""][..])
            .prop_map(|pattern| json!({"type": "string", "pattern": pattern})),
        (any::<f64>(), any::<f64>(), any::<bool>()).prop_map(|(min, max, exclusive)| json!({
            "type": "integer", "minimum": min, "maximum": max,
            "exclusiveMinimum": exclusive, "multipleOf": max,
        })),
    ]);
    leaf.prop_recursive(4, 24, 4, |inner| {
        let list = (inner.clone(), option::of(select(&["set", "map", "atomic"][..]))).prop_map(
            |(items, kind)| match kind {
                Some(kind) => json!({
                    "type": "array", "items": items, "x-kubernetes-list-type": kind,
                    "x-kubernetes-list-map-keys": ["a"],
                }),
                None => json!({"type": "array", "items": items, "uniqueItems": true}),
            },
        );
        let object = (
            collection::btree_map(select(&NAMES[..]), inner.clone(), 0..4),
            option::of(prop_oneof![inner.clone(), any::<bool>().prop_map(Value::from)]),
            any::<bool>(),
            any::<bool>(),
        )
            .prop_map(|(properties, additional, preserve, embedded)| {
                let properties: Map<String, Value> =
                    properties.into_iter().map(|(k, v)| (k.to_owned(), v)).collect();
                let mut schema = json!({
                    "type": "object", "properties": properties, "required": ["a"],
                    "maxProperties": 2,
                });
                if let Some(additional) = additional {
                    schema["additionalProperties"] = additional;
                }
                schema["x-kubernetes-preserve-unknown-fields"] = preserve.into();
                schema["x-kubernetes-embedded-resource"] = embedded.into();
                schema
            });
        let junctors =
            (select(&["allOf", "anyOf", "oneOf"][..]), collection::vec(inner.clone(), 1..3))
                .prop_map(|(key, branches)| json!({ key: branches }));
        let not = inner.prop_map(|schema| json!({"not": schema}));
        annotated(prop_oneof![list, object, junctors, not])
    })
    .boxed()
}

fn annotated(schema: impl Strategy<Value = Value> + 'static) -> BoxedStrategy<Value> {
    (schema, option::of(value()), any::<bool>(), option::of(collection::vec(value(), 0..3)))
        .prop_map(|(mut schema, default, nullable, allowed)| {
            if let Some(default) = default {
                schema["default"] = default;
            }
            if let Some(allowed) = allowed {
                schema["enum"] = allowed.into();
            }
            schema["nullable"] = nullable.into();
            schema
        })
        .boxed()
}
