//! A placement as its story needs it.

use alloc::string::{String, ToString as _};

use cleat_api::placement::{GROUP, PlacementSpec, SCHEDULING_DISABLED};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use crate::id::{Id, Target};

#[derive(Clone, Debug, PartialEq)]
pub struct Wish {
    pub namespace: String,
    pub name: String,
    pub uid: String,
    pub resource_version: String,
    pub generation: Option<i64>,
    pub deleting: bool,
    /// Somebody else makes its decisions.
    pub elsewhere: bool,
    /// What it asks for, or why that cannot be read.
    pub spec: Result<PlacementSpec, String>,
    pub status: Value,
}

impl Wish {
    /// `data`: the object without its metadata.
    pub fn read(metadata: &ObjectMeta, data: &Value) -> Self {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let annotations = metadata.annotations.as_ref();
        let disabled = annotations.and_then(|all| all.get(SCHEDULING_DISABLED));
        let spec = data.get("spec").cloned().unwrap_or_else(|| Value::Object(Default::default()));
        Self {
            namespace: text(&metadata.namespace),
            name: text(&metadata.name),
            uid: text(&metadata.uid),
            resource_version: text(&metadata.resource_version),
            generation: metadata.generation,
            deleting: metadata.deletion_timestamp.is_some(),
            elsewhere: disabled.is_some_and(|value| value == "true"),
            spec: serde_json::from_value(spec).map_err(|error| error.to_string()),
            status: data.get("status").cloned().unwrap_or_default(),
        }
    }

    pub(super) fn target(&self) -> Target {
        let id = Id {
            group: GROUP.into(),
            resource: "placements".into(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        };
        Target { version: "v1beta1".into(), id }
    }
}
