use serde_json::{Value, json};

use super::*;
use crate::resource::{Root, Version};
use crate::schema::Schemas;

fn parsed(documents: &Documents, path: &str) -> Value {
    serde_json::from_slice(&documents.get(path).unwrap().body).unwrap()
}

fn custom(schema: Option<Value>) -> Arc<ResourceType> {
    let schema = schema.map(|schema| {
        let (arena, id) = Schemas::from_single(&schema).unwrap();
        Root { schemas: Arc::new(arena), id }
    });
    Arc::new(ResourceType {
        group: "stable.example.com".into(),
        plural: "crontabs".into(),
        singular: "crontab".into(),
        kind: "CronTab".into(),
        list_kind: "CronTabList".into(),
        short_names: Vec::new(),
        categories: Vec::new(),
        namespaced: true,
        versions: vec![Version {
            name: "v1".into(),
            served: true,
            deprecation: None,
            schema,
            verbs: [
                "delete",
                "deletecollection",
                "get",
                "list",
                "patch",
                "create",
                "update",
                "watch",
            ]
            .map(Box::from)
            .into(),
            subresources: vec![
                crate::resource::Subresource {
                    name: "status".into(),
                    group: "".into(),
                    version: "".into(),
                    kind: "CronTab".into(),
                    verbs: ["get", "patch", "update"].map(Box::from).into(),
                },
                crate::resource::Subresource {
                    name: "scale".into(),
                    group: "autoscaling".into(),
                    version: "v1".into(),
                    kind: "Scale".into(),
                    verbs: ["get", "patch", "update"].map(Box::from).into(),
                },
            ],
            scale: None,
            columns: Vec::new(),
            selectable_fields: vec![".spec.size".into()],
        }],
        storage_version: "v1".into(),
        origin: Origin::Custom { name: "crontabs.stable.example.com".into(), uid: "1".into() },
    })
}

/// Every reference must lead somewhere, or clients refuse the whole document.
fn check_closed(document: &Value, at: &str) {
    let text = document.to_string();
    for name in references(&text) {
        assert!(document["components"]["schemas"].get(name).is_some(), "{at}: {name}");
    }
}

#[test]
fn all_built_in_group_versions_have_a_closed_document() {
    let documents = Documents::new(builtin::resources());
    assert_eq!(documents.by_path.len(), 21);
    for path in documents.by_path.keys() {
        check_closed(&parsed(&documents, path), path);
    }
    let url = documents.index()["paths"]["apis/apps/v1"]["serverRelativeURL"].clone();
    let hash = &documents.get("apis/apps/v1").unwrap().hash;
    assert_eq!(url, format!("/openapi/v3/apis/apps/v1?hash={hash}"));
}

