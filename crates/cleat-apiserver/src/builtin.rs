//! The kinds that every Kubernetes has, as data: names and verbs, shapes, and protobuf layouts.
//!
//! The files under `data/` are written by `cargo xtask generate builtin` from the documents of a
//! pinned Kubernetes release. They hold shapes only: descriptions are left out, being Kubernetes'
//! prose. Each is read once per process, when first asked for, and shared by all servers in it.
//!
//! Nothing here knows what a kind means; behaviour of single kinds lives with the verbs.

mod messages;
mod resources;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use thiserror::Error;

use crate::resource::ResourceType;
use crate::schema::{LoadError, Schemas};
use resources::Loaded;

pub use messages::{Cardinality, Field, FieldType, Message, MessageId, Messages, Presence};

const SCHEMAS: &str = include_str!("../data/schemas.json");

/// Why the data cannot be read. It is part of the program, so a test proves that it can.
#[derive(Debug, Error)]
enum DataError {
    #[error("the data is not the JSON expected")]
    Json(#[from] serde_json::Error),
    #[error("the schemas are not right")]
    Schemas(#[from] LoadError),
    #[error("{0} is not defined")]
    Undefined(String),
}

static RESOURCES: LazyLock<Loaded> = LazyLock::new(|| resources::load().unwrap_or_default());

/// All built-in resources: the core group, then the others in the order of `/apis`.
pub fn resources() -> &'static [Arc<ResourceType>] {
    &RESOURCES.resources
}

/// The Kubernetes release these kinds are of, `v1.36.4`.
pub fn kubernetes_version() -> &'static str {
    &RESOURCES.kubernetes
}

/// What discovery publishes as a resource's `storageVersionHash`, where that is not the hash of
/// group, storage version and kind: Kubernetes keeps a few kinds in a form not served here.
pub fn storage_version_hash(group: &str, plural: &str) -> Option<&'static str> {
    RESOURCES.storage_version_hashes.get(&(group.into(), plural.into())).map(|hash| &**hash)
}

/// The shapes of all built-in kinds and of what they contain, by OpenAPI definition name.
pub fn schemas() -> &'static Arc<Schemas> {
    static LOADED: LazyLock<Arc<Schemas>> =
        LazyLock::new(|| Arc::new(load_schemas().unwrap_or_default()));
    &LOADED
}

/// The protobuf layouts of all built-in kinds and of what they contain.
pub fn messages() -> &'static Messages {
    static LOADED: LazyLock<Messages> = LazyLock::new(|| messages::load().unwrap_or_default());
    &LOADED
}

/// The definitions behind [`schemas`], as published.
pub(crate) fn definitions() -> &'static BTreeMap<&'static str, &'static RawValue> {
    static LOADED: LazyLock<BTreeMap<&'static str, &'static RawValue>> =
        LazyLock::new(|| serde_json::from_str(SCHEMAS).unwrap_or_default());
    &LOADED
}

fn load_schemas() -> Result<Schemas, DataError> {
    let definitions: Map<String, Value> = serde_json::from_str(SCHEMAS)?;
    Ok(Schemas::from_definitions(&definitions)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_loads() {
        let resources = resources::load().unwrap().resources;
        let schemas = load_schemas().unwrap();
        let messages = messages::load().unwrap();
        assert_eq!(schemas.definitions().count(), definitions().len());
        for resource in &resources {
            for version in &resource.versions {
                let root = version.schema.as_ref().unwrap();
                let name = root.schema().node().name.as_deref().unwrap();
                assert!(messages.named(name).is_some(), "{name}");
                assert!(
                    messages.of_kind(&resource.group, &version.name, &resource.kind).is_some(),
                    "{name}"
                );
                let list = messages.of_kind(&resource.group, &version.name, &resource.list_kind);
                assert_eq!(version.allows("list"), list.is_some(), "{name}");
            }
        }
    }

    #[test]
    fn subresources_have_layouts_of_their_own() {
        for (group, version, kind) in [
            ("autoscaling", "v1", "Scale"),
            ("policy", "v1", "Eviction"),
            ("authentication.k8s.io", "v1", "TokenRequest"),
            ("", "v1", "Status"),
            ("apps", "v1", "DeleteOptions"),
            ("example.com", "v1alpha1", "DeleteOptions"),
        ] {
            assert!(messages().of_kind(group, version, kind).is_some(), "{group}/{version} {kind}");
        }
        assert!(messages().of_kind("example.com", "v1", "Pod").is_none());
    }
}
