//! Taking a definition away with everything of its kind, by tests that have the servers for themselves.

use anyhow::{Context as _, Result};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::{Client, ResourceExt as _};
use serde_json::json;

use crate::{delete, gone};

/// Deletes a definition and returns when it is gone. Its objects in namespaces that begin as in `ours`
/// go as their controllers let them; others are what tests left that ended, and nobody holds them.
pub(crate) async fn undefine(client: &Client, name: &str, ours: &[&str]) -> Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let definition = definitions.get(name).await?;
    let spec = &definition.spec;
    let version = spec.versions.iter().find(|version| version.served).context("it is served")?;
    let kind = GroupVersionKind::gvk(&spec.group, &version.name, &spec.names.kind);
    let kind = ApiResource::from_gvk_with_plural(&kind, &spec.names.plural);
    let every: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
    for object in every.list_metadata(&ListParams::default()).await?.items {
        let place = object.namespace().unwrap_or_else(|| object.name_any());
        if object.finalizers().is_empty() || ours.iter().any(|own| place.starts_with(own)) {
            continue;
        }
        let api: Api<DynamicObject> = match object.namespace() {
            Some(namespace) => Api::namespaced_with(client.clone(), &namespace, &kind),
            None => every.clone(),
        };
        let free = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
        api.patch_metadata(&object.name_any(), &PatchParams::default(), &free).await?;
    }
    delete(&definitions, name).await?;
    gone(&definitions, &definition).await
}
