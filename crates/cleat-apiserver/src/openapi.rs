//! The OpenAPI v3 documents: an index, and one document for each group version.
//!
//! `kubectl` cannot `apply` or `explain` without them: it looks for the kind's schema, for what
//! kinds of patch the kind takes, and for the `fieldValidation` parameter that tells it to leave
//! validation to the server. It asks for JSON only, so JSON is the only form; there is no
//! `/openapi/v2`, which `kubectl` does without.
//!
//! Differs from Kubernetes: no descriptions except those of custom kinds (the rest is its prose, not
//! ours), no paths of streams (`exec`, `log`, proxies) and none of the deprecated `watch/`, and no
//! documents for what is not a group version (`version`, `api`).

mod custom;
mod operation;
mod paths;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use sha2::{Digest, Sha512};

use crate::builtin;
use crate::resource::{Origin, ResourceType};

const REFERENCE: &str = "#/components/schemas/";

/// All documents of one server. Building is for when the resource types change, not for every
/// request: custom kinds' documents are made anew, built-in ones are shared by the process.
#[derive(Clone, Debug, Default)]
pub struct Documents {
    by_path: BTreeMap<String, Arc<Document>>,
}

/// One group version's document.
#[derive(Clone, Debug)]
pub struct Document {
    /// JSON.
    pub body: Bytes,
    /// Changes with the body: clients keep what they fetched under `?hash=`, for good.
    pub hash: String,
}

impl Documents {
    pub fn new(resources: &[Arc<ResourceType>]) -> Self {
        let mut groups: BTreeMap<(&str, &str), Vec<&ResourceType>> = BTreeMap::new();
        for resource in resources {
            for version in resource.versions.iter().filter(|version| version.served) {
                groups.entry((&resource.group, &version.name)).or_default().push(resource);
            }
        }
        let mut by_path = BTreeMap::new();
        for ((group, version), members) in groups {
            let path = path(group, version);
            let builtin = members.iter().all(|resource| resource.origin == Origin::Builtin);
            let document = match BUILTIN.get(&path).filter(|_| builtin) {
                Some(shared) => Arc::clone(shared),
                None => Arc::new(Document::new(group, version, &members)),
            };
            by_path.insert(path, document);
        }
        Self { by_path }
    }

    /// The document at `/openapi/v3/PATH`, PATH being `api/v1` or `apis/GROUP/VERSION`.
    pub fn get(&self, path: &str) -> Option<&Arc<Document>> {
        self.by_path.get(path)
    }

    /// `/openapi/v3`.
    pub fn index(&self) -> Value {
        let paths: BTreeMap<&str, Value> = self
            .by_path
            .iter()
            .map(|(path, document)| {
                let url = format!("/openapi/v3/{path}?hash={}", document.hash);
                (&**path, json!({ "serverRelativeURL": url }))
            })
            .collect();
        json!({ "paths": paths })
    }
}

/// What no server changes, once for the process.
static BUILTIN: LazyLock<BTreeMap<String, Arc<Document>>> = LazyLock::new(|| {
    let mut groups: BTreeMap<(&str, &str), Vec<&ResourceType>> = BTreeMap::new();
    for resource in builtin::resources() {
        for version in &resource.versions {
            groups.entry((&resource.group, &version.name)).or_default().push(resource);
        }
    }
    groups
        .into_iter()
        .map(|((group, version), members)| {
            (path(group, version), Arc::new(Document::new(group, version, &members)))
        })
        .collect()
});

fn path(group: &str, version: &str) -> String {
    match group {
        "" => format!("api/{version}"),
        _ => format!("apis/{group}/{version}"),
    }
}

impl Document {
    /// JSON, under a name that changes with it.
    pub(crate) fn named(body: impl Into<Bytes>) -> Self {
        let body = body.into();
        let hash = Sha512::digest(&body).iter().map(|byte| format!("{byte:02X}")).collect();
        Self { body, hash }
    }

