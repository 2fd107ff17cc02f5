//! AnsibleJobs: what is asked of the platform that runs them, and what it answers.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use cleat_api::policy as api;
use cleat_api::policyautomation::{
    AUTOMATION_GENERATION, AUTOMATION_LABEL, AUTOMATION_RESOURCE_VERSION, DEFAULT_JOB_TTL,
    DEFAULT_VIOLATIONS_LIMIT, PendingJob, PolicyAutomation,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::policy::Policy;
use super::{Context, Observed};
use crate::id::{Id, Target};
use crate::write::{Action, Side, Write};

/// What is known of a job.
#[derive(Clone, Debug, PartialEq)]
pub enum Sighting {
    Unknown,
    Absent,
    /// The server does not serve jobs, which does not prove that there is none of that name.
    NotServed,
    /// Something of that name is there that is not the automation's.
    Foreign,
    Present(Job),
}

/// A job, read once into what the story of its automation needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    pub name: String,
    pub created: Timestamp,
    pub targets: Vec<String>,
    /// The platform's word: `running`, `successful`, `failed`, …
    pub result: Option<String>,
    pub finished: Option<Timestamp>,
    pub url: Option<String>,
    /// Why it failed.
    pub message: Option<String>,
}

/// What is said of a job that went before it ended.
pub(super) const DELETED: &str = "deleted";

pub(super) fn is_failed(result: Option<&str>) -> bool {
    matches!(result, Some("failed" | "error"))
}

pub(super) fn is_final(result: Option<&str>) -> bool {
    is_failed(result) || matches!(result, Some("successful" | "canceled" | DELETED))
}

/// The longest message of a job that is kept.
const LONGEST_MESSAGE: usize = 400;

impl Job {
    /// `data`: the object without its metadata.
    pub fn read(metadata: &ObjectMeta, data: &Value) -> Self {
        let status = data.get("status").unwrap_or(&Value::Null);
        let outcome = status.get("ansibleJobResult").unwrap_or(&Value::Null);
        let told = |key: &str| {
            let text = outcome.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
            text.map(ToOwned::to_owned)
        };
        // The operator may fail before the platform has a job of which anything could be said.
        let conditions = status.get("conditions").and_then(Value::as_array);
        let failure = conditions.into_iter().flatten().find(|one| {
            one.get("type").is_some_and(|kind| kind == "Failure")
                && one.get("status").is_some_and(|status| status == "True")
        });
        let result = told("status").or_else(|| failure.map(|_| "error".to_owned()));
        let message = outcome.get("message").or_else(|| failure?.get("message"));
        let message = message.and_then(Value::as_str).filter(|_| is_failed(result.as_deref()));
        let targets = data.pointer("/spec/extra_vars/target_clusters").and_then(Value::as_array);
        let targets = targets.into_iter().flatten().filter_map(Value::as_str);
        Self {
            name: metadata.name.clone().unwrap_or_default(),
            created: metadata.creation_timestamp.as_ref().map_or(Timestamp::MIN, |at| at.0),
            targets: targets.map(ToOwned::to_owned).collect(),
            finished: told("finished").and_then(|at| at.parse().ok()),
            url: told("url"),
            message: message.map(|text| text.chars().take(LONGEST_MESSAGE).collect()),
            result,
        }
    }
}

/// The longest name that every platform can work with, and a label can hold.
const LONGEST_NAME: usize = 63;
const SUFFIX: usize = 10;

/// As long as the run is the same, so is its name.
pub(super) fn name(automation: &PolicyAutomation, number: i64, job: &PendingJob) -> String {
    let mut hash = Sha256::new();
    let uid = automation.metadata.uid.as_deref().unwrap_or_default();
    hash.update(json!([uid, job.mode, number, job.clusters]).to_string());
    let plain = |char: char| if char.is_ascii_alphanumeric() { char } else { '-' };
    let base: String =
        automation.metadata.name.iter().flat_map(|name| name.chars()).map(plain).collect();
    let base = format!("{base}-{}-", job.mode).to_ascii_lowercase();
    let base: String = base.chars().take(LONGEST_NAME - SUFFIX).collect();
    format!("{base}{}", hex(&hash.finalize(), SUFFIX))
}

fn hex(bytes: &[u8], digits: usize) -> String {
    let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    text.chars().take(digits).collect()
}

