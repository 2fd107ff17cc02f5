use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::schema::{Schemas, arbitrary};

fn definitions() -> Schemas {
    let definitions = json!({
        "io.k8s.apimachinery.pkg.apis.meta.v1.Time": {"type": "string", "format": "date-time"},
        "io.k8s.apimachinery.pkg.api.resource.Quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
        "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": {"type": "object", "properties": {
            "name": {"type": "string"},
            "uid": {"type": "string"},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "creationTimestamp": {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.Time"},
        }},
        "io.k8s.api.core.v1.Container": {"type": "object", "properties": {
            "name": {"type": "string"},
            "port": {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
            "limits": {"type": "object", "additionalProperties": {
                "$ref": "#/components/schemas/io.k8s.apimachinery.pkg.api.resource.Quantity",
            }},
        }},
        "io.k8s.api.apps.v1.DeploymentSpec": {"type": "object", "required": ["containers"], "properties": {
            "replicas": {"type": "integer", "format": "int32"},
            "paused": {"type": "boolean"},
            "containers": {"type": "array", "items": {"allOf": [
                {"$ref": "#/components/schemas/io.k8s.api.core.v1.Container"},
            ], "default": {}}},
            "args": {"type": "array", "items": {"type": "string"}},
            "data": {"type": "object", "additionalProperties": {"type": "string", "format": "byte"}},
        }},
        "io.k8s.api.apps.v1.Deployment": {"type": "object", "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"},
            "spec": {"$ref": "#/components/schemas/io.k8s.api.apps.v1.DeploymentSpec"},
        }},
    });
    Schemas::from_definitions(definitions.as_object().unwrap()).unwrap()
}

fn run(mut object: Value) -> Result<(Value, Vec<String>), String> {
    let arena = definitions();
    let schema = arena.named("io.k8s.api.apps.v1.Deployment").unwrap();
    let unknown = coerce(&mut object, schema, "Deployment", "v1").map_err(|status| {
        assert_eq!((status.code, &*status.reason), (400, "BadRequest"));
        status.message
    })?;
    Ok((object, unknown))
}

#[test]
fn wrong_types_are_refused_in_gos_words() {
    for (object, text) in [
        (
            json!({"spec": {"replicas": "3"}}),
            "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            json!({"spec": {"replicas": 3_000_000_000_i64}}),
            "json: cannot unmarshal number 3000000000 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            json!({"spec": {"replicas": 1.5}}),
            "json: cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            json!({"spec": {"paused": "yes"}}),
            "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.paused of type bool",
        ),
        (
            json!({"spec": {"containers": {}}}),
            "json: cannot unmarshal object into Go struct field DeploymentSpec.spec.containers of type []v1.Container",
        ),
        (
            json!({"spec": {"containers": [{"name": 1}]}}),
            "json: cannot unmarshal number into Go struct field Container.spec.containers.name of type string",
        ),
        (
            json!({"spec": {"containers": [{"port": true}]}}),
            "json: cannot unmarshal bool into Go struct field Container.spec.containers.port of type int32",
        ),
        (
            json!({"spec": {"containers": [{"limits": {"cpu": "lots"}}]}}),
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        (
            json!({"metadata": {"labels": {"a": 1}}}),
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string",
        ),
        (
            json!({"metadata": {"labels": []}}),
            "json: cannot unmarshal array into Go struct field ObjectMeta.metadata.labels of type map[string]string",
        ),
        (
            json!({"metadata": {"uid": 5}}),
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.uid of type types.UID",
        ),
        (
            json!({"metadata": "x"}),
            "json: cannot unmarshal string into Go struct field Deployment.metadata of type v1.ObjectMeta",
        ),
        (
            json!({"metadata": {"creationTimestamp": "today"}}),
            r#"parsing time "today" as "2006-01-02T15:04:05Z07:00": cannot parse "today" as "2006""#,
        ),
        (json!({"spec": {"data": {"k": "???"}}}), "illegal base64 data at input byte 0"),
        (json!([]), "json: cannot unmarshal array into Go value of type v1.Deployment"),
    ] {
        let message =
            format!("Deployment in version \"v1\" cannot be handled as a Deployment: {text}");
        assert_eq!(run(object), Err(message));
    }
}

#[test]
fn what_comes_back_is_what_a_struct_would_write() {
    let (object, unknown) = run(json!({
        "kind": "Deployment",
        "metadata": {
            "name": "n", "creationTimestamp": "2024-05-01T12:00:00+02:00", "labels": {"a": null},
            "Name": "case matters",
        },
        "spec": {
            "replicas": null, "args": [], "containers": [], "x": {"y": 1},
            "data": {"k": "aGVs\nbG8="},
        },
        "status": null,
    }))
    .unwrap();
    assert_eq!(
        object,
        json!({
            "kind": "Deployment",
            "metadata": {
                "name": "n", "creationTimestamp": "2024-05-01T10:00:00Z", "labels": {"a": ""},
            },
            "spec": {"containers": [], "data": {"k": "aGVsbG8="}},
        })
    );
    assert_eq!(unknown, ["metadata.Name", "spec.x", "status"]);
    let (object, _) =
        run(json!({"spec": {"containers": [null, {"limits": {"cpu": 0.5}}]}})).unwrap();
    assert_eq!(object, json!({"spec": {"containers": [{}, {"limits": {"cpu": "500m"}}]}}));
}

proptest! {
    #[test]
    fn any_schema_and_value_are_survived_and_the_result_is_stable(
        schema in arbitrary::schema(), object in arbitrary::value(),
    ) {
        let (arena, root) = Schemas::from_single(&schema).unwrap();
        let mut once = object;
        if decode(&mut once, arena.at(root)).is_ok() {
            let mut twice = once.clone();
            prop_assert_eq!(decode(&mut twice, arena.at(root)), Ok(vec![]));
            prop_assert_eq!(once, twice);
        }
    }
}
