//! `data/resources.json`, and the two facts about built-in resources that Kubernetes does not
//! publish: which fields a selector may name, and which resources answer with a warning.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;

use super::DataError;
use crate::resource::{Origin, ResourceType, Root, Subresource, Version};

const DATA: &str = include_str!("../../data/resources.json");

#[derive(Deserialize)]
struct File {
    kubernetes: Box<str>,
    resources: Vec<Resource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resource {
    group: Box<str>,
    plural: Box<str>,
    singular: Box<str>,
    kind: Box<str>,
    namespaced: bool,
    #[serde(default)]
    short_names: Vec<Box<str>>,
    #[serde(default)]
    categories: Vec<Box<str>>,
    storage: Box<str>,
    storage_version_hash: Option<Box<str>>,
    versions: Vec<OneVersion>,
}

#[derive(Deserialize)]
struct OneVersion {
    name: Box<str>,
    schema: Option<Box<str>>,
    verbs: Vec<Box<str>>,
    #[serde(default)]
    subresources: Vec<OneSubresource>,
}

#[derive(Deserialize)]
struct OneSubresource {
    name: Box<str>,
    #[serde(default)]
    group: Box<str>,
    #[serde(default)]
    version: Box<str>,
    kind: Box<str>,
    verbs: Vec<Box<str>>,
}

/// What the file says.
#[derive(Default)]
pub(super) struct Loaded {
    pub(super) kubernetes: Box<str>,
    pub(super) resources: Vec<Arc<ResourceType>>,
    /// By group and plural, where the hash is not that of group, storage version and kind.
    pub(super) storage_version_hashes: BTreeMap<(Box<str>, Box<str>), Box<str>>,
}

pub(super) fn load() -> Result<Loaded, DataError> {
    let file: File = serde_json::from_str(DATA)?;
    let mut loaded = Loaded { kubernetes: file.kubernetes, ..Loaded::default() };
    for mut resource in file.resources {
        if let Some(hash) = resource.storage_version_hash.take() {
            let key = (resource.group.clone(), resource.plural.clone());
            loaded.storage_version_hashes.insert(key, hash);
        }
        loaded.resources.push(Arc::new(resource.read()?));
    }
    Ok(loaded)
}

impl Resource {
    fn read(self) -> Result<ResourceType, DataError> {
        let selectable = selectable_fields(&self.group, &self.plural);
        let deprecation = deprecation(&self.group, &self.plural);
        let mut versions = Vec::with_capacity(self.versions.len());
        for version in self.versions {
            versions.push(Version {
                name: version.name,
                served: true,
                deprecation: deprecation.map(Box::from),
                schema: version.schema.map(|name| root(&name)).transpose()?,
                verbs: version.verbs,
                subresources: version.subresources.into_iter().map(subresource).collect(),
                scale: None,
                columns: Vec::new(),
                selectable_fields: selectable.iter().copied().map(Box::from).collect(),
            });
        }
        Ok(ResourceType {
            list_kind: format!("{}List", self.kind).into(),
            group: self.group,
            plural: self.plural,
            singular: self.singular,
            kind: self.kind,
            short_names: self.short_names,
            categories: self.categories,
            namespaced: self.namespaced,
            versions,
            storage_version: self.storage,
            origin: Origin::Builtin,
        })
    }
}

fn root(name: &str) -> Result<Root, DataError> {
    let schemas = super::schemas();
    let schema = schemas.named(name).ok_or_else(|| DataError::Undefined(name.to_owned()))?;
    Ok(Root { schemas: Arc::clone(schemas), id: schema.id() })
}

fn subresource(from: OneSubresource) -> Subresource {
    let OneSubresource { name, group, version, kind, verbs } = from;
    Subresource { name, group, version, kind, verbs }
}

/// What a field selector may name beside `metadata.name` and `metadata.namespace`. Two are not
/// paths of the object: an event's `source` is `source.component` (else `reportingComponent`), and
/// a job's `status.successful` is `status.succeeded`.
fn selectable_fields(group: &str, plural: &str) -> &'static [&'static str] {
    match (group, plural) {
        ("", "pods") => &[
            ".spec.nodeName",
            ".spec.restartPolicy",
            ".spec.schedulerName",
            ".spec.serviceAccountName",
            ".spec.hostNetwork",
            ".status.phase",
            ".status.podIP",
            ".status.podIPs",
            ".status.nominatedNodeName",
        ],
        ("", "nodes") => &[".spec.unschedulable"],
        ("", "replicationcontrollers") => &[".status.replicas"],
        ("", "namespaces") => &[".status.phase"],
        ("", "secrets") => &[".type"],
        ("", "services") => &[".spec.clusterIP", ".spec.type"],
        ("", "events") => &[
            ".involvedObject.kind",
            ".involvedObject.namespace",
            ".involvedObject.name",
            ".involvedObject.uid",
            ".involvedObject.apiVersion",
            ".involvedObject.resourceVersion",
            ".involvedObject.fieldPath",
            ".reason",
            ".reportingComponent",
            ".source",
            ".type",
        ],
        ("events.k8s.io", "events") => &[
            ".regarding.kind",
            ".regarding.namespace",
            ".regarding.name",
            ".regarding.uid",
            ".regarding.apiVersion",
            ".regarding.resourceVersion",
            ".regarding.fieldPath",
            ".reason",
            ".reportingController",
            ".type",
        ],
        ("batch", "jobs") => &[".status.successful"],
        ("certificates.k8s.io", "certificatesigningrequests") => &[".spec.signerName"],
        _ => &[],
    }
}

/// The warning that every answer about such a resource carries.
fn deprecation(group: &str, plural: &str) -> Option<&'static str> {
    match (group, plural) {
        ("", "componentstatuses") => Some("v1 ComponentStatus is deprecated in v1.19+"),
        ("", "endpoints") => {
            Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice")
        }
        _ => None,
    }
}