#[test]
fn kubectl_finds_what_it_looks_for_in_a_patch() {
    let document = parsed(&Documents::new(builtin::resources()), "apis/apps/v1");
    let patch =
        &document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"];
    assert_eq!(patch["operationId"], "patchAppsV1NamespacedDeployment");
    assert_eq!(patch["tags"], json!(["apps_v1"]));
    assert_eq!(patch["x-kubernetes-action"], "patch");
    let gvk = json!({ "group": "apps", "version": "v1", "kind": "Deployment" });
    assert_eq!(patch["x-kubernetes-group-version-kind"], gvk);
    let names: Vec<&str> = patch["parameters"]
        .as_array()
        .unwrap()
        .iter()
        .map(|parameter| parameter["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["dryRun", "fieldManager", "fieldValidation", "force"]);
    let bodies = patch["requestBody"]["content"].as_object().unwrap();
    assert!(bodies.contains_key("application/strategic-merge-patch+json"));
    let schema = &document["components"]["schemas"]["io.k8s.api.apps.v1.Deployment"];
    assert_eq!(schema["x-kubernetes-group-version-kind"], json!([gvk]));
    let options =
        &document["components"]["schemas"]["io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"];
    assert_eq!(options["x-kubernetes-group-version-kind"][1]["group"], "apps");
}

#[test]
fn operations_are_named_as_kubernetes_names_them() {
    let documents = Documents::new(builtin::resources());
    let core = parsed(&documents, "api/v1");
    let rbac = parsed(&documents, "apis/rbac.authorization.k8s.io/v1");
    for (document, path, method, id) in [
        (&core, "/api/v1/configmaps", "get", "listCoreV1ConfigMapForAllNamespaces"),
        (
            &core,
            "/api/v1/namespaces/{namespace}/configmaps",
            "delete",
            "deleteCoreV1CollectionNamespacedConfigMap",
        ),
        (
            &core,
            "/api/v1/namespaces/{namespace}/pods/{name}/eviction",
            "post",
            "createCoreV1NamespacedPodEviction",
        ),
        (&core, "/api/v1/namespaces/{name}/finalize", "put", "replaceCoreV1NamespaceFinalize"),
        (
            &rbac,
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/{name}",
            "get",
            "readRbacAuthorizationV1ClusterRole",
        ),
    ] {
        assert_eq!(document["paths"][path][method]["operationId"], id);
    }
}

#[test]
fn a_custom_kind_gets_what_every_object_has() {
    let documents = Documents::new(&[custom(Some(json!({
        "type": "object",
        "properties": {
            "metadata": { "type": "object" },
            "spec": {
                "type": "object",
                "description": "What is wanted.",
                "properties": {
                    "size": { "x-kubernetes-int-or-string": true },
                    "template": { "type": "object", "x-kubernetes-embedded-resource": true },
                },
            },
        },
    })))]);
    let document = parsed(&documents, "apis/stable.example.com/v1");
    check_closed(&document, "custom");
    let schemas = &document["components"]["schemas"];
    let meta = json!({ "allOf": [{
        "$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
    }] });
    let gvk =
        |kind: &str| json!([{ "group": "stable.example.com", "version": "v1", "kind": kind }]);
    assert_eq!(
        schemas["com.example.stable.v1.CronTab"],
        json!({
            "type": "object",
            "properties": {
                "apiVersion": { "type": "string" },
                "kind": { "type": "string" },
                "metadata": meta,
                "spec": {
                    "type": "object",
                    "description": "What is wanted.",
                    "properties": {
                        "size": {
                            "x-kubernetes-int-or-string": true,
                            "anyOf": [{ "type": "integer" }, { "type": "string" }],
                        },
                        "template": {
                            "type": "object",
                            "x-kubernetes-embedded-resource": true,
                            "required": ["kind", "apiVersion"],
                            "properties": {
                                "apiVersion": { "type": "string" },
                                "kind": { "type": "string" },
                                "metadata": meta,
                            },
                        },
                    },
                },
            },
            "x-kubernetes-group-version-kind": gvk("CronTab"),
            "x-kubernetes-selectable-fields": [{ "fieldPath": "spec.size" }],
        })
    );
    let list = &schemas["com.example.stable.v1.CronTabList"];
    assert_eq!(list["x-kubernetes-group-version-kind"], gvk("CronTabList"));
    let item = "/apis/stable.example.com/v1/namespaces/{namespace}/crontabs/{name}";
    let patch = &document["paths"][item]["patch"];
    assert_eq!(patch["operationId"], "patchStableExampleComV1NamespacedCronTab");
    assert_eq!(patch["tags"], json!(["stableExampleCom_v1"]));
    let bodies = patch["requestBody"]["content"].as_object().unwrap();
    assert!(!bodies.contains_key("application/strategic-merge-patch+json"));
    let scale = &document["paths"][&format!("{item}/scale")]["get"];
    let given = &scale["responses"]["200"]["content"]["application/json"]["schema"]["$ref"];
    assert_eq!(given, "#/components/schemas/io.k8s.api.autoscaling.v1.Scale");
    assert_eq!(scale["x-kubernetes-group-version-kind"], gvk("CronTab")[0]);
}

#[test]
fn the_hash_follows_the_content() {
    let hash = |schema| {
        let documents = Documents::new(&[custom(schema)]);
        documents.get("apis/stable.example.com/v1").unwrap().hash.clone()
    };
    let one = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
    assert_eq!(hash(Some(one.clone())), hash(Some(one.clone())));
    assert_ne!(hash(Some(one)), hash(None));
}
