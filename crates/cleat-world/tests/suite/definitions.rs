//! Kinds that arrive as definitions, from their first sight to their end.

use anyhow::Result;
use cleat_world::{eventually, within};
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{
    Api, DynamicObject, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams,
};
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::wait::{await_condition, conditions};
use serde_json::{Value, json};

use crate::{Place, create, delete, gone, parse, refusal, seen};

pub(super) struct Kind {
    pub(super) definitions: Api<CustomResourceDefinition>,
    pub(super) definition: CustomResourceDefinition,
    pub(super) objects: Api<DynamicObject>,
    pub(super) api_version: String,
}

/// A kind of the place's own, served.
pub(super) async fn define(place: &Place) -> Result<Kind> {
    define_for(&place.client, &place.namespace).await
}

/// The same on any server, for objects of one namespace.
pub(super) async fn define_for(client: &Client, namespace: &str) -> Result<Kind> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let group = format!("{namespace}.cleat.example");
    let spec = json!({
        "type": "object",
        "required": ["size"],
        "properties": {
            "size": { "type": "integer", "minimum": 1, "maximum": 10 },
            "text": { "type": "string" },
            "colour": { "type": "string", "default": "green", "enum": ["green", "blue"] },
        },
        "x-kubernetes-validations": [{
            "rule": "self.size < 5 || self.colour == 'blue'",
            "message": "large ones must be blue",
        }],
    });
    let status = json!({ "type": "object", "properties": { "phase": { "type": "string" } } });
    let schema = json!({ "type": "object", "properties": { "spec": spec, "status": status } });
    let version = json!({
        "name": "v1",
        "served": true,
        "storage": true,
        "schema": { "openAPIV3Schema": schema },
        "subresources": { "status": {} },
    });
    let definition = create(
        &definitions,
        json!({
            "metadata": { "name": format!("widgets.{group}") },
            "spec": {
                "group": group,
                "scope": "Namespaced",
                "names": { "plural": "widgets", "singular": "widget", "kind": "Widget" },
                "versions": [version],
            },
        }),
    )
    .await?;
    let name = format!("widgets.{group}");
    let established = await_condition(definitions.clone(), &name, conditions::is_crd_established());
    within("the definition to be established", established).await??;
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(&group, "v1", "Widget"));
    let objects = Api::namespaced_with(client.clone(), namespace, &resource);
    let kind = Kind { definitions, definition, objects, api_version: format!("{group}/v1") };
    eventually("the kind to be served", || async {
        Ok(kind.objects.list(&ListParams::default()).await.ok())
    })
    .await?;
    Ok(kind)
}

impl Kind {
    fn widget(&self, name: &str, spec: Value) -> DynamicObject {
        parse(json!({
            "apiVersion": self.api_version,
            "kind": "Widget",
            "metadata": { "name": name },
            "spec": spec,
        }))
    }

    async fn make(&self, name: &str, spec: Value) -> Result<DynamicObject> {
        Ok(self.objects.create(&PostParams::default(), &self.widget(name, spec)).await?)
    }

    async fn remove(&self) -> Result<()> {
        delete(&self.definitions, self.definition.metadata.name.as_deref().unwrap()).await?;
        gone(&self.definitions, &self.definition).await
    }
}

#[tokio::test]
async fn its_objects_are_defaulted_pruned_and_kept() -> Result<()> {
    let place = Place::new("definitions").await?;
    let kind = define(&place).await?;
    let made = kind.make("a", json!({ "size": 3, "unknown": true })).await?;
    assert_eq!(made.data["spec"], json!({ "size": 3, "colour": "green" }));
    assert_eq!(kind.objects.get("a").await?, made);
    let listed = kind.objects.list(&ListParams::default()).await?;
    assert_eq!(listed.items.len(), 1);
    kind.remove().await
}

