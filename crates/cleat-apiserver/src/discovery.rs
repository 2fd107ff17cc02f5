//! The discovery documents: which groups, versions and resources a server has.
//!
//! Pure functions from the resource types, built-in and custom, to JSON. Groups and versions come
//! in the order clients rely on when a short name or a kind is ambiguous.

mod order;

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::builtin;
use crate::resource::{Origin, ResourceType, Subresource, Version};

pub use order::newer_first;

/// The content type of the aggregated documents.
pub const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// `/api`. `server_address` is host and port, as clients may reach this server.
pub fn api_versions(server_address: &str) -> Value {
    json!({
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [
            { "clientCIDR": "0.0.0.0/0", "serverAddress": server_address },
        ],
    })
}

/// `/apis`.
pub fn group_list(resources: &[Arc<ResourceType>]) -> Value {
    let groups: Vec<Value> = order::groups(resources, order::Ties::ByVersionAndName)
        .iter()
        .map(|group| Value::Object(group_entry(group)))
        .collect();
    json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups })
}

/// `/apis/GROUP`.
pub fn group(resources: &[Arc<ResourceType>], name: &str) -> Option<Value> {
    let groups = order::groups(resources, order::Ties::ByName);
    let mut entry = group_entry(groups.iter().find(|group| group.name == name)?);
    entry.insert("kind".into(), "APIGroup".into());
    entry.insert("apiVersion".into(), "v1".into());
    Some(Value::Object(entry))
}

fn group_entry(group: &order::Group<'_>) -> Map<String, Value> {
    let versions: Vec<Value> = group
        .versions
        .iter()
        .map(|version| {
            json!({ "groupVersion": format!("{}/{version}", group.name), "version": version })
        })
        .collect();
    let mut entry = Map::new();
    entry.insert("name".into(), group.name.into());
    entry.insert("preferredVersion".into(), versions.first().cloned().unwrap_or_default());
    entry.insert("versions".into(), versions.into());
    entry
}

/// `/api/v1` with an empty group, or `/apis/GROUP/VERSION`.
pub fn resource_list(resources: &[Arc<ResourceType>], group: &str, version: &str) -> Option<Value> {
    let mut list = Vec::new();
    for (resource, found) in in_version(resources, group, version) {
        list.push(resource_entry(resource, found));
        for subresource in &found.subresources {
            list.push(subresource_entry(resource, subresource));
        }
    }
    if list.is_empty() {
        return None;
    }
    Some(match group {
        // The oldest endpoint never said which version its answer is in.
        "" => json!({ "kind": "APIResourceList", "groupVersion": version, "resources": list }),
        _ => json!({
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": format!("{group}/{version}"),
            "resources": list,
        }),
    })
}

/// The resources served in that version, by name.
fn in_version<'a>(
    resources: &'a [Arc<ResourceType>],
    group: &str,
    version: &str,
) -> Vec<(&'a ResourceType, &'a Version)> {
    let mut found: Vec<_> = resources
        .iter()
        .filter(|resource| &*resource.group == group)
        .filter_map(|resource| Some((&**resource, resource.version(version)?)))
        .filter(|(_, version)| version.served)
        .collect();
    found.sort_by(|(a, _), (b, _)| a.plural.cmp(&b.plural));
    found
}

fn resource_entry(resource: &ResourceType, version: &Version) -> Value {
    let mut entry = json!({
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": version.verbs,
    });
    insert_names(&mut entry, resource);
    if let Some(hash) = storage_version_hash(resource)
        && let Value::Object(map) = &mut entry
    {
        map.insert("storageVersionHash".into(), hash.into());
    }
    entry
}

fn subresource_entry(resource: &ResourceType, subresource: &Subresource) -> Value {
    let mut entry = json!({
        "name": format!("{}/{}", resource.plural, subresource.name),
        "singularName": "",
        "namespaced": resource.namespaced,
        "kind": subresource.kind,
        "verbs": subresource.verbs,
    });
    if let Value::Object(map) = &mut entry {
        for (key, value) in [("group", &subresource.group), ("version", &subresource.version)] {
            if !value.is_empty() {
                map.insert(key.into(), (&**value).into());
            }
        }
    }
    entry
}

fn insert_names(entry: &mut Value, resource: &ResourceType) {
    let Value::Object(map) = entry else { return };
    for (key, names) in
        [("shortNames", &resource.short_names), ("categories", &resource.categories)]
    {
        if !names.is_empty() {
            map.insert(key.into(), names.iter().map(|name| Value::from(&**name)).collect());
        }
    }
}

/// Says whether the objects' stored form has changed. Kinds that are not stored have none, nor do
/// custom ones whose storage version is not served.
fn storage_version_hash(resource: &ResourceType) -> Option<String> {
    if let (Origin::Builtin, Some(known)) =
        (&resource.origin, builtin::storage_version_hash(&resource.group, &resource.plural))
    {
        return Some(known.to_owned());
    }
    let stored = resource.version(&resource.storage_version)?;
    if !stored.served || !stored.allows("watch") {
        return None;
    }
    let ResourceType { group, storage_version, kind, .. } = resource;
    let digest = Sha256::digest(format!("{group}/{storage_version}/{kind}"));
    Some(STANDARD.encode(digest.get(..8)?))
}

/// `/api` in the aggregated form.
pub fn aggregated_core(resources: &[Arc<ResourceType>]) -> Value {
    let versions = vec![version_discovery(resources, "", "v1")];
    aggregated_list(vec![json!({ "metadata": {}, "versions": versions })])
}

/// `/apis` in the aggregated form.
pub fn aggregated_groups(resources: &[Arc<ResourceType>]) -> Value {
    let mut items = Vec::new();
    for group in order::groups(resources, order::Ties::ByName) {
        let versions: Vec<Value> = group
            .versions
            .iter()
            .map(|version| version_discovery(resources, group.name, version))
            .collect();
        items.push(json!({ "metadata": { "name": group.name }, "versions": versions }));
    }
    aggregated_list(items)
}

fn aggregated_list(items: Vec<Value>) -> Value {
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    })
}

fn version_discovery(resources: &[Arc<ResourceType>], group: &str, version: &str) -> Value {
    let list: Vec<Value> = in_version(resources, group, version)
        .into_iter()
        .map(|(resource, found)| resource_discovery(resource, found))
        .collect();
    json!({ "version": version, "freshness": "Current", "resources": list })
}

fn resource_discovery(resource: &ResourceType, version: &Version) -> Value {
    // Built-in kinds leave out the group version they are listed under; custom ones name it.
    let (group, own_version) = match resource.origin {
        Origin::Builtin => ("", ""),
        Origin::Custom { .. } => (&*resource.group, &*version.name),
    };
    let subresources: Vec<Value> = version
        .subresources
        .iter()
        .map(|subresource| {
            let (group, version) = match (&*subresource.group, &*subresource.version) {
                ("", "") => (group, own_version),
                given => given,
            };
            json!({
                "subresource": subresource.name,
                "responseKind": response_kind(group, version, &subresource.kind),
                "verbs": subresource.verbs,
            })
        })
        .collect();
    let mut entry = json!({
        "resource": resource.plural,
        "responseKind": response_kind(group, own_version, &resource.kind),
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular,
        "verbs": version.verbs,
    });
    insert_names(&mut entry, resource);
    if let Value::Object(map) = &mut entry
        && !subresources.is_empty()
    {
        map.insert("subresources".into(), subresources.into());
    }
    entry
}

fn response_kind(group: &str, version: &str, kind: &str) -> Value {
    json!({ "group": group, "version": version, "kind": kind })
}

#[cfg(test)]
mod tests;
