//! PolicyAutomation: a job to run when a policy does not hold.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube_derive::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::schema;

/// On an automation: `"true"` runs the job now, in any mode.
pub const RERUN: &str = "policy.open-cluster-management.io/rerun";

/// On a job: the automation it is of.
pub const AUTOMATION_LABEL: &str = "policy.open-cluster-management.io/policyautomation-name";

/// On a job: the automation's generation and resource version when it was made.
pub const AUTOMATION_GENERATION: &str =
    "policy.open-cluster-management.io/policyautomation-generation";
pub const AUTOMATION_RESOURCE_VERSION: &str =
    "policy.open-cluster-management.io/policyautomation-resource-version";

/// On an automation: the last job that ended a mode `once` or answered [`RERUN`]. It is written
/// together with that change, so neither is ever undone for a wish that came later.
pub const LAST_RUN: &str = "cleat.dev/last-run";

/// Types of conditions of an automation.
pub mod condition {
    /// Whether the jobs that are due can be made.
    pub const JOBS_CREATED: &str = "JobsCreated";
    /// Whether the job that ended last ended well, and no other one failed for clusters that still
    /// do not comply.
    pub const JOBS_SUCCEED: &str = "JobsSucceed";
    /// Whether limits of the automation keep events waiting.
    pub const HELD_BACK: &str = "HeldBack";
}

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
    /// At most so many clusters are the targets of one job; more clusters make more jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_clusters_per_job: Option<i64>,
    /// At most so many jobs are made in any minute; what is due beyond them waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 60))]
    pub max_jobs_per_minute: Option<i64>,
    /// Whether a job that failed is made again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
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

/// A job that failed is made again for those of its clusters that still do not comply.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Retry {
    /// How often.
    #[schemars(range(min = 0, max = 10))]
    pub limit: i64,
    /// Seconds to wait after each failure: 60 unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub delay_seconds: Option<i64>,
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

/// What is remembered between runs. Times are RFC 3339 in UTC, in whole seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyAutomationStatus {
    /// The clusters that do not comply and for which a job ran, and those whose
    /// delayAfterRunSeconds have not passed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub clusters_with_event: BTreeMap<String, ClusterEvent>,
    /// When each of them had last said anything of the policy when its job was decided on, to the
    /// nanosecond and by its own clock. What it says later may tell of a recovery that nobody saw.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub said_times: BTreeMap<String, String>,
    /// The clusters whose event waits for a job.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub waiting_clusters: BTreeMap<String, WaitingCluster>,
    /// The jobs that were decided on and are not known to be made. They are written down here
    /// before they are made, so that whoever goes on after a crash makes these and no others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending_jobs: Vec<PendingJob>,
    /// The jobs made last, the newest first: those under way, and some of those that ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recent_jobs: Vec<RecentJob>,
    /// How many jobs were ever decided on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs_decided: Option<i64>,
    /// Which policy, and which state of it, this was decided from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_policy: Option<ObservedPolicy>,
    /// What there is to say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions_by_type")]
    pub conditions: Vec<Condition>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterEvent {
    /// When the job was made.
    pub automation_start_time: String,
    /// When the cluster last became noncompliant.
    pub event_time: String,
    /// What the cluster did since the job was made; nothing while it has not complied since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_run: Option<SinceRun>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SinceRun {
    /// It complied.
    Recovered,
    /// It complied, and then no more.
    Violated,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WaitingCluster {
    /// When the cluster last became noncompliant.
    pub event_time: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PendingJob {
    /// The name the job has or will have.
    pub name: String,
    /// Why it runs: once, everyEvent or manual.
    pub mode: String,
    /// Its targets, and when each became noncompliant.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub clusters: BTreeMap<String, String>,
    /// When each had last said anything of the policy, as far as that is known.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub said_times: BTreeMap<String, String>,
    /// The uid of the policy it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_uid: Option<String>,
    /// The failed job whose place it takes, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_of: Option<String>,
    /// How many failures it follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecentJob {
    /// The AnsibleJob, in the same namespace.
    pub name: String,
    /// Why it ran: once, everyEvent or manual.
    pub mode: String,
    /// When it was made.
    pub automation_start_time: String,
    /// How many targets it has.
    pub cluster_count: i64,
    /// The first of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<String>,
    /// What the platform says of it: running, successful, failed, error, canceled and the like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_time: Option<String>,
    /// Where more is told of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// How many failures it follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<i64>,
    /// The job that took its place after it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retried_as: Option<String>,
    /// The clusters for which it is to be made again; none are left when it was, or they recovered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_clusters: Option<Vec<String>>,
    /// The uid of the policy it was for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_uid: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObservedPolicy {
    /// Its uid.
    pub uid: String,
    /// Its resource version.
    pub resource_version: String,
}
