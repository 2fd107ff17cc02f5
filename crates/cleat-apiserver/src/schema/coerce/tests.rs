use serde_json::json;

use super::*;
use crate::schema::Schemas;

fn run(object: Value) -> Result<(Value, Vec<String>), String> {
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "size": {"type": "integer"},
            "plain": {"type": "string"},
            "inner": {
                "type": "object", "x-kubernetes-embedded-resource": true,
                "x-kubernetes-preserve-unknown-fields": true,
            },
        }},
    }});
    let (arena, root) = Schemas::from_single(&schema).unwrap();
    let mut object = object;
    let unknown = coerce_custom(&mut object, arena.at(root), "Foo", "v1").map_err(|s| s.message)?;
    Ok((object, unknown))
}

#[test]
fn an_object_comes_out_as_kubernetes_would_keep_it() {
    let (object, unknown) = run(json!({
        "apiVersion": "g/v1", "kind": "Foo",
        "metadata": {
            "name": "x", "creationTimestamp": null, "generation": 0, "labels": {}, "odd": 1,
            "ownerReferences": [{"kind": "A", "odd": 2}],
        },
        "spec": {
            "size": 3.0, "plain": null, "z": 1,
            "inner": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "odd": 3}, "x": 1},
        },
    }))
    .unwrap();
    assert_eq!(
        object,
        json!({
            "apiVersion": "g/v1", "kind": "Foo",
            "metadata": {
                "name": "x",
                "ownerReferences": [{"apiVersion": "", "kind": "A", "name": "", "uid": ""}],
            },
            "spec": {
                "size": 3,
                "inner": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "x": 1},
            },
        })
    );
    assert_eq!(
        unknown,
        ["metadata.odd", "metadata.ownerReferences[0].odd", "spec.z", "spec.inner.metadata.odd"]
    );
}

#[test]
fn wrong_types_in_metadata_are_refused() {
    for (object, text) in [
        (
            json!({"metadata": {"labels": {"a": 1}}}),
            "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string",
        ),
        (
            json!({"metadata": []}),
            "json: cannot unmarshal array into Go value of type v1.ObjectMeta",
        ),
        (
            json!({"spec": {"inner": {"kind": 5}}}),
            "spec.inner.kind: Invalid value: 5: must be a string",
        ),
    ] {
        let message = format!("Foo in version \"v1\" cannot be handled as a Foo: {text}");
        assert_eq!(run(object), Err(message));
    }
}
