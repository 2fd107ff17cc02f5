//! Templates of which nobody can say what they are about: a mistake, or a kind that is away. What they
//! had stays, and stays on record.

use anyhow::Result;
use cleat_world::eventually;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DynamicObject, Patch};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};

use super::{Site, enforce, is_created, musthave, pruning, related};
use crate::{create, delete};

impl Site {
    /// A policy about a map of somebody's that it chooses, and one about a map that it made in a
    /// namespace that it chooses.
    async fn choosing(&self) -> Result<()> {
        let labels = json!({ "team": "a" });
        create(&self.maps(), json!({ "metadata": { "name": "theirs", "labels": labels } })).await?;
        let chosen = vec![self.chosen("{{ .ObjectName }}", json!({ "matchLabels": labels }))];
        self.policy("p", pruning(enforce(chosen), "DeleteAll")).await?;
        let mut spec = pruning(enforce(vec![made("{{ .ObjectNamespace }}")]), "DeleteIfCreated");
        spec["namespaceSelector"] = json!({ "include": [self.name] });
        self.policy("q", spec).await?;
        let chosen = self.stands("p", "Compliant").await?;
        assert!(related(&chosen, "theirs").is_some());
        let made = self.stands("q", "Compliant").await?;
        assert_eq!(is_created(&made, "made"), Some(true));
        Ok(())
    }

    fn chosen(&self, name: &str, selector: Value) -> Value {
        let mut template = musthave(self.map(name, "1"));
        template["objectSelector"] = selector;
        template
    }

    /// Neither map went, or is forgotten.
    async fn both_stay(&self) -> Result<()> {
        self.passes("other").await?;
        for (policy, map) in [("p", "theirs"), ("q", "made")] {
            let found = self.maps().get(map).await?;
            assert_eq!(found.metadata.deletion_timestamp, None, "{map}");
            assert!(related(&self.policies().get(policy).await?, map).is_some(), "{map}");
        }
        Ok(())
    }
}

fn made(namespace: &str) -> Value {
    musthave(json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "made", "namespace": namespace }, "data": { "key": "1" },
    }))
}

/// §2.12: what a selector chooses that is none is not nothing.
#[tokio::test]
async fn a_selector_that_is_no_selector_prunes_nothing() -> Result<()> {
    let site = Site::start("prune-misspelled").await?;
    site.choosing().await?;
    let near = json!({ "matchExpressions": [{ "key": "team", "operator": "Near" }] });
    let templates = [site.chosen("{{ .ObjectName }}", near)];
    site.patch("p", json!({ "spec": { "object-templates": templates } })).await?;
    site.patch("q", json!({ "spec": { "namespaceSelector": { "include": ["["] } } })).await?;
    site.says("p", "Error parsing provided objectSelector").await?;
    site.says("q", "syntax error in pattern").await?;
    site.both_stay().await
}

/// §2.12: a name or a namespace that turned out not to be the chosen one pruned all there was.
#[tokio::test]
async fn a_name_or_namespace_that_is_not_the_chosen_one_prunes_nothing() -> Result<()> {
    let site = Site::start("prune-mismatch").await?;
    site.choosing().await?;
    let team = json!({ "matchLabels": { "team": "a" } });
    let templates = [site.chosen("{{ .ObjectName }}-x", team)];
    site.patch("p", json!({ "spec": { "object-templates": templates } })).await?;
    let templates = [made("{{ .ObjectNamespace }}-x")];
    site.patch("q", json!({ "spec": { "object-templates": templates } })).await?;
    site.says("p", "name must match the result from the object selector").await?;
    site.says("q", "namespace must match the result from the namespace selector").await?;
    site.both_stay().await
}

/// §2.11 and §2.12: no mapping was taken for gone.
#[tokio::test]
async fn an_object_whose_kind_is_not_served_right_now_is_neither_gone_nor_forgotten() -> Result<()>
{
    let site = Site::start("prune-unserved").await?;
    let definitions: Api<CustomResourceDefinition> = Api::all(site.cluster.clone());
    let group = format!("{}.example.com", site.name);
    let name = format!("widgets.{group}");
    let versions = |served: bool| {
        json!([{
            "name": "v1", "served": served, "storage": true,
            "schema": { "openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true,
            } },
        }])
    };
    let names = json!({ "plural": "widgets", "singular": "widget", "kind": "Widget" });
    let spec = json!({
        "group": group, "names": names, "scope": "Namespaced", "versions": versions(true),
    });
    create(&definitions, json!({ "metadata": { "name": name }, "spec": spec })).await?;
    let widget = json!({
        "apiVersion": format!("{group}/v1"), "kind": "Widget",
        "metadata": { "name": "w", "namespace": site.name },
    });
    site.policy("p", pruning(enforce(vec![musthave(widget)]), "DeleteIfCreated")).await?;
    site.stands("p", "Compliant").await?;
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(&group, "v1", "Widget"));
    let widgets: Api<DynamicObject> = Api::namespaced_with(site.cluster.clone(), &site.name, &kind);
    let before = widgets.get("w").await?;
    let serve = async |served: bool| -> Result<()> {
        let patch = Patch::Merge(json!({ "spec": { "versions": versions(served) } }));
        definitions.patch(&name, &Default::default(), &patch).await?;
        eventually("the kind to come or go", || async {
            let found = widgets.get_opt("w").await;
            Ok((found.is_ok_and(|found| found.is_some()) == served).then_some(()))
        })
        .await
    };

    serve(false).await?;
    // A watch that is open may go on; whoever looks anew finds out.
    site.patch("p", json!({ "spec": { "severity": "low" } })).await?;
    let policy = site.says("p", "does not serve it").await?;
    assert_eq!(is_created(&policy, "w"), Some(true));
    serve(true).await?;
    site.stands("p", "Compliant").await?;
    let now = widgets.get("w").await?;
    assert_eq!((now.metadata.uid, now.metadata.deletion_timestamp), (before.metadata.uid, None));

    // Nor is it forgotten when it leaves meanwhile.
    serve(false).await?;
    let templates = [musthave(site.map("a", "1"))];
    site.patch("p", json!({ "spec": { "object-templates": templates } })).await?;
    site.says("p", "Failed to delete objects").await?;
    let patch = Patch::Merge(json!({ "spec": { "versions": versions(true) } }));
    definitions.patch(&name, &Default::default(), &patch).await?;
    site.stands("p", "Compliant").await?;
    assert!(widgets.get_opt("w").await?.is_none());
    delete(&definitions, &name).await
}
