//! A policy as its author wrote it.

use alloc::collections::BTreeMap;
use alloc::string::String;

use cleat_api::policy::{GROUP, LONGEST_NAME};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use crate::id::{Id, Target};

#[derive(Clone, Debug, PartialEq)]
pub struct Root {
    pub namespace: String,
    pub name: String,
    pub uid: String,
    pub resource_version: String,
    pub generation: i64,
    pub deleting: bool,
    pub disabled: bool,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    pub spec: Value,
    pub status: Value,
}

impl Root {
    /// `data`: the object without its metadata.
    pub fn read(metadata: &ObjectMeta, data: &Value) -> Self {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let spec = data.get("spec").cloned().unwrap_or_default();
        Self {
            namespace: text(&metadata.namespace),
            name: text(&metadata.name),
            uid: text(&metadata.uid),
            resource_version: text(&metadata.resource_version),
            generation: metadata.generation.unwrap_or_default(),
            deleting: metadata.deletion_timestamp.is_some(),
            disabled: spec.get("disabled").and_then(Value::as_bool).unwrap_or_default(),
            labels: metadata.labels.clone().unwrap_or_default(),
            annotations: metadata.annotations.clone().unwrap_or_default(),
            spec,
            status: data.get("status").cloned().unwrap_or_default(),
        }
    }

    /// Whether its author wants it on clusters.
    pub fn is_spread(&self) -> bool {
        !self.disabled && !self.deleting && !self.is_too_long()
    }

    /// A dot joins its namespace and name to a label.
    pub fn is_too_long(&self) -> bool {
        self.namespace.len() + self.name.len() > LONGEST_NAME
    }

    pub(super) fn enforces(&self) -> bool {
        let action = self.spec.get("remediationAction").and_then(Value::as_str);
        action.is_some_and(|action| action.eq_ignore_ascii_case("enforce"))
    }

    pub(super) fn copies_metadata(&self) -> bool {
        self.spec.get("copyPolicyMetadata").and_then(Value::as_bool) != Some(false)
    }

    pub(super) fn target(&self) -> Target {
        target(&self.namespace, &self.name)
    }
}

pub(super) fn target(namespace: &str, name: &str) -> Target {
    let id = Id {
        group: GROUP.into(),
        resource: "policies".into(),
        namespace: namespace.into(),
        name: name.into(),
    };
    Target { version: "v1".into(), id }
}