/// What jobs are labelled with. A name may be longer than a label can be.
pub fn label_value(automation: &str) -> String {
    if automation.len() <= LONGEST_NAME {
        return automation.to_owned();
    }
    let hash = hex(&Sha256::digest(automation), SUFFIX);
    let kept = automation.chars().take(LONGEST_NAME - SUFFIX - 1).collect::<String>();
    format!("{kept}-{hash}")
}

/// None while not everything that a job is told is known.
pub(super) fn create(seen: &Observed, policy: &Policy, pending: &PendingJob) -> Option<Action> {
    let Context::Read { hub_cluster, violations } = &seen.context else { return None };
    let automation = &seen.automation;
    let metadata = &automation.metadata;
    let definition = &automation.spec.automation;
    let mut vars = definition.extra_vars.clone().unwrap_or_default();
    let targets: Vec<&String> = pending.clusters.keys().collect();
    let told = told(automation, &targets, violations);
    for (key, value) in [
        ("target_clusters", json!(targets)),
        ("policy_name", json!(policy.name)),
        ("policy_namespace", json!(policy.namespace)),
        ("hub_cluster", json!(hub_cluster)),
        ("policy_sets", json!(policy.sets)),
        ("policy_violations", told),
    ] {
        vars.insert(key.to_owned(), value);
    }
    let namespace = metadata.namespace.clone().unwrap_or_default();
    let name = metadata.name.clone().unwrap_or_default();
    let object = json!({
        "apiVersion": "tower.ansible.com/v1alpha1",
        "kind": "AnsibleJob",
        "metadata": {
            "name": pending.name,
            "namespace": namespace,
            "labels": { AUTOMATION_LABEL: label_value(&name) },
            "annotations": {
                AUTOMATION_GENERATION: metadata.generation.unwrap_or_default().to_string(),
                AUTOMATION_RESOURCE_VERSION: metadata.resource_version,
            },
            "ownerReferences": [{
                "apiVersion": "policy.open-cluster-management.io/v1beta1",
                "kind": "PolicyAutomation",
                "name": name,
                "uid": metadata.uid,
                "controller": true,
                "blockOwnerDeletion": true,
            }],
        },
        "spec": {
            "job_template_name": definition.name,
            "tower_auth_secret": definition.secret,
            "job_ttl": definition.job_ttl.unwrap_or(DEFAULT_JOB_TTL),
            "extra_vars": vars,
        },
    });
    let id = Id {
        group: "tower.ansible.com".into(),
        resource: "ansiblejobs".into(),
        namespace,
        name: pending.name.clone(),
    };
    let target = Target { version: "v1alpha1".into(), id };
    Some(Action { side: Side::Hub, target, write: Write::Create(object) })
}

/// No server takes much more than a megabyte; what a job is told of violations is at most half.
const MOST_TOLD: usize = 512 * 1024;

/// The violations of the targets, up to the limit, in the order of their names.
fn told(
    automation: &PolicyAutomation,
    targets: &[&String],
    violations: &BTreeMap<String, Value>,
) -> Value {
    let limit = automation.spec.automation.policy_violations_limit;
    let limit = match limit.unwrap_or(DEFAULT_VIOLATIONS_LIMIT) {
        0 => usize::MAX,
        limit => usize::from(limit),
    };
    let mut told = Map::new();
    let mut bytes = 0_usize;
    for target in targets {
        let Some(violation) = violations.get(*target) else { continue };
        bytes = bytes.saturating_add(violation.to_string().len());
        if told.len() >= limit || bytes > MOST_TOLD {
            break;
        }
        told.insert((*target).clone(), violation.clone());
    }
    if told.is_empty() { Value::Null } else { Value::Object(told) }
}

/// What a job is told of how a policy stands on a cluster; `replica` is the policy there.
pub fn violation(replica: &api::Policy) -> Value {
    let status = replica.status.clone().unwrap_or_default();
    let first = status.details.first().and_then(|detail| detail.history.first());
    let message = first.map(|said| said.message.clone()).unwrap_or_default();
    let details: Vec<Value> = status
        .details
        .iter()
        .map(|detail| {
            let history = detail.history.iter().map(
                |said| json!({ "lastTimestamp": said.last_timestamp, "message": said.message }),
            );
            json!({ "compliant": detail.compliant, "history": history.collect::<Vec<_>>() })
        })
        .collect();
    json!({
        "compliant": status.compliant.unwrap_or_default(),
        "violation_message": message,
        "details": if details.is_empty() { Value::Null } else { Value::Array(details) },
    })
}
