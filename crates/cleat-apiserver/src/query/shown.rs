//! Options as webhooks are shown them.

use serde_json::{Map, Value, json};

use super::{DeleteOptions, FieldValidation, Propagation, WriteOptions};

fn options(kind: &str) -> Map<String, Value> {
    let mut map = Map::new();
    map.insert("kind".into(), kind.into());
    map.insert("apiVersion".into(), "meta.k8s.io/v1".into());
    map
}

impl WriteOptions {
    /// `kind` is `CreateOptions` or `UpdateOptions`: a patch is shown as what it comes down to.
    pub(crate) fn to_json(&self, kind: &str) -> Value {
        let mut map = options(kind);
        if self.dry_run {
            map.insert("dryRun".into(), json!(["All"]));
        }
        if !self.field_manager.is_empty() {
            map.insert("fieldManager".into(), self.field_manager.as_str().into());
        }
        if self.names_validation {
            let validation = match self.field_validation {
                FieldValidation::Ignore => "Ignore",
                FieldValidation::Warn => "Warn",
                FieldValidation::Strict => "Strict",
            };
            map.insert("fieldValidation".into(), validation.into());
        }
        Value::Object(map)
    }
}

impl DeleteOptions {
    pub(crate) fn to_json(&self) -> Value {
        let mut map = options("DeleteOptions");
        if let Some(seconds) = self.grace_period_seconds {
            map.insert("gracePeriodSeconds".into(), seconds.into());
        }
        let mut preconditions = Map::new();
        if let Some(uid) = &self.uid {
            preconditions.insert("uid".into(), uid.as_str().into());
        }
        if let Some(version) = &self.resource_version {
            preconditions.insert("resourceVersion".into(), version.as_str().into());
        }
        if !preconditions.is_empty() {
            map.insert("preconditions".into(), Value::Object(preconditions));
        }
        if let Some(orphan) = self.orphan_dependents {
            map.insert("orphanDependents".into(), orphan.into());
        }
        if let Some(propagation) = self.propagation {
            let policy = match propagation {
                Propagation::Orphan => "Orphan",
                Propagation::Background => "Background",
                Propagation::Foreground => "Foreground",
            };
            map.insert("propagationPolicy".into(), policy.into());
        }
        if self.dry_run {
            map.insert("dryRun".into(), json!(["All"]));
        }
        Value::Object(map)
    }
}