    fn new(group: &str, version: &str, resources: &[&ResourceType]) -> Self {
        let mut paths = paths::PathSet::new(group, version);
        let mut own: BTreeMap<String, Box<RawValue>> = BTreeMap::new();
        for resource in resources {
            paths.add(resource);
            if resource.origin != Origin::Builtin {
                for (name, schema) in custom::definitions(resource, version) {
                    own.extend(raw(&schema).map(|schema| (name, schema)));
                }
            }
        }
        let custom = resources.iter().all(|resource| resource.origin != Origin::Builtin);
        if !custom {
            paths.add_root();
        }
        let written = Written {
            openapi: "3.0.0",
            info: match custom {
                true => json!({ "title": "Kubernetes CRD Swagger", "version": "v0.1.0" }),
                false => json!({ "title": "Kubernetes", "version": minor_version() }),
            },
            paths: raw(&paths.into_json()),
            components: Components {
                schemas: BTreeMap::new(),
                security_schemes: (!custom).then(security_schemes),
            },
        };
        written.finish(group, version, own)
    }
}

#[derive(Serialize)]
struct Written {
    openapi: &'static str,
    info: Value,
    paths: Option<Box<RawValue>>,
    components: Components,
}

#[derive(Serialize)]
struct Components {
    schemas: BTreeMap<String, Box<RawValue>>,
    #[serde(rename = "securitySchemes", skip_serializing_if = "Option::is_none")]
    security_schemes: Option<Value>,
}

/// `v1.36.4` → `1.36`
fn minor_version() -> &'static str {
    let version = builtin::kubernetes_version().trim_start_matches('v');
    version.rsplit_once('.').map_or(version, |(minor, _)| minor)
}

fn security_schemes() -> Value {
    let bearer = json!({ "type": "apiKey", "name": "authorization", "in": "header" });
    json!({ "BearerToken": bearer })
}

impl Written {
    /// Adds every definition that the paths need, directly or through others.
    fn finish(
        mut self,
        group: &str,
        version: &str,
        own: BTreeMap<String, Box<RawValue>>,
    ) -> Document {
        let mut open = BTreeSet::new();
        open.extend(self.paths.iter().flat_map(|paths| references(paths.get())));
        open.extend(own.values().flat_map(|schema| references(schema.get())));
        self.components.schemas = own.clone();
        while let Some(name) = open.pop_first() {
            if self.components.schemas.contains_key(name) {
                continue;
            }
            let Some(known) = builtin::definitions().get(name) else { continue };
            open.extend(references(known.get()));
            let schema = in_group(name, known, group, version);
            self.components.schemas.insert(name.to_owned(), schema);
        }
        Document::named(serde_json::to_vec(&self).unwrap_or_default())
    }
}

/// Kinds that every group has name the group of the document they stand in.
fn in_group(name: &str, known: &RawValue, group: &str, version: &str) -> Box<RawValue> {
    const OF_ALL_GROUPS: [&str; 2] = [
        "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
        "io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent",
    ];
    let copy = known.to_owned();
    if group.is_empty() || !OF_ALL_GROUPS.contains(&name) {
        return copy;
    }
    let Ok(mut schema) = serde_json::from_str::<Value>(known.get()) else { return copy };
    let kinds = schema.get_mut("x-kubernetes-group-version-kind").and_then(Value::as_array_mut);
    if let Some(kinds) = kinds {
        let kind = name.rsplit('.').next().unwrap_or_default();
        kinds.push(json!({ "group": group, "version": version, "kind": kind }));
    }
    raw(&schema).unwrap_or(copy)
}

/// The names after `#/components/schemas/` in a JSON text.
fn references(text: &str) -> impl Iterator<Item = &str> {
    text.split(REFERENCE).skip(1).filter_map(|rest| rest.split('"').next())
}

fn raw(value: &impl Serialize) -> Option<Box<RawValue>> {
    to_raw_value(value).ok()
}

#[cfg(test)]
mod tests;
