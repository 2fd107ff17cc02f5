//! The status of a policy after an evaluation, and how its changes are made known.
//!
//! The owner hears of a change before the status shows it: if telling fails, nothing is written and
//! all is tried again, so that no change is ever shown and not told.

use alloc::borrow::ToOwned as _;
use alloc::string::{String, ToString as _};
use alloc::vec;
use alloc::vec::Vec;

use cleat_api::configurationpolicy::{
    ComplianceDetail, Condition, ConfigurationPolicyStatus, HistoryEvent, Validity, state,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use serde_json::{Value, json};

use super::event;
use super::finding::{self, Finding, State};
use super::observed::{Observed, Policy, Seen};
use crate::id::{Id, Target};
use crate::write::{Action, Plan, Side, Write};

/// How many messages are kept.
const HISTORY: usize = 10;

/// The detail that says this, with the time at which it was first said.
pub(crate) fn detail(
    old: Option<&ComplianceDetail>,
    finding: &Finding,
    now: Timestamp,
) -> ComplianceDetail {
    let said = Condition {
        type_: finding.state.condition().to_owned(),
        status: Some("True".to_owned()),
        last_transition_time: None,
        reason: (!finding.reason.is_empty()).then(|| finding.reason.clone()),
        message: Some(finding.message.clone()),
    };
    let before = old.and_then(|old| old.conditions.last());
    let since = before
        .filter(|before| Condition { last_transition_time: None, ..(*before).clone() } == said)
        .and_then(|before| before.last_transition_time.clone());
    ComplianceDetail {
        compliant: Some(finding.state.as_str().to_owned()),
        validity: Validity::default(),
        conditions: vec![Condition {
            last_transition_time: since.or_else(|| Some(whole_seconds(now))),
            ..said
        }],
    }
}

/// Kubernetes' times have whole seconds; finer ones would differ from what comes back.
fn whole_seconds(now: Timestamp) -> Time {
    Time(Timestamp::from_second(now.as_second()).unwrap_or(now))
}

/// A moment as texts of Kubernetes say it.
pub(crate) fn whole_seconds_text(now: Timestamp) -> String {
    Timestamp::from_second(now.as_second()).unwrap_or(now).to_string()
}

/// The state that the details amount to.
pub(crate) fn overall(policy: &Policy, details: &[ComplianceDetail]) -> Option<String> {
    if policy.deleting {
        return Some(state::TERMINATING.to_owned());
    }
    if details.is_empty() {
        return None;
    }
    let bad = details.iter().any(|detail| detail.compliant.as_deref() != Some(state::COMPLIANT));
    Some(if bad { state::NONCOMPLIANT } else { state::COMPLIANT }.to_owned())
}

/// Writes a status, if it is not what is there, and tells of what changed in it.
pub(crate) fn publish(
    seen: &Observed,
    policy: &Policy,
    mut status: ConfigurationPolicyStatus,
) -> Plan {
    let old = &policy.status;
    let changed = status.compliant != old.compliant
        || status.compliancy_details != old.compliancy_details
        || status.last_evaluated_generation != old.last_evaluated_generation;
    if !changed {
        return if status == *old { vec![] } else { vec![vec![write(policy, &status)]] };
    }
    let usual = finding::policy_message(status.compliant.as_deref(), &said(&status));
    let message = finding::cut(custom(seen, policy, &status, &usual));
    status
        .history
        .insert(0, HistoryEvent { last_timestamp: MicroTime(seen.now), message: message.clone() });
    status.history.truncate(HISTORY);
    let mut plan: Plan = Vec::new();
    plan.extend(event::to_owner(seen, policy, &status, &message).map(|event| vec![event]));
    plan.push(vec![write(policy, &status)]);
    plan.push(event::about_policy(seen, policy, &status, &finding::cut(usual)));
    plan
}

/// Type and message of each condition.
pub(crate) fn said(status: &ConfigurationPolicyStatus) -> Vec<(String, String)> {
    let conditions = status.compliancy_details.iter().filter_map(|detail| detail.conditions.last());
    conditions.map(|one| (one.type_.clone(), one.message.clone().unwrap_or_default())).collect()
}

/// What the policy wants to be said instead of the usual.
pub(crate) fn custom(
    seen: &Observed,
    policy: &Policy,
    status: &ConfigurationPolicyStatus,
    usual: &str,
) -> String {
    let templates = &policy.spec.custom_message;
    let state = status.compliant.as_deref();
    let template = match state {
        Some(state::COMPLIANT) => &templates.compliant,
        _ => &templates.noncompliant,
    };
    let Some(template) = template.as_deref().filter(|template| !template.is_empty()) else {
        return usual.to_owned();
    };
    let data = json!({ "DefaultMessage": usual, "Policy": described(seen, policy, status) });
    match (seen.controller.say)(template, &data) {
        Err(why) => {
            alloc::format!("{usual} (failure processing the custom message: {why})")
        }
        Ok(text) => {
            let prefix = alloc::format!("{}; ", state.unwrap_or("UnknownCompliancy"));
            if text.starts_with(&prefix) { text } else { alloc::format!("{prefix}{text}") }
        }
    }
}

/// The policy with its new status, as templates of messages see it.
fn described(seen: &Observed, policy: &Policy, status: &ConfigurationPolicyStatus) -> Value {
    let mut status_value = serde_json::to_value(status).unwrap_or_default();
    let entries = status_value.get_mut("relatedObjects").and_then(Value::as_array_mut);
    for (value, entry) in entries.into_iter().flatten().zip(&status.related_objects) {
        let live = seen.cluster.objects.iter().find_map(|(id, found)| match found {
            Seen::Present(present)
                if id.name == entry.object.metadata.name
                    && id.namespace == entry.object.metadata.namespace
                    && present.object.get("kind").and_then(Value::as_str)
                        == Some(&entry.object.kind)
                    && present.object.get("apiVersion").and_then(Value::as_str)
                        == Some(&entry.object.api_version) =>
            {
                Some((*present.object).clone())
            }
            _ => None,
        });
        if let (Some(live), Some(value)) = (live, value.as_object_mut()) {
            value.insert("object".to_owned(), live);
        }
    }
    let mut metadata = json!({
        "name": policy.name, "namespace": policy.namespace, "uid": policy.uid,
        "generation": policy.generation,
    });
    for (field, marks) in [("labels", &policy.labels), ("annotations", &policy.annotations)] {
        if let Some(metadata) = metadata.as_object_mut().filter(|_| !marks.is_empty()) {
            metadata.insert(field.to_owned(), json!(marks));
        }
    }
    json!({
        "apiVersion": "policy.open-cluster-management.io/v1",
        "kind": "ConfigurationPolicy",
        "metadata": metadata,
        "spec": serde_json::to_value(&policy.spec).unwrap_or_default(),
        "status": status_value,
    })
}

pub(crate) fn target(policy: &Policy) -> Target {
    let id = Id {
        group: cleat_api::configurationpolicy::GROUP.to_owned(),
        resource: "configurationpolicies".to_owned(),
        namespace: policy.namespace.clone(),
        name: policy.name.clone(),
    };
    Target { version: "v1".to_owned(), id }
}

fn write(policy: &Policy, status: &ConfigurationPolicyStatus) -> Action {
    let object = json!({
        "apiVersion": "policy.open-cluster-management.io/v1",
        "kind": "ConfigurationPolicy",
        "metadata": {
            "name": policy.name, "namespace": policy.namespace,
            "uid": policy.uid, "resourceVersion": policy.resource_version,
        },
        "status": serde_json::to_value(status).unwrap_or_default(),
    });
    Action { side: Side::Cluster, target: target(policy), write: Write::ReplaceStatus(object) }
}

/// Whether a state counts as good where it is only looked at.
pub(crate) fn state_of(status: &ConfigurationPolicyStatus) -> State {
    match status.compliant.as_deref() {
        Some(state::COMPLIANT) => State::Compliant,
        Some(state::TERMINATING) => State::Terminating,
        _ => State::NonCompliant,
    }
}