#[tokio::test]
async fn its_schema_and_rules_refuse() -> Result<()> {
    let place = Place::new("definitions").await?;
    let kind = define(&place).await?;
    let cases = [
        (json!({ "size": 11 }), "spec.size in body should be less than or equal to 10"),
        (json!({}), "spec.size: Required value"),
        (json!({ "size": "big" }), "spec.size in body must be of type integer"),
        (json!({ "size": 1, "colour": "red" }), r#"supported values: "green", "blue""#),
        (json!({ "size": 7 }), "large ones must be blue"),
    ];
    for (spec, expected) in cases {
        let object = kind.widget("a", spec.clone());
        let status = refusal(kind.objects.create(&PostParams::default(), &object).await);
        assert_eq!((status.code, &*status.reason), (422, "Invalid"), "{spec}");
        assert!(status.message.contains(expected), "{spec}: {}", status.message);
    }
    kind.make("a", json!({ "size": 7, "colour": "blue" })).await?;
    kind.remove().await
}

#[tokio::test]
async fn spec_and_status_are_written_apart() -> Result<()> {
    let place = Place::new("definitions").await?;
    let kind = define(&place).await?;
    let mut object = kind.widget("a", json!({ "size": 1 }));
    object.data["status"] = json!({ "phase": "forged" });
    let made = kind.objects.create(&PostParams::default(), &object).await?;
    assert_eq!(made.data.get("status"), None);
    let params = PatchParams::default();
    let both = Patch::Merge(json!({ "spec": { "size": 2 }, "status": { "phase": "ready" } }));
    let stated = kind.objects.patch_status("a", &params, &both).await?;
    assert_eq!(stated.data["spec"]["size"], 1);
    assert_eq!(stated.data["status"]["phase"], "ready");
    assert_eq!(stated.metadata.generation, Some(1));
    let both = Patch::Merge(json!({ "spec": { "size": 2 }, "status": { "phase": "forged" } }));
    let changed = kind.objects.patch("a", &params, &both).await?;
    assert_eq!(changed.data["spec"]["size"], 2);
    assert_eq!(changed.data["status"]["phase"], "ready");
    assert_eq!(changed.metadata.generation, Some(2));
    kind.remove().await
}

#[tokio::test]
async fn its_objects_can_be_applied() -> Result<()> {
    let place = Place::new("definitions").await?;
    let kind = define(&place).await?;
    let apply = |size: u64| Patch::Apply(kind.widget("a", json!({ "size": size })));
    kind.objects.patch("a", &PatchParams::apply("one"), &apply(1)).await?;
    let status = refusal(kind.objects.patch("a", &PatchParams::apply("two"), &apply(2)).await);
    assert_eq!((status.code, &*status.reason), (409, "Conflict"));
    let forced = PatchParams::apply("two").force();
    let object = kind.objects.patch("a", &forced, &apply(2)).await?;
    assert_eq!(object.data["spec"]["size"], 2);
    kind.remove().await
}

#[tokio::test]
async fn it_leaves_after_its_last_object() -> Result<()> {
    let place = Place::new("definitions").await?;
    let kind = define(&place).await?;
    let mut held = kind.widget("held", json!({ "size": 1 }));
    held.metadata.finalizers = Some(vec!["cleat.example/hold".to_owned()]);
    kind.objects.create(&PostParams::default(), &held).await?;
    let free = kind.make("free", json!({ "size": 1 })).await?;
    let name = kind.definition.metadata.name.clone().unwrap();
    delete(&kind.definitions, &name).await?;
    // It says so first, and only then asks its objects to leave.
    let terminating = |definition: &CustomResourceDefinition| {
        let conditions = definition.status.iter().flat_map(|status| status.conditions.iter());
        conditions.flatten().any(|one| one.type_ == "Terminating" && one.status == "True")
    };
    seen(&kind.definitions, &name, terminating).await?;
    gone(&kind.objects, &free).await?;
    let leaving = |object: &DynamicObject| object.metadata.deletion_timestamp.is_some();
    seen(&kind.objects, "held", leaving).await?;
    assert!(kind.definitions.get_opt(&name).await?.is_some());
    let late = kind.widget("b", json!({ "size": 1 }));
    let status = refusal(kind.objects.create(&PostParams::default(), &late).await);
    assert_eq!((status.code, &*status.reason), (403, "Forbidden"), "{}", status.message);
    let none = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    kind.objects.patch("held", &PatchParams::default(), &none).await?;
    gone(&kind.definitions, &kind.definition).await
}

/// With a kind of its own, because a real server that has just started remembers everything of the
/// built-in ones, and nothing of this one from before it was defined.
#[tokio::test]
async fn a_watch_from_a_forgotten_version_is_gone() -> Result<()> {
    let place = Place::new("definitions").await?;
    let kind = define(&place).await?;
    kind.make("a", json!({ "size": 1 })).await?;
    // More than an embedded server remembers of one resource.
    for number in 0..20 {
        let text = json!({ "spec": { "text": number.to_string().repeat(450_000) } });
        kind.objects.patch("a", &PatchParams::default(), &Patch::Merge(text)).await?;
    }
    let mut events = kind.objects.watch(&WatchParams::default().timeout(5), "1").await?.boxed();
    match within("an event", events.try_next()).await?? {
        Some(WatchEvent::Error(status)) => assert_eq!(status.code, 410),
        other => panic!("{other:?}"),
    }
    kind.remove().await
}
