//! AnsibleJob: what the automation platform's operator runs. Its definition is that operator's;
//! ours is for hubs where it is absent.

use kube_derive::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The label of our definition. Where another one is served, jobs are another's to run.
pub const OURS: (&str, &str) = ("app.kubernetes.io/managed-by", "cleat");

/// Which job, and with what.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "tower.ansible.com",
    version = "v1alpha1",
    kind = "AnsibleJob",
    plural = "ansiblejobs",
    namespaced,
    status = "AnsibleJobStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A job for the automation platform to run.",
    crates(kube_core = "::kube_core")
)]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct AnsibleJobSpec {
    /// The job template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_template_name: Option<String>,
    /// The secret with the credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tower_auth_secret: Option<String>,
    /// Seconds after which the finished job is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_ttl: Option<i64>,
    /// What is passed to the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "object")]
    pub extra_vars: Option<Map<String, Value>>,
}

fn object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

/// Whatever the operator says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct AnsibleJobStatus {}
