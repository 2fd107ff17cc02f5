//! PolicyAutomation: a job to run when a policy does not hold.

use std::collections::BTreeMap;

use kube_derive::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// On an automation: `"true"` runs the job now, in any mode.
pub const RERUN: &str = "policy.open-cluster-management.io/rerun";

/// On a job: the automation it is of.
pub const AUTOMATION_LABEL: &str = "policy.open-cluster-management.io/policyautomation-name";

/// On a job: the automation's generation and resource version when it was made.
pub const AUTOMATION_GENERATION: &str =
    "policy.open-cluster-management.io/policyautomation-generation";
pub const AUTOMATION_RESOURCE_VERSION: &str =
    "policy.open-cluster-management.io/policyautomation-resource-version";

/// How many violations are told to a job unless the automation says otherwise.
pub const DEFAULT_VIOLATIONS_LIMIT: u16 = 1000;

/// Seconds after which a finished job is removed unless the automation says otherwise.
pub const DEFAULT_JOB_TTL: i64 = 86_400;

/// Which policy, when, and which job.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "policy.open-cluster-management.io",
    version = "v1beta1",
    kind = "PolicyAutomation",
    plural = "policyautomations",
    shortname = "plca",
    namespaced,
    status = "PolicyAutomationStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A job to run when a policy does not hold on some cluster.",
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct PolicyAutomationSpec {
    /// The name of a policy in the same namespace.
    #[schemars(length(min = 1))]
    pub policy_ref: String,
    /// What makes it run.
    #[serde(default)]
    #[schemars(extend("default" = "noncompliant"))]
    pub event_hook: EventHook,
    /// Once for whatever is found first, at every event, or not at all.
    pub mode: Mode,
    /// Reserved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rescan_after: Option<String>,
    /// How long, in seconds, after a run the same cluster does not start another; for everyEvent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub delay_after_run_seconds: Option<i64>,
    /// The job.
    #[serde(rename = "automationDef")]
    pub automation: AutomationDef,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum EventHook {
    #[default]
    #[serde(rename = "noncompliant")]
    NonCompliant,
    /// A value of a later version.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Mode {
    Once,
    EveryEvent,
    #[default]
    Disabled,
    /// A value of a later version. Nothing runs under it.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AutomationDef {
    /// The kind of job; AnsibleJob by convention.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,
    /// The name of the job template.
    #[schemars(length(min = 1))]
    pub name: String,
    /// What is passed to the job.
    #[serde(rename = "extra_vars", default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "object")]
    pub extra_vars: Option<Map<String, Value>>,
    /// The secret with the credentials.
    #[schemars(length(min = 1))]
    pub secret: String,
    /// Seconds after which a finished job is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub job_ttl: Option<i64>,
    /// How many violations are told to a job: 1000 unless said otherwise, 0 for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = Value::Null, "minimum" = 0, "maximum" = 65_535))]
    pub policy_violations_limit: Option<u16>,
}

fn object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

/// What is remembered between runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyAutomationStatus {
    /// The clusters for which a job ran lately.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub clusters_with_event: BTreeMap<String, ClusterEvent>,
}

/// Times are RFC 3339 in UTC, in whole seconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterEvent {
    /// When the job was made.
    pub automation_start_time: String,
    /// When the cluster was last looked at.
    pub event_time: String,
}
