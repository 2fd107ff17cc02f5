//! A kind of a fleet's own.

use anyhow::Result;
use cleat_world::Fleet;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DynamicObject};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

pub(super) struct Widgets {
    pub(super) api: Api<DynamicObject>,
    pub(super) definitions: Api<CustomResourceDefinition>,
    group: String,
    namespace: String,
}

impl Widgets {
    /// Defines nothing yet.
    pub(super) fn new(fleet: &Fleet) -> Self {
        let group = format!("{}.cleat.example", fleet.name);
        let kind = GroupVersionKind::gvk(&group, "v1", "Widget");
        let resource = ApiResource::from_gvk_with_plural(&kind, "widgets");
        Self {
            api: Api::namespaced_with(fleet.cluster.clone(), &fleet.name, &resource),
            definitions: Api::all(fleet.cluster.clone()),
            group,
            namespace: fleet.name.clone(),
        }
    }

    pub(super) fn definition(&self) -> Value {
        let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": { "name": self.name() },
            "spec": {
                "group": self.group,
                "scope": "Namespaced",
                "names": { "plural": "widgets", "singular": "widget", "kind": "Widget" },
                "versions": [{
                    "name": "v1",
                    "served": true,
                    "storage": true,
                    "schema": { "openAPIV3Schema": schema },
                }],
            },
        })
    }

    pub(super) fn name(&self) -> String {
        format!("widgets.{}", self.group)
    }

    pub(super) fn manifest(&self, name: &str) -> Value {
        json!({
            "apiVersion": format!("{}/v1", self.group),
            "kind": "Widget",
            "metadata": { "name": name, "namespace": self.namespace },
            "spec": { "size": 1 },
        })
    }

    pub(super) async fn defined(&self) -> Result<Option<CustomResourceDefinition>> {
        Ok(self.definitions.get_opt(&self.name()).await?)
    }
}
